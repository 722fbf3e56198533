"""What a sentence says that its source contradicts or does not have: figures, times, negations, citations, fields."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from rag_harness.judges.embedded.figures import CITED, known_numbers, numbers, times
from rag_harness.judges.embedded.source import Field
from rag_harness.reader.terms import STOPWORDS, stem

NAMES = (
    *("number_absent", "numbers_absent", "number_not_near", "number_given", "time_absent", "time_not_near", "time_given"),
    *("negated", "negation_differs", "cites", "cites_another", "cites_none_there"),
    *(f"field_{said}_{where}" for where in ("named", "bare") for said in ("ok", "conflict", "null")),
)
"""The columns of ``rules``."""

_NEGATION = re.compile(
    r"\b(?:not?|never|none|nor|neither|without|cannot|unable|unavailable|lacks?|lacking|absent|fails?|denie[sd])\b"
    r"|n['’]t\b",
    re.I,
)
_TURN = re.compile(r"\b(?:but|however|although|though|while|whereas|yet|except)\b|[;.]", re.I)
_ALIASES = {"ambienc": ("ambianc", "atmospher", "vib", "setting")}
_REACH = 60
_OFTEN = 3


class Facts:
    """What the rules look up in a source."""

    def __init__(self, sentences: Sequence[str], fields: Sequence[Field]) -> None:
        joined = "\n".join(sentences)
        self.numbers = known_numbers(joined)
        self.times = frozenset(minute for found in times(joined) for minute in found)
        self.fields = _keyed(fields)


def rules(sentence: str, near: Sequence[str], facts: Facts, cited: tuple[int, int, int]) -> list[float]:
    """Return the value of each of NAMES for one sentence.

    Args:
        sentence: of the answer.
        near: the sentences of the source that it is nearest to, best first.
        facts: of the whole source.
        cited: its best passage, from 0; the second best; how many there are.
    """
    return [*_figures(sentence, near, facts), *_negations(sentence, near[0]), *_citations(sentence, *cited),
            *_fields(sentence, facts)]  # fmt: skip


def _figures(sentence: str, near: Sequence[str], facts: Facts) -> list[float]:
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


def _negations(sentence: str, nearest: str) -> list[float]:
    here, there = bool(_NEGATION.search(sentence)), bool(_NEGATION.search(nearest))
    return [float(here), float(here != there)]


def _citations(sentence: str, best: int, second: int, count: int) -> list[float]:
    cited = {int(one or other) - 1 for one, other in CITED.findall(sentence)}
    there = {place for place in cited if 0 <= place < count}
    return [float(bool(cited)), float(bool(there) and best not in there), float(bool(cited - there))]


Keyed = tuple[frozenset[str], str, frozenset[str], bool | None]
"""A field as it is looked for: stems of its name, the name without blanks, stems of what it belongs to, its value."""


def _keyed(fields: Sequence[Field]) -> list[Keyed]:
    often = Counter(word for field in fields for word in set(field.path[-1]))
    return [key for field in fields if (key := _key(field, often)) is not None]


def _key(field: Field, often: Counter[str]) -> Keyed | None:
    name = [word for word in field.path[-1] if often[word] < _OFTEN and word not in STOPWORDS]
    stems = frozenset(map(stem, name))
    if not stems:
        return None
    above = {stem(word) for word in field.path[-2]} if len(field.path) > 2 else set()
    return stems, "".join(name), frozenset([*above, *(other for one in above for other in _ALIASES.get(one, ()))]), field.value


def _fields(sentence: str, facts: Facts) -> list[float]:
    counts = dict.fromkeys(NAMES[-6:], 0.0)
    if facts.fields:
        words = [(found[0].lower(), found.start()) for found in re.finditer(r"[^\W_]+", sentence)]
        stems = {stem(word): at for word, at in reversed(words)}
        squashed = "".join(word for word, _ in words)
        for key in facts.fields:
            _count(counts, key, sentence, stems, squashed)
    return [min(count, 3.0) for count in counts.values()]


def _count(counts: dict[str, float], key: Keyed, sentence: str, stems: dict[str, int], squashed: str) -> None:
    name, joined, above, value = key
    if not (name <= stems.keys() or (len(joined) > 3 and joined in squashed)):
        return
    at = min((stems[word] for word in name if word in stems), default=len(sentence))
    said = not _denied(sentence, at)
    what = "null" if value is None else "ok" if said == value else "conflict"
    counts[f"field_{what}_{'named' if not above or above & stems.keys() else 'bare'}"] += 1


def _denied(sentence: str, at: int) -> bool:
    before = sentence[max(0, at - _REACH) : at]
    turns = [turn.end() for turn in _TURN.finditer(before)]
    after = re.match(r"\W*\w+(?:\W+\w+)?\W+(?:is|are)?\s*(?:not|n['’]t|unavailable)", sentence[at:])
    return bool(_NEGATION.search(before[turns[-1] if turns else 0 :])) or bool(after)
