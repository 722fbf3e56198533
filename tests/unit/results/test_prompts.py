"""Prompts beside the rows: once each, by content, and whole after a kill."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rag_harness.core.errors import CriticalError
from rag_harness.core.types import Message
from rag_harness.records.files import PromptFiles

ASKED = [Message("system", "Be brief."), Message("user", "Größe? \ud800")]


def read_prompt(output: Path, digest: str) -> list[Message]:
    said = json.loads((output / "prompts" / f"{digest}.json").read_text(encoding="ascii"))
    return [Message(message["role"], message["content"]) for message in said]


def test_a_prompt_is_kept_once_and_reads_back(tmp_path: Path) -> None:
    digest = PromptFiles(tmp_path).keep(ASKED)
    assert PromptFiles(tmp_path).keep(ASKED) == digest
    assert [file.name for file in (tmp_path / "prompts").iterdir()] == [f"{digest}.json"]
    assert read_prompt(tmp_path, digest) == ASKED
    assert PromptFiles(tmp_path).keep([*ASKED, Message("user", "And?")]) != digest


def test_what_a_kill_tore_is_written_again(tmp_path: Path) -> None:
    digest = PromptFiles(tmp_path).keep(ASKED)
    file = tmp_path / "prompts" / f"{digest}.json"
    file.write_bytes(file.read_bytes()[:20])
    PromptFiles(tmp_path).keep(ASKED)
    assert read_prompt(tmp_path, digest) == ASKED


def test_no_messages_are_no_prompt(tmp_path: Path) -> None:
    assert PromptFiles(tmp_path).keep([]) == ""
    assert not (tmp_path / "prompts").exists()


def test_a_folder_that_cannot_be_written_stops_the_run(tmp_path: Path) -> None:
    (tmp_path / "prompts").write_text("a file")
    with pytest.raises(CriticalError, match="cannot be kept"):
        PromptFiles(tmp_path).keep(ASKED)
