"""A conversation as the harness sees it, drawn from the recorded turns of the study's experiment ``c1``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from docs.made.recorded import RECORDED
from docs.made.svg import GAP, WIDTH, box, lines, svg, text, wrapped

_STYLE = (
    ".said{fill:#ddf0ff}.reply{fill:#fff;stroke:#8c959f}.gold{fill:#1a7f37}.other{fill:#d0d7de}.small{font-size:13px}"
    ".why{font-size:13px;font-weight:600;fill:#b3261e}"
)
_SPLIT, _VALUES, _STEP = 400, 500, 18
_CHAT_COLUMNS, _SEEN_COLUMNS = 48, 56
_ORDINALS = ("1st", "2nd", "3rd", "4th", "5th")


def picture() -> str:
    """Return the turns below each other: left what is said, right what was searched for, found, answered, measured."""
    parts = [
        text(GAP, 24, "The chat: a question, and the reference reply", "head"),
        text(GAP, 42, "each turn is told the questions and replies above it", "note"),
        text(_SPLIT, 24, "What the harness keeps of each turn", "head"),
        text(_SPLIT, 42, "green: a chunk of the page that has the answer, among the five that were given", "note"),
    ]
    top = 56
    for turn in RECORDED["chat"]["turns"]:
        said, seen = list(_said(top + 30, turn)), list(_seen(turn))
        chat = sum(height for height, _ in said)
        kept = sum(len(texts) for _, texts, _ in seen) * _STEP
        height = max(chat + 34, kept + 14)
        parts.append(box("band", GAP, top, WIDTH - 2 * GAP, height))
        parts.append(text(2 * GAP, top + 20, f"turn {turn['turn']}", "head"))
        parts += [part for _, drawn in said for part in drawn]
        parts += _fields(top + 20, seen, turn)
        top += height + GAP
    return svg("A conversation of five turns, and what the harness keeps of each", top, parts, _STYLE)


def _said(top: int, turn: Mapping[str, Any]) -> Iterator[tuple[int, list[str]]]:
    """Yield the height and the parts of each message."""
    for kind, indent, words in (("said", 0, turn["query"]), ("reply", 30, turn["reference"])):
        found = wrapped(words, _CHAT_COLUMNS, 4)
        height = len(found) * _STEP + 12
        left = 2 * GAP + indent
        yield (
            height + 8,
            [box(kind, left, top, _SPLIT - 2 * GAP - 50, height), *lines(left + 8, top + 20, found, "small")],
        )
        top += height + 8


def _seen(turn: Mapping[str, Any]) -> Iterator[tuple[str, Sequence[str], str]]:
    """Yield each field: its name, its lines, its style."""
    searched = wrapped(turn["searched"], _SEEN_COLUMNS, 5) if turn["is_rewritten"] else ["its own words"]
    yield "searched for", searched, "small"
    places = [_ORDINALS[n] for n, page in enumerate(turn["pages"]) if page in turn["gold"]]
    yield "found", [f"{' and '.join(places)}: {', '.join(turn['gold'])}"], "small"
    yield "answered", wrapped(turn["answer"], _SEEN_COLUMNS, 4), "small"
    yield "measured", wrapped(", ".join(f"{k} {v}" for k, v in turn["measures"].items()), _SEEN_COLUMNS, 2), "small"
    yield "why", wrapped(f"{turn['cause']}: {turn['detail']}", _SEEN_COLUMNS - 4, 2), "why"


def _fields(top: int, seen: Sequence[tuple[str, Sequence[str], str]], turn: Mapping[str, Any]) -> Iterator[str]:
    for name, texts, kind in seen:
        yield text(_SPLIT, top, name, "note")
        is_found = name == "found"
        if is_found:
            for place, page in enumerate(turn["pages"]):
                yield box("gold" if page in turn["gold"] else "other", _VALUES + place * 16, top - 11, 13, 13)
        yield from lines(_VALUES + (90 if is_found else 0), top, texts, kind, _STEP)
        top += len(texts) * _STEP
