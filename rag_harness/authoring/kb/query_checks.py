"""Checks of queries and of the golden set: ids, references, quotes, expectations, turns."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from itertools import combinations
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from rag_harness.authoring.kb.checks import CheckResult, Material
from rag_harness.authoring.kb.page import Page, TextAtLine, fold
from rag_harness.authoring.kb.page_checks import anchor_problem, links_of
from rag_harness.authoring.kb.plan import PLAN_FILE, PlannedFact
from rag_harness.authoring.kb.plan_checks import BROKEN_PLAN, NO_PLAN
from rag_harness.core.errors import DataError
from rag_harness.core.json_text import read_json
from rag_harness.core.text.comparison import with_single_blanks
from rag_harness.core.text.contradictions import against
from rag_harness.core.text.sentences import sentence_texts
from rag_harness.core.text.terms import figures, terms
from rag_harness.core.types import Expectation
from rag_harness.data.golden import GoldenEntry, read_golden
from rag_harness.data.queries import (
    KNOWN_TYPES,
    EvidenceLine,
    QueryLine,
    lines_of,
    refuse_other_form,
    said_turns,
    type_problem,
)
from rag_harness.data.query_lines import order_problems, rows_of_table
from rag_harness.data.record_files import is_table
from rag_harness.evaluation.expectations.rubrics import fact_of
from rag_harness.records.expectations import AnswerSeen, Source, expectations_of, kind_of, looked_at, tells_by_words


def check_quote(check: CheckResult, material: Material, where: str, filename: str, quote: str) -> None:
    """Add a finding if ``quote`` is not in the page, or is there with other white space."""
    page = material.pages.get(filename)
    if page is None or quote in page.text:
        return
    shown = quote if len(quote) < 120 else f"{quote[:117]}…"
    if with_single_blanks(quote) in page.squeezed:
        what = "is there with other white space, which is accepted. Copy the quote as it is to silence this."
        check.note(where, f"quote {shown!r} of {filename} {what}")
    else:
        check.error(where, f"quote {shown!r} is not in {filename}.{_nearest(page, quote)} Copy the words of the page.")


def _nearest(page: Page, quote: str) -> str:
    close = get_close_matches(quote, sentence_texts(page.text), n=1)
    return f" The nearest there is {close[0].strip()!r}." if close else ""


# Reads ``queries.jsonl`` or a table, and ``golden.json``, by line. A bad query is a finding; others are checked.

_T = TypeVar("_T", bound=BaseModel)
_DECODER = json.JSONDecoder()


@dataclass
class ParsedFile(Generic[_T]):
    """The entries of a file with their lines, and the findings about lines that could not be read."""

    file: Path
    entries: list[tuple[int, _T]] = field(default_factory=list)
    problems: list[TextAtLine] = field(default_factory=list)

    def at(self, line: int) -> str:
        """Return the place of a line, in the form that editors and terminals open."""
        return f"{self.file}:{line}"

    def add(self, line: int, kind: type[_T], value: Any) -> None:
        """Add an entry, or a finding about what is wrong with it."""
        try:
            self.entries.append((line, kind.model_validate(value)))
        except ValidationError as error:
            for each in error.errors():
                name = ".".join(map(str, each["loc"])) or "entry"
                self.problems.append(TextAtLine(line, f"{name}: {each['msg']}. Mend the entry."))


def read_query_lines(file: Path) -> ParsedFile[QueryLine]:
    """Read a file with one JSON object a line, or a table: CSV, TSV or Parquet.

    Raises:
        DataError: the file is missing, or has another form; the message says what converts it to lines.
    """
    read: ParsedFile[QueryLine] = ParsedFile(file)
    if is_table(file) and file.is_file():
        _add_rows(read)
    else:
        _add_lines(read)
    read.problems += [TextAtLine(number, said) for number, said in order_problems(said_turns(read.entries))]
    return read


def _add_lines(read: ParsedFile[QueryLine]) -> None:
    text = _text(read)
    refuse_other_form(read.file, text)
    # split("\n") and not splitlines(): a U+2028 inside a JSON string does not end a line.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            _add_query(read, number, line)


def _add_rows(read: ParsedFile[QueryLine]) -> None:
    try:
        for row in rows_of_table(read.file, {}):
            read.problems += [TextAtLine(row.number, f"{said}. Mend the cell.") for said in row.problems]
            _add_query(read, row.number, row.text)
    except DataError as error:
        make = f"rag-harness queries import {read.file} --map question=COLUMN"
        raise DataError(f"{error}\nColumns of other names: {make}, and check the lines that it writes.") from None


def _add_query(read: ParsedFile[QueryLine], number: int, line: str) -> None:
    try:
        raw = read_json(line)
    except json.JSONDecodeError as error:
        what = f"invalid JSON at column {error.colno}: {error.msg}. Mend the line."
        read.problems.append(TextAtLine(number, what))
        return
    if not isinstance(raw, dict) or not {"turns", "scenario"} & raw.keys():
        read.add(number, QueryLine, raw)
        return
    turns, wrong = lines_of(line)
    if "scenario" in raw:
        turns = turns[:1]  # each turn of a scenario has the scenario's gold
    read.entries += [(number, turn) for turn in turns]
    read.problems += [TextAtLine(number, f"{said.rstrip('.')}. Mend the entry.") for said in wrong]


def entry_lines(text: str) -> Iterator[int]:
    """Yield the line where each element of a JSON list begins. The json module does not tell it."""
    counted, line, position = 0, 1, _skip(text, _skip(text, 0) + 1)
    while text[position] != "]":
        line += text.count("\n", counted, position)
        counted = position
        yield line
        position = _skip(text, _DECODER.raw_decode(text, position)[1])
        position = _skip(text, position + 1) if text[position] == "," else position


def _skip(text: str, position: int) -> int:
    while text[position] in " \t\r\n":
        position += 1
    return position


def _text(read: ParsedFile[Any]) -> str:
    if not read.file.is_file():
        raise DataError(f"No file {read.file}. Name one that exists with --queries FILE.")
    raw = read.file.read_bytes()
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        read.problems.append(TextAtLine(line, f"not UTF-8 at byte {error.start}. Save the file as UTF-8."))
        return ""


_CHUNK = re.compile(r"chunk_\d+")


def check_golden_set(material: Material, file: Path | None) -> list[CheckResult]:
    """Return the check of the golden set; without a file it is skipped."""
    if file is None:
        return [CheckResult("golden", skipped="no golden set; name one with --golden FILE")]
    if not file.is_file():
        raise DataError(f"No file {file}. Name one that exists with --golden FILE.")
    check = CheckResult("golden")
    entries = _read(check, file)
    for where, entry in zip(_places(file, entries), entries, strict=True):
        for expected in entry.expected:
            _document(check, material, where, expected)
        for quote in entry.evidence:
            _quote(check, material, where, entry, quote)
    check.checked = f"{len(entries)} entries"
    check.how = _unchecked(entries)
    return [check]


def _read(check: CheckResult, file: Path) -> list[GoldenEntry]:
    """Read the entries as a run does. An error that would stop a run is a finding here."""
    try:
        return read_golden(file)
    except DataError as error:
        for line in str(error).split("\n"):
            found = re.match(rf"{re.escape(str(file))}(:\d+)?:? ?", line)
            where = f"{file}{found[1] or ''}" if found else str(file)
            check.error(where, line[found.end() :] if found else line)
        return []


def _places(file: Path, entries: list[GoldenEntry]) -> list[str]:
    if file.suffix.lower() == ".csv" or not entries:
        return [f"{file}: {entry.entry_id}" for entry in entries]
    return [f"{file}:{line}" for line in entry_lines(file.read_text(encoding="utf-8-sig"))]


def _split(expected: str, material: Material) -> tuple[str, str]:
    """Return file and anchor; a file's own name may hold a ``#``."""
    name, _, anchor = (expected, "", "") if expected in material.pages else expected.rpartition("#")
    return (name, anchor) if name else (anchor, "")


