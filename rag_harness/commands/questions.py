"""``rag-harness kb queries``: writes questions for any documents, with ground truth and evidence."""

from __future__ import annotations

import argparse
from pathlib import Path

from rag_harness.commands import FOUND
from rag_harness.commands.with_settings import (
    add_documents,
    add_settings,
    documents_of_suite,
    questions_of_suite,
    settings_said,
)
from rag_harness.commands.writer import WRITER_SETTINGS
from rag_harness.errors import DataError
from rag_harness.shown.terminal import say

DEFAULT = 200
_MOST = 1_000_000
KIND_SHARES = {"direct": 0.6, "multi_hop": 0.2, "negative": 0.2}
"""The shares of the kinds of questions, if the command line gives only a total."""


_WRITERS = "who writes: from facts that the text states, or by a chat model of role writer; default: embedded"


_LANGUAGE = {"language": "language of all pages that state none, e.g. de; default: that of each is found"}


def queries_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``kb queries``."""
    add_documents(parser, "folder of documents: Markdown, text, HTML, PDF")
    queries = "the questions; default: queries.jsonl in DIR; without DIR, rag_queries of the ini file counts more"
    parser.add_argument("-o", dest="file", type=Path, metavar="FILE", help=queries)
    parser.add_argument(
        "-n", dest="count", type=_count, metavar="N", help=f"questions of all kinds; default: {DEFAULT}"
    )
    for name in KIND_SHARES:
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(
            option, dest=name, type=_count, metavar="N", help=f"{name.replace('_', '-')} questions among them"
        )
    talks = "conversations of 3 to 6 turns, by --writer llm; without -n and kinds, no single question beside them"
    parser.add_argument("--conversations", type=_count, metavar="N", help=talks)
    parser.add_argument("--writer", choices=("embedded", "llm"), default="embedded", help=_WRITERS)
    add_settings(parser, WRITER_SETTINGS, ("", "rag-"))
    add_settings(parser, _LANGUAGE, ("", "rag-"))
    parser.add_argument("--seed", type=int, default=0, help="seed: another one draws other questions; default: 0")
    shared = "share of its words that a question may have in common with its pages, 0 to 1; default: 1"
    parser.add_argument("--most-shared", type=_share, default=1.0, metavar="X", help=shared)
    parser.add_argument("--force", action="store_true", help="write over questions that somebody has reviewed")


def run_queries(chosen: argparse.Namespace) -> int:
    """Write questions for the documents of a folder."""
    from rag_harness.authoring.questions import (
        DocumentCollection,
        json_lines,
        planned_facts,
        rejected_beside,
        rejected_ids,
    )
    from rag_harness.commands.drafting import drafted, drafted_lines, why_nothing
    from rag_harness.dataset.document_languages import language_of, languages_said
    from rag_harness.dataset.knowledge_base import read_folder
    from rag_harness.dataset.library import ParsedKeeping
    from rag_harness.files.atomic import write_atomically
    from rag_harness.settings.loading import load_settings

    folder = chosen.folder or documents_of_suite()
    file = chosen.file or (folder / "queries.jsonl" if chosen.folder else questions_of_suite())
    wanted = _wanted(chosen)
    _spare_reviewed(file, chosen.force)
    rejected = rejected_beside(file)
    asked = language_of(load_settings(settings_said(chosen, _LANGUAGE)))
    library = read_folder(folder, ParsedKeeping(language=asked))
    collection = DocumentCollection(library.documents, planned_facts(folder))
    found = drafted(chosen, collection, wanted, rejected)
    lines = json_lines(found.rows(collection, rejected_ids(file)))
    if not lines:
        raise DataError(why_nothing(folder, found))
    write_atomically(file, lines.encode())
    unread = [f"not read: {each.line}" for each in library.unread]
    say(*unread, *languages_said(library.documents), *drafted_lines(found, file))
    return FOUND if found.is_short and _is_asked(chosen) else 0


def _count(text: str) -> int:
    if not (text.isdecimal() and len(text) <= len(str(_MOST)) and int(text) <= _MOST):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 to {_MOST:,}")
    return int(text)


def _share(text: str) -> float:
    share = float(text)
    if not 0 <= share <= 1:
        raise ValueError
    return share


def _is_asked(chosen: argparse.Namespace) -> bool:
    return any(getattr(chosen, name) is not None for name in ("count", "conversations", *KIND_SHARES))


def _wanted(chosen: argparse.Namespace) -> dict[str, int]:
    told = {kind: getattr(chosen, kind) for kind in KIND_SHARES}
    if all(number is None for number in told.values()):
        if chosen.conversations is not None and chosen.count is None:
            return dict.fromkeys(KIND_SHARES, 0)
        count = DEFAULT if chosen.count is None else chosen.count
        shares = {kind: int(count * share) for kind, share in KIND_SHARES.items() if kind != "direct"}
        return {"direct": count - sum(shares.values()), **shares}
    wanted = {kind: number or 0 for kind, number in told.items()}
    if chosen.count is not None and sum(wanted.values()) != chosen.count:
        if told["direct"] is not None or sum(wanted.values()) > chosen.count:
            parts = " + ".join(f"{number} {kind}" for kind, number in wanted.items())
            raise DataError(
                f"-n {chosen.count}, but {parts} are {sum(wanted.values())}. Leave -n out, or make them agree."
            )
        wanted["direct"] = chosen.count - sum(wanted.values())
    return wanted


def _spare_reviewed(file: Path, force: bool) -> None:
    if file.is_dir():
        raise DataError(f"{file} is a folder. Name the file of the questions: -o {file / 'queries.jsonl'}")
    if not file.absolute().parent.is_dir():
        raise DataError(f"No folder {file.parent} to write {file.name} into. Make it, or name another file with -o.")
    if force or not file.exists() or not file.read_bytes().strip():
        return  # the file is empty: all were rejected
    from rag_harness.dataset.queries import read_queries
    from rag_harness.types import REVIEWED, review_said

    try:
        kept = [case for case in read_queries(file) if review_said(case.metadata.get(REVIEWED)) != "no"]
    except DataError as error:
        raise DataError(
            f"{error}\n{file} is there and is no file of questions. Name another, or say --force."
        ) from error
    if kept:
        raise DataError(
            f"{file} holds {len(kept)} questions that somebody wrote or reviewed. Name another file with -o, or say "
            "--force."
        )
