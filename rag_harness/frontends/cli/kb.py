"""The commands rag-harness kb plan, generate, validate, superseded, queries and graph."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rag_harness.core.errors import DataError, SettingsError
from rag_harness.core.escaping import say, say_json
from rag_harness.frontends.cli import FOUND
from rag_harness.frontends.cli.options import (
    WRITER_SETTINGS,
    add_documents,
    add_query_types,
    add_settings,
    documents_of_suite,
    query_types,
    questions_of_suite,
    run_closing,
    settings_said,
    told_where_written,
    writer_parts,
)

if TYPE_CHECKING:
    from rag_harness.authoring.kb.page_writing import Generated
    from rag_harness.authoring.kb.plan import Plan, PlanRequest
    from rag_harness.authoring.questions.conversation_writer import GeneratedConversations
    from rag_harness.authoring.questions.document_collection import DocumentCollection
    from rag_harness.authoring.questions.drafts import Draft
    from rag_harness.authoring.questions.generator import GeneratedQuestions


# ``rag-harness kb``: checks a knowledge base, its queries and its golden set, and shows its links.

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
    from rag_harness.authoring.kb.plan import mark_superseded
    from rag_harness.core.files import write_atomically

    queries = chosen.queries or (None if chosen.folder else questions_of_suite())
    found = mark_superseded(chosen.folder or documents_of_suite(), queries)
    write_atomically(chosen.marked, "".join(f"{line}\n" for line in found.lines).encode())
    say(f"{found.marked} of {found.queries} queries ask for a fact that a superseded page tells otherwise")
    return 0 if found.marked else FOUND


def _if_there(file: Path) -> Path | None:
    return file if file.is_file() else None


# ``rag-harness kb plan``: plans a knowledge base before its pages are written.

_WRITERS = "who plans: from a shipped domain, or by a chat model of role writer, which plans any; default: embedded"
_DOMAINS = "what the pages are about: retail support, employee handbook or device manuals; anything with --writer llm"
_LONGEST = 4096
"""The most tokens of a reply, if the settings allow less: a page's facts, table and steps, or twenty titles."""
_KINDS = (
    "shares: tabular pages have a table, logical ones steps, mixed both; default: tabular=0.3,logical=0.4,mixed=0.3"
)


