"""What a row says of its failure, or of its wrong answer: what was expected, and what came."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.rows import failed_row, make_row

BY_TRUTH = {"correct": False, "correct_by": "ground_truth"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ""),
        ({"correct": True, "correct_by": "ground_truth"}, ""),
        ({**BY_TRUTH, "ground_truth": "45 days"}, "wrong: expected '45 days'; found '30 days [Source 1].'"),
        ({**BY_TRUTH, "ground_truth": "vrátit do\n45 dní"}, "wrong: expected 'vrátit do 45 dní'; found '30 days [S"),
        ({**BY_TRUTH, "ground_truth": " "}, "wrong: expected an answer; found '30 days [Source 1].'"),
        (
            {"correct": False, "correct_by": "declined", "answerable": False, "ground_truth": ""},
            "wrong: expected to decline, for the documents do not answer it; found '30 days [Source 1].'",
        ),
        (
            {"correct": False, "correct_by": "expectations", "ground_truth": ""},
            "wrong: expected what the question's expectations say; found '30 days [Source 1].'",
        ),
        (
            {"correct": False, "correct_by": "expectations"},
            "wrong: expected what the question's expectations say, and '30 days'; found '30 days [Source 1].'",
        ),
    ],
)
def test_why(changes: dict[str, Any], said: str) -> None:
    why = make_row(**changes).why
    assert why.startswith(said)
    assert bool(why) == bool(said)


def test_a_failure_is_said_first() -> None:
    assert failed_row().why == "generate: ModelCallError: 503"


def test_a_long_answer_is_cut() -> None:
    assert len(make_row(**BY_TRUTH, llm_answer="word " * 4000).why) < 700
