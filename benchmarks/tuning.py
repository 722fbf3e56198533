"""How long does tuning of retrieval take, is each text embedded once, and is what it chooses better?

    python benchmarks/tuning.py retail FOLDER
    python benchmarks/tuning.py public BEIR FOLDER [documents]

``retail``: 120 retrieval configurations of the retail study (4 chunkers × 3 sizes × 2 retrievers × 5 top_k, none
reranks) and today's. First with nothing there: seconds, texts that were embedded, and how many of them twice. Then the
same command as a user waits for it, in a new process: with vectors and a new folder of results, and with both.

``public``: retrieval of a BEIR collection tuned by nDCG@10, against today's defaults at the same 10 chunks, on
questions that the race never saw, one race a seed. With a number, only so many documents drawn by a digest of their
ids, and the questions that have a relevant one among them: nDCG of a part says nothing of the whole collection's.

FOLDER keeps vectors and results: a second call finds the vectors there.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from rag_harness.__main__ import main as rag_harness
from rag_harness.data.beir import read_beir
from rag_harness.models.array_store import CachedEmbedder, Computed

ROOT = Path(__file__).parents[1]
RETAIL = """
objective = "evidence_recall"

[parameters]
chunker = ["sections", "headings", "fixed", "sliding"]
chunk_size = [256, 384, 512]
retriever = ["dense", "hybrid"]
top_k = [1, 3, 5, 8, 10]
rerank = [false]
"""
PUBLIC = """
objective = "ndcg@10"
seed = {seed}

[parameters]
retriever = ["dense", "bm25", "hybrid"]
dense_weight = {{ values = [0.2, 0.35, 0.5, 0.65, 0.8], if = {{ retriever = "hybrid" }} }}
rerank = [true, false]
candidates = {{ values = [20, 50], if = {{ rerank = true }} }}
"""
SEEDS = range(5)


def counted(arguments: Sequence[str]) -> Mapping[str, Counter[str]]:
    """Run a command in this process, and return by role how often each text was embedded."""
    asked: dict[str, Counter[str]] = {"document": Counter(), "query": Counter()}
    compute = CachedEmbedder.compute

    def noted(self: CachedEmbedder, texts: Sequence[str], role: str, with_tokens: bool) -> Computed:
        asked[role].update(texts)
        return compute(self, texts, role, with_tokens)

    CachedEmbedder.compute = noted  # type: ignore[method-assign]
    try:
        if status := rag_harness(list(arguments)):
            raise SystemExit(status)
    finally:
        CachedEmbedder.compute = compute  # type: ignore[method-assign]
    return asked


def timed(arguments: Sequence[str]) -> float:
    """Return the seconds that a command takes in a process of its own."""
    start = perf_counter()
    subprocess.run([sys.executable, "-m", "rag_harness", *arguments], check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
    return perf_counter() - start


def retail(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "retail.toml").write_text(RETAIL)
    # Without recordings, or the vectors of one chunker would be there from the start.
    places = [
        "--kb",
        str(ROOT / "data" / "kb"),
        "--cache-dir",
        str(folder / "cache"),
        "--project",
        str(folder / "no"),
    ]
    command = ["tune", str(folder / "retail.toml"), *places, "--output"]
    for name in ("first", "again"):
        shutil.rmtree(folder / name, ignore_errors=True)
    start = perf_counter()
    asked = counted([*command, str(folder / "first")])
    print(f"\nfirst run: {perf_counter() - start:.1f} s")
    for role, texts in asked.items():
        print(
            f"  {role}: {len(texts)} texts embedded, {sum(count > 1 for count in texts.values())} of them twice or more"
        )
    print(f"vectors there, new results: {timed([*command, str(folder / 'again')]):.1f} s (goal: at most 60 s)")
    print(f"vectors and results there: {timed([*command, str(folder / 'again')]):.1f} s")


def part_of(source: Path, target: Path, documents: int) -> None:
    """Write a part of a BEIR collection: so many documents, and the questions with a relevant one among them."""
    data = read_beir(source)
    drawn = sorted(data.documents, key=lambda each: sha256(each.doc_id.encode()).digest())[: documents or None]
    kept = {each.doc_id for each in drawn}
    qrels = {query: {doc: gain for doc, gain in of.items() if doc in kept} for query, of in data.qrels.items()}
    asked = [each for each in data.queries if any(gain > 0 for gain in qrels[each.query_id].values())]
    (target / "qrels").mkdir(parents=True, exist_ok=True)
    _write(target / "corpus.jsonl", [{"_id": each.doc_id, "title": "", "text": each.text} for each in drawn])
    _write(target / "queries.jsonl", [{"_id": each.query_id, "text": each.text} for each in asked])
    lines = [f"{each.query_id}\t{doc}\t{gain}\n" for each in asked for doc, gain in qrels[each.query_id].items()]
    (target / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines))
    print(
        f"{source.name}: {len(drawn)} of {len(data.documents)} documents, {len(asked)} of {len(data.queries)} questions"
    )


def _write(file: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


def public(source: Path, folder: Path, documents: int = 0) -> None:
    if not source.exists():
        print(f"skipped: {source} is not there")
        return
    part_of(source, folder / "part", documents)
    # The defaults of today give 5 chunks, so by nDCG@10 they would lose to whatever gives 10.
    (folder / "pytest.ini").write_text("[pytest]\nrag_top_k = 10\n")
    for seed in SEEDS:
        (folder / "space.toml").write_text(PUBLIC.format(seed=seed))
        output = folder / f"output-{seed}"
        shutil.rmtree(output, ignore_errors=True)
        places = ["--dataset", f"beir:{folder / 'part'}", "--cache-dir", str(folder / "cache"), "--output", str(output)]
        command = [sys.executable, "-m", "rag_harness", "tune", str(folder / "space.toml"), *places]
        start = perf_counter()
        said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if said.returncode:
            raise SystemExit(said.stdout + said.stderr)
        print(
            f"seed {seed}, {perf_counter() - start:.0f} s",
            *said.stdout.rstrip().split("\n\n")[-1].splitlines(),
            sep="\n  ",
        )


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["retail", folder]:
            retail(Path(folder).resolve())
        case ["public", beir, folder, *documents]:
            public(Path(beir).resolve(), Path(folder).resolve(), *map(int, documents))
        case _:
            raise SystemExit(__doc__)
