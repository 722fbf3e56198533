"""A server on a small disk, in a process of its own: told how many documents to send, it says what became of them."""

from __future__ import annotations

import asyncio
from contextlib import redirect_stdout
from pathlib import Path

from rag_harness.core.errors import NoRoomError
from rag_harness.service.corpus import intake
from rag_harness.service.problems import ProblemError
from tests.unit.service.corpus.corpora import DEFAULT, found, names, opened

TEXT = "\n\n".join(f"## Part {n}\n\nSentence {n} has words of its own." for n in range(400))


async def scenario(root: Path, life: str, most: int) -> None:
    async with opened(root) as corpora:
        collection = corpora.get(DEFAULT)
        print("holds", *names(collection), flush=True)
        for number in range(most):
            try:
                await collection.ingest(f"{life}{number}.md", f"# {life}{number}\n\n{TEXT}".encode())
                print("took", f"{life}{number}.md", flush=True)
            except ProblemError as problem:
                print("refused", problem.status, flush=True)
                break
        print("found", len(await found(collection, "words")), flush=True)


def live(root: Path, life: str, most: int, told: Path) -> None:
    """Live once, and write into ``told`` what becomes of it."""
    intake._NICE = 0  # the test waits for it
    with told.open("w", encoding="utf-8") as said, redirect_stdout(said):
        try:
            asyncio.run(scenario(root, life, most))
        except NoRoomError as error:
            print("no room:", error, flush=True)
