"""What the brief says first, which experiments lead, and what gates there are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats

from rag_harness.records.manifest import RunManifest, SuiteRecord
from rag_harness.records.scores import CauseLine
from rag_harness.stats import difference_interval
from rag_harness.tables.answer_warnings import all_with_wrong
from rag_harness.tables.brief import brief_of
from rag_harness.tables.brief_lines import LineWriter, failed_gate_lines, gate_count_lines
from rag_harness.tables.brief_sentences import first_sentences, percent
from rag_harness.tables.gate_states import gates_state
from rag_harness.tables.standings import NOTHING_NAMED, Field, Headline, fields_of
from rag_harness.tables.suite_table import SuiteTable
from rag_harness.tables.wording import listed, short
from tests.unit.tables.standing_tables import kinds, table

# What is said first: who is best, ahead, equal, or not shown to be; and why, where nothing says why.

N = 60
LABELS = kinds(any=N)
RNG = np.random.default_rng(4)
BASE = RNG.uniform(0.2, 0.6, N)


def shifted(by: float) -> list[float]:
    return [float(each) for each in np.clip(BASE + by + RNG.normal(0, 0.08, N), 0, 1)]


def found(evidence: float, f1: float) -> SuiteTable:
    return table(LABELS, evidence_recall=shifted(evidence), token_f1=shifted(f1))


def say(
    causes: list[CauseLine] | None = None,
    data: dict[str, str] | None = None,
    attribute: bool = True,
    **tables: SuiteTable,
) -> dict[str, str]:
    usual: dict[str, Any] = {"file": "", "fingerprints": [], "selected": "all", "total": N}
    suites = {name: SuiteRecord(data=(data or {}).get(name, "queries"), **usual) for name in tables}
    for each in tables.values():
        each.totals.rows = N
    manifest = RunManifest(date="2026-01-01", settings={"attribute": attribute}, suites=suites)
    said: dict[str, str] = {}
    for sentence in first_sentences(brief_of(tables, manifest, [], causes or [])):
        said[sentence.topic] = f"{said.get(sentence.topic, '')} {sentence.text}".strip()
    return said


def test_best_is_surely_ahead_in_both() -> None:
    said = say(e1=found(0, 0), e2=found(0.2, 0.2))
    assert said["best"].startswith("e2 is best. e2 answers best (token_f1 0.")
    assert said["sure"].count("Sure at 95 %: e2 - e1 in ") == 2
    assert said["sure"].endswith("p is corrected for 2 tests (Holm).")


def test_ahead_is_surely_ahead_in_one_and_not_behind_in_the_other() -> None:
    said = say(e1=found(0, 0), e2=found(0.2, 0))
    assert said["best"].startswith("e2 is ahead. e2 finds the most (")
    assert "It is open whether e" in said["best"]
    assert "Not sure: " in said["sure"]


def test_each_may_be_best_at_something_else() -> None:
    said = say(e1=found(0, 0.2), e2=found(0.2, 0))
    assert said["best"].startswith("Each is best at something else. e1 answers best (")
    assert "e2 finds the most (" in said["best"]


def test_no_one_is_shown_to_be_best_but_who_is_worse_is_named() -> None:
    high = [found(0.2, 0.2), found(0.2, 0.2)]
    said = say(e1=found(0, 0), e2=high[0], e3=high[1])
    assert said["best"].startswith("No experiment is shown to be best. It is open whether e")
    assert said["best"].count(" is surely better than e1.") == 2


def test_equal_ones_win_together_and_the_dearer_is_named() -> None:
    best = found(0.2, 0.2)
    twin = table(LABELS, **{name: [float(v) for v in each.values] for name, each in best.columns.items()})
    best.totals.prompt_tokens, twin.totals.prompt_tokens = 1000, 1435
    said = say(e1=found(0, 0), e2=best, e3=twin)["best"]
    assert said.startswith("e2 and e3 are best. e2 and e3 answer best (")
    assert said.endswith("e2 and e3 are equal on every measure and question; take e2, for e3 needs 44 % more tokens.")


@pytest.mark.parametrize(
    ("models", "is_said"),
    [
        (("embedded/extractive", "embedded/extractive"), True),
        (("embedded/extractive", "gpt-5"), False),
        (("gpt-5", "gpt-5"), False),
        (("", ""), False),
    ],
)
def test_equal_answers_of_who_does_not_reason_show_nothing_about_reasoning(
    models: tuple[str, str], is_said: bool
) -> None:
    plain, steps = (table(LABELS, token_f1=[float(each) for each in BASE]) for _ in models)
    plain.totals.prompt_tokens, steps.totals.prompt_tokens = 1000, 1435
    for each, model in zip((plain, steps), models, strict=True):
        each.totals.models[model] = N
    said = say(e3=plain, e4=steps)["best"]
    reason = "What reasoning adds needs a model: embedded/extractive does not reason."
    assert said.endswith(f"e4 needs 44 % more tokens.{' ' + reason if is_said else ''}")
    steps.totals.prompt_tokens = 1000
    assert say(e3=plain, e4=steps)["best"].endswith("e3 and e4 are equal on every measure and question.")


def test_experiments_of_two_data_are_two_sentences() -> None:
    said = say(data={"t1": "book"}, e1=found(0, 0), e2=found(0.2, 0.2), t1=found(0, 0))["best"]
    assert said.startswith("On queries: e2 is best.")
    assert "On book: Only t1 ran here." in said


def test_why_says_when_nobody_has_looked() -> None:
    assert "was not looked into" in say(attribute=False, e1=found(0, 0))["why"]
    assert say(e1=found(0, 0))["why"] == "No answer was found to be wrong."
    assert say(e1=table(LABELS))["why"].startswith("Nothing tells right answers from wrong ones")


@pytest.mark.parametrize("attribute", [False, True])
def test_where_pages_alone_are_known_no_answer_is_called_right(attribute: bool) -> None:
    said = say(attribute=attribute, e1=table(LABELS, **{"recall@5": [1.0] * N}))
    assert "nothing tells right answers from wrong ones" in said["why"]
    assert said["next"] == "Give the questions a ground truth and evidence, or name a judge."
    quoted = say(e1=table(LABELS, evidence_recall=[1.0] * N))
    assert quoted["why"] == "No answer was found to be wrong."


def test_the_main_cause_is_the_most_frequent_finer_one_and_its_remedy_is_next() -> None:
    def line(n: int, cause: str, detail: str, remedy: str) -> CauseLine:
        return CauseLine(experiment="e1", query_id=f"q{n}", cause=cause, detail=detail, remedy=remedy)

    causes = [
        *(
            line(n, "Logic Failure", detail, "a stronger model")
            for n, detail in enumerate(("misread", "cut short", ""))
        ),
        *(line(n, "Retrieval Miss", "not found", "hybrid retrieval") for n in (3, 4)),
    ]
    said = say(causes, e1=table(LABELS, token_f1=shifted(0), correct=[0.0] * 5 + [1.0] * (N - 5)))
    assert said["why"] == "e1: 5 of 60 answers are wrong; 2 of them (40 %): Retrieval Miss, not found."
    assert said["next"] == "Hybrid retrieval."


def test_names_and_shares() -> None:
    assert listed(["a"]) == "a"
    assert listed(["a", "b"]) == "a and b"
    assert listed(list("abcd")) == "a, b, c and d"
    assert listed(list("abcde")) == "a, b, c and 2 more"
    assert len(short("x" * 100)) == 40
    assert (percent(0.0), percent(0.001), percent(0.085), percent(1)) == ("0 %", "under 1 %", "9 %", "100 %")


def test_good_measures_say_nothing_about_what_was_not_looked_into() -> None:
    """Who answers what no page answers may have the best recall and keep all expectations."""
    best = table(LABELS, evidence_recall=[1.0] * N, expectations=[1.0] * N)
    said = say(attribute=False, e1=best)
    assert said["why"].startswith("Why answers are wrong was not looked into:")
    assert said["next"] == "Read the worst answers, or run again with --rag-attribute."
    best.totals.errors = 1
    assert say(attribute=False, e1=best)["next"] == "Read the first error, mend it, and run again."


# Which experiments are best: surely, perhaps, all alike, equal in everything; held against scipy.

LEADS_RNG = np.random.default_rng(3)
LEADS_BASE = LEADS_RNG.uniform(0.2, 0.6, N)


def leads_shifted(by: float, noise: float = 0.1) -> list[float]:
    return [float(each) for each in np.clip(LEADS_BASE + by + LEADS_RNG.normal(0, noise, N), 0, 1)]


def fields(data: dict[str, str] | None = None, **tables: SuiteTable) -> list[Field]:
    records = {
        name: SuiteRecord(data=(data or {}).get(name, "queries"), file="", fingerprints=[], total=N, selected="all")
        for name in tables
    }
    return fields_of(tables, records)


def only(**tables: SuiteTable) -> Field:
    (found,) = fields(None, **tables)
    return found


def test_a_clear_lead_is_sure_and_its_figures_are_those_of_the_values() -> None:
    low, high = leads_shifted(0.0), leads_shifted(0.3)
    found = only(e1=table(LABELS, token_f1=low), e2=table(LABELS, token_f1=high))
    (lead,) = found.leads
    assert (lead.best, lead.is_sure, lead.is_level, lead.more) == (["e2"], True, False, None)
    assert lead.nearest is not None
    assert lead.nearest.found is not None
    gaps = np.subtract(high, low)
    assert lead.nearest.found.difference == pytest.approx(gaps.mean())
    assert lead.nearest.found.interval == difference_interval(gaps, (-1, 1))
    assert lead.nearest.p_t == pytest.approx(scipy.stats.ttest_rel(high, low).pvalue)
    assert found.subject == "e2"


def test_a_lead_that_is_not_sure_of_many_stands_beside_an_interval_that_contains_0() -> None:
    rng = np.random.default_rng(8)
    base = rng.uniform(0.2, 0.6, N)
    others = {f"e{place}": base + rng.normal(0, 0.1, N) for place in range(1, 5)}
    best = base + rng.normal(0.07, 0.1, N)
    tables = {name: table(LABELS, token_f1=found.tolist()) for name, found in others.items()}
    (lead,) = only(**tables, e9=table(LABELS, token_f1=best.tolist())).leads
    assert lead.nearest is not None
    assert lead.nearest.found is not None
    alone = difference_interval(best - others[lead.nearest.second], (-1, 1))
    assert (lead.best, lead.is_sure) == (["e9"], False)
    assert alone.low > 0, "as of the only two"
    assert lead.nearest.found.interval is not None
    assert lead.nearest.found.interval.low < 0, "as one of 10 pairs"
    assert lead.more is not None


def test_a_small_lead_is_not_sure_and_says_how_many_questions_more_would_show_it() -> None:
    low, high = LEADS_BASE.tolist(), np.clip(LEADS_BASE + LEADS_RNG.normal(0.03, 0.2, N), 0, 1).tolist()
    (lead,) = only(e1=table(LABELS, token_f1=low), e2=table(LABELS, token_f1=high)).leads
    assert not lead.is_sure
    assert lead.more is not None
    # So many questions like these show the difference in about four of five runs, by the test that judges here.
    gaps = np.subtract(high, low) * (1 if np.mean(high) > np.mean(low) else -1)
    drawn = LEADS_RNG.choice(gaps, (200, N + lead.more))
    shown = sum(difference_interval(each, (-1, 1)).low > 0 for each in drawn)
    assert 0.7 <= shown / 200 <= 0.9


def test_what_they_find_and_what_they_answer_are_one_family_of_tests() -> None:
    tables = {
        name: table(LABELS, evidence_recall=leads_shifted(by), token_f1=leads_shifted(0.0))
        for name, by in {"e1": 0.0, "e2": 0.0, "e3": 0.3}.items()
    }
    found = only(**tables)
    assert [lead.standing.measure for lead in found.leads] == ["token_f1", "evidence_recall"]
    assert found.tests == 6
    assert [lead.is_sure for lead in found.leads] == [False, True]


def test_experiments_that_are_equal_in_everything_win_together() -> None:
    low, high = leads_shifted(0.0), leads_shifted(0.3)
    found = only(**{name: table(LABELS, token_f1=values) for name, values in (("a", low), ("b", high), ("c", high))})
    assert found.equals == [["b", "c"]]
    assert found.leads[0].best == ["b", "c"]
    assert found.leads[0].is_sure


def test_one_value_more_or_less_is_no_equality() -> None:
    high = leads_shifted(0.3)
    other = [None, *high[1:]]
    assert only(a=table(LABELS, token_f1=high), b=table(LABELS, token_f1=other)).equals == []
    assert only(a=table(LABELS, token_f1=high), b=table(LABELS, token_f1=high, mrr_at_10=high)).equals == []


def test_all_alike_have_no_winner() -> None:
    high = leads_shifted(0.3)
    found = only(a=table(LABELS, token_f1=high), b=table(LABELS, token_f1=high))
    assert found.equals == [["a", "b"]]
    assert found.leads[0].is_level
    assert not found.leads[0].is_sure


def test_times_do_not_make_a_difference() -> None:
    high = leads_shifted(0.3)
    slow, fast = [20.0] * N, [10.0] * N
    tables = [table(LABELS, token_f1=high, total_ms=times) for times in (slow, fast)]
    assert only(a=tables[0], b=tables[1]).equals == [["a", "b"]]


def test_experiments_of_other_data_are_not_compared() -> None:
    high, low = table(LABELS, token_f1=leads_shifted(0.3)), table(LABELS, token_f1=leads_shifted(0.0))
    found = fields({"c": "other"}, a=high, b=low, c=low)
    assert [(field.data, list(field.names), len(field.leads)) for field in found] == [
        ("queries", ["a", "b"], 1),
        ("other", ["c"], 0),
    ]


def test_the_measure_is_that_which_most_have() -> None:
    high, low = leads_shifted(0.3), leads_shifted(0.0)
    tables = {"a": table(LABELS, answer_correctness=high, token_f1=high), "b": table(LABELS, token_f1=low)}
    assert [lead.standing.measure for lead in only(**tables).leads] == ["token_f1"]


def test_a_measure_that_is_better_low_is_led_by_the_lowest() -> None:
    nothing = only(a=table(LABELS), b=table(LABELS))
    assert nothing.leads == []
    assert nothing.subject == "a"


def verdicts(wrong: int, declined: int = 0) -> dict[str, list[float]]:
    right = N - wrong - declined
    return {
        "correct": [0.0] * (wrong + declined) + [1.0] * right,
        "false_abstention_rate": [0.0] * wrong + [1.0] * declined + [0.0] * right,
        "token_f1": [0.5] * N,
        "evidence_recall": [0.5] * N,
    }


def measures_of(headline: Headline, **more: list[float]) -> list[str]:
    tables = all_with_wrong({name: table(LABELS, **verdicts(n), **more) for name, n in {"e1": 30, "e2": 3}.items()})
    records = {name: SuiteRecord(data="queries", file="", fingerprints=[], total=N, selected="all") for name in tables}
    (found,) = fields_of(tables, records, headline)
    assert found.subject == "e2"
    return [lead.standing.measure for lead in found.leads]


def test_wrong_answers_are_spoken_of_first_then_what_the_project_names_then_what_was_found() -> None:
    judged = {"factuality": leads_shifted(0.0), "g_mean": leads_shifted(0.0), "hri": leads_shifted(0.0)}
    assert measures_of(NOTHING_NAMED) == ["wrong", "evidence_recall"]
    assert measures_of(NOTHING_NAMED, **judged) == ["wrong", "factuality", "hri", "evidence_recall"]
    gated = Headline(gated=["error_rate", "g_mean", "ndcg@10", "recall@5"])
    assert measures_of(gated, **judged) == ["wrong", "g_mean", "evidence_recall"]
    named = Headline(named=["token_f1", "nugget_recall"], gated=["g_mean"])
    assert measures_of(named, **judged) == ["wrong", "token_f1", "evidence_recall"], "nugget_recall has no value"


def test_to_decline_everything_is_no_lead() -> None:
    tables = all_with_wrong({"e1": table(LABELS, **verdicts(0, N)), "e2": table(LABELS, **verdicts(10))})
    tables["e1"].totals.rows = tables["e1"].totals.abstained = N
    lead, _ = only(**tables, e3=all_with_wrong({"e3": table(LABELS, **verdicts(40))})["e3"]).leads
    assert (lead.standing.measure, lead.best) == ("wrong", ["e2"])


def test_a_decline_is_no_wrong_answer() -> None:
    tables = all_with_wrong({"e1": table(LABELS, **verdicts(30)), "e4": table(LABELS, **verdicts(3, 40))})
    assert only(**tables).leads[0].best == ["e4"]


# The gates in brief: counts, what failed and by which trial, what nearly failed, what is missing.

GATES_STATE_LABELS = kinds(a=2, b=2)
TABLES = {
    "e1": table(GATES_STATE_LABELS, token_f1=[0.9, 0.1, 0.1, 0.8], error_rate=[0, 0, 1, 0]),
    "e2": table(GATES_STATE_LABELS, token_f1=[0.2, 0.3, 0.1, 0.9]),
}


def gate(text: str, state: str, **fields: Any) -> dict[str, Any]:
    return {"gate": text, "state": state, "value": 0.5, "threshold": 0.4, "interval": [0.4, 0.6], "n": 4, **fields}


@pytest.mark.parametrize(
    ("text", "worst"),
    [
        ("e1: token_f1 >= 0.8", "e1-q001"),
        ("e1[kind=b]: token_f1 >= 0.8", "e1-q002"),
        ("e1: error_rate <= 0.1", "e1-q002"),
        ("e1: token_f1 >= e2", "e1-q001"),
        ("e2: token_f1 >= e1", "e2-q000"),
        ("e1: faithfulness >= 0.8", ""),
        ("e9: token_f1 >= 0.8", ""),
    ],
)
def test_a_failed_gate_names_the_trial_that_counts_most(text: str, worst: str) -> None:
    (failed,) = gates_state([gate(text, "failed")], TABLES, [], 10).failed
    assert failed.worst == worst


def test_of_trials_that_are_as_bad_the_first_with_a_cause_is_named() -> None:
    causes = [CauseLine(experiment=name, query_id="q002", cause="Logic Failure") for name in ("e2", "e1")]
    (failed,) = gates_state([gate("e1: token_f1 >= 0.8", "failed")], TABLES, causes, 10).failed
    assert failed.worst == "e1-q002"


@pytest.mark.parametrize(
    ("value", "threshold", "shown"),
    [(0.5, 0.4, "1 case lost to a crash, so it cannot pass"), (0.3, 0.4, "worst: e1-q001")],
)
def test_what_failed_a_gate_is_shown_below_it(value: float, threshold: float, shown: str) -> None:
    """Its reason where the value alone would have passed, else its worst trial, whatever else is remarked on."""
    reason = "1 case lost to a crash, so it cannot pass"
    said = gate(f"e1: token_f1 >= {threshold}", "failed", value=value, threshold=threshold, reason=reason)
    lines = [line.text.strip() for line in failed_gate_lines(gates_state([said], TABLES, [], 10), LineWriter(80))]
    assert lines[1:] == [shown]


def test_the_closest_is_nearest_in_widths_of_its_interval() -> None:
    far = gate("e1: token_f1 >= 0.4", "passed", value=0.5, interval=[0.49, 0.51])
    near = gate("e2: token_f1 >= 0.2", "passed", value=0.5, threshold=0.2, interval=[0.1, 0.9])
    failed = gate("e2: token_f1 >= 0.5", "failed", value=0.5, threshold=0.5)
    found = gates_state([far, near, failed], TABLES, [], 10)
    assert found.closest is not None
    assert (found.closest.condition, found.closest.figures) == ("e2: token_f1 >= 0.2", "0.500 [0.10, 0.90]")
    assert found.verdict == "FAIL"
    assert found.counts == {"passed": 2, "failed": 1}


@pytest.mark.parametrize("interval", [None, [0.5, 0.5], [None, 0.6]])
def test_a_gate_without_a_whole_interval_is_not_the_closest(interval: Any) -> None:
    found = gates_state([gate("e1: token_f1 >= 0.4", "passed", interval=interval)], TABLES, [], 10)
    assert found.closest is None
    assert found.verdict == "PASS"


def test_gates_that_were_not_judged_name_what_they_need() -> None:
    nothing = {"value": None, "threshold": None, "interval": None}
    gates = [
        gate("e1: token_f1 >= e3", "not judged", **nothing),
        gate("e4: token_f1 >= baseline", "not judged", **nothing),
        gate("of another version", "not judged", **nothing),
    ]
    found = gates_state(gates, TABLES, [], 10)
    assert found.needed == ["e3", "e4"]
    assert (found.verdict, found.total) == ("", 3)


NOTHING = {"value": None, "threshold": None, "interval": None}


@pytest.mark.parametrize(
    ("gates", "line"),
    [
        (["e9: mrr@10 >= 0.4"], "none judged: the only one is on e9, which did not run"),
        (["e9: mrr@10 >= e8", "e7: mrr@10 >= 0.4"], "none judged: all 2 are on e7, e8 and e9, which did not run"),
        (["e9: mrr@10 >= e1"], "0 passed, 0 failed, 1 not judged (e9 did not run)"),
        (["e9: mrr@10 >= 0.4", "e1: mrr@10 >= 0.4"], "0 passed, 0 failed, 2 not judged (e9 did not run)"),
    ],
)
def test_gates_of_which_none_is_on_what_ran_are_not_counted_by_verdict(gates: list[str], line: str) -> None:
    said = [gate(text, "not judged", **NOTHING) for text in gates]
    assert counts(said) == [f"gates    {line}"]
    strict = gates_state(said, TABLES, [], 10, {"not judged": len(said)})
    (shown, *_) = gate_count_lines(strict, LineWriter(120), "")
    assert shown.text.startswith("gates    FAIL   0 passed, 0 failed")


def test_gates_that_failed_as_expected_are_named_and_many_are_cut() -> None:
    known = [gate(f"e{n}: token_f1 >= 0.9", "xfailed") for n in range(5)]
    assert counts(known[:1])[-1] == "         failed as expected: e0: token_f1 >= 0.9"
    assert counts(known[:2])[-1] == "         failed as expected: e0: token_f1 >= 0.9; e1: token_f1 >= 0.9"
    assert counts(known)[-1] == "         failed as expected: e0: token_f1 >= 0.9; e1: token_f1 >= 0.9; and 3 more"


def counts(gates: list[dict[str, Any]]) -> list[str]:
    return [line.text for line in gate_count_lines(gates_state(gates, TABLES, [], 10), LineWriter(120), "")]


def test_what_this_run_would_be_compared_with_is_named_first() -> None:
    nothing = {"value": None, "threshold": None, "interval": None}
    gates = [
        gate(said, "not judged", **nothing) for said in ("a1: token_f1 >= 0.4", "e1: token_f1 >= e4", "b1: mrr > a1")
    ]
    assert gates_state(gates, TABLES, [], 10).needed == ["e4", "a1", "b1"]


def test_undecided_gates_are_neither_passed_nor_failed() -> None:
    found = gates_state([gate("e1: token_f1 >= 0.4 @95%", "undecided")], TABLES, [], 10)
    assert (found.verdict, len(found.undecided), len(found.failed)) == ("UNDECIDED", 1, 0)
