"""Replies unpacked piece by piece: what zlib gives, however they are cut, and no more than may be."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections import deque
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import ModelOutputError
from rag_harness.models.calls import Decompressor


def raw_deflate(content: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(content) + packer.flush()


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "": lambda content: content,
    "identity": lambda content: content,
    "gzip": gzip.compress,
    "X-GZIP ": gzip.compress,
    "deflate": zlib.compress,
    "Deflate": raw_deflate,
}


@given(
    st.sampled_from(sorted(PACKED)),
    st.binary(max_size=300)
    | st.builds(lambda each, n: each * n, st.binary(min_size=1, max_size=3), st.integers(0, 2**17)),
    st.lists(st.integers(0, 2000), max_size=5),
)
def test_what_was_packed_comes_back_however_it_is_cut(packing: str, content: bytes, cuts: list[int]) -> None:
    packed = PACKED[packing](content)
    places = [0, *sorted(min(cut, len(packed)) for cut in cuts), len(packed)]
    unpacked = Decompressor("somebody", packing)
    found = [piece for start, stop in pairwise(places) for piece in unpacked.feed(packed[start:stop])]
    assert b"".join(found) == content
    assert not packing.strip().lower().startswith(("g", "x", "d")) or all(len(piece) <= 2**16 for piece in found)


def test_a_bomb_goes_off_in_small_pieces_and_not_to_its_end() -> None:
    bomb = gzip.compress(b"a" * 60_000_000, 1)
    unpacked = Decompressor("The model", "gzip")
    tracemalloc.start()
    try:
        with pytest.raises(ModelOutputError, match="The model answered with more than 20 MB, and was cut off there"):
            deque(unpacked.feed(bomb), maxlen=1)
        assert tracemalloc.get_traced_memory()[1] < 3 * len(bomb)
    finally:
        tracemalloc.stop()


def test_what_is_packed_otherwise_is_refused() -> None:
    with pytest.raises(ModelOutputError, match=r"packed its answer with 'br'; gzip, deflate can be unpacked"):
        Decompressor("The model", "br")
    with pytest.raises(ValueError, match="not packed as its header says"):
        list(Decompressor("The model", "gzip").feed(b"no gzip at all"))
