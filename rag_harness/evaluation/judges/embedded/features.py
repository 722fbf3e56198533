"""Features of the models of sentences and answers: lexical, by rules, and by alignment."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from rag_harness.core.text.terms import stem
from rag_harness.evaluation.judges.embedded.alignment import (
    Alignment,
    Bools,
    Encoded,
    EncodedSource,
    Float32s,
    Ints,
    JsonLeaf,
    SplitText,
    align,
)
from rag_harness.evaluation.judges.embedded.quantities import CITED, known_numbers, numbers, times

_LONGEST_RUN = 10
_BESIDE = 3


def same(of: Sequence[str], among: Sequence[str]) -> Bools:
    """Return which words are equal, shape (n, m)."""
    numbers: dict[str, int] = {}
    left = np.array([numbers.setdefault(word, len(numbers)) for word in of], np.int32)
    right = np.array([numbers.setdefault(word, len(numbers)) for word in among], np.int32)
    equal: Bools = left[:, None] == right[None, :]
    return equal


def covering_runs(equal: Bools) -> Ints:
    """Return for each word the length of the longest run around it that the source has too.

    ``equal`` is (n, m): is word i of the answer equal to word j of the source?
    """
    count, width = equal.shape
    longest, running = np.zeros(count, np.int64), np.zeros(width + 1, np.int64)
    for place in range(count):
        running[1:] = np.where(equal[place], running[:-1] + 1, 0)
        length = int(running.max())
        covered = longest[place - length + 1 : place + 1] if length else longest[:0]
        np.maximum(covered, length, out=covered)
    return np.minimum(longest, _LONGEST_RUN)


def near_pairs(equal: Bools) -> Bools:
    """Return for each word whether the source has it near the word before or after it."""
    wide = equal.copy()
    for shift in range(1, _BESIDE + 1):
        wide[:, shift:] |= equal[:, :-shift]
        wide[:, :-shift] |= equal[:, shift:]
    pairs = (equal[:-1] & wide[1:]).any(axis=1)
    near = np.zeros(len(equal), bool)
    near[:-1] |= pairs
    near[1:] |= pairs
    return near


def novel_runs(known: Bools, text: SplitText) -> Ints:
    """Return for each content word the length of its run of content words that the source does not have."""
    runs = np.zeros(len(known), np.int64)
    for sentence in range(len(text.sentences)):
        row: list[int] = []
        for place in [place for place in text.words_of(sentence) if text.content[place]]:
            row = [] if known[place] else [*row, place]
            runs[row] = len(row)
    return runs


def novel_names(known: Bools, text: SplitText) -> Bools:
    """Return which words are capitalised inside a sentence and not in the source."""
    capital = np.array([word[:1].isupper() for word in text.written], bool)
    capital[text.firsts] = False
    found: Bools = capital & ~known & text.content
    return found


def lexical(answer: SplitText, exact: Bools, stems: Bools) -> Float32s:
    """Return the values of each word, shape (n, names), in the order of NAMES."""
    has, has_stem = np.asarray(exact.any(axis=1)), np.asarray(stems.any(axis=1))
    columns = (
        has,
        has_stem,
        covering_runs(exact) / _LONGEST_RUN,
        near_pairs(stems),
        np.minimum(novel_runs(has_stem, answer), 6) / 6,
        novel_names(has_stem, answer),
    )
    return np.stack([np.asarray(column, np.float32) for column in columns], axis=1)


LEXICAL_NAMES = ("exact", "stem", "run", "near_pair", "novel_run", "novel_name")
"""The columns of ``lexical``."""


DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

_TIME = r"(?:\d{1,2}(?::\d{1,2})?\s*(?:a\.?m\.?|p\.?m\.?)|\d{1,2}:\d{1,2}|\d{1,2}(?=\s*(?:-|–|to)\s*\d)|noon|midnight)"
_RANGE = re.compile(rf"({_TIME})\s*(?:-|–|—|to|until|till|and|through)\s*({_TIME})", re.I)
_DAY = r"(mon|tue|wed|thu|fri|sat|sun)[a-z]*"
_SPAN = re.compile(rf"\b{_DAY}\s*(?:-|–|—|to|through|until)\s*{_DAY}\b", re.I)
_SINGLE = re.compile(r"\b(mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:days?)?\b", re.I)
_WEEK = r"(?:seven|7) days(?: (?:a|per) week)?"
_GROUPS = (
    (re.compile(r"\bweekdays?\b", re.I), range(5)),
    (re.compile(r"\bweekends?\b", re.I), range(5, 7)),
    (re.compile(rf"\b(?:every ?day|daily|{_WEEK}|all week|each day|throughout the week)\b", re.I), range(7)),
)  # fmt: skip
_LEAF = re.compile(rf"\b({'|'.join(DAYS)}): (.+)", re.I)

Hours = Mapping[int, tuple[frozenset[int], frozenset[int]]]
"""Opening and closing by day, 0 is Monday; in minutes, several values where am or pm is not said."""


def hours_of(sentences: Sequence[str]) -> Hours:
    """Return the hours by day, from sentences such as "hours monday: 11:00 am to 5:00 pm"."""
    found: dict[int, tuple[frozenset[int], frozenset[int]]] = {}
    for sentence in sentences:
        leaf = _LEAF.search(sentence)
        told = _RANGE.search(leaf[2]) if leaf else None
        if leaf and told:
            found[DAYS.index(leaf[1].lower())] = _minutes(told[1], told[2])
    return found


def hours_agreement(sentence: str, hours: Hours) -> tuple[int, int]:
    """Return how many of the days in a sentence have the source's hours, and how many have others."""
    right = wrong = 0
    for days, told in _told(sentence) if hours else ():
        for day in days:
            known = hours.get(day)
            same = known is not None and all(one & other for one, other in zip(told, known, strict=True))
            right, wrong = right + same, wrong + (not same)
    return right, wrong


