"""An option that was removed answers with its successor, wherever it is still written."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from rag_harness.core.errors import SettingsError
from rag_harness.core.settings import Settings, env_name, options
from rag_harness.core.settings.loading import load_settings
from rag_harness.core.settings.removed import RARE_TABLE, REMOVED
from rag_harness.frontends.pytest_plugin.options import hint_at_misspelt


@pytest.mark.parametrize("name", REMOVED)
def test_each_removed_option_names_its_successor(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    flag = f"--rag-{name.replace('_', '-')}"
    with pytest.raises(SettingsError, match=rf"^{flag} is no option any more: .+\.$"):
        hint_at_misspelt(None, ["-q", f"{flag}=1"])  # type: ignore[arg-type]
    monkeypatch.setenv(f"RAG_{name.upper()}", "1")
    with pytest.raises(SettingsError) as caught:
        load_settings(rootdir=tmp_path)
    assert str(caught.value) == f"The variable RAG_{name.upper()} is no option any more: {REMOVED[name]}."
    assert name not in {each.name for each in options()}


def test_a_variable_of_dotenv_is_refused_too(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("RAG_SEED=3\n")
    with pytest.raises(SettingsError, match="The variable RAG_SEED is no option any more"):
        load_settings(rootdir=tmp_path)


def rare() -> list[str]:
    return [each.name for each in fields(Settings) if each.metadata.get("place") == RARE_TABLE]


def test_what_the_rare_table_takes_are_the_options_that_name_it() -> None:
    assert sorted(rare()) == sorted(name for name, instead in REMOVED.items() if RARE_TABLE in instead)


def test_the_rare_table_sets_them(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.rag_harness.settings]\nmax_answer = 9\nqdrant_cluster = ["shards=6"]\nprecision = "bfloat16"\n'
    )
    found = load_settings(rootdir=tmp_path)
    assert (found.max_answer, found.qdrant_cluster, found.precision) == (9, ("shards=6",), "bfloat16")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "max_anser = 9",
            "pyproject.toml, [tool.rag_harness.settings]: Unknown key 'max_anser'. Did you mean 'max_answer'?",
        ),
        ("top_k = 9", "pyproject.toml, [tool.rag_harness.settings]: Unknown key 'top_k'."),
        (
            "max_answer = 0",
            "max_answer is 0: Input should be greater than or equal to 1. "
            "Set it in [tool.rag_harness.settings] of pyproject.toml.",
        ),
    ],
)
def test_what_the_rare_table_cannot_have_is_refused(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.rag_harness.settings]\n{line}\n")
    with pytest.raises(SettingsError) as caught:
        load_settings(rootdir=tmp_path)
    assert str(caught.value).startswith(said)


def test_no_variable_sets_what_a_table_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    placed = [each for each in fields(Settings) if "place" in each.metadata]
    assert {env_name(each).removeprefix("RAG_").lower() for each in placed} <= REMOVED.keys()
