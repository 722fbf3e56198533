"""The HTML page of questions under review, their evidence, reasons against them.

Decisions from a downloaded page.
"""

from __future__ import annotations

import base64
import json
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from pydantic import ValidationError

from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.drafts import ANSWERED, TEMPTS
from rag_harness.authoring.questions.review.rows import (
    ACCEPTED,
    EDITED_FIELDS,
    MOST_BEFORE,
    REJECTED,
    REJECTION_REASONS,
    UNREVIEWED,
    QueryRow,
    accepted,
    asked_alone,
    by_conversation,
    edited,
    question_digest,
    rejected,
    reopened,
    said_before,
    state_of,
)
from rag_harness.core.errors import DataError, meant
from rag_harness.core.escaping import page_policy, page_script, page_style
from rag_harness.core.files import json_digest
from rag_harness.core.json_text import read_json
from rag_harness.core.text.comparison import with_single_blanks
from rag_harness.core.text.terms import terms
from rag_harness.core.types import NEGATIVE, Chunk
from rag_harness.data.queries import QueryLine, is_placeholder


@dataclass(frozen=True, slots=True)
class ShownQuote:
    """The place of a quote: ``before + quote + after`` is text of the page.

    If the quote has no place, ``fault`` says why, ``before`` and ``after`` are empty, and ``nearest`` is the page's
    passage with most of its words, else the page's beginning. ``section`` are the headings above it, outermost first.
    ``replaced_by`` is the page that superseded this one, "?" if it is not known.
    """

    filename: str
    quote: str
    before: str = ""
    after: str = ""
    section: tuple[str, ...] = ()
    fault: str = ""
    replaced_by: str = ""
    nearest: str = ""


@dataclass(frozen=True, slots=True)
class NearPassage:
    """A passage near a question: it has ``share`` of the question's words, weighted by rarity, 0 to 1."""

    filename: str
    text: str
    section: tuple[str, ...]
    share: float


@dataclass(frozen=True, slots=True)
class Shown:
    """``near``: the passages nearest to a negative question; else passages of other pages that may answer it."""

    places: tuple[ShownQuote, ...]
    near: tuple[NearPassage, ...]
    faults: tuple[str, ...]


# Why a question may not be accepted, in words that say what to do.

UNLABELLED = "unlabelled"
"""The kind of a user's question that nobody has labelled yet."""

_ANSWERED = "It is negative, and names evidence or pages that answer it. Remove them, or mend the kind."


def malformed(row: QueryRow) -> list[str]:
    """Return what prevents a row from being read as a question. No file may contain such a row."""
    try:
        QueryLine.model_validate(row)
    except ValidationError as error:
        return [f"{'.'.join(map(str, each['loc'])) or 'row'}: {each['msg']}" for each in error.errors()]
    return []


def against_its_kind(line: QueryLine) -> list[str]:
    """Return the parts of a question that do not fit its kind."""
    if is_placeholder(line.query):
        return ["It is a placeholder. Write a question in its place."]
    if line.query_type == UNLABELLED:
        return ["Its kind is not said: direct, multi_hop or negative."]
    pages = dict.fromkeys(line.context_reference)
    if line.query_type == NEGATIVE:
        return [_ANSWERED] if line.evidence or pages else []
    beside = dict.fromkeys(each.filename for each in line.evidence if pages and each.filename not in pages)
    lacks_pages = line.query_type == "multi_hop" and len(pages) < 2
    return [
        *(["It has no answer. Write one, or reject it."] if not line.ground_truth.strip() else []),
        *(f"It quotes {name!r}, which its pages do not name. Add it there." for name in beside),
        *(["It is multi_hop, and names one page. Name all it needs."] if lacks_pages else []),
    ]


def not_there(filename: str, quote: str, text: str) -> str:
    """Return how a quote that is not in a text differs from it."""
    if with_single_blanks(quote) in with_single_blanks(text):
        return f"A quote is in {filename} with other white space. Edit it: copy the words as they are there."
    return f"A quote is not in {filename} word for word. Edit it: copy the words of the page; or reject the question."


AROUND = 600
"""Characters of a page before and after a quote."""
NEAREST = 3
_TRIED = 200
"""How many passages of all pages are searched for those of one page."""
LONGEST_NEIGHBOUR = 1_200
"""How many characters of a nearby passage are shown."""


