"""Judged measures: what each is not defined for, and its value worked by hand."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import ModelOutputError, SettingsError
from rag_harness.core.registry import resolve
from rag_harness.core.types import Case, Evidence, Query
from rag_harness.data.queries import read_queries
from rag_harness.evaluation.judges.factory import judged
from rag_harness.evaluation.measures import Score, known_measures, measure_named, parts_of
from rag_harness.evaluation.measures.judged import JudgedMeasure, average_precision, supported_share, vital
from rag_harness.evaluation.measures.measure import CompositeMeasure, formula_of
from rag_harness.evaluation.measures.opinion import Claim, JudgeQuestion, Material, Support, Verdict, Verdicts
from tests.unit.evaluation.measures.judged.opinions import FULL, Told, judged_measure, score, verdicts

# What each measure is not defined for, and that case and answer give the same reason.

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


# Context precision and recall: values worked by hand, and a library's average precision as the oracle.

CONTEXT_PROBABILITIES = st.lists(st.floats(0, 1), min_size=1, max_size=12)


def precision(*useful: float | None) -> tuple[float | None, str]:
    said = score("context_precision", Told(useful=useful), replace(FULL, contexts=("chunk",) * len(useful)))
    return said.value, said.reason


@pytest.mark.parametrize(
    ("useful", "expected"),
    [
        ((1.0,), 1.0),
        ((1.0, 1.0, 1.0), 1.0),
        ((0.0, 0.0), 0.0),
        ((0.0, 1.0), 1 / 2),
        ((1.0, 0.0, 1.0), (1 + 2 / 3) / 2),
        ((0.0, 1.0, 1.0, 0.0, 1.0), (1 / 2 + 2 / 3 + 3 / 5) / 3),
        ((0.5, 0.5), 0.5),
        ((0.8, 0.4), (0.8 * 0.8 + 0.6 * 0.4) / 1.2),
    ],
)
def test_precision_is_ragas_formula(useful: tuple[float, ...], expected: float) -> None:
    value, reason = precision(*useful)
    assert value == pytest.approx(expected, abs=1e-12)
    assert reason == ""


@given(st.lists(st.booleans(), min_size=1, max_size=12).filter(any))
def test_of_yes_and_no_it_is_trec_evals_average_precision(useful: list[bool]) -> None:
    relevant = [ir_measures.Qrel("q", str(place), int(is_useful)) for place, is_useful in enumerate(useful)]
    run = [ir_measures.ScoredDoc("q", str(place), float(-place)) for place in range(len(useful))]
    expected = ir_measures.calc_aggregate([ir_measures.AP], relevant, run)[ir_measures.AP]
    assert average_precision([float(is_useful) for is_useful in useful]) == pytest.approx(expected, abs=1e-6)


@given(CONTEXT_PROBABILITIES)
def test_it_is_a_share_and_better_where_the_useful_stand_above(useful: list[float]) -> None:
    best, worst = average_precision(sorted(useful, reverse=True)), average_precision(sorted(useful))
    assert 0 <= worst <= average_precision(useful) + 1e-9
    assert average_precision(useful) <= best + 1e-9 <= 1 + 1e-9


def test_a_chunk_without_a_verdict_leaves_no_score() -> None:
    assert precision(1.0, None, None) == (None, "2 of 3 chunks without a verdict: cut off")
    assert precision(1.0, 2.0) == (None, "1 of 2 chunks without a verdict: 2 is not in [0, 1]")
    assert precision(float("nan")) == (None, "1 of 1 chunks without a verdict: nan is not in [0, 1]")


@pytest.mark.parametrize("useful", [(), (1.0,), (1.0, 1.0, 1.0)])
def test_each_chunk_is_judged_once(useful: tuple[float, ...]) -> None:
    with pytest.raises(ModelOutputError, match=f"{len(useful)} verdicts for 2 chunks"):
        score("context_precision", Told(useful=useful))


def test_an_abstention_does_not_change_what_was_retrieved() -> None:
    away: Material = replace(FULL, abstained=True, answer="")
    assert score("context_precision", Told(useful=(1.0, 0.0)), away).value == 1.0
    assert score("context_recall", Told({Support("ground_truth", "contexts"): verdicts(1, 0)}), away).value == 0.5


# RAGChecker's diagnostics: of yes and no exactly the counts, of probabilities their expected values.

NAMES = ("noise_sensitivity", "self_knowledge")
PAIRS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=10)


def of_answer(name: str, right: Verdicts, found: Verdicts) -> Score:
    return score(name, Told({Support("answer", "ground_truth"): right, Support("answer", "contexts"): found}))


def utilisation(found: Verdicts, said: Verdicts, **changed: bool) -> Score:
    told = Told({Support("ground_truth", "contexts"): found, Support("ground_truth", "answer"): said})
    return score("context_utilisation", told, replace(FULL, **changed))  # type: ignore[arg-type]


def test_the_four_kinds_of_claims() -> None:
    right, found = verdicts(1, 1, 0, 0, 0), verdicts(1, 0, 1, 1, 0)
    assert of_answer("noise_sensitivity", right, found).value == pytest.approx(2 / 5)
    assert of_answer("self_knowledge", right, found).value == pytest.approx(1 / 5)
    assert utilisation(verdicts(1, 1, 1, 0), verdicts(1, 0, 1, 1)).value == pytest.approx(2 / 3)


@given(PAIRS)
def test_of_yes_and_no_they_are_counts(pairs: list[tuple[int, int]]) -> None:
    first, second = (verdicts(*column) for column in zip(*pairs, strict=True))
    assert of_answer("noise_sensitivity", first, second).value == pytest.approx(pairs.count((0, 1)) / len(pairs))
    assert of_answer("self_knowledge", first, second).value == pytest.approx(pairs.count((1, 0)) / len(pairs))
    there = pairs.count((1, 0)) + pairs.count((1, 1))
    expected = pairs.count((1, 1)) / there if there else None
    assert utilisation(first, second).value == pytest.approx(expected or 0.0)


def test_of_probabilities_they_are_expected_values() -> None:
    right, found = (0.3, 0.9), (0.6, 0.2)
    worlds = list(product((0, 1), repeat=4))
    chances = [_chance(world, (*right, *found)) for world in worlds]
    noise = sum(p * ((1 - a) * c + (1 - b) * d) / 2 for p, (a, b, c, d) in zip(chances, worlds, strict=True))
    assert of_answer("noise_sensitivity", verdicts(*right), verdicts(*found)).value == pytest.approx(noise)
    own = sum(p * (a * (1 - c) + b * (1 - d)) / 2 for p, (a, b, c, d) in zip(chances, worlds, strict=True))
    assert of_answer("self_knowledge", verdicts(*right), verdicts(*found)).value == pytest.approx(own)


def _chance(world: tuple[int, ...], chances: tuple[float, ...]) -> float:
    chance = 1.0
    for is_so, of_it in zip(world, chances, strict=True):
        chance *= of_it if is_so else 1 - of_it
    return chance


def test_utilisation_of_nothing_is_0() -> None:
    said = utilisation(verdicts(0, 0), verdicts(1, 1))
    assert (said.value, said.reason, said.undefined) == (0.0, "no claim of the ground truth in the context", False)


def test_an_abstention_uses_nothing_of_its_context() -> None:
    assert utilisation(verdicts(1, 1), verdicts(1, 1), abstained=True).value == 0.0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("other", [verdicts(1), verdicts(1, 1, 1), verdicts(1, 1, texts=["c1", "c0"])])
def test_verdicts_on_other_claims_are_named(name: str, other: Verdicts) -> None:
    expected = rf"other claims: 2 and {len(other.each)}"
    with pytest.raises(ModelOutputError, match=f"ground_truth and contexts were judged on {expected}"):
        of_answer(name, verdicts(1, 0), other)
    with pytest.raises(ModelOutputError, match=f"contexts and answer were judged on {expected}"):
        utilisation(verdicts(1, 0), other)


def test_a_claim_without_a_verdict_leaves_no_score() -> None:
    whole, half, none = verdicts(1, 1), verdicts(1, None), verdicts()
    reason = "1 of 2 claims without a verdict: cut off"
    for name in NAMES:
        assert [of_answer(name, *pair).reason for pair in ((whole, half), (half, whole))] == [reason, reason]
        assert of_answer(name, none, none).reason == "no claim in the answer"
    assert [utilisation(*pair).reason for pair in ((whole, half), (half, whole))] == [reason, reason]
    assert utilisation(none, none).reason == "no claim in the ground truth"


def test_the_detail_has_each_claim_with_both_verdicts() -> None:
    claims = of_answer("noise_sensitivity", verdicts(1, 0), verdicts(0, 1)).detail["claims"]
    assert [(claim["ground_truth"]["value"], claim["contexts"]["value"]) for claim in claims] == [(1, 0), (0, 1)]
    assert [claim["text"] for claim in claims] == ["c0", "c1"]


# The study's composites, and which judged measures a list of names needs.

SHARE, COSINE = st.floats(0, 1), st.floats(-1, 1)


def scores(cp: float | None, f: float | None, ar: float | None) -> dict[str, Score]:
    values = {"context_precision": cp, "faithfulness": f, "factuality": f, "answer_relevancy": ar}
    return {name: Score(value, "" if value is not None else "cut off") for name, value in values.items()}


def composite(name: str) -> CompositeMeasure:
    measure: object = measure_named(name)
    assert isinstance(measure, CompositeMeasure)
    return measure


def value(name: str, parts: Mapping[str, Score]) -> float | None:
    return composite(name).score(parts).value


def test_values_worked_by_hand() -> None:
    parts = scores(0.8, 0.5, 0.625)
    assert value("g_mean", parts) == pytest.approx(0.25 ** (1 / 3))
    assert value("g_mean", scores(1, 1, 1)) == 1.0
    assert value("hri", parts) == pytest.approx(0.3125)
    assert value("hri_gold", parts) == pytest.approx(0.3125)
    assert value("hri_gold", {**parts, "factuality": Score(0.9)}) == pytest.approx(0.0625)


def test_a_negative_relevancy_is_0_in_composites() -> None:
    assert [value(name, scores(0.9, 0.2, -0.4)) for name in ("g_mean", "hri", "hri_gold")] == [0, 0, 0]


@given(SHARE, SHARE, COSINE)
def test_composites_are_shares(cp: float, f: float, ar: float) -> None:
    for name in ("g_mean", "hri", "hri_gold"):
        found = value(name, scores(cp, f, ar))
        assert isinstance(found, float)
        assert 0 <= found <= 1


@given(SHARE, SHARE, SHARE, SHARE)
def test_more_faithful_is_never_riskier_and_never_a_lower_mean(cp: float, ar: float, one: float, two: float) -> None:
    low, high = (scores(cp, f, ar) for f in sorted((one, two)))
    less, more = value("g_mean", low), value("g_mean", high)
    riskier, safer = value("hri", low), value("hri", high)
    assert None not in (less, more, riskier, safer)
    assert less <= more  # type: ignore[operator]
    assert safer <= riskier  # type: ignore[operator]


def test_a_part_that_is_missing_gives_its_reason() -> None:
    found = composite("g_mean").score(scores(0.8, None, 0.5))
    assert (found.value, found.reason, found.undefined) == (None, "faithfulness: cut off", False)
    parts = {**scores(0.8, 0.5, 0.5), "faithfulness": Score(None, "no context", undefined=True)}
    assert composite("hri").score(parts) == Score(None, "faithfulness: no context", undefined=True)


def test_a_composite_does_not_apply_where_a_part_does_not() -> None:
    case = Case(Query("q", "?"), "direct", "", {"a.md": 1})
    assert composite("g_mean").applies(case) == "no ground truth"
    assert composite("hri_gold").applies(case) == composite("hri").applies(case) == ""


def test_a_missing_answer_counts_the_worst() -> None:
    for name in ("hri", "hri_gold"):
        assert (composite(name).better, composite(name).worst) == ("lower", 1.0)
    assert (composite("g_mean").better, composite("g_mean").worst) == ("higher", 0.0)


def test_the_parts_of_a_composite_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def resolved(group: str, name: str) -> Any:
        made.append(name)
        return resolve(group, name)

    monkeypatch.setattr("rag_harness.evaluation.measures.measure.resolve", resolved)
    measure = composite("g_mean")
    answered, unanswered = Case(Query("q1", "?"), ground_truth="30 days"), Case(Query("q2", "?"))
    assert [measure.applies(case) for case in (answered, unanswered)] == ["", "no ground truth"]
    assert made == list(measure.parts)


def test_names_need_their_parts_once() -> None:
    assert [part.name for part in parts_of(["hri", "recall@5", "g_mean", "faithfulness"])] == [
        "faithfulness", "answer_relevancy", "context_precision"
    ]  # fmt: skip
    assert parts_of([]) == []
    with pytest.raises(SettingsError, match="Did you mean 'g_mean'"):
        parts_of(["gmean"])
    with pytest.raises(SettingsError, match="takes none"):
        parts_of(["hri@5"])
