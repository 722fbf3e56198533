"""The commands rag-harness queries import, from-traces, review and check."""

from __future__ import annotations

import argparse
import getpass
import re
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from rag_harness.core.errors import DataError, SettingsError
from rag_harness.core.escaping import say, say_json
from rag_harness.frontends.cli import FOUND
from rag_harness.frontends.cli.options import (
    add_documents,
    add_query_types,
    documents_of_suite,
    query_types,
    questions_of_suite,
)
from rag_harness.service.app_state import Options

if TYPE_CHECKING:
    from rag_harness.authoring.importing.importer import WrittenLine
    from rag_harness.authoring.questions.review.page import Showing
    from rag_harness.authoring.questions.review.rows import ReviewFile
    from rag_harness.service.labelling import Logged, WordsOfTrace


# ``rag-harness queries check``: checks whether questions are still about what the documents say.


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
    from rag_harness.authoring.questions.document_changes import check, mended
    from rag_harness.authoring.questions.document_collection import DocumentCollection
    from rag_harness.authoring.questions.findings import read_asked, report_as_json, report_lines
    from rag_harness.core.files import write_atomically
    from rag_harness.data.documents import read_folder

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


# ``rag-harness queries import``: makes ``queries.jsonl`` of the files of other tools.


def import_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``queries import``."""
    from rag_harness.authoring.importing.importer import SOURCES

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
    from rag_harness.authoring.importing.importer import Part, guessed_source, import_questions
    from rag_harness.authoring.questions.drafts import json_lines
    from rag_harness.core.files import write_atomically
    from rag_harness.data.documents import read_folder
    from rag_harness.data.source_records import read_map

    _check_import(chosen)
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


def _check_import(chosen: argparse.Namespace) -> None:
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


# ``rag-harness queries review``: lets a person review drafted questions with their evidence.

_STATES = ("unreviewed", "accepted", "rejected")
_GIT_SECONDS = 5
_NAME_IT = "Name their folder: --kb DIR, or rag_kb_dir in the ini file"


def review_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``queries review``."""
    parser.add_argument("file", type=Path, metavar="FILE", help="file of the questions: queries.jsonl")
    documents = "folder of their documents; default: rag_kb_dir of the ini file or KB_DIR, or the file's own folder"
    parser.add_argument("--kb", type=Path, metavar="DIR", help=documents)
    who = "who reviewed, where the page has no name; default: git's user.name, else the system's"
    parser.add_argument("--by", metavar="NAME", help=who)
    parser.add_argument(
        "--kind", default="", metavar="KIND", help="only questions of this kind: direct, multi_hop, negative"
    )
    parser.add_argument("--only", choices=_STATES, default="", help="only questions in this state")
    parser.add_argument("--sample", type=int, metavar="N", help="number of questions, drawn; the same ones each time")
    parser.add_argument("--seed", type=int, default=0, help="seed: another one draws others; default: 0")
    either = parser.add_mutually_exclusive_group()
    written = "the page that is written, to review in a browser; default: review.html"
    either.add_argument("--page", type=Path, default=Path("review.html"), metavar="HTML", help=written)
    either.add_argument("--take", type=Path, metavar="JSONL", help="take what the page has downloaded")


def run_review(chosen: argparse.Namespace) -> int:
    """Write a page to review questions on, or take what one has downloaded."""
    from rag_harness.authoring.questions.review.rows import alone_with

    _check_review(chosen)
    if not chosen.take:
        return _page(chosen)
    with alone_with(chosen.file):
        return _take(chosen)


def _page(chosen: argparse.Namespace) -> int:
    from rag_harness.authoring.questions.review.page import html_of
    from rag_harness.core.files import write_atomically
    from rag_harness.tables.wording import counted

    file, numbers = _questions(chosen)
    if numbers:
        shown = [file.rows[number] for number in numbers]
        html = html_of(chosen.file.name, shown, _showing(chosen, file), file.rows)
        write_atomically(chosen.page, html.encode())
        say(
            f"wrote {chosen.page}: {counted(len(numbers), 'question')} with the evidence. What it downloads is taken "
            f"by: rag-harness queries review {chosen.file}{f' --kb {chosen.kb}' if chosen.kb else ''} --take DOWNLOADED"
        )
    return 0


def _take(chosen: argparse.Namespace) -> int:
    from rag_harness.authoring.questions.review.page import taken
    from rag_harness.authoring.questions.review.rows import ReviewFile
    from rag_harness.tables.wording import counted

    file = ReviewFile(chosen.file)
    found = taken(chosen.take, file.rows, _showing(chosen, file), _who(chosen.by))
    file.put(found.changed)
    say(*found.problems, to=sys.stderr)
    again = f", {found.before} were taken before" if found.before else ""
    say(f"{chosen.file}: {counted(len(found.changed), 'decision')} taken{again}, {len(found.problems)} not")
    return FOUND if found.problems else 0


