"""Hooks that this plugin calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    from rag_harness.records.row import ExperimentResult


def pytest_rag_result(result: ExperimentResult, config: pytest.Config) -> None:
    """Called with each result as it arrives, once a trial, in the process that writes the files; under xdist too.

    Results of the golden suite come too. They have the experiment ``golden`` and no answer.

    Example, in a conftest.py::

        def pytest_rag_result(result, config):
            if result.status == "error":
                print(result.query_id, result.why)
    """
