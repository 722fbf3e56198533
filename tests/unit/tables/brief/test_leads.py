"""Which experiments are best: surely, perhaps, all alike, equal in everything; held against scipy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from rag_harness.records.manifest import SuiteRecord
from rag_harness.stats import difference_interval
from rag_harness.tables.answer_warnings import all_with_wrong
from rag_harness.tables.standings import NOTHING_NAMED, Field, Headline, fields_of
from rag_harness.tables.suite_table import SuiteTable
from tests.unit.tables.standing_tables import kinds, table

N = 60
LABELS = kinds(any=N)
RNG = np.random.default_rng(3)
BASE = RNG.uniform(0.2, 0.6, N)


def shifted(by: float, noise: float = 0.1) -> list[float]:
    return [float(each) for each in np.clip(BASE + by + RNG.normal(0, noise, N), 0, 1)]


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
    low, high = shifted(0.0), shifted(0.3)
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
    low, high = BASE.tolist(), np.clip(BASE + RNG.normal(0.03, 0.2, N), 0, 1).tolist()
    (lead,) = only(e1=table(LABELS, token_f1=low), e2=table(LABELS, token_f1=high)).leads
    assert not lead.is_sure
    assert lead.more is not None
    # So many questions like these show the difference in about four of five runs, by the test that judges here.
    gaps = np.subtract(high, low) * (1 if np.mean(high) > np.mean(low) else -1)
    drawn = RNG.choice(gaps, (200, N + lead.more))
    shown = sum(difference_interval(each, (-1, 1)).low > 0 for each in drawn)
    assert 0.7 <= shown / 200 <= 0.9


def test_what_they_find_and_what_they_answer_are_one_family_of_tests() -> None:
    tables = {
        name: table(LABELS, evidence_recall=shifted(by), token_f1=shifted(0.0))
        for name, by in {"e1": 0.0, "e2": 0.0, "e3": 0.3}.items()
    }
    found = only(**tables)
    assert [lead.standing.measure for lead in found.leads] == ["token_f1", "evidence_recall"]
    assert found.tests == 6
    assert [lead.is_sure for lead in found.leads] == [False, True]


def test_experiments_that_are_equal_in_everything_win_together() -> None:
    low, high = shifted(0.0), shifted(0.3)
    found = only(**{name: table(LABELS, token_f1=values) for name, values in (("a", low), ("b", high), ("c", high))})
    assert found.equals == [["b", "c"]]
    assert found.leads[0].best == ["b", "c"]
    assert found.leads[0].is_sure


def test_one_value_more_or_less_is_no_equality() -> None:
    high = shifted(0.3)
    other = [None, *high[1:]]
    assert only(a=table(LABELS, token_f1=high), b=table(LABELS, token_f1=other)).equals == []
    assert only(a=table(LABELS, token_f1=high), b=table(LABELS, token_f1=high, mrr_at_10=high)).equals == []


def test_all_alike_have_no_winner() -> None:
    high = shifted(0.3)
    found = only(a=table(LABELS, token_f1=high), b=table(LABELS, token_f1=high))
    assert found.equals == [["a", "b"]]
    assert found.leads[0].is_level
    assert not found.leads[0].is_sure


def test_times_do_not_make_a_difference() -> None:
    high = shifted(0.3)
    slow, fast = [20.0] * N, [10.0] * N
    tables = [table(LABELS, token_f1=high, total_ms=times) for times in (slow, fast)]
    assert only(a=tables[0], b=tables[1]).equals == [["a", "b"]]


def test_experiments_of_other_data_are_not_compared() -> None:
    high, low = table(LABELS, token_f1=shifted(0.3)), table(LABELS, token_f1=shifted(0.0))
    found = fields({"c": "other"}, a=high, b=low, c=low)
    assert [(field.data, list(field.names), len(field.leads)) for field in found] == [
        ("queries", ["a", "b"], 1),
        ("other", ["c"], 0),
    ]


def test_the_measure_is_that_which_most_have() -> None:
    high, low = shifted(0.3), shifted(0.0)
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
    judged = {"factuality": shifted(0.0), "g_mean": shifted(0.0), "hri": shifted(0.0)}
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
