"""What is folded in a comment: gates that were not judged, kinds of answers, where answers come from, commands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rag_harness.page.comment.room import Room
from rag_harness.page.content import Code
from rag_harness.page.run import Run
from rag_harness.page.sections.again import again
from rag_harness.report.brief import Brief
from rag_harness.report.provenance import provenance_lines
from rag_harness.report.wording import counted
from rag_harness.shown.markdown import code_block, plain

_LONGEST = 400
"""Characters of a command. A part of a command is of no use."""
_REPORT = "see the report"
_SETTINGS = ("profile", "mode", "chat_model", "embed_model")


def folded_lines(brief: Brief, run: Run, room: Room) -> Iterator[str]:
    """Yield the details. GitHub reads Markdown inside them only between empty lines."""
    yield "<details><summary>Details: gates without a verdict, categories, origins, how to repeat it</summary>"
    yield ""
    yield from _not_judged(run, room)
    yield from _kinds(brief, room)
    yield from _origins(run, room)
    yield f"- {room.said(_made(run))}"
    yield ""
    commands = next((block.lines for block in again(run) if isinstance(block, Code)), ())
    yield from code_block([line if len(line) <= _LONGEST else f"# a long command: {_REPORT}" for line in commands])
    yield ""
    yield "</details>"


def _not_judged(run: Run, room: Room) -> Iterator[str]:
    """Yield why gates were not judged, each reason once, and how many gates have it."""
    reasons = Counter(gate.get("reason") or "no reason is kept" for gate in run.gates if gate["state"] == "not judged")
    found = reasons.most_common()
    if found:
        few = [f"{reason} ({n:,})" if n > 1 else reason for reason, n in found[: room.few]]
        more = f"; and {counted(len(found) - room.few, 'more reason')}" if len(found) > room.few else ""
        yield f"- Not judged, {reasons.total():,}: {room.said('; '.join(few))}{more}"


def _kinds(brief: Brief, room: Room) -> Iterator[str]:
    """Yield the kinds of answers of each experiment with a context, the most frequent first.

    Without a context declines alone have a kind, and the report counts those.
    """
    kinds = {name: found.kinds() for name, found in brief.tables.items() if found.totals.retrieves}
    known = {name: found for name, found in kinds.items() if found}
    # The one that the sentences speak of comes first.
    for name, found in sorted(known.items(), key=lambda each: each[0] != brief.subject)[: room.few]:
        said = ", ".join(f"{n:,} {kind}" for kind, n in found.most_common())
        yield f"- Answers of {room.named(name)}: {plain(said)}"
    if len(known) > room.few:
        yield f"- Answers of {counted(len(known) - room.few, 'more experiment')}: {_REPORT}"


def _origins(run: Run, room: Room) -> Iterator[str]:
    lines = provenance_lines(run.selected, run.manifest.date)
    yield from (f"- {room.said(f'{line[:1].upper()}{line[1:]}')}" for line in lines[: room.few])
    if len(lines) > room.few:
        yield f"- Origins of other answers: {_REPORT}"


def _made(run: Run) -> str:
    manifest, settings = run.manifest, run.manifest.settings
    at = f" at commit {manifest.commit[:12]}" if manifest.commit else ""
    parts = [f"Run of {manifest.date}{at}"]
    parts += [f"{name} {settings[name]}" for name in _SETTINGS if settings.get(name)]
    parts += [f"{name} {digest[:12]}" for name, digest in sorted(manifest.digests.items()) if digest]
    return "; ".join(parts)
