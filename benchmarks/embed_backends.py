"""Backends of the local embedding model side by side: chunks a second, and whether they rank alike.

    python benchmarks/embed_backends.py [--texts N] [--beir FOLDER_OR_ZIP ...] [--cranfield FOLDER] [--most N]

Needs the extras `local`, `local-light`. Ways alternate; of each the shortest time counts, and the processor's time
stands beside it. Rankings are by cosine alone, texts cut where the model ends: nDCG@10 and recall@10 of pages on the
study's questions and on the collections that are named. ``--texts 0`` measures no speed,
``--most`` draws so many queries of a collection in BEIR's form, and eight other documents for each.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from local_models import Ways, plain_model

from rag_harness.core.settings.loading import load_settings
from rag_harness.data.queries import read_queries
from rag_harness.models.embedders import SentenceTransformersEmbedder
from rag_harness.models.onnx import OnnxEmbedder
from rag_harness.pipelines.parts import RunParts

ROOT = Path(__file__).parents[1]
K, ROUNDS = 10, 2
BACKENDS: Mapping[str, Callable[[], Any]] = {
    "torch": SentenceTransformersEmbedder,
    "onnx": partial(OnnxEmbedder, backend="onnx"),
    "onnx-int8": OnnxEmbedder,
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--texts", type=int, default=128)
    parser.add_argument("--beir", nargs="*", default=[])
    parser.add_argument("--cranfield", type=Path)
    parser.add_argument("--most", type=int, default=0)
    parser.add_argument("--backends", nargs="*", default=list(BACKENDS), choices=list(BACKENDS))
    chosen = parser.parse_args()
    made: dict[str, Any] = {name: BACKENDS[name]() for name in chosen.backends}
    if chosen.cranfield:
        cranfield(made, chosen.cranfield)
    for collection in chosen.beir:
        beir(made, collection, chosen.most)
    if chosen.texts:
        study(made, chosen.texts)


def study(made: dict[str, Any], most: int) -> None:
    """Measure speed on the study's chunks, and rankings of its questions."""
    chunks = RunParts(load_settings({"mode": "replay"}, rootdir=ROOT)).retrieval().chunks
    speed(made, Random(7).sample([chunk.text for chunk in chunks], min(most, len(chunks))))
    cases = [case for case in read_queries(ROOT / "data/kb/queries.jsonl", ROOT / "data/kb") if case.qrels]
    wanted = [case.qrels for case in cases]
    pages = [chunk.doc_id for chunk in chunks]
    ranked(made, "study", [chunk.text for chunk in chunks], pages, [case.query.text for case in cases], wanted)


def beir(made: dict[str, Any], collection: str, most: int) -> None:
    """Rank the documents of a collection in BEIR's form. A query that is a document of it does not count as a hit."""
    data = RunParts(load_settings({"dataset": f"beir:{collection}"}, rootdir=ROOT)).data()
    cases = [case for case in data.cases if case.qrels]
    documents, name = list(data.documents), Path(collection).stem
    if 0 < most < len(cases):
        cases, name = Random(7).sample(cases, most), f"{name}, drawn,"
        named = {page for case in cases for page in (*case.qrels, *case.left_out)}
        drawn = {each.doc_id for each in Random(8).sample(documents, min(8 * most, len(documents)))}
        documents = [each for each in documents if each.doc_id in named | drawn]
    texts, pages = [each.text for each in documents], [each.doc_id for each in documents]
    left_out = [case.left_out for case in cases]
    ranked(made, name, texts, pages, [case.query.text for case in cases], [case.qrels for case in cases], left_out)


def cranfield(made: dict[str, Any], folder: Path) -> None:
    """Rank the abstracts of Cranfield, title and text. Its grades go from 1, a complete answer, to 4."""
    pages, texts = zip(*_entries(folder / "cran.all.1400"), strict=True)
    queries = [text for _, text in _entries(folder / "cran.qry")]
    wanted: list[dict[str, int]] = [{} for _ in queries]
    for line in (folder / "cranqrel").read_text().splitlines():
        query, page, grade = line.split()[:3]  # by the query's place, not by its id
        wanted[int(query) - 1][page] = 5 - int(grade)
    ranked(made, "cranfield", list(texts), list(pages), queries, wanted)


def _entries(file: Path) -> Iterator[tuple[str, str]]:
    for entry in re.split(r"(?m)^\.I ", file.read_text())[1:]:
        fields = dict(re.findall(r"(?ms)^\.([TW])\n(.*?)(?=^\.[A-Z]$|\Z)", entry))
        title, text = fields.get("T", ""), fields["W"]
        # The text of an abstract begins with its title.
        whole = text if text.startswith(title) else f"{title} {text}"
        yield entry.split(maxsplit=1)[0], " ".join(whole.split())


def speed(made: dict[str, Any], texts: list[str]) -> None:
    """Print chunks a second and chunks a second of a core, of bare ``encode`` and of each backend."""
    for each in made.values():
        each.embed_queries(["loads the weights before the clock starts"])
    plain = plain_model(made["torch"])
    ways: Ways = {"encode": lambda: plain.encode(texts, normalize_embeddings=True, show_progress_bar=False)}
    ways |= {name: partial(each.embed_documents, texts) for name, each in made.items()}
    best = dict.fromkeys(ways, (np.inf, np.inf))
    for _ in range(ROUNDS):
        for name, way in ways.items():
            clock, core = time.perf_counter(), time.process_time()
            way()
            spent = time.perf_counter() - clock, time.process_time() - core
            best[name] = min(best[name][0], spent[0]), min(best[name][1], spent[1])
    for name, (clock, core) in best.items():
        print(f"{name:<10} {len(texts) / clock:6.1f} chunks/s  {len(texts) / core:6.1f} a second of a core", flush=True)


def ranked(
    made: dict[str, Any],
    what: str,
    texts: list[str],
    pages: list[str],
    queries: list[str],
    wanted: list[Any],
    left_out: Sequence[frozenset[str]] = (),
) -> None:
    """Print nDCG@10 and recall@10 of each backend; a page's rank is that of its first chunk."""
    not_hits = left_out or [frozenset[str]()] * len(queries)
    for name, each in made.items():
        began = time.process_time()
        scores = each.embed_documents(queries) @ each.embed_documents(texts).T
        gains, recalls = [], []
        for row, grades, left in zip(scores, wanted, not_hits, strict=True):
            order = (pages[place] for place in np.argsort(-row, kind="stable"))
            hits = list(islice((page for page in dict.fromkeys(order) if page not in left), K))
            dcg = sum(grades.get(hit, 0) / np.log2(rank + 2) for rank, hit in enumerate(hits))
            ideal = sorted(grades.values(), reverse=True)[:K]
            relevant = [page for page, grade in grades.items() if grade > 0]
            gains.append(dcg / sum(grade / np.log2(rank + 2) for rank, grade in enumerate(ideal)))
            recalls.append(len(set(hits) & set(relevant)) / len(relevant))
        spent = time.process_time() - began
        said = f"ndcg@10 {np.mean(gains):.4f}  recall@10 {np.mean(recalls):.4f}"
        print(f"{what} {name:<10} {said}  {len(queries)} queries, {spent:.0f} s of a core", flush=True)


if __name__ == "__main__":
    main()
