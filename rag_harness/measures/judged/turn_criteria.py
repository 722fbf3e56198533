"""What is asked about an answer to a turn, in words: criteria that a judge is asked like those of a rubric.

A judge with a chat model is asked about all of them in one call, in the conversation. Any other judge answers by rules
(``judges.turn_rules``), or says that it cannot tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Protocol, runtime_checkable

from rag_harness.measures.judged.criteria import MEETS_FROM, CriterionVerdict, MaterialOfCase
from rag_harness.measures.judged.opinion import Material
from rag_harness.measures.measure import Score

ASKS_NOTHING_AGAIN = "does not ask the user for anything that the user has already said in the conversation"
CONTRADICTS_NOTHING = (
    "contradicts nothing that was said before in the conversation, by the user or by the assistant, unless it says "
    "openly that it puts that right"
)
CORRECTS = "makes the user see that what the user takes for granted is not so"
ASKS_BACK = "asks the user for what the question leaves open, or gives the answer for each case that it may mean"
ONLY_ASKS_BACK = "above all, asks the user for what the question leaves open"
"""As MTRAG-UN has it: an answer for each case does not count."""
OF_TURNS = ("retention", "correction", "asks_back", "faithfulness_mtrag")
"""The measures that ask these."""
_RIGHT = ". What is right: "
_LONGEST_TRUTH = 1_500


def with_truth(criterion: str, ground_truth: str) -> str:
    """Return a criterion with the ground truth behind it, where there is one."""
    truth = " ".join(ground_truth.split())
    return f"{criterion}{_RIGHT}{truth[:_LONGEST_TRUTH]}" if truth else criterion


def parts_of_criterion(criterion: str) -> tuple[str, str]:
    """Return a criterion without its ground truth, and the ground truth."""
    plain, _, truth = criterion.partition(_RIGHT)
    return plain, truth


def is_of_turns(criterion: str) -> bool:
    """Return whether a criterion is one of those of this file."""
    return parts_of_criterion(criterion)[0] in (
        ASKS_NOTHING_AGAIN,
        CONTRADICTS_NOTHING,
        CORRECTS,
        ASKS_BACK,
        ONLY_ASKS_BACK,
    )


@runtime_checkable
class AsksOfTurns(Protocol):
    """A measure that asks criteria about answers to turns."""

    def criteria(self, material: Material) -> Sequence[str]:
        """Return what is asked about an answer; nothing where the measure asks nothing about it."""
        ...


def also_asking_of_turns(material: Material, measures: Sequence[object]) -> Material:
    """Return the material with the criteria that ``measures`` ask about an answer to a turn."""
    asked = [each for one in measures if isinstance(one, AsksOfTurns) for each in one.criteria(material)]
    if not asked:
        return material
    if not isinstance(material, MaterialOfCase):
        material = MaterialOfCase(**{each.name: getattr(material, each.name) for each in fields(material)})
    return replace(material, criteria=tuple(dict.fromkeys([*material.criteria, *asked])))


def score_of(met: Sequence[CriterionVerdict]) -> Score:
    """Return the score of criteria that must all be met: the lowest value, 0 or 1, or a probability.

    One that is not met decides, whatever is not known of the others.
    """
    detail = {"expectations": [_detail(each) for each in met]}
    broken = next((each for each in met if each.value is not None and each.value < MEETS_FROM), None)
    unknown = next((each for each in met if each.value is None), None)
    if broken is None and unknown is not None:
        return Score(None, unknown.reason or "the judge cannot tell", detail)
    value = min(each.value for each in met if each.value is not None)
    return Score(value, _why(broken) if broken is not None else "", detail)


def _why(said: CriterionVerdict) -> str:
    plain = parts_of_criterion(said.criterion)[0]
    return f"not: {plain}: {_words(said)}"


def _words(said: CriterionVerdict) -> str:
    return said.reason or (f"“{said.quote}”" if said.quote else "no words of the answer decide it")


def _detail(said: CriterionVerdict) -> dict[str, object]:
    place = {"start": said.start, "end": said.end} if said.start >= 0 else {}
    kept = None if said.value is None else said.value >= MEETS_FROM
    return {"expectation": parts_of_criterion(said.criterion)[0], "kept": kept, "said": _words(said), **place}
