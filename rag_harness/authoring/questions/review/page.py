"""The HTML page of questions and their evidence for review."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from rag_harness.authoring.questions.review.presentation import Showing, Shown
from rag_harness.authoring.questions.review.rows import (
    MOST_BEFORE,
    REJECTION_REASONS,
    QueryRow,
    by_conversation,
    question_digest,
    said_before,
    state_of,
)
from rag_harness.core.escaping import page_policy, page_script, page_style
from rag_harness.core.files import json_digest

MOST_OF_A_PAGE = 50_000
"""Up to so many characters a document is included whole. Of longer ones, only the text around quotes is."""
MOST_OF_ALL = 20_000_000
"""How many characters of whole documents are included in all."""
_LEVEL = 6


def html_of(name: str, rows: Sequence[QueryRow], showing: Showing, every: Sequence[QueryRow] = ()) -> str:
    """Return the page of these rows; the same rows and documents give the same text.

    Args:
        name: the name of their file.
        rows: the questions to review.
        showing: their documents.
        every: all rows of the file, among them the turns that were said before turns of ``rows``.
    """
    style, script = page_style(_asset("review.css")), page_script(_asset("review.js"))
    environment = Environment(
        loader=PackageLoader("rag_harness.authoring.questions.review", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
    )
    return environment.get_template("review.html.j2").render(
        name=name,
        style=Markup(style),
        script=Markup(script),
        policy=page_policy(style, script),
        data=_packed(_data(name, rows, showing, every or rows)),
    )


def _data(name: str, rows: Sequence[QueryRow], showing: Showing, every: Sequence[QueryRow]) -> dict[str, Any]:
    """Return the data for the script."""
    shown = [showing.of(row) for row in rows]
    same = by_conversation(every)
    return {
        "file": name,
        "digest": json_digest([name, *map(question_digest, rows)]),
        "rows": rows,
        "notes": {
            row["query_id"]: _note(row, each) | _before(same.get(row.get("conversation", ""), ()), row)
            for row, each in zip(rows, shown, strict=True)
        },
        "pages": _pages(shown, showing),
        "names": sorted(showing.names),
        "reasons": REJECTION_REASONS,
    }


def _note(row: QueryRow, shown: Shown) -> dict[str, Any]:
    return {
        "digest": question_digest(row),
        "state": state_of(row),
        "faults": shown.faults,
        "sections": [place.section for place in shown.places],
        "nearest": [place.nearest for place in shown.places],
        "replaced": [place.replaced_by for place in shown.places],
        "near": [
            {"filename": near.filename, "text": near.text, "section": near.section, "share": round(near.share, 3)}
            for near in shown.near
        ],
    }


def _before(same: Sequence[QueryRow], row: QueryRow) -> dict[str, Any]:
    """Return what was said before a turn, and how many turns of it are left out."""
    said = said_before(same, row)
    return {"before": said[-MOST_BEFORE:], "earlier": max(0, len(said) - MOST_BEFORE)} if said else {}


def _pages(shown: Iterable[Shown], showing: Showing) -> Mapping[str, Any]:
    """Return the texts with the quotes: whole pages, or for long pages the text around the quotes."""
    found: dict[str, Any] = {}
    room = MOST_OF_ALL
    for place in (place for each in shown for place in each.places):
        text = showing.text_of(place.filename)
        if text is None:
            continue
        if place.filename not in found:
            whole = len(text) <= min(MOST_OF_A_PAGE, room)
            room -= len(text) if whole else 0
            found[place.filename] = {"whole": whole, "parts": [text] if whole else []}
        held = found[place.filename]
        if not held["whole"] and not place.fault:
            held["parts"].append(f"{place.before}{place.quote}{place.after}")
    return found


def _packed(value: Any) -> Markup:
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    # ASCII, so that half a letter stays an escape. zlib writes neither a name nor a time at the start.
    text = json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii")
    return Markup(base64.b64encode(packer.compress(text) + packer.flush()).decode("ascii"))


def _asset(name: str) -> str:
    return files("rag_harness.authoring.questions.review").joinpath("assets", name).read_text(encoding="utf-8")
