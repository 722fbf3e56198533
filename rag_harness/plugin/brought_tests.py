"""The test that rag_harness brings to a folder without one: an experiment answers each question. See ``bring``."""

from __future__ import annotations

import pytest

from rag_harness.results.row import ExperimentResult


def test_answers(rag_result: ExperimentResult) -> None:
    """Make sure that the question was answered or declined; the gates say how good the answers are."""
    if not rag_result.ok:
        pytest.fail(rag_result.why, pytrace=False)
