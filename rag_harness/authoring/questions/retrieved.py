"""The documents that the last runs retrieved for each query."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rag_harness.files.json_text import read_json
from rag_harness.results.file import PREVIOUS
from rag_harness.results.row import numbered_lines
from rag_harness.retrieval.documents import document_of


def retrieved_before(output: Path, k: int, is_of: Callable[[str], bool]) -> Mapping[str, frozenset[str]]:
    """Return for each query id the documents of the prompt and of the first ``k`` candidates, from all experiments.

    The newest row of each experiment and query counts, even if it was set aside. ``is_of`` says whether an experiment
    is looked at.
    """
    newest: dict[tuple[str, str], tuple[str, frozenset[str]]] = {}
    for file in [*sorted((output / PREVIOUS).glob("*.jsonl")), *sorted(output.glob("*.jsonl"))]:
        for _, line, _ in numbered_lines(file):
            row = _row(line)
            if row is None or not is_of(row["experiment"]):
                continue
            key, finished = (row["experiment"], row["query_id"]), str(row.get("finished_at", ""))
            if key not in newest or finished >= newest[key][0]:
                newest[key] = finished, _documents(row, k)
    found: dict[str, frozenset[str]] = {}
    for (_, query_id), (_, documents) in newest.items():
        found[query_id] = found.get(query_id, frozenset()) | documents
    return found


def _row(line: bytes) -> dict[str, Any] | None:
    """Return a row without validation. Only the names of its documents are needed."""
    try:
        row = read_json(line)
    except ValueError:
        return None
    wanted = {"experiment", "query_id", "candidates", "retrieved_chunks"}
    return row if isinstance(row, dict) and wanted <= row.keys() and row.get("status") == "ok" else None


def _documents(row: dict[str, Any], k: int) -> frozenset[str]:
    prompt = (chunk["metadata"].get("filename") or document_of(chunk["chunk_id"]) for chunk in row["retrieved_chunks"])
    candidates = (document_of(candidate["chunk_id"]) for candidate in row["candidates"][:k])
    return frozenset([*prompt, *candidates, *(row.get("ranking") or ())[:k]])
