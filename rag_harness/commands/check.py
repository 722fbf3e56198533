"""``rag-harness queries check``: checks whether questions are still about what the documents say."""

from __future__ import annotations

import argparse
from pathlib import Path

from rag_harness.commands import FOUND
from rag_harness.commands.with_settings import (
    add_documents,
    add_query_types,
    documents_of_suite,
    query_types,
    questions_of_suite,
)
from rag_harness.errors import DataError
from rag_harness.shown.terminal import say, say_json


def check_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``queries check``."""
    add_documents(parser, "folder of documents: Markdown, text, HTML, PDF")
    queries = (
        "questions, or a golden set (.json, .csv); default: queries.jsonl in DIR; without DIR, rag_queries of the ini "
        "file counts more"
    )
    parser.add_argument("--queries", type=Path, metavar="FILE", help=queries)
    add_query_types(parser)
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument(
        "-o", dest="mended", type=Path, metavar="FILE", help="file of the questions, mended where that is safe"
    )


def run_check(chosen: argparse.Namespace) -> int:
    """Print which questions are affected by changes of the documents."""
    from rag_harness.authoring.questions import DocumentCollection
    from rag_harness.authoring.questions.checking import check, mended, read_asked, report_as_json, report_lines
    from rag_harness.dataset.knowledge_base import read_folder
    from rag_harness.files.atomic import write_atomically

    folder = chosen.folder or documents_of_suite()
    file = chosen.queries or (folder / "queries.jsonl" if chosen.folder else questions_of_suite())
    _check(file, chosen.mended)
    asked = read_asked(file, query_types(chosen))
    library = read_folder(folder)
    unread = [each.file.relative_to(folder).as_posix() for each in library.unread]
    report = check(asked, DocumentCollection(library.documents), unread)
    if chosen.mended:
        write_atomically(chosen.mended, mended(file, report).encode())
    if chosen.json:
        say_json(report_as_json(report))
    else:
        say(*report_lines(report))
    return FOUND if report.affected else 0


def _check(file: Path, mended: Path | None) -> None:
    if not file.is_file():
        raise DataError(f"No file {file}. Name the questions of these documents: --queries FILE")
    if mended and mended.is_dir():
        raise DataError(f"{mended} is a folder. Name the file of the mended questions: -o {mended / file.name}")
    if mended and not mended.absolute().parent.is_dir():
        raise DataError(f"No folder {mended.parent} to write {mended.name} into. Make it, or name another file.")
