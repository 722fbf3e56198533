"""Citations and claims that earlier contexts support: the formulas, and what is not known."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.types import Case as TypesCase
from rag_harness.core.types import Query
from rag_harness.evaluation.judges.factory import judged
from rag_harness.evaluation.judges.mock import MockJudge
from rag_harness.evaluation.measures import Score, measure_named, parts_of
from rag_harness.evaluation.measures.citations import alce_entailed, alce_needed, entailing
from rag_harness.evaluation.measures.conversations import LATER, MOST_EARLIER, NO_EARLIER, CarriedMaterial, LateMeasure
from rag_harness.evaluation.measures.opinion import (
    CitedClaim,
    Claim,
    JudgeQuestion,
    Material,
    SourceVerdict,
    Verdict,
    Verdicts,
)
from tests.unit.evaluation.measures.judged.opinions import FULL, judged_measure
from tests.unit.evaluation.measures.judged.opinions import Told as OpinionsTold

# Citations claim by claim: the formulas, and TREC's and ALCE's written down once more.

WORDS = {"full": 1.0, "partial": 0.5, "none": 0.0, "?": None}


@dataclass
class ToldCitations(OpinionsTold):
    """An opinion of citations."""

    cited: Sequence[CitedClaim] = ()

    async def citations(self) -> Sequence[CitedClaim]:
        return self.cited


def claim(cites: Sequence[int], *said: str, needs: bool = True, together: float | None = None) -> CitedClaim:
    """Return a claim that cites ``cites``, with what the judge says of source 1, 2, …"""
    sources = [
        SourceVerdict(number, WORDS[word], f"words {number}" if WORDS[word] else "")
        for number, word in enumerate(said, 1)
    ]
    return CitedClaim(Claim("c", 0, 1, tuple(cites)), tuple(sources), needs, together)


def score(name: str, *claims: CitedClaim) -> Score:
    return asyncio.run(judged_measure(name).judge(FULL, ToldCitations(cited=claims)))


PARTIAL, SUPPORTED, UNCITED = claim([1], "partial", "none"), claim([2], "none", "full"), claim([], "full", "none")
ELSEWHERE = claim([2], "full", "none")


def test_the_paper_s_example_partial_full_and_uncited() -> None:
    """RESEARCH: P .75 and R .5."""
    claims = (PARTIAL, SUPPORTED, UNCITED)
    for name in ("citation_support", "citation_support_trec"):
        assert score(name, *claims).value == 0.75
    for name in ("citation_coverage", "citation_coverage_trec"):
        assert score(name, *claims).value == 0.5


def test_each_citation_counts_and_a_source_that_is_not_there_supports_nothing() -> None:
    several = claim([1, 2, 9], "full", "partial")
    assert score("citation_support", several).value == 0.5
    assert score("citation_coverage", several).value == 1.0
    assert score("citation_support", several).detail["claims"][0]["sources"][2] == {
        "source": 9,
        "value": 0.0,
        "support": "none",
        "cited": True,
        "reason": "no such source in the prompt",
    }


def test_what_needs_no_citation_is_not_missed() -> None:
    greeting = claim([], "none", needs=False)
    assert score("citation_coverage", SUPPORTED, greeting).value == 1.0
    assert score("citation_coverage", greeting).value == 1.0


def test_misattributed_is_what_another_source_supports_and_the_cited_one_does_not() -> None:
    assert score("misattributed", ELSEWHERE, SUPPORTED).value == 0.5
    made_up, at_least_partly = claim([1], "none", "none"), claim([1], "partial", "full")
    assert score("misattributed", made_up, at_least_partly).value == 0.0
    assert score("misattributed", claim([1, 2], "none", "full")).value == 0.0
    assert score("misattributed", UNCITED).value == 0.0
    detail = score("misattributed", ELSEWHERE).detail["claims"][0]
    assert detail["reason"] == "another source than the cited one supports it"
    assert detail["sources"][1] == {
        "source": 1,
        "value": 1.0,
        "support": "full",
        "cited": False,
        "quote": "words 1",
    }


@pytest.mark.parametrize("name", ["citation_support", "misattributed", "citation_support_trec"])
def test_an_answer_that_cites_nothing_stays_in_the_mean(name: str) -> None:
    assert score(name, UNCITED).value == 0.0
    assert (score(name).value, score(name).reason, score(name).undefined) == (None, "no claim in the answer", False)


def test_a_source_without_a_verdict_leaves_no_score_where_it_is_read() -> None:
    unread = claim([1], "?", "full")
    assert score("citation_support", SUPPORTED, unread).reason.startswith("1 of 2 sources of claims without a verdict")
    assert not score("citation_support", SUPPORTED, unread).undefined
    assert score("citation_support", claim([2], "?", "full")).value == 1.0
    assert score("citation_support_trec", claim([2, 1], "?", "full")).value == 1.0, "the first citation alone is read"
    assert score("citation_support", claim([2, 1], "?", "full")).value is None
    assert score("misattributed", claim([2], "?", "full")).value is None, "another source may support it"


def test_a_judge_that_does_not_know_the_question_says_so() -> None:
    with pytest.raises(Exception, match="cannot be measured: this judge does not say which source supports a claim"):
        asyncio.run(judged_measure("citation_support").judge(FULL, OpinionsTold()))


Case = Sequence[tuple[Sequence[int], Mapping[int, str]]]
"""Of each claim, the sources that it cites and what is said of each source."""
_SUPPORT = st.lists(st.sampled_from(["full", "partial", "none"]), min_size=3, max_size=3)
_CITED = st.lists(st.integers(1, 3), unique=True, max_size=3)
CASES = st.lists(st.tuples(_CITED, _SUPPORT), min_size=1, max_size=6)


@given(CASES)
def test_trec_s_scores_are_those_of_its_formulas(case: list[tuple[list[int], list[str]]]) -> None:
    claims = [claim(cited, *said) for cited, said in case]
    precision, recall = trec(case)
    assert score("citation_coverage_trec", *claims).value == pytest.approx(recall)
    found = score("citation_support_trec", *claims)
    assert found.value == pytest.approx(precision)


def trec(case: list[tuple[list[int], list[str]]]) -> tuple[float, float]:
    """TREC 2024 RAG, support (arXiv 2504.15205, section 3): counts of labels, of the first citation of a sentence."""
    labels = {"full": 0, "partial": 0, "none": 0}
    uncited = 0
    for cited, said in case:
        if not cited:
            uncited += 1
            continue
        labels[said[cited[0] - 1]] += 1
    weighted = labels["full"] + 0.5 * labels["partial"]
    judged = sum(labels.values())
    return (weighted / judged if judged else 0.0), weighted / (judged + uncited)


_TABLES = st.fixed_dictionaries({pair: st.booleans() for count in (1, 2, 3) for pair in combinations((1, 2, 3), count)})
_OF_ALCE = st.lists(st.tuples(st.lists(st.integers(1, 4), unique=True, max_size=4), _TABLES), min_size=1, max_size=6)


@given(_OF_ALCE)
def test_alce_s_scores_are_those_of_its_script(case: list[tuple[list[int], dict[tuple[int, ...], bool]]]) -> None:
    """Whatever a model of entailment says of each set of passages; passage 4 does not exist."""
    entailed, needed, count = 0, 0, 0
    for cited, table in case:

        def entails(sources: object, table: dict[tuple[int, ...], bool] = table) -> bool:
            return table[tuple(sorted(sources))]  # type: ignore[call-overload]

        entailed += alce_entailed(cited, (1, 2, 3), entails)
        each = alce_needed(cited, (1, 2, 3), entails)
        needed, count = needed + each[0], count + each[1]
    recall, precision = alce(case, 3)
    assert entailed / len(case) == pytest.approx(recall)
    assert (needed / count if count else 0) == pytest.approx(precision)


@given(CASES, st.booleans())
def test_alce_s_measures_are_its_script_s_with_our_verdicts(
    case: list[tuple[list[int], list[str]]], together: bool
) -> None:
    claims = [claim(cited, *said, together=float(together)) for cited, said in case]
    tables = []
    for _, said in case:
        parts = {number for number, word in enumerate(said, 1) if word == "partial"}
        table = {}
        for count in (1, 2, 3):
            for pair in combinations((1, 2, 3), count):
                has_full = any(said[number - 1] == "full" for number in pair)
                add_up = together and "full" not in said and bool(parts) and parts <= set(pair)
                table[pair] = has_full or add_up
        tables.append(table)
    recall, precision = alce([(cited, table) for (cited, _), table in zip(case, tables, strict=True)], 3)
    assert score("citation_coverage_alce", *claims).value == pytest.approx(recall)
    assert score("citation_support_alce", *claims).value == pytest.approx(precision)


def alce(case: Sequence[tuple[Sequence[int], Mapping[tuple[int, ...], bool]]], docs: int) -> tuple[float, float]:
    """ALCE's ``compute_autoais`` of one item, step for step; a table takes the place of its NLI model."""
    entail = entail_prec = total_citations = 0
    for cited, table in case:
        joint_entail = -1
        ref = [number - 1 for number in cited]
        if len(ref) == 0 or any(each >= docs for each in ref):
            joint_entail = 0
        else:
            total_citations += len(ref)
            joint_entail = int(table[tuple(sorted(cited))])
        entail += joint_entail
        if joint_entail and len(ref) > 1:
            for each in ref:
                nli = table[(each + 1,)]
                if nli:
                    entail_prec += 1
                    continue
                excluded = [other for other in ref if other != each]
                nli = table[tuple(sorted(other + 1 for other in excluded))]
                if not nli:
                    entail_prec += 1
        else:
            entail_prec += joint_entail
    return entail / len(case), entail_prec / total_citations if total_citations > 0 else 0.0