def _document(check: CheckResult, material: Material, where: str, expected: str) -> None:
    name, anchor = _split(expected, material)
    page = material.pages.get(name)
    if page is None:
        problem = f"{material.no_file(name).removesuffix('.')}."
    elif anchor and not _CHUNK.fullmatch(anchor):
        problem = anchor_problem(material, page, anchor)
    else:
        return
    if problem:
        check.error(where, f"expected_document_id {expected!r}: {problem} Mend the entry.")


def _quote(check: CheckResult, material: Material, where: str, entry: GoldenEntry, quote: str) -> None:
    """Check that a quote is in one of the expected pages. If it is in none, the finding is about the first."""
    names = [name for name in (_split(expected, material)[0] for expected in entry.expected) if name in material.pages]
    trials = [CheckResult(check.name) for _ in names]
    for trial, name in zip(trials, names, strict=True):
        check_quote(trial, material, where, name, quote)
    if trials:
        order = ("ok", "notes", "failed")
        check.findings += min(trials, key=lambda trial: order.index(trial.state)).findings


def _unchecked(entries: list[GoldenEntry]) -> str:
    chunks = sum(bool(_CHUNK.fullmatch(name.rpartition("#")[2])) for entry in entries for name in entry.expected)
    return f"{chunks} chunks are named by number, which only a run with its chunk settings can check" if chunks else ""