def _told(sentence: str) -> Iterator[tuple[set[int], tuple[frozenset[int], frozenset[int]]]]:
    """Yield days with their hours. Days come before or after their hours."""
    ranges = list(_RANGE.finditer(sentence))
    named = sorted(_named(sentence))
    if not ranges or not named:
        return
    before = named[0][0] < ranges[0].start()
    for place, found in enumerate(ranges):
        if before:
            low, high = (ranges[place - 1].end() if place else 0), found.start()
        else:
            low, high = found.end(), (ranges[place + 1].start() if place + 1 < len(ranges) else len(sentence))
        days = {day for at, group in named if low <= at < high for day in group}
        if days:
            yield days, _minutes(found[1], found[2])


def _named(sentence: str) -> Iterator[tuple[int, tuple[int, ...]]]:
    spans = list(_SPAN.finditer(sentence))
    for span in spans:
        first, last = _day(span[1]), _day(span[2])
        yield span.start(), tuple(day % 7 for day in range(first, last + 1 + 7 * (last < first)))
    for pattern, group in _GROUPS:
        yield from ((found.start(), tuple(group)) for found in pattern.finditer(sentence))
    for found in _SINGLE.finditer(sentence):
        if not any(span.start() <= found.start() < span.end() for span in spans):
            yield found.start(), (_day(found[1]),)


def _day(name: str) -> int:
    return next(place for place, day in enumerate(DAYS) if day.startswith(name[:3].lower()))


def _minutes(opens: str, closes: str) -> tuple[frozenset[int], frozenset[int]]:
    return _minute(opens), _minute(closes)


def _minute(said: str) -> frozenset[int]:
    plain = said.strip().lower()
    if plain in ("noon", "midnight"):
        return frozenset([720 if plain == "noon" else 0])
    if plain.isdigit():
        return frozenset([int(plain) % 12 * 60, int(plain) % 12 * 60 + 720])
    found = times(re.sub(r":(\d)(?!\d)", r":0\1", plain))
    return found[0] if found else frozenset()


_VALUES = {True: "yes", False: "no", None: "null"}
_FIELD_NAMES = tuple(
    f"field_{value}_{said}_{near}"
    for value in _VALUES.values()
    for said in ("said", "denied", "declined")
    for near in ("named", "bare")
)
RULE_NAMES = (
    *(
        "number_absent",
        "numbers_absent",
        "number_not_near",
        "number_given",
        "time_absent",
        "time_not_near",
        "time_given",
    ),
    *("declines", "negated", "negation_differs", "cites", "cites_another", "cites_none_there"),
    *_FIELD_NAMES,
    *("hours_right", "hours_wrong"),
)
"""The columns of ``rules``."""

