"""The golden set: every expected document exists, and every quote is in one of them."""

from __future__ import annotations

import re
from pathlib import Path

from rag_harness.authoring.kb.validation.material import Material
from rag_harness.authoring.kb.validation.pages import anchor_problem
from rag_harness.authoring.kb.validation.question_files import entry_lines
from rag_harness.authoring.kb.validation.quotes import check_quote
from rag_harness.authoring.kb.validation.report import CheckResult
from rag_harness.dataset.golden import GoldenEntry, read_golden
from rag_harness.errors import DataError

_CHUNK = re.compile(r"chunk_\d+")


def checks(material: Material, file: Path | None) -> list[CheckResult]:
    """Return the check of the golden set; without a file it is skipped."""
    if file is None:
        return [CheckResult("golden", skipped="no golden set; name one with --golden FILE")]
    if not file.is_file():
        raise DataError(f"No file {file}. Name one that exists with --golden FILE.")
    check = CheckResult("golden")
    entries = _read(check, file)
    for where, entry in zip(_places(file, entries), entries, strict=True):
        for expected in entry.expected:
            _document(check, material, where, expected)
        for quote in entry.evidence:
            _quote(check, material, where, entry, quote)
    check.checked = f"{len(entries)} entries"
    check.how = _unchecked(entries)
    return [check]


def _read(check: CheckResult, file: Path) -> list[GoldenEntry]:
    """Read the entries as a run does. An error that would stop a run is a finding here."""
    try:
        return read_golden(file)
    except DataError as error:
        for line in str(error).split("\n"):
            found = re.match(rf"{re.escape(str(file))}(:\d+)?:? ?", line)
            where = f"{file}{found[1] or ''}" if found else str(file)
            check.error(where, line[found.end() :] if found else line)
        return []


def _places(file: Path, entries: list[GoldenEntry]) -> list[str]:
    if file.suffix.lower() == ".csv" or not entries:
        return [f"{file}: {entry.entry_id}" for entry in entries]
    return [f"{file}:{line}" for line in entry_lines(file.read_text(encoding="utf-8-sig"))]


def _split(expected: str, material: Material) -> tuple[str, str]:
    """Return file and anchor; a file's own name may hold a ``#``."""
    name, _, anchor = (expected, "", "") if expected in material.pages else expected.rpartition("#")
    return (name, anchor) if name else (anchor, "")


def _document(check: CheckResult, material: Material, where: str, expected: str) -> None:
    name, anchor = _split(expected, material)
    page = material.pages.get(name)
    if page is None:
        problem = f"{material.no_file(name).removesuffix('.')}."
    elif anchor and not _CHUNK.fullmatch(anchor):
        problem = anchor_problem(material, page, anchor)
    else:
        return
    if problem:
        check.error(where, f"expected_document_id {expected!r}: {problem} Mend the entry.")


def _quote(check: CheckResult, material: Material, where: str, entry: GoldenEntry, quote: str) -> None:
    """Check that a quote is in one of the expected pages. If it is in none, the finding is about the first."""
    names = [name for name in (_split(expected, material)[0] for expected in entry.expected) if name in material.pages]
    trials = [CheckResult(check.name) for _ in names]
    for trial, name in zip(trials, names, strict=True):
        check_quote(trial, material, where, name, quote)
    if trials:
        order = ("ok", "notes", "failed")
        check.findings += min(trials, key=lambda trial: order.index(trial.state)).findings


def _unchecked(entries: list[GoldenEntry]) -> str:
    chunks = sum(bool(_CHUNK.fullmatch(name.rpartition("#")[2])) for entry in entries for name in entry.expected)
    return f"{chunks} chunks are named by number, which only a run with its chunk settings can check" if chunks else ""
