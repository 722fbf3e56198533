"""Asks a script that an interpreter with RAGAS runs: ``RAG_RAGAS_PYTHON`` names it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

_PYTHON = os.environ.get("RAG_RAGAS_PYTHON", "")
needs_ragas = pytest.mark.skipif(
    not _PYTHON,
    reason="RAG_RAGAS_PYTHON names no interpreter with ragas: see tests/unit/evaluation/judges/ragas_oracle.py",
)


def said_by_ragas(script: Path, cases: Any) -> list[list[float | None]]:
    """Return what a script prints about cases: the scores of each."""
    done = subprocess.run(
        [_PYTHON, str(script)],
        input=json.dumps(cases),
        env={**os.environ, "RAGAS_DO_NOT_TRACK": "true"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    scores: list[list[float | None]] = json.loads(done.stdout.splitlines()[-1])
    return scores
