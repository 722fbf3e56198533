"""Which experiment wins on which slice: a clear one, a tie, missing cases, one experiment, two data."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.stats

from rag_harness.stats import difference_interval, holm
from rag_harness.stats.inputs import Floats
from rag_harness.tables.pairwise import PairDifference, excludes_0
from rag_harness.tables.standings import SliceStanding, standing_lines
from rag_harness.tables.suite_table import SuiteTable
from tests.unit.tables.standing_tables import Values, kinds, stand, table

A, B = 24, 20
LABELS = kinds(a=A, b=B)
RNG = np.random.default_rng(5)
NOISE = RNG.normal(0, 0.05, (3, A + B))
BASE = RNG.uniform(0.3, 0.6, A + B)


def study(**shifts: tuple[float, float]) -> dict[str, SuiteTable]:
    """Return experiments that are by so much better than the same base, on kind a and on kind b."""
    by_kind = {name: np.repeat(shift, (A, B)) for name, shift in shifts.items()}
    return {
        name: table(LABELS, token_f1=(BASE + by_kind[name] + NOISE[place]).tolist())
        for place, name in enumerate(shifts)
    }


def on(tables: dict[str, SuiteTable], *asked: str) -> dict[str, SliceStanding]:
    return {each.name: each for each in stand(tables, *(asked or ("kind",))).found}


CLEAR = study(t1=(0.0, 0.0), t2=(0.01, 0.01), t3=(0.3, 0.01))


def test_a_clear_winner_wins_on_its_slice_and_not_on_the_other() -> None:
    found = on(CLEAR)
    assert (found["kind=a"].best, found["kind=a"].winners) == ("t3", ["t3"])
    assert [cell.second for cell in found["kind=a"].beaten] == ["t2", "t1"]
    assert found["kind=b"].winners == []
    assert {cell.second for cell in found["kind=b"].open} == {"t1", "t2", "t3"} - {found["kind=b"].best}


def test_the_figures_are_those_of_the_slice_alone() -> None:
    found = on(CLEAR)["kind=a"]
    ours, theirs = (CLEAR[name].columns["token_f1"].values[:A] for name in ("t3", "t2"))
    oracle = scipy.stats.ttest_rel(ours, theirs)
    cell = found.against[0].found
    assert cell is not None
    assert cell.interval is not None
    assert (found.cases, found.n, cell.n) == (A, A, A)
    assert found.mean == pytest.approx(np.mean(ours))
    assert cell.difference == pytest.approx(np.mean(ours - theirs))
    confidence = found.against[0].confidence
    assert confidence > 0.95, "one of six tests"
    assert cell.interval == difference_interval(ours - theirs, (-1, 1), confidence)
    assert cell.interval == pytest.approx(tuple(oracle.confidence_interval(confidence)), abs=0.01)
    assert cell.p_t == pytest.approx(oracle.pvalue)


def test_an_interval_excludes_0_only_where_the_corrected_test_is_significant() -> None:
    """Of 10 experiments that differ a little, some are better by a test of their own, and by Holm over 45 few are."""
    rng = np.random.default_rng(11)
    shifts = np.linspace(0, 0.06, 10)
    many = {
        f"t{n}": table(kinds(a=60), token_f1=(rng.normal(0.5 + shift, 0.1, 60)).tolist())
        for n, shift in enumerate(shifts)
    }
    cells = on(many)["kind=a"].against
    alone = [scipy.stats.ttest_rel(*_values(many, cell)).pvalue for cell in cells]
    assert sum(p <= 0.05 for p in alone) > sum(cell.is_significant for cell in cells)
    for cell, p in zip(cells, alone, strict=True):
        assert cell.found
        assert cell.found.interval
        assert cell.p_t is not None
        low, high = scipy.stats.ttest_rel(*_values(many, cell)).confidence_interval(cell.confidence)
        assert cell.found.interval.low <= low + 1e-12
        assert cell.found.interval.high >= high - 1e-12
        assert (low > 0 or high < 0) == (p * cell.among <= 0.05) == (cell.p_t <= 0.05)
        assert cell.is_significant or not excludes_0(cell.found.interval)


def _values(tables: dict[str, SuiteTable], cell: PairDifference) -> tuple[Floats, Floats]:
    first, second = (tables[name].columns["token_f1"].values for name in (cell.first, cell.second))
    return first, second


def test_holm_is_over_all_pairs_of_all_slices_and_not_over_those_of_the_best() -> None:
    found = stand(CLEAR, "kind")
    raw = {
        (kind, first, second): scipy.stats.ttest_rel(
            *(CLEAR[name].columns["token_f1"].values[part] for name in (first, second))
        ).pvalue
        for kind, part in (("a", slice(0, A)), ("b", slice(A, None)))
        for first, second in (("t1", "t2"), ("t1", "t3"), ("t2", "t3"))
    }
    adjusted = dict(zip(raw, holm(list(raw.values())), strict=True))
    assert found.tests == len(raw) == 6
    for each in found.found:
        for cell in each.against:
            first, second = sorted((cell.first, cell.second))
            assert cell.p_t == pytest.approx(adjusted[each.where[1], first, second])


def test_what_is_the_same_on_every_case_is_said_so_and_nobody_is_the_best() -> None:
    same: Values = BASE.tolist()
    found = on({name: table(LABELS, token_f1=same) for name in ("t1", "t2", "t3")})["kind=a"]
    assert found.is_level
    assert (found.winners, [cell.second for cell in found.equal], found.open) == ([], ["t2", "t3"], [])
    better = {"t1": table(LABELS, token_f1=same), "t2": table(LABELS, token_f1=same), "t3": CLEAR["t3"]}
    found = on(better)["kind=a"]
    assert (found.best, found.is_level, found.winners) == ("t3", False, ["t3"])


def test_experiments_that_are_the_same_on_every_case_win_together() -> None:
    found = on({"t1": CLEAR["t1"], "t2": CLEAR["t3"], "t3": CLEAR["t3"]})["kind=a"]
    assert (sorted(found.winners), [cell.second for cell in found.beaten]) == (["t2", "t3"], ["t1"])
    assert (found.as_json()["winner"], found.as_json()["winners"]) == (None, found.winners)
    said = "\n".join(standing_lines(stand({"t1": CLEAR["t1"], "t2": CLEAR["t3"], "t3": CLEAR["t3"]}, "kind")))
    assert "t2 = t3 win, with the same value on every case" in said


def test_a_constant_lead_has_no_test_and_so_no_winner() -> None:
    tables = {"t1": table(kinds(a=20), token_f1=[0.0] * 20), "t2": table(kinds(a=20), token_f1=[1.0] * 20)}
    found = on(tables)["kind=a"]
    assert (found.best, found.winners, found.beaten) == ("t2", [], [])
    assert [cell.reason for cell in found.open] == ["t1 - t2: all differences are equal"]


def test_cases_without_a_value_leave_their_pairs_and_are_counted() -> None:
    """t2 answers the four easiest: its mean is the highest, and over the same cases it is behind."""
    easy = set(np.argsort(-BASE[:A])[:4])
    some = [BASE[n] - 0.02 * (n % 2) if n in easy else None for n in range(A)] + [None] * B
    found = on({"t1": table(LABELS, token_f1=BASE.tolist()), "t2": table(LABELS, token_f1=some)})
    (only,) = found.values()
    assert np.mean([value for value in some if value is not None]) > only.mean
    assert (only.name, only.best, only.n, only.cases) == ("kind=a", "t1", A, A)
    assert only.against[0].found is not None
    assert only.against[0].found.n == 4
    assert only.winners == []


@pytest.mark.parametrize(
    ("measure", "first", "second"),
    [("token_f1", [0.1, 0.4, 0.6], [None, 0.4, 0.6]), ("error_rate", [1, 0, 1], [None, 0, 1])],
)
def test_of_equals_the_one_with_the_better_mean_is_the_best(measure: str, first: Values, second: Values) -> None:
    tables = {name: table(kinds(a=3), **{measure: values}) for name, values in (("t1", first), ("t2", second))}
    found = on(tables, f"kind: {measure}")["kind=a"]
    assert (found.best, found.is_level) == ("t2", True)


def test_who_is_ahead_of_the_best_on_the_cases_that_both_have_is_neither_beaten_nor_open() -> None:
    noise = RNG.normal(0, 0.02, (4, A))
    first = np.arange(A) < A / 2

    def made(place: int, on_first: float, on_rest: float) -> SuiteTable:
        return table(kinds(a=A), token_f1=(np.where(first, on_first, on_rest) + noise[place]).tolist())

    tables = {"t1": made(0, 0.3, 0.9), "t2": made(1, 0.8, 0.1), "t3": made(2, 0.8, 0.1), "t4": made(3, 0.6, np.nan)}
    found = on(tables)["kind=a"]
    assert (found.best, found.winners) == ("t1", [])
    assert [cell.second for cell in found.ahead] == ["t4"]
    assert "t4" not in {cell.second for cell in [*found.open, *found.beaten, *found.equal]}


def test_an_experiment_without_a_value_on_a_slice_or_anywhere_is_named() -> None:
    part: Values = [*BASE[:A].tolist(), *[None] * B]
    tables = {**CLEAR, "t4": table(LABELS, token_f1=part), "t5": table(LABELS, token_f1=[None] * (A + B))}
    found = stand(tables, "kind")
    assert [each.without for each in found.found] == [[], ["t4"]]
    assert found.blank == ["t5: no token_f1 (44 of 44 have no ground truth)"]


def test_slices_that_nobody_can_be_compared_on_are_named_with_the_reason() -> None:
    labels = kinds(a=6, none=2, one=1, lone=3)
    first: Values = [0.1, 0.4, 0.3, 0.2, 0.6, 0.5, None, None, 0.5, 0.1, 0.2, 0.3]
    second: Values = [0.2, 0.4, 0.5, 0.2, 0.7, 0.5, None, None, 0.6, None, None, None]
    found = stand({"t1": table(labels, token_f1=first), "t2": table(labels, token_f1=second)}, "kind")
    assert [each.name for each in found.found] == ["kind=a"]
    assert found.blank == [
        "kind=lone: only t1 has token_f1 (3 of 3 have no ground truth)",
        "kind=none: nobody has token_f1 (2 of 2 have no ground truth)",
        "kind=one: one case tells nothing apart",
    ]


def test_where_the_others_do_not_have_the_measure_no_reason_is_made_up() -> None:
    labels = kinds(a=3)
    tables = {"t1": table(labels, token_f1=[0.1, 0.2, 0.3]), "t2": table(labels, hri=[0.1, 0.2, 0.3])}
    assert not any("()" in line for line in stand(tables, "kind", "token_f1").blank)


def test_one_experiment_has_no_rival() -> None:
    found = stand({"t1": CLEAR["t1"]}, "kind")
    assert (found.found, found.blank, found.tests) == ([], [], 0)


def test_experiments_of_different_data_are_never_mixed() -> None:
    tables = {**CLEAR, **{f"e{place}": CLEAR[f"t{place}"] for place in (1, 2)}, "alone": CLEAR["t3"]}
    data = {"e1": "retail", "e2": "retail", "alone": "another"}
    found = stand(tables, "kind", data=data)
    rivals = {(each.data, each.name): {each.best, *(cell.second for cell in each.against)} for each in found.found}
    assert rivals == {
        ("queries", "kind=a"): {"t1", "t2", "t3"},
        ("queries", "kind=b"): {"t1", "t2", "t3"},
        ("retail", "kind=a"): {"e1", "e2"},
        ("retail", "kind=b"): {"e1", "e2"},
    }
    assert (found.several, found.tests) == (True, 8)


def test_where_no_measure_is_named_it_is_the_first_of_the_usual_ones_that_two_have() -> None:
    hits = (RNG.uniform(size=(2, A + B)) > 0.5).astype(float)
    tables = {
        "t1": table(LABELS, recall_at_5=hits[0].tolist(), token_f1=BASE.tolist()),
        "t2": table(LABELS, recall_at_5=hits[1].tolist(), token_f1=NOISE[0].tolist()),
    }
    assert {each.measure for each in stand(tables, "kind").found} == {"recall@5"}
    tables["t2"] = table(LABELS, recall_at_5=[None] * (A + B), token_f1=NOISE[0].tolist())
    assert {each.measure for each in stand(tables, "kind").found} == {"token_f1"}
    assert [each.measure for each in stand(tables, "kind: token_f1", "kind").found] == ["token_f1", "token_f1"]


def test_lower_is_better_where_the_measure_says_so() -> None:
    rates = (RNG.uniform(size=(2, A + B)) < np.array([[0.9], [0.1]])).astype(float)
    tables = {name: table(LABELS, error_rate=rates[place].tolist()) for place, name in enumerate(("t1", "t2"))}
    found = on(tables, "kind: error_rate")["kind=a"]
    assert (found.best, found.winners) == ("t2", ["t2"])
    assert found.against[0].found is not None
    assert found.against[0].found.difference < 0


def test_scores_of_two_judges_are_not_compared() -> None:
    tables = {name: table(LABELS, factuality=np.clip(BASE + NOISE[n], 0, 1)) for n, name in enumerate(("t1", "t2"))}
    found = stand(tables, "kind", judge="fused").found[0]
    assert [cell.reason for cell in found.open] == ["they were judged by different judges"]
    assert stand(tables, "kind").found[0].against[0].found is not None


def test_a_family_of_many_tests_has_sign_flips_enough_to_show_something() -> None:
    """With 10,000 flips no p is below 1e-4, and 8 slices of 10 experiments are 360 tests or more."""
    labels = kinds(**{f"k{place}": 20 for place in range(12)})
    n, rng = len(labels), np.random.default_rng(3)
    base = rng.uniform(0.2, 0.4, n)
    shifts = [0.5, *[0.0] * 9]
    tables = {
        f"t{place}": table(labels, token_f1=(base + shift + rng.normal(0, 0.05, n)).tolist())
        for place, shift in enumerate(shifts)
    }
    found = stand(tables, "kind")
    assert found.tests == 540
    assert [each.winners for each in found.found] == [["t0"]] * 12


def test_as_json_has_no_nan_and_names_the_winner() -> None:
    for each in stand(CLEAR, "kind").found:
        kept = json.loads(json.dumps(each.as_json(), allow_nan=False))
        assert kept["slice"] == {"kind": each.where[1]}
        assert (kept["winners"], kept["best"]) == (each.winners, each.best)
        assert [cell["pair"] for cell in kept["against"]] == [[each.best, cell.second] for cell in each.against]
