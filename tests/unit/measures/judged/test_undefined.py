"""What each measure is not defined for, and that case and answer give the same reason."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import replace

import pytest

from rag_harness.core.types import Case, Evidence, Query
from rag_harness.evaluation.judges.factory import judged
from rag_harness.evaluation.measures import known_measures, measure_named
from rag_harness.evaluation.measures.judged import JudgedMeasure
from rag_harness.evaluation.measures.opinion import JudgeQuestion, Material, Support
from tests.unit.measures.judged.opinions import FULL, Told, judged_measure, score, verdicts

ALL = [name for name in known_measures() if "@" not in name and name not in {
    "recall", "precision", "hit", "all", "mrr", "map", "ndcg", "recall_by_step"}]  # fmt: skip
OF_TURNS = {"retention", "correction", "asks_back", "carried_faithfulness"}  # tests of their own say when
JUDGED = [name for name in ALL if isinstance(measure_named(name), JudgedMeasure) and name not in OF_TURNS]
CASE = Case(Query("q", "?"), "direct", "5 euros.", {"a.md": 1}, (Evidence("a.md", "The price is 5 euros."),))
NO_CONTEXT = "no context: not defined without one"
CLAIMS_NOTHING = "an abstention, which claims nothing"
OF_CITATIONS = {
    "citation_support", "citation_coverage", "misattributed", "citation_support_trec", "citation_coverage_trec",
    "citation_support_alce", "citation_coverage_alce",
}  # fmt: skip
OF_NUGGETS = {"nugget_recall", "nugget_recall_strict", "nugget_recall_vital", "nugget_recall_vital_strict"}
AGAINST_TRUTH = {
    "context_precision", "context_recall", "answer_correctness", "noise_sensitivity", "self_knowledge",
    "context_utilisation", *OF_NUGGETS,
}  # fmt: skip
OF_CONTEXT = {
    "faithfulness", "faithfulness_mtrag", "context_precision", "context_recall", "noise_sensitivity", "self_knowledge",
    "context_utilisation", *OF_CITATIONS,
}  # fmt: skip


WORST_WITHOUT = OF_CONTEXT - {"noise_sensitivity", "self_knowledge"}
MEASURES = [judged_measure(name) for name in sorted(WORST_WITHOUT)]


class Nobody:
    """A judge that is not to be asked."""

    name = model = revision = ""
    asks_model, deterministic, reads_conversation = False, False, True

    def opinion(self, material: Material, asks: Collection[JudgeQuestion]) -> Told:
        assert not asks
        return Told()


def undefined(material: Material) -> dict[str, str]:
    reasons = {name: judged_measure(name).undefined(material) for name in JUDGED}
    return {name: reason for name, reason in reasons.items() if reason}


def not_applying(case: Case) -> dict[str, str]:
    reasons = {name: judged_measure(name).applies(case) for name in JUDGED}
    return {name: reason for name, reason in reasons.items() if reason}


def test_all_are_defined_where_everything_is_there() -> None:
    assert {"faithfulness", "factuality"} < set(JUDGED)
    assert undefined(FULL) == {}
    assert not_applying(CASE) == {}


@pytest.mark.parametrize("contexts", [(), ("", " \n")])
def test_without_context(contexts: tuple[str, ...]) -> None:
    """What retrieves and finds nothing does badly, and stays in the mean; what does not retrieve has no value."""
    material = replace(FULL, contexts=contexts)
    assert undefined(material) == {}
    assert {name for name in JUDGED if "retrieval" in judged_measure(name).needs} == OF_CONTEXT
    found = asyncio.run(judged(material, MEASURES, Nobody()))
    nothing = asyncio.run(judged(replace(material, retrieves=False), MEASURES, Nobody()))
    assert {name: score.value for name, score in found.items()} == dict.fromkeys(WORST_WITHOUT, 0.0)
    assert {(score.reason, score.undefined) for score in nothing.values()} == {(NO_CONTEXT, True)}


def test_declining_without_context_claims_nothing() -> None:
    of_context = {"context_precision", "context_recall", "context_utilisation"}
    measures = [each for each in MEASURES if each.name != "faithfulness_mtrag"]
    said = asyncio.run(judged(replace(FULL, contexts=(), abstained=True), measures, Nobody()))
    assert {name: said[name].value for name in of_context} == dict.fromkeys(of_context, 0.0)
    assert {score.reason for score in said.values() if score.value is None} == {CLAIMS_NOTHING}


def test_which_claims_are_wrong_is_asked_without_context_too() -> None:
    """The ground truth tells it, and no context has them: what is wrong is not noise, and what is right was known."""
    told = Told({Support("answer", "ground_truth"): verdicts(1.0, 0.0, 0.0, 0.0)})
    names, material = ("noise_sensitivity", "self_knowledge"), replace(FULL, contexts=())
    said = {name: score(name, told, material).value for name in names}
    assert said == {"noise_sensitivity": 0.0, "self_knowledge": 0.25}


def test_without_ground_truth() -> None:
    expected = dict.fromkeys(AGAINST_TRUTH, "no ground truth")
    assert undefined(replace(FULL, ground_truth=" ")) == expected
    assert not_applying(replace(CASE, ground_truth=" ")) == expected


def test_without_an_answer_in_the_documents() -> None:
    expected = dict.fromkeys(AGAINST_TRUTH, "no answer in the documents")
    assert undefined(replace(FULL, answerable=False)) == expected
    assert not_applying(replace(CASE, answerable=False)) == expected


def test_without_evidence_or_pages() -> None:
    assert undefined(replace(FULL, quotes=(" ",))) == dict.fromkeys(OF_NUGGETS, "no evidence quotes")
    assert not_applying(replace(CASE, evidence=())) == dict.fromkeys(OF_NUGGETS, "no evidence quotes")
    assert undefined(replace(FULL, gold_pages=())) == {"factuality": "no text of a relevant document"}
    assert not_applying(replace(CASE, qrels={})) == {"factuality": "no relevant document"}


def test_an_abstention_claims_nothing() -> None:
    of_claims = {"faithfulness", "factuality", "noise_sensitivity", "self_knowledge", *OF_CITATIONS}
    assert undefined(replace(FULL, abstained=True)) == dict.fromkeys(of_claims, CLAIMS_NOTHING)