class Showing:
    """The documents of the questions."""

    def __init__(self, collection: DocumentCollection) -> None:
        self._collection = collection

    def prepare(self) -> None:
        """Prepare what all questions share. Many documents take long; otherwise the first question waits for it."""
        len(self._chunks_of), len(self._collection.superseded)
        self._collection.nearest("")
        self._collection.rarity("")

    @property
    def names(self) -> Iterable[str]:
        """The names of the pages."""
        return self._collection.by_id

    def text_of(self, name: str) -> str | None:
        """Return the text of a page; None if it does not exist."""
        document = self._collection.by_id.get(name)
        return document.text if document else None

    def of(self, row: QueryRow) -> Shown:
        """Return what is shown of a row."""
        places = tuple(self._place(each["filename"], each["quote"]) for each in row.get("evidence") or ())
        return Shown(places, tuple(self._near(row)), tuple(self.faults(row)))

    def faults(self, row: QueryRow) -> list[str]:
        """Return why a row may not be accepted, with what to do; empty if it may."""
        if unread := malformed(row):
            return unread
        line = QueryLine.model_validate(row)
        places = [self._place(each.filename, each.quote) for each in line.evidence]
        named = dict.fromkeys([*line.context_reference, *line.qrels])
        gone = [self._no_page(name) for name in named if name not in self._collection.by_id]
        return [*(place.fault for place in places if place.fault), *gone, *against_its_kind(line)]

    def not_answered_by(self, row: QueryRow) -> list[str]:
        """Return the shown pages with all words of a negative question; empty for other questions."""
        near = self._near(row) if row.get("query_type") == NEGATIVE else []
        return list(dict.fromkeys(each.filename for each in near if each.share >= ANSWERED))

    def _place(self, filename: str, quote: str) -> ShownQuote:
        document = self._collection.by_id.get(filename)
        if document is None:
            return ShownQuote(filename, quote, fault=self._no_page(filename))
        start = document.text.find(quote)
        if start < 0:
            fault = not_there(filename, quote, document.text)
            return ShownQuote(filename, quote, fault=fault, nearest=self._nearest(filename, quote))
        end = start + len(quote)
        replaced = self._collection.superseded.get(filename)
        return ShownQuote(
            filename,
            quote,
            _behind_a_border(document.text[max(0, start - AROUND) : start], start <= AROUND),
            _before_a_border(document.text[end : end + AROUND], end + AROUND >= len(document.text)),
            self._section(filename, start),
            replaced_by="" if replaced is None else replaced or "?",
        )

    def _nearest(self, filename: str, quote: str) -> str:
        found = (hit.chunk for hit in self._collection.nearest(quote, _TRIED) if hit.chunk.doc_id == filename)
        # In a language whose words cannot be read, show the beginning of the page.
        text = next((chunk.text for chunk in found), self._collection.by_id[filename].text)
        return _cut(text.strip())

    def _no_page(self, name: str) -> str:
        hint = meant(name, self._collection.by_id)
        return f"{name!r} is not a page of the documents.{hint} Edit the question, or reject it."

    def _section(self, doc_id: str, at: int) -> tuple[str, ...]:
        chunks = self._chunks_of[doc_id]
        place = bisect_right(chunks, at, key=lambda chunk: chunk.start) - 1
        return chunks[place].section if place >= 0 else ()

    @cached_property
    def _chunks_of(self) -> Mapping[str, list[Chunk]]:
        found: dict[str, list[Chunk]] = {name: [] for name in self.names}
        for chunk in self._collection.chunks:
            found[chunk.doc_id].append(chunk)
        return found

    def _near(self, row: QueryRow) -> list[NearPassage]:
        """Return the passages nearest to a negative question; else those of other pages with most of its words."""
        collection, question = self._collection, asked_alone(row)
        wanted = terms(question)
        hits = [hit.chunk for hit in collection.nearest(question)]
        found = [
            NearPassage(each.doc_id, _cut(each.text), each.section, collection.covered(wanted, each.text))
            for each in hits
        ]
        if row.get("query_type") == NEGATIVE:
            return found[:NEAREST]
        own = own_pages(row)
        least = TEMPTS * max((near.share for near in found if near.filename in own), default=1.0)
        others = {near.filename: near for near in reversed(found) if near.filename not in own and near.share >= least}
        return sorted(others.values(), key=lambda near: -near.share)[:NEAREST]


