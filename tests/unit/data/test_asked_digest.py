"""The digest of questions: what their answers owe is no part of it, all else is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.files import file_digest
from rag_harness.data.datasets import asked_digest

ROOT = Path(__file__).parents[3]


def digest(folder: Path, content: str | bytes) -> str:
    file = folder / "queries.jsonl"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return asked_digest(file)


@pytest.mark.parametrize(
    "line",
    [
        '{"query_id": "q1", "query": "a", "expect": [{"contains": "}, {\\"x"}]}',
        '{"query_id": "q1", "expect": [], "query": "a"}',
        '{"expect": [{"max_words": 3}], "query_id": "q1", "query": "a"}',
        '{"query_id": "q1", "expect": 1, "query": "a", "expect": 2}',
        '{"query_id": "q1", "query": "a", "tools": [{"name": "price"}]}',
        '{"expect": [],  "tools": [], "query_id": "q1", "query": "a"}',
        '{"tools": [] , "expect": [1], "query_id": "q1", "tools": 3, "query": "a"}',
        '{"query_id": "q1", "tools": [], "expect": [], "query": "a"}',
    ],
)
def test_a_line_counts_as_if_it_had_none(tmp_path: Path, line: str) -> None:
    plain = digest(tmp_path, '{"query_id": "q1", "query": "a"}\n{"b": 1}\n')
    assert plain == file_digest(tmp_path / "queries.jsonl")
    assert digest(tmp_path, f'{line}\n{{"b": 1}}\n') == plain


def test_turns_are_looked_at_too(tmp_path: Path) -> None:
    plain = digest(tmp_path, '{"conversation": "c", "turns": [{"query": "a"}, {"query": "b"}]}')
    line = (
        '{"conversation": "c", "turns": [{"query": "a", "expect": [{}]}, {"expect": [], "query": "b"}], "expect": []}'
    )
    assert digest(tmp_path, line) == plain


@pytest.mark.parametrize(
    "line",
    [
        '{"query": "what do I \\"expect\\"?"}',
        '{"query": "a", "metadata": {"expect": 1}}',
        '{"query": "a" "expect": 1}',
        '["expect"]',
        '{"query": "a", "turns": {"expect": 1}}',
        b'{"query": "\xff", "expect": 1}',
        '{"turns": ["expect", 3',
        '"expect"',
        '{"turns": ' + "[" * 100_000 + '"expect"',
    ],
)
def test_whatever_else_stands_there_counts(tmp_path: Path, line: str | bytes) -> None:
    digest(tmp_path, line)
    assert asked_digest(tmp_path / "queries.jsonl") == file_digest(tmp_path / "queries.jsonl")


values = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
members = st.dictionaries(st.text().filter(lambda key: key not in ("expect", "tools", "turns")), values, max_size=4)


@given(members, values, st.integers(0, 4), st.integers(0, 4))
def test_adding_it_to_any_line_changes_nothing(
    members: dict[str, object], owed: object, place: int, other: int
) -> None:
    import tempfile

    items = list(members.items())
    items.insert(place, ("expect", owed))
    items.insert(other, ("tools", owed))
    with tempfile.TemporaryDirectory() as folder:
        plain = digest(Path(folder), json.dumps(members))
        assert digest(Path(folder), json.dumps(dict(items))) == plain
        more = json.dumps({**members, "other": owed})
        assert digest(Path(folder), more) != plain or more == json.dumps(members)


def test_the_questions_that_ship_are_those_of_before_they_owed_anything() -> None:
    assert asked_digest(ROOT / "data" / "kb" / "queries.jsonl") == "89b23f79180a1ac0"