SELECTED = "selected_text"
_SHOWN = 80


def selections(material: Material, read: ParsedFile[QueryLine]) -> CheckResult:
    """Return the check of ``inputs.selected_text``. White space may differ, as it does on a shown page."""
    selecting = [(line, query) for line, query in read.entries if SELECTED in query.inputs]
    check = CheckResult("selections", f"{len(selecting)} selections")
    for line, query in selecting:
        said = query.inputs[SELECTED]
        words = with_single_blanks(said) if isinstance(said, str) else ""
        if not words:
            check.error(
                read.at(line), f"{query.query_id} has a selected_text without words. Write it, or leave it out."
            )
        elif not any(words in page.squeezed for page in material.pages.values()):
            shown = words if len(words) <= _SHOWN else f"{words[:_SHOWN]}…"
            what = f"{query.query_id} selects words that are in no page: {shown!r}. Copy them from one page."
            check.error(read.at(line), what)
    return check


# Checks what the turns of conversations say: a user's words, with nothing in them that no user types or can know.

_TAG = re.compile(
    r"</?(?:a|b|br|code|div|em|font|h[1-6]|i|img|li|ol|p|pre|script|span|strong|table|t[dhr]|u|ul)(?:\s[^<>]{0,200})?/?>"
    r"|&(?:amp|lt|gt|nbsp|quot|#\d{1,6});",
    re.I,
)
_ROLE = re.compile(
    r"^[ \t]{0,8}(?:\*\*|\|)?(?:user|assistant|system|human|bot|question|answer)(?:\*\*|\|)? ?:", re.I | re.M
)
_CITED = re.compile(r"\[(?:source )?\d{1,3}(?::[^\[\]]{0,100})?\]", re.I)
_LATER = re.compile(
    r"\bas (?:you|i)(?:['’]ll| will| shall) (?:say|see|tell|ask|explain|mention)\b"
    r"|\b(?:you|i)(?:['’]ll| will) (?:say|tell|ask|mention|explain) (?:it |that |this |you |me )?"
    r"(?:later|below|next|in a moment)\b"
    r"|\b(?:in|see|as in) (?:my|your|the) (?:next|later|following) (?:question|answer|reply|turn|message)\b",
    re.I,
)
_TURN = re.compile(r"\b(?:in|see|at|of) turn (\d{1,4})\b", re.I)
_TURN_WIDTH = 60


def turns(read: ParsedFile[QueryLine]) -> list[CheckResult]:
    """Return the check of the turns of all conversations; none without conversations."""
    found = [(line, query) for line, query in read.entries if query.turn is not None]
    if not found:
        return []
    talks = len({query.conversation for _, query in found})
    check = CheckResult("turns", f"{len(found)} turns of {talks} conversations")
    for line, query in found:
        for said in _problems(query):
            check.note(read.at(line), f"{query.query_id} {said}")
    return [check]


def _problems(query: QueryLine) -> Iterator[str]:
    """Yield what is odd about a turn, as the rest of a sentence about it."""
    said, reply = query.query, query.reply
    if tag := _TAG.search(said):
        yield f"holds HTML, {tag[0]!r}, which is sent as it stands. Write what a user types."
    if role := _ROLE.search(said):
        yield f"begins a line with {role[0].strip()!r}. A turn is what the user says; what was said before is given."
    for mark in filter(None, (_CITED.search(said), _CITED.search(reply))):
        yield f"holds the mark of a citation, {mark[0]!r}, of a source that no later turn is given. Take it out."
    if later := _LATER.search(said) or _later_turn(query):
        yield f"speaks of a later turn, {later[0][:_TURN_WIDTH]!r}. Nobody has heard it yet: say it otherwise."
    if query.turn == 1 and query.standalone.strip() not in ("", said):
        yield "is the first turn, and has a standalone question of other words. It stands alone itself: leave that out."


