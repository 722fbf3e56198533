"""How long ``rag-harness queries check`` takes for collections of a size, with 200 questions of which a tenth changed.

    python benchmarks/queries_check.py [--pages 100 1000 10000]

The pages are those of ``benchmarks/questions.py``, about 5 kB each. Each size runs in a process of its own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from time import perf_counter, process_time

sys.path.insert(0, str(Path(__file__).parents[1]))

from questions import page, words

from rag_harness.authoring.questions.document_changes import check
from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.findings import QuestionWithGold
from rag_harness.core.types import Document, Evidence

QUESTIONS = 200


def asked(documents: Sequence[Document]) -> list[QuestionWithGold]:
    """Return questions of pages drawn at random: three of five direct, one of two pages, one that nothing answers."""
    chance = Random(0)
    found = []
    for number in range(QUESTIONS):
        pages = chance.sample(documents, (1, 1, 1, 2, 0)[number % 5])
        lines = [chance.choice([line for line in each.text.split("\n") if "about the" in line]) for each in pages]
        quotes = tuple(Evidence(each.doc_id, line) for each, line in zip(pages, lines, strict=True))
        text = " ".join(lines) or " ".join(each.title for each in chance.sample(documents, 3))
        kind = ("direct", "direct", "direct", "multi_hop", "negative")[number % 5]
        named = tuple(each.doc_id for each in pages)
        found.append(QuestionWithGold(f"q{number}", kind, text, "", named, quotes, bool(pages)))
    return found


def changed(documents: Sequence[Document]) -> list[Document]:
    """Return the documents with a tenth of them gone, renamed, or with other figures."""
    kept = [each for number, each in enumerate(documents) if number % 30 != 0]
    renamed = [replace(each, doc_id=f"new-{each.doc_id}") if n % 30 == 1 else each for n, each in enumerate(kept)]
    return [replace(each, text=each.text.replace("1", "7")) if n % 30 == 2 else each for n, each in enumerate(renamed)]


def measure(pages: int) -> None:
    """Print time and memory for so many pages."""
    known = words()
    documents = [page(number, known) for number in range(pages)]
    questions = asked(documents)
    now = changed(documents)
    start, cpu = perf_counter(), process_time()
    report = check(questions, DocumentCollection(now))
    took, core = perf_counter() - start, process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{pages:6} pages: {took:6.1f} s, {core:6.1f} s of a core, {peak:5.0f} MB, {len(report.affected)} affected")


def main() -> None:
    """Measure each size in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--pages", type=int, nargs="+", default=[100, 1_000, 10_000])
    for pages in parser.parse_args().pages:
        process = multiprocessing.get_context("spawn").Process(target=measure, args=(pages,))
        process.start()
        process.join()


if __name__ == "__main__":
    main()
