"""How long questions take, and how much memory, for folders of a size; and how many words they share with their pages.

    python benchmarks/questions.py [--pages 100 1000 10000] [-n 200] [--folder DIR]

The pages are written for the purpose, of sentences and tables with made-up words, about 5 kB each. With ``--folder``
a folder of somebody's own is measured in their place. Each size runs in a process of its own: its peak is its own.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from time import perf_counter, process_time

sys.path.insert(0, str(Path(__file__).parents[1]))

from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.drafts import rows
from rag_harness.authoring.questions.generator import make_questions
from rag_harness.core.types import Document
from rag_harness.data.documents import read_folder

SHARES = {"direct": 0.6, "multi_hop": 0.2, "negative": 0.2}
_SENTENCES = (
    "If the {0} {1} is {2}, the {3} office replaces the {4}.",
    "To {5} the {0} {1}, open the {3} panel and press the {4} key.",
    "The {0} {1} is checked within {n} working days after the {3} {4}.",
    "A {0} {1} costs €{n} per {3}, and the {4} is included.",
    "The {0} {1} requires a {3} {4} when the {2} lamp is lit.",
    "A {0} {1} cannot be sent to a {3} {4}.",
    "People in {3} speak of the {0} {1} with a {2} {4}.",
)
_VERBS = ("cancel", "configure", "clean", "register", "replace", "report")


def page(number: int, words: Sequence[str]) -> Document:
    """Return a page about three things of its own, with links to two others."""
    chance = Random(number)
    own = [f"{chance.choice(words)} {chance.choice(words)}" for _ in range(3)]
    lines = [f"# {own[0].title()} and {own[1]}", ""]
    for thing in own:
        lines += [f"## {thing.title()}", ""]
        for _ in range(12):
            drawn = [*thing.split(), *(chance.choice(words) for _ in range(3)), chance.choice(_VERBS)]
            said = chance.choice(_SENTENCES).format(*drawn, n=chance.randint(2, 90))
            lines.append(f"{said} See the [next page](page-{(number + 1) % 100_000}.md) about the {thing}.")
        lines += ["", "| Part | Weight | Price |", "|---|---|---|"]
        for _ in range(4):
            made, of = chance.choice(words).title(), chance.choice(words).title()
            lines.append(f"| {made} {of} | {chance.randint(1, 80)} kg | €{chance.randint(3, 900)} |")
        lines.append("")
    return Document(f"page-{number}.md", "\n".join(lines), lines[0][2:])


def words() -> list[str]:
    """Return 4,000 made-up words."""
    chance = Random(0)
    syllables = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
    return sorted({"".join(chance.choice(syllables) for _ in range(3)) for _ in range(4_500)})[:4_000]


def measured(pages: int, count: int, folder: str, said: multiprocessing.Queue[str]) -> None:
    """Put a line on what questions for so many pages, or for a folder, took."""
    drawn = words()
    documents = list(read_folder(Path(folder)).documents) if folder else [page(n, drawn) for n in range(pages)]
    size = sum(len(document.text) for document in documents) / 1e6
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    began, worked = perf_counter(), process_time()
    collection = DocumentCollection(documents)
    found = make_questions(collection, {kind: int(count * share) for kind, share in SHARES.items()})
    written = list(rows(found.drafts, collection))
    took, worked = perf_counter() - began, process_time() - worked
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    kinds = Counter(row["query_type"] for row in written)
    shared = [row["metadata"]["overlap"] for row in written if row["query_type"] == "direct"]
    overlap = sum(shared) / max(1, len(shared))
    said.put(
        f"{len(documents):6} pages, {size:6.1f} MB: {took:6.1f} s ({worked:.1f} s of a core), "
        f"peak {peak:5.0f} MB ({before:.0f} before), "
        f"{json.dumps(kinds)}, {overlap:.2f} of the words shared (direct)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, nargs="+", default=[100, 1_000, 10_000])
    parser.add_argument("-n", dest="count", type=int, default=200)
    parser.add_argument("--folder", default="", help="a folder of your own, in place of made-up pages")
    chosen = parser.parse_args()
    spawn = multiprocessing.get_context("spawn")
    for pages in chosen.pages[:1] if chosen.folder else chosen.pages:
        said = spawn.Queue()
        process = spawn.Process(target=measured, args=(pages, chosen.count, chosen.folder, said))
        process.start()
        print(said.get(), flush=True)
        process.join()


if __name__ == "__main__":
    main()