def _later_turn(query: QueryLine) -> re.Match[str] | None:
    return next((found for found in _TURN.finditer(query.query) if int(found[1]) > (query.turn or 1)), None)


_NAMES_DOCUMENTS = ("cites", "cites_any", "cites_all", "cites_only", "retrieves")
_IN_A_SOURCE = "context_contains"


def wrongly_expected(
    expect: Sequence[Expectation], ground_truth: str, answerable: bool, documents: Mapping[str, str]
) -> Iterator[str]:
    """Yield a sentence for each expectation that no right answer can keep to.

    Args:
        expect: the expectations of one question.
        ground_truth: its right answer; empty where nobody wrote one.
        answerable: whether the documents answer it.
        documents: the text of each document by its name; an empty text was not read.
    """
    by_words = [each for each in expect if tells_by_words(each)] if ground_truth.strip() else []
    for kept in looked_at(by_words, AnswerSeen(ground_truth, sources=None)):
        if kept.kept is False:
            yield f"{kept.expectation}: the ground truth does not keep to it: {kept.said}. Mend one of the two."
    for each in expect:
        if why := _fact_against(each, ground_truth):
            yield f"{each}: {why}. Mend one of the two."
        yield from (f"{each}: {why}" for why in (*_declining(each, ground_truth, answerable), *_gone(each, documents)))


def _fact_against(each: Expectation, ground_truth: str) -> str:
    """Return how the ground truth itself fails a rubric that asks for a fact; empty where the rules see nothing."""
    found = fact_of(kind_of(each.kind).criterion(each)) if kind_of(each.kind).asks == "criterion" else None
    if found is None or not ground_truth.strip():
        return ""
    fact, absent = found
    if absent == each.negated:
        other = next(iter(against(fact, [ground_truth])), None)
        return f"the ground truth says {other.differs[1]!r} and not {other.differs[0]!r}" if other else ""
    is_said = terms(fact) <= terms(ground_truth) and figures(fact) <= figures(ground_truth)
    return "the ground truth says so itself" if terms(fact) and is_said and not against(fact, [ground_truth]) else ""


def _declining(each: Expectation, ground_truth: str, answerable: bool) -> Iterator[str]:
    if each.kind not in ("declines", "answers"):
        return
    wants_declining = (each.kind == "declines") != each.negated
    if wants_declining and answerable and ground_truth.strip():
        yield "the question has an answer, its ground truth. Mend one of the two."
    if not wants_declining and not answerable:
        yield "no document answers the question, so a right answer declines. Mend one of the two."


def _gone(each: Expectation, documents: Mapping[str, str]) -> Iterator[str]:
    """Yield why the documents make it impossible. A misspelt name is one below "not", too: it would always hold."""
    if each.kind in _NAMES_DOCUMENTS:
        named = [each.wanted] if isinstance(each.wanted, str) else each.wanted
        missing = [name for name in named if not any(fnmatchcase(document, name) for document in documents)]
        yield from (f"no document is called {name!r}. Mend the name." for name in missing)
    if each.kind == _IN_A_SOURCE and not each.negated and all(documents.values()) and not _stands_in(each, documents):
        yield "no document has these words. Copy them from a document."


def _stands_in(each: Expectation, documents: Mapping[str, str]) -> bool:
    every = AnswerSeen("", sources=[Source(name, text) for name, text in documents.items()])
    return looked_at([each], every)[0].kept is True


# Checks what queries demand of their answers: that it can be read, and that a right answer can keep to it.


def expectations(material: Material, read: ParsedFile[QueryLine]) -> CheckResult:
    """Return the check of the expectations of all queries."""
    documents = {name: page.text for name, page in material.pages.items()}
    check, number = CheckResult("expectations"), 0
    for line, query in read.entries:
        if query.scenario is not None:
            reached = query.scenario.reached
            number += len(reached)
            for said in wrongly_expected(reached, query.scenario.ground_truth, query.is_answerable, documents):
                check.error(read.at(line), f"{query.query_id}: reached: {said}")
        if query.expect == ():
            continue
        found, problems = expectations_of(query.expect)
        number += len(found)
        for problem in problems:
            end = "" if problem.endswith("?") else "."
            check.error(read.at(line), f"{query.query_id}: expect: {problem}{end}")
        for said in wrongly_expected(found, query.ground_truth, query.case().answerable, documents):
            check.error(read.at(line), f"{query.query_id}: expect: {said}")
    check.checked = f"{number} expectations"
    return check


