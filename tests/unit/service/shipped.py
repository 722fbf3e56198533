"""The shipped study, replayed in process: its experiments answer with neither model nor network."""

from __future__ import annotations

from pathlib import Path

from rag_harness.core.settings.loading import load_settings
from rag_harness.pipelines.parts import RunParts

ROOT = Path(__file__).parents[3]


def shipped_parts(cache: Path) -> RunParts:
    """Return the parts of a run over the study; what it keeps goes to ``cache``."""
    chosen = {"profile": "embedded", "mode": "replay", "cache_dir": str(cache)}
    return RunParts(load_settings(chosen, rootdir=ROOT))
