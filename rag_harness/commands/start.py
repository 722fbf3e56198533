"""``rag-harness init``: the smallest working suite in somebody's repository."""

from __future__ import annotations

import argparse
from pathlib import Path


def init_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what ``init`` takes."""
    parser.add_argument("folder", type=Path, nargs="?", default=Path(), help="your repository; default: this folder")
    parser.add_argument("--kb", default="docs", metavar="DIR", help="your Markdown, below it; default: docs")


def run_init(chosen: argparse.Namespace) -> int:
    """Write the smallest working suite."""
    from rag_harness.starter import start

    print("\n".join(start(chosen.folder, chosen.kb).lines()))
    return 0
