"""What of a turn of a conversation is changed to find why it failed: its words, or what was said before it."""

from __future__ import annotations

from dataclasses import replace

from rag_harness.derived.attribution.shelf import Shelf
from rag_harness.results.row import ExperimentResult
from rag_harness.retrieval.carried_words import with_carried_words
from rag_harness.types import Case

STANDALONE, GOLD_HISTORY = "+standalone", "+gold_history"
_LONGEST = 1_000
"""The most bytes of a question that is made to stand alone."""


def as_asked(case: Case, row: ExperimentResult) -> Case:
    """Return the case as it was asked in this row: with its own answers as history, with what a simulated user said."""
    if row.inputs == case.query.inputs and case.scenario is None:
        return case
    text = row.query if case.scenario is not None else case.query.text
    return replace(case, query=replace(case.query, text=text, inputs=row.inputs))


def standalone_of(case: Case, shelf: Shelf | None) -> str:
    """Return the question of a later turn in words that need nothing said before it; empty where nobody knows them.

    Where nobody wrote it, it is made by rules, of the words that were said before and the index has.
    """
    if not case.query.history:
        return ""
    if case.standalone:
        return case.standalone
    if shelf is None or not shelf.knows_index:
        return ""
    made = with_carried_words(case.query.text, case.query.history, shelf.rarity, _LONGEST)
    return "" if made.why_not else made.text


def changed_turns(case: Case, row: ExperimentResult, standalone: str) -> dict[str, Case]:
    """Return the case with one thing of its turn changed, by the name of the change, where that changes anything.

    Args:
        case: the case with the history of its data.
        row: the row of its trial.
        standalone: its question in words that need nothing said before it; empty where nobody knows them.
    """
    asked, found = as_asked(case, row), {}
    if standalone and standalone != asked.query.text:
        found[STANDALONE] = replace(asked, query=replace(asked.query, text=standalone))
    if case.query.history and case.query.history != asked.query.history:
        found[GOLD_HISTORY] = replace(asked, query=replace(asked.query, inputs=case.query.inputs))
    return found
