"""What is handed out in a block is noted, by part; what is handed out elsewhere is not."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from rag_harness.core.errors import PrerequisiteError, RegistryError
from rag_harness.core.files import json_digest
from rag_harness.core.registry import missing_package, model_name, note, noting, registered, resolve
from rag_harness.models.dry_run import MockEmbedder


@pytest.mark.parametrize(
    ("group", "names"),
    [
        ("embedders", {"sentence-transformers", "openai", "mock"}),
        ("indexes", {"qdrant"}),
        ("rerankers", {"cross-encoder", "late-interaction", "mock"}),
        ("chat", {"openai", "mock"}),
        ("measures", {"recall", "token_f1", "total_ms"}),
    ],
)
def test_built_ins_enter_by_the_common_door(group: str, names: set[str]) -> None:
    assert names <= set(registered(group))
    assert all(callable(resolve(group, name)) for name in names)


def test_resolved_part_is_the_registered_one() -> None:
    assert isinstance(resolve("embedders", "mock")(None), MockEmbedder)


def test_unknown_name_lists_what_there_is() -> None:
    with pytest.raises(RegistryError, match=r"Unknown index 'qdrnt'\. Did you mean 'qdrant'\? Known: .*qdrant"):
        resolve("indexes", "qdrnt")


def test_unknown_group_has_nothing() -> None:
    assert registered("nothing-of-that-kind") == {}


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("not_there_at_all.adapter", "pip install not_there_at_all"),
        ("torch.not_there", r"pip install 'pytest-rag-harness\[local\]'"),
    ],
)
def test_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch, module: str, said: str) -> None:
    def load(point: EntryPoint) -> None:
        raise ModuleNotFoundError(name=module)

    monkeypatch.setattr(EntryPoint, "load", load)
    with pytest.raises(PrerequisiteError, match=f"embedder 'mock' needs the package .*{said}"):
        resolve("embedders", "mock")


def test_missing_package_without_a_name() -> None:
    assert "needs the package 'something'" in missing_package("index 'x'", ImportError("something"))


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("openai:gpt-x", "gpt-x"),
        ("openai:org/llama:free", "org/llama:free"),
        ("org/llama:free", "org/llama:free"),
        ("gpt-x", "gpt-x"),
        ("openai/gpt-x", "openai/gpt-x"),
    ],
)
def test_name_of_the_adapter_is_not_the_models(model: str, name: str) -> None:
    assert model_name("chat", model) == name


def test_nothing_is_imported_before_it_is_asked_for() -> None:
    import subprocess
    import sys

    code = (
        "import sys; from rag_harness.core.registry import registered; registered('embedders');"
        "print([m for m in ('torch', 'openai', 'qdrant_client', 'qdrant_edge',"
        " 'rag_harness.models.embedders') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


# What is handed out in a block is noted, by part; what is handed out elsewhere is not.


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
