"""Gates: what may be written, what it means, and that none is green on part of the data."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import SettingsError
from rag_harness.core.types import is_in
from rag_harness.evaluation.measures import measure_named
from rag_harness.runs.gates import Gate, KnownNames, Reference, Verdict, check_gate, judge, parse_gate, verdict_lines
from rag_harness.runs.gates.configuration import cannot_fail, is_share, read_gates, replaced_gates
from rag_harness.runs.gates.evidence import beside_bounds, decisive_ends, how_sure
from rag_harness.runs.gates.grammar import Promise, PromiseKind
from rag_harness.runs.gates.verdict import together
from rag_harness.stats import clopper_pearson, difference_interval, quantile_interval
from rag_harness.tables.gate_states import gates_state
from rag_harness.tables.summary import verdict_json
from tests.unit.tables.standing_tables import kinds, table

KNOWN = KnownNames(
    names={"golden", "e2", "e3"},
    slices={"query_type": {"direct", "multi_hop"}, "difficulty": ()},
    check_measure=measure_named,
    is_share=is_share,
)

names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,8}", fullmatch=True)
numbers = st.floats(allow_nan=False, allow_infinity=False).map(lambda x: x + 0.0)
values = st.text(st.characters(exclude_characters=",]", exclude_categories=["Cs"]), min_size=1, max_size=9).filter(
    lambda text: text == text.strip()
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20).map(lambda text: " ".join(text.split()))


@st.composite
def promises(draw: st.DrawFn) -> Promise:
    kinds: list[PromiseKind] = ["pass^", "worst_of_", "flip_rate"]
    kind = draw(st.sampled_from(kinds))
    limit = draw(st.none() | st.tuples(st.sampled_from([">=", "<=", ">", "<"]), numbers))
    k = 2 if kind == "flip_rate" else draw(st.integers(1, 99))
    return Promise(kind, k, None if kind == "worst_of_" else limit)


gates = st.builds(
    Gate,
    names,
    st.dictionaries(st.from_regex(r"[\w.-]{1,6}", fullmatch=True), values, max_size=3).map(lambda d: tuple(d.items())),
    st.builds("{}{}".format, names, st.sampled_from(["", "@5", "@10"])),
    st.sampled_from([">=", "<=", ">", "<"]),
    numbers | st.builds(Reference, names.filter(lambda name: name != "else"), numbers),
    st.sampled_from([None, 50, 95, 99]),
    confidence=st.sampled_from([None, 95.0, 99.5]),
    otherwise=(texts | texts.map("else {0}".format) | texts.map("{0} else".format)).map(str.strip),
    over=st.none() | promises(),
).filter(lambda gate: not (gate.quantile and (gate.over or (gate.confidence and isinstance(gate.right, Reference)))))


@dataclass
class Scores:
    """A suite of cases by id; ``slices`` of those that are not listed are empty."""

    found: Mapping[str, float | None]
    total: int = -1
    lost: int = 0
    slices: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    why: str = "no value"
    depth: int | None = None
    not_measured: int = 0
    rows: Mapping[str, int] = field(default_factory=dict)

    def _in(self, where: Mapping[str, str]) -> list[str]:
        return [case for case in self.found if where.items() <= self.slices.get(case, {}).items()]

    def total_of(self, where: Mapping[str, str], /) -> int:
        return self.total if self.total >= 0 and not where else len(self._in(where))

    def selected_of(self, where: Mapping[str, str], /) -> int:
        return len(self._in(where))

    def lost_of(self, where: Mapping[str, str], /) -> int:
        return self.lost

    def values(self, measure: str, where: Mapping[str, str], /) -> dict[str, float]:
        return {case: value for case in self._in(where) if (value := self.found[case]) is not None}

    def absent(self, measure: str, where: Mapping[str, str], /) -> dict[str, int]:
        without = len(self._in(where)) - len(self.values(measure, where))
        return {self.why: without} if without else {}

    def unmeasured(self, measure: str, where: Mapping[str, str], /) -> int:
        return self.not_measured

    def left_out(self, measure: str, where: Mapping[str, str], /) -> dict[str, int]:
        return {}

    def outcomes(self, where: Mapping[str, str], /) -> dict[str, int]:
        return {case: self.rows[case] for case in self._in(where) if case in self.rows}


def of(*values: float | None, total: int = -1, lost: int = 0) -> Scores:
    return Scores({f"q{n}": value for n, value in enumerate(values)}, total, lost)


def verdict(
    text: str, partial: bool = False, baseline: Mapping[str, Scores] | None = None, **suites: Scores
) -> Verdict:
    gate = parse_gate(text, 5)
    return judge(gate, suites, partial, baseline, measure_named(gate.measure).unit)


@pytest.mark.parametrize(
    ("text", "gate"),
    [
        ("recall@k >= 0.95", Gate("golden", (), "recall@7", ">=", 0.95)),
        ("golden: mrr@10>.8", Gate("golden", (), "mrr@10", ">", 0.8)),
        ("e4: error_rate <= 5e-2", Gate("e4", (), "error_rate", "<=", 0.05)),
        (
            " e3 [query_type = multi_hop] :recall@5<0.7 ",
            Gate("e3", (("query_type", "multi_hop"),), "recall@5", "<", 0.7),
        ),
        ("e3[a=b c,d=e:f>=g]: r_precision >= 1", Gate("e3", (("a", "b c"), ("d", "e:f>=g")), "r_precision", ">=", 1.0)),
        ("e3: recall@5 >= e2", Gate("e3", (), "recall@5", ">=", Reference("e2"))),
        ("e3: recall@5 >= gpt-4 + 0.01", Gate("e3", (), "recall@5", ">=", Reference("gpt-4", 0.01))),
        ("e3: p95(total_ms) <= 3000", Gate("e3", (), "total_ms", "<=", 3000.0, 95)),
        ("e3: p50( recall@k )>=.5", Gate("e3", (), "recall@7", ">=", 0.5, 50)),
        ("e3: cost_usd <= 0.002", Gate("e3", (), "cost_usd", "<=", 0.002)),
        ("e3: recall@k >= baseline -0.02", Gate("e3", (), "recall@7", ">=", Reference("baseline", -0.02))),
    ],
)
def test_what_may_be_written(text: str, gate: Gate) -> None:
    assert parse_gate(text, 7) == gate


@given(gates)
def test_the_text_of_a_gate_parses_back_to_it(gate: Gate) -> None:
    assert parse_gate(str(gate), 3) == gate


def test_the_canonical_text_is_what_a_person_would_write() -> None:
    assert str(parse_gate("recall@k>=.95", 10)) == "golden: recall@10 >= 0.95"
    assert str(parse_gate("e3[a=b , c=d]: mrr@3 < baseline -  2e-2", 10)) == "e3[a=b,c=d]: mrr@3 < baseline - 0.02"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("recall@5 >= 80%", "write 0.8 instead of '80%'"),
        ("recall@5 >= e2%", "not a percentage"),
        ("recall@5", "no comparison in 'recall@5'; use one of >= <= > <"),
        ("", "no comparison"),
        ("recall@5 => 0.9", "'=>' is not a comparison"),
        ("recall@5 == 0.9", "'==' is not a comparison"),
        ("golden: >= 0.9", "'' before '>=' is not a measure"),
        ("golden: recall @5 >= 0.9", "'recall @5' before '>=' is not a measure"),
        ("e3: p90(total_ms) <= 3", "'p90(total_ms)' before '<=' is not a measure"),
        ("e3: p95() <= 3", "'p95()' before '<=' is not a measure"),
        ("e3: p95(total_ms <= 3", "'p95(total_ms' before '<=' is not a measure"),
        ("e3 recall@5 >= 0.9", "a colon is missing behind the experiment; write 'e3: recall@5 >= 0.9'"),
        ("e3[query_type=a], p95(total_ms) < 300", "write 'e3[query_type=a]: p95(total_ms) < 300'"),
        ("e3; recall@5 >= 0.9", "write 'e3: recall@5 >= 0.9'"),
        ("recall@5 >= ", "'' on the right is not a number"),
        ("recall@5 >= e2 - x", "'e2 - x' on the right"),
        ("recall@5 >= 0.9 - 0.1", "'0.9 - 0.1' on the right"),
        ("recall@5 >= nan nan", "'nan nan' on the right"),
        ("recall@5 >= 1e999", "too large"),
        (": recall@5 >= 0.9", "'' before the colon is not a name"),
        ("3 e: recall@5 >= 0.9", "'3 e' before the colon is not a name"),
        ("e3[]: recall@5 >= 0.9", "'' in the brackets is not key=value"),
        ("e3[query_type]: recall@5 >= 0.9", "'query_type' in the brackets"),
        ("e3[a=]: recall@5 >= 0.9", "'a=' in the brackets"),
        ("e3[a=b,a=c]: recall@5 >= 0.9", "'a' stands twice"),
    ],
)
def test_a_mistake_is_shown_with_the_text_the_part_and_an_example(text: str, problem: str) -> None:
    with pytest.raises(SettingsError) as error:
        parse_gate(text, 5)
    assert problem in str(error.value)
    assert f"Gate '{text.strip()}'" in str(error.value)
    assert "Example: 'golden: recall@10 >= 0.95'" in str(error.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("e33: recall@5 >= 0.9", "Unknown experiment 'e33'. Did you mean 'e3'?"),
        ("baseline: recall@5 >= 0.9", "Unknown experiment 'baseline'"),
        ("e3: recal@5 >= 0.9", "Unknown measure 'recal'. Did you mean 'recall'?"),
        ("e3: recall >= 0.9", "needs a cutoff"),
        ("e3[query_typ=direct]: recall@5 >= 0.9", "Unknown slice key 'query_typ'. Did you mean 'query_type'?"),
        (
            "e3[query_type=multihop]: recall@5 >= 0.9",
            "Unknown value of query_type 'multihop'. Did you mean 'multi_hop'?",
        ),
        ("e3: recall@5 >= e2-0.1", "an offset needs spaces around its sign; write 'e2 - 0.1'"),
        ("e3: recall@5 >= gpt", "Unknown experiment 'gpt'"),
        ("e3: recall@5 >= e3", "'e3' would be compared with itself"),
        ("e3: recall@5 >= baseline - 0.02", "--rag-compare NAME"),
        ("e3: recall@5 >= 95", "lies between 0 and 1; 95 does not"),
        ("e3: p50(recall@5) >= 95", "lies between 0 and 1; 95 does not"),
        ("e3: p95(total_mss) <= 3000", "Unknown measure 'total_mss'. Did you mean 'total_ms'?"),
    ],
)
def test_a_name_that_does_not_exist_is_an_error_before_anything_runs(text: str, problem: str) -> None:
    with pytest.raises(SettingsError) as error:
        check_gate(parse_gate(text, 5), KNOWN)
    assert problem in str(error.value)
    assert text in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "recall@k >= 0.9",
        "e3[query_type=direct,difficulty=hard]: mrr@5 >= e2 - 0.5",
        "e3: p95(total_ms) <= 3000",
        "e3: cost_usd <= 20",
    ],
)
def test_names_that_exist_are_fine(text: str) -> None:
    check_gate(parse_gate(text, 5), KNOWN)


def test_a_limit_of_a_slice_has_to_leave_cases() -> None:
    known = replace(KNOWN, slices={"turn": {"1", "2", "3"}, "part": ()})
    for where in ("turn>=3", "turn=2", "part>=3"):
        check_gate(parse_gate(f"e3[{where}]: recall@5 >= 0.9", 5), known)
    with pytest.raises(SettingsError, match=r"no case has a turn >=4. The cases have: 1, 2, 3\."):
        check_gate(parse_gate("e3[turn>=4]: recall@5 >= 0.9", 5), known)


def test_baseline_is_a_name_once_there_is_one() -> None:
    known = KnownNames({"e3", "baseline"}, {}, measure_named)
    check_gate(parse_gate("e3: recall@5 >= baseline", 5), known)
    check_gate(parse_gate("e3: recall@5 <= 95", 5), known)
    with pytest.raises(SettingsError, match="Unknown experiment 'baseline'"):
        check_gate(parse_gate("baseline: recall@5 >= 0.9", 5), known)


@pytest.mark.parametrize(
    ("op", "threshold", "state"),
    [
        (">=", 0.5, "passed"),
        (">=", 0.51, "failed"),
        (">", 0.5, "failed"),
        (">", 0.49, "passed"),
        ("<=", 0.5, "passed"),
        ("<=", 0.49, "failed"),
        ("<", 0.5, "failed"),
        ("<", 0.51, "passed"),
    ],
)
def test_the_mean_is_held_against_the_number(op: str, threshold: float, state: str) -> None:
    found = verdict(f"e3: recall@5 {op} {threshold}", e3=of(1, 0, 1, 0))
    assert (found.state, found.value, found.threshold, found.n) == (state, 0.5, threshold, 4)


def test_rounding_decides_nothing() -> None:
    tenths = of(*[0.1] * 3, *[0.7] * 3)
    exact = sum([0.1] * 3 + [0.7] * 3) / 6
    assert verdict(f"e3: recall@5 >= {exact + 5e-13!r}", e3=tenths).state == "passed"
    assert verdict(f"e3: recall@5 < {exact + 5e-13!r}", e3=tenths).state == "failed"
    assert verdict(f"e3: recall@5 >= {exact + 1e-9!r}", e3=tenths).state == "failed"


def test_nothing_selected_is_not_judged() -> None:
    absent = ("not judged", "e3 is not in this run")
    for found in (
        verdict("e3: recall@5 >= 0.9"),
        verdict("e3: recall@5 >= 0.9", e3=of(total=80)),
        verdict("e3: recall@5 >= 0.9", partial=True, e3=of(total=80)),
        verdict("e3[a=b]: recall@5 >= 0.9", e3=of(total=80)),
    ):
        assert (found.state, found.reason) == absent


def test_a_part_is_not_judged_unless_that_is_asked_for() -> None:
    part = of(1, 1, total=3)
    assert verdict("e3: recall@5 >= 0.9", e3=part).line() == (
        "not judged  e3: recall@5 >= 0.9   2 of 3 cases selected; --rag-gate-partial judges these"
    )
    judged = verdict("e3: recall@5 >= 0.9", partial=True, e3=part)
    assert (judged.state, judged.reason) == ("passed", "2 of 3 cases selected")


def test_a_gate_that_can_never_be_judged_is_red() -> None:
    unmeasured = verdict("e3: recall@5 >= 0", e3=of(None, None))
    assert (unmeasured.state, unmeasured.reason) == (
        "failed",
        "no case has a value of recall@5: recall@5 returned no value for 2 of 2",
    )
    assert verdict("e3[a=b]: recall@5 >= 0", e3=of(1)).reason == "no case is in e3[a=b]"
    assert verdict("e3[a=b]: recall@5 >= 0", e3=of(1)).state == "failed"
    assert verdict("e3: recall@5 <= 1", e3=of(1, float("nan"))).state == "failed"
    assert verdict("e3: recall@5 <= e2", e3=of(0), e2=of(float("inf"))).reason.startswith("1 of the values")


def test_a_lost_case_fails_the_gate_whatever_the_value() -> None:
    found = verdict("e3: recall@5 >= 0.5", e3=of(1, 1, 1, 0, lost=1))
    assert (found.state, found.value, found.reason) == ("failed", 0.75, "1 case lost to a crash, so it cannot pass")


def test_lost_cases_are_counted() -> None:
    assert verdict("e3: recall@5 >= 0.5", e3=of(1, lost=2)).reason == "2 cases lost to a crash, so it cannot pass"


def test_a_suite_of_many_cases_is_whole() -> None:
    assert verdict("e3: recall@5 >= 0.9", e3=of(*[1] * 300)).state == "passed"


def test_a_slice_is_judged_on_its_own_cases() -> None:
    hop = {"query_type": "multi_hop"}
    scores = Scores({"q1": 1, "q2": 0, "q3": 0}, slices={"q1": hop, "q2": hop})
    found = verdict("e3[query_type=multi_hop]: recall@5 >= 0.5", e3=scores)
    assert (found.state, found.value, found.n) == ("passed", 0.5, 2)


def test_against_another_experiment() -> None:
    e2, e3 = of(1, 0, 0, 0), of(1, 1, 0, 0)
    assert verdict("e3: recall@5 >= e2", e2=e2, e3=e3).state == "passed"
    assert verdict("e2: recall@5 >= e3", e2=e2, e3=e3).state == "failed"
    assert verdict("e2: recall@5 >= e3 - 0.25", e2=e2, e3=e3).state == "passed"
    found = verdict("e3: recall@5 >= e2 + 0.3", e2=e2, e3=e3)
    assert (found.state, found.value, found.threshold) == ("failed", 0.5, 0.55)
    assert found.interval == difference_interval([0, 1, 0, 0], (-1, 1))
    many, more = of(*[1, 0] * 60), of(*[1, 1, 0, 0] * 30)
    found = verdict("e3: recall@5 >= e2", e2=many, e3=more)
    assert found.interval == difference_interval([0, 1, -1, 0] * 30, (-1, 1))


def test_a_comparison_needs_both_whole() -> None:
    e3 = of(1, 1)
    assert verdict("e3: recall@5 >= e2", e3=e3).reason == "e2 is not in this run"
    assert verdict("e3: recall@5 >= e2", e3=e3).state == "not judged"
    assert verdict("e3: recall@5 >= e2", e3=e3, e2=of(1, total=2)).reason.startswith("1 of 2 cases of e2 selected")
    assert verdict("e3: recall@5 >= e2", partial=True, e3=e3, e2=of(total=2)).state == "not judged"
    assert verdict("e3: recall@5 >= e2", e3=e3, e2=of(0, 0, lost=2)).state == "failed"
    assert verdict("e3: recall@5 >= e2", e3=of(1, None), e2=of(None, 1)).state == "failed"


def test_a_comparison_is_over_the_cases_that_both_have() -> None:
    found = verdict("e3: recall@5 >= e2", partial=True, e3=of(0, total=2), e2=of(0, 1))
    assert (found.state, found.value, found.threshold, found.n) == ("passed", 0.0, 0.0, 1)


def test_against_the_baseline() -> None:
    e3, saved = of(1, 0), {"e3": of(1, 1)}
    assert verdict("e3: recall@5 >= baseline", baseline=saved, e3=e3).state == "failed"
    assert verdict("e3: recall@5 >= baseline - 0.5", baseline=saved, e3=e3).state == "passed"
    assert verdict("e3: recall@5 >= baseline", e3=e3).reason == "the baseline has no results of e3"
    assert verdict("e3: recall@5 >= baseline", e3=e3).state == "failed"


def test_the_interval_fits_the_values() -> None:
    assert verdict("e3: recall@5 >= 0.9", e3=of(1, 1, 0)).interval == clopper_pearson(2, 3)
    bounds = verdict("e3: recall@5 >= 0.9", e3=of(1, 0.5, 0)).interval
    assert bounds is not None
    assert 0 <= bounds[0] < 0.5 < bounds[1] <= 1


def test_the_interval_goes_below_0_only_where_a_value_does() -> None:
    values = [0.0] * 8 + [1.0, 9.0]
    least, below = (judge(parse_gate("e3: mine <= 5", 5), {"e3": of(*found)}, unit="ms").interval
                    for found in (values, [-0.5, *values]))  # fmt: skip
    assert least is not None
    assert below is not None
    assert least[0] == 0 > below[0]


def test_the_lines_are_aligned() -> None:
    many = of(*[1] * 78, 0, 0)
    lines = verdict_lines(
        [
            verdict("recall@k >= 0.95", golden=many),
            verdict("e9: recall@5 >= 0.95"),
            verdict("e3: recall@5 >= golden - 0.02", golden=many, e3=of(*[1] * 79, 0)),
        ]
    )
    assert [part for line in lines for part in line.split("\n")] == [
        "passed      golden: recall@5 >= 0.95        0.975 [0.91, 1.00]  n=80",
        "not judged  e9: recall@5 >= 0.95            e9 is not in this run",
        "passed      e3: recall@5 >= golden - 0.02",
        "            0.988 against 0.955 (golden 0.975 - 0.02), difference [-0.04, +0.07]  n=80",
    ]


def test_gates_that_one_reason_keeps_from_being_judged_stand_below_it() -> None:
    found = [verdict(f"{name}: recall@5 >= 0.9", e3=of(1, total=2)) for name in ("e9", "e3", "e9[a=b]")]
    alone = "not judged  e3: recall@5 >= 0.9   1 of 2 cases selected; --rag-gate-partial judges these"
    below = "not judged  e9 is not in this run\n            e9: recall@5 >= 0.9; e9[a=b]: recall@5 >= 0.9"
    assert together(found) == [below, alone]


def test_a_near_miss_shows_enough_digits_to_be_one() -> None:
    assert "0.9499" in verdict("e3: recall@5 >= 0.95", e3=of(0.9499)).line()
    assert "0.950 [" in verdict("e3: recall@5 >= 0.95", e3=of(0.95)).line()


def test_a_quantile_is_held_against_the_number_with_its_own_interval() -> None:
    times = [float(n) for n in range(1, 201)]
    found = verdict("e3: p95(total_ms) <= 190", e3=of(*times))
    assert (found.state, found.value, found.interval) == ("passed", 190.0, quantile_interval(times, 0.95))
    assert found.line() == "passed      e3: p95(total_ms) <= 190   190 ms [184, 197]  n=200"
    assert verdict("e3: p95(total_ms) < 190", e3=of(*times)).state == "failed"
    assert (
        verdict("e3: p50(total_ms) <= e2", e3=of(*times), e2=of(*times[::-1]))
        .line()
        .endswith("100 ms against 100 ms  n=200")
    )


def test_too_few_cases_leave_an_end_open() -> None:
    assert "30 ms [20, …]  n=3" in verdict("e3: p99(total_ms) <= 100", e3=of(10, 20, 30)).line()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("e3: cost_usd <= 0.002", "$0.0015 [0.0000, 0.0079]  n=2"),
        ("e3: tokens <= 3", "0 tokens [0, 0]  n=2"),
        ("e3: total_ms <= 0.0014", "0.002 ms [0, 0]  n=2"),
    ],
)
def test_numbers_are_shown_in_the_unit_of_the_measure(text: str, shown: str) -> None:
    assert shown in verdict(text, e3=of(0.001, 0.002)).line()


def test_it_is_said_why_no_case_has_a_value() -> None:
    nothing = Scores(dict.fromkeys(map(str, range(200))), why="no ground truth")
    found = verdict("e3: token_f1 >= 0.5", e3=nothing)
    assert (found.state, found.reason) == ("failed", "no case has a value of token_f1: 200 of 200 have no ground truth")


def test_what_could_not_be_measured_is_said() -> None:
    some = Scores({"a": 0.001, "b": None}, why="no known price", not_measured=1)
    reason = "1 could not be measured: 1 of 2 have no known price"
    assert verdict("e3: cost_usd <= 1", e3=some).reason == reason


@pytest.mark.parametrize(
    ("why", "who"),
    [
        ("1 of 1 claims without a verdict: too short to judge without a model", "the embedded judge"),
        ("not judged: language de", "the judge"),
    ],
)
def test_what_to_do_is_said_where_a_judge_abstains_on_many(why: str, who: str) -> None:
    some = Scores({str(at): None if at < 31 else 1.0 for at in range(40)}, why=why, not_measured=31)
    reason = f"31 could not be measured: {who} abstains on 31 of 40; ask a model: --rag-judge=fused"
    assert verdict("e3: faithfulness >= 0.5", e3=some).reason == reason
    few = Scores({str(at): None if at < 1 else 1.0 for at in range(40)}, why=why, not_measured=1)
    assert verdict("e3: faithfulness >= 0.5", e3=few).reason == f"1 could not be measured: 1 of 40 have {why}"


def test_a_measure_deeper_than_what_is_retrieved_is_marked() -> None:
    five = Scores({"a": 1.0}, depth=5)
    assert verdict("e2: recall@10 >= 0.5", e2=five).reason == "e2 returns at most 5 hits"
    assert verdict("e2: recall@10 >= 0.5", e2=five).state == "passed"
    assert verdict("e2: recall@5 >= 0.5", e2=five).reason == ""
    assert verdict("e2: r_precision >= 0.5", e2=five).reason == ""
    assert verdict("e2: recall@2 >= 0.5", e2=Scores({"a": 1.0}, depth=1)).reason == "e2 returns at most 1 hit"


def test_a_comparison_at_a_depth_that_one_side_lacks_is_refused() -> None:
    twenty, five = Scores({"a": 1.0}, depth=20), Scores({"a": 0.0}, depth=5)
    for text in ("e3: recall@10 >= e2", "e2: recall@10 <= e3"):
        found = verdict(text, e3=twenty, e2=five)
        assert (found.state, found.value) == ("failed", None)
        assert found.reason == (
            "cannot be compared at 10 hits: e2 returns at most 5 hits. Choose a cutoff that both have"
        )
    assert verdict("e3: recall@5 >= e2", e3=twenty, e2=five).state == "passed"
    assert verdict("e3: recall@10 >= e2", e3=five, e2=five).state == "passed"
    assert verdict("e3: recall@10 >= baseline", baseline={"e3": five}, e3=twenty).state == "failed"
    assert verdict("e3: recall@10 >= baseline", baseline={"e3": Scores({"a": 0.0})}, e3=twenty).state == "passed"


def test_a_line_that_is_too_wide_goes_on_below() -> None:
    lost = of(*[1] * 40, total=40, lost=12)
    text = verdict(
        "e3[query_type=multi_hop,difficulty=hard]: recall@5 >= 0.95",
        e3=Scores(lost.found, 40, 12, {key: {"query_type": "multi_hop", "difficulty": "hard"} for key in lost.found}),
    ).line()
    assert max(map(len, text.split("\n"))) <= 100
    assert " ".join(text.split()) == (
        "failed e3[query_type=multi_hop,difficulty=hard]: recall@5 >= 0.95 1.000 [0.91, 1.00] n=40 "
        "12 cases lost to a crash, so it cannot pass"
    )


def test_the_later_of_two_gates_on_the_same_aggregate_holds() -> None:
    texts = ["e3: recall@5 >= 0.5", "e3: p95(total_ms) <= 9", "e3: total_ms <= 8", "e3: recall@k >= 0.6"]
    found = read_gates(texts, 5, ["e3"], lambda _: {})
    assert [str(gate) for gate in found] == ["e3: recall@5 >= 0.6", "e3: p95(total_ms) <= 9", "e3: total_ms <= 8"]


def test_a_gate_that_a_later_one_replaces_is_named_with_it() -> None:
    texts = ["e3: recall@5 >= 0.75", "e3: recall@k >= 0.0", "e3: recall@5 <= 1", "e3: recall@5 >= e2"]
    assert replaced_gates(texts, 5) == [("e3: recall@5 >= 0.75", "e3: recall@5 >= 0")]
    known = [str(gate) for gate in read_gates(texts, 5, ["e2", "e3"], lambda _: {})]
    assert known == ["e3: recall@5 >= 0", "e3: recall@5 <= 1", "e3: recall@5 >= e2"]
    assert replaced_gates(["xfail e3: mrr >= 1 -- why", "e3: mrr >= 1"], 5) == [
        ("xfail e3: mrr >= 1 -- why", "e3: mrr >= 1")
    ]
    assert replaced_gates(["e3: mrr >= 1 else stop", "e3: mrr >= 1.0"], 5) == []


@pytest.mark.parametrize(
    ("text", "cannot"),
    [
        ("e3: recall@3 >= 0", True),
        ("e3: error_rate <= 1", True),
        ("e3: error_rate >= 0", True),
        ("e3: recall@3 >= e2 - 1", True),
        ("e3: recall@3 <= e2 + 1", True),
        ("e3: recall@3 > 0", False),
        ("e3: recall@3 < 1", False),
        ("e3: recall@3 <= 0", False),
        ("e3: recall@3 >= 1", False),
        ("e3: recall@3 >= e2", False),
        ("e3: recall@3 >= 0 @95%", False),
        ("e3: total_ms <= 1", False),
        ("xfail e3: recall@3 >= 0 -- why", False),
    ],
)
def test_a_gate_that_no_value_fails_is_known(text: str, cannot: bool) -> None:
    assert cannot_fail(parse_gate(text, 5)) == cannot


def test_a_cutoff_has_one_form() -> None:
    with pytest.raises(SettingsError, match=r"recall@03: write recall@3\."):
        read_gates(["e3: recall@03 >= 0"], 5, ["e3"], lambda _: {})


def test_importing_gates_is_cheap() -> None:
    code = "import sys, rag_harness.runs.gates; print([m for m in ('numpy', 'pydantic', 'pytest') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_comparison_says_how_many_cases_can_move() -> None:
    mine = replace(of(1.0, 0.0, 1.0), rows={"q0": 1, "q1": 2, "q2": 3})
    theirs = replace(of(1.0, 0.0, 0.0), rows={"q0": 1, "q1": 2, "q2": 4})
    assert verdict("t1: mrr@10 >= t2", t1=mine, t2=theirs).reason == (
        "of 3 cases, 1 can move: the rows of the others are equal"
    )
    differs = replace(theirs, rows={"q0": 5, "q1": 6, "q2": 7})
    assert verdict("t1: mrr@10 >= t2", t1=mine, t2=differs).reason == ""
    assert verdict("t1: mrr@10 >= t2", t1=mine, t2=of(1.0, 0.0, 0.0)).reason == ""
    # Equal rows have other times.
    assert verdict("t1: total_ms <= t2", t1=mine, t2=theirs).reason == ""


def test_only_cases_of_the_slice_are_counted_as_those_that_can_move() -> None:
    slices = {"q0": {"slice": "a"}, "q1": {"slice": "a"}, "q2": {"slice": "b"}}
    mine = replace(of(1.0, 0.0, 1.0), rows={"q0": 1, "q1": 2, "q2": 3}, slices=slices)
    theirs = replace(mine, rows={"q0": 1, "q1": 4, "q2": 3})
    assert verdict("t1[slice=a]: mrr@10 >= t2", t1=mine, t2=theirs).reason == (
        "of 2 cases, 1 can move: the rows of the others are equal"
    )


@pytest.mark.parametrize(
    "text", ["c1[turn>=3]: recall@5 >= 0.6", "c1[turn<2,part=fit]: mrr@10 > 0.5", "c1[x>-1.5]: hit@5 >= 0.1"]
)
def test_a_slice_may_have_a_limit_and_is_written_as_it_was_read(text: str) -> None:
    gate = parse_gate(text, 10)
    assert str(gate) == text
    assert parse_gate(str(gate), 10) == gate


@pytest.mark.parametrize(
    ("label", "where", "is_there"),
    [
        ("3", ">=3", True),
        ("10", ">=3", True),
        ("2", ">=3", False),
        ("2.5", "<3", True),
        ("3", "<3", False),
        ("-1", "<=-1", True),
        ("three", ">=3", False),
        ("", ">=3", False),
        (None, ">=3", False),
        (">=3", ">=3", True),
        ("٣", ">=3", False),
        ("nan", "<3", False),
    ],
)
def test_a_limit_is_held_against_numbers_alone(label: str | None, where: str, is_there: bool) -> None:
    labels = {} if label is None else {"turn": label}
    assert is_in(labels, {"turn": where}) is is_there
    assert is_in({**labels, "part": "fit"}, {"turn": where, "part": "report"}) is False


@pytest.mark.parametrize("measure", ["token_f1", "abstention_rate", "faithfulness"])
def test_a_gate_on_answers_without_an_experiment_is_told_to_name_one(measure: str) -> None:
    with pytest.raises(SettingsError, match=f"without an experiment and a colon .* write 'EXPERIMENT: {measure}"):
        read_gates([f"{measure} >= 0.5"], 5, ["golden", "e3"], lambda _: {})
    with pytest.raises(SettingsError, match=f"': golden has no answers, so no {measure}"):
        read_gates([f"golden: {measure} >= 0.5"], 5, ["golden", "e3"], lambda _: {})
    assert read_gates(["evidence_recall >= 0.5", "recall@5 >= 0.5"], 5, ["golden"], lambda _: {})


# What stands beside a gate's value never contradicts its verdict.


def said(text: str, state: str, **fields: Any) -> dict[str, Any]:
    usual = {"value": 0.711, "threshold": 0.5, "interval": [0.47, 0.89], "n": 18, "unit": "share"}
    return {"gate": text, "state": state, **usual, **fields}


def sure(text: str, state: str, **fields: Any) -> str:
    return how_sure(said(text, state, **fields), parse_gate(text, 10))


AT = {"confidence": 0.95}


@pytest.mark.parametrize(
    ("text", "state", "fields", "shown"),
    [
        ("e1: recall@3 >= 0.5", "passed", {}, "[0.47, 0.89]"),
        ("e1: recall@3 >= 0.5 @95%", "passed", {"bounds": [0.502, 0.87], **AT}, "at least 0.502"),
        ("e1: recall@3 >= 0.5 @95%", "failed", {"bounds": [0.1, 0.4996], **AT}, "at most 0.4996"),
        ("e1: recall@3 >= 0.5 @95%", "undecided", {"bounds": [0.45, None], **AT}, "between 0.450 and …"),
        ("e1: error_rate <= 0.5 @95%", "passed", {"bounds": [0.1, 0.4], **AT}, "at most 0.400"),
        ("e1: error_rate <= 0.5 @95%", "failed", {"bounds": [0.6, 0.9], **AT}, "at least 0.600"),
        # Failed because a case was lost, though its bounds would have passed it.
        ("e1: recall@3 >= 0.5 @95%", "failed", {"bounds": [0.502, 0.87], **AT}, "at least 0.502"),
        ("e1: recall@3 >= e2 + 0.01 @95%", "passed", {"bounds": [0.02, 0.3], **AT}, "difference at least 0.020"),
        ("e1: recall@3 >= e2", "passed", {"interval": [-0.1, 0.3]}, "difference [-0.10, +0.30]"),
        # An early stop decides by other means than bounds: the interval could contradict it.
        ("e1: recall@3 >= 0.5 @95%", "passed", {"bounds": None, **AT}, ""),
        ("e1: recall@3 >= 0.5", "not judged", {"interval": None}, ""),
    ],
)
def test_what_stands_beside_a_value(text: str, state: str, fields: dict[str, Any], shown: str) -> None:
    assert sure(text, state, **fields) == shown


LOST = "1 case lost to a crash, so it cannot pass"
STATED = "at least 0.502 for cases like these"


@pytest.mark.parametrize(
    ("reason", "rest"),
    [
        (STATED, ""),
        (f"{STATED}, {LOST}", LOST),
        (f"{STATED}, by the paired t test", "by the paired t test"),
        (f"expected: e1 is small; {STATED}, {LOST}", f"expected: e1 is small; {LOST}"),
        ("at least 0.502 for these 40 cases", "these 40 cases"),
        ("the oldest answer is 40 days old", "the oldest answer is 40 days old"),
    ],
)
def test_bounds_are_said_once(reason: str, rest: str) -> None:
    text = "e1: recall@3 >= 0.5 @95%"
    found = said(text, "passed", bounds=[0.502, 0.87], reason=reason, **AT)
    assert beside_bounds(found, parse_gate(text, 10)) == rest
    assert beside_bounds({**found, "bounds": None}, parse_gate(text, 10)) == reason
    assert beside_bounds(found, None) == reason


@pytest.mark.parametrize(
    ("right", "shown"),
    [
        ("baseline - 0.1", "0.270 against 0.420 (baseline 0.520 - 0.1)"),
        ("e2 + 0.1", "0.270 against 0.420 (e2 0.320 + 0.1)"),
        ("baseline", "0.270 against 0.420"),
    ],
)
def test_a_limit_with_an_offset_says_what_it_is_of(right: str, shown: str) -> None:
    text = f"e1: token_f1 >= {right}"
    interval = (-0.56, 0.27)
    verdict = Verdict(parse_gate(text, 10), "failed", 0.27, 0.42, 8, interval)
    assert " ".join(verdict.line().split()) == f"failed {text} {shown}, difference [-0.56, +0.27] n=8"
    (line,) = gates_state([verdict_json(verdict)], {}, [], 10).failed
    assert line.figures == f"{shown}, difference [-0.56, +0.27]"


def test_what_is_drawn_are_the_bounds_where_they_decide() -> None:
    assert decisive_ends(said("", "passed", bounds=[0.502, None])) == (0.502, float("inf"))
    assert decisive_ends(said("", "passed", bounds=[None, 0.4])) == (float("-inf"), 0.4)
    assert decisive_ends(said("", "passed")) == (0.47, 0.89)


@given(st.integers(1, 60), st.integers(0, 60), st.sampled_from([0.3, 0.5, 0.8]), st.sampled_from([">=", "<="]))
def test_the_figure_of_a_brief_agrees_with_its_verdict(n: int, hits: int, threshold: float, op: str) -> None:
    values = [float(place < hits) for place in range(n)]
    tables = {"e1": table(kinds(any=n), hit_at_5=values)}
    verdict: Verdict = judge(parse_gate(f"e1: hit@5 {op} {threshold} @95%", 10), tables)
    line = gates_state([verdict_json(verdict)], tables, [], 10)
    shown = [*line.failed, *line.undecided, *([line.closest] if line.closest else [])]
    if not shown:
        return  # the interval has an open end, so that no gate is the closest
    figures = shown[0].figures
    assert "[" not in figures
    assert "[" not in verdict.line()
    assert not re.search("at (least|most)|between| to ", shown[0].reason)
    if one := re.search(r"at (least|most) ([\d.]+)$", figures):
        is_above = one[1] == "least"
        assert verdict.state == ("passed" if is_above == (op == ">=") else "failed")
        assert float(one[2]) >= threshold if is_above else float(one[2]) <= threshold
    elif both := re.search(r"between ([\d.]+) and ([\d.]+)$", figures):
        assert verdict.state == "undecided"
        assert float(both[1]) <= threshold <= float(both[2])
    else:
        assert verdict.bounds is None