_NEGATION = re.compile(
    r"\b(?:not?|never|none|nor|neither|without|cannot|unable|unavailable|lacks?|lacking|absent|fails?|denie[sd])\b"
    r"|n['’]t\b",
    re.I,
)
_DECLINES = re.compile(
    r"\b(?:unable|not able|cannot|can['’]t|could not|couldn['’]t) (?:to )?(?:be )?"
    r"(?:answer|find|found|determine|provide)"
    r"|\b(?:not|n['’]t) (?:\w+ )?(?:contain|mention|specif|stat(?:e|ing)|say|said|indicat|explicit|known\b|disclos)"
    r"|\b(?:not|n['’]t) (?:\w+ )?(?:provided|given|included|listed)\b"
    r"|\b(?:not|n['’]t) (?:\w+ )?(?:provid|giv|offer|hav|includ)\w*(?: \w+){0,3} "
    r"(?:information|details?|data|answers?)\b"
    r"|\b(?:no|not enough|insufficient)(?: \w+)? (?:information|mention|details?|answer|data|context)\b",
    re.I,
)
_TURN = re.compile(
    r"\b(?:but|however|although|though|while|whereas|yet|except"
    r"|and (?:it |they |there )?(?:has|have|offers?|does|do|provides?|is|are|allows?))\b|[;.]"
    r"|,\s*(?:it|they|there|the)\b",
    re.I,
)
_IS_NOT = re.compile(r"\w+(?:\s+\w+)?\s+(?:(?:is|are|was|were)(?:\s+not|n['’]t|\s+un)|unavail)", re.I)
_ALIASES = {"ambience": ("ambian", "atmospher", "vibe", "feel")}
_GENERIC = frozenset(
    ("business", "restaurant", "restaurants", "attributes", "good", "for", "has", "is", "accepts", "allowed")
)
_REACH = 90
_OFTEN = 3


class SourceFacts:
    """Facts of a source in the form that the rules look up."""

    def __init__(self, sentences: Sequence[str], fields: Sequence[JsonLeaf]) -> None:
        joined = "\n".join(sentences)
        self.numbers = known_numbers(joined)
        self.times = frozenset(minute for found in times(joined) for minute in found)
        self.fields = _sought(fields)
        self.hours = hours_of(sentences)


def rules(sentence: str, near: Sequence[str], facts: SourceFacts, cited: tuple[int, int]) -> list[float]:
    """Return the value of each of NAMES for one sentence.

    Args:
        sentence: sentence of the answer.
        near: nearest sentences of the source, best first.
        facts: facts of the whole source.
        cited: its best passage, from 0; and the number of passages.
    """
    return [*_figures(sentence, near, facts), *_negations(sentence, near[0]), *_citations(sentence, *cited),
            *_fields(sentence, facts), *_hours(sentence, facts)]  # fmt: skip


def _figures(sentence: str, near: Sequence[str], facts: SourceFacts) -> list[float]:
    given, clocks = numbers(sentence), times(sentence)
    beside = "\n".join(near)
    close, close_times = known_numbers(beside), {minute for found in times(beside) for minute in found}
    absent = sum(number not in facts.numbers for number in given)
    return [
        float(absent > 0),
        float(min(absent, 4)),
        float(any(number not in close for number in given)),
        float(bool(given)),
        float(any(not found & facts.times for found in clocks)),
        float(any(not found & close_times for found in clocks)),
        float(bool(clocks)),
    ]


def declines(sentence: str) -> bool:
    """Return whether a sentence states that information is missing. Then it has no claim that could be supported."""
    return bool(_DECLINES.search(sentence))


def _negations(sentence: str, nearest: str) -> list[float]:
    here, there = bool(_NEGATION.search(sentence)), bool(_NEGATION.search(nearest))
    return [float(declines(sentence)), float(here), float(here != there)]


def _citations(sentence: str, best: int, count: int) -> list[float]:
    cited = {int(one or other) - 1 for one, other in CITED.findall(sentence)}
    there = {place for place in cited if 0 <= place < count}
    return [float(bool(cited)), float(bool(there) and best not in there), float(bool(cited - there))]


