"""Stores prompts as pieces: numbers of stored chunks, and the texts between them, once each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rag_harness.files.json_text import read_json
from rag_harness.page.payload.pool import Pool
from rag_harness.results.prompts import PROMPTS

PromptPieces = list[list[object]]
"""A list for each message: its role, then a number for each piece: n is text n of the pool, -n - 1 is chunk n."""


class Prompts:
    """Reads the prompts of a run and cuts them into pieces.

    Args:
        output: folder of the result files.
        texts: pool of the texts between chunks.
    """

    def __init__(self, output: Path, texts: Pool[str]) -> None:
        self._folder, self._texts = output / PROMPTS, texts

    def pieces(self, digest: str, chunks: Mapping[int, str]) -> PromptPieces | None:
        """Return a prompt; None where its file is missing. ``chunks`` are the row's, by their number in the pool."""
        try:
            # A path of ``pathlib`` takes longer to make than such a file to read.
            with open(f"{self._folder}/{digest}.json", "rb", buffering=0) as file:  # noqa: PTH123
                messages = read_json(file.read())
            return [[m["role"], *self._cut(m["content"], chunks)] for m in messages]
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _cut(self, text: str, chunks: Mapping[int, str]) -> list[int]:
        found = _places(text, chunks)
        pieces, done = list[int](), 0
        for start, end, number in found:
            if start > done:
                pieces.append(self._texts.number(text[done:start]))
            pieces.append(-number - 1)
            done = end
        if done < len(text):
            pieces.append(self._texts.number(text[done:]))
        return pieces


def _places(text: str, chunks: Mapping[int, str]) -> Sequence[tuple[int, int, int]]:
    """Return the positions of chunks in order, without overlaps."""
    every = sorted(
        (start, start + len(body), number)
        for number, body in chunks.items()
        if body and (start := text.find(body)) >= 0
    )
    kept: list[tuple[int, int, int]] = []
    for place in every:
        if not kept or place[0] >= kept[-1][1]:
            kept.append(place)
    return kept
