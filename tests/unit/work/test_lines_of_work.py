"""Lines about long work: the first one soon, none twice, and the longer it takes the fewer."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rag_harness.core.progress import LinesOfWork


class Clock:
    """Ends after the last text; ``pauses`` are the seconds that were waited."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts, self.pauses, self.at = list(texts), list[float](), 0.0

    def wait(self, seconds: float) -> bool:
        self.pauses.append(seconds)
        self.at += seconds
        return len(self.pauses) > len(self.texts)

    def text(self) -> str:
        return self.texts[len(self.pauses) - 1]


def said(texts: Sequence[str]) -> tuple[list[tuple[float, str]], list[float]]:
    clock, found = Clock(texts), list[tuple[float, str]]()
    lines = LinesOfWork(clock.text, lambda text: found.append((clock.at, text)))
    lines._ended = clock  # type: ignore[assignment]
    lines._lines()
    return found, clock.pauses


def test_the_time_between_lines_doubles() -> None:
    found, pauses = said([f"embedding {n}/9" for n in range(9)])
    assert [at for at, _ in found] == [2, 4, 8, 16, 32, 62, 92, 122]
    assert pauses == [1, 1, 2, 4, 8, 16, 30, 30, 30, 30]


def test_no_line_is_said_twice() -> None:
    found, _ = said(["reading", *["embedding 9 chunks: starting"] * 50, "embedding 1/9"])
    assert [text for _, text in found] == ["embedding 9 chunks: starting", "embedding 1/9"]
    found, _ = said([f"embedding 1/9, 0:{n} left" for n in range(20, 9, -1)])
    assert len(found) == 1, "less time left is no news"


def test_short_work_is_not_said_and_later_work_is_said_soon() -> None:
    found, pauses = said(["", "short", "", "", "a", "b", "c", "", "d", "e"])
    assert [text for _, text in found] == ["b", "c", "e"]
    assert pauses[-2:] == [1, 2]


@pytest.mark.parametrize("text", ["", "work"])
def test_it_ends_with_the_block_at_once(text: str) -> None:
    with LinesOfWork(lambda: text, lambda _: None) as none:
        assert none is None
