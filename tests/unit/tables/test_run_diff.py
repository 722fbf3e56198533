"""The sentences about two runs: what changed, in which direction, how sure that is, and what else differs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from syrupy.assertion import SnapshotAssertion

from rag_harness.tables.comparison import compare
from rag_harness.tables.comparison_lines import compared_lines, comparison_lines
from rag_harness.tables.reader import SavedCase, SavedRun, SavedSuite
from rag_harness.tables.run_diff import RunDiff, run_diff, sentences

DATA = {"queries": "q", "documents": "d"}
HALF = [1.0, 0.0] * 10
NONE, ALL = [0.0] * 20, [1.0] * 20


def suite(values: Mapping[str, Sequence[float]], first: int = 0) -> SavedSuite:
    n = len(next(iter(values.values())))
    return SavedSuite(
        cases={
            f"q{first + at:03}": SavedCase(values={name: each[at] for name, each in values.items()}) for at in range(n)
        }
    )


def run(day: int, suites: dict[str, SavedSuite], **changes: Any) -> SavedRun:
    plain = {
        "date": f"2026-11-{day:02}T10:00:00+00:00",
        "commit": "0123456789abcdef",
        "fingerprint": {"data": DATA, "models": {"rerank_model": "none"}, "settings": {"top_k": 5}},
        "suites": suites,
        "gated": {name: each.measures() for name, each in suites.items()},
    }
    return SavedRun(**(plain | changes))


def e3(day: int, changes: Any = None, **values: Sequence[float]) -> SavedRun:
    named = {name.replace("_at_", "@"): each for name, each in values.items()}
    return run(day, {"e3": suite(named)}, **(changes or {}))


def diff_of(before: SavedRun, now: SavedRun) -> RunDiff:
    return run_diff(compare(now, before))


def said(before: SavedRun, now: SavedRun) -> list[str]:
    """Return the sentences without those that name questions."""
    texts = [sentence.text for sentence in sentences(diff_of(before, now))]
    return [text for text in texts if not re.search(r": \d+ better, \d+ worse: ", text)]


def first(before: SavedRun, now: SavedRun) -> str:
    return said(before, now)[0]


def test_worse_with_its_figures_first() -> None:
    before, now = e3(1, recall_at_5=ALL, mrr_at_10=HALF), e3(2, recall_at_5=HALF, mrr_at_10=HALF)
    assert first(before, now).startswith("Now is worse than before: recall@5 of e3 fell from 1.000 to 0.500 (-0.500, ")
    assert first(before, now).endswith(", p 0.002) over the same 20 cases."), "2 of 2 ** 10 sign flips, one test"
    assert sentences(diff_of(before, now))[0].tone == "bad"
    assert said(before, now)[2] == "No other change is sure: 1 measure is the same in every case."
    assert (
        said(before, now)[3]
        == "A change is sure only if no large difference is rarer than 1 case in 5: 20 cases could miss it."
    )


def test_the_second_sentence_names_the_questions_that_moved() -> None:
    before, now = (
        e3(1, recall_at_5=HALF, correct=[1.0] + [0.0] * 19),
        e3(2, recall_at_5=ALL, correct=[0.0] + [1.0] * 19),
    )
    text = sentences(diff_of(before, now))[1].text
    assert text == "correct of e3: 19 better, 1 worse: q000 (worse), q001, q002, q003, 16 more."
    by_hits = sentences(diff_of(e3(1, recall_at_5=[1.0] * 3), e3(2, recall_at_5=[1.0, 0.0, 1.0])))[1].text
    assert by_hits == "recall@5 of e3: 0 better, 1 worse: q001 (worse)."


def test_what_no_gate_is_on_is_seen_and_not_tested() -> None:
    """A ranking has many measures. Tested together, a p of .333 becomes .750, and none of them was asked for."""
    mild = [0.0, 0.0, 0.0, *HALF[3:]]
    values = {"recall@5": HALF, "mrr@10": HALF, "r_precision": HALF, "token_f1": HALF, "correct": HALF}
    before, now = run(1, {"e3": suite(values)}), run(2, {"e3": suite(dict.fromkeys(values, mild))})
    gated = diff_of(before, now.model_copy(update={"gated": {"e3": ["mrr@10"]}}))
    assert [change.measure for change in gated.unsure] == ["mrr@10"]
    assert {change.measure for change in gated.seen} == set(values) - {"mrr@10"}
    assert gated.tests(gated.unsure[0]) == 1
    none = diff_of(before, now.model_copy(update={"gated": {}}))
    assert {change.measure for change in none.unsure} == {"recall@5", "correct"}
    assert any(text.startswith("Seen, not tested: ") for text in (each.text for each in sentences(none)))
    lines = comparison_lines(none.found)
    assert "not tested" in next(line for line in lines if line.startswith("  r_precision"))
    named = compare(now, before, ["r_precision"])
    assert [change.is_tested for change in named.changes] == [True]


def test_nothing_that_is_tested_changed() -> None:
    before = run(1, {"e3": suite({"recall@5": HALF, "mrr@10": ALL})})
    now = run(2, {"e3": suite({"recall@5": HALF, "mrr@10": HALF})}, gated={"e3": ["recall@5"]})
    assert said(before, now)[0] == (
        "Nothing changed in what is tested: 1 measure has the same value in both runs, in each of 20 cases."
    )


def test_better_is_the_other_way_round() -> None:
    before, now = e3(1, recall_at_5=HALF), e3(2, recall_at_5=ALL)
    assert first(before, now).startswith("Now is better than before: recall@5 of e3 rose from 0.500 to 1.000 (+0.500, ")
    assert sentences(diff_of(before, now))[0].tone == "good"


def test_more_errors_are_worse() -> None:
    text = first(e3(1, error_rate=NONE, recall_at_5=ALL), e3(2, error_rate=ALL, recall_at_5=NONE))
    assert text.startswith("Now is worse than before: error_rate of e3 rose from 0.000 to 1.000 (+1.000, ")


def test_both_directions_are_named() -> None:
    before, now = e3(1, recall_at_5=ALL, token_f1=NONE), e3(2, recall_at_5=NONE, token_f1=ALL)
    text = first(before, now)
    assert text.startswith("Now is worse than before in one way and better in another: recall@5 of e3 fell from 1.000 ")
    assert "; but token_f1 of e3 rose from 0.000 to 1.000" in text
    assert "Worse: recall@5 of e3. Better: token_f1 of e3." in said(before, now)


@pytest.mark.parametrize("measure", ["abstention_rate", "confidence", "a_measure_of_nobody"])
def test_a_measure_without_a_better_side_has_only_changed(measure: str) -> None:
    before, now = e3(1, **{measure: NONE}), e3(2, **{measure: ALL})
    for old, new, way in ((before, now, "rose"), (now, before, "fell")):
        found = diff_of(old, new)
        (change,) = found.found.changes
        assert (change.direction, change.gained, change.lost) == ("changed", (), ())
        text = sentences(found)[0].text
        assert text.startswith(f"Now differs from before, and is neither better nor worse: {measure} of e3 {way} from")


def test_what_is_spent_does_not_decide_which_is_better() -> None:
    many, few = [900.0 + n for n in range(20)], [500.0 + n for n in range(20)]
    before, now = e3(1, tokens=many, recall_at_5=ALL), e3(2, tokens=few, recall_at_5=NONE)
    assert first(before, now).startswith("Now is worse than before: recall@5")
    assert said(before, now)[2].startswith(
        "It spends less than before: tokens of e3 fell from 910 tokens to 510 tokens"
    )
    alone = first(e3(1, tokens=few, recall_at_5=ALL), e3(2, tokens=many, recall_at_5=ALL))
    assert alone.startswith("Now spends more than before: tokens of e3 rose from 510 tokens to 910 tokens (+400 tokens")
    assert alone.endswith("; no change of what the answers are worth is sure.")


def test_few_cases_rule_out_no_large_change_so_that_is_not_no_change() -> None:
    before, now = e3(1, recall_at_5=HALF, mrr_at_10=HALF), e3(2, recall_at_5=[*reversed(HALF)], mrr_at_10=HALF)
    text, _, more, ruled_out = said(before, now)
    assert text == (
        "Undecided: no change is shown, but 20 cases are too few to rule out a change of 0.1 or more in 1 measure."
    )
    assert sentences(diff_of(before, now))[0].tone == "unsure"
    assert re.fullmatch(r"About \d+ more cases like these would show a change of recall@5 of e3 by 0\.1\.", more)
    change = compare(now, before).changes[1]
    assert change.interval
    low, high = re.fullmatch(
        r"Ruled out: a change of recall@5 of e3 below (-[\d.]+) or above (\+[\d.]+) \(95 % interval\)\.", ruled_out
    ).groups()  # type: ignore[union-attr]
    assert (float(low), float(high)) == pytest.approx(tuple(change.interval), abs=0.0005)


def test_the_nearest_to_a_change_says_for_how_many_its_p_is_adjusted() -> None:
    up = [1.0] * 5 + [0.0] * 15
    before, now = e3(1, recall_at_5=NONE, mrr_at_10=NONE), e3(2, recall_at_5=up, mrr_at_10=up)
    nearest = first(before, now)
    assert ". Nearest to a change: recall@5 of e3 rose from 0.000 to 0.250" in nearest
    assert ", p 0.125)" in nearest, "2 of 2 ** 5 sign flips, times 2"
    assert nearest.endswith("; p is adjusted for 2 measures.")


def up(count: int, by: float) -> list[float]:
    """Return 20 values, of which so many rose from 0."""
    return [by] * count + [0.0] * (20 - count)


def test_a_change_is_sure_by_its_p_and_by_its_interval() -> None:
    (sure,) = diff_of(e3(1, recall_at_5=NONE), e3(2, recall_at_5=up(7, 1.0))).answers
    assert sure.p == pytest.approx(2 / 2**7)
    names = "recall_at_5", "mrr_at_10", "token_f1", "hit_at_5"
    four = diff_of(e3(1, **dict.fromkeys(names, NONE)), e3(2, **dict.fromkeys(names, up(7, 1.0))))
    assert not four.answers
    assert {change.p for change in four.unsure} == {4 * 2 / 2**7}, "too high, of four tests"
    assert all(change.alone and change.alone.low > 0 for change in four.unsure), "it would be sure of one alone"
    assert all(change.interval and change.interval.low < 0 for change in four.unsure), "as p, it is of four"
    assert all(change.is_moving and change.confidence == 1 - 0.05 / 4 for change in four.unsure)
    (change,) = diff_of(e3(1, recall_at_5=NONE), e3(2, recall_at_5=up(6, 0.1))).unsure
    assert change.p == pytest.approx(2 / 2**6), "low enough, but:"
    assert change.interval
    assert change.interval.low < 0


def test_equal_where_a_measure_has_values_in_one_run_alone() -> None:
    before, now = e3(1, recall_at_5=HALF, mrr_at_10=HALF), e3(2, mrr_at_10=HALF)
    head = "Only in part comparable: 1 measure has the same value in both runs, in each of 20 cases; recall@5 of e3"
    assert first(before, now) == f"{head} has values only before."
    assert first(now, before) == f"{head} has values only now."


def test_equal_in_every_case() -> None:
    before, now = e3(1, recall_at_5=HALF, mrr_at_10=HALF), e3(2, recall_at_5=HALF, mrr_at_10=HALF)
    assert first(before, now) == "Nothing changed: 2 measures have the same value in both runs, in each of 20 cases."
    assert said(before, now)[1:] == [
        "Different between them: nothing that is known; models, settings, packages and commit are the same."
    ]


def test_the_same_run_twice() -> None:
    one = e3(1, recall_at_5=HALF)
    assert said(one, one) == ["The two runs are the same: both are of 1 Nov 2026 10:00 UTC at commit 0123456789ab."]
    for lines in (comparison_lines(compare(one, one)), compared_lines(one, one)):
        assert lines == ["The two runs are the same: both are of 1 Nov 2026 10:00 UTC at commit 0123456789ab."]


@pytest.mark.parametrize(("n", "few", "p"), [(1, "1 case is", "1"), (5, "5 cases are", "at least 0.062")])
def test_too_few_cases(n: int, few: str, p: str) -> None:
    before, now = e3(1, recall_at_5=NONE[:n]), e3(2, recall_at_5=ALL[:n])
    text = (
        f"Undecided: {few} too few for a verdict: p is {p}, whatever they show. From 6 cases on p can be 0.05 or less."
    )
    assert first(before, now).startswith(f"{text} Seen, but not sure: recall@5 of e3 rose from 0.000 to 1.000 (+1.000")
    assert first(e3(1, recall_at_5=NONE[:6]), e3(2, recall_at_5=ALL[:6])).startswith("Now is better")


@pytest.mark.parametrize("measures", [1, 2, 3, 4, 6, 7, 40])
def test_from_how_many_cases_on_a_change_can_be_sure_is_what_happens(measures: int) -> None:
    """All cases of all measures move the same way: no data have a smaller p. SciPy flips the signs."""
    names = [f"recall@{k}" for k in range(1, measures + 1)]

    def text(n: int) -> str:
        runs = [run(day, {"e3": suite(dict.fromkeys(names, values[:n]))}) for day, values in ((1, NONE), (2, ALL))]
        return first(*runs)

    few = text(4)
    stats = pytest.importorskip("scipy.stats")
    found = re.search(r"p is (?:at least )?([\d.]+), whatever they show\. From (\d+) cases on", few)
    assert found, few
    flips = stats.permutation_test(([1.0] * 4,), np.mean, permutation_type="samples", n_resamples=1000)
    assert float(found[1]) == pytest.approx(min(1.0, flips.pvalue * measures), abs=0.0005)
    fewest = int(found[2])
    assert text(fewest).startswith("Now is better than before")
    assert text(fewest - 1).startswith(f"Undecided: {fewest - 1} cases are too few for a verdict: ")


def refusing(day: int, refuses: bool) -> SavedRun:
    """Return a run over 8 questions, the last of which no page answers. Declining is right there alone."""
    no = float(refuses)
    values = {"expectations": [1 - no] * 7 + [1.0], "token_f1": [0.9 * (1 - no)] * 7 + [0.0]}
    values["abstention_rate"] = [no] * 7 + [1.0]
    cases = {
        f"q{at}": SavedCase(
            values={name: each[at] for name, each in values.items()} | ({"false_abstention_rate": no} if at < 7 else {})
        )
        for at in range(8)
    }
    return run(day, {"e3": SavedSuite(cases=cases)})


def test_a_service_that_declines_everything_is_undecided_not_unchanged() -> None:
    texts = said(refusing(1, False), refusing(2, True))
    assert texts[0].startswith("Undecided: 7 to 8 cases are too few for a verdict on 4 measures. Seen, but not sure: ")
    assert "expectations of e3 fell from 1.000 to 0.125 (-0.875, 98.8 % interval -0.999 to +0.018, p 0.062)" in texts[0]
    assert texts[0].endswith("; and 2 more measures.")
    assert texts[2] == (
        "The 95 % interval of expectations of e3 alone does not contain 0, but adjusted for 4 measures (Holm) it does, "
        "and p is above 0.05. No p is lower with 7 cases that differ."
    )
    ways = "or a gate on expectations alone, which you choose before the next run."
    settled = re.fullmatch(rf"What would settle it: about (\d+) more cases like these, {ways}", texts[3])
    assert settled, texts[3]
    assert not any("Ruled out" in text or "Nothing" in text for text in texts)
    n = 8 + int(settled[1])
    before, now = (
        {name: [each[at % 8] for at in range(n)] for name, each in values.items()}
        for values in (
            {"expectations": ALL[:8], "token_f1": [0.9] * 8, "abstention_rate": NONE[:8], "recall@5": ALL[:8]},
            {"expectations": [*NONE[:7], 1.0], "token_f1": NONE[:8], "abstention_rate": ALL[:8], "recall@5": NONE[:8]},
        )
    )
    assert first(run(1, {"e3": suite(before)}), run(2, {"e3": suite(now)})).startswith("Now is worse than before: exp")


def test_p_and_interval_that_disagree_are_undecided() -> None:
    before = e3(1, token_f1=[0.9, 0.8, 0.7, 0.6, 0.9, 0.8, 0.7, 0.5], expectations=ALL[:8])
    now = e3(2, token_f1=[0.5, 0.4, 0.6, 0.5, 0.7, 0.8, 0.7, 0.4], expectations=ALL[:8])
    texts = said(before, now)
    assert texts[0].startswith("Undecided: 8 cases are too few for a verdict. Seen, but not sure: token_f1 of e3 fell ")
    assert texts[0].endswith(", p 0.031) over the same 8 cases.")
    agree = "A change is sure where both agree."
    assert texts[2] == f"p of token_f1 of e3 is at most 0.05, but its interval contains 0. {agree}"
    assert "gate" not in texts[3], "one measure differs: p is not adjusted"


@pytest.mark.parametrize(("fell", "head"), [(5, "Now spends less than before: tokens"), (6, "Undecided: 9 cases are")])
def test_tokens_that_surely_changed_do_not_hide_answers_that_are_undecided(fell: int, head: str) -> None:
    many, few = [900.0 + n for n in range(9)], [500.0 + n for n in range(9)]
    before = e3(1, tokens=many, token_f1=ALL[:9])
    now = e3(2, tokens=few, token_f1=[0.7] * fell + ALL[fell:9])
    found = diff_of(before, now)
    p = 2 ** (1 - fell)
    assert [(each.measure, each.p) for each in found.unsure] == [("token_f1", p)], "0.031 is a change, 0.062 is none"
    texts = said(before, now)
    assert texts[0].startswith(head)
    assert any(text.startswith("It spends less than before: tokens") for text in texts[1:]) == (fell == 6)
    assert any("token_f1 of e3 fell" in text for text in texts) == (fell == 6)


def test_no_change_is_shown_only_where_a_large_one_is_ruled_out() -> None:
    chance = np.random.default_rng(0)
    old = chance.random(300)
    new = np.clip(old + chance.choice([-0.2, 0.2], 300), 0, 1)
    before, now = e3(1, recall_at_5=old.tolist()), e3(2, recall_at_5=new.tolist())
    low, high = pytest.importorskip("scipy.stats").ttest_rel(new, old).confidence_interval()
    assert -0.1 < low < 0 < high < 0.1
    head = "No change is shown: 1 measure differs over the same 300 cases; "
    assert first(before, now).startswith(f"{head}its 95 % interval contains 0 and rules out a change of 0.1 or more.")
    assert sentences(diff_of(before, now))[0].tone == ""


@pytest.mark.filterwarnings("error")
def test_of_values_without_a_range_so_many_cases_are_asked_for_that_runs_have_a_bound() -> None:
    """Five of 20 values differ, and nothing says how far others could. A guard finds no bound for few cases."""
    before = e3(1, a_measure_of_nobody=[0.5] * 20)
    now = e3(2, a_measure_of_nobody=[0.8, 0.2, 0.8, 0.2, 0.7, *[0.5] * 15])
    texts = said(before, now)
    assert texts[0].startswith(
        "Undecided: no change is shown, but 20 cases are too few to rule out a large change in 1"
    )
    (more,) = (text for text in texts if "more case" in text)
    assert int(more.split()[1]) > 20


def test_answers_that_are_the_same_while_times_differ() -> None:
    before, now = (
        e3(day, recall_at_5=HALF, total_ms=[900.0 + n * (-1) ** (n + day) for n in range(20)]) for day in (1, 2)
    )
    assert first(before, now) == (
        "Nothing changed in the answers: 1 measure has the same value in both runs, in each of 20 cases."
    )


@pytest.mark.parametrize("common", [0, 10])
def test_cases_that_differ_are_a_warning(common: int) -> None:
    before, now = e3(1, recall_at_5=ALL), run(2, {"e3": suite({"recall@5": NONE}, first=20 - common)})
    text, *_, warning = said(before, now)
    assert text.startswith(
        "Now is worse than before: " if common else "Nothing can be compared: no case has a value of"
    )
    assert text.endswith(f"over the same {common} cases." if common else "the same measure in both runs.")
    only = f"Only the {common} that were asked both times are compared."
    assert warning == f"The cases differ: e3 was asked 20 before and 20 now. {only}"


def test_one_side_without_a_judge() -> None:
    judged = {"judges": {"e3": [("embedded", "m", "1")]}}
    before, now = e3(1, judged, recall_at_5=ALL, faithfulness=HALF), e3(2, recall_at_5=NONE)
    assert first(before, now).startswith("Now is worse than before: recall@5")
    assert "e3: only before was measured on faithfulness" in compare(now, before).notes


def test_two_judges_are_a_warning() -> None:
    sides = [{"judges": {"e3": [("embedded", name, "1")]}} for name in "ab"]
    texts = said(e3(1, sides[0], faithfulness=NONE, mrr_at_10=ALL), e3(2, sides[1], faithfulness=ALL, mrr_at_10=ALL))
    assert texts[-1] == (
        "Judged measures of e3 are not compared: before was judged by a (embedded, 1), now by b (embedded, 1)."
    )
    assert texts[0].startswith("Nothing changed: 1 measure has the same value")


def test_what_differs_beside_figures() -> None:
    parts = {"data": DATA, "models": {"rerank_model": "late"}, "settings": {"top_k": 8}}
    before = e3(1, {"packages": {"numpy": "1"}, "pages": {"e3": "aa"}, "code": {"e3": ["1"]}}, recall_at_5=HALF)
    more = {"fingerprint": parts, "packages": {"numpy": "2"}, "commit": "f" * 40, "pages": {"e3": "bb"}}
    now = e3(2, {**more, "code": {"e3": ["2"]}}, recall_at_5=HALF)
    assert said(before, now)[1] == (
        "Different between them: rerank_model (before none, now late), top_k (before 5, now 8), "
        "package numpy (before 1, now 2), commit (before 0123456789ab, now ffffffffffff) and the documents."
    )


def test_code_that_differs_where_nothing_else_does() -> None:
    before, now = (e3(day, {"code": {"e3": [str(day)]}}, recall_at_5=HALF) for day in (1, 2))
    assert "Different between them: code or other settings of e3 (before 1, now 2)." in said(before, now)
    named = now.model_copy(update={"commit": "f" * 40})
    assert "Different between them: commit (before 0123456789ab, now ffffffffffff)." in said(before, named)


def test_of_what_is_asked_in_each_run_nobody_knows_whether_it_is_the_same() -> None:
    before, now = (e3(day, {"code": {"e3": ["same"]}, "asked": ["e3"]}, recall_at_5=HALF) for day in (1, 2))
    found = said(before, now)
    assert found[1].startswith("Different between them: nothing that is known; ")
    warned = "e3 was asked in both runs: whether its code, or the service, is the same is not known."
    assert found[-1] == warned
    replayed = now.model_copy(update={"asked": [], "code": {"e3": ["other"]}})
    assert "Different between them: code or other settings of e3 (before same, now other)." in said(before, replayed)
    assert warned not in said(before, replayed)


def test_the_later_run_called_before_is_a_warning() -> None:
    before, now = e3(9, recall_at_5=ALL), e3(2, recall_at_5=NONE)
    assert said(before, now)[-1] == (
        "The run that is called before is the later one: before is of 9 Nov 2026 10:00 UTC at commit 0123456789ab, "
        "now is of 2 Nov 2026 10:00 UTC at commit 0123456789ab. Name the earlier run first."
    ).replace(" at commit 0123456789ab", "")


def test_several_experiments_are_counted_and_those_without_a_change_are_folded() -> None:
    names = [f"e{n:02}" for n in range(40)]
    before = run(1, {name: suite({"recall@5": ALL, "mrr@10": HALF}) for name in names})
    now = run(2, {name: suite({"recall@5": NONE if name < "e06" else ALL, "mrr@10": HALF}) for name in names})
    texts = said(before, now)
    assert texts[0].startswith("Now is worse than before: recall@5 of e00 fell from 1.000 to 0.000")
    assert texts[2] == (
        "Worse: recall@5 of e00, recall@5 of e01, recall@5 of e02, recall@5 of e03 and measures of 2 more."
    )
    assert "No other change is sure: 74 measures are the same in every case." in texts
    lines = comparison_lines(compare(now, before))
    assert lines[-1].startswith("no sure change in 34 experiments: e06, e07, e08")
    assert sum(line.startswith("e0") for line in lines) == 6, "those that changed have a table each"
    alone = compare(run(2, {"e00": suite({"recall@5": NONE})}), before)
    assert sentences(run_diff(alone))[0].text.startswith("Now is worse")
    assert alone.notes[0].startswith("only before: e01, e02")


LONG, HEBREW = "a_rather_long_name_" * 6 + "of_me", "ניסוי_ראשון"


@pytest.mark.parametrize("width", [80, 120])
def test_the_terminal(width: int, snapshot: SnapshotAssertion) -> None:
    """Names of 120 characters, text from right to left, a measure without a side, one that nobody registered."""
    low, high = [n / 40 for n in range(40)], [0.5 + n / 80 for n in range(40)]
    values = {"recall@5": (high, low), "abstention_rate": (low, high), LONG: (low, high), "token_f1": (low, low)}
    tiny = [*low[:-1], 0.98]
    sides = [{name: each[side] for name, each in values.items()} for side in (0, 1)]
    parts = {"data": DATA, "models": {"rerank_model": HEBREW}, "settings": {"top_k": 5}}
    before = run(1, {LONG: suite(sides[0]), HEBREW: suite({"recall@5": low}), "e1": suite({"hri": low})})
    now = run(
        2, {LONG: suite(sides[1]), HEBREW: suite({"recall@5": tiny}), "e1": suite({"hri": low})}, fingerprint=parts
    )
    printed = comparison_lines(compare(now, before), width), compared_lines(before, now, (), width)
    assert max(len(line) for lines in printed for line in lines) <= width
    assert not any(re.search(r"\b(nan|inf)\b", line, re.IGNORECASE) for lines in printed for line in lines)
    assert "\n".join([*printed[0], "---", *printed[1]]) == snapshot
