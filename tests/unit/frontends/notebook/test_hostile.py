"""An evaluation in a notebook of data that tries to be more than texts: what a cell shows is text and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rag_harness
from rag_harness import Query
from tests.hostile import WHOLE
from tests.unit.core.escaping.active import in_markdown, on_terminal, read_html, unseen

SHOWN = {"div", "table", "caption", "thead", "tbody", "tr", "th", "td", "ul", "li"}
TEXTS = WHOLE[::4]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAG_PROFILE", "mock")


def answer(query: Query) -> str:
    if int(query.query_id[1:]) % 3 == 0:
        raise ValueError(query.text)
    return query.text


def test_nothing_acts_in_what_a_cell_shows() -> None:
    asked = [
        {"query_id": f"q{number}", "query": text, "ground_truth": text, "metadata": {"topic": text}}
        for number, text in enumerate(TEXTS)
    ]
    came = rag_harness.evaluate(answer, asked, measures=["token_f1", "abstention_rate"])
    assert came.notes, "errors are told"
    page = read_html(came._repr_html_())
    assert set(page.tags) <= SHOWN
    assert page.others == []
    assert set(page.attributes) <= {"scope=col", "scope=row"}
    assert unseen(came._repr_html_()) == []
    acting = in_markdown(came._repr_markdown_())
    assert [each for each in acting if not each.startswith("style=text-align")] == []
    assert on_terminal(repr(came)) == []
    checked = came.check("token_f1 >= 0.99", "error_rate <= 0.01")
    assert on_terminal(repr(checked)) == []
    records = {each["query_id"]: each for each in came.frame("records")}
    assert [records[each["query_id"]]["query"] for each in asked] == [text.strip() for text in TEXTS], (
        "kept as they are"
    )


@pytest.mark.parametrize("where", ["query_id", "a key", "expect", "conversation"])
def test_a_question_that_is_refused_is_named_in_words_that_do_nothing(where: str) -> None:
    for text in TEXTS:
        given: dict[str, dict[str, Any]] = {
            "query_id": {"query_id": text},
            "a key": {text: 1},
            "expect": {"expect": [{text: text}]},
            "conversation": {"conversation": text, "turn": text},
        }
        said = ""
        try:
            rag_harness.evaluate(answer, [{"query_id": "q1", "query": "How long?", **given[where]}])
        except rag_harness.core.errors.RagHarnessError as refused:
            said = str(refused)
        assert unseen(said) == []
