"""Measures by turn, and their drift, against numbers worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rag_harness.stats import clopper_pearson
from rag_harness.tables.conversations import FEW_TURNS, by_turn, drift_of, has_turns, turns_said
from rag_harness.tables.suite_table import Clusters, SuiteTable
from rag_harness.tables.summary import write_summary_file
from tests.unit.tables.standing_tables import kinds, table


def talks(*conversations: list[float | None]) -> SuiteTable:
    labels = [
        {"conversation": f"c{n}", "turn": str(turn)}
        for n, each in enumerate(conversations)
        for turn in range(1, len(each) + 1)
    ]
    found = table(labels, token_f1=[value for each in conversations for value in each])
    found.alike = Clusters("conversation", [f"conversation {each['conversation']}" for each in labels], is_named=False)
    return found


FALLS = talks([1, 1, 0, 0, 0, 0], [1, 0, 0, 0, 1], [1, 1, 1], [0, None])


def test_each_turn_has_its_mean_and_the_interval_of_its_cases() -> None:
    found = by_turn(FALLS, "token_f1")
    assert [(each.turn, each.value, each.n) for each in found] == [
        ("1", 0.75, 4),
        ("2", pytest.approx(2 / 3), 3),
        ("3", pytest.approx(1 / 3), 3),
        ("4", 0.0, 2),
        ("5", 0.5, 2),
        ("6", 0.0, 1),
    ]
    assert found[0].interval == pytest.approx(clopper_pearson(3, 4), abs=1e-9)


def test_later_turns_share_the_last_place_with_conversations_as_clusters() -> None:
    found = by_turn(FALLS, "token_f1", FEW_TURNS)
    assert turns_said(found) == "1 .75  2 .67  3 .33  4+ .20"
    # Five cases of two conversations: an interval of five independent ones would be narrower.
    assert (found[-1].turn, found[-1].n) == ("4+", 5)
    low, high = found[-1].interval or (np.nan, np.nan)
    alone = clopper_pearson(1, 5)
    assert high - low > alone[1] - alone[0]


def test_turns_without_a_value_are_left_out() -> None:
    assert [each.turn for each in by_turn(talks([1, None], [1, None]), "token_f1")] == ["1"]


def test_drift_is_the_slope_within_conversations() -> None:
    found = drift_of(talks([1.0, 0.8], [0.9, 0.7], [0.5, 0.2]), "token_f1")
    assert found is not None
    assert found.slope == pytest.approx(-0.7 / 3)
    assert found.conversations == 3
    low, high = found.interval or (0, 0)
    assert low < found.slope < high
    assert drift_of(talks([1], [0]), "token_f1") is None


def test_a_suite_of_single_questions_has_no_turns() -> None:
    assert has_turns(FALLS)
    assert not has_turns(table(kinds(a=2), token_f1=[1, 0]))
    assert not has_turns(talks([1], [0]))


def test_summary_has_them(tmp_path: Path) -> None:
    write_summary_file(tmp_path, {"c1": FALLS}, [], {"profile": "mock", "mode": "auto"})
    said = json.loads((tmp_path / "summary.json").read_text())["c1"]
    assert said["by_turn"]["token_f1"]["1"] == {
        "value": 0.75,
        "n": 4,
        "interval": pytest.approx([*clopper_pearson(3, 4)], abs=1e-9),
    }
    assert said["drift"]["token_f1"]["conversations"] == 3
