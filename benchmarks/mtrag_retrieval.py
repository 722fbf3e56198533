"""BM25 on MTRAG and MTRAG-UN, by domain and by the text that is asked, beside the published figures.

    git clone https://github.com/IBM/mt-rag-benchmark
    python benchmarks/mtrag_retrieval.py mt-rag-benchmark
    python benchmarks/mtrag_retrieval.py mt-rag-benchmark --excerpt

The first command needs the passage corpora that the repository holds as zips (Apache-2.0). The means over all queries
are to be compared with Katsis et al. 2025 and Rosenthal et al. 2026: ``PUBLISHED``.

``--excerpt`` needs none: the documents are the passages that MTRAG-UN's generation tasks and MTRAG's human evaluations
quote, about 1,500 of 366,000. Of the queries those stay whose relevant passages are all among them. Every figure of an
excerpt is far too high, and comparable with figures of the same excerpt alone: it shows that the files are read, and
how a last turn compares with all turns and with a rewrite.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from side_by_side import show

from rag_harness.core.types import Chunk, Document
from rag_harness.data.mtrag import (
    MTRAG,
    MTRAG_UN,
    QUESTIONS,
    REWRITE,
    VARIANTS,
    MtragDataset,
    MtragPlace,
    judged_queries,
    passage_of_row,
    passages_of,
    read_mtrag,
    read_tasks,
)
from rag_harness.evaluation.measures.ranking import evaluate
from rag_harness.retrieval.bm25 import Bm25Index
from rag_harness.stats.inputs import Floats
from rag_harness.stats.means import estimate

DOMAINS = ("clapnq", "cloud", "fiqa", "govt")
MEASURES = ("recall@5", "ndcg@5")
EVALUATED = "mtrag-human/evaluations/reference_subset_with_human_evaluations.json"
PUBLISHED = {
    (MTRAG, "lastturn"): "0.20 / 0.18",
    (MTRAG, REWRITE): "0.25 / 0.22",
    (MTRAG_UN, "lastturn"): "0.29 / 0.27",
    (MTRAG_UN, REWRITE): "0.36 / 0.34",
}
"""Recall@5 / nDCG@5 of BM25; MTRAG-UN's with two domains more than are released."""


def whole(clone: Path, benchmark: str, variant: str) -> Iterator[tuple[str, MtragDataset]]:
    for domain in DOMAINS:
        yield domain, read_mtrag(benchmark, clone / domain / variant)


def excerpt(clone: Path, benchmark: str, variant: str) -> Iterator[tuple[str, MtragDataset]]:
    """Yield each domain with the quoted passages, and the queries whose relevant passages are all among them."""
    evaluated = quoted_in_evaluations(clone / EVALUATED)
    for domain in DOMAINS:
        tasks = read_tasks(MtragPlace(MTRAG_UN, clone, domain).tasks, domain)
        documents = {each.doc_id: each for each in [*passages_of(tasks), *evaluated.get(domain, ())]}
        place = MtragPlace(benchmark, clone, domain, variant)
        queries, qrels = judged_queries(place)
        kept = [each for each in queries if all(name in documents for name in qrels[each.query_id])]
        yield domain, MtragDataset([*documents.values()], kept, qrels, place.tasks, domain, variant, excerpt=True)


def quoted_in_evaluations(file: Path) -> dict[str, list[Document]]:
    """Return the passages of MTRAG's human evaluations by domain."""
    said = json.loads(file.read_text(encoding="utf-8"))
    texts = {row["document_id"]: passage_of_row(row, row["document_id"]) for row in said["documents"]}
    found: dict[str, dict[str, Document]] = {}
    for task in said["tasks"]:
        domain = next(each for each in DOMAINS if each in task["Collection"])
        for context in task["contexts"]:
            passage = texts[context["document_id"]]
            if isinstance(passage, Document):
                found.setdefault(domain, {})[passage.doc_id] = passage
    return {domain: [*each.values()] for domain, each in found.items()}


def found_by_bm25(of: MtragDataset) -> dict[str, Mapping[str, float]]:
    """Return the value of each query, by measure."""
    chunks = [Chunk(each.doc_id, each.doc_id, each.text, 0, len(each.text)) for each in of.documents]
    index = Bm25Index(lambda: chunks)
    run = {each.query_id: [hit.chunk.doc_id for hit in index.search(each.text, 5)] for each in of.queries}
    return {**evaluate(run, {name: of.qrels[name] for name in run}, MEASURES)}


def row(benchmark: str, variant: str, domains: Sequence[tuple[str, MtragDataset]]) -> list[str]:
    cells, every = [], dict[str, Mapping[str, float]]()
    for _, data in domains:
        found = found_by_bm25(data)
        cells.append(" / ".join(f"{np.mean([*found[name].values()]):.3f}" for name in MEASURES))
        every = {name: {**every.get(name, {}), **found[name]} for name in MEASURES}
    means = [said([*every[name].values()], [*every[name]]) for name in MEASURES]
    return [variant, str(len(every[MEASURES[0]])), *cells, *means, PUBLISHED.get((benchmark, variant), "")]


def said(values: Sequence[float], names: Sequence[str]) -> str:
    """Return the mean with its interval; turns of a conversation are drawn together."""
    found = estimate(_mean, values, clusters=[name.rpartition("#")[0] for name in names])
    interval = f" [{found.interval.low:.3f}, {found.interval.high:.3f}]" if found.interval else ""
    return f"{np.mean(values):.3f}{interval}"


def _mean(values: Floats) -> float:
    return float(values.mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clone", type=Path, help="a clone of IBM/mt-rag-benchmark")
    parser.add_argument("--excerpt", action="store_true", help="the quoted passages alone, where there is no corpus")
    chosen = parser.parse_args()
    read = excerpt if chosen.excerpt else whole
    for benchmark in (MTRAG, MTRAG_UN):
        variants = [each for each in VARIANTS if benchmark == MTRAG or each != REWRITE]
        by_variant = {each: list(read(chosen.clone, benchmark, each)) for each in variants}
        rows = [row(benchmark, variant, domains) for variant, domains in by_variant.items()]
        sizes = ", ".join(f"{domain} {len(data.documents):,}" for domain, data in by_variant[QUESTIONS])
        title = f"{benchmark}, BM25; passages: {sizes}"
        if chosen.excerpt:
            title += ". AN EXCERPT: not comparable with what is published"
            rows = [each[:-1] for each in rows]
        header = ["asked", "queries", *(f"{each} R@5 / nDCG@5" for each in DOMAINS), "R@5", "nDCG@5"]
        show(title, header if chosen.excerpt else [*header, "published"], rows)


if __name__ == "__main__":
    main()
