"""``rag-harness queries from-traces``: makes cases for people to label from questions of users."""

from __future__ import annotations

import argparse
import re
from contextlib import closing
from pathlib import Path

from rag_harness.commands import FOUND
from rag_harness.errors import SettingsError
from rag_harness.service.options import Options
from rag_harness.shown.terminal import say

_SINCE = re.compile(r"(\d+)([mhdw])")
_SECONDS = {"m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_ONLY = ("thumbs-down", "failed", "abstained", "warned")


def from_traces_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``queries from-traces``."""
    folder = Options("").state
    parser.add_argument("--state", type=Path, default=folder, metavar="DIR", help=f"of the service; default: {folder}")
    parser.add_argument("--collection", metavar="NAME", help="whose questions; needed where several were asked")
    parser.add_argument("--since", default="7d", metavar="AGE", help="e.g. 12h, 7d, 4w; default: 7d")
    parser.add_argument("--sample", type=int, metavar="N", help="at most so many questions; default: all")
    parser.add_argument("--only", choices=_ONLY, help="only questions that are of interest for this reason")
    parser.add_argument("--seed", type=int, default=0, help="another draws others; default: 0")
    parser.add_argument("-o", dest="queries", type=Path, required=True, metavar="FILE", help="queries.jsonl to write")


def run_from_traces(chosen: argparse.Namespace) -> int:
    """Write sampled questions, each once, with their answers and with empty gold."""
    from rag_harness.files.atomic import write_atomically
    from rag_harness.service.observing.labelling import merged, rows, sample_of_questions
    from rag_harness.service.observing.logged import LoggedTraces

    _check(chosen)
    with closing(LoggedTraces(chosen.state)) as kept:
        traces = kept.since(_seconds(chosen.since), chosen.collection)
        asked = merged(traces)
        taken = sample_of_questions(asked, chosen.sample, chosen.only, chosen.seed)
        if not taken:
            say(f"None of {len(asked)} questions since {chosen.since} is {chosen.only}; nothing is written.")
            return FOUND
        write_atomically(chosen.queries, (f"{line}\n".encode() for line in rows(taken, asked, kept.content)))
    say(
        f"{len(taken)} of {len(asked)} questions ({len(traces)} traces since {chosen.since}) -> {chosen.queries}. Each "
        f"needs query_type, ground_truth, context_reference and evidence; set reviewed to yes where it has them."
    )
    return 0


def _check(chosen: argparse.Namespace) -> None:
    if chosen.sample is not None and chosen.sample < 1:
        raise SettingsError(f"--sample {chosen.sample} would write nothing. Give a number from 1, or leave it out.")
    if chosen.queries.exists():
        raise SettingsError(f"{chosen.queries} is there already, and may have labels in it. Name another: -o FILE.")


def _seconds(since: str) -> float:
    found = _SINCE.fullmatch(since)
    if found is None:
        raise SettingsError(f"--since {since!r} is no age. Give a number and m, h, d or w: 90m, 12h, 7d, 4w.")
    return float(int(found[1]) * _SECONDS[found[2]])