def _fields(sentence: str, facts: SourceFacts) -> list[float]:
    counts = dict.fromkeys(_FIELD_NAMES, 0.0)
    for field in facts.fields:
        where = field.found(sentence)
        if where is not None:
            counts[field.name(sentence, where)] += 1
    return [min(count, 3.0) for count in counts.values()]


def _hours(sentence: str, facts: SourceFacts) -> list[float]:
    right, wrong = hours_agreement(sentence, facts.hours)
    return [float(right > 0 and not wrong), float(wrong > 0)]


class _Sought:
    """A field in the form for searching a sentence: its name, the name of its owner, its value."""

    def __init__(self, name: Sequence[str], above: Sequence[str], value: bool | None) -> None:
        self._name, self._above, self._value = _pattern(name), _pattern(above, _ALIASES) if above else None, value

    def found(self, sentence: str) -> int | None:
        """Return the position where the sentence names it; None where it does not."""
        where = self._name.search(sentence)
        return where.start() if where else None

    def name(self, sentence: str, where: int) -> str:
        """Return the column in which this mention counts."""
        near = "bare" if self._above and not self._above.search(sentence) else "named"
        said = "declined" if declines(sentence) else "denied" if _denied(sentence, where) else "said"
        return f"field_{_VALUES[self._value]}_{said}_{near}"


def _sought(fields: Sequence[JsonLeaf]) -> list[_Sought]:
    often = Counter(word for field in fields for word in set(field.path[-1]))
    found = []
    for field in fields:
        name = [word for word in field.path[-1] if often[word] < _OFTEN and word not in _GENERIC]
        above = [word for word in field.path[-2] if word not in _GENERIC] if len(field.path) > 2 else []
        if name:
            found.append(_Sought(name, above, field.value))
    return found


def _pattern(words: Sequence[str], aliases: Mapping[str, Sequence[str]] = {}) -> re.Pattern[str]:
    """Return a pattern for words in any of their forms, joined or separate: take-out, Takeout."""
    ways = [r"[\s-]?".join(re.escape(stem(word) if len(word) > 4 else word) for word in words)]
    ways += [other for word in words for other in aliases.get(word, ())]
    return re.compile(rf"\b(?:{'|'.join(ways)})\w*", re.I)


def _denied(sentence: str, at: int) -> bool:
    before = sentence[max(0, at - _REACH) : at]
    turns = [turn.end() for turn in _TURN.finditer(before)]
    after = _IS_NOT.match(sentence[at:])
    return bool(_NEGATION.search(before[turns[-1] if turns else 0 :])) or bool(after)


# Features of the sentence model: one row for each sentence of the answer, one column for each feature. Pure.

_WINDOWS = (2, 5)
_NEAREST = ("all", "top1", "top3", *(f"window{reach}" for reach in _WINDOWS), "same_stem", "question")
_WORD_NAMES = (*LEXICAL_NAMES, *_NEAREST)
_WAYS = ("mean", "min", "max", "content", "weighted", "low")
_SENTENCE_NAMES = (
    *("cosine", "cosine_top3", "cosine_best", "margin", "max_sim", "max_sim_top3", "score_top3", "same_passage"),
    *("recall_all", "recall_top1", "recall_top3", "recall_question", "pairs_all", "unknown_content", "in_question"),
    *("log_words", "log_content", "log_source", "log_sentences", "structured"),
)
SENTENCE_NAMES = (*(f"{name}:{way}" for way in _WAYS for name in _WORD_NAMES), *_SENTENCE_NAMES, *RULE_NAMES)
"""The columns of ``features``."""


def features(answer: Encoded, source: EncodedSource, question: Encoded) -> tuple[Float32s, Alignment]:
    """Return the value of each of NAMES for each sentence of ``answer``, shape (sentences, names), and its alignment.

    Neither the answer nor the source may be empty; the question may.
    """
    found = align(answer, source)
    exact, stems = same(answer.text.words, source.words), same(answer.text.stems, source.stems)
    words = np.concatenate([lexical(answer.text, exact, stems), _nearest(answer, found, stems, question)], axis=1)
    columns = [*_over_sentences(words, answer), _sentences(answer, source, found, stems, question)]
    columns.append(_rules(answer, source, found))
    return np.concatenate(columns, axis=1).astype(np.float32), found


