"""Preparation of experiments beside tests that need nothing of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Event
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rag_harness.core.errors import PrerequisiteError
from rag_harness.core.progress import report
from rag_harness.core.protocols import Experiment
from rag_harness.core.types import GOLDEN, TrialId
from rag_harness.frontends.pytest_plugin import collection
from rag_harness.frontends.pytest_plugin.collection import golden_first
from rag_harness.frontends.pytest_plugin.preparation import Preparation

OURS = {"pipeline": ("rag_harness.studies.retail",)}


def experiment(name: str, prepare: Callable[[Sequence[Any]], None] | None = None, own: bool = False) -> Experiment:
    code = {"pipeline": ("mine",)} if own else OURS
    return Experiment(name, cast("Any", None), code=code, prepare=prepare)


class Prepared:
    """Prepares when it may, and counts."""

    def __init__(self, error: Exception | None = None) -> None:
        self.may, self.begun, self.ended, self.error = Event(), Event(), 0, error

    def __call__(self, _: Sequence[Any]) -> None:
        self.begun.set()
        assert self.may.wait(30)
        report("embedding", 1, 2, "chunks")
        self.ended += 1
        if self.error:
            raise self.error


@pytest.fixture
def preparation() -> Preparation:
    session = SimpleNamespace(parts=SimpleNamespace(), experiments=SimpleNamespace(queries=lambda _: ()))
    return Preparation(cast("Any", session), cast("Any", SimpleNamespace(is_inline=False)))


WORDS = experiment(GOLDEN)


def test_tests_that_search_by_words_go_on_beside_it(preparation: Preparation) -> None:
    vectors = Prepared()
    e3 = experiment("e3", vectors)
    assert not preparation.is_ready(e3, WORDS)
    assert preparation.is_under_way
    preparation.make_sure(WORDS)  # waits for nothing
    vectors.may.set()
    preparation.make_sure(e3)
    assert vectors.ended == 1
    assert preparation.is_ready(e3, WORDS)
    assert not preparation.is_under_way


@pytest.mark.parametrize(
    "current", [experiment("e2", lambda _: None), experiment("mine", own=True)], ids=lambda e: e.id
)
def test_beside_a_test_with_an_index_or_of_a_users_own_nothing_is_prepared(
    preparation: Preparation, current: Experiment
) -> None:
    vectors = Prepared()
    assert preparation.is_ready(experiment("e3", vectors), current)
    assert not vectors.begun.is_set()


def test_a_users_own_test_waits_until_it_is_over(preparation: Preparation) -> None:
    vectors = Prepared()
    assert not preparation.is_ready(experiment("e3", vectors), WORDS)
    vectors.may.set()
    preparation.make_sure(experiment("mine", own=True))
    assert vectors.ended == 1


def test_its_error_is_raised_to_its_own_test_and_to_no_other(preparation: Preparation) -> None:
    vectors = Prepared(PrerequisiteError("no model"))
    e3 = experiment("e3", vectors)
    assert not preparation.is_ready(e3, WORDS)
    vectors.may.set()
    preparation.make_sure(WORDS)
    assert not preparation.is_ready(e3, WORDS)
    with pytest.raises(PrerequisiteError, match="no model"):
        preparation.make_sure(e3)


def test_at_the_end_of_the_run_it_ends_with_the_batch_that_is_computed(preparation: Preparation) -> None:
    vectors = Prepared()
    assert not preparation.is_ready(experiment("e3", vectors), WORDS)
    assert vectors.begun.wait(30)
    preparation._is_over = True
    vectors.may.set()
    preparation.close()
    assert not vectors.ended
    assert not preparation.is_under_way


# The golden suite comes first where it searches by words.


@dataclass(eq=False)
class Test:
    """A test of a file, and the experiment that it asks; empty for none."""

    __test__ = False
    path: str
    experiment: str


@pytest.mark.parametrize(
    ("retriever", "tests", "wanted"),
    [
        ("bm25", "a:e3 a:e3 b:golden b:golden", "b:golden b:golden a:e3 a:e3"),
        ("dense", "a:e3 b:golden", "a:e3 b:golden"),
        ("bm25", "z: a:e3 b: c:golden", "z: c:golden a:e3 b:"),
        ("bm25", "a:e3 a:golden b:golden", "b:golden a:e3 a:golden"),
        ("bm25", "a:golden b:e3", "a:golden b:e3"),
        ("bm25", "a:golden b:", "a:golden b:"),
    ],
)
def test_whole_files_move(retriever: str, tests: str, wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    items = [Test(file, experiment) for each in tests.split() for file, _, experiment in [each.partition(":")]]
    asked = {item: TrialId(item.experiment, "q") for item in items if item.experiment}
    monkeypatch.setattr(collection, "trial_id_of", asked.get)
    golden_first(cast("Any", SimpleNamespace(settings=SimpleNamespace(retriever=retriever))), cast("Any", items))
    assert " ".join(f"{item.path}:{item.experiment}" for item in items) == wanted
