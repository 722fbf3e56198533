"""The rules and their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.types import Case, Expectation
from rag_harness.diagnosis import failures
from rag_harness.diagnosis.broken_expectations import AnswerState, BrokenFact, cause_of_broken
from rag_harness.diagnosis.failures import REMEDIES, TOP_LEVEL, remedy_of, suspects, tables_of
from rag_harness.diagnosis.gold import GoldFacts, QuoteFact
from rag_harness.diagnosis.rules import FailureFacts, RerunResult, diagnose
from rag_harness.diagnosis.symptoms import TrialSigns
from rag_harness.diagnosis.truncation import CutOff
from rag_harness.evaluation.measures.correctness import Rightness
from rag_harness.records.expectations import expectations_of, known_kinds
from rag_harness.records.manifest import read_manifest
from rag_harness.records.row import ExperimentResult
from rag_harness.records.scores import CauseLine
from tests.unit.diagnosis.made_up import (
    CASES,
    DONT_KNOW,
    OLD,
    PAGES,
    Pipeline,
    chunks_of,
    experiment,
    explained,
    explainer,
)
from tests.unit.diagnosis.test_causes import row
from tests.unit.diagnosis.test_planted_faults import rows_of
from tests.unit.rows import make_chunk
from tests.unit.suite_tables import write_run

INGREDIENTS = ("chunk_size", "candidates", "top_k", "rerank_model", "max_output_tokens")
WRONG, RIGHT = Rightness(0.2, False), Rightness(1.0, True)
HERE = QuoteFact("a.md", "It takes 3 days.", True, "in context", 1, 5)
ALSO = QuoteFact("b.md", "Express costs €9.", True, "in context", 2)
PART = QuoteFact("a.md", "It takes 3 days.", True, "without", sent=(200, 1900))
GONE = QuoteFact("a.md", "It takes 3 days.", True, "not found")


def facts(gold: GoldFacts | None = None, **changes: Any) -> FailureFacts:
    usual: dict[str, Any] = {
        "query": "How long?",
        "answer": "Soon.",
        "answerable": True,
        "abstained": False,
        "retrieves": True,
        "right": WRONG,
        "gold": gold or GoldFacts((HERE,)),
    }
    return FailureFacts(**(usual | changes))


def tried(*repaired: str, failed: tuple[str, ...] = ()) -> dict[str, RerunResult]:
    return dict.fromkeys(failed, RerunResult("no", WRONG)) | dict.fromkeys(repaired, RerunResult("yes", RIGHT))


STALE = GoldFacts((HERE,), ("old.md",), (("14", "old.md"),))


@pytest.mark.parametrize(
    ("known", "came", "cause", "detail", "by"),
    [
        (facts(right=RIGHT, category="Hallucination"), {}, "Judge Doubtful", "the answer is right", ""),
        (
            facts(category="Irrelevant", judged={"answer_correctness": 0.9}),
            {},
            "Judge Doubtful",
            "measures contradict each other",
            "",
        ),
        (facts(GoldFacts((GONE,))), tried("+thrice"), "Noise", "right when asked again", "+thrice"),
        (facts(GoldFacts((HERE,), doubt="no word")), {}, "Gold Doubtful", "the evidence lacks the ground truth", ""),
        (
            facts(GoldFacts((HERE,), doubt="no word")),
            tried("+no_context"),
            "Gold Doubtful",
            "right without context, the evidence says otherwise",
            "+no_context",
        ),
        (facts(STALE), {}, "Outdated Info", "says what only an outdated page says", ""),
        (
            facts(GoldFacts((HERE,), ("old.md",))),
            tried("+current_versions"),
            "Outdated Info",
            "right without outdated pages",
            "+current_versions",
        ),
        (facts(STALE), tried(failed=("+current_versions",)), "Logic Failure", "misread", ""),
        (facts(answerable=False, gold=GoldFacts()), {}, "Logic Failure", "answered what is not in the documents", ""),
        (facts(GoldFacts((GONE,)), retrieves=False), {}, "Retrieval Miss", "no retriever", ""),
        (facts(GoldFacts((GONE,))), tried("+gold_context"), "Retrieval Miss", "not found", "+gold_context"),
        (facts(abstained=True), {}, "Logic Failure", "wrong refusal", ""),
        (
            facts(abstained=True),
            tried("+gold_at_both_ends"),
            "Logic Failure",
            "not read where it stood",
            "+gold_at_both_ends",
        ),
        (facts(), tried("+gold_at_both_ends"), "Logic Failure", "not read where it stood", "+gold_at_both_ends"),
        (facts(abstained=True), tried("+no_distractors"), "Logic Failure", "distracted", "+no_distractors"),
        (facts(cut_off=CutOff("it ends")), {}, "Logic Failure", "cut short", ""),
        (
            facts(cut_off=CutOff("it ends")),
            tried("+gold_at_both_ends"),
            "Logic Failure",
            "not read where it stood",
            "+gold_at_both_ends",
        ),
        (
            facts(cut_off=CutOff("limit", True)),
            tried("+gold_at_both_ends"),
            "Logic Failure",
            "cut short",
            "+gold_at_both_ends",
        ),
        (facts(GoldFacts((GONE,)), cut_off=CutOff("limit", True)), {}, "Retrieval Miss", "not found", ""),
        (
            facts(GoldFacts((GONE,)), retrieves=False, tells=False, cut_off=CutOff("limit", True)),
            {},
            "Logic Failure",
            "cut short",
            "",
        ),
        (facts(GoldFacts((PART,))), {}, "Retrieval Miss", "the page came without the passage", ""),
        (
            facts(GoldFacts((PART,), carried=True), cut_off=CutOff("limit", True)),
            {},
            "Retrieval Miss",
            "the page came without the passage",
            "",
        ),
        (
            facts(GoldFacts((GONE,)), retrieves=False, tells=False),
            {},
            "Undetermined",
            "the pipeline does not say what it looked up",
            "",
        ),
        (
            facts(GoldFacts((HERE,), contradicted="3, not 4"), right=RIGHT, category="Hallucination"),
            tried("+twice"),
            "Gold Doubtful",
            "the answer has the figure of the evidence",
            "",
        ),
        (
            facts(others_gold="that of q9"),
            {},
            "Gold Doubtful",
            "the gold is that of another question",
            "",
        ),
        (facts(), tried("+no_distractors"), "Logic Failure", "distracted", "+no_distractors"),
        (facts(), tried("+passages_alone"), "Logic Failure", "not read where it stood", "+passages_alone"),
        (
            facts(cut_off=CutOff("it ends")),
            tried("+passages_alone"),
            "Logic Failure",
            "not read where it stood",
            "+passages_alone",
        ),
        (facts(GoldFacts((HERE, ALSO)), answer="It costs €9."), {}, "Logic Failure", "incomplete multi-hop", ""),
        (facts(), {}, "Logic Failure", "misread", ""),
        # Of a turn, what was changed in the conversation comes before what was changed in the context.
        (
            facts(GoldFacts((GONE,)), standalone="How long do I have?"),
            tried("+gold_context", "+standalone", "+gold_history"),
            "Retrieval Miss",
            "lost the subject",
            "+standalone",
        ),
        (
            facts(GoldFacts((GONE,)), standalone="How long do I have?"),
            tried("+gold_context", "+gold_history", failed=("+standalone",)),
            "Retrieval Miss",
            "lost in history",
            "+gold_history",
        ),
        (facts(), tried("+standalone", "+no_distractors"), "Logic Failure", "lost the subject", "+standalone"),
        (facts(), tried("+gold_history"), "Logic Failure", "lost in history", "+gold_history"),
        (
            facts(GoldFacts((GONE,))),
            tried("+gold_context", failed=("+standalone", "+gold_history")),
            "Retrieval Miss",
            "not found",
            "+gold_context",
        ),
        (facts(GoldFacts(nothing="no gold at all"), right=Rightness(None, False)), {}, "Undetermined", "no gold", ""),
    ],
)
def test_each_rule(known: FailureFacts, came: dict[str, RerunResult], cause: str, detail: str, by: str) -> None:
    found = diagnose(known, came)
    assert (found.cause, found.detail, found.repaired_by) == (cause, detail, by)
    assert found.evidence
    assert remedy_of(cause, detail, ())


def test_the_worst_place_of_several_quotes_is_named_and_counted() -> None:
    cut = QuoteFact("b.md", "Express costs €9.", True, "cut")
    found = diagnose(facts(GoldFacts((GONE, cut, HERE))))
    assert found.detail == "cut by a chunk border"
    where = "b.md came in parts: no chunk holds the passage whole: “Express costs €9.”"
    assert found.evidence == f"2 of 3 passages of evidence missing; {where}"


def test_a_page_that_came_without_the_passage_says_how_much_came() -> None:
    found = diagnose(facts(GoldFacts((PART,))))
    said = "chunks of a.md came without the passage, 200 characters of 1,900: “It takes 3 days.”"
    assert found.evidence == said
    assert "whole" in remedy_of(found.cause, found.detail, ())
    unknown = replace(PART, sent=(200, 0))
    assert "200 characters: “" in diagnose(facts(GoldFacts((unknown,)))).evidence


def test_evidence_that_is_not_read_says_where_it_stood() -> None:
    found = diagnose(facts(GoldFacts((HERE,), given=5), abstained=True), tried("+gold_at_both_ends"))
    assert "at place 5 of 5; with the evidence first and last it is right" in found.evidence
    assert "prompt as sent" in remedy_of(found.cause, found.detail, ())


def test_of_a_context_that_nobody_counted_no_place_is_named() -> None:
    found = diagnose(facts(GoldFacts((HERE,))), tried("+gold_at_both_ends"))
    assert found.evidence == "all that is needed was in the context; with the evidence first and last it is right"


@pytest.mark.parametrize(
    ("fact", "said"),
    [
        (QuoteFact("a.md", "Some.", True, "not in the index"), "a.md is not in the index: “Some.”"),
        (
            QuoteFact("a.md", "Some.", True, "ranked below k", 7),
            "a.md is among the candidates, below those that the model was given (rank 7): “Some.”",
        ),
        (QuoteFact("a.md", "", True, "missing"), "a.md is not in the context; 0 chunks came"),
    ],
)
def test_a_miss_says_where_the_quote_is(fact: QuoteFact, said: str) -> None:
    assert diagnose(facts(GoldFacts((fact,)))).evidence == said


ABSENT = QuoteFact("a.md", "It takes 3 days.", True, "missing")
OTHER_PART = QuoteFact("a.md", "It takes 3 days.", True, "another part")
OLDER = QuoteFact("a.md", "It takes 3 days.", True, "older", version="It takes 5 days.")


@pytest.mark.parametrize(
    ("gold", "signs", "detail"),
    [
        (GoldFacts((ABSENT,)), TrialSigns(), "no context came"),
        (GoldFacts((ABSENT,), given=5), TrialSigns(distinct=5), "not in the context"),
        (GoldFacts((OTHER_PART,), given=5), TrialSigns(distinct=5), "another part of the page came"),
        (GoldFacts((ABSENT,), given=5), TrialSigns(distinct=5, by_words=6), "not in the context"),
        (GoldFacts((ABSENT,), given=5), TrialSigns(distinct=5, by_words=5), "ranked too low"),
        (GoldFacts((ABSENT,), given=3), TrialSigns(distinct=3, by_words=4), "too few chunks"),
        (GoldFacts((ABSENT,), given=3), TrialSigns(distinct=3), "not in the context"),
        (GoldFacts((ABSENT,), given=1), TrialSigns(distinct=1), "too few chunks"),
        (GoldFacts((ABSENT, ALSO), given=3), TrialSigns(distinct=3), "too few chunks"),
        (GoldFacts((ABSENT,), given=4), TrialSigns(distinct=2, by_words=1), "the same chunk several times"),
        (GoldFacts((ABSENT,), given=4), TrialSigns(distinct=4, strange_context="x"), "the context of another question"),
        (GoldFacts((ABSENT,), given=4), TrialSigns(same_context="x"), "the same context for every question"),
        (GoldFacts((OLDER,), given=4), TrialSigns(), "the index has another version of the page"),
        (GoldFacts((replace(GONE, place="lost in reranking"),)), TrialSigns(), "found and not given"),
        (GoldFacts((replace(GONE, place="lost in reranking"),)), TrialSigns(reranks=True), "lost in reranking"),
        (None, TrialSigns(unread="none is drawn from there"), "not read where it stood"),
        (None, TrialSigns(another="q9", unsent="14"), "the answer to another question"),
        (None, TrialSigns(wrong_above="x", unread="y", drawn_from=1), "a wrong page ranked above"),
        (None, TrialSigns(wrong_above="x", another="q9"), "the answer to another question"),
        (GoldFacts((OTHER_PART,), given=1), TrialSigns(border="x", distinct=1), "cut by a chunk border"),
        (GoldFacts((PART,)), TrialSigns(border="x"), "cut by a chunk border"),
        (GoldFacts((GONE,)), TrialSigns(border="x"), "not found"),
        (None, TrialSigns(unsent="14", drawn_from=2), "not from its context"),
        (None, TrialSigns(drawn_from=2), "answers from another passage"),
        (None, TrialSigns(same_answer="x"), "the same answer to every question"),
        (None, TrialSigns(same_answer="x", language="de"), "the same answer to every question, in another language"),
        (GoldFacts((ABSENT,)), TrialSigns(same_answer="x", same_context="y"), "the same context for every question"),
        (GoldFacts((GONE,)), TrialSigns(strange_context="x"), "the context of another question"),
        (GoldFacts((PART,)), TrialSigns(strange_context="x"), "the page came without the passage"),
        (
            GoldFacts((replace(GONE, place="lost in reranking"),)),
            TrialSigns(strange_context="x", reranks=True),
            "lost in reranking",
        ),
        (
            GoldFacts((replace(GONE, place="ranked below k"),)),
            TrialSigns(strange_context="x"),
            "found but ranked below k",
        ),
        (GoldFacts((replace(GONE, place="not in the index"),)), TrialSigns(strange_context="x"), "not in the index"),
        (None, TrialSigns(instead="an error message"), "an error message"),
        (GoldFacts((GONE,)), TrialSigns(language="de"), "answers in another language"),
    ],
)
def test_signs_without_an_index_name_the_cause(gold: GoldFacts | None, signs: TrialSigns, detail: str) -> None:
    found = diagnose(facts(gold, signs=signs))
    assert (found.detail, (found.cause, detail) in REMEDIES) == (detail, True)


def test_no_wrong_page_is_named_where_another_order_does_not_repair_it() -> None:
    tried = {"+gold_at_both_ends": RerunResult("No.", Rightness(0.0, False))}
    assert diagnose(facts(signs=TrialSigns(wrong_above="x")), tried).detail == "misread"


def test_what_was_sent_beside_the_evidence_is_old_where_the_answer_has_its_figure() -> None:
    both = replace(HERE, version="It takes 5 days.")
    assert diagnose(facts(GoldFacts((both,)), answer="5 days.")).cause == "Outdated Info"
    assert diagnose(facts(GoldFacts((both,)), answer="9 days.")).cause == "Logic Failure"


def test_a_refusal_in_another_language_is_a_miss_where_evidence_is_lost() -> None:
    signs = TrialSigns(language="de")
    assert diagnose(facts(GoldFacts((GONE,)), abstained=True, signs=signs)).cause == "Retrieval Miss"
    assert diagnose(facts(abstained=True, signs=signs)).detail == "answers in another language"


@pytest.mark.parametrize("signs", [TrialSigns(language="de"), TrialSigns(unlike=True)])
def test_an_answer_that_words_cannot_judge_fails_where_it_has_none_of_them(signs: TrialSigns) -> None:
    unknown = Rightness(None, False)
    assert not facts(right=unknown).fails_by_gold
    assert facts(right=unknown, signs=signs).fails_by_gold


def test_what_is_left_unsaid_is_counted_and_named() -> None:
    third = QuoteFact("c.md", "Tents are green and heavy.", True, "in context")
    found = diagnose(facts(GoldFacts((HERE, ALSO, third)), answer="It costs €9, and tents are green."))
    assert found.evidence == "it says 2 of 3 parts; unsaid: “It takes 3 days.”"
    found = diagnose(facts(GoldFacts((HERE, ALSO, third)), answer="It costs €9."))
    assert found.evidence == "it says 1 of 3 parts; unsaid: “It takes 3 days.”"
    # A figure of the question says nothing; without one half of the words do.
    asked = facts(GoldFacts((HERE, ALSO, third)), query="Which 3, or 9?", answer="After 3 green days.")
    assert diagnose(asked).evidence == "it says 1 of 3 parts; unsaid: “Express costs €9.”"
    assert diagnose(facts(GoldFacts((HERE, ALSO)), answer="3 days for €9.")).detail == "misread"


@pytest.mark.parametrize(("value", "cause"), [(0.8, "Judge Doubtful"), (0.79, "Logic Failure")])
def test_from_when_on_a_measure_contradicts_the_category(value: float, cause: str) -> None:
    judged = {"answer_correctness": value, "nugget_recall": 0.1}
    found = diagnose(facts(category="Irrelevant", judged=judged))
    assert found.cause == cause
    assert cause == "Logic Failure" or found.evidence == "Irrelevant, yet answer_correctness 0.80"
    assert diagnose(facts(category="Irrelevant", judged=judged, abstained=True)).detail == "wrong refusal"
    assert diagnose(facts(judged=judged)).cause == "Logic Failure"


def test_three_figures_of_outdated_pages_are_named() -> None:
    stale = tuple((str(n), "old.md") for n in range(4))
    found = diagnose(facts(GoldFacts((HERE,), ("old.md",), stale)))
    assert found.evidence == "only there: 0 (old.md), 1 (old.md), 2 (old.md)"


def test_a_quote_that_is_not_needed_is_not_missed() -> None:
    premise = QuoteFact("a.md", "We like lamps.", False, "not found")
    assert diagnose(facts(GoldFacts((HERE, premise)))).cause == "Logic Failure"


def test_a_replayed_answer_is_no_second_answer() -> None:
    assert diagnose(facts(), {"+twice": RerunResult("Soon.", why="replayed")}).cause == "Logic Failure"


def test_every_cause_has_something_to_do() -> None:
    assert {cause for cause, detail in REMEDIES if not detail} == set(TOP_LEVEL)
    assert all(len(remedy_of(*named, given)) <= 90 for named in REMEDIES for given in ((), INGREDIENTS))


@pytest.mark.parametrize(("cause", "detail"), [*REMEDIES])
def test_who_has_no_such_part_is_not_told_to_change_it(cause: str, detail: str) -> None:
    plain = remedy_of(cause, detail, ())
    assert "--rag-" not in plain
    assert ("rerank" in plain) == (detail == "lost in reranking"), "this detail is named only where a reranker is told"


def test_a_refusal_that_only_its_words_tell_is_quoted() -> None:
    answer = "Our course does not cover them."
    assert (
        f"it reads like a refusal: “{answer}”"
        in diagnose(facts(answer=answer, abstained=True, says_so=False), {}).evidence
    )
    assert "it says it does not know" in diagnose(facts(answer=answer, abstained=True), {}).evidence


# A trial that breaks an expectation and is otherwise right: what the cause is, and where nothing changes.

CHUNKS = chunks_of(PAGES)
BROKEN_RIGHT = CASES[0].ground_truth
BESIDE = [
    make_chunk(f"{name}.md#chunk_2", text=f"You may return the {name} within 9 days.") for name in ("tent", "desk")
]
OLD_CHUNK = make_chunk(f"{OLD}#chunk_2", text="You may return the lamp within 14 days of delivery.")

BOTH = [make_chunk("lamp.md#chunk_2", text=CASES[0].evidence[0].quote), OLD_CHUNK]


def expecting(*expect: object, case: Case = CASES[0]) -> Case:
    read, problems = expectations_of(list(expect))
    assert not problems
    return replace(case, expect=read)


def cause_of(
    output: Path, answer: ExperimentResult, *expect: object, case: Case = CASES[0], known: bool = True
) -> CauseLine | None:
    """Explain one row from row and gold alone; ``known``: whether index and pages are known."""
    write_run(output, [answer], [expecting(*expect, case=case)])
    found = explainer(output, experiment(Pipeline(CHUNKS)) if known else None).every()
    assert all(line.remedy and line.evidence for line in found)
    return found[0] if found else None


@pytest.mark.parametrize(
    ("expect", "changes", "cause"),
    [
        ({"retrieves": "lamp.md"}, {"retrieved_chunks": BESIDE}, ("Retrieval Miss", "not found")),
        ({"retrieves": "lam*.md"}, {"retrieved_chunks": BESIDE}, ("Retrieval Miss", "not found")),
        ({"retrieves": "gone.md"}, {}, ("Retrieval Miss", "not in the index")),
        ({"context_contains": "made by hand"}, {}, ("Retrieval Miss", "not found")),
        ({"context_contains": "made by robots"}, {}, ("Gold Doubtful", "no page has what is expected")),
        ({"cites": "lamp.md"}, {"citations": []}, ("Logic Failure", "cites nothing")),
        (
            {"cites": "lamp.md"},
            {"retrieved_chunks": [*BESIDE, make_chunk("lamp.md#chunk_2", text="x")]},
            ("Logic Failure", "cites another source"),
        ),
        ({"cites": "lamp.md"}, {"retrieved_chunks": BESIDE}, ("Retrieval Miss", "not found")),
        ({"cites_all": ["lamp.md", "kettle.md"]}, {}, ("Retrieval Miss", "not found")),
        ({"cited": True}, {"citations": []}, ("Logic Failure", "cites nothing")),
        ({"valid_citations": True}, {"invalid_citations": [7]}, ("Logic Failure", "cites a source that is not there")),
        ({"contains": "you may return"}, {}, ("Logic Failure", "found and not said")),
        ({"contains": "made by hand"}, {}, ("Retrieval Miss", "not found")),
        ({"contains": "Dear customer"}, {}, ("Expectation Broken", "wording")),
        ({"number": 99}, {}, ("Gold Doubtful", "no page has what is expected")),
        ({"number": 32}, {}, ("Retrieval Miss", "not found")),
        ({"not": {"contains": "may be returned"}}, {}, ("Logic Failure", "says what it must not")),
        ({"not": {"cites": "lamp.md"}}, {}, ("Logic Failure", "cites another source")),
        (
            {"not": {"retrieves": OLD}},
            {"retrieved_chunks": [OLD_CHUNK]},
            ("Outdated Info", "an outdated page is in the prompt"),
        ),
        (
            {"not": {"retrieves": "lamp.md"}},
            {},
            ("Expectation Broken", "a source that must not be in the prompt"),
        ),
        (
            {"contains": "31 days"},
            {
                "llm_answer": "The lamp may be returned within 31 or rather 14 working days of delivery.",
                "retrieved_chunks": BOTH,
            },
            ("Outdated Info", "says what only an outdated page says"),
        ),
        ({"equals": "31 days"}, {}, ("Expectation Broken", "form of the answer")),
        ({"max_words": 3}, {}, ("Expectation Broken", "form of the answer")),
        ({"is_json": True}, {}, ("Expectation Broken", "form of the answer")),
        ({"language": "de"}, {"llm_answer": BROKEN_RIGHT * 4}, ("Expectation Broken", "form of the answer")),
        ({"starts_with": "Dear"}, {}, ("Expectation Broken", "form of the answer")),
        ({"max_ms": 1}, {}, ("Expectation Broken", "took too long")),
        ({"max_tokens": 1}, {}, ("Expectation Broken", "cost too much")),
        ({"declines": True}, {}, ("Logic Failure", "answered what is not in the documents")),
        ({"min_words": 40}, {"llm_answer": BROKEN_RIGHT[:-1] + ", and"}, ("Logic Failure", "cut short")),
    ],
)
def test_a_right_answer_that_breaks_an_expectation_has_its_cause(
    tmp_path: Path, expect: object, changes: dict[str, Any], cause: tuple[str, str]
) -> None:
    changes = {"candidates": [], "citations": [1]} | changes
    assert cause_of(tmp_path, row(0, **changes)) is None
    line = cause_of(tmp_path, row(0, **changes), expect)
    assert line is not None
    assert (line.cause, line.detail) == cause
    assert line.evidence.startswith("not kept: ")


def test_without_the_index_what_stands_in_no_source_is_not_in_the_context(tmp_path: Path) -> None:
    line = cause_of(tmp_path, row(0), {"contains": "made by hand"}, known=False)
    assert line is not None
    assert (line.cause, line.detail) == ("Retrieval Miss", "not in the context")
    assert line.evidence.endswith("no source of the prompt has “made by hand”")


@pytest.mark.parametrize(("place", "detail"), [(1, "lost in reranking"), (9, "found but ranked below k")])
def test_candidates_tell_how_near_a_page_came_though_nobody_knows_the_index(
    tmp_path: Path, place: int, detail: str
) -> None:
    names = [f"page{n}.md#1" for n in range(1, 9)]
    names.insert(place - 1, "terms.md#3")
    told = row(0, candidates=[{"chunk_id": each, "score": 0.5} for each in names])
    line = cause_of(tmp_path, told, {"retrieves": "terms.md"}, known=False)
    assert line is not None
    assert (line.cause, line.detail) == ("Retrieval Miss", detail)


def test_gold_that_tells_more_comes_before_expectations(tmp_path: Path) -> None:
    wrong = row(0, "You may return the lamp within 9 days.", retrieved_chunks=BESIDE)
    plain, expected = cause_of(tmp_path, wrong), cause_of(tmp_path, wrong, {"max_words": 1})
    assert plain is not None
    assert plain == expected
    assert plain.cause == "Retrieval Miss"


def test_a_case_without_gold_has_the_cause_of_what_it_expects(tmp_path: Path) -> None:
    bare = Case(CASES[0].query)
    refuses = row(0, DONT_KNOW, abstained=True, ground_truth="")
    for expect, cause, detail in [
        ({"contains": "31 days"}, "Logic Failure", "wrong refusal"),
        ({"contains": "made by hand"}, "Retrieval Miss", "not found"),
        ({"answers": True}, "Undetermined", "no gold"),
    ]:
        line = cause_of(tmp_path, refuses, expect, case=bare)
        assert line is not None
        assert (line.cause, line.detail) == (cause, detail)


def test_a_right_refusal_needs_no_evidence_for_its_words(tmp_path: Path) -> None:
    negative = Case(CASES[0].query, query_type="negative", answerable=False)
    refuses = row(0, DONT_KNOW, abstained=True, ground_truth="", answerable=False)
    line = cause_of(tmp_path, refuses, {"contains": "made by hand"}, case=negative)
    assert line is not None
    assert (line.cause, line.detail) == ("Expectation Broken", "wording")


def test_a_refusal_that_the_pipeline_does_not_report_is_said_to_be_one(tmp_path: Path) -> None:
    negative = Case(CASES[0].query, query_type="negative", answerable=False)
    refuses = row(0, "The documents do not say.", ground_truth="", answerable=False)
    line = cause_of(tmp_path, refuses, {"declines": True}, case=negative)
    assert line is not None
    assert line.detail == "declines in words of its own"


def test_of_several_that_are_broken_the_one_that_explains_most_is_named(tmp_path: Path) -> None:
    line = cause_of(tmp_path, row(0, retrieved_chunks=BESIDE), {"max_words": 3, "must": True}, {"retrieves": "lamp.md"})
    assert line is not None
    assert line.cause == "Retrieval Miss"
    assert line.evidence.startswith("not kept: retrieves “lamp.md”: its prompt had tent.md, desk.md (1 more not kept)")


def test_what_is_kept_or_cannot_be_checked_is_no_failure(tmp_path: Path) -> None:
    assert cause_of(tmp_path, row(0), {"contains": "31 days"}) is None
    assert cause_of(tmp_path, row(0), {"decides": "pass"}) is None


def test_every_broken_trial_is_looked_at_and_not_the_worst_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "WORST", 1)
    rows: Sequence[ExperimentResult] = [row(n) for n in range(6)]
    cases = [expecting({"max_words": 3 if n < 5 else 99}, case=each) for n, each in enumerate(CASES)]
    write_run(tmp_path, rows, cases)
    table = tables_of(tmp_path, read_manifest(tmp_path))["x1"]
    assert sorted(suspects(table)) == ["q0", "q1", "q2", "q3", "q4"]
    assert len(explainer(tmp_path, None).every()) == 5
    assert len(explainer(tmp_path, None, worst=1).every()) == 1


def test_an_answer_that_keeps_to_it_when_asked_again_was_noise(tmp_path: Path) -> None:
    said = iter(["Well. " * 30 + CASES[0].ground_truth])
    usual = Pipeline(CHUNKS)
    made = experiment(Pipeline(CHUNKS, says=lambda text: text))
    rows = [each.model_copy(update={"llm_answer": next(said)}) for each in rows_of(made)[:1]]
    write_run(tmp_path, rows, [expecting({"max_words": 20})])
    (line,) = explained(tmp_path, experiment(usual))
    assert (line.cause, line.repaired_by) == ("Noise", "+twice")
    assert len(usual.calls) == 1


def test_what_is_broken_each_time_costs_three_askings_and_no_more(tmp_path: Path) -> None:
    usual = Pipeline(CHUNKS)
    write_run(tmp_path, rows_of(experiment(Pipeline(CHUNKS)))[:1], [expecting({"max_words": 2})])
    (line,) = explained(tmp_path, experiment(usual))
    assert (line.cause, len(usual.calls)) == ("Expectation Broken", 3)
    assert not line.observational


def test_every_kind_has_a_cause_with_a_remedy_in_both_directions() -> None:
    state = AnswerState(False, False, CutOff(), GoldFacts())
    lost = QuoteFact("a.md", "", True, "not found")
    for kind in [*known_kinds(), "polite"]:
        for negated in (False, True):
            for refused in (False, True):
                demand = Expectation(kind, ["x"], negated=negated)
                facts = (BrokenFact(demand), BrokenFact(demand, lost=lost), BrokenFact(demand, nowhere=True))
                for fact in facts if kind not in ("retrieves", "context_contains") else facts[1:]:
                    found = cause_of_broken([fact], replace(state, refused=refused))
                    assert (found.cause, "") in REMEDIES
                    assert found.detail or found.lost
