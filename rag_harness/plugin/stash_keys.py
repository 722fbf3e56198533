"""The keys under which the plugin stores its objects on config and items; ``activation`` makes the objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from rag_harness.measures.golden_run import RetrievalResult
    from rag_harness.plugin.own_expectations import OwnExpectations
    from rag_harness.plugin.recorder import Recorder
    from rag_harness.plugin.session import RagSession
    from rag_harness.plugin.shipped import NotRun, Shipped
    from rag_harness.plugin.trials import TrialRunner
    from rag_harness.types import TrialId

SESSION: pytest.StashKey[RagSession] = pytest.StashKey()
TRIALS: pytest.StashKey[TrialRunner] = pytest.StashKey()
OWED: pytest.StashKey[OwnExpectations] = pytest.StashKey()
RECORDER: pytest.StashKey[Recorder] = pytest.StashKey()
SHIPPED: pytest.StashKey[Shipped] = pytest.StashKey()
NOT_RUN: pytest.StashKey[tuple[TrialId, NotRun]] = pytest.StashKey()
REFUSED: pytest.StashKey[str] = pytest.StashKey()
CAUSES_DUE: pytest.StashKey[bool] = pytest.StashKey()
RETRIEVAL: pytest.StashKey[RetrievalResult] = pytest.StashKey()
