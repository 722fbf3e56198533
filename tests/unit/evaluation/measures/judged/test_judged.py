"""What each measure is not defined for, and that case and answer give the same reason."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.types import Case, Evidence, Query
from rag_harness.data.queries import read_queries
from rag_harness.evaluation.judges.factory import judged
from rag_harness.evaluation.measures import Score, known_measures, measure_named
from rag_harness.evaluation.measures.judged import JudgedMeasure, supported_share, vital
from rag_harness.evaluation.measures.measure import formula_of
from rag_harness.evaluation.measures.opinion import Claim, JudgeQuestion, Material, Support, Verdict, Verdicts
from tests.unit.evaluation.measures.judged.opinions import FULL, Told, judged_measure, score, verdicts

# What each measure is not defined for, and that case and answer give the same reason.

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


# Measures of claims by one source at a time: faithfulness, factuality, context recall, correctness.

SHARES = {
    "faithfulness": Support("answer", "contexts"),
    "factuality": Support("answer", "gold_pages"),
    "context_recall": Support("ground_truth", "contexts"),
}
PROBABILITIES = st.lists(st.floats(0, 1), min_size=1, max_size=8)


def correctness(said: Verdicts, wanted: Verdicts) -> Score:
    asked = {Support("answer", "ground_truth"): said, Support("ground_truth", "answer"): wanted}
    return score("answer_correctness", Told(asked))


@pytest.mark.parametrize(("name", "ask"), SHARES.items())
def test_a_share_is_supported_claims_by_claims(name: str, ask: Support) -> None:
    assert score(name, Told({ask: verdicts(1, 0, 1, 1)})).value == 0.75
    assert score(name, Told({ask: verdicts(0.5, 0.25)})).value == 0.375
    assert score(name, Told({ask: verdicts(1, 0, share=0.9)})).value == 0.9


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (verdicts(), "no claim in the answer"),
        (verdicts(1, None, 0, None), "2 of 4 claims without a verdict: cut off"),
        (verdicts(1, None, share=0.9), "1 of 2 claims without a verdict: cut off"),
        (verdicts(1, 2), "1 of 2 claims without a verdict: 2 is not in [0, 1]"),
        (verdicts(-1.0), "1 of 1 claims without a verdict: -1 is not in [0, 1]"),
        (verdicts(1, float("nan")), "1 of 2 claims without a verdict: nan is not in [0, 1]"),
        (verdicts(1, share=1.5), "share 1.5 is not in [0, 1]"),
        (verdicts(1, share=float("nan")), "share nan is not in [0, 1]"),
    ],
)
def test_a_denominator_never_shrinks(found: Verdicts, reason: str) -> None:
    said = supported_share(found, "answer")
    assert (said.value, said.reason, said.undefined) == (None, reason, False)
    assert len(said.detail["claims"]) == len(found.each)


def test_where_a_claim_stands_is_told_of_those_that_stand_in_the_text() -> None:
    found = [Verdict(Claim("a", 0, 1), 1.0), Verdict(Claim("b", 4, 5), 1.0), Verdict(Claim("in its own words"), 1.0)]
    told = supported_share(Verdicts(tuple(found)), "answer").detail["claims"]
    assert [(claim.get("start"), claim.get("end")) for claim in told] == [(0, 1), (4, 5), (None, None)]
    assert (found[2].claim.start, found[2].claim.end) == (-1, -1)


def test_a_measure_that_cannot_judge_is_none() -> None:
    class Half(JudgedMeasure):
        called = "half"

        def undefined(self, material: Material) -> str:
            return ""

    with pytest.raises(TypeError, match="judge"):
        Half()  # type: ignore[abstract]


def test_five_thousand_claims_are_5000_claims() -> None:
    assert supported_share(verdicts(*[1.0] * 4999, 0.0), "answer").value == pytest.approx(4999 / 5000)


@given(PROBABILITIES, st.data())
def test_more_support_is_never_less_score(values: list[float], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(values) - 1))
    raised = [*values[:place], 1.0, *values[place + 1 :]]
    before, after = (supported_share(verdicts(*said), "answer").value for said in (values, raised))
    assert before is not None
    assert after is not None
    assert 0 <= before <= after + 1e-12 <= 1 + 1e-12


def test_correctness_is_f1_of_both_directions() -> None:
    said = correctness(verdicts(1, 0), verdicts(1, 1, 0, 1))
    assert said.value == pytest.approx(2 * 0.5 * 0.75 / 1.25)
    assert (said.detail["precision"], said.detail["recall"]) == (0.5, 0.75)
    assert [len(said.detail[claims]) for claims in ("claims", "ground_truth")] == [2, 4]
    assert correctness(verdicts(0, 0), verdicts(0)).value == 0.0
    assert correctness(verdicts(1), verdicts(1)).value == 1.0


def test_correctness_needs_both_directions() -> None:
    assert correctness(verdicts(), verdicts(1)).reason == "no claim in the answer"
    assert correctness(verdicts(1), verdicts()).reason == "no claim in the ground truth"
    half = correctness(verdicts(1, None), verdicts(1))
    assert (half.value, half.reason) == (None, "1 of 2 claims without a verdict: cut off")
    assert (half.detail["precision"], half.detail["recall"]) == (None, 1.0)


@given(PROBABILITIES, PROBABILITIES)
def test_f1_lies_between_its_halves(said: list[float], wanted: list[float]) -> None:
    found = correctness(verdicts(*said), verdicts(*wanted))
    halves = sorted((found.detail["precision"], found.detail["recall"]))
    assert found.value is not None
    assert halves[0] - 1e-9 <= found.value <= halves[1] + 1e-9


@pytest.mark.parametrize("changed", [{"abstained": True}, {"answer": ""}])
def test_who_says_nothing_says_nothing_right(changed: dict[str, object]) -> None:
    assert score("answer_correctness", Told(), replace(FULL, **changed)).value == 0.0  # type: ignore[arg-type]


# Nugget recall: TREC's weights, and which of our quotes are vital.

QUERIES = Path(__file__).parents[5] / "data" / "kb" / "queries.jsonl"
VITAL, OKAY = "The price is 5 euros.", "Members may ask again tomorrow."


def recall(texts: list[str], *values: float | None) -> Score:
    return score("nugget_recall", Told({Support("nuggets", "answer"): verdicts(*values, texts=texts)}))


def test_an_okay_nugget_counts_half() -> None:
    nuggets = [VITAL, VITAL, OKAY]
    assert recall(nuggets, 1, 0, 0).value == pytest.approx(1 / 2.5)
    assert recall(nuggets, 1, 1, 0).value == pytest.approx(2 / 2.5)
    assert recall(nuggets, 0, 0, 1).value == pytest.approx(0.5 / 2.5)
    assert recall(nuggets, 0.5, 0.5, 0.5).value == pytest.approx(0.5)
    assert recall([OKAY], 1).value == 1.0
    assert [claim["vital"] for claim in recall(nuggets, 1, 1, 1).detail["claims"]] == [True, True, False]


@given(st.lists(st.tuples(st.sampled_from([VITAL, OKAY]), st.floats(0, 1)), min_size=1, max_size=6))
def test_it_is_a_share_and_all_of_them_are_1(found: list[tuple[str, float]]) -> None:
    texts = [text for text, _ in found]
    value = recall(texts, *(value for _, value in found)).value
    assert value is not None
    assert 0 <= value <= 1
    assert recall(texts, *[1.0] * len(texts)).value == 1.0


def variant(name: str, texts: list[str], *values: float) -> Score:
    return score(name, Told({Support("nuggets", "answer"): verdicts(*values, texts=texts)}))


def test_strict_and_vital_variants() -> None:
    nuggets, said = [VITAL, VITAL, OKAY, OKAY], (1, 0.4, 0.6, 0)
    assert recall(nuggets, *said).value == pytest.approx((1 + 0.4 + 0.3) / 3)
    assert variant("nugget_recall_strict", nuggets, *said).value == 0.5
    assert variant("nugget_recall_vital", nuggets, *said).value == pytest.approx(0.7)
    assert variant("nugget_recall_vital_strict", nuggets, *said).value == 0.5
    for name in ("nugget_recall_vital", "nugget_recall_vital_strict"):
        found = variant(name, [OKAY], 1)
        assert (found.value, found.undefined, found.reason) == (None, True, "no vital nugget")


@pytest.mark.parametrize("name", [f"nugget_recall{of}" for of in ("", "_strict", "_vital", "_vital_strict")])
def test_the_formula_says_which_of_trec_s_scores_it_is(name: str) -> None:
    word = {"": "weighted", "_strict": "strict", "_vital": "vital", "_vital_strict": "strict vital"}
    assert formula_of(measure_named(name)).startswith(f"TREC's {word[name.removeprefix('nugget_recall')]} score: ")


def test_a_nugget_without_a_verdict_leaves_no_score() -> None:
    assert recall([VITAL, OKAY], 1, None).reason == "1 of 2 claims without a verdict: cut off"
    assert recall([]).reason == "no claim in the evidence quotes"


def test_who_says_nothing_has_no_nugget() -> None:
    assert score("nugget_recall", Told(), replace(FULL, abstained=True)).value == 0.0


@pytest.mark.parametrize(
    ("nugget", "ground_truth", "expected"),
    [
        ("| Price | €119 | €179 |", "€189: the bag costs €179 and the length adds €10.", True),
        ("| Price | €119 | €149 |", "€189: the bag costs €179 and the length adds €10.", False),
        ("It is paid as **store credit**.", "A store credit.", True),
        ("It is paid as store credit within a week.", "By bank transfer, and no store is asked.", False),
        ("2. Grind it finer before anything else.", "It needs 2 filters.", False),
        ("2 grams.", "It needs 2 filters.", True),
        ("Open until 22:00.", "At 10:00, or 22 hours.", False),
        ("– | –", "Nothing.", False),
        ("", "Nothing.", False),
    ],
)
def test_vital_is_what_shares_a_figure_or_half_of_its_content_words(
    nugget: str, ground_truth: str, expected: bool
) -> None:
    assert vital(nugget, ground_truth) is expected


def test_of_the_shipped_quotes_most_are_vital_and_no_query_is_without() -> None:
    found = {
        case.query.query_id: [vital(one.quote, case.ground_truth) for one in case.evidence]
        for case in read_queries(QUERIES)
        if case.evidence
    }
    assert Counter(is_vital for quotes in found.values() for is_vital in quotes) == {True: 264, False: 22}
    assert all(any(quotes) for quotes in found.values())
