"""The test of a folder without tests: an experiment answers each question."""

from __future__ import annotations

import pytest

from rag_harness.records.row import ExperimentResult


def test_answers(rag_result: ExperimentResult) -> None:
    """Make sure that the question was answered or declined; the gates say how good the answers are."""
    if not rag_result.ok:
        pytest.fail(rag_result.why, pytrace=False)
