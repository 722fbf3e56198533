"""What conversations drafted from a folder are like: how many, of which kinds, what their turns need of the history.

    python benchmarks/drafted_conversations.py FOLDER [-n 1000] [--seed 0]
    python benchmarks/drafted_conversations.py --pages 100 1000 10000 [-n 50]     time; each size in a process

``subject-free`` is the filter of drafted follow-ups: a search by their words does not lead to their page. ``recall@5``
is the share of a turn's gold pages among the first five pages that BM25 finds, over the chunks that drafts are made of,
by the words of the turn alone and by its question that stands alone. The gap is what the filter makes of the documents,
and no finding about users.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter, process_time

sys.path.insert(0, str(Path(__file__).parents[1]))

from questions import page, words

from rag_harness.authoring.questions import DocumentCollection
from rag_harness.authoring.questions.conversing import GeneratedConversations, make_conversations
from rag_harness.authoring.questions.conversing.subject_free import is_subject_free
from rag_harness.authoring.questions.conversing.turn_draft import SUBJECT_CHANGE, TurnDraft
from rag_harness.dataset.knowledge_base import read_folder

K = 5
_LOOKED_AT = 100
"""Chunks among which the first pages are looked for."""


def recall(text: str, pages: Sequence[str], collection: DocumentCollection) -> float:
    """Return the share of pages among the first ``K`` that a search by words finds."""
    hits = collection.nearest(text, _LOOKED_AT)
    found = list(dict.fromkeys(hit.chunk.doc_id for hit in hits))[:K]
    return sum(name in found for name in pages) / len(pages)


def lines(found: GeneratedConversations, collection: DocumentCollection) -> list[str]:
    """Return what is said of conversations."""
    turns = [turn for draft in found.drafts for turn in draft.turns]
    later = [turn for turn in turns if turn.needs_history]
    kinds = Counter(turn.kind for turn in turns)
    pages = len(collection.documents)
    free = [turn for turn in later if is_subject_free(turn.text, turn.near_pages, collection)]
    return [
        f"{pages} pages: {len(found.drafts)} conversations ({100 * len(found.drafts) / pages:.0f} per 100 pages), "
        f"{len(turns)} turns",
        ", ".join(f"{count} {kind}" for kind, count in kinds.most_common()),
        f"{len(later)} turns need what was said before; {len(free)} of them are subject-free "
        f"({len(free) / len(later):.0%})" if later else "no turn needs what was said before",
        *(_recall(name, chosen, collection) for name, chosen in _groups(later, turns).items()),
    ]  # fmt: skip


def _groups(later: Sequence[TurnDraft], turns: Sequence[TurnDraft]) -> dict[str, list[TurnDraft]]:
    kinds = dict.fromkeys(turn.kind for turn in later)
    changes = [turn for turn in turns if turn.kind == SUBJECT_CHANGE]
    return {
        "all that need history": list(later),
        **{kind: [turn for turn in later if turn.kind == kind] for kind in kinds},
        "subject_change": changes,
    }


def _recall(name: str, turns: Sequence[TurnDraft], collection: DocumentCollection) -> str:
    gold = [turn for turn in turns if turn.alone.pages]
    if not gold:
        return f"  {name:24} no gold pages"
    last, alone = (
        sum(recall(text, turn.alone.pages, collection) for text, turn in pairs) / len(gold)
        for pairs in ([(turn.text, turn) for turn in gold], [(turn.alone.text, turn) for turn in gold])
    )
    return f"  {name:24} recall@{K} of the turn alone {last:.2f}, of its standalone question {alone:.2f}  n={len(gold)}"


def timed(pages: int, count: int, said: multiprocessing.Queue[str]) -> None:
    """Put a line on what conversations about so many made-up pages took."""
    drawn = words()
    documents = [page(number, drawn) for number in range(pages)]
    began, worked = perf_counter(), process_time()
    collection = DocumentCollection(documents)
    found = make_conversations(collection, count)
    took, worked = perf_counter() - began, process_time() - worked
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    said.put(
        f"{pages:7,} pages  {len(found.drafts)} conversations  {took:6.1f} s, {worked:.1f} s of a core  {peak:.0f} MB"
    )


def main() -> None:
    """Measure a folder, or sizes."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else "")
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--pages", type=int, nargs="*", default=[])
    parser.add_argument("-n", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    if chosen.folder:
        collection = DocumentCollection(read_folder(chosen.folder).documents)
        print("\n".join(lines(make_conversations(collection, chosen.n, chosen.seed), collection)))
    for pages in chosen.pages:
        said: multiprocessing.Queue[str] = multiprocessing.Queue()
        child = multiprocessing.Process(target=timed, args=(pages, chosen.n, said))
        child.start()
        print(said.get())
        child.join()


if __name__ == "__main__":
    main()
