"""An experiment made ready by three Ray workers, one of which is killed after four seconds, or stops.

    python benchmarks/ray_prepare_lost.py

Needs the extra ``ray``. Prints when the other two were ready, and how many texts the models of all had been asked
for by then: what is made twice is what the lost one had made and not told.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

from ray_prepare import Field, cluster_of, let_import
from side_by_side import show

AFTER, WORKERS, CHUNKS = 4.0, 3, 4096


async def _lose(field: Field, by: signal.Signals) -> list[str]:
    async with field.workers(spread=True, shared=False) as workers:
        began = time.perf_counter()
        asked = [asyncio.ensure_future(worker.carry(field.carried())) for worker in workers]
        await asyncio.sleep(AFTER)
        lost = int((field.folder / "counts").read_text().split()[0])  # whichever process was first
        os.kill(lost, by)
        while sum(each.done() and each.exception() is None for each in asked) < WORKERS - 1:
            await asyncio.sleep(0.1)
        took, texts = time.perf_counter() - began, field.texts()
        if by == signal.SIGSTOP:
            os.kill(lost, signal.SIGCONT)
        await asyncio.gather(*asked, return_exceptions=True)
    return [by.name, f"{took:.1f}", f"{texts:,}"]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        let_import(Path(folder), 0.005)
        cluster = cluster_of(WORKERS)
        try:
            field = Field(Path(folder), argparse.Namespace(chunks=CHUNKS, nodes=WORKERS, real=False), cluster.address)
            rows = [_row(field, by) for by in (signal.SIGKILL, signal.SIGSTOP)]
        finally:
            cluster.shutdown()
    show(f"{CHUNKS + 200:,} texts, {WORKERS} workers", ["one is lost by", "others ready, s", "texts embedded"], rows)


def _row(field: Field, by: signal.Signals) -> Any:
    return asyncio.run(asyncio.wait_for(_lose(field, by), 300))


if __name__ == "__main__":
    main()
