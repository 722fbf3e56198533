"""Files of the cache that somebody has made: each is as good as none, or says what any score may say."""

from __future__ import annotations

import zlib
from hashlib import blake2b
from pathlib import Path

import pytest

from rag_harness.core import cache
from rag_harness.core.cache import read_kept, write_kept
from rag_harness.runs.judging import _score

POISON = {
    "lists in lists": b"[" * 100_000,
    "objects in objects": b'{"a":' * 100_000,
    "a number of 5,000 digits": b"1" * 5_000,
    "no UTF-8": b"\xff",
    "nothing": b"",
}
NO_SCORE = [10**400, "1e999", "NaN", None, [], {}, "a number"]


def poisoned(file: Path, content: bytes) -> Path:
    packed = zlib.compress(content)
    file.write_bytes(blake2b(packed, digest_size=16).digest() + packed)
    return file


@pytest.mark.parametrize("content", POISON.values(), ids=POISON)
def test_what_cannot_be_read_is_as_good_as_none(tmp_path: Path, content: bytes) -> None:
    assert read_kept(poisoned(tmp_path / "a.kept", content)) is None


def test_a_small_file_that_holds_gigabytes_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_LARGEST", 1_000)
    assert read_kept(poisoned(tmp_path / "a.kept", b'"' + b"a" * 10_000 + b'"')) is None
    write_kept(tmp_path / "b.kept", {"a": "b" * 900})
    assert read_kept(tmp_path / "b.kept") == {"a": "b" * 900}


@pytest.mark.parametrize("value", NO_SCORE)
def test_what_is_no_number_is_no_score(value: object) -> None:
    found = _score([value, "", {}, False])
    assert found is None or (value is None and found.value is None)
    assert _score(value) is None
