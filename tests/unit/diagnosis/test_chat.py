"""What ``rag-harness explain`` prints of a turn: the chat so far, shortened, above why it failed."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from rag_harness.__main__ import main
from tests.browser.talks import Talks, hostile_talk, long_talk
from tests.unit.core.escaping.active import on_terminal


def explained(output: Path, trial: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["explain", str(output), trial, "--rows-only"]) == 0
    return capsys.readouterr().out


def test_the_chat_stands_above_the_cause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    Talks().write(tmp_path)
    trials = ("c2-own-lamp#4", "c1-lamp#3", "c2-own-lamp#2", "c1-own-rtl#3", "c1-lamp#1")
    assert "\n".join(f"$ explain {trial}\n{explained(tmp_path, trial, capsys)}" for trial in trials) == snapshot


def test_of_a_long_chat_the_last_turns_are_shown_and_the_others_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Talks(("c1",), long_talk()).write(tmp_path)
    lines = explained(tmp_path, "c1-long#100", capsys).splitlines()
    assert lines[0] == "before       93 turns that are not shown here"
    assert [line.split()[1] for line in lines if line.startswith("turn ")] == ["94", "95", "96", "97", "98", "99"]


def test_a_long_message_is_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Talks(("c1",), {"long": ["word " * 1000, "and?"]}).write(tmp_path)
    first, second, reply, *_ = explained(tmp_path, "c1-long#2", capsys).splitlines()
    assert first.startswith("turn 1       user: word")
    assert second.endswith("…")
    assert reply == "             reference reply: Reference 1."


def test_hostile_messages_do_nothing_to_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Talks(("c1-own",), hostile_talk()).write(tmp_path)
    for turn in range(1, 8):
        assert on_terminal(explained(tmp_path, f"c1-own-bad#{turn}", capsys)) == []
