"""Conversations that are drafted from a small shop's documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_harness.__main__ import main
from rag_harness.authoring.questions import DocumentCollection
from rag_harness.authoring.questions.conversing import make_conversations
from rag_harness.commands import FOUND
from rag_harness.dataset.queries import read_queries
from tests.unit.authoring.questions.shop import documents, folder


def test_a_follow_up_leaves_out_the_thing_and_its_question_that_stands_alone_names_it() -> None:
    found = make_conversations(DocumentCollection(documents()), 10)
    assert found.drafts
    for draft in found.drafts:
        first, *later = draft.turns
        assert first.text == first.alone.text
        assert later
        for turn in later:
            assert turn.left_out.split()[-1] not in turn.text
            assert turn.left_out.split()[-1] in turn.alone.text


def test_the_command_writes_lines_that_are_read_as_turns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = folder(tmp_path)
    assert main(["kb", "queries", str(made), "--conversations", "50"]) == FOUND
    cases = read_queries(made / "queries.jsonl", made)
    assert all(case.query.place for case in cases)
    assert all(case.standalone for case in cases if case.query.place["turn"] != "1")
    assert "Asked for 50 conversations; the text bears " in capsys.readouterr().out
