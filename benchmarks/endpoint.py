"""What a trial through an endpoint costs beside the same call by aiohttp alone; and finding documents of contexts.

    python benchmarks/endpoint.py [--calls 1000] [--rows output/e3_filtered_rag.jsonl]

The server (a process of its own on 127.0.0.1) answers at once. One call at a time, in turn: aiohttp and ``json.loads``;
a trial up to its row, which is not yet on disk. Then 64 at once. Passages of five sentences are cut from the textbook
and the retail pages, and looked up by their text alone; so are the chunks of a run over the retail pages, whose rows
``--rows`` names, as they are and without their marks.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import aiohttp
from mock_server import running

from rag_harness.core.settings.loading import load_settings
from rag_harness.core.types import Case, Query
from rag_harness.data.documents import read_knowledge_base
from rag_harness.pipelines.endpoint.answer import Context, Placing
from rag_harness.pipelines.experiments import experiment
from rag_harness.pipelines.parts import RunParts
from rag_harness.records.row import rows_in
from rag_harness.retrieval.chunking.markdown import unmarked
from rag_harness.runs.trial import Trial, run_trial

ROOT = Path(__file__).parents[1]
IN_FLIGHT = 64
Call = Callable[[int], Awaitable[None]]


async def compare(folder: Path, url: str, calls: int) -> None:
    """Print both, one at a time and at once."""
    settings = load_settings(
        {"endpoint": ["stub.toml"], "kb_dir": "kb", "profile": "mock", "mode": "live", "concurrency": IN_FLIGHT},
        rootdir=folder,
    )
    parts = RunParts(settings)
    pipeline = experiment("stub", parts).pipeline

    async def trial(number: int) -> None:
        case = Case(Query(f"q{number}", f"question {number}"))
        outcome = await run_trial(Trial("stub", case), pipeline, settings, "")
        assert outcome.row is not None
        assert outcome.row.ok, outcome.row.why

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def bare(number: int) -> None:
            async with session.post(url, data=json.dumps({"query": f"question {number}"}).encode()) as response:
                assert json.loads(await response.read())["choices"]

        show("one at a time", *await alternating(bare, trial, calls))
        show(f"{IN_FLIGHT} at once, processor", await at_once(bare, calls), await at_once(trial, calls))
    await parts.endpoints.aclose()


async def alternating(bare: Call, trial: Call, calls: int) -> tuple[float, float]:
    """Return the median milliseconds of each, called in turn."""
    took: tuple[list[float], list[float]] = [], []
    for number in range(calls + 50):
        for call, times in zip((bare, trial), took, strict=True):
            started = perf_counter()
            await call(number)
            times.append((perf_counter() - started) * 1000)
    return median(took[0][50:]), median(took[1][50:])


async def at_once(call: Call, calls: int) -> float:
    """Return milliseconds of this process's processor a call, 64 in flight."""
    window = asyncio.Semaphore(IN_FLIGHT)

    async def one(number: int) -> None:
        async with window:
            await call(number)

    started = process_time()
    await asyncio.gather(*map(one, range(calls)))
    return (process_time() - started) * 1000 / calls


def show(what: str, bare: float, trial: float) -> None:
    print(f"{what:<24}aiohttp {bare:6.2f} ms   trial {trial:6.2f} ms   above it {trial - bare:6.2f} ms")


def placing(name: str) -> None:
    """Print what it takes to find passages of the documents of ``name`` by their texts."""
    documents = read_knowledge_base(ROOT / "data" / name)
    passages = [
        (document.doc_id, document.text[at : at + 400])
        for document in documents
        for at in range(0, len(document.text), 4000)
    ]
    places, started = Placing(lambda: documents, "stub"), perf_counter()
    places.place([Context("one two three four five six")])
    built, started = (perf_counter() - started) * 1000, perf_counter()
    found = [places.place([Context(text)]).hits[0].chunk.doc_id for _, text in passages]
    each = (perf_counter() - started) * 1000 / len(passages)
    right = sum(doc_id == own for doc_id, (own, _) in zip(found, passages, strict=True))
    wrong = sum(bool(doc_id) and doc_id != own for doc_id, (own, _) in zip(found, passages, strict=True))
    words = sum(len(document.text.split()) for document in documents)
    print(
        f"{name}: {len(documents)} documents, {words:,} words: index {built:.0f} ms, a passage {each:.2f} ms; "
        f"{right} of {len(passages)} found, {wrong} in another document"
    )


def of_run(rows: Path) -> None:
    """Print how many chunks of a run are found in their documents by their texts."""
    documents = read_knowledge_base(ROOT / "data" / "kb")
    places = Placing(lambda: documents, "stub")
    chunks = [chunk for row in rows_in(rows) for chunk in row.retrieved_chunks]
    for what, shown in (("as they are", str), ("without marks", unmarked)):
        hits = places.place([Context(shown(chunk.text)) for chunk in chunks]).hits
        right = sum(hit.chunk.doc_id == chunk.metadata.filename for hit, chunk in zip(hits, chunks, strict=True))
        print(f"{rows.name}, chunks {what}: {right} of {len(chunks)} found in their document")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--rows", type=Path, metavar="FILE", help="rows of a run over the retail pages")
    asked = parser.parse_args()
    os.environ.pop("RAG_PROFILE", None)
    with tempfile.TemporaryDirectory() as folder, running(0.0) as server:
        url = f"{server.url}/chat/completions"
        spec = f'url = "{url}"\n[read]\nanswer = "choices[0].message.content"\n'
        Path(folder, "stub.toml").write_text(spec)
        asyncio.run(compare(Path(folder), url, asked.calls))
    for name in ("kb", "textbook"):
        placing(name)
    if asked.rows:
        of_run(asked.rows)


if __name__ == "__main__":
    main()