def _nearest(answer: Encoded, found: Alignment, stems: Bools, question: Encoded) -> Float32s:
    """Return how near each word is to the source, and to which part of it; shape (n, _NEAREST)."""
    sims, asked = found.sims, question.vectors
    top = found.top[answer.text.sentence_of]
    near = found.best[np.arange(len(top))[:, None], top]
    columns = (
        sims.max(axis=1),
        near[:, 0],
        near.max(axis=1),
        *(_windowed(sims, reach) for reach in _WINDOWS),
        np.where(stems, sims, 0).max(axis=1),
        (answer.vectors @ asked.T).max(axis=1) if len(asked) else np.zeros(len(sims), np.float32),
    )
    return np.stack(columns, axis=1)


def _windowed(sims: Float32s, reach: int) -> Float32s:
    """Return for each word how well its neighbours match within ``reach`` of one position of the source."""
    wide = sims.copy()
    for shift in range(1, reach + 1):
        np.maximum(wide[:, shift:], sims[:, :-shift], out=wide[:, shift:])
        np.maximum(wide[:, :-shift], sims[:, shift:], out=wide[:, :-shift])
    summed = np.concatenate([np.zeros((1, wide.shape[1]), np.float32), np.cumsum(wide, axis=0)])
    places = np.arange(len(sims))
    low, high = np.maximum(places - reach, 0), np.minimum(places + reach + 1, len(sims))
    best: Float32s = ((summed[high] - summed[low]) / (high - low)[:, None]).max(axis=1)
    return best


def _over_sentences(words: Float32s, answer: Encoded) -> list[Float32s]:
    """Return word values aggregated over each sentence, in each of _WAYS."""
    firsts, weights = answer.text.firsts, answer.weights[:, None]
    content = answer.text.content[:, None].astype(np.float32)
    counts = np.diff([*firsts, len(words)])[:, None]
    mean = np.asarray(np.add.reduceat(words, firsts, axis=0) / counts, np.float32)
    return [mean, np.minimum.reduceat(words, firsts, axis=0), np.maximum.reduceat(words, firsts, axis=0),
            _weighted(words, content, firsts, mean), _weighted(words, weights, firsts, mean),
            _lowest(words, answer)]  # fmt: skip


def _weighted(words: Float32s, weights: Float32s, firsts: Ints, otherwise: Float32s) -> Float32s:
    total = np.add.reduceat(weights, firsts, axis=0)
    summed = np.add.reduceat(words * weights, firsts, axis=0)
    mean: Float32s = np.where(total > 0, summed / np.maximum(total, 1e-9), otherwise)
    return mean


def _lowest(words: Float32s, answer: Encoded) -> Float32s:
    """Return the mean of the three lowest values of each sentence's content words; 1 where it has none."""
    rows = []
    for sentence in range(len(answer.text.sentences)):
        places = answer.text.words_of(sentence)
        chosen = words[places.start : places.stop][answer.text.content[places.start : places.stop]]
        rows.append(np.sort(chosen, axis=0)[:3].mean(axis=0) if len(chosen) else np.ones(words.shape[1]))
    return np.array(rows, np.float32)


def _sentences(answer: Encoded, source: EncodedSource, found: Alignment, stems: Bools, question: Encoded) -> Float32s:
    rows = np.arange(len(found.top))[:, None]
    cosine, max_sim = found.cosine[rows, found.top], found.max_sim[rows, found.top]
    score, passages = found.score[rows, found.top], source.passage_of[found.top]
    counts = np.diff([*answer.text.firsts, len(answer.text.spans)])
    content = np.add.reduceat(answer.text.content.astype(np.float32), answer.text.firsts)
    of_source = (np.log1p(len(source.words)), np.log1p(len(found.top)), source.structured)
    columns = [
        cosine[:, 0], cosine.mean(axis=1), found.cosine.max(axis=1), score[:, 0] - score[:, -1], max_sim[:, 0],
        max_sim.mean(axis=1), score.mean(axis=1), (passages == passages[:, :1]).mean(axis=1),
        *_recalls(answer, source, found, stems, question),
        np.log1p(counts), np.log1p(content),
        *(np.full(len(rows), value) for value in of_source),
    ]  # fmt: skip
    return np.stack(columns, axis=1)


