"""A value is made once, also when several threads ask at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from time import sleep

import pytest

from rag_harness.core.concurrency import Lazy


def test_it_is_made_when_it_is_first_asked_for_and_never_again() -> None:
    made: list[int] = []

    def make() -> int:
        made.append(1)
        return len(made)

    value = Lazy(make)
    before = value.made
    assert (before, value.get(), value.get(), value.made) == (None, 1, 1, 1)


def test_none_is_a_value_too() -> None:
    made: list[int] = []
    value = Lazy(lambda: made.append(1))
    assert (value.get(), value.get()) == (None, None)
    assert made == [1]


def test_threads_that_ask_at_once_get_the_same() -> None:
    def slow() -> object:
        sleep(0.02)
        return object()

    value = Lazy(slow)
    with ThreadPoolExecutor(8) as threads:
        assert len({id(found.result()) for found in [threads.submit(value.get) for _ in range(8)]}) == 1


def test_what_could_not_be_made_is_tried_again() -> None:
    tries: list[int] = []

    def second_time() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise ValueError("not yet")
        return "made"

    value = Lazy(second_time)
    with pytest.raises(ValueError, match="not yet"):
        value.get()
    assert value.made is None
    assert value.get() == "made"
