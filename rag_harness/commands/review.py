"""``rag-harness queries review``: lets a person review drafted questions with their evidence."""

from __future__ import annotations

import argparse
import getpass
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rag_harness.commands import FOUND
from rag_harness.errors import DataError, SettingsError
from rag_harness.shown.terminal import say

if TYPE_CHECKING:
    from rag_harness.authoring.questions.review.file import ReviewFile
    from rag_harness.authoring.questions.review.showing import Showing

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
    from rag_harness.authoring.questions.review.alone import alone_with

    _check(chosen)
    if not chosen.take:
        return _page(chosen)
    with alone_with(chosen.file):
        return _take(chosen)


def _page(chosen: argparse.Namespace) -> int:
    from rag_harness.authoring.questions.review.page import html_of
    from rag_harness.files.atomic import write_atomically
    from rag_harness.report.wording import counted

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
    from rag_harness.authoring.questions.review.file import ReviewFile
    from rag_harness.authoring.questions.review.taking import taken
    from rag_harness.report.wording import counted

    file = ReviewFile(chosen.file)
    found = taken(chosen.take, file.rows, _showing(chosen, file), _who(chosen.by))
    file.put(found.changed)
    say(*found.problems, to=sys.stderr)
    again = f", {found.before} were taken before" if found.before else ""
    say(f"{chosen.file}: {counted(len(found.changed), 'decision')} taken{again}, {len(found.problems)} not")
    return FOUND if found.problems else 0


def _questions(chosen: argparse.Namespace) -> tuple[ReviewFile, list[int]]:
    """Return the file and the numbers of the rows to review. If there are none, print that."""
    from rag_harness.authoring.questions.review.chosen import chosen_rows as rows_chosen
    from rag_harness.authoring.questions.review.file import ReviewFile

    file = ReviewFile(chosen.file)
    numbers = rows_chosen(file.rows, chosen.kind, chosen.only, chosen.sample, chosen.seed)
    if not numbers:
        say(f"{chosen.file}: none of its {len(file.rows)} questions is {chosen.only}. There is nothing to review.")
    return file, numbers


def _check(chosen: argparse.Namespace) -> None:
    if chosen.sample is not None and chosen.sample < 1:
        raise SettingsError(f"--sample {chosen.sample} would show nothing. Give a number from 1, or leave it out.")
    page = chosen.page
    if not chosen.take and (page.is_dir() or page.suffix.lower() not in (".html", ".htm")):
        raise SettingsError(f"--page {page} is no HTML file. Name one that ends with .html.")
    if not chosen.take and not page.absolute().parent.is_dir():
        raise DataError(f"No folder {page.parent} to write {page.name} into. Make it, or name another file.")
    if not chosen.file.is_file():
        what = "is a folder" if chosen.file.is_dir() else "is not there"
        raise DataError(f"{chosen.file} {what}. Name a file of questions; rag-harness kb queries DIR writes one.")
    from rag_harness.dataset.queries import refuse_other_form

    refuse_other_form(chosen.file)


def _showing(chosen: argparse.Namespace, file: ReviewFile) -> Showing:
    from rag_harness.authoring.questions import DocumentCollection
    from rag_harness.authoring.questions.review.showing import Showing, own_pages
    from rag_harness.commands.with_settings import documents_of
    from rag_harness.dataset.knowledge_base import read_folder

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
        raise SettingsError(f"--by {by!r} is no name. Say who reviews: --by NAME")
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
