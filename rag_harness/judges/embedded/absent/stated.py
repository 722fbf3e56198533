"""Whether passages state a value in any reading: a reason that says that they do not is checked against it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from rag_harness.judges.embedded.absent.quantities import CENTS, CURRENCIES, Quantity, quantities
from rag_harness.judges.embedded.absent.sentences import Sentence
from rag_harness.judges.embedded.figures import clocks, times
from rag_harness.words.contradictions.vocabulary import UNITS, tokens
from rag_harness.words.number_words import in_digits
from rag_harness.words.stated_values import StatedValue, stated_values

_RATE = re.compile(
    r"\b(?:per|every|each|an?|the|once an?|within an?) (year|quarter|month|week|day|hour|minute)\b", re.I
)
_RATES = {"yearly": "year", "annual": "year", "annually": "year", "quarterly": "quarter", "monthly": "month",
          "weekly": "week", "daily": "day", "hourly": "hour"}  # fmt: skip
_MOST = 100
"""Largest count by which a stated value may be multiplied."""
_READ = 40_000
"""Characters of each passage that are read for it."""
Reading = tuple[str, float]


def is_stated(written: str, texts: Sequence[str]) -> bool:
    """Return whether any text states the values of ``written`` in any reading of both."""
    wanted = quantities(written)
    values, clocks = stated_values(in_digits(written)), times(written)
    if not (wanted or values or clocks):
        return False
    known = [_known(text[:_READ]) for text in texts]
    if clocks and any(one & minutes for one in clocks for _, _, minutes in known):
        return True
    if wanted and all(any(_readings(one) & readings for readings, _, _ in known) for one in wanted):
        return True
    if any(one.unit in (*CURRENCIES, CENTS) for one in wanted):
        return False
    said = [value for _, stated, _ in known for value in stated]
    return bool(values) and all(any(other.has(one) for other in said) for one in values)


def restated(text: str, source: Iterable[Sentence]) -> str:
    """Return ``text`` with amounts and times as the source writes them, where it states the same in another form.

    The models compare words: "four weeks" is as far from "28 days" as from "9 days".
    """
    said: list[tuple[str, Quantity | frozenset[int]]] = [(one.written, one) for one in quantities(text) if one.unit]
    said += clocks(text)
    if not said:
        return text
    sentences = list(source)
    for written, value in said:
        if not any(written in sentence.text for sentence in sentences):
            other = next(filter(None, (_same_in(value, sentence) for sentence in sentences)), "")
            text = text.replace(written, other, 1) if other else text
    return text


def _same_in(value: Quantity | frozenset[int], sentence: Sentence) -> str:
    if isinstance(value, Quantity):
        return next((one.written for one in sentence.quantities if one.unit == value.unit and value.same(one)), "")
    return next((written for written, minutes in clocks(sentence.text) if minutes & value), "")


def is_computed(said: Quantity, claim: Sentence, known: Sequence[Sentence]) -> bool:
    """Return whether a claim multiplies a stated value by a count of its own: "two cases hold a dozen bottles"."""
    factors = {one.number for one in claim.quantities if one is not said and one.number % 1 == 0}
    factors = {factor for factor in factors if 2 <= factor <= _MOST}
    return any(
        other.unit == said.unit and other.noun == said.noun and abs(other.value * factor - said.value) < 1e-6
        for factor in factors
        for sentence in known
        for other in sentence.quantities
    )


def _readings(one: Quantity) -> frozenset[Reading]:
    if one.unit == CENTS:
        return frozenset([(CENTS, one.value), *((sign, one.value / 100) for sign in CURRENCIES)])
    return frozenset([(one.unit, one.value)])


@lru_cache(maxsize=64)
def _known(text: str) -> tuple[frozenset[Reading], tuple[StatedValue, ...], frozenset[int]]:
    """Return the readings of a passage, its values, and the minutes of its times of day."""
    digits = in_digits(text)
    minutes = frozenset(minute for found in times(text) for minute in found)
    return frozenset(_all_readings(digits)), stated_values(digits), minutes


def _all_readings(text: str) -> Iterator[Reading]:
    """Yield every reading: a bare number has also each unit of its sentence, and a rate is one of its unit."""
    for sentence in re.split(r"(?<=[.!?])\s+|\n+", text):
        found = quantities(sentence)
        units = {UNITS[token.lower] for token in tokens(sentence, 0, len(sentence)) if token.lower in UNITS}
        for one in found:
            yield from _readings(one)
            yield "", one.number
            if not one.unit:
                yield from ((unit, one.number * factor) for unit, factor in units)
                yield from ((sign, one.number) for sign in CURRENCIES if any(other.unit == sign for other in found))
    for named in _RATE.findall(text):
        yield _period(named.lower())
    for token in re.findall(r"\b(?:[a-z]{3,7}ly|annual)\b", text.lower()):
        if token in _RATES:
            yield _period(_RATES[token])


def _period(name: str) -> Reading:
    if name == "quarter":
        return "months", 3.0
    return UNITS[name]