def test_two_parts_together_entail_only_where_the_judge_says_that_all_sources_do() -> None:
    parts = ("partial", "partial", "none")
    assert entailing(claim([1, 2], *parts, together=1.0))([1, 2])
    assert not entailing(claim([1, 2], *parts, together=0.0))([1, 2])
    assert not entailing(claim([1, 2], *parts, together=1.0))([1])
    assert score("citation_support_alce", claim([1, 2, 3], *parts, together=1.0)).value == pytest.approx(2 / 3)


# Claims that earlier contexts support: the formula, what is asked, and what is not known.

SHORT = Material("?", "A. B. C. D.", ("now",))
SAID = Score(
    0.5,
    detail={"claims": [{"text": text, "value": value} for text, value in zip("ABCD", (1, 0.6, 0.4, 0), strict=True)]},
)


def measure() -> LateMeasure:
    found: Any = measure_named("carried_faithfulness")
    assert isinstance(found, LateMeasure)
    return found


class Told:
    """A judge that supports the claims as it is told, by their texts."""

    name, model, revision = "told", "told", "1"

    def __init__(self, **support: float | None) -> None:
        self._support = support
        self.asked: list[Material] = []

    def opinion(self, material: Material, asks: Collection[JudgeQuestion]) -> Told:
        self.asked.append(material)
        return self

    async def supported(self, claims: str, source: str) -> Verdicts:
        assert (claims, source) == ("nuggets", "contexts")
        quotes = self.asked[-1].quotes
        return Verdicts(tuple(Verdict(Claim(each), self._support[each], passage=0, reason="why") for each in quotes))


