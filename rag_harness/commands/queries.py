"""``rag-harness queries from-traces``: makes cases for people to label from questions of users of any pipeline."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from rag_harness.commands import FOUND
from rag_harness.errors import SettingsError
from rag_harness.service.options import Options
from rag_harness.shown.terminal import say

if TYPE_CHECKING:
    from rag_harness.service.observing.labelling import Logged, WordsOfTrace

_SINCE = re.compile(r"(\d+)([mhdw])")
_SECONDS = {"m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_USUAL = "7d"
_SHOWN = 5
_ONLY = ("thumbs-down", "failed", "abstained", "warned")


def from_traces_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``queries from-traces``."""
    folder = Options("").state
    parser.add_argument(
        "--state", type=Path, default=folder, metavar="DIR", help=f"state folder of the service; default: {folder}"
    )
    kept = "in place of a service's: OTLP/JSON, or an export of Phoenix or Langfuse"
    parser.add_argument("--file", type=Path, metavar="FILE.jsonl", help=kept)
    parser.add_argument("--collection", metavar="NAME", help="whose questions; needed where several were asked")
    parser.add_argument(
        "--since", metavar="AGE", help="oldest that a question may be: 12h, 7d, 4w; default: 7d; of a file all"
    )
    parser.add_argument("--sample", type=int, metavar="N", help="at most so many questions; default: all")
    parser.add_argument("--only", choices=_ONLY, help="only questions that are of interest for this reason")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draw: another one draws others; default: 0")
    parser.add_argument("-o", dest="queries", type=Path, required=True, metavar="FILE", help="queries.jsonl to write")


def run_from_traces(chosen: argparse.Namespace) -> int:
    """Write sampled questions, each once, with their answers and with empty gold."""
    _check(chosen)
    if chosen.file is not None:
        return _of_file(chosen)
    from rag_harness.service.observing.logged import LoggedTraces

    since = chosen.since or _USUAL
    with closing(LoggedTraces(chosen.state)) as kept:
        return _write(chosen, kept.since(_seconds(since), chosen.collection), kept.content, f" since {since}")


def _of_file(chosen: argparse.Namespace) -> int:
    from rag_harness.service.observing.exported_questions import ExportedQuestions

    exported = ExportedQuestions(chosen.file)
    for trace_id, reason in exported.unread[:_SHOWN]:
        say(f"not read: {trace_id}: {reason}")
    status = _write(chosen, exported.logged, exported.content, f" of {chosen.file}, {len(exported.unread)} not read")
    return status or (FOUND if exported.unread else 0)


def _write(chosen: argparse.Namespace, traces: Sequence[Logged], content: WordsOfTrace, where: str) -> int:
    from rag_harness.files.atomic import write_atomically
    from rag_harness.service.observing.labelling import merged, rows, sample_of_questions

    asked = merged(traces)
    taken = sample_of_questions(asked, chosen.sample, chosen.only, chosen.seed)
    if not taken:
        what = chosen.only or "there"
        say(f"None of {len(asked)} questions{where} is {what}; nothing is written.")
        return FOUND
    write_atomically(chosen.queries, (f"{line}\n".encode() for line in rows(taken, asked, content)))
    say(
        f"{len(taken)} of {len(asked)} questions ({len(traces)} traces{where}) -> {chosen.queries}. Each "
        f"needs query_type, ground_truth, context_reference and evidence; set reviewed to yes where it has them."
    )
    return 0


def _check(chosen: argparse.Namespace) -> None:
    if chosen.sample is not None and chosen.sample < 1:
        raise SettingsError(f"--sample {chosen.sample} would write nothing. Give a number from 1, or leave it out.")
    if chosen.queries.exists():
        raise SettingsError(f"{chosen.queries} is there already, and may have labels in it. Name another: -o FILE.")

    given = [flag for flag in ("--since", "--collection") if getattr(chosen, flag[2:])]
    if chosen.file is not None and given:
        raise SettingsError(f"{given[0]} is about the traces of a service, and --file names a file. Leave one out.")


def _seconds(since: str) -> float:
    found = _SINCE.fullmatch(since)
    if found is None:
        raise SettingsError(f"--since {since!r} is no age. Give a number and m, h, d or w: 90m, 12h, 7d, 4w.")
    return float(int(found[1]) * _SECONDS[found[2]])
