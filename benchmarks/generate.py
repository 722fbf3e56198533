"""How long a plan, its pages and their questions take, and how much memory; and pages of a server that is slow.

    python benchmarks/generate.py [--pages 100 1000 10000] [--repetitions 3]

Each size runs in a process of its own: its peak is its own. 100 pages are made of each domain that is shipped, twice,
and must be equal to a byte, and their questions too. The server answers after 500 ms, 32 calls in flight: limit
ceil(pages / 32) x 0.5 s; beside it a loop of the openai SDK that asks for the same pages and writes each answer to a
file, and nothing else.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import resource
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from math import ceil
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from mock_server import running

from rag_harness.authoring.kb.embedded_planner import domain_names, planned
from rag_harness.authoring.kb.page_writing import AskedWriter, EmbeddedWriter, Generated, Writer, generate
from rag_harness.authoring.kb.plan import Brief, Plan, PlanRequest, briefs, plan_text, read_plan
from rag_harness.authoring.kb.validation import validate
from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.drafts import json_lines, rows
from rag_harness.authoring.questions.generator import make_questions
from rag_harness.authoring.questions.planned_facts import planned_facts
from rag_harness.core.settings import Settings
from rag_harness.data.documents import read_folder
from rag_harness.models.prompts import load_prompts
from rag_harness.pipelines.parts import RunParts

DELAY, IN_FLIGHT, PAGES = 0.5, 32, 100
SERVER = str(Path(__file__).parent / "writer_server.py")
WANTED = {"direct": 120, "multi_hop": 40, "negative": 40}


class Timed:
    """Says what each of some steps took: seconds, and seconds of a core."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.total = 0.0

    def __call__(self, name: str, step: Callable[[], Any]) -> Any:
        began, worked = perf_counter(), process_time()
        result = step()
        took, worked = perf_counter() - began, process_time() - worked
        self.total += took
        self.said.append(f"{name} {took:.1f} s ({worked:.1f} of a core)")
        return result


def written(plan: Plan, text: bytes, folder: Path, writer: Writer, at_once: int) -> Generated:
    return asyncio.run(generate(plan, text, folder, writer, at_once, False))


def made(pages: int, folder: Path, timed: Timed, checks: bool, domain: str = "retail support") -> dict[str, bytes]:
    """Plan, write, check and ask; return the files by name."""
    plan: Plan = timed("plan", lambda: planned(PlanRequest(domain, pages)))
    text = plan_text(plan).encode()
    found: Generated = timed("generate", lambda: written(plan, text, folder, EmbeddedWriter(), 8))
    assert len(found.written) == pages
    if checks:
        report = timed("validate", lambda: validate(folder))
        errors = [finding for finding in report.findings if finding.level == "error"]
        timed.said.append(f"{len(errors)} errors" if errors else "valid")
    if pages <= PAGES:
        collection = timed("read", lambda: DocumentCollection(read_folder(folder).documents, planned_facts(folder)))
        drafts = timed("queries", lambda: make_questions(collection, WANTED).drafts)
        kinds = Counter(draft.kind for draft in drafts)
        timed.said.append(f"{len(drafts)} questions ({', '.join(f'{count} {kind}' for kind, count in kinds.items())})")
        (folder / "queries.jsonl").write_text(json_lines(rows(drafts, collection)))
    return {file.name: file.read_bytes() for file in folder.iterdir()} if pages <= PAGES else {}


def measured(pages: int, domain: str, said: multiprocessing.Queue[str]) -> None:
    """Put a line on what so many pages of a domain took."""
    timed = Timed()
    with tempfile.TemporaryDirectory() as folder:
        first = made(pages, Path(folder) / "one", timed, pages > PAGES, domain)
        if pages <= PAGES:
            assert made(pages, Path(folder) / "two", Timed(), False, domain) == first
            timed.said.append("the second time the same bytes")
            report = Timed()
            findings = report(
                "validate", lambda: validate(Path(folder) / "two", Path(folder) / "two" / "queries.jsonl")
            ).findings
            faults = sum(finding.level == "error" for finding in findings)
            timed.said.append(f"{report.said[0]}: {faults} errors" if faults else f"{report.said[0]}: valid")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    said.put(f"{domain}, {pages} pages: {timed.total:.1f} s: {', '.join(timed.said)}; peak {peak:.0f} MB")