def plan_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``kb plan``."""
    parser.add_argument("--domain", required=True, metavar="WORDS", help=_DOMAINS)
    parser.add_argument(
        "--pages", type=int, default=100, metavar="N", help="number of pages, with the outdated ones; default: 100"
    )
    rot = "share of the pages that are in version pairs, 0 to 1; default: 0.1"
    parser.add_argument("--rot", type=float, default=0.1, metavar="X", help=rot)
    parser.add_argument("--kinds", metavar="KIND=X,…", help=_KINDS)
    parser.add_argument(
        "-o", dest="file", type=Path, default=Path("structure.json"), metavar="FILE", help="file of the plan"
    )
    parser.add_argument("--writer", choices=("embedded", "llm"), default="embedded", help=_WRITERS)
    add_settings(parser, WRITER_SETTINGS, ("", "rag-"))
    parser.add_argument("--seed", type=int, default=0, help="seed: another one draws another plan; default: 0")
    parser.add_argument("--force", action="store_true", help="write over a plan that is there")


def run_plan(chosen: argparse.Namespace) -> int:
    """Write the plan of a knowledge base."""
    from rag_harness.authoring.kb.embedded_planner import planned
    from rag_harness.authoring.kb.plan import PlanRequest, plan_text
    from rag_harness.authoring.kb.plan_checks import check_plan
    from rag_harness.core.files import write_atomically

    with told_where_written(chosen.file):
        _spare(chosen.file, chosen.force)
    wanted = PlanRequest(chosen.domain, chosen.pages, chosen.rot, _shares(chosen.kinds), chosen.seed)
    plan, dropped = _written_by_model(chosen, wanted) if chosen.writer == "llm" else (planned(wanted), Counter[str]())
    check_plan(plan)
    with told_where_written(chosen.file):
        write_atomically(chosen.file, plan_text(plan).encode())
    say(*_told(plan, wanted, chosen.file), *_dropped(dropped))
    return 0


def _written_by_model(chosen: argparse.Namespace, wanted: PlanRequest) -> tuple[Plan, Counter[str]]:
    from rag_harness.authoring.kb.llm_planner import Writer

    wanted.check()
    parts = writer_parts(chosen, _LONGEST)
    outline, page = parts.prompts("plan_outline"), parts.prompts("plan_page")
    writer = Writer(parts.chat("writer"), outline, page, parts.settings.concurrency)
    return run_closing(writer.plan(wanted), parts)


def _shares(told: str | None) -> dict[str, float]:
    from rag_harness.authoring.kb.plan import USUAL_KIND_SHARES

    if told is None:
        return dict(USUAL_KIND_SHARES)
    try:
        return {kind.strip(): float(share) for kind, share in (each.split("=") for each in told.split(","))}
    except ValueError as error:
        raise DataError(f"--kinds is {told!r}. Write it as tabular=0.3,logical=0.4,mixed=0.3") from error


def _spare(file: Path, force: bool) -> None:
    if file.is_dir():
        raise DataError(f"{file} is a folder. Name the file of the plan: -o {file / 'structure.json'}")
    if not file.absolute().parent.is_dir():
        raise DataError(f"No folder {file.parent} to write {file.name} into. Make it, or name another file with -o.")
    if file.exists() and not force:
        raise DataError(f"{file} is there. Name another file with -o, or say --force.")


def _told(plan: Plan, wanted: PlanRequest, file: Path) -> list[str]:
    kinds = ", ".join(f"{sum(page.kind == kind for page in plan.pages)} {kind}" for kind in wanted.shares)
    facts = sum(len(page.facts or ()) for page in plan.pages)
    pairs = len(plan.version_pairs or ())
    lines = [
        f"wrote {file}: {len(plan.pages)} pages ({kinds}), {facts} facts, {pairs} version pair{'s' * (pairs != 1)}"
    ]
    if plan.rot != wanted.rot:
        lines.append(f"rot is {plan.rot:g}: {wanted.rot:g} of {wanted.pages} pages is not a whole number of pairs")
    return lines


def _dropped(dropped: Counter[str]) -> list[str]:
    if not dropped:
        return []
    reasons = [f"  {count:6}  {reason}" for reason, count in dropped.most_common()]
    return [f"dropped {dropped.total()} replies, others were asked for instead:", *reasons]


# ``rag-harness kb generate``: writes the pages of a plan, and checks each against it.

_AT_ONCE = 8
"""How many pages the embedded writer works on: one waits for the disk while the next is composed."""
_NAMED = 20
"""How many pages are named for each kind of message."""
_PAGE_WRITERS = "who writes: a grammar in this process, or a chat model of role writer; default: embedded"


def generate_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``kb generate``."""
    parser.add_argument("plan", type=Path, metavar="PLAN", help="structure.json, of kb plan or your own")
    parser.add_argument("-o", dest="folder", type=Path, required=True, metavar="DIR", help="folder for the pages")
    parser.add_argument("--writer", choices=("embedded", "llm"), default="embedded", help=_PAGE_WRITERS)
    add_settings(parser, WRITER_SETTINGS, ("", "rag-"))
    parser.add_argument(
        "--seed", type=int, default=0, help="seed: another one words and orders pages otherwise; default: 0"
    )
    parser.add_argument("--force", action="store_true", help="write over pages that somebody has edited or written")


def run_generate(chosen: argparse.Namespace) -> int:
    """Write the pages of a plan that are missing or differ from it."""
    text, plan = _plan(chosen.plan)
    with told_where_written(chosen.folder):
        made = _asked(chosen, text, plan) if chosen.writer == "llm" else _composed(chosen, text, plan)
    say(*_generated_lines(made, plan, chosen.folder))
    return FOUND if made.faulty or made.stopped or made.paid or made.unplanned or any(made.edited.values()) else 0


def _plan(file: Path) -> tuple[bytes, Plan]:
    from rag_harness.authoring.kb.plan import read_plan
    from rag_harness.authoring.kb.plan_checks import check_plan

    plan, problems = read_plan(file)
    if plan is None:
        why = [f"{file}:{line}: {problem}" for line, problem in problems]
        raise DataError("\n".join(why) or f"No plan {file}. Write one, or make one: rag-harness kb plan -o {file}")
    check_plan(plan)
    return file.read_bytes(), plan


def _composed(chosen: argparse.Namespace, text: bytes, plan: Plan) -> Generated:
    import asyncio

    from rag_harness.authoring.kb.page_writing import EmbeddedWriter, generate

    return asyncio.run(generate(plan, text, chosen.folder, EmbeddedWriter(chosen.seed), _AT_ONCE, chosen.force))


def _asked(chosen: argparse.Namespace, text: bytes, plan: Plan) -> Generated:
    from rag_harness.authoring.kb.page_writing import AskedWriter, generate

    parts = writer_parts(chosen, _LONGEST)
    writer = AskedWriter(parts.chat("writer"), parts.prompts("pages"))
    # Twice the calls that may be in flight (the limiter enforces that limit). While one page is checked, the next is
    # asked for.
    at_once = 2 * parts.settings.concurrency
    return run_closing(generate(plan, text, chosen.folder, writer, at_once, chosen.force), parts)


