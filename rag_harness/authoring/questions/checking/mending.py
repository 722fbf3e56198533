"""Corrects a file of questions where that is safe, and marks the rows that a person must look at."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rag_harness.authoring.questions.checking.findings import Finding, Report
from rag_harness.authoring.questions.checking.gold_questions import is_golden
from rag_harness.authoring.questions.checking.said import reason
from rag_harness.authoring.questions.metadata_keys import AFFECTED
from rag_harness.dataset.conversations import rows_of_line, with_turns
from rag_harness.errors import DataError
from rag_harness.files.json_text import read_json


def mended(file: Path, report: Report) -> str:
    """Return the lines of a file of questions. Rows without findings stay byte for byte.

    Quotes and page names are replaced if that is safe. Other affected questions are marked: ``reviewed`` becomes "no",
    ``reviewed_by`` is removed, and ``affected`` says why. The mark is removed when nothing is wrong any more.

    Raises:
        DataError: the file is a golden set.
    """
    if is_golden(file):
        raise DataError(f"-o mends files of questions (.jsonl), and {file} is a golden set. Leave -o out, and edit it.")
    # split("\n") and not splitlines(): a U+2028 inside a JSON string does not end a line.
    found = (line for line in file.read_text(encoding="utf-8-sig").split("\n") if line.strip())
    return "".join(f"{_line(line, report)}\n" for line in found)


def _line(line: str, report: Report) -> str:
    raw = read_json(line)
    rows = rows_of_line(raw)
    if not any(_is_touched(row, report) for row in rows):
        return line
    changed = [_row(row, report.found.get(row["query_id"], ())) if _is_touched(row, report) else row for row in rows]
    if "scenario" in raw:
        changed[0].pop("query_id")
    return json.dumps(with_turns(raw, changed) if "turns" in raw else changed[0], ensure_ascii=False)


def _is_touched(row: dict[str, Any], report: Report) -> bool:
    return bool(report.found.get(row["query_id"])) or AFFECTED in row.get("metadata", {})


def _row(row: dict[str, Any], findings: Sequence[Finding]) -> dict[str, Any]:
    safe = [each for each in findings if each.mends]
    left = [each for each in findings if each.affects and not each.mends]
    evidence = [_quote(quote, safe) for quote in row.get("evidence") or ()]
    changed = {**row, **({"evidence": evidence} if evidence else {}), **_names(row, evidence, safe)}
    # The reviewer has read other documents than these.
    gone = {AFFECTED, *(("reviewed_by",) if left else ())}
    kept = {key: value for key, value in (row.get("metadata") or {}).items() if key not in gone}
    marks = {"reviewed": "no", AFFECTED: "; ".join(map(reason, left))} if left else {}
    return {**changed, "metadata": {**kept, **marks}} if kept or marks or "metadata" in row else changed


def _quote(quote: dict[str, Any], safe: Sequence[Finding]) -> dict[str, Any]:
    """Return a quote with its current text and page. If it is not safe to mend, at most its page's new name is set."""
    filename, text = quote["filename"].strip(), quote["quote"].strip()
    for each in safe:
        if each.old and (each.filename, each.old) == (filename, text):
            return {**quote, "filename": each.new_file, "quote": each.new}
    renamed = {each.filename: each.new_file for each in safe if each.what == "page renamed"}
    return {**quote, "filename": renamed.get(filename, quote["filename"])}


def _names(row: dict[str, Any], evidence: Sequence[dict[str, Any]], safe: Sequence[Finding]) -> dict[str, Any]:
    """Return the pages of a row under their new names. If a page has lost its quotes, their new pages replace it."""
    moves = {each.filename: each.new_file for each in safe if each.new_file != each.filename}
    if not moves:
        return {}
    still = {quote["filename"] for quote in evidence}
    found: dict[str, Any] = {}
    given = row.get("context_reference")
    if given:
        names = [given] if isinstance(given, str) else given
        kept = [new for name in names for new in _now(name, moves, still)]
        found["context_reference"] = list(dict.fromkeys(kept))
    if row.get("qrels"):
        found["qrels"] = {new: gain for name, gain in row["qrels"].items() for new in _now(name, moves, still)}
    return found


def _now(name: str, moves: dict[str, str], still: set[str]) -> list[str]:
    plain = name.strip()
    if plain not in moves:
        return [name]
    return [name, moves[plain]] if plain in still else [moves[plain]]
