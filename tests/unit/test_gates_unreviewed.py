"""Gates over questions that nobody has reviewed: which cases decide, and what is said of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from rag_harness.core.types import Case, Query, is_in
from rag_harness.records.row import ExperimentResult
from rag_harness.runs.gates import GateRules, Verdict, judge, parse_gate
from rag_harness.tables.baseline import saved_suite
from tests.unit.rows import make_row
from tests.unit.tables import tables_of

FOUND = ["a.md", "b.md", "c.md", "d.md", "e.md"]
MISSED = ["z.md", *FOUND[1:]]


def case(number: int, **metadata: str) -> Case:
    return Case(Query(f"q{number}", "?"), qrels={"a.md": 1}, metadata=metadata)


def rows(cases: Sequence[Case], missed: Sequence[int] = (), experiment: str = "e3") -> list[ExperimentResult]:
    return [
        make_row(experiment=experiment, query_id=each.query.query_id, ranking=MISSED if n in missed else FOUND)
        for n, each in enumerate(cases)
    ]


def judged(
    text: str,
    cases: Sequence[Case],
    missed: Sequence[int] = (),
    rules: GateRules | None = None,
    selected: Mapping[str, Sequence[str]] | None = None,
) -> Verdict:
    return judge(parse_gate(text, 5), tables_of(rows(cases, missed), cases, selected=selected), rules=rules)


DRAFTS = [case(n, reviewed="no") for n in range(4)]
READ = [case(n, reviewed="yes") for n in range(10, 12)]
HAND_WRITTEN = [case(n) for n in range(20, 23)]
PLACEHOLDER = case(30, reviewed="no", placeholder="yes")


@pytest.mark.parametrize("missed", [(), (0, 1, 2, 3)])
def test_drafts_alone_decide_nothing_and_their_value_is_said(missed: Sequence[int]) -> None:
    verdict = judged("e3: recall@5 >= 0.5 else switch", DRAFTS, missed)
    assert (verdict.state, verdict.value, verdict.n, verdict.unreviewed) == ("not judged", float(not missed), 4, 4)
    assert verdict.reason == ("4 of 4 cases are unreviewed drafts: read the questions of e3, and set reviewed to yes")
    assert not verdict.to_do
    assert f"not judged  e3: recall@5 >= 0.5   {1 - len(missed) / 4:.3f} [" in verdict.line()


def test_one_draft_is_one() -> None:
    verdict = judged("e3: recall@5 >= 0.5", DRAFTS[:1])
    assert verdict.reason == "1 of 1 case is an unreviewed draft: read the questions of e3, and set reviewed to yes"
    assert (verdict.state, verdict.unreviewed) == ("not judged", 1)


def test_reviewed_cases_decide_and_drafts_are_counted() -> None:
    verdict = judged("e3: recall@5 >= 0.9", [*DRAFTS, *READ], missed=(0, 1, 2))
    assert (verdict.state, verdict.value, verdict.n, verdict.unreviewed) == ("passed", 1.0, 2, 4)
    assert verdict.reason == "on the 2 reviewed of 6 cases; with the drafts 0.500"
    failed = judged("e3: recall@5 >= 0.9", [*DRAFTS, *READ], missed=(4,))
    assert (failed.state, failed.value) == ("failed", 0.5)
    most = judged("e3: recall@5 >= 0.9", [*DRAFTS[:3], *READ, *HAND_WRITTEN, case(40)], missed=(0, 1, 2))
    assert most.reason.startswith("on the 6 reviewed of 9 cases")


def test_what_people_wrote_without_a_word_of_review_counts_as_reviewed() -> None:
    cases = [*DRAFTS, *HAND_WRITTEN, *READ]
    for text in ("e3: recall@5 >= 0.9", "e3[reviewed=yes]: recall@5 >= 0.9"):
        assert (judged(text, cases, missed=(0, 1)).state, judged(text, cases).n) == ("passed", 5)
    alone = judged("e3[reviewed=yes]: recall@5 >= 0.9", HAND_WRITTEN)
    assert (alone.state, alone.n, alone.reason) == ("passed", 3, "")


def test_who_asks_for_drafts_gets_them_judged() -> None:
    cases = [*DRAFTS, *READ]
    asked = judged("e3[reviewed=no]: recall@5 >= 0.5", cases, missed=(0, 1, 2))
    assert (asked.state, asked.value, asked.n) == ("failed", 0.25, 4)
    counted = judged("e3: recall@5 >= 0.6", cases, missed=(0, 1, 2), rules=GateRules(counts_drafts=True))
    assert (counted.state, counted.value, counted.n, counted.unreviewed) == ("failed", 0.5, 6, 0)


@pytest.mark.parametrize("text", [f"e3{where}: recall@5 >= 0.9" for where in ("", "[reviewed=no]")])
def test_a_placeholder_is_never_judged(text: str) -> None:
    alone = judged(text, [PLACEHOLDER], rules=GateRules(counts_drafts=True))
    assert (alone.state, alone.value) == ("not judged", 1.0)
    assert alone.reason == "its one case is a placeholder: write a question in its place"
    beside = judged(text, [*DRAFTS, PLACEHOLDER], missed=(4,), rules=GateRules(counts_drafts=True))
    assert (beside.state, beside.value, beside.n) == ("passed", 1.0, 4)


@pytest.mark.parametrize("where", ["placeholder=yes", "reviewed=no,placeholder=yes"])
def test_nor_where_placeholders_are_asked_for(where: str) -> None:
    for counts_drafts in (True, False):
        rules = GateRules(counts_drafts=counts_drafts)
        verdict = judged(f"e3[{where}]: recall@5 >= 0.9", [*DRAFTS, *READ, PLACEHOLDER], rules=rules)
        assert (verdict.state, verdict.n) == ("not judged", 1)


def test_reviewed_ones_are_asked_for_and_there_is_none() -> None:
    verdict = judged("e3[reviewed=yes]: recall@5 >= 0.9", DRAFTS)
    assert (verdict.state, verdict.value, verdict.unreviewed) == ("not judged", None, 4)
    assert verdict.reason.startswith("none of 4 cases is reviewed: read ")
    assert judged("e3[reviewed=yes,query_type=negative]: recall@5 >= 0.9", DRAFTS).state == "failed"


def test_drafts_are_asked_for_and_there_is_none() -> None:
    verdict = judged("e3[reviewed=no]: recall@5 >= 0.9", READ)
    assert (verdict.state, verdict.reason) == ("failed", "no case is in e3[reviewed=no]")


def test_reviewed_cases_without_a_value_leave_the_drafts_undecided() -> None:
    negative = [Case(Query("n1", "?"), "negative", answerable=False, metadata={"reviewed": "yes"})]
    verdict = judged("e3: recall@5 >= 0.9", [*DRAFTS, *negative])
    assert (verdict.state, verdict.value) == ("not judged", 1.0)
    assert "4 of 5 cases are unreviewed drafts, and none of the others has a value (1)" in verdict.reason


def test_a_gate_that_cannot_be_judged_at_all_fails_as_without_drafts() -> None:
    negative = [
        Case(Query(f"n{n}", "?"), "negative", answerable=False, metadata={"reviewed": r})
        for n, r in ((1, "no"), (2, "yes"))
    ]
    verdict = judged("e3: recall@5 >= 0.9", negative)
    assert (verdict.state, verdict.unreviewed) == ("failed", 0)
    assert verdict.reason.startswith("no case has a value of recall@5")


def test_a_selection_that_leaves_out_drafts_alone_is_whole() -> None:
    cases = [*DRAFTS, *READ]
    whole = judged("e3: recall@5 >= 0.9", cases, selected={"e3": ["q0", "q10", "q11"]})
    assert (whole.state, whole.n, whole.unreviewed) == ("passed", 2, 1)
    part = judged("e3: recall@5 >= 0.9", cases, selected={"e3": ["q0", "q10"]})
    assert (part.state, part.reason) == (
        "not judged",
        "of the reviewed: 1 of 2 cases selected; --rag-gate-partial judges these",
    )
    assert part.unreviewed == 0
    none = judged("e3: recall@5 >= 0.9", cases, selected={"e3": ["q0"]})
    assert (none.state, none.reason) == ("not judged", "of the reviewed: none of 2 cases selected")


def test_two_experiments_are_compared_on_the_reviewed_cases() -> None:
    cases = [*DRAFTS, *READ]
    tables = tables_of([*rows(cases, missed=(0, 1, 2, 3)), *rows(cases, experiment="e2")], cases)
    verdict = judge(parse_gate("e3: recall@5 >= e2", 5), tables)
    assert (verdict.state, verdict.value, verdict.threshold, verdict.n) == ("passed", 1.0, 1.0, 2)
    assert verdict.reason == "on the 2 reviewed of 6 cases; no case can move: all rows are equal"
    drafts = tables_of([*rows(DRAFTS, missed=(0,)), *rows(DRAFTS, experiment="e2")], DRAFTS)
    assert judge(parse_gate("e3: recall@5 >= e2", 5), drafts).state == "not judged"


def test_the_baseline_is_held_against_the_reviewed_cases() -> None:
    cases = [*DRAFTS, *READ, *HAND_WRITTEN]
    before, now = (tables_of(rows(cases, missed=missed), cases) for missed in ((0, 4), (0, 1, 2)))
    saved = {"e3": saved_suite(before["e3"])}
    verdict = judge(parse_gate("e3: recall@5 >= baseline", 5), now, baseline=saved)
    assert (verdict.state, verdict.value, verdict.threshold, verdict.n) == ("passed", 1.0, 0.8, 5)


def test_a_quantile_is_said_of_the_reviewed_cases_alone() -> None:
    verdict = judged("e3: p95(recall@5) >= 1", [*DRAFTS, *READ], missed=(0, 1, 2, 3))
    assert (verdict.state, verdict.n, verdict.reason) == ("passed", 2, "on the 2 reviewed of 6 cases")


def test_evidence_is_weighed_on_the_reviewed_cases() -> None:
    verdict = judged("e3: recall@5 >= 0.6 @95%", [*DRAFTS, *READ])
    assert (verdict.state, verdict.n) == ("undecided", 2)
    assert "on the 2 reviewed of 6 cases" in verdict.reason


def test_tables_by_review_add_up() -> None:
    cases = [*DRAFTS, *HAND_WRITTEN]
    table = tables_of(rows(cases), cases)["e3"]
    assert table.slices()["reviewed"] == {"yes", "no"}
    assert table.by("reviewed", ["recall@5"]).keys() == {"yes", "no"}
    assert (table.total_of({"reviewed": "yes"}), table.total_of({"reviewed": "no"})) == (3, 4)
    assert "reviewed" not in tables_of(rows(HAND_WRITTEN), HAND_WRITTEN)["e3"].slices()


@pytest.mark.parametrize(
    ("said", "counts_as"),
    [
        ("no", "no"),
        ("False", "no"),
        ("", "no"),
        ("rejected", "no"),
        ("yes", "yes"),
        ("True", "yes"),
        ("2026-01", "yes"),
    ],
)
def test_what_counts_as_reviewed(said: str, counts_as: str) -> None:
    assert is_in({"reviewed": said}, {"reviewed": counts_as})
    assert is_in({"reviewed": said}, {"reviewed": said})
    assert not is_in({"reviewed": said}, {"reviewed": {"yes": "no", "no": "yes"}[counts_as]})
