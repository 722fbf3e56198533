"""``rag-harness kb plan``: plans a knowledge base before its pages are written."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from rag_harness.commands.with_settings import add_settings, run_closing
from rag_harness.commands.writer import WRITER_SETTINGS, told_where_written, writer_parts
from rag_harness.errors import DataError
from rag_harness.shown.terminal import say

if TYPE_CHECKING:
    from rag_harness.authoring.kb.plan import Plan
    from rag_harness.authoring.kb.planning import PlanRequest

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
    rot = "share of the pages that stand in version pairs, 0 to 1; default: 0.1"
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
    from rag_harness.authoring.kb.planning import PlanRequest, check_plan, plan_text, planned
    from rag_harness.files.atomic import write_atomically

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
    from rag_harness.authoring.kb.planning.asked_of_llm import Writer

    wanted.check()
    parts = writer_parts(chosen, _LONGEST)
    outline, page = parts.prompts("plan_outline"), parts.prompts("plan_page")
    writer = Writer(parts.chat("writer"), outline, page, parts.settings.concurrency)
    return run_closing(writer.plan(wanted), parts)


def _shares(told: str | None) -> dict[str, float]:
    from rag_harness.authoring.kb.planning.wanted import USUAL_KIND_SHARES

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
        lines.append(f"rot is {plan.rot:g}: {wanted.rot:g} of {wanted.pages} pages is no whole number of pairs")
    return lines


def _dropped(dropped: Counter[str]) -> list[str]:
    if not dropped:
        return []
    reasons = [f"  {count:6}  {reason}" for reason, count in dropped.most_common()]
    return [f"dropped {dropped.total()} replies, others were asked for instead:", *reasons]
