"""Threads of NumPy's matrix products."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from rag_harness.core import blas
from rag_harness.core.blas import one_thread


def threads() -> list[int]:
    """Return how many threads each library of matrix products takes now."""
    return [each["num_threads"] for each in ThreadpoolController().select(user_api="blas").info()]


@pytest.fixture(autouse=True)
def _is_loaded() -> None:
    np.ones((2, 2)) @ np.ones((2, 2))
    blas._controller.cache_clear()


def test_the_block_has_one_thread_and_what_was_set_comes_back_after_an_error() -> None:
    before = threads()

    def fails() -> None:
        with one_thread():
            assert set(threads()) <= {1}
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert threads() == before


def test_blocks_of_several_threads_end_in_any_order() -> None:
    before = threads()
    first, second = one_thread(), one_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert set(threads()) <= {1}, "the second block is still open"
    second.__exit__(None, None, None)
    assert threads() == before
