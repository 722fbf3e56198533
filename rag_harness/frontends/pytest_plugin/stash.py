"""The keys under which the plugin keeps its objects on pytest's config, items and reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from rag_harness.core.types import TrialId
    from rag_harness.frontends.pytest_plugin.collection import ExperimentExpectations
    from rag_harness.frontends.pytest_plugin.recorder import Recorder
    from rag_harness.frontends.pytest_plugin.session import RagSession
    from rag_harness.frontends.pytest_plugin.trial_report import NotRun, RunAgainOn, TrialResult
    from rag_harness.frontends.pytest_plugin.trials import TrialRunner
    from rag_harness.models.recording.cassettes import Cassettes
    from rag_harness.models.recording.scrubbing import Scrub
    from rag_harness.records.golden_result import RetrievalResult


# On config.

SESSION: pytest.StashKey[RagSession] = pytest.StashKey()
"""The state of the run. It is there once the suite has used the plugin; the next two are there then, too."""
TRIALS: pytest.StashKey[TrialRunner] = pytest.StashKey()
OWED: pytest.StashKey[ExperimentExpectations] = pytest.StashKey()
RECORDER: pytest.StashKey[Recorder] = pytest.StashKey()
"""Likewise, in the process that writes."""
CAUSES_DUE: pytest.StashKey[bool] = pytest.StashKey()
"""Whether causes are worked out after the verdict: calls go on until then."""
RUN_ALONE: pytest.StashKey[set[str]] = pytest.StashKey()
"""In the controller: the tests that are run alone, because one of them has killed its worker."""
APPS_ARE_RECORDED: pytest.StashKey[bool] = pytest.StashKey()
"""Whether HTTP libraries are patched for pipelines of a user's own."""
SET_UP: pytest.StashKey[dict[Any, str]] = pytest.StashKey()
"""The oldest recordings that fixtures were set up from, by fixture."""
OWN_CASSETTES: pytest.StashKey[dict[Scrub | None, Cassettes]] = pytest.StashKey()
"""The recordings of the user's own calls, by what cleans them."""

# On an item.

RESULT: pytest.StashKey[TrialResult] = pytest.StashKey()
NOT_RUN: pytest.StashKey[tuple[TrialId, NotRun]] = pytest.StashKey()
REFUSED: pytest.StashKey[str] = pytest.StashKey()
"""Why its suite can answer nothing more."""
RETRIEVAL: pytest.StashKey[RetrievalResult] = pytest.StashKey()
FAILED: pytest.StashKey[bool] = pytest.StashKey()
"""Whether the test has failed on a result: if it begins again, a plugin runs it again."""
RUN_AGAIN: pytest.StashKey[RunAgainOn] = pytest.StashKey()

# On a report.

CARRIED = "rag_trial"
"""The attribute with what the report carries; ``trial_report.py`` puts it on and takes it off."""
WORKERS_LEFT_OUT: pytest.StashKey[str] = pytest.StashKey()
"""What to say of workers that were left out."""