async def bare(url: str, plan: Plan, folder: Path) -> None:
    """Ask for every page with the SDK, 32 at once, and write what comes."""
    from openai import AsyncOpenAI

    client, turn, prompts = (
        AsyncOpenAI(base_url=url, api_key="none"),
        asyncio.Semaphore(IN_FLIGHT),
        load_prompts("pages"),
    )

    async def one(brief: Brief) -> None:
        told = prompts.messages(json.dumps(brief.told(), indent=1))
        messages: Any = [{"role": each.role, "content": each.content} for each in told]
        async with turn:
            stream = await client.chat.completions.create(model="mock", messages=messages, stream=True)
            text = "".join([part.choices[0].delta.content or "" async for part in stream if part.choices])
        (folder / brief.page.filename).write_text(text)

    await asyncio.gather(*map(one, briefs(plan)))
    await client.close()


async def ours(url: str, plan: Plan, folder: Path) -> None:
    """Have every page written, checked and kept, through the way of the command."""
    settings = Settings(
        mode="live", writer_model="mock", writer_base_url=url, max_output_tokens=4096, concurrency=IN_FLIGHT
    )
    parts = RunParts(settings)
    writer = AskedWriter(parts.chat("writer"), parts.prompts("pages"))
    try:
        made = await generate(plan, plan_text(plan).encode(), folder / "kb", writer, 2 * settings.concurrency, False)
    finally:
        await parts.endpoints.aclose()
    assert len(made.written) == len(plan.pages), made


def asked(way: Callable[[str, Plan, Path], Any], url: str, file: str, said: multiprocessing.Queue[float]) -> None:
    """Put what one way took, without its imports."""
    import openai  # noqa: F401
    from openai import AsyncOpenAI  # noqa: F401

    plan, _ = read_plan(Path(file))
    assert plan is not None
    with tempfile.TemporaryDirectory() as folder:
        began = perf_counter()
        asyncio.run(way(url, plan, Path(folder)))
        said.put(perf_counter() - began)


def server_lines(repetitions: int) -> Iterator[str]:
    """Yield what pages of a slow server took, each way in turn."""
    limit = ceil(PAGES / IN_FLIGHT) * DELAY
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "structure.json"
        file.write_text(plan_text(planned(PlanRequest("retail support", PAGES))))
        os.environ["PLAN"] = str(file)
        with running(DELAY, SERVER) as server:
            for _ in range(repetitions):
                for way in (bare, ours):
                    server.reset()
                    took = in_process(asked, way, server.url, str(file))
                    calls = server.stats()
                    yield (
                        f"{way.__name__:5} {took:.2f} s, {took / limit:.2f} x the limit of {limit:.1f} s, "
                        f"{calls['calls']:.0f} calls, {calls['most']:.0f} in flight"
                    )


def in_process(task: Callable[..., None], *given: Any) -> Any:
    """Return what ``task`` puts into its queue, in a process of its own."""
    spawn = multiprocessing.get_context("spawn")
    said = spawn.Queue()
    process = spawn.Process(target=task, args=(*given, said))
    process.start()
    process.join()
    return said.get(timeout=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, nargs="*", default=[100, 1_000, 10_000])
    parser.add_argument("--repetitions", type=int, default=3, help="of the server; 0 leaves it out")
    chosen = parser.parse_args()
    for pages in chosen.pages:
        for domain in domain_names() if pages <= PAGES else ("retail support",):
            print(in_process(measured, pages, domain), flush=True)
    for line in server_lines(chosen.repetitions):
        print(line, flush=True)


if __name__ == "__main__":
    main()
