"""What a judge is given of a row: the answer, the question with its conversation, the texts to judge it by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from rag_harness.measures.expectation_measures import found_in
from rag_harness.measures.judged import JudgedMeasure, Material
from rag_harness.measures.judged.criteria import CRITERIA, MaterialOfCase
from rag_harness.measures.judged.judged_expectations import criteria_of
from rag_harness.measures.judged.rubric_measure import also_asking
from rag_harness.measures.judged.turn_criteria import also_asking_of_turns
from rag_harness.measures.judged.turn_material import kinds_of, turn_material
from rag_harness.measures.quotes import as_shown
from rag_harness.results.row import ExperimentResult
from rag_harness.types import Case


def material_of(row: ExperimentResult, case: Case, measures: Sequence[JudgedMeasure], pages: Sequence[str]) -> Material:
    """Return the material of a row. ``pages`` are the texts of the relevant documents, where a measure reads them.

    The contexts are those of the row: in a conversation, of this turn alone.
    """
    material = Material(
        question=row.query,
        answer=row.llm_answer,
        contexts=tuple(chunk.text for chunk in row.retrieved_chunks),
        ground_truth=case.ground_truth,
        gold_pages=tuple(pages),
        quotes=tuple(evidence.quote for evidence in as_shown(case, row).evidence),
        abstained=row.abstained,
        answerable=case.answerable,
        retrieves=row.retrieves is not False,
    )
    if any(CRITERIA in measure.asks for measure in measures):
        expected = found_in(case, row)
        plain = {each.name: getattr(material, each.name) for each in fields(material)}
        material = MaterialOfCase(**plain, expected=tuple(expected), criteria=tuple(criteria_of(expected)))
    material = turn_material(material, row.asked.history, kinds_of(case))
    return also_asking_of_turns(also_asking(material, measures), measures)
