"""Data rot: a page was replaced but the old one is still there, and answers repeat what only the old page says.

Neither case nor row says which page has replaced which. So the case needs it in its metadata::

    {"query_id": "q1", …, "metadata": {"version_pair": "returns", "superseded": [{ "outdated_statement": "Most items can
        be returned within 30 days.", "current_statement": "Most items can be returned within 45 days."}]}}

The keys are those of ``version_pairs`` in a knowledge base's ``structure.json``. A rate for one version pair is a
slice: ``e3[version_pair=returns]: stale_answer <= 0.05``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from rag_harness.measures.measure import RowMeasure, Score
from rag_harness.results.row import ExperimentResult
from rag_harness.types import Case
from rag_harness.words.citation_marks import CITATION
from rag_harness.words.comparison import content_words, quotable

SUPERSEDED = "superseded"
_NUMBER = r"\d+(?:[.,]\d+)*"
_FIGURE = re.compile(rf"([€$£]?)\s?(?<![\d.,])({_NUMBER})((?:[\s\-–]+[^\W\d_]+){{0,2}})(?:\s?([€$£%]))?")
_LETTERS = re.compile(r"[^\W\d_]+")
_NOTHING = "no superseded statement"


class Versions(NamedTuple):
    """One fact in two versions, word for word."""

    outdated: str
    current: str


class StaleAnswer(RowMeasure):
    """1 if the answer carries what only a superseded statement says, and nothing of what only the current one says.

    The figures in which the two versions differ are compared: the answer must have all of the old ones, and none of the
    new. A figure is a number with the currency beside it and the words after it, of which one must be the same: "24
    months" is not found in "24 May". Where the versions have the same figures, their other words of four letters and
    more are compared: over half of the old ones, and a larger share than of the new. The measure does not see figures
    in words, paraphrases, or the same figure about something else. An answer with both versions is not stale, and one
    that declines carries nothing.
    """

    called, better, worst, needs = "stale_answer", "lower", 1.0, ("answer",)

    def score(self, case: Case, row: ExperimentResult) -> Score:  # noqa: ARG002
        versions, why = versions_of(row)
        if not versions:
            return Score(None, why, undefined=True)
        stale = [each.outdated for each in versions if not row.abstained and _is_stale(row.llm_answer, each)]
        return Score(float(bool(stale)), detail={"stale": stale})


class VersionConflict(RowMeasure):
    """1 if the prompt says both versions of a fact, each in one of its chunks, white space folded; case counts.

    It is about the reader's sources, not about its choice. It does not see a statement in other words, or one that a
    chunk border divides.
    """

    called, better, worst, needs = "version_conflict", "lower", 1.0, ("retrieval",)

    def score(self, case: Case, row: ExperimentResult) -> Score:  # noqa: ARG002
        versions, why = versions_of(row)
        if not versions:
            return Score(None, why, undefined=True)
        chunks = [quotable(chunk.text) for chunk in row.retrieved_chunks]
        both = [each.outdated for each in versions if all(_is_in(statement, chunks) for statement in each)]
        return Score(float(bool(both)), detail={"conflicts": both})


def versions_of(row: ExperimentResult) -> tuple[list[Versions], str]:
    """Return the facts in two versions from the case's metadata, or why none can be used."""
    given = row.metadata.get(SUPERSEDED)
    if not given:
        return [], _NOTHING
    try:
        found = list(_read(given))
    except (TypeError, KeyError, AttributeError):
        return [], f"metadata.{SUPERSEDED} that is no list of outdated_statement and current_statement"
    differing = [each for each in found if quotable(each.outdated) != quotable(each.current)]
    return differing, "two versions that say the same"


def _read(given: Any) -> Iterator[Versions]:
    for fact in given if isinstance(given, list) else [given]:
        statements = fact["outdated_statement"], fact["current_statement"]
        if not all(isinstance(statement, str) and statement.strip() for statement in statements):
            raise TypeError("a statement is no text")
        yield Versions(*statements)


def _is_stale(answer: str, fact: Versions) -> bool:
    said = CITATION.sub(" ", answer)
    old, new = _figures(fact.outdated).keys(), _figures(fact.current).keys()
    if old - new:
        there = [_found(fact.outdated, said, number) for number in old - new]
        return all(there) and not any(_found(fact.current, said, number) for number in new - old)
    before, now, words = content_words(fact.outdated), content_words(fact.current), content_words(said)
    return _share(before - now, words) > max(0.5, _share(now - before, words))


def _share(wanted: set[str], words: set[str]) -> float:
    return len(wanted & words) / len(wanted) if wanted else 0.0


def _figures(text: str) -> dict[str, set[str]]:
    """Return the numbers with their units or currencies; ``1,000`` becomes ``1000`` and ``3.50`` becomes ``3.5``."""
    found: dict[str, set[str]] = {}
    for before, number, words, behind in _FIGURE.findall(text):
        units = {before, behind, *(word.lower()[:3] for word in _LETTERS.findall(words))} - {""}
        found.setdefault(_number(number), set()).update(units)
    return found


def _found(statement: str, answer: str, number: str) -> bool:
    units, said = _figures(statement)[number], _figures(answer)
    return number in said and (not units or bool(units & said[number]))


def _number(figure: str) -> str:
    plain = re.sub(r"[.,](?=\d{3}(?!\d))", "", figure).replace(",", ".")
    whole, point, rest = plain.partition(".")
    return f"{int(whole)}{point}{rest}".rstrip("0").rstrip(".") if point else str(int(whole))


def _is_in(statement: str, chunks: list[str]) -> bool:
    return any(quotable(statement) in chunk for chunk in chunks)