def own_pages(row: QueryRow) -> set[str]:
    """Return the pages that a row names as its gold, or quotes."""
    named = row.get("context_reference") or ()
    quoted = (each["filename"] for each in row.get("evidence") or ())
    return {*([named] if isinstance(named, str) else named), *(row.get("qrels") or ()), *quoted}


def _behind_a_border(text: str, is_all: bool) -> str:
    """Return the text from its first complete line on."""
    first = text.find("\n")
    return text if is_all or first < 0 else text[first + 1 :]


def _before_a_border(text: str, is_all: bool) -> str:
    last = text.rfind("\n")
    return text if is_all or last < 0 else text[:last]


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_NEIGHBOUR else f"{text[:LONGEST_NEIGHBOUR]} …"


REVIEW_OF = "review_of"
"""Metadata key in a downloaded row with a decision: the digest of the row that the reviewer saw."""


@dataclass
class ReviewDecisions:
    """The rows to keep, by number; ``before`` were taken earlier; ``problems`` are lines."""

    changed: dict[int, QueryRow] = field(default_factory=dict)
    before: int = 0
    problems: list[str] = field(default_factory=list)


def taken(download: Path, rows: Sequence[QueryRow], showing: Showing, by: str) -> ReviewDecisions:
    """Return the changes that a download makes to the rows.

    Only its decisions are read, and are put on the rows of the file. A row that differs from the one on the reviewer's
    page is not changed, and is named.

    Args:
        download: the file that the page has downloaded.
        rows: the rows of the file under review.
        showing: the documents of the rows.
        by: the reviewer's name, if the page does not have it.

    Raises:
        DataError: it is not a downloaded file, or it has no decisions.
    """
    decided = list(_decided(download))
    if not decided:
        raise DataError(f"{download} holds no decision. Download it from a page made of these questions: --page HTML")
    numbers = {row["query_id"]: number for number, row in enumerate(rows)}
    found = ReviewDecisions()
    for row in decided:
        number = numbers.get(row["query_id"])
        if number is None:
            found.problems.append(f"{row['query_id']}: no question of the file. Was the page made of another?")
        else:
            _take(row, number, rows[number], showing, by, found)
    return found


def _take(said: QueryRow, number: int, row: QueryRow, showing: Showing, by: str, found: ReviewDecisions) -> None:
    new = _put_on(said, row, by, showing)
    if said["metadata"][REVIEW_OF] != question_digest(row):
        if _is_same(said, row):
            found.before += 1
        else:
            found.problems.append(f"{row['query_id']}: changed since the page was made, and kept as it is.")
        return
    faults = showing.faults(new) if state_of(new) == ACCEPTED else malformed(new)
    if faults:
        found.problems.append(f"{row['query_id']}: not taken. {' '.join(faults)}")
    elif new != row:
        found.changed[number] = new


def _put_on(said: QueryRow, row: QueryRow, by: str, showing: Showing) -> QueryRow:
    who = " ".join(str(said["metadata"].get("reviewed_by") or said["metadata"].get("edited_by") or by).split())
    changes = {name: said[name] for name in EDITED_FIELDS if name in said and said[name] != row.get(name)}
    new = edited(row, changes, who) if changes else row
    state = state_of(said)
    if state == ACCEPTED:
        return accepted(new, who, [] if malformed(new) else showing.not_answered_by(new))
    if state == REJECTED:
        return rejected(new, who, str(said["metadata"].get("rejected_because") or "no reason given"))
    return reopened(new) if state_of(new) != UNREVIEWED else new


def _is_same(said: QueryRow, row: QueryRow) -> bool:
    marks = ("reviewed", "reviewed_by", "rejected_because", "edited_by")
    about, told = row.get("metadata") or {}, said["metadata"]
    return all(said.get(name) == row.get(name) for name in EDITED_FIELDS) and all(
        about.get(name) == told.get(name) for name in marks
    )


def _decided(download: Path) -> Iterator[QueryRow]:
    try:
        text = download.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise DataError(f"{download} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{download}: not UTF-8 at byte {error.start}.") from error
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            row = _row(line, f"{download}:{number}")
            if REVIEW_OF in row["metadata"]:
                yield row


def _row(line: str, where: str) -> QueryRow:
    try:
        row: Mapping[str, Any] = read_json(line)
        return {**row, "query_id": str(row["query_id"]), "metadata": dict(row.get("metadata") or {})}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DataError(f"{where}: no question. Name the file that the page has downloaded: --take FILE") from error


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
