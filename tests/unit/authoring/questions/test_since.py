"""Which questions a change affects, and why; what earlier runs retrieved for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rag_harness.authoring.questions.document_changes import DataChange, DatedQuestion, affected, retrieved_before
from rag_harness.authoring.questions.document_collection import DocumentCollection
from tests.unit.authoring.questions.shop import documents
from tests.unit.rows import make_chunk, make_row

ASKED = [
    DatedQuestion("q_seal", "What happens if the seal is broken?", frozenset({"returns.md"})),
    DatedQuestion("q_fish", "Is there live fish on the quay?", frozenset()),
]


@pytest.mark.parametrize(
    ("pages", "rows", "retrieved", "found"),
    [
        ((), (), {}, {}),
        ((), ("q_seal",), {}, {"q_seal": "own row"}),
        (("returns.md",), (), {}, {"q_seal": "gold"}),
        (("returns.md",), ("q_seal",), {}, {"q_seal": "own row"}),
        (("gone.md",), (), {"q_fish": {"gone.md", "club.md"}}, {"q_fish": "retrieved"}),
        (("gone.md",), (), {"q_fish": {"club.md"}}, {}),
        (("delivery.md",), (), {}, {"q_seal": "near", "q_fish": "near"}),
        (("club.md",), (), {}, {}),
    ],
)
def test_a_question_is_affected_for_one_reason(
    pages: tuple[str, ...], rows: tuple[str, ...], retrieved: dict[str, set[str]], found: dict[str, str]
) -> None:
    change = DataChange(frozenset(pages), frozenset(rows))
    assert affected(ASKED, change, retrieved, DocumentCollection(documents()), 3) == found


TURNS = [
    DatedQuestion("c1#1", "How long are island parcels held?", frozenset({"delivery.md"})),
    DatedQuestion("c1#2", "Do members pay a fee?", frozenset({"club.md"}), "c1#1"),
    DatedQuestion("c1#3", "When do club evenings end?", frozenset({"club.md"}), "c1#2"),
    DatedQuestion("c2#1", "When do club evenings end?", frozenset({"club.md"})),
]


def test_turns_behind_an_affected_one_stand_on_it() -> None:
    change = DataChange(frozenset({"delivery.md"}), frozenset())
    found = affected(TURNS, change, {}, DocumentCollection(documents()), 1)
    assert found == {"c1#1": "gold", "c1#2": "turns", "c1#3": "turns"}
    later = affected(TURNS, DataChange(frozenset(), frozenset({"c1#2"})), {}, None, 1)
    assert later == {"c1#2": "own row", "c1#3": "turns"}


def write(file: Path, *rows: dict[str, Any]) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(make_row(**row).line() for row in rows), encoding="utf-8")


def test_the_prompt_and_the_first_candidates_of_each_query_are_what_was_retrieved(tmp_path: Path) -> None:
    candidates = [{"chunk_id": f"{name}.md#0", "score": 1.0} for name in "abc"]
    write(
        tmp_path / "e3_filtered_rag.jsonl",
        {"retrieved_chunks": [make_chunk("p.md#chunk_0")], "candidates": candidates},
        {"query_id": "q2", "ranking": ("x.md", "y.md", "z.md"), "candidates": [], "retrieved_chunks": []},
    )
    found = retrieved_before(tmp_path, 2, lambda _: True)
    assert found == {"q1": {"a.md", "b.md", "p.md"}, "q2": {"x.md", "y.md"}}


def test_the_newest_row_of_each_experiment_counts_also_one_that_was_set_aside(tmp_path: Path) -> None:
    def row(name: str, day: int, **more: Any) -> dict[str, Any]:
        candidates = [{"chunk_id": f"{name}.md#0", "score": 1.0}]
        return {"candidates": candidates, "retrieved_chunks": [], "finished_at": f"2026-01-{day:02}", **more}

    write(tmp_path / "previous" / "e3-old.jsonl", row("old", 1), row("kept", 3, query_id="q2"))
    write(tmp_path / "e3.jsonl", row("new", 2), row("new", 2, query_id="q2"))
    write(tmp_path / "e2.jsonl", row("other", 1, experiment="e2"))
    with (tmp_path / "e2.jsonl").open("a") as stream:
        stream.write('{"torn\n[]\n')
    assert retrieved_before(tmp_path, 5, lambda _: True) == {"q1": {"new.md", "other.md"}, "q2": {"kept.md"}}
    assert retrieved_before(tmp_path, 5, lambda name: name == "e2") == {"q1": {"other.md"}}
    assert retrieved_before(tmp_path / "nothing", 5, lambda _: True) == {}
