"""What the terminal says of slices, in 79 columns."""

from __future__ import annotations

import numpy as np
import pytest

from rag_harness.core.errors import SettingsError
from rag_harness.tables.requested_measures import SliceAsked, check_slice_keys, measures_of, read_slices
from rag_harness.tables.standings import standing_lines
from rag_harness.tables.suite_table import SuiteTable
from tests.unit.tables.standing_tables import kinds, stand, table

LABELS = kinds(direct=30, rare=6)
RNG = np.random.default_rng(8)
BASE = RNG.uniform(0.3, 0.6, 36)


def study(**shifts: float) -> dict[str, SuiteTable]:
    return {
        name: table(LABELS, token_f1=(BASE + shift + RNG.normal(0, 0.05, 36)).tolist())
        for name, shift in shifts.items()
    }


WON = study(t1=0.0, t2=0.02, t3=0.3)


def lines(tables: dict[str, SuiteTable], *asked: str, data: dict[str, str] | None = None) -> list[str]:
    return standing_lines(stand(tables, *(asked or ("kind",)), data=data))


def test_a_winner_with_its_lead_and_how_many_tests_there_were() -> None:
    found = lines(WON)
    head = " ".join(found[:4])
    assert "a winner beats every other; p, the larger of t and permutation test" in head
    assert "by Holm over 6 tests: all pairs on all slices" in head
    place = next(n for n, line in enumerate(found) if line.startswith("kind=direct"))
    assert found[place - 1].split() == ["token_f1", "cases", "best"]
    each = stand(WON, "kind").found[0]
    assert each.interval is not None
    said = f"kind=direct     30  t3 {each.mean:.3f} [{each.interval.low:.3f}, {each.interval.high:.3f}]"
    assert found[place] == said
    cell = each.beaten[0].found
    assert cell is not None
    assert cell.interval is not None
    low, high = cell.interval
    text = " ".join(" ".join(found[place + 1 : place + 3]).split())
    assert text.startswith(f"t3 wins: {cell.difference:+.3f} [{low:+.3f}, {high:+.3f}] (p <0.001) over t2; over t1 +0.")


def test_few_cases_are_said_to_be_few() -> None:
    assert any(line.strip().startswith("only 6 cases, ") for line in lines(WON))
    assert sum("only" in line for line in lines(WON)) == 1


def test_without_a_winner_the_nearest_is_given_with_its_difference_and_the_others_by_name() -> None:
    text = " ".join(" ".join(lines(study(t1=0.0, t2=0.001, t3=0.002, t4=-0.3))).split())
    assert "no winner: no sure difference from t" in text
    assert "(p 1.000); nor from t" in text
    assert "; beats t4 +0." in text


def test_equals_are_named_and_all_equals_have_no_best() -> None:
    same = {name: table(LABELS, token_f1=BASE.tolist()) for name in ("t1", "t2")}
    found = lines(same)
    assert any(line.startswith("kind=direct     30  all 0.4") for line in found)
    assert "  no winner: all are the same on every case" in found
    near = table(LABELS, token_f1=(BASE + np.arange(36) % 2 * 0.01 - 0.006).tolist())
    text = " ".join(" ".join(lines({**same, "t3": near})).split())
    assert (
        "no winner: no sure difference from t3, +0.001 [-0.001, +0.003] (p 1.000); the same on every case: t2" in text
    )


def test_cases_without_a_value_are_counted_where_they_matter() -> None:
    some = [value + 0.3 if n % 3 else None for n, value in enumerate(BASE.tolist())]
    found = lines({"t1": table(LABELS, token_f1=some), "t2": WON["t1"]})
    assert any(line.startswith("kind=direct     30  t1 0.7") and line.endswith("] (n=20)") for line in found)
    assert "over t2 (n=20)" in " ".join(" ".join(found).split())


def test_who_has_no_value_is_named() -> None:
    none_of_rare = [*BASE[:30].tolist(), *[None] * 6]
    text = " ".join(" ".join(lines({**WON, "t4": table(LABELS, token_f1=none_of_rare)})).split())
    assert text.endswith("no value: t4")
    none_of_direct = [*[None] * 30, *BASE[30:].tolist()]
    text = " ".join(" ".join(lines({**WON, "t4": table(LABELS, token_f1=none_of_direct)})).split())
    assert "(p <0.001); no value: t4 kind=rare" in text


def test_two_data_have_a_table_each_with_its_name() -> None:
    tables = {**WON, "e1": WON["t1"], "e2": WON["t2"]}
    found = lines(tables, data={"e1": "retail", "e2": "retail"})
    heads = [line.split()[:3] for line in found if line.endswith("cases  best")]
    assert heads == [["token_f1", "on", "retail"], ["token_f1", "on", "queries"]]


def test_no_line_is_wider_than_a_terminal_whatever_it_is_called() -> None:
    name = "an experiment with a name " * 4
    labels = [{"kind": f"a value\nof two lines, and of many words {n % 2}" + "!" * 60} for n in range(36)]
    tables = {f"{name}{place}": table(labels, token_f1=(BASE + RNG.normal(0, 0.1, 36)).tolist()) for place in range(4)}
    found = lines(tables)
    assert max(map(len, found)) <= 79
    assert not any("\n" in line or "\N{NO-BREAK SPACE}" in line for line in found)


def test_nothing_to_compare_says_nothing() -> None:
    assert lines({"t1": WON["t1"]}) == []
    assert lines({name: table(LABELS, token_f1=[None] * 36) for name in ("t1", "t2")}, "kind: token_f1") == [
        "t1, t2: no token_f1 (36 of 36 have no ground truth)"
    ]


# The text of ``--rag-slices``.


def asked(*texts: str) -> list[tuple[str, str]]:
    return [(each.key, each.measure) for each in read_slices(texts, 7)]


def test_keys_stand_before_a_colon_and_measures_behind_it() -> None:
    assert asked("query_type") == [("query_type", "")]
    assert asked(" query_type ,topic: recall@5, hri ") == [
        ("query_type", "recall@5"),
        ("query_type", "hri"),
        ("topic", "recall@5"),
        ("topic", "hri"),
    ]
    assert asked("topic: recall@k", "topic: recall@7", "topic") == [("topic", "recall@7"), ("topic", "")]
    assert asked() == []


def test_measures_that_are_named_must_be_had() -> None:
    assert measures_of(["topic, kind: hri", "query_type", "kind: recall@k, hri"], 3) == ["hri", "recall@3"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "a name is empty in ''. Example: 'query_type, topic: recall@5'"),
        ("topic,", "a name is empty in 'topic,'"),
        (": recall@5", "a name is empty in ''"),
        ("topic:", "a name is empty in ''"),
        ("topic: recal@5", "--rag-slices=topic: recal@5: Unknown measure 'recal'. Did you mean 'recall'?"),
        ("topic: p95(total_ms)", "Unknown measure 'p95(total_ms)'"),
        ("topic: recall@5 >= 0.9", "needs a cutoff of 1 or more"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(SettingsError) as refused:
        read_slices([text], 10)
    assert said in str(refused.value)
    assert str(refused.value).startswith("--rag-slices=")


def test_a_key_that_no_case_has_is_refused_with_those_that_there_are() -> None:
    check_slice_keys([SliceAsked("topic")], {"topic", "query_type"})
    with pytest.raises(SettingsError) as refused:
        check_slice_keys([SliceAsked("query_typ")], {"topic", "query_type"})
    wanted = "Unknown slice key 'query_typ'. Did you mean 'query_type'? Known: query_type, topic."
    assert str(refused.value) == f"--rag-slices: {wanted}"
