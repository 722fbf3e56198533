"""Phrases of a suite that decline."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_harness.core.errors import SettingsError
from rag_harness.core.settings.loading import load_settings


def refusals(root: Path, written: str) -> tuple[str, ...]:
    (root / "pyproject.toml").write_text(f"[tool.rag_harness]\nrefusals = {written}\n", encoding="utf-8")
    return load_settings(rootdir=root).refusals


def test_a_suite_adds_its_phrases(tmp_path: Path) -> None:
    assert refusals(tmp_path, '["OUT_OF_SCOPE", "Sorry, chef"]') == ("OUT_OF_SCOPE", "Sorry, chef")
    assert load_settings(rootdir=tmp_path / "elsewhere").refusals == ()


@pytest.mark.parametrize("written", ['"OUT_OF_SCOPE"', "[1]", '["", "a b c"]', '["no"]', "{ a = 1 }"])
def test_what_is_no_list_of_phrases_is_refused(tmp_path: Path, written: str) -> None:
    with pytest.raises(SettingsError, match="refusals"):
        refusals(tmp_path, written)