_NAMES = ("queries", "types", "references", "quotes", "selections", "expectations", "direct", "multi-hop", "negative",
          "distribution")  # fmt: skip
_SEVERAL = ("multi_hop", "comparison")
"""Types of queries that need more than one page."""
Queries = ParsedFile[QueryLine]


def check_queries(material: Material, file: Path | None, types: tuple[str, ...] = ()) -> list[CheckResult]:
    """Return the checks of the queries; without a file they are skipped. ``types`` are query types of the user's."""
    if file is None:
        return [CheckResult(name, skipped="no file of queries; name one with --queries FILE") for name in _NAMES]
    read = read_query_lines(file)
    checks = (_queries, _references, _quotes, selections, expectations, _direct, _multi_hop, _negative)
    found = [check(material, read) for check in checks] + [_distribution(material, read)]
    return [found[0], _types(read, types), *turns(read), *found[1:]]


def named_files(query: QueryLine) -> list[str]:
    """Return every file that a query names, each once."""
    return list(dict.fromkeys([*query.context_reference, *(each.filename for each in query.evidence)]))


def _queries(_: Material, read: Queries) -> CheckResult:
    check = CheckResult("queries", f"{len(read.entries)} queries")
    for line, problem in read.problems:
        check.error(read.at(line), problem)
    for line, first, query in _repeated(read, lambda query: query.query_id):
        check.error(read.at(line), f"query_id {query.query_id!r} stands already on line {first}. Give it another.")
    # "And the price?" may be said in any conversation: a turn is held by the words that stand alone.
    for line, first, query in _repeated(
        read, lambda query: with_single_blanks(query.asked_alone or query.query_id).casefold()
    ):
        check.note(read.at(line), f"{query.query_id} asks the same words as line {first}.")
    if not read.entries and not read.problems:
        check.error(str(read.file), "the file holds no query. Each line is an object with query_id and query.")
    return check


def _repeated(read: Queries, key: Callable[[QueryLine], str]) -> list[tuple[int, int, QueryLine]]:
    first: dict[str, int] = {}
    return [(line, seen, query) for line, query in read.entries if (seen := first.setdefault(key(query), line)) != line]


def _types(read: Queries, further: tuple[str, ...]) -> CheckResult:
    check, own = CheckResult("types", f"{len({query.query_type for _, query in read.entries})} types"), set[str]()
    for line, query in read.entries:
        if problem := type_problem(query.query_type, query.answerable, further):
            check.error(read.at(line), f"{query.query_id}: {problem}")
        elif query.query_type not in (*KNOWN_TYPES, *further, *own):
            own.add(query.query_type)
            what = f"{query.query_id} is {query.query_type!r}, a type of your own: a slice, which counts as answerable"
            check.note(read.at(line), f"{what}. Where that is right, name it: rag_query_types.")
    return check


def _references(material: Material, read: Queries) -> CheckResult:
    check = CheckResult("references")
    named = [(line, query, name) for line, query in read.entries for name in named_files(query)]
    for line, query, name in named:
        if name not in material.pages:
            said = material.no_file(name).removesuffix(".")
            check.error(read.at(line), f"{query.query_id} refers to {name!r}: {said}. Mend the reference.")
    check.checked = f"{len(named)} references"
    return check


def _quotes(material: Material, read: Queries) -> CheckResult:
    quotes = [(line, quote) for line, query in read.entries for quote in query.evidence]
    check = CheckResult("quotes", f"{len(quotes)} quotes")
    for line, quote in quotes:
        check_quote(check, material, read.at(line), quote.filename, quote.quote)
    return check


def _of_type(read: Queries, kinds: Collection[str], name: str) -> tuple[CheckResult, list[tuple[int, QueryLine]]]:
    entries = [(line, query) for line, query in read.entries if query.query_type in kinds]
    return CheckResult(name, f"{len(entries)} queries"), entries


def _direct(material: Material, read: Queries) -> CheckResult:
    check, entries = _of_type(read, ("direct",), "direct")
    for line, query in entries:
        for name in named_files(query):
            if material.status(name) == "outdated":
                what = f"{query.query_id} is direct, but {name} is an outdated page. Ask about a current one."
                check.error(read.at(line), what)
    bare = [(line, query.query_id) for line, query in entries if not query.evidence]
    if bare:
        which = f"{len(bare)} of {len(entries)} direct queries have no evidence, the first is {bare[0][1]}"
        check.note(read.at(bare[0][0]), f"{which}. Without a quote nothing proves the answer.")
    if material.plan is None:
        check.how = (
            f"current pages are not told from outdated ones: {BROKEN_PLAN if material.plan_problems else NO_PLAN}"
        )
    return check