def _generated_lines(made: Generated, plan: Plan, folder: Path) -> Iterator[str]:
    yield f"wrote {len(made.written):,} of {len(plan.pages):,} pages to {folder}; {made.kept:,} were right already"
    edited = [name for name, changed in made.edited.items() if not changed]
    changed = [name for name, changed in made.edited.items() if changed]
    yield from _listed("kept, somebody has edited it", edited)
    yield from _listed("edited, but planned or written otherwise since; --force writes it over", changed)
    yield from _listed("kept, a model wrote it; go on with --writer llm, or --force writes it over", made.paid)
    yield from _listed("not planned any more; remove it", made.unplanned)
    for name, fault in list(made.faulty.items())[:_NAMED]:
        yield from (f"not written: {name}:", *fault.split("\n"))
    if len(made.faulty) > _NAMED:
        yield f"and {len(made.faulty) - _NAMED:,} more pages were not written"
    if made.stopped:
        yield f"stopped: {made.stopped}. The same command goes on from here."


def _listed(what: str, names: list[str]) -> Iterator[str]:
    yield from (f"{what}: {name}" for name in names[:_NAMED])
    if len(names) > _NAMED:
        yield f"and {len(names) - _NAMED:,} more pages: {what}"


# ``rag-harness kb queries``: writes questions for any documents, with ground truth and evidence.

DEFAULT = 200
_MOST = 1_000_000
KIND_SHARES = {"direct": 0.6, "multi_hop": 0.2, "negative": 0.2}
"""The shares of the kinds of questions, if the command line gives only a total."""


_QUESTION_WRITERS = "who writes: from facts that the text states, or by a chat model of role writer; default: embedded"


_LANGUAGE = {"language": "language of all pages that state none, e.g. de; default: each page's own is found"}


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
    parser.add_argument("--writer", choices=("embedded", "llm"), default="embedded", help=_QUESTION_WRITERS)
    add_settings(parser, WRITER_SETTINGS, ("", "rag-"))
    add_settings(parser, _LANGUAGE, ("", "rag-"))
    parser.add_argument("--seed", type=int, default=0, help="seed: another one draws other questions; default: 0")
    shared = "share of its words that a question may have in common with its pages, 0 to 1; default: 1"
    parser.add_argument("--most-shared", type=_share, default=1.0, metavar="X", help=shared)
    parser.add_argument("--force", action="store_true", help="write over questions that somebody has reviewed")


def run_queries(chosen: argparse.Namespace) -> int:
    """Write questions for the documents of a folder."""
    from rag_harness.authoring.questions.document_collection import DocumentCollection
    from rag_harness.authoring.questions.drafts import json_lines
    from rag_harness.authoring.questions.planned_facts import planned_facts
    from rag_harness.authoring.questions.review.rows import rejected_beside, rejected_ids
    from rag_harness.core.files import write_atomically
    from rag_harness.core.settings.loading import load_settings
    from rag_harness.data.documents import ParsedKeeping, language_of, languages_said, read_folder

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
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to {_MOST:,}")
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
    from rag_harness.core.types import REVIEWED, review_said
    from rag_harness.data.queries import read_queries

    try:
        kept = [case for case in read_queries(file) if review_said(case.metadata.get(REVIEWED)) != "no"]
    except DataError as error:
        raise DataError(
            f"{error}\n{file} is there and is not a file of questions. Name another, or say --force."
        ) from error
    if kept:
        raise DataError(
            f"{file} holds {len(kept)} questions that somebody wrote or reviewed. Name another file with -o, or say "
            "--force."
        )


_LONGEST_REPLY = 4_000
"""How many tokens a conversation of six turns may need."""
NO_FACT = (
    "No sentence or table states a fact in English, nor one of a plain form in German, French, Spanish, Portuguese, "
    "Italian or Dutch."
)


@dataclass(frozen=True)
class Drafted:
    """What was drafted, and by whom. ``wanted`` are questions by kind, ``talks`` how many conversations."""

    by: str
    wanted: Mapping[str, int]
    talks: int
    questions: GeneratedQuestions
    conversations: GeneratedConversations

    @property
    def is_short(self) -> bool:
        """Whether there is less than was wanted."""
        return bool(self.questions.short or self.conversations.short)

    @property
    def stopped(self) -> str:
        """Why no more were asked for; empty if they were."""
        return self.questions.stopped or self.conversations.stopped

    def rows(self, collection: DocumentCollection, taken: set[str]) -> Iterator[dict[str, object]]:
        """Yield the lines of the file: the questions, then the conversations. No id is in ``taken``."""
        from rag_harness.authoring.questions.conversation_writer import conversation_rows
        from rag_harness.authoring.questions.drafts import rows

        yield from rows(self.questions.drafts, collection, self.by, taken)
        yield from conversation_rows(self.conversations.drafts, self.by, taken)


