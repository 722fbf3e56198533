"""A question as a terminal shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rag_harness.authoring.questions.metadata_keys import AFFECTED
from rag_harness.authoring.questions.review.reviewed_rows import ACCEPTED, REJECTED, QueryRow, decision_line, state_of
from rag_harness.authoring.questions.review.session import Session, review_progress
from rag_harness.authoring.questions.review.shown_question import Shown, ShownQuote
from rag_harness.authoring.questions.review.standing import MOST_BEFORE, said_before
from rag_harness.shown.terminal import block
from rag_harness.types import NEGATIVE

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.segment import Segment
    from rich.text import Text

BAR = "a accept  e edit  r reject  n next  b back  s skip  u undo  c context  ? keys  q quit"
LEAST = 3
"""The fewest lines of a question that are shown, however small the screen."""
FEW_BEFORE, FEW_BEHIND = 6, 4
"""How many lines of a page are shown around a quote, if no more are asked for."""
_COLOURS = {ACCEPTED: "green", REJECTED: "red"}
_TAB = 4
_LABELS = ("turn_kind", "difficulty", "made_of", "kind", "hops", "linked", "overlap", "version_pair")


def show(session: Session, console: Console) -> None:
    """Print the shown question, as much of it as fits the screen, and what the keys do."""
    from rich.control import Control
    from rich.rule import Rule

    head = _lines(console, _head(session), Rule(style="dim"))
    foot = _lines(console, Rule(style="dim"), *_foot(session))
    before = said_before(session.file.rows, session.row)
    body = _lines(console, *_before(before), *_body(session.row, session.showing.of(session.row), session.is_wide))
    room = max(LEAST, console.height - len(head) - len(foot) - 1)
    parts = -(-len(body) // (room - 1)) if len(body) > room else 1
    size = room - 1 if parts > 1 else room
    at = session.part % parts
    more = _lines(console, _text(f"part {at + 1} of {parts}: space shows the next", "dim")) if parts > 1 else []
    console.print(Control.clear(), Control.home(), end="")
    _print(console, [*head, *body[at * size : (at + 1) * size], *more, *foot])


def _head(session: Session) -> Text:
    row = session.row
    text = _text("")
    text.append(f"{session.walk.at + 1} of {len(session.walk.numbers)}  ", "bold")
    text.append(safe(row["query_id"]), "bold")
    text.append(f"  {safe(decision_line(row))}", _COLOURS.get(state_of(row), "yellow"))
    text.append(f"\n{review_progress(session.counts())}", "dim")
    return text


def _before(said: Sequence[tuple[str, str]]) -> Iterator[RenderableType]:
    """Yield what was said before a turn, the last turns of many."""
    if not said:
        return
    left_out = f"the last {MOST_BEFORE} of {len(said)} turns" if len(said) > MOST_BEFORE else ""
    yield _titled("said before", left_out)
    for asked, reply in said[-MOST_BEFORE:]:
        yield _inset(safe(asked))
        yield _inset(safe(reply or "no reply"), "dim")


def _body(row: QueryRow, shown: Shown, is_wide: bool) -> Iterator[RenderableType]:
    yield _titled(safe(row.get("query_type", "direct")), _labels(row))
    yield _inset(safe(row["query"]), "bold")
    if alone := row.get("standalone"):
        yield _titled("asked alone")
        yield _inset(safe(alone))
    yield _titled("answer")
    yield _inset(safe(row.get("ground_truth") or "none"))
    if why := (row.get("metadata") or {}).get(AFFECTED):
        yield _titled("the documents have changed")
        yield _inset(safe(str(why)), "yellow")
    if shown.faults:
        yield _titled("cannot be accepted as it is")
        yield from (_inset(safe(fault), "red") for fault in shown.faults)
    for number, place in enumerate(shown.places, 1):
        of = f" {number} of {len(shown.places)}" if len(shown.places) > 1 else ""
        yield _titled(f"evidence{of}", _where(place.filename, place.section))
        yield from _place(place, is_wide)
    for near in shown.near:
        is_negative = row.get("query_type") == NEGATIVE
        about = "nearest passage" if is_negative else "another page that may answer it"
        yield _titled(about, f"{_where(near.filename, near.section)}  {near.share:.0%} of its words")
        yield _inset(safe(near.text), "dim")


def _place(place: ShownQuote, is_wide: bool) -> Iterator[RenderableType]:
    if place.replaced_by:
        by = "" if place.replaced_by == "?" else f" by {safe(place.replaced_by)}"
        yield _inset(f"This page is superseded{by}.", "yellow")
    if place.fault:
        yield _inset(safe(place.quote), "red")
        if place.nearest:
            yield _titled("what that page says")
            yield _inset(safe(place.nearest), "dim")
        return
    before, behind = (place.before, place.after) if is_wide else _few(place)
    text = _text("")
    text.append(safe(before), "dim")
    text.append(safe(place.quote), "reverse")
    text.append(safe(behind), "dim")
    yield _inset(text)


def _few(place: ShownQuote) -> tuple[str, str]:
    before, behind = place.before.split("\n")[-FEW_BEFORE:], place.after.split("\n")[:FEW_BEHIND]
    return "\n".join(before).lstrip("\n"), "\n".join(behind).rstrip("\n")


def _foot(session: Session) -> list[Text]:
    said = [_text(safe(session.message), "yellow")] if session.message else []
    return [*said, _text(BAR, "dim")]


def _labels(row: QueryRow) -> str:
    about = row.get("metadata") or {}
    return "  ".join(f"{name} {safe(str(about[name]))}" for name in _LABELS if name in about)


def _where(filename: str, section: tuple[str, ...]) -> str:
    return safe(" › ".join((filename, *section)).replace("\n", " "))


def _titled(title: str, more: str = "") -> Text:
    text = _text("")
    text.append(f"\n{title}", "cyan")
    text.append(f"  {more}" if more else "", "dim")
    return text


def _inset(text: Text | str, style: str = "") -> RenderableType:
    from rich.padding import Padding

    return Padding(_text(text, style) if isinstance(text, str) else text, (0, 0, 0, 2))


def _text(text: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(text, style, overflow="fold")


def safe(text: str) -> str:
    """Return a text that prints as it is and controls nothing; its lines are kept."""
    return block(text.expandtabs(_TAB))


def _lines(console: Console, *shown: RenderableType) -> list[list[Segment]]:
    options = console.options.update(height=None)
    return [line for each in shown for line in console.render_lines(each, options, pad=False)]


def _print(console: Console, lines: list[list[Segment]]) -> None:
    from rich.segment import Segment, Segments

    console.print(Segments([part for line in lines for part in (*line, Segment.line())]), end="")
