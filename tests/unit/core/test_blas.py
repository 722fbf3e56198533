"""Threads of NumPy's matrix products."""

from __future__ import annotations

import pytest

from rag_harness.core import blas
from rag_harness.core.blas import one_thread


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What OpenBLAS was set to, the last one in force."""
    was_set = [8]
    monkeypatch.setattr(blas, "_controls", lambda: blas._Controls(lambda: was_set[-1], was_set.append))
    return was_set


def test_the_block_has_one_thread_and_what_was_set_comes_back_after_an_error(threads: list[int]) -> None:
    def fails() -> None:
        with one_thread():
            assert threads == [8, 1]
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert threads == [8, 1, 8]


def test_blocks_of_several_threads_end_in_any_order(threads: list[int]) -> None:
    first, second = one_thread(), one_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert threads[-1] == 1, "the second block is still open"
    second.__exit__(None, None, None)
    assert threads == [8, 1, 8]


def test_another_library_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas, "_controls", lambda: None)
    with one_thread():
        pass


def test_what_numpys_wheel_brings_is_found() -> None:
    found = blas._controls()
    if found is None:
        pytest.skip("NumPy of this environment has no OpenBLAS in its wheel")
    before = found.get()
    with one_thread():
        assert found.get() == 1
    assert found.get() == before
