"""Checks of the queries: ids, references, quotes, and what each type of query must and must not have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from itertools import combinations
from pathlib import Path

from rag_harness.authoring.kb.page import fold, squeeze
from rag_harness.authoring.kb.plan import PLAN_FILE, PlannedFact
from rag_harness.authoring.kb.validation.expecting import expectations
from rag_harness.authoring.kb.validation.material import Material
from rag_harness.authoring.kb.validation.pages import links_of
from rag_harness.authoring.kb.validation.plan import BROKEN_PLAN, NO_PLAN
from rag_harness.authoring.kb.validation.question_files import Read, read_query_lines
from rag_harness.authoring.kb.validation.quotes import check_quote
from rag_harness.authoring.kb.validation.report import CheckResult
from rag_harness.authoring.kb.validation.selections import selections
from rag_harness.authoring.kb.validation.turns import turns
from rag_harness.dataset.queries import EvidenceLine, QueryLine
from rag_harness.dataset.query_types import KNOWN_TYPES, type_problem
from rag_harness.words.terms import terms

_NAMES = ("queries", "types", "references", "quotes", "selections", "expectations", "direct", "multi-hop", "negative",
          "distribution")  # fmt: skip
_SEVERAL = ("multi_hop", "comparison")
"""Types of queries that need more than one page."""
Queries = Read[QueryLine]


def checks(material: Material, file: Path | None, types: tuple[str, ...] = ()) -> list[CheckResult]:
    """Return the checks of the queries; without a file they are skipped. ``types`` are query types of the user's."""
    if file is None:
        return [CheckResult(name, skipped="no file of queries; name one with --queries FILE") for name in _NAMES]
    read = read_query_lines(file)
    rooms = (_queries, _references, _quotes, selections, expectations, _direct, _multi_hop, _negative)
    found = [room(material, read) for room in rooms] + [_distribution(material, read)]
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
    for line, first, query in _repeated(read, lambda query: squeeze(query.asked_alone or query.query_id).casefold()):
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
    """Return the pages that contain every quote, for a query with quotes from several pages."""
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