def drafted(
    chosen: argparse.Namespace, collection: DocumentCollection, wanted: Mapping[str, int], rejected: Sequence[Draft]
) -> Drafted:
    """Return the questions and the conversations that the command line asks for."""
    from rag_harness.authoring.questions.conversation_writer import GeneratedConversations
    from rag_harness.authoring.questions.drafts import EMBEDDED
    from rag_harness.authoring.questions.generator import make_questions

    talks = chosen.conversations or 0
    if chosen.writer == "llm":
        return _drafts_by_model(chosen, collection, wanted, talks, rejected)
    if talks:
        raise SettingsError(
            "A model drafts conversations, and none was named: add --writer llm, with --writer-model and "
            "--writer-base-url."
        )
    questions = make_questions(collection, wanted, chosen.seed, chosen.most_shared, rejected)
    return Drafted(EMBEDDED, wanted, talks, questions, GeneratedConversations())


def _drafts_by_model(
    chosen: argparse.Namespace,
    collection: DocumentCollection,
    wanted: Mapping[str, int],
    talks: int,
    rejected: Sequence[Draft],
) -> Drafted:
    """Return what a model wrote; the questions first."""
    from rag_harness.authoring.questions.conversation_writer import ConversationWriter
    from rag_harness.authoring.questions.llm_writer import Writer

    parts = writer_parts(chosen, _LONGEST_REPLY if talks else 0)
    chat, at_once = parts.chat("writer"), parts.settings.concurrency
    writer = Writer(chat, parts.prompts("questions"), collection, at_once)
    talker = ConversationWriter(chat, parts.prompts("conversations"), collection, at_once)

    async def both() -> Drafted:
        questions = await writer.ask(wanted, chosen.seed, chosen.most_shared, rejected)
        left = 0 if questions.stopped else talks
        found = await talker.ask(left, chosen.seed, chosen.most_shared, rejected, questions.drafts)
        found.short = talks - len(found.drafts)
        return Drafted(chat.model, wanted, talks, questions, found)

    return run_closing(both(), parts)


def why_nothing(folder: Path, found: Drafted) -> str:
    """Return why there is nothing to write."""
    if found.stopped:
        return f"No question was written: {found.stopped}"
    if not (found.talks or any(found.wanted.values())):
        return "No question and no conversation is asked for. Give a number of them."
    if not any(found.wanted.values()):
        why = ", ".join(f"{count} × {reason}" for reason, count in found.conversations.dropped.most_common(3))
        return f"No conversation was drafted of {folder}: {why or 'its pages have no text'}. Write some yourself."
    why = ", ".join(f"{count} × {reason}" for reason, count in found.questions.dropped.most_common(3))
    found_any = f"The facts found were dropped: {why}." if why else NO_FACT
    return f"No question can be asked of {folder}. {found_any} Write questions yourself, or with a model: --writer llm"


def drafted_lines(found: Drafted, file: Path) -> list[str]:
    """Return the lines that say what was written, what was dropped, and what is missing."""
    questions = found.questions
    counts = {kind: sum(draft.kind == kind for draft in questions.drafts) for kind in found.wanted}
    parts = ", ".join(f"{count} {kind}" for kind, count in counts.items() if found.wanted[kind])
    short = [
        f"Asked for {found.wanted[kind]} {kind} questions; the text bears {counts[kind]} that pass the filters."
        for kind in questions.short
    ]
    written = [f"{len(questions.drafts)} questions ({parts})"] if any(found.wanted.values()) else []
    talks = [_conversations(found.conversations)] if found.talks else []
    return [
        f"wrote {file}: {' and '.join(written + talks)}, unreviewed",
        *_dropped_lines(questions.dropped, "drafts"),
        *_dropped_lines(found.conversations.dropped, "turns"),
        *short,
        *_short_of_talks(found),
        *([f"stopped: {found.stopped}"] if found.stopped else []),
    ]


def _conversations(found: GeneratedConversations) -> str:
    turns = sum(len(draft.turns) for draft in found.drafts)
    return f"{len(found.drafts)} conversations of {turns} turns"


def _dropped_lines(dropped: Mapping[str, int], what: str) -> list[str]:
    said = sorted(dropped.items(), key=lambda each: -each[1])
    lines = [f"  {count:6}  {reason}" for reason, count in said]
    return [f"dropped {sum(dropped.values())} {what}:", *lines] if lines else []


def _short_of_talks(found: Drafted) -> list[str]:
    talks = found.conversations
    bears = f"the text bears {len(talks.drafts)} whose turns pass the filters"
    return [f"Asked for {found.talks} conversations; {bears}."] if talks.short else []
