"""Under xdist: whole files to a worker, so that what a file makes once is made once; in the order of collection.

The plugin's own scheduler would take each parameter of a test for a trial, and hand them out apart from their file.
"""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler.loadscope import LoadScopeScheduling

MODELS = "tests/unit/models/", "tests/unit/evaluation/judges/encoder/"
"""One worker has all of these, for most of them import torch: 5 to 8 s in each process that does."""
STUDY = "tests/plugin/test_shipped.py"
OF_THE_STUDY = frozenset(
    f"tests/plugin/test_{name}.py"
    for name in ("brief", "comment", "pictures", "replayed_again", "shipped", "study_expectations", "study_snapshots")
)
"""One worker has all of these, for they look at one replay of the study: others would wait 10 s for it."""


def scope(nodeid: str) -> str:
    """Return what a test is handed out with."""
    file = nodeid.partition("::")[0]
    if file.startswith(MODELS):
        return MODELS[0]
    return STUDY if file in OF_THE_STUDY else file


class ByFile(LoadScopeScheduling):  # type: ignore[misc]
    """xdist's scheduling by scope, with a file as the scope."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        # xdist would begin with files of many tests, and end with the few that run whole suites and take longest.
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return scope(nodeid)