def _recalls(
    answer: Encoded, source: EncodedSource, found: Alignment, stems: Bools, question: Encoded
) -> list[Float32s]:
    """Return the weighted share of each sentence's words that are found: anywhere, nearby, in the question."""
    there = np.logical_or.reduceat(stems, source.firsts, axis=1)
    top = found.top[answer.text.sentence_of]
    near = there[np.arange(len(top))[:, None], top]
    asked = (
        same(answer.text.stems, question.text.stems).any(axis=1)
        if len(question.text.spans)
        else np.zeros(len(top), bool)
    )
    known = stems.any(axis=1)
    words = np.stack([known, near[:, 0], near.any(axis=1), known | asked, near_pairs(stems)], axis=1)
    shares = _weighted(
        words.astype(np.float32), answer.weights[:, None], answer.text.firsts, np.ones((1, 5), np.float32)
    )
    unknown = np.add.reduceat((~known & answer.text.content).astype(np.float32), answer.text.firsts)
    said = np.add.reduceat((asked & answer.text.content).astype(np.float32), answer.text.firsts)
    return [*shares.T, np.log1p(unknown), np.log1p(said)]


def _rules(answer: Encoded, source: EncodedSource, found: Alignment) -> Float32s:
    facts = SourceFacts(source.sentences, source.fields)
    rows = [
        rules(answer.text.text[start:end], [source.sentences[place] for place in top], facts, _cited(source, top))
        for (start, end), top in zip(answer.text.sentences, found.top, strict=True)
    ]
    return np.array(rows, np.float32).reshape(-1, len(RULE_NAMES))


def _cited(source: EncodedSource, top: Sequence[int]) -> tuple[int, int]:
    return int(source.passage_of[top[0]]), len(source.passages)


Doubles = npt.NDArray[np.float64]

_MANY = 0.3
_EDGE = 1e-4
_SPREAD = (
    *("recall_all", "recall_top1", "pairs_all", "max_sim", "cosine", "unknown_content", "question:mean"),
    *("run:mean", "novel_run:max", "novel_name:max"),
)
_CONSTANT = ("structured", "log_source", "log_sentences")
_FOUND = ("max", "top2", "top3", "mean", "any", "many")
RESPONSE_NAMES = (
    *_FOUND,
    *(f"{name}:sum" for name in RULE_NAMES),
    *_CONSTANT,
    "log_claims",
    *(f"{name}:{way}" for way in ("mean", "high", "low") for name in _SPREAD),
)
"""The columns of ``response_features``."""

_PLACES = {name: place for place, name in enumerate(SENTENCE_NAMES)}
_RULES, _ALL, _CHOSEN = ([_PLACES[name] for name in names] for names in (RULE_NAMES, _CONSTANT, _SPREAD))


def response_features(unsupported: npt.ArrayLike, rows: npt.ArrayLike) -> Doubles:
    """Return the value of each of NAMES for one answer.

    Args:
        unsupported: P(unsupported) of each sentence, shape (n,).
        rows: the features of each, shape (n, columns).
    """
    values = np.asarray(rows, np.float64)
    ordered = np.sort(values[:, _CHOSEN], axis=0)
    return np.concatenate(
        [
            _probabilities(np.asarray(unsupported, np.float64)),
            np.log1p(values[:, _RULES].sum(axis=0)),
            values[:, _ALL].mean(axis=0),
            [np.log1p(len(values))],
            ordered.mean(axis=0),
            ordered[-2:].mean(axis=0),
            ordered[:2].mean(axis=0),
        ]
    )


def _probabilities(unsupported: Doubles) -> list[float]:
    """Return log odds of the worst sentences, of all, of any unsupported one if independent; and their number."""
    worst = np.sort(np.clip(unsupported, _EDGE, 1 - _EDGE))[::-1]
    means = [worst[0], worst[:2].mean(), worst[:3].mean(), worst.mean()]
    odds = [float(np.log(mean / (1 - mean))) for mean in means]
    return [*odds, float(np.log(-np.log1p(-worst).sum())), float(np.log1p((worst > _MANY).sum()))]
