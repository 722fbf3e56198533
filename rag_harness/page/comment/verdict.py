"""The verdict of a run: a line that says it, the run that it is of, and the gates that fail or are undecided."""

from __future__ import annotations

from collections.abc import Iterator

from rag_harness.page.comment.links import Links
from rag_harness.page.comment.room import Room, below, table_rows
from rag_harness.page.outcome import SIGNS, run_outcome
from rag_harness.page.run import Run
from rag_harness.page.sections.judged_gate import sureness_head
from rag_harness.report.brief import Brief
from rag_harness.report.brief.gates_state import BAD, GateLine
from rag_harness.report.wording import counted


def verdict_line(brief: Brief, run: Run) -> str:
    """Return how the run came out, with what failed, and the number of gates of each verdict."""
    word, said = run_outcome(brief, run)
    return f"## {SIGNS[word]} {word}: {said}"


def run_line(brief: Brief, run: Run, room: Room) -> str:
    """Return what was run, how many questions were answered, by whom, and who judged."""
    found = brief.answered
    parts = [f"RAG evaluation of {room.first(list(brief.tables or run.selected)) or 'nothing: no trial was selected'}"]
    if found.asked:
        parts[0] += f": **{found.rows:,} of {found.asked:,} answered**"
    if brief.alone is not None:
        golden = brief.alone
        parts[0] += f": **{golden.found:,} of {counted(golden.asked, 'question')} found an expected document**"
        parts += [f"❌ {each}" for each in golden.broken]
    parts += [f"❌ {counted(found.errors, 'error')}"] if found.errors else []
    parts += [f"❌ {found.lost:,} without a result"] if found.lost else []
    parts += [room.short(", ".join(found.origins))] if found.origins else []
    parts += [f"by {room.short(' and '.join(found.authors))}"] if found.authors else []
    if brief.tables:
        parts.append(f"judged by {room.short(' and '.join(found.judges))}" if found.judges else "judged by nobody")
    return f"{'; '.join(parts)}."


def gate_lines(brief: Brief, run: Run, room: Room, links: Links) -> Iterator[str]:
    """Yield the gates that fail the run, then the undecided ones, as a table."""
    lines = [*brief.gates.failed, *brief.gates.undecided]
    if not lines:
        return
    to_do = {gate["gate"]: str(gate["otherwise"]) for gate in run.gates if gate.get("otherwise")}
    rows = [_row(line, to_do.get(line.condition, ""), room, links) for line in lines[: room.rows]]
    head = ("gate", "verdict", f"value, {sureness_head(run.gates)}", "why", "worst trial", "what to do")
    kept = [n for n in range(len(head)) if any(row[n] for row in rows)]
    yield from table_rows([head[n] for n in kept], [[row[n] for n in kept] for row in rows])
    if more := lines[room.rows :]:
        failed = sum(line.state in BAD for line in more)
        counts = f"{failed:,} failed, {len(more) - failed:,} undecided"
        yield from below(f"… and {counted(len(more), 'gate')} more: {counts}.")


def _row(line: GateLine, to_do: str, room: Room, links: Links) -> list[str]:
    is_bad = line.state in BAD
    verdict = f"❌ {line.state}" if is_bad else "❔ undecided"
    then = room.short(to_do if is_bad else f"if it does not hold: {to_do}") if to_do else ""
    worst = links.to(line.worst, room, in_table=True) if line.worst else ""
    return [room.named(line.condition, 2), verdict, room.short(line.figures), room.short(line.reason), worst, then]
