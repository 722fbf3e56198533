"""``rag-harness queries import``: makes ``queries.jsonl`` of the files of other tools."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rag_harness.commands import FOUND
from rag_harness.errors import DataError
from rag_harness.shown.terminal import say

if TYPE_CHECKING:
    from rag_harness.authoring.importing.query_line_writing import WrittenLine


def import_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``queries import``."""
    from rag_harness.authoring.importing.importing import SOURCES

    parser.add_argument("file", type=Path, metavar="FILE", help="the file of another tool, or a folder of a data set")
    parser.add_argument(
        "--from", dest="source", choices=SOURCES, help="the tool that wrote the file; default: guessed, and said"
    )
    mapped = "which column or path is which field, e.g. question=user_input metadata.topic=category"
    parser.add_argument("--map", dest="mapped", nargs="+", default=[], metavar="FIELD=COLUMN", help=mapped)
    parser.add_argument("--kb", type=Path, metavar="DIR", help="the documents, to find contexts in")
    parser.add_argument("--subset", default="", metavar="NAME", help="configuration of a Hugging Face folder")
    parser.add_argument(
        "--split", default="", metavar="NAME", help="split of such a folder; default: the only one, or test"
    )
    read = "whether somebody has read the questions: yes or no; default: no for those that the file calls synthetic"
    parser.add_argument("--reviewed", choices=("yes", "no"), default="", help=read)
    parser.add_argument(
        "-o",
        dest="queries",
        type=Path,
        default=Path("queries.jsonl"),
        metavar="FILE",
        help="file to write; default: queries.jsonl",
    )
    strict = "end with 1 also where fields are left out on purpose, such as dates and answers to be scored"
    parser.add_argument("--strict", action="store_true", help=strict)
    parser.add_argument("--force", action="store_true", help="write over a file that is there")


def run_import(chosen: argparse.Namespace) -> int:
    """Write the questions of a file, and say what was not taken over."""
    from rag_harness.authoring.importing.field_mapping import MAPPED
    from rag_harness.authoring.importing.guessing import guessed_source
    from rag_harness.authoring.importing.importing import Part, import_questions
    from rag_harness.authoring.questions import json_lines
    from rag_harness.dataset.knowledge_base import read_folder
    from rag_harness.dataset.records.field_names import read_map
    from rag_harness.files.atomic import write_atomically

    _check(chosen)
    part = Part(chosen.subset, chosen.split)
    mapped = read_map(chosen.mapped, "--map", MAPPED)
    source, why = (chosen.source, "") if chosen.source else guessed_source(chosen.file, part)
    if why:
        say(f"read as {source}: {why}. Another: --from NAME")
    library = read_folder(chosen.kb) if chosen.kb else None
    say(*(f"not read: {each.line}" for each in library.unread) if library else ())
    documents = library.documents if library else ()
    found = import_questions(chosen.file, source, mapped, documents, chosen.reviewed, part)
    write_atomically(chosen.queries, json_lines(found.lines).encode())
    say(f"wrote {chosen.queries}: {_counted(found.lines)}", *found.notes.lines())
    is_short = found.notes.is_short or (chosen.strict and found.notes.leaves_out)
    return FOUND if is_short else 0


def _check(chosen: argparse.Namespace) -> None:
    if chosen.queries.is_dir():
        raise DataError(f"{chosen.queries} is a folder. Name the file of the questions: -o FILE")
    if not chosen.queries.absolute().parent.is_dir():
        raise DataError(f"No folder {chosen.queries.parent} to write {chosen.queries.name} into. Make it.")
    if chosen.queries.exists() and not chosen.force:
        raise DataError(f"{chosen.queries} is there already. Name another with -o, or say --force.")


def _counted(lines: Sequence[WrittenLine]) -> str:
    """Say what the lines hold: questions, conversations, gold, demands."""
    asked = [turn for line in lines for turn in line.get("turns", [line])]
    conversations = sum("turns" in line for line in lines)
    drafts = sum(line["metadata"].get("reviewed") == "no" for line in lines)
    counts = {
        "with a ground truth": sum("ground_truth" in each for each in asked),
        "with pages": sum("context_reference" in each or "qrels" in each for each in asked),
        "with quotes": sum("evidence" in each for each in asked),
        "with expectations": sum("expect" in each for each in asked),
        "unreviewed": drafts,
    }
    talks = f", {conversations:,} of them conversations, with {len(asked) - len(lines) + conversations:,} turns"
    said = [f"{count:,} {what}" for what, count in counts.items() if count]
    questions = f"{len(lines):,} question{'s' * (len(lines) != 1)}"
    return f"{questions}{talks if conversations else ''}{': ' * bool(said)}{', '.join(said)}"
