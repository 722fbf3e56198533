"""A trial that breaks an expectation and is otherwise right: what the cause is, and where nothing changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.types import Case, Expectation
from rag_harness.diagnosis import failures
from rag_harness.diagnosis.broken_expectations import AnswerState, BrokenFact, cause_of_broken
from rag_harness.diagnosis.failures import REMEDIES, suspects, tables_of
from rag_harness.diagnosis.gold import GoldFacts, QuoteFact
from rag_harness.diagnosis.truncation import CutOff
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
from tests.unit.diagnosis.test_failing import row
from tests.unit.diagnosis.test_planted_faults import rows_of
from tests.unit.rows import make_chunk
from tests.unit.suite_tables import write_run

CHUNKS = chunks_of(PAGES)
RIGHT = CASES[0].ground_truth
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
        ({"language": "de"}, {"llm_answer": RIGHT * 4}, ("Expectation Broken", "form of the answer")),
        ({"starts_with": "Dear"}, {}, ("Expectation Broken", "form of the answer")),
        ({"max_ms": 1}, {}, ("Expectation Broken", "took too long")),
        ({"max_tokens": 1}, {}, ("Expectation Broken", "cost too much")),
        ({"declines": True}, {}, ("Logic Failure", "answered what is not in the documents")),
        ({"min_words": 40}, {"llm_answer": RIGHT[:-1] + ", and"}, ("Logic Failure", "cut short")),
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
