"""Which is better: pairs, tests, and the queries that moved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from rag_harness.page.content import More, Section
from rag_harness.page.sections.comparison import differences
from rag_harness.stats import difference_interval, holm, holm_counts, permutation_test
from tests.unit.page.runs import AR, CP, F, amend, cell_in, prose_in, read, rows_of, scored, table_in, write_study
from tests.unit.suite_tables import write_run

N = 40


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A run whose judged values vary as those of people do."""
    rng, rows, scores = np.random.default_rng(1), [], []
    for shift, name in ((0.0, "e1"), (0.02, "e2"), (0.2, "e3")):
        mine = rows_of(name, N, N)
        values = {m: np.clip(rng.normal(0.5 + shift, 0.15, N), 0.01, 0.99).tolist() for m in (CP, F, AR)}
        rows += mine
        scores += scored(mine, values)
    write_run(tmp_path / "out", rows, scores=scores)
    return tmp_path / "out"


def of(*outputs: Path) -> Section:
    section = differences(read(*outputs))
    assert section is not None
    return section


def test_the_study_s_pairs_are_what_scipy_says(study: Path) -> None:
    table = table_in(of(study), "pairwise-study")
    tables = read(study)[0].tables
    tested = [row for row in table.rows if row[6].text != "-"]
    expected = []
    for row in tested:
        first, second = row[0].text.split(" - ")
        measure = "g_mean" if row[1].text == "G_mean" else "hri"
        a, b = (list(tables[name].values(measure, {}).values()) for name in (first, second))
        assert row[3].text == f"{np.mean(a) - np.mean(b):+.3f}"
        expected.append((scipy.stats.ttest_rel(a, b).pvalue, permutation_test(a, b), np.subtract(a, b)))
    assert len(tested) == 6
    by_t, by_chance, apart = zip(*expected, strict=True)
    among = map(max, holm_counts(by_t), holm_counts(by_chance))
    for row, p, differences_of, count in zip(tested, holm(by_t), apart, among, strict=True):
        assert row[6].text == ("<0.001" if p < 0.001 else f"{p:.3f}")
        low, high = difference_interval(differences_of, (-1, 1), 1 - 0.05 / count)
        assert row[4].text == f"[{low:+.3f}, {high:+.3f}]"


def test_in_words_whether_chance_explains_a_difference(study: Path) -> None:
    rows = {(row[0].text, row[1].text): row[-1] for row in table_in(of(study), "pairwise-study").rows}
    assert (rows["e3 - e2", "G_mean"].text, rows["e3 - e2", "G_mean"].tone) == ("e3 is better", "good")
    assert (rows["e2 - e1", "G_mean"].text, rows["e2 - e1", "G_mean"].tone) == (
        "not sure, it may be chance: p > 0.05",
        "unsure",
    )
    assert rows["e2 - e1", "HRI, p95 ↓"].text == "not sure, it may be chance: the interval holds 0"


def test_lower_is_better_of_a_risk(tmp_path: Path) -> None:
    rows = {(row[0].text, row[1].text): row[-1] for row in table_in(of(write_study(tmp_path)), "pairwise-study").rows}
    assert rows["e3 - e2", "HRI ↓"].text == "e3 is better"
    assert rows["e3 - e2", "HRI ↓"].tone == "good"
    assert rows["e3 - e2", "G_mean"].text == "not tested: all differences are equal"


def test_other_measures_are_a_matrix_of_the_pairs(study: Path) -> None:
    table = table_in(of(study), "pairwise-others")
    assert list(table.head) == ["pair", "CP", "F", "AR"]
    tables = read(study)[0].tables
    a, b = (list(tables[name].values(CP, {}).values()) for name in ("e3", "e1"))
    (pair,) = (each for each in read(study)[0].pairwise if (each.pair, each.measure) == ("e3 - e1", CP))
    assert pair.among > 1
    low, high = difference_interval(np.subtract(a, b), (-1, 1), pair.confidence)
    oracle = scipy.stats.ttest_rel(a, b).confidence_interval(1 - 0.05 / pair.among)
    assert (low, high) == pytest.approx(tuple(oracle), abs=0.01)
    cell = cell_in(table, "e3 - e1", "CP")
    assert cell.text == f"{np.mean(a) - np.mean(b):+.3f}> ±{(high - low) / 2:.3f}"
    assert cell.hint.startswith(f"n = {N}; interval [{low:+.3f}, ")


def test_what_no_judge_gives_is_compared_without_one(tmp_path: Path) -> None:
    write_run(tmp_path, [*rows_of("e2", 20, 5), *rows_of("e3", 20, 20)])
    section = of(tmp_path)
    cell = cell_in(table_in(section, "pairwise-unjudged"), "e3 - e2", "recall@5")
    assert cell.text.startswith("+0.750> ±")
    p = scipy.stats.ttest_rel([1.0] * 20, [1.0] * 5 + [0.0] * 15).pvalue
    assert f"p (t) {'<0.001' if p < 0.001 else f'{p:.3f}'}" in cell.hint
    # Nothing was judged: recall@5 says which queries moved.
    up = table_in(section, "moved-e3-e2-up")
    assert up.caption == "15 queries went up: recall@5 ↑"
    assert [cell.trial for cell in up.rows[0]] == ["e3-q05", "e2-q05", "e3-q05", ""]
    assert [cell.text for cell in up.rows[0]] == ["q05", "0.000", "1.000", "Question 5?"]


def test_queries_that_moved_most_stand_first_and_the_others_are_counted(study: Path) -> None:
    tables = read(study)[0].tables
    new, old = (tables[name].values("g_mean", {}) for name in ("e3", "e2"))
    moves = {case: new[case] - old[case] for case in new}
    up, down = (table_in(of(study), f"moved-e3-e2-{way}") for way in ("up", "down"))
    risen = sorted((case for case in moves if moves[case] > 0), key=lambda case: -moves[case])
    fallen = sorted((case for case in moves if moves[case] < 0), key=lambda case: moves[case])
    assert [row[0].text for row in up.rows] == risen[:20]
    assert [row[0].text for row in down.rows] == fallen[:20]
    assert up.notes == ([f"and {len(risen) - 20} more"] if len(risen) > 20 else [])
    assert {row[2].tone for row in up.rows} == {"good"}
    assert {row[2].tone for row in down.rows} == {"bad"}


def test_where_no_query_moved_that_is_said(tmp_path: Path) -> None:
    section = of(write_study(tmp_path))
    assert "None: every query has the same value in both." in prose_in(section)
    assert any(isinstance(block, More) and block.title.startswith("e3 - e2: ") for block in section.blocks)


def test_one_experiment_is_compared_with_nothing(tmp_path: Path) -> None:
    write_run(tmp_path, rows_of("e3", 3, 3))
    assert differences(read(tmp_path)) is None


def test_experiments_on_different_data_are_not_compared(tmp_path: Path) -> None:
    write_study(tmp_path)
    cases = tmp_path / "cases"
    suites = {}
    for name, record in read(tmp_path)[0].suites.items():
        (cases / f"{name}.jsonl").write_bytes((cases / "queries.jsonl").read_bytes())
        suites[name] = record.model_dump() | {"data": name}
    amend(tmp_path, suites=suites)
    (said,) = prose_in(of(tmp_path))
    assert said.startswith("No two experiments can be compared. They are not on the same data")
