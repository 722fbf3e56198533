"""What is handed out in a block is noted, by part; what is handed out elsewhere is not."""

from __future__ import annotations

from rag_harness.core.files import json_digest
from rag_harness.core.registry import note, noting


def test_parts_note_themselves() -> None:
    with noting() as made:
        note("chat", "a.chat", temperature=0.3)
        note("index", "a.index", "a.store")
        note("chat", "a.recorded")
    assert made.of == {"temperature": 0.3}
    assert made.code == {"chat": {"a.chat", "a.recorded"}, "index": {"a.index", "a.store"}}


def test_outside_of_a_block_nothing_is_noted() -> None:
    note("chat", "a.chat", temperature=0.3)
    with noting() as made:
        pass
    note("chat", "a.chat", temperature=0.3)
    assert (made.of, made.code) == ({}, {})


def test_a_part_that_is_handed_out_otherwise_a_second_time_counts_twice() -> None:
    def made_with(*values: object) -> str:
        with noting() as made:
            for value in values:
                note("", temperature=value)
        return json_digest(made.of)

    assert made_with(0.3) == made_with(0.3, 0.3)
    assert len({made_with(0.3), made_with(0.7), made_with(0.3, 0.7), made_with(0.3, 0.7, 0.9)}) == 4
    assert made_with(0.3, 0.7) == made_with(0.3, 0.7, 0.3)
    assert made_with([1], [2]) == made_with([1], [2], [1])


def test_a_block_within_counts_for_itself() -> None:
    with noting() as outer:
        note("chat", "a.chat", x=1)
        with noting() as inner:
            note("words", "a.words", y=1)
        assert (outer.code, outer.of) == ({"chat": {"a.chat"}}, {"x": 1})
        inner.again()
    assert outer.code == {"chat": {"a.chat"}, "words": {"a.words"}}
    assert outer.of == {"x": 1, "y": 1}


def test_what_counted_twice_does_so_again() -> None:
    with noting() as inner:
        note("", y=1)
        note("", y=2)
    with noting() as outer:
        inner.again()
    assert json_digest(outer.of) == json_digest(inner.of) == json_digest({"y": [1, 2]})
