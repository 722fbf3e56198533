"""Backends of the local embedding model side by side: chunks a second, and whether they rank alike.

    python benchmarks/embed_backends.py [--texts N] [--beir FOLDER_OR_ZIP]     needs the extras `local`, `local-light`

Ways alternate; of each the shortest time counts, and the processor's time stands beside it. Rankings are by cosine
alone: recall@10 of pages on the study's questions and, with --beir, nDCG@10 and recall@10 of that collection.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
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


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--texts", type=int, default=128)
    parser.add_argument("--beir", default="")
    chosen = parser.parse_args()
    made: dict[str, Any] = {
        "torch": SentenceTransformersEmbedder(),
        "onnx": OnnxEmbedder(backend="onnx"),
        "onnx-int8": OnnxEmbedder(),
    }
    chunks = RunParts(load_settings({"mode": "replay"}, rootdir=ROOT)).retrieval().chunks
    speed(made, Random(7).sample([chunk.text for chunk in chunks], min(chosen.texts, len(chunks))))
    cases = [case for case in read_queries(ROOT / "data/kb/queries.jsonl", ROOT / "data/kb") if case.qrels]
    wanted = [case.qrels for case in cases]
    pages = [chunk.doc_id for chunk in chunks]
    ranked(made, "study", [chunk.text for chunk in chunks], pages, [case.query.text for case in cases], wanted)
    if chosen.beir:
        settings = load_settings({"dataset": f"beir:{chosen.beir}"}, rootdir=ROOT)
        data = RunParts(settings).data()
        documents = data.documents
        found = [case for case in data.cases if case.qrels]
        grades = [case.qrels for case in found]
        texts = [document.text for document in documents]
        pages = [each.doc_id for each in documents]
        ranked(made, chosen.beir, texts, pages, [case.query.text for case in found], grades)


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
    made: dict[str, Any], what: str, texts: list[str], pages: list[str], queries: list[str], wanted: list[Any]
) -> None:
    """Print nDCG@10 and recall@10 of each backend; a page's rank is that of its first chunk."""
    for name, each in made.items():
        scores = each.embed_documents(queries) @ each.embed_documents(texts).T
        gains, recalls = [], []
        for row, grades in zip(scores, wanted, strict=True):
            hits = list(dict.fromkeys(pages[place] for place in np.argsort(-row, kind="stable")))[:K]
            dcg = sum(grades.get(hit, 0) / np.log2(rank + 2) for rank, hit in enumerate(hits))
            ideal = sorted(grades.values(), reverse=True)[:K]
            relevant = [page for page, grade in grades.items() if grade > 0]
            gains.append(dcg / sum(grade / np.log2(rank + 2) for rank, grade in enumerate(ideal)))
            recalls.append(len(set(hits) & set(relevant)) / len(relevant))
        print(f"{what} {name:<10} ndcg@10 {np.mean(gains):.4f}  recall@10 {np.mean(recalls):.4f}", flush=True)


if __name__ == "__main__":
    main()
