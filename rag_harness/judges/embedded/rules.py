"""Rules for what a sentence says and its source contradicts or lacks: figures, times, negations, citations, fields."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from rag_harness.judges.embedded.figures import CITED, known_numbers, numbers, times
from rag_harness.judges.embedded.hours import hours_agreement, hours_of
from rag_harness.judges.embedded.source import JsonLeaf
from rag_harness.words.terms import stem

_VALUES = {True: "yes", False: "no", None: "null"}
_FIELD_NAMES = tuple(
    f"field_{value}_{said}_{near}"
    for value in _VALUES.values()
    for said in ("said", "denied", "declined")
    for near in ("named", "bare")
)
NAMES = (
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
    """Return whether a sentence says that something is not said. Then it has no claim that could be supported."""
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