def score_carried(judge: Any, said: Score = SAID, earlier: Any = ((1, ("before",)),), given: Material = SHORT) -> Score:
    asked = measure().later(given, said, earlier)
    return asked if isinstance(asked, Score) else asyncio.run(judged(asked, [measure()], judge))["carried_faithfulness"]


def test_the_claims_that_are_not_supported_now_count_by_their_support_earlier() -> None:
    judge = Told(C=0.5, D=1)
    found = score_carried(judge)
    # C: (1 - .4) · .5, D: (1 - 0) · 1, of four claims. B is more likely supported than not, and is not asked about.
    assert found.value == pytest.approx((0.6 * 0.5 + 1.0) / 4)
    (asked,) = judge.asked
    assert (asked.quotes, asked.contexts) == (("C", "D"), ("before",))
    assert [each["turn"] for each in found.detail["claims"]] == [1, 1]


def test_a_claim_without_a_verdict_leaves_no_score() -> None:
    found = score_carried(Told(C=None, D=1))
    assert (found.value, found.undefined) == (None, False)
    assert "1 of 2 claims without a verdict: why" in found.reason


@pytest.mark.parametrize(
    ("said", "value", "reason", "undefined"),
    [
        (Score(None, "an abstention", undefined=True), None, "faithfulness: an abstention", True),
        (Score(None, "no verdict"), None, "faithfulness: no verdict", False),
        (Score(1.0, detail={"claims": [{"text": "A", "value": 1.0}]}), 0.0, "", False),
    ],
)
def test_where_nothing_has_to_be_asked(said: Score, value: float | None, reason: str, undefined: bool) -> None:
    found = score_carried(Told(), said)
    assert (found.value, found.reason, found.undefined) == (value, reason, undefined)


def test_earlier_rows_that_are_not_known_are_no_zero() -> None:
    assert score_carried(Told(), earlier="turn 1 has no row in this run") == Score(
        None, "turn 1 has no row in this run"
    )
    # All was supported now: then nothing can have been carried over.
    assert score_carried(Told(), Score(1.0, detail={"claims": []}), "turn 1 has no row").value == 0.0


def test_contexts_of_this_turn_and_doubles_are_not_asked_about_again() -> None:
    judge = Told(C=0, D=0)
    score_carried(judge, earlier=[(2, ("now", "two")), (1, ("two", "one", " "))])
    (asked,) = judge.asked
    assert isinstance(asked, CarriedMaterial)
    assert (asked.contexts, asked.turns) == (("two", "one"), (2, 1))
    assert score_carried(Told(), earlier=[(1, ("now",))]).value == 0.0


def test_what_is_too_much_to_be_read_leaves_no_score_unless_all_was_found() -> None:
    long = [(2, ("x" * (MOST_EARLIER - 10),)), (1, ("y" * 100,))]
    found = score_carried(Told(C=1, D=0), earlier=long)
    assert found.value is None
    assert "100 characters of earlier contexts are beyond" in found.reason
    assert score_carried(Told(C=1, D=1), earlier=long).value == pytest.approx(1.6 / 4)


def test_the_first_turn_has_none_and_a_row_alone_does_not_tell() -> None:
    assert measure().applies(TypesCase(Query("q", "?"))) == NO_EARLIER
    alone = asyncio.run(judged(SHORT, [measure()], MockJudge()))["carried_faithfulness"]
    assert (alone.value, alone.reason) == (None, LATER)
    assert [each.name for each in parts_of(["carried_faithfulness"])] == ["faithfulness", "carried_faithfulness"]


def test_the_material_of_other_measures_is_not_touched() -> None:
    given = replace(SHORT, quotes=("a quote",))
    assert measure().later(given, SAID, [(1, ("before",))]) != given
    assert given.quotes == ("a quote",)
