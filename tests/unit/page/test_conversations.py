"""Conversations in the payload: what was said stands once, and a run without turns has nothing of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rag_harness.page.payload import payload_of
from tests.browser.talks import FAILED, LAMP, Talks
from tests.unit.page.runs import read, write_study


def blocks_of(output: Path) -> dict[str, Any]:
    return {name: json.loads(json.dumps(value)) for name, value in payload_of(read(output)).blocks()}


def trial(blocks: dict[str, Any], experiment: str, turn: int) -> dict[str, Any]:
    """Return the details of a turn of the first conversation."""
    index = blocks["index"]
    (suite,) = [n for n, each in enumerate(index["experiments"]) if each["id"] == experiment]
    (place,) = [
        n
        for n, case in enumerate(index["trials"]["case"])
        if index["trials"]["experiment"][n] == suite and index["cases"][case]["id"] == f"{LAMP}#{turn}"
    ]
    found: dict[str, Any] = blocks["trials-0"][place]
    return found


def said(blocks: dict[str, Any], experiment: str, turn: int) -> list[tuple[Any, ...]]:
    texts = blocks["texts"]["strings"]
    return [(who, texts[n], *failed) for who, n, *failed in trial(blocks, experiment, turn).get("history", [])]


def test_a_turn_has_what_its_pipeline_was_told_and_texts_stand_once(tmp_path: Path) -> None:
    blocks = blocks_of(Talks().write(tmp_path))
    assert said(blocks, "c1", 2) == [("user", "How long may I return a lamp?"), ("assistant", "Reference 1.")]
    assert said(blocks, "c1-own", 2)[1] == ("assistant", "Reply to lamp#1. [Source 1]")
    assert said(blocks, "c1-own", 1) == []
    assert FAILED == ("c2-own", "lamp#2")
    assert said(blocks, "c2-own", 3)[3] == ("assistant", "Sorry, something went wrong. Please ask again.", 1)
    assert len(blocks["texts"]["strings"]) == len(set(blocks["texts"]["strings"]))


def test_inputs_do_not_repeat_the_conversation(tmp_path: Path) -> None:
    blocks = blocks_of(Talks().write(tmp_path))
    assert all("inputs" not in each for each in blocks["trials-0"])
    assert [each.get("history") for each in blocks["index"]["experiments"]] == ["gold", "own", "own"]


def test_a_run_without_turns_says_nothing_of_them(tmp_path: Path) -> None:
    blocks = blocks_of(write_study(tmp_path))
    assert not any("history" in each for each in [*blocks["index"]["experiments"], *blocks["trials-0"]])
