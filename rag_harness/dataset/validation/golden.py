"""The golden set: every expected document exists, and every quote stands in it."""

from __future__ import annotations

import re
from pathlib import Path

from rag_harness.dataset.validation.page import squeeze
from rag_harness.dataset.validation.pages import anchor_problem
from rag_harness.dataset.validation.question_files import GoldenEntry, Read, read_golden
from rag_harness.dataset.validation.quotes import check_quote
from rag_harness.dataset.validation.report import CheckResult
from rag_harness.dataset.validation.source import Source

_CHUNK = re.compile(r"chunk_\d+")


def checks(source: Source, file: Path | None) -> list[CheckResult]:
    """Return the check of the golden set; without a file it is skipped."""
    if file is None:
        return [CheckResult("golden", skipped="no golden set; name one with --golden FILE")]
    read = read_golden(file)
    check = CheckResult("golden", f"{len(read.entries)} entries")
    for line, problem in read.problems:
        check.error(read.at(line), problem)
    for line, entry in read.entries:
        _document(check, source, read.at(line), entry)
        _quotes(check, source, read.at(line), entry)
    _twice(check, read)
    _count_chunks(check, read)
    return [check]


def _document(check: CheckResult, source: Source, where: str, entry: GoldenEntry) -> None:
    page = source.pages.get(entry.filename)
    if page is None:
        problem = f"{source.no_file(entry.filename).removesuffix('.')}."
    elif entry.anchor and not _CHUNK.fullmatch(entry.anchor):
        problem = anchor_problem(source, page, entry.anchor)
    else:
        return
    if problem:
        check.error(where, f"expected_document_id {entry.expected_document_id!r}: {problem} Mend the entry.")


def _quotes(check: CheckResult, source: Source, where: str, entry: GoldenEntry) -> None:
    for each in entry.evidence:
        filename, quote = (entry.filename, each) if isinstance(each, str) else (each.filename, each.quote)
        if filename not in source.pages and filename != entry.filename:
            said = source.no_file(filename).removesuffix(".")
            check.error(where, f"evidence of {filename!r}: {said}. Mend the entry.")
        check_quote(check, source, where, filename, quote)


def _twice(check: CheckResult, read: Read[GoldenEntry]) -> None:
    first: dict[tuple[str, str], int] = {}
    for line, entry in read.entries:
        seen = first.setdefault((squeeze(entry.query).casefold(), entry.expected_document_id), line)
        if seen != line:
            check.error(read.at(line), f"the entry stands already on line {seen}: {entry.query!r}. Drop one.")


def _count_chunks(check: CheckResult, read: Read[GoldenEntry]) -> None:
    named = sum(bool(_CHUNK.fullmatch(entry.anchor)) for _, entry in read.entries)
    if named:
        check.how = f"{named} name a chunk by number, which only a run with its chunk settings can check"
