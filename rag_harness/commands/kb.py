"""``rag-harness kb``: checks a knowledge base, its queries and its golden set, and shows its links."""

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
from rag_harness.shown.terminal import say, say_json

_QUERIES = "file of the questions; default: queries.jsonl in DIR; without DIR, rag_queries of the ini file counts more"


def graph_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``kb graph``."""
    add_documents(parser, "folder of Markdown pages")


def validate_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``kb validate``."""
    graph_arguments(parser)
    parser.add_argument("--queries", type=Path, metavar="FILE", help=_QUERIES)
    golden = "golden set; default: test_retrieval_golden/golden.json beside the folder's parent"
    parser.add_argument("--golden", type=Path, metavar="FILE", help=golden)
    add_query_types(parser)
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def run_validate(chosen: argparse.Namespace) -> int:
    """Check pages, plan, queries and golden set."""
    from rag_harness.authoring.kb.validation import validate

    folder = chosen.folder or documents_of_suite()
    golden = folder.absolute().parent.parent / "test_retrieval_golden" / "golden.json"
    usual = folder / "queries.jsonl"
    named = usual if chosen.folder else questions_of_suite()
    queries = chosen.queries or (_if_there(usual) if named == usual else named)
    report = validate(
        folder,
        queries,
        chosen.golden or _if_there(golden),
        query_types(chosen),
    )
    if chosen.json:
        say_json(report.json())
    else:
        say(*report.lines())
    return 0 if report.ok else FOUND


def run_graph(chosen: argparse.Namespace) -> int:
    """Print the links between pages."""
    from rag_harness.authoring.kb.validation import graph

    say(*graph(chosen.folder or documents_of_suite()).splitlines())
    return 0


def superseded_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``kb superseded``."""
    graph_arguments(parser)
    parser.add_argument("--queries", type=Path, metavar="FILE", help=_QUERIES)
    parser.add_argument(
        "-o", dest="marked", type=Path, required=True, metavar="FILE", help="file of the queries, marked"
    )


def run_superseded(chosen: argparse.Namespace) -> int:
    """Write the queries with the statements of superseded pages about their facts."""
    from rag_harness.authoring.kb.superseded import mark_superseded
    from rag_harness.files.atomic import write_atomically

    queries = chosen.queries or (None if chosen.folder else questions_of_suite())
    found = mark_superseded(chosen.folder or documents_of_suite(), queries)
    write_atomically(chosen.marked, "".join(f"{line}\n" for line in found.lines).encode())
    say(f"{found.marked} of {found.queries} queries ask for a fact that a superseded page tells otherwise")
    return 0 if found.marked else FOUND


def _if_there(file: Path) -> Path | None:
    return file if file.is_file() else None
