"""A server that takes documents in and removes them until it is killed, and writes down what it has answered."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from pathlib import Path

from rag_harness.service.corpus import intake
from tests.unit.service.corpus.corpora import opened

NAMES = ("a.md", "b.md", "c/d.md")
TENANT = "acme"
LONGEST_LIFE = 0.1
"""Seconds of processor time."""


def text_of(name: str, version: int) -> str:
    # Plainly English: loading what tells languages apart would take all of a server's life.
    parts = range(1 + version % 3)
    return "".join(f"# {name} {part}\n\nThis is version {version} of the part {part}.\n\n" for part in parts)


def change_until_killed(root: Path, notes: Path, seed: int) -> None:
    """Note ``begin <name> <version>`` before each change and ``done`` behind it; version 0 is a removal.

    SIGPROF kills the process at a random moment, as SIGKILL would: nobody handles it.
    """
    intake._NICE = 0  # beside busy processors it would be killed before it has done anything
    asyncio.run(_change(root, notes, random.Random(seed)))


async def _change(root: Path, notes: Path, chosen: random.Random) -> None:
    told = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    async with opened(root) as corpora:
        collection = await corpora.create(TENANT)
        there = {each.name: each.doc_id for each in collection.documents() if each.status == "ready"}
        os.write(told, b"open\n")
        # By the clock of its own processor time: on a busy machine, a moment of another's would come before any change.
        signal.setitimer(signal.ITIMER_PROF, chosen.uniform(0.001, LONGEST_LIFE))
        while True:
            name, version = chosen.choice(NAMES), chosen.randint(1, 10**6)
            if name in there and chosen.random() < 0.3:
                os.write(told, f"begin {name} 0\n".encode())
                await collection.delete(there.pop(name))
            else:
                os.write(told, f"begin {name} {version}\n".encode())
                there[name] = (await collection.ingest(name, text_of(name, version).encode())).doc_id
            os.write(told, b"done\n")


def what_may_be(notes: Path) -> dict[str, set[str]]:
    """Return the texts that each document may have, "" for none: the last one answered, and one that was under way."""
    may = {name: {""} for name in NAMES}
    last: tuple[str, str] | None = None
    for line in notes.read_text(encoding="utf-8").splitlines():
        word, *about = line.split()
        if word == "begin":
            last = about[0], text_of(about[0], int(about[1])) if about[1] != "0" else ""
            may[last[0]].add(last[1])
        elif word == "done" and last:
            may[last[0]] = {last[1]}
            last = None
        elif word == "open":
            # The start before has shown which of the two it was; the test writes that down.
            last = None
    return may