def _multi_hop(material: Material, read: Queries) -> CheckResult:
    check, entries = _of_type(read, _SEVERAL, "multi-hop")
    for line, query in entries:
        pages = dict.fromkeys(query.context_reference)
        if len(pages) < 2:
            what = f"{query.query_id} is {query.query_type}, but context_reference names {len(pages)} page(s)."
            check.error(read.at(line), f"{what} Name all it needs.")
        for name in dict.fromkeys(each.filename for each in query.evidence if each.filename not in pages):
            what = f"{query.query_id} quotes {name}, which its context_reference does not name. Add it there."
            check.error(read.at(line), what)
        for name in _alone(material, query):
            what = f"{query.query_id} is {query.query_type}, but {name} alone holds all its evidence."
            check.error(read.at(line), f"{what} Quote what needs the other page too, or make it direct.")
        if query.query_type == "multi_hop" and len(pages) > 1 and not _linked(material, list(pages)):
            check.note(read.at(line), f"{query.query_id} needs {', '.join(pages)}, which no links connect.")
    return check


def _alone(material: Material, query: QueryLine) -> list[str]:
    """Return the pages that contain every quote of a query with quotes from several pages."""
    quotes = [fold(each.quote) for each in query.evidence]
    named = dict.fromkeys(each.filename for each in query.evidence)
    pages = [page for name in named if len(named) > 1 and (page := material.pages.get(name))]
    return [page.doc_id for page in pages if all(quote in page.folded for quote in quotes)]


def _linked(material: Material, names: list[str]) -> bool:
    """Whether all of ``names`` are connected by links, in either direction."""
    links = {name: set(links_of(material, material.pages[name])) for name in names if name in material.pages}
    near = [{a, b} for a, b in combinations(links, 2) if b in links[a] or a in links[b]]
    reached = set(names[:1])
    for _ in names:
        reached |= {name for pair in near if pair & reached for name in pair}
    return reached >= set(names)


def _negative(material: Material, read: Queries) -> CheckResult:
    check, entries = _of_type(read, ("negative",), "negative")
    answers = _answers(material) if entries else []
    for line, query in entries:
        asked = terms(query.asked_alone)
        told = next(((name, fact) for name, fact, said in answers if asked and asked <= said), None)
        if told:
            what = f"{query.query_id} is negative, but {told[0]} has every word of it: {told[1].statement!r}."
            check.error(read.at(line), f"{what} Ask for what no page says, or make it direct.")
        if query.evidence:
            what = (
                f"{query.query_id} is negative, but has {_pieces(query.evidence)} of evidence. Remove it, or the type"
            )
            check.error(read.at(line), f"{what} is wrong.")
        if query.context_reference:
            named = ", ".join(query.context_reference)
            what = f"{query.query_id} is negative, but context_reference names {named}."
            check.error(read.at(line), f"{what} Name a page that tempts in metadata.")
    return check


def _answers(material: Material) -> list[tuple[str, PlannedFact, frozenset[str]]]:
    """Return the planned facts of current pages, each with its page and its words."""
    pages = [page for page in material.planned.values() if page.status != "outdated"]
    return [(page.filename, fact, frozenset(terms(fact.statement))) for page in pages for fact in page.facts or ()]


def _pieces(evidence: tuple[EvidenceLine, ...]) -> str:
    return f"{len(evidence)} piece{'s' * (len(evidence) > 1)}"


def _distribution(material: Material, read: Queries) -> CheckResult:
    if material.plan is None or material.plan.queries is None:
        return CheckResult("distribution", skipped=f"no {PLAN_FILE} with the key 'queries' says what is planned")
    alone = [query for _, query in read.entries if query.conversation is None]
    if read.entries and not alone:
        return CheckResult("distribution", skipped="all of them are turns of conversations, and none are planned")
    found = Counter(query.query_type for query in alone)
    check = CheckResult("distribution", f"{len(alone)} queries")
    for kind in dict.fromkeys([*material.plan.queries, *found]):
        planned = material.plan.queries.get(kind, 0)
        if found[kind] != planned:
            check.error(str(read.file), f"{found[kind]} {kind} queries, planned are {planned}. Add, drop, or replan.")
    return check
