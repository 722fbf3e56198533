"""``rag-harness results``: checks whether result files are complete and valid."""

from __future__ import annotations

import argparse
from pathlib import Path

from rag_harness.commands import FOUND
from rag_harness.shown.terminal import say


def validate_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``results validate``."""
    parser.add_argument(
        "path", type=Path, nargs="?", default=Path("output"), help="result file or folder; default: output"
    )
    parser.add_argument(
        "--queries", type=Path, metavar="FILE", help="questions: each result file must have a row for each"
    )


def run_validate(chosen: argparse.Namespace) -> int:
    """Check schema and completeness of result files."""
    from rag_harness.dataset.queries import read_queries
    from rag_harness.results.check import check_results

    cases = read_queries(chosen.queries) if chosen.queries else []
    wanted = [case.query.query_id for case in cases if case.scenario is None]
    played = [case.query.query_id for case in cases if case.scenario is not None]
    checks = check_results(chosen.path, wanted, played)
    for check in checks:
        say(check.line(), *(f"  {problem}" for problem in check.problems))
    return FOUND if any(check.problems for check in checks) else 0
