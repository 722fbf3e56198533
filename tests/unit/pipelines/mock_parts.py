"""A small knowledge base and the parts of a run over it, on the mock profile."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.settings.loading import load_settings
from rag_harness.pipelines.parts import RunParts


def write_kb(root: Path, pages: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write ``pages``, take what would name others out of the environment, and return ``root``."""
    for name in ("KB_DIR", "DRY_RUN", "OVERWRITE", "RAG_PROFILE", "RAG_MODE"):
        monkeypatch.delenv(name, raising=False)
    (root / "kb").mkdir()
    for name, text in pages.items():
        (root / "kb" / name).write_text(text, encoding="utf-8")
    return root


def parts_of(root: Path, **changes: Any) -> RunParts:
    chosen = {"profile": "mock", "kb_dir": "kb", "top_k": 2, "candidates": 3, **changes}
    return RunParts(load_settings(chosen, rootdir=root))