def _questions(chosen: argparse.Namespace) -> tuple[ReviewFile, list[int]]:
    """Return the file and the numbers of the rows to review. If there are none, print that."""
    from rag_harness.authoring.questions.review.rows import ReviewFile
    from rag_harness.authoring.questions.review.rows import chosen_rows as rows_chosen

    file = ReviewFile(chosen.file)
    numbers = rows_chosen(file.rows, chosen.kind, chosen.only, chosen.sample, chosen.seed)
    if not numbers:
        say(f"{chosen.file}: none of its {len(file.rows)} questions is {chosen.only}. There is nothing to review.")
    return file, numbers


def _check_review(chosen: argparse.Namespace) -> None:
    if chosen.sample is not None and chosen.sample < 1:
        raise SettingsError(f"--sample {chosen.sample} would show nothing. Give a number from 1, or leave it out.")
    page = chosen.page
    if not chosen.take and (page.is_dir() or page.suffix.lower() not in (".html", ".htm")):
        raise SettingsError(f"--page {page} is not an HTML file. Name one that ends with .html.")
    if not chosen.take and not page.absolute().parent.is_dir():
        raise DataError(f"No folder {page.parent} to write {page.name} into. Make it, or name another file.")
    if not chosen.file.is_file():
        what = "is a folder" if chosen.file.is_dir() else "is not there"
        raise DataError(f"{chosen.file} {what}. Name a file of questions; rag-harness kb queries DIR writes one.")
    from rag_harness.data.queries import refuse_other_form

    refuse_other_form(chosen.file)


def _showing(chosen: argparse.Namespace, file: ReviewFile) -> Showing:
    from rag_harness.authoring.questions.document_collection import DocumentCollection
    from rag_harness.authoring.questions.review.page import Showing, own_pages
    from rag_harness.data.documents import read_folder
    from rag_harness.frontends.cli.options import documents_of

    named = {page for row in file.rows for page in own_pages(row)}
    folder = chosen.kb or documents_of(chosen.file, named)
    if not chosen.take and chosen.page.resolve().is_relative_to(folder.resolve()):
        raise SettingsError(
            f"--page {chosen.page} lies among the documents, and would be read as one. Name a place outside of {folder}"
        )
    try:
        library = read_folder(folder)
    except DataError as error:
        raise DataError(f"No documents of {chosen.file} in {folder}. {_NAME_IT}") from error
    if named and named.isdisjoint(each.doc_id for each in library.documents):
        raise DataError(f"No page that {chosen.file} names is in {folder}: {min(named)}, say. {_NAME_IT}")
    for each in library.unread:
        say(f"not read: {each.line}")
    if sys.stderr.isatty():
        say(f"reading {len(library.documents)} documents of {folder} …", to=sys.stderr)
    showing = Showing(DocumentCollection(library.documents))
    showing.prepare()
    return showing


def _who(by: str | None) -> str:
    """Return the reviewer's name, on one line.

    Raises:
        SettingsError: no name is known.
    """
    name = " ".join((by if by is not None else _of_git() or _of_system()).split())
    if not name.isprintable() or not name:
        raise SettingsError(f"--by {by!r} is not a name. Say who reviews: --by NAME")
    return name


def _of_git() -> str:
    try:
        told = subprocess.run(
            ["git", "config", "user.name"], capture_output=True, text=True, timeout=_GIT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return ""
    return told.stdout.strip()


def _of_system() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # the user of a container may have no name
        return ""


# ``rag-harness queries from-traces``: makes cases for people to label from questions of users of any pipeline.

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
    _check_sample(chosen)
    if chosen.file is not None:
        return _of_file(chosen)
    from rag_harness.service.labelling import LoggedTraces

    since = chosen.since or _USUAL
    with closing(LoggedTraces(chosen.state)) as kept:
        return _write(chosen, kept.since(_seconds(since), chosen.collection), kept.content, f" since {since}")


def _of_file(chosen: argparse.Namespace) -> int:
    from rag_harness.service.labelling import ExportedQuestions

    exported = ExportedQuestions(chosen.file)
    for trace_id, reason in exported.unread[:_SHOWN]:
        say(f"not read: {trace_id}: {reason}")
    status = _write(chosen, exported.logged, exported.content, f" of {chosen.file}, {len(exported.unread)} not read")
    return status or (FOUND if exported.unread else 0)


def _write(chosen: argparse.Namespace, traces: Sequence[Logged], content: WordsOfTrace, where: str) -> int:
    from rag_harness.core.files import write_atomically
    from rag_harness.service.labelling import merged, rows, sample_of_questions

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


def _check_sample(chosen: argparse.Namespace) -> None:
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
        raise SettingsError(f"--since {since!r} is not an age. Give a number and m, h, d or w: 90m, 12h, 7d, 4w.")
    return float(int(found[1]) * _SECONDS[found[2]])
