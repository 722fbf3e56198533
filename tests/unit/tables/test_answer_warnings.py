"""Warnings about answers: wrong ones, doubts, confidence, and where figures come from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from rag_harness.pipelines.endpoint.answer import BY_ID, NO_TEXT, OTHER_TEXT
from rag_harness.records.row import ExperimentResult
from rag_harness.records.scores import Author, ScoreLine, row_digest
from rag_harness.tables.abstention import Abstention, abstention_lines, abstentions
from rag_harness.tables.answer_warnings import (
    _said,
    all_with_wrong,
    count_wrong,
    describe_wrong,
    describe_wrong_alone,
    doubts,
    error_lines,
    stale_reason,
    verdicts_of,
    with_wrong,
    wrongly_declined,
)
from rag_harness.tables.blocks import Origins
from rag_harness.tables.suite_table import SuiteTable
from tests.unit.rows import failed_row, make_row
from tests.unit.suite_tables import table_of, tables_of
from tests.unit.tables.standing_tables import Values, kinds, table

# Wrong answers and wrong declines are two figures, held against a count by hand.

# Wrong answers and wrong declines are two figures, held against a count by hand.

RIGHT, WRONG, DECLINED, UNCHECKED = (1.0, 0.0), (0.0, 0.0), (0.0, 1.0), (None, 0.0)


def answers(*counted: tuple[int, tuple[float | None, float]]) -> SuiteTable:
    pairs = [pair for n, pair in counted for _ in range(n)]
    correct: Values = [pair[0] for pair in pairs]
    declined: Values = [pair[1] for pair in pairs]
    found = table(kinds(any=len(pairs)), correct=correct, false_abstention_rate=declined)
    found.totals.rows = len(pairs)
    return with_wrong(found)


@given(st.lists(st.sampled_from([RIGHT, WRONG, DECLINED, UNCHECKED]), min_size=1, max_size=40))
def test_each_checked_answer_is_right_or_wrong_or_wrongly_declined(pairs: list[tuple[float | None, float]]) -> None:
    found = verdicts_of(made := answers(*((1, pair) for pair in pairs)))
    checked = len(pairs) - pairs.count(UNCHECKED)
    if found is None:
        assert not checked
        return
    assert (found.checked, found.wrong, found.declined) == (checked, pairs.count(WRONG), pairs.count(DECLINED))
    assert found.unchecked == pairs.count(UNCHECKED)
    assert len(wrongly_declined(made)) == found.declined


def test_the_interval_is_that_of_a_share_of_checked_answers() -> None:
    found = verdicts_of(answers((12, RIGHT), (8, WRONG), (20, UNCHECKED)))
    assert found is not None
    assert found.interval == pytest.approx(tuple(binomtest(8, 20).proportion_ci(method="exact")), abs=1e-6)
    assert found.share_said == "40.0 % [19.1, 63.9]"
    assert describe_wrong_alone(found) == "40.0 % [19.1, 63.9] of 20; 0 wrongly declined, 12 correct, 20 not checked"


def test_both_are_said_apart_for_each_experiment() -> None:
    tables = {"e1": answers((12, RIGHT), (8, WRONG)), "e4": answers((9, RIGHT), (1, WRONG), (10, DECLINED))}
    said = "e1 40.0 % [19.1, 63.9] of 20, e4 5.0 % [0.1, 24.9] of 20. Wrongly declined: e1 0, e4 10."
    assert describe_wrong(tables) == said
    assert count_wrong(tables) == "9 wrong, 10 wrongly declined"
    assert count_wrong({"e1": answers((3, RIGHT))}) == "0 wrong"


def test_who_declines_everything_is_seen() -> None:
    assert describe_wrong({"e1": answers((20, DECLINED))}) == "e1 0.0 % [0.0, 16.8] of 20. Wrongly declined: e1 20."


def test_of_many_experiments_the_first_are_named() -> None:
    said = describe_wrong({f"e{n}": answers((3, RIGHT)) for n in range(9)})
    assert "e5 " in said
    assert "e6" not in said
    assert "and 3 more." in said


def test_where_nothing_is_checked_nothing_is_said() -> None:
    tables = all_with_wrong({"e1": table(kinds(any=3)), "e2": answers((3, UNCHECKED))})
    assert (describe_wrong(tables), count_wrong(tables)) == ("", "")
    assert verdicts_of(tables["e1"]) is None


# Errors for people: equal ones share a line with their number.


def of(*messages: str, experiment: str = "e3") -> SuiteTable:
    """Return a table of a trial with each message, and of one that answered."""
    usual: dict[str, Any] = {"experiment": experiment}
    rows = [
        failed_row(query_id=f"q{n}", error={"stage": "ask", "type": "StatusError", "message": each}, **usual)
        for n, each in enumerate(messages)
    ]
    return table_of([*rows, make_row(query_id="right", **usual)])


def test_one_error_names_its_trial() -> None:
    assert error_lines([of("503")]) == (["error e3-q0: ask: StatusError: 503"], 0)


def test_eight_equal_errors_are_one_line_over_all_experiments() -> None:
    found = error_lines([of(*["503"] * 5), of(*["503"] * 3, experiment="e4")])
    assert found == (["8 × the same error, first e3-q0: ask: StatusError: 503"], 0)


def test_errors_that_differ_by_an_id_or_a_time_are_one_line() -> None:
    said = "timed out after {}.2 s (request req_{:032x})"
    found = error_lines([of(*[said.format(n, n) for n in range(9)]), of(said.format(40, 40), experiment="e4")])
    assert found == ([f"10 × the same error, first e3-q0: ask: StatusError: {said.format(0, 0)}"], 0)


def test_others_stand_below_and_the_rest_is_counted() -> None:
    lines, more = error_lines([of("a", "b", "a", "c", "d", "e", "f", "f", "b")])
    assert lines == [
        "2 × the same error, first e3-q0: ask: StatusError: a",
        "2 × the same error, first e3-q1: ask: StatusError: b",
        "error e3-q3: ask: StatusError: c",
        "error e3-q4: ask: StatusError: d",
        "error: ask: StatusError: e",
    ]
    assert more == 2


def test_without_errors_there_is_no_line() -> None:
    assert error_lines([of()]) == ([], 0)


# What confidence is worth, of rows that state one.


def answered(number: int, confidence: float | None, right: bool, **changes: Any) -> ExperimentResult:
    answer = "30 days" if right else "a fortnight"
    return make_row(query_id=f"q{number:03}", confidence=confidence, llm_answer=answer, citations=[], **changes)


def only(rows: list[ExperimentResult]) -> Abstention:
    (found,) = abstentions(tables_of(rows))
    return found


def rows(n: int, wrong: float = 0.4) -> list[ExperimentResult]:
    """Return answers of which the less confident are wrong more often."""
    rng = np.random.default_rng(0)
    sure = rng.random(n)
    return [answered(k, float(sure[k]), bool(rng.random() > 2 * wrong * (1 - sure[k]))) for k in range(n)]


def test_the_curve_and_the_auroc_are_of_the_answers() -> None:
    found = only([answered(1, 0.9, True), answered(2, 0.6, True), answered(3, 0.1, False)])
    assert (found.auroc, found.left_out, found.by_judge) == (1.0, 0, {})
    assert found.curve.by_chance == pytest.approx(1 / 3)
    assert found.curve.aurc == found.curve.best


def test_declining_is_no_answer_and_answering_the_unanswerable_is_wrong() -> None:
    negative = answered(3, 0.8, True, answerable=False, query_type="negative")
    found = only([answered(1, 0.9, True), answered(2, 0.1, False, abstained=True), negative, failed_row(query_id="q4")])
    assert found.curve.risk.tolist() == [0.0, 0.5]


def test_an_answer_that_has_the_truth_in_many_words_is_right() -> None:
    """``token_f1`` of the first is below 0.5, and of the second above it."""
    truth = "You have 30 days after delivery to return it"
    full = "Yes, you do, and since you ask: whoever buys a lamp here " + truth
    other = make_row(query_id="q2", confidence=0.1, llm_answer=truth.replace("30", "31"), ground_truth=truth)
    right = make_row(query_id="q1", confidence=0.9, llm_answer=full, ground_truth=truth)
    assert only([right, other]).stated == ((0.9, 0.0), (0.1, 1.0))


def test_answers_that_nothing_can_check_are_left_out_and_counted() -> None:
    found = only([answered(1, 0.9, True), answered(2, 0.1, False), answered(3, 0.5, True, ground_truth=" ")])
    assert (len(found.curve.risk), found.left_out) == (2, 1)


def test_a_judge_decides_where_the_answer_alone_does_not_tell() -> None:
    told, untold = answered(1, 0.9, True), [answered(n, 0.1 * n, True, ground_truth=" ") for n in (2, 3)]
    scores = [
        ScoreLine("factuality", 1, "e3", row.query_id, row_digest(row), "", Author("j", "m", "1"), value)
        for row, value in zip([told, *untold], (0.0, 0.4, 0.5), strict=True)
    ]
    (found,) = abstentions(tables_of([told, *untold], measures=["factuality"], scores=scores))
    assert [*map(pytest.approx, found.stated)] == [(0.9, 0.0), (0.2, 1.0), (0.3, 0.0)]
    assert next(found.lines()) == "e3: 3 answers with a confidence; 67% right, 2 of them checked by factuality"


def test_without_a_confidence_there_is_no_section() -> None:
    assert abstentions(tables_of([answered(1, None, True)])) == []
    assert abstentions({}) == []
    assert abstention_lines([]) == []


@pytest.mark.parametrize(("right", "why"), [(True, "all answers are right"), (False, "all answers are wrong")])
def test_one_kind_of_answer_has_no_auroc_and_says_so(right: bool, why: str) -> None:
    found = only([answered(k, 1.0, right) for k in range(4)])
    assert found.auroc is None
    assert f"no AUROC: {why}" in found.reasons


def test_one_answer_has_no_threshold() -> None:
    found = only([answered(1, 0.0, True)])
    assert found.promise is None
    assert any(reason.startswith("no threshold: one answer only") for reason in found.reasons)


def test_too_few_answers_are_told_how_many_are_missing() -> None:
    text = " ".join(abstention_lines(abstentions(tables_of([answered(k, 1.0, True) for k in range(60)]))))
    assert "29 more without an error are needed in this half, 59 in all" in " ".join(text.split())


def test_enough_answers_are_promised_something() -> None:
    lines = abstention_lines(abstentions(tables_of(rows(400, wrong=0.03))))
    assert max(map(len, lines)) <= 100
    assert any("at most 5% are wrong, at 95%" in line for line in lines)


def test_json_has_no_nan() -> None:
    for made in ([answered(1, 0.5, True)], rows(60)):
        kept = json.loads(json.dumps(only(made).as_json(), allow_nan=False))
        assert kept["by_judge"] == {}
        assert kept["risk_at"]["1.00"] == kept["risk"]


# What is said of answers whose figures do not show it, and when nothing is.

N = 20
LABELS = kinds(any=N)


def said(*, foreign: Any = (), unknown_pages: Any = (), **totals: Any) -> list[str]:
    one = table(LABELS)
    one.foreign, one.unknown_pages = foreign, unknown_pages
    for name, value in {"rows": N, "retrieves": True, "depth": 3, **totals}.items():
        setattr(one.totals, name, value)
    return [*doubts({"svc": one})]


@pytest.mark.parametrize(("evasive", "errors", "is_said"), [(0, 0, False), (1, 0, False), (2, 0, True), (1, 10, True)])
def test_refusals_that_are_not_counted_are_told_above_one_in_twenty(evasive: int, errors: int, is_said: bool) -> None:
    found = said(evasive=evasive, errors=errors)
    assert [text.startswith(f"svc: {evasive} of {N - errors} answers read like refusals") for text in found] == (
        [True] if is_said else []
    )


@pytest.mark.parametrize(
    ("totals", "is_said"),
    [
        ({"depth": 0}, True),
        ({"depth": 1}, False),
        ({"depth": 0, "retrieves": False}, False),
        ({"depth": 0, "errors": N}, False),
    ],
)
def test_a_search_that_finds_nothing_is_told(totals: dict[str, Any], is_said: bool) -> None:
    assert (said(**totals) == [f"svc: none of {N} answers came with a context"]) is is_said


def test_contexts_without_the_words_of_their_page_are_told() -> None:
    assert said(placed={BY_ID: 8}) == []
    (silent,) = said(placed={BY_ID: 8, NO_TEXT: 1, OTHER_TEXT: 2})
    assert silent.startswith("svc: of 11 contexts 1 without text. Recall ")
    assert said(foreign=(0, 9)) == []
    (others,) = said(foreign=(2, 11))
    assert others.startswith("svc: 2 of 11 contexts with a text that is not in the page that they name. Recall ")


def test_names_that_fit_no_page_are_told_beside_those_of_pages() -> None:
    (found,) = said(unknown_pages=(("doc-1", "doc-2"), ("fees.md",)))
    assert found.startswith("svc: no context names a page of the documents, so recall ")
    assert "It says 'doc-1', 'doc-2'; pages are 'fees.md'." in found


# Where the figures of a run come from, in words; what is not asked now has an age, also where it is a part.

NOW = 1_800_000_000.0
DAY = 86_400.0


def origins(
    ok: list[bool],
    recorded: list[float],
    replayed: list[bool],
    resumed: list[bool],
    computed: Sequence[bool] = (),
    abstained: Sequence[bool] = (),
) -> Origins:
    """Return the origins of rows that all ended now; ``recorded`` in days ago, NaN where nothing was."""
    found = Origins()
    when = NOW - np.array(recorded) * DAY
    more = (np.array(each or [False] * len(ok)) for each in (computed, abstained))
    found.take(np.full(len(ok), NOW), when, np.array(ok), np.array(replayed), np.array(resumed), *more)
    return found


def test_each_row_is_counted_once_as_what_it_is() -> None:
    nan = float("nan")
    found = origins(
        [True, True, True, False], [nan, 3, 3, nan], [False, True, True, False], [False, False, True, False]
    )
    assert (found.asked.n, found.replayed.n, found.resumed.n, found.failed) == (1, 1, 1, 1)
    assert _said("e3", found, NOW) == (
        "1 replayed, recorded 12 Jan 2027 08:00 UTC (3 days old); 1 reused from the run of 15 Jan 2027 08:00 UTC, "
        "which had replayed them, recorded 12 Jan 2027 08:00 UTC (3 days old); 1 asked now; 1 without an answer"
    )


def test_an_answer_of_which_a_part_was_replayed_has_the_age_of_that_part() -> None:
    found = origins([True, True], [400, float("nan")], [False, False], [False, False])
    assert "2 asked now, 1 of them with replayed parts, recorded 11 Dec 2025" in _said("e3", found, NOW)
    assert stale_reason(found, 7 * DAY, NOW) == "the oldest answer is 400 days old"
    assert found.has_recorded


@pytest.mark.parametrize(
    ("days", "said"),
    [
        (3, "1 asked now, with replayed parts of the same time"),
        (3 + 1 / 24, "1 asked now, with replayed parts of the same day, 07:00 UTC"),
        (5, "1 asked now, with replayed parts, recorded 10 Jan 2027 08:00 UTC (5 days old)"),
    ],
)
def test_a_time_is_not_repeated_behind_the_same_time(days: float, said: str) -> None:
    found = origins([True, True], [3, days], [True, False], [False, False])
    assert _said("e3", found, NOW) == f"1 replayed, recorded 12 Jan 2027 08:00 UTC (3 days old); {said}"


@pytest.mark.parametrize(("days", "stale"), [(6.9, False), (7.1, True), (-1, True)])
def test_an_answer_is_stale_that_is_too_old_or_of_the_future(days: float, stale: bool) -> None:
    assert bool(stale_reason(origins([True], [days], [True], [False]), 7 * DAY, NOW)) == stale


def test_what_needed_no_model_was_not_asked_of_one() -> None:
    found = origins([True, True], [float("nan"), 1], [False, True], [False, False], [True, False])
    assert found.asked.n == 0
    assert _said("r1", found, NOW).endswith("; 0 asked now; 1 computed now, without a model")


def test_what_was_declined_without_a_model_is_neither_asked_nor_new() -> None:
    nan, no = float("nan"), [False] * 4
    found = origins([True] * 4, [nan] * 4, no, [False, False, False, True], [True] * 4, [True, True, False, True])
    assert (found.asked.n, found.computed, found.declined, found.resumed.n) == (0, 3, 2, 1)
    assert _said("t1", found, NOW) == (
        "1 reused from the run of 15 Jan 2027 08:00 UTC; 2 declined without a model; 1 computed now, without a model"
    )
