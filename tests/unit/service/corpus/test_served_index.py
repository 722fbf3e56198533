"""A service opens the index that was evaluated, or says why it does not."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core import package
from rag_harness.core.errors import RegistryError, SettingsError
from rag_harness.core.registry import registered
from tests.unit.service.corpus.corpora import DEFAULT, PAGES, check_finds, found, opened, write_pages

POINTS = """
OPENED = []


class Points:
    def __init__(self):
        self.of = {}

    def add(self, ids, vectors):
        self.of.update(zip(ids, vectors))

    def remove(self, ids):
        for each in ids:
            self.of.pop(each, None)

    def nearest(self, vector, limit):
        return sorted(((float(row @ vector), each) for each, row in self.of.items()), reverse=True)[:limit]

    def ids(self):
        return set(self.of)

    def vectors(self, ids):
        return {each: self.of[each] for each in ids if each in self.of}

    def tidy(self):
        pass

    def close(self):
        pass


def open_points(settings, folder, name):
    OPENED.append(name)
    return Points()
"""
Own = Callable[[str], None]


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Own]:
    """Write the module of the index ``mine``, and register it."""
    there = package.entry_points_by()

    def points(*, group: str, **more: Any) -> Any:
        mine = EntryPoint("mine", "own_index:create", "rag_harness.indexes")
        return [mine] if group == "rag_harness.indexes" else there(group=group, **more)

    def written(text: str) -> None:
        (tmp_path / "own_index.py").write_text(f"def create(parts): ...\n{text}")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "own_index", raising=False)
        monkeypatch.setattr(package, "entry_points_by", lambda: points)
        registered.cache_clear()

    yield written
    monkeypatch.undo()
    registered.cache_clear()


def serve(root: Path, **changes: Any) -> None:
    async def scenario() -> None:
        async with opened(root, write_pages(root / "kb"), **changes) as corpora:
            collection = corpora.get(DEFAULT)
            check_finds(collection, PAGES)
            assert (await found(collection, "Is a zip mended?"))[0] == "warranty.md"
            (document,) = [each for each in collection.documents() if each.name == "warranty.md"]
            await collection.delete(document.doc_id)
            assert "warranty.md" not in await found(collection, "Is a zip mended?")

    asyncio.run(scenario())


def test_an_index_of_ones_own_that_can_change_is_served(tmp_path: Path, own: Own) -> None:
    own(POINTS)
    serve(tmp_path, index="mine")
    import own_index  # type: ignore[import-not-found]

    assert len(own_index.OPENED) == 1


def test_one_that_cannot_change_is_refused_with_the_reason(tmp_path: Path, own: Own) -> None:
    own("")
    with pytest.raises(SettingsError, match=r"own_index has no open_points\(settings, folder, name\)"):
        serve(tmp_path, index="mine")


def test_an_index_that_is_not_there_is_told_its_nearest(tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match=r"Unknown index .qdrnt.\. Did you mean 'qdrant'"):
        serve(tmp_path, index="qdrnt")


def test_a_graph_that_was_evaluated_is_not_served_as_an_exact_search(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="qdrant_graph searches by a graph, and a service compares every"):
        serve(tmp_path, mode="live", qdrant_url="http://127.0.0.1:1", qdrant_graph=["m=16"])
