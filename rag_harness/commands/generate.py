"""``rag-harness kb generate``: writes the pages of a plan, and checks each against it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rag_harness.commands import FOUND
from rag_harness.commands.with_settings import add_settings, run_closing
from rag_harness.commands.writer import WRITER_SETTINGS, told_where_written, writer_parts
from rag_harness.errors import DataError
from rag_harness.shown.terminal import say

if TYPE_CHECKING:
    from rag_harness.authoring.kb.plan import Plan
    from rag_harness.authoring.kb.writing.generating import Generated

_AT_ONCE = 8
"""How many pages the embedded writer works on: one waits for the disk while the next is composed."""
_LONGEST = 4096
"""The most tokens of a page, if the settings allow less: a page is longer than an answer."""
_NAMED = 20
"""How many pages are named for each kind of message."""
_WRITERS = "who writes: a grammar in this process, or a chat model of role writer; default: embedded"


def generate_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``kb generate``."""
    parser.add_argument("plan", type=Path, metavar="PLAN", help="structure.json, of kb plan or your own")
    parser.add_argument("-o", dest="folder", type=Path, required=True, metavar="DIR", help="folder for the pages")
    parser.add_argument("--writer", choices=("embedded", "llm"), default="embedded", help=_WRITERS)
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
    say(*_told(made, plan, chosen.folder))
    return FOUND if made.faulty or made.stopped or made.paid or made.unplanned or any(made.edited.values()) else 0


def _plan(file: Path) -> tuple[bytes, Plan]:
    from rag_harness.authoring.kb.plan import read_plan
    from rag_harness.authoring.kb.planning import check_plan

    plan, problems = read_plan(file)
    if plan is None:
        why = [f"{file}:{line}: {problem}" for line, problem in problems]
        raise DataError("\n".join(why) or f"No plan {file}. Write one, or make one: rag-harness kb plan -o {file}")
    check_plan(plan)
    return file.read_bytes(), plan


def _composed(chosen: argparse.Namespace, text: bytes, plan: Plan) -> Generated:
    import asyncio

    from rag_harness.authoring.kb.writing.generating import generate
    from rag_harness.authoring.kb.writing.writers import EmbeddedWriter

    return asyncio.run(generate(plan, text, chosen.folder, EmbeddedWriter(chosen.seed), _AT_ONCE, chosen.force))


def _asked(chosen: argparse.Namespace, text: bytes, plan: Plan) -> Generated:
    from rag_harness.authoring.kb.writing.generating import generate
    from rag_harness.authoring.kb.writing.writers import AskedWriter

    parts = writer_parts(chosen, _LONGEST)
    writer = AskedWriter(parts.chat("writer"), parts.prompts("pages"))
    # Twice the calls that may be in flight (the limiter enforces that limit). While one page is checked, the next is
    # asked for.
    at_once = 2 * parts.settings.concurrency
    return run_closing(generate(plan, text, chosen.folder, writer, at_once, chosen.force), parts)


def _told(made: Generated, plan: Plan, folder: Path) -> Iterator[str]:
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
