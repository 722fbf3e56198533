"""``rag-harness power``: what a run can see, of one experiment and of two."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_harness.__main__ import CANNOT_RUN, main
from rag_harness.core.errors import DataError
from rag_harness.stats.paired_tests import BoundReach
from rag_harness.tables.pairwise import power, power_lines
from rag_harness.tables.reader import SavedCase, SavedRun, SavedSuite, save

N = 40


def suite(seed: int, n: int = N, **values: float) -> SavedSuite:
    """Return cases with random scores; ``values`` are of a measure that is the same everywhere."""
    rng = np.random.default_rng(seed)
    cases = {
        f"q{place}": SavedCase(
            values={"faithfulness": rng.random(), "recall@5": float(rng.random() < 0.7), **values},
            slices={"query_type": ["direct", "multi_hop"][place % 2]},
        )
        for place in range(n)
    }
    return SavedSuite(cases=cases)


def run(**suites: SavedSuite) -> SavedRun:
    return SavedRun(date="2026-01-01", fingerprint={"data": {}}, suites=suites)


def test_one_experiment_against_a_threshold_and_two_over_the_same_cases() -> None:
    made = run(e2=suite(1), e3=suite(2))
    found = {row.name: row for row in power(made, 0.05, ["faithfulness"])}
    a, b = (list(made.suites[name].values("faithfulness", {}).values()) for name in ("e2", "e3"))
    apart = np.subtract(b, a)
    reaches = {"e2": BoundReach(a, (0, 1)), "e3 - e2": BoundReach(apart, (-1, 1), is_difference=True)}
    for name, sd in (("e2", np.std(a, ddof=1)), ("e3 - e2", np.std(apart, ddof=1))):
        row, reach = found[name], reaches[name]
        assert row.sd == pytest.approx(sd)
        assert (row.detectable, row.needed) == (reach.of(N), reach.cases(0.05))


def test_what_a_comparison_without_assumptions_needs() -> None:
    made = run(e2=suite(1, words=3.0), e3=suite(2, words=4.0))
    found = {(row.name, row.measure): row for row in power(made, 0.05, ["faithfulness", "words"])}
    a, b = (list(made.suites[name].values("faithfulness", {}).values()) for name in ("e2", "e3"))
    robust = BoundReach(np.subtract(b, a), (-1, 1)).cases(0.05)
    both = found["e3 - e2", "faithfulness"]
    assert both.robust == robust
    assert robust and both.needed and both.needed < robust  # noqa: PT018 - an open number is neither
    assert found["e2", "faithfulness"].robust is None
    assert found["e3 - e2", "words"].robust is None
    (line,) = (line for line in power_lines(made, 0.05, ["faithfulness"]) if line.startswith("e3 - e2"))
    assert line.split()[-2:] == [f"{both.needed:,}", f"{robust:,}"]


def test_where_less_is_better_it_is_the_upper_bound_that_has_to_clear() -> None:
    values = [0.0] * 36 + [0.5] * 4
    made = run(e3=SavedSuite(cases={f"q{n}": SavedCase(values={"hri": value}) for n, value in enumerate(values)}))
    (row,) = power(made, 0.05, ["hri"])
    assert row.detectable == BoundReach([-value for value in values], (-1, 0)).of(40)
    assert row.detectable != BoundReach(values, (0, 1)).of(40)


def test_slices_each_by_themselves() -> None:
    found = power(run(e3=suite(1)), 0.05, ["recall@5"], "query_type")
    assert [(row.slice, row.n) for row in found] == [("direct", 20), ("multi_hop", 20)]


def test_judged_measures_are_what_is_shown_of_a_judged_run() -> None:
    assert {row.measure for row in power(run(e3=suite(1)), 0.05)} == {"faithfulness"}
    bare = SavedSuite(cases={"q0": SavedCase(values={"recall@5": 1.0, "mrr@10": 0.5, "map@10": 0.5})})
    assert {row.measure for row in power(run(e3=bare), 0.05)} == {"recall@5", "mrr@10"}


@pytest.mark.parametrize(("n", "why"), [(1, "one case only"), (5, "all values are equal")])
def test_values_that_do_not_spread_tell_nothing(n: int, why: str) -> None:
    (row,) = power(run(e3=suite(1, n, hri=0.5)), 0.05, ["hri"])
    assert (row.detectable, row.needed) == (None, None)
    assert row.reason == f"{why}, so nothing tells how others would spread"


def test_equal_differences_of_two_tell_nothing() -> None:
    rows = power(run(e2=suite(1), e3=suite(1)), 0.05, ["faithfulness"])
    assert "all differences are equal" in {row.name: row for row in rows}["e3 - e2"].reason


def test_a_difference_beyond_all_cases_has_a_reason() -> None:
    (row,) = power(run(e3=suite(1)), 1e-7, ["faithfulness"])
    assert row.needed is None
    assert row.reason == "no number of cases shows a difference of 1e-07"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((0.0,), "--difference 0 is none"),
        ((-0.1,), "name one above 0"),
        ((float("nan"),), "--difference nan is none"),
        ((1.5, ["faithfulness"]), "faithfulness, a share, differ by more than 1"),
        ((0.05, ["faithfulnes"]), "Did you mean 'faithfulness'"),
        ((0.05, ["faithfulness"], "kind"), "Unknown slice key 'kind'. Known: query_type"),
    ],
)
def test_refuses(args: tuple[Any, ...], message: str) -> None:
    with pytest.raises(DataError, match=message):
        power(run(e3=suite(1)), *args)


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(tmp_path / "main.json", run(e2=suite(1), e3=suite(2)))
    command = ["power", "main", "--baselines", str(tmp_path), "--slice", "query_type"]
    assert main([*command, "--difference", "0.1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100
    assert any(line.split()[:4] == ["e3", "-", "e2", "F"] and "multi_hop" in line for line in lines)
    assert main(["power", "gone"]) == CANNOT_RUN


def test_an_empty_run_has_an_empty_table() -> None:
    assert power_lines(run())[-1].split() == ["measure", "slice", "n", "sd", "detects", "for", "0.05", "robust"]
