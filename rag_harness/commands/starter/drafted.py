"""The questions that ``init`` writes for the user's documents: drafts, marked as such, or a placeholder."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from rag_harness.commands.starter.started import Started
from rag_harness.dataset.placeholder import placeholder_for

WANTED = 20
_MULTI_HOP = 4
"""How many of the questions have several hops, if the pages allow so many."""
_SEED = 0
_MOST_WORDS = 120
"""How long an answer may be, in the example of what an answer owes."""
_EXPECTED = 'The first of them says in "expect" what its answer owes: two examples, for you to write more.'
_NO_FACT = "no fact was found in English or another language with question forms"


def drafted_questions(folder: Path, done: Started) -> str:
    """Return the lines of ``queries.jsonl`` for a folder of documents, and note that they are drafts.

    Raises:
        DataError: nothing in the folder can be read.
    """
    from rag_harness.authoring.questions import DocumentCollection, json_lines, make_questions, planned_facts, rows
    from rag_harness.dataset.document_languages import languages_said
    from rag_harness.dataset.knowledge_base import read_folder

    library = read_folder(folder)
    done.found += [f"not read: {each.line}" for each in library.unread]
    done.found += languages_said(library.documents)
    collection = DocumentCollection(library.documents, planned_facts(folder))
    found = make_questions(collection, {"direct": WANTED, "multi_hop": _MULTI_HOP}, _SEED)
    hops = [draft for draft in found.drafts if draft.kind == "multi_hop"]
    chosen = [*[draft for draft in found.drafts if draft.kind == "direct"][: WANTED - len(hops)], *hops]
    if not chosen:
        done.todo.append(_none(folder, found.dropped))
        return placeholder(library.documents[0].doc_id)
    done.todo += [_some(len(chosen)), _EXPECTED]
    first, *others = rows(chosen, collection)
    return json_lines([{**first, "expect": _expected(first["context_reference"])}, *others])


def _expected(pages: list[str]) -> list[dict[str, object]]:
    """Return two expectations that hold for each right answer, whatever the drafted question asks."""
    cites: dict[str, object] = {"cites": pages[0]} if len(pages) == 1 else {"cites_all": pages}
    return [cites, {"max_words": _MOST_WORDS}]


def placeholder(page: str) -> str:
    """Return a placeholder line: the user is to write a question about ``page`` there."""
    metadata = {"reviewed": "no"}
    row = {"query_id": "q_001", "query": placeholder_for(page), "context_reference": [page], "metadata": metadata}
    return json.dumps(row, ensure_ascii=False) + "\n"


def _none(folder: Path, dropped: Counter[str]) -> str:
    n, reasons = dropped.total(), ", ".join(f"{reason} ({count})" for reason, count in dropped.most_common(3))
    why = f"{n} fact{'s' * (n != 1)} found, but none makes a fair question: {reasons}" if n else _NO_FACT
    return (
        f"No question was drafted from {folder.name or 'this folder'}: {why}. queries.jsonl holds a placeholder: write "
        "a question of your own in its place, without its metadata. Until then its gate says what came out and is not "
        "judged."
    )


def _some(number: int) -> str:
    few = " (the rules found no more)" if number < WANTED else ""
    return (
        f"queries.jsonl holds {number} drafted question{'s' * (number != 1)}{few} that nobody has reviewed: until "
        "somebody has, its gate says what came out and is not judged. More, of all kinds: rag-harness kb queries"
    )
