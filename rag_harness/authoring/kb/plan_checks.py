"""Checks of a plan: contradictions, names, version pairs, and its agreement with the files."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import PurePosixPath
from typing import NamedTuple

from rag_harness.authoring.kb.checks import CheckResult, Material, leaves
from rag_harness.authoring.kb.page import Page, fold
from rag_harness.authoring.kb.page_checks import (
    fact_faults,
    figure_faults,
    heading_faults,
    kind_faults,
    link_faults,
    links_of,
    step_faults,
    table_faults,
    title_faults,
)
from rag_harness.authoring.kb.plan import (
    FACT_KINDS,
    PAGE_KINDS,
    PLAN_FILE,
    Brief,
    Conflict,
    Plan,
    PlannedFact,
    PlannedTable,
    PlanPage,
    VersionPair,
    briefs,
    version_order,
)
from rag_harness.core.errors import DataError
from rag_harness.core.text.comparison import with_single_blanks
from rag_harness.core.text.contradictions import Contradiction, contradictions

# Faults of ids, filenames and titles: each page needs its own, and its file must be writable and linkable.

_Faults = Iterator[tuple[str, str]]
_STRANGE = re.compile(r'[\x00-\x1f\x7f\\?#%<>:"|*]')
"""Characters that would end the path of a link, or that some file systems do not allow."""
_LONGEST = 240
"""The most bytes of a name. File systems allow 255, and the temporary name while writing is longer."""


def name_faults(plan: Plan) -> _Faults:
    """Yield the id of a page and what is wrong with its names."""
    # A file system may ignore case. Then one page would overwrite the other.
    yield from _twice(plan, "id", lambda page: page.id)
    yield from _twice(plan, "filename", lambda page: page.filename.casefold())
    yield from _twice(plan, "title", lambda page: page.title)
    files = {page.filename for page in plan.pages}
    for page in plan.pages:
        yield from ((page.id, f"the filename {page.filename!r} {fault}") for fault in _filename(page.filename, files))
        if page.title is not None and (page.title != page.title.strip() or len(page.title.splitlines()) != 1):
            yield page.id, f"the title {page.title!r} is not a single line of text. Mend it."


def _twice(plan: Plan, key: str, value_of: Callable[[PlanPage], str | None]) -> _Faults:
    for value, pages in repeated(plan, value_of):
        yield pages[0].id, f"{len(pages)} pages have the {key} {value!r}. Give each its own."


def repeated(plan: Plan, value_of: Callable[[PlanPage], str | None]) -> Iterator[tuple[str, list[PlanPage]]]:
    """Return values that several pages share although each needs its own, with these pages in the plan's order."""
    pages: dict[str, list[PlanPage]] = {}
    for page in plan.pages:
        value = value_of(page)
        if value is not None:
            pages.setdefault(value, []).append(page)
    return ((value, those) for value, those in pages.items() if len(those) > 1)


def _filename(name: str, files: set[str]) -> Iterator[str]:
    folders = files.intersection(map(str, PurePosixPath(name).parents))
    if leaves(name):
        yield "leads out of the folder. Name a file inside it."
    elif not name.endswith(".md") or PurePosixPath(name).name == ".md":
        yield "is not a Markdown file. Let it end with .md"
    elif strange := _STRANGE.search(name):
        yield f"has {strange[0]!r}, which files and links cannot have everywhere. Leave it out."
    elif name != posixpath.normpath(name):
        yield f"is another way to write {posixpath.normpath(name)!r}. Write that."
    elif any(part.startswith(".") for part in PurePosixPath(name).parts):
        yield "is hidden, and nobody would read the page. Let no part of it begin with a dot."
    elif any(len(part.encode()) > _LONGEST for part in PurePosixPath(name).parts):
        yield f"is too long: {_LONGEST} bytes are the most. Shorten it."
    elif folders:
        yield f"stands below {min(folders)!r}, which is a page. Name another folder."


def succession_faults(plan: Plan) -> _Faults:
    """Yield the id of a page, or nothing, and what is wrong with how it replaces another page."""
    for pair in plan.version_pairs or ():
        outdated, current = plan.page(pair.outdated), plan.page(pair.current)
        for name, page in ((pair.outdated, outdated), (pair.current, current)):
            if page is None:
                yield "", f"a version pair names {name!r}, which is not planned. Use a page's id."
        if outdated and current and outdated is not current:
            yield from _pair(pair, outdated, current)
    yield from ((page.id, text) for page, text in pairing_faults(plan))
    yield from circles(plan)


def unplanned_differences(plan: Plan) -> _Faults:
    """Yield facts of version pairs that differ from the plan. Only pairs that list conflicts are checked."""
    for pair in plan.version_pairs or ():
        outdated, current = plan.page(pair.outdated), plan.page(pair.current)
        if outdated and current and outdated is not current:
            yield from ((current.id, text) for text in _content_faults(pair, outdated, current))


def _pair(pair: VersionPair, outdated: PlanPage, current: PlanPage) -> _Faults:
    yield from ((current.id, text) for text in _marks(outdated, current))
    yield from ((current.id, text) for text in _conflict_faults(pair, outdated, current))


def _marks(outdated: PlanPage, current: PlanPage) -> Iterator[str]:
    if outdated.status not in (None, "outdated"):
        yield f"replaces {outdated.id}, whose status is {outdated.status!r}. Set that to 'outdated', or swap the pair."
    if current.status not in (None, "current"):
        yield f"replaces {outdated.id}, but its own status is {current.status!r}. Set it to 'current'."
    if current.supersedes not in (None, outdated.id, outdated.filename):
        yield f"supersedes {current.supersedes!r}, its version pair says {outdated.id!r}. Make them agree."
    for key in ("version", "effective_date"):
        old, new = getattr(outdated, key), getattr(current, key)
        if old is not None and new is not None and version_order(old) >= version_order(new):
            yield f"its {key} is {new!r}, that of {outdated.id} is {old!r}. The current page must have the later."


def _conflict_faults(pair: VersionPair, outdated: PlanPage, current: PlanPage) -> Iterator[str]:
    if not pair.conflicts:
        yield f"its pair with {outdated.id} lists no conflict. List what the two disagree on."
    for conflict in pair.conflicts:
        if with_single_blanks(conflict.outdated_statement) == with_single_blanks(conflict.current_statement):
            yield (
                f"conflict {conflict.fact!r} with {outdated.id}: both statements are {conflict.current_statement!r}. "
                "State the difference."
            )
    yield from _content_faults(pair, outdated, current)


def _content_faults(pair: VersionPair, outdated: PlanPage, current: PlanPage) -> Iterator[str]:
    """Yield contradictions between the pages of a pair and its listed conflicts. Fields that are None are skipped."""
    if outdated.facts is not None and current.facts is not None:
        old, new = ({fact.id: fact for fact in page.facts or ()} for page in (outdated, current))
        yield from _unplanned(pair, old, new)
        for conflict in pair.conflicts:
            yield from _not_stated(conflict, outdated.id, old, new)
    if outdated.tables is not None and current.tables is not None and outdated.tables != current.tables:
        yield f"its tables differ from those of {outdated.id}. Make them equal, and plan the change as a fact."
    if outdated.steps is not None and current.steps is not None and outdated.steps != current.steps:
        yield f"its steps differ from those of {outdated.id}. Make them equal, and plan the change as a fact."


def _unplanned(pair: VersionPair, old: Mapping[str, PlannedFact], new: Mapping[str, PlannedFact]) -> Iterator[str]:
    planned = {conflict.fact for conflict in pair.conflicts}
    shared = old.keys() & new.keys()
    for fact in (new[each] for each in new if each in shared - planned):
        if with_single_blanks(old[fact.id].statement) != with_single_blanks(fact.statement):
            what = f"{old[fact.id].statement!r} was replaced by {fact.statement!r}"
            yield f"fact {fact.id} differs from that of {pair.outdated}: {what}. Plan the conflict, or make them equal."


def _not_stated(
    conflict: Conflict, outdated: str, old: Mapping[str, PlannedFact], new: Mapping[str, PlannedFact]
) -> Iterator[str]:
    if conflict.fact not in old or conflict.fact not in new:
        yield f"conflict {conflict.fact!r} with {outdated} is not a fact of both pages. Name a fact that both have."
        return
    sides = ((conflict.outdated_statement, old[conflict.fact]), (conflict.current_statement, new[conflict.fact]))
    for statement, fact in sides:
        if with_single_blanks(statement) != with_single_blanks(fact.statement):
            yield f"conflict {conflict.fact!r} says {statement!r}, the fact {fact.statement!r}. Make them agree."


def pairing_faults(plan: Plan) -> Iterator[tuple[PlanPage, str]]:
    """Yield pages paired with themselves or in several pairs, and versions that are in no pair."""
    for pair in plan.version_pairs or ():
        if (paired := plan.page(pair.outdated)) and paired is plan.page(pair.current):
            yield paired, "is in a version pair with itself. Name the page that replaced it."
    # By id: a pair may name a page by its file, and a file may have the name of another page's id.
    times = Counter(chain.from_iterable(_ids(plan, pair) for pair in plan.version_pairs or ()))
    for page in plan.pages:
        if times[page.id] > 1:
            yield page, f"is in {times[page.id]} version pairs. Keep one."
        if not times[page.id] and (page.status == "outdated" or page.supersedes):
            why = "is outdated" if page.status == "outdated" else f"supersedes {page.supersedes!r}"
            yield page, f"{why}, but is in no version pair. Add the pair."


def _ids(plan: Plan, pair: VersionPair) -> set[str]:
    return {page.id for name in (pair.outdated, pair.current) if (page := plan.page(name))}


def circles(plan: Plan) -> _Faults:
    """Yield pages that supersede themselves, directly or through others. Each circle is named once."""
    done: set[str] = set()
    for page in plan.pages:
        way: list[str] = []
        follower: PlanPage | None = page
        while follower is not None and follower.id not in done:
            done.add(follower.id)
            way.append(follower.id)
            follower = plan.page(follower.supersedes) if follower.supersedes else None
        if follower is not None and follower.id in way:
            circle = " supersedes ".join([*way[way.index(follower.id) :], follower.id])
            yield follower.id, f"supersedes itself: {circle}. Let the oldest supersede nothing."


# Finds contradictions in a plan before anything is written from it.

SHOWN_FAULTS = 20
"""How many faults a message lists; the others are counted."""
_BLOCK = re.compile(r"#{1,6}\s|[-+*]\s|\d{1,9}[.)]\s|>|\||```|~~~")
_NO_SENTENCE = "Markdown takes that for a heading, a list, a quote, a table or code. Begin with a word."


class Fault(NamedTuple):
    """What is wrong and what to do. ``page`` is an id, or empty if the whole plan is meant."""

    page: str
    text: str


def check_plan(plan: Plan) -> None:
    """Raise an error if a plan contradicts itself.

    Raises:
        DataError: lists the first ``SHOWN_FAULTS`` faults, each with its page and what to do.
    """
    faults = [f"{fault.page}: {fault.text}" if fault.page else fault.text for fault in plan_faults(plan)]
    if faults:
        more = [f"… and {len(faults) - SHOWN_FAULTS} more."] if len(faults) > SHOWN_FAULTS else []
        raise DataError(
            "\n".join(["The plan contradicts itself:", *(f"  {each}" for each in faults[:SHOWN_FAULTS]), *more])
        )


def plan_faults(plan: Plan) -> Iterator[Fault]:
    """Yield all faults of a plan. Fields that are None are not checked."""
    yield from _counts(plan)
    yield from (Fault(*fault) for fault in name_faults(plan))
    for page in plan.pages:
        yield from (Fault(page.id, text) for text in (*_kind(page), *_links(plan, page)))
        yield from content_faults(page)
    yield from _own_facts(plan)
    yield from (Fault(*fault) for fault in succession_faults(plan))


def inner_faults(plan: Plan) -> Iterator[Fault]:
    """Yield faults that a comparison with written pages would miss: in facts, tables, steps, and circles."""
    for page in plan.pages:
        yield from content_faults(page)
    yield from _own_facts(plan)
    yield from (Fault(*fault) for fault in (*unplanned_differences(plan), *circles(plan)))


def content_faults(page: PlanPage) -> Iterator[Fault]:
    """Yield what is wrong with the facts, tables and steps of a page."""
    for fact in page.facts or ():
        yield from (Fault(page.id, text) for text in _fact(fact))
    for table in page.tables or ():
        yield from (Fault(page.id, text) for text in _table(table))
    for number, step in enumerate(page.steps or (), 1):
        yield from (Fault(page.id, f"step {number}: {text}") for text in _step(step))
    if page.mermaid and page.steps == ():
        yield Fault(page.id, "mermaid is true, but there is no step to draw. List steps, or set mermaid to false.")


def _counts(plan: Plan) -> Iterator[Fault]:
    if not plan.pages:
        yield Fault("", "there is no page in it. Plan some.")
    if plan.num_pages not in (None, len(plan.pages)):
        what = f"num_pages is {plan.num_pages}, but {len(plan.pages)} pages are planned. Correct one of them."
        yield Fault("", what)
    if not 0 <= plan.rot <= 1:
        yield Fault("", f"rot is {plan.rot:g}; it is a share of pages, 0 to 1. Correct it.")
    pairs = len(plan.version_pairs or ())
    if 2 * pairs > len(plan.pages):
        what = f"{pairs} version pairs need {2 * pairs} pages; {len(plan.pages)} are planned. Drop pairs, or add pages."
        yield Fault("", what)


def _kind(page: PlanPage) -> Iterator[str]:
    if page.kind is not None and page.kind not in PAGE_KINDS:
        yield f"kind {page.kind!r} is unknown; known are {', '.join(PAGE_KINDS)}. Use one of them."
    if page.kind == "tabular" and page.tables == ():
        yield "its kind is tabular, but it has no table. Plan one, or change the kind."
    if page.kind == "logical" and page.steps == ():
        yield "its kind is logical, but it has no steps. Plan some, or change the kind."
    if page.kind == "mixed" and page.tables == () and page.steps == ():
        yield "its kind is mixed, but it has neither table nor steps. Plan some, or change the kind."


def _links(plan: Plan, page: PlanPage) -> Iterator[str]:
    for reference in page.links_to or ():
        goal = plan.page(reference)
        if goal is None:
            yield f"links_to names {reference!r}, which is not planned. Use the id of a planned page."
        elif goal.filename == page.filename:
            yield "links_to names the page itself. Drop that link."


def _fact(fact: PlannedFact) -> Iterator[str]:
    if fact.kind not in FACT_KINDS:
        yield f"fact {fact.id}: kind {fact.kind!r} is unknown; known are {', '.join(FACT_KINDS)}. Use one of them."
    if fact.value not in fact.statement:
        yield f"fact {fact.id}: the value {fact.value!r} is not in {fact.statement!r}. Write it there word for word."
    if fact.subject.casefold() not in fact.statement.casefold():
        yield f"fact {fact.id}: the subject {fact.subject!r} is not in {fact.statement!r}. Name it there."
    if "\n" in fact.statement or fact.statement != fact.statement.strip():
        yield f"fact {fact.id}: the statement is not a single line of text: {fact.statement[:60]!r}. Mend it."
    elif mark := _BLOCK.match(fact.statement):
        yield f"fact {fact.id}: the statement begins with {mark[0]!r}. {_NO_SENTENCE}"


def _step(step: str) -> Iterator[str]:
    if not step.strip():
        yield "it is empty. Write it, or drop it."
    elif len(step.strip().splitlines()) > 1:
        yield f"{step[:60]!r} is not a single line of text. Mend it."
    elif mark := _BLOCK.match(step.lstrip()):
        yield f"it begins with {mark[0]!r}. {_NO_SENTENCE}"


def _table(table: PlannedTable) -> Iterator[str]:
    for number, row in enumerate(table.rows, 1):
        if len(row) != len(table.columns):
            what = f"row {number} has {len(row)} cells, its header {len(table.columns)}"
            yield f"table {table.title!r}: {what}. Add or remove cells."


def _own_facts(plan: Plan) -> Iterator[Fault]:
    """Yield facts with a repeated id: twice on one page, or on pages that are not a version pair."""
    pairs = {frozenset((pair.outdated, pair.current)) for pair in plan.version_pairs or ()}
    pages: dict[str, PlanPage] = {}
    for page in plan.pages:
        for fact in page.facts or ():
            first = pages.setdefault(fact.id, page)
            twice = [each.id for each in page.facts or ()].count(fact.id) > 1
            if twice or (first is not page and frozenset((first.id, page.id)) not in pairs):
                yield Fault(page.id, f"fact {fact.id} stands on {first.id} already. Give each fact an id of its own.")
                pages[fact.id] = page


# Checks that ``structure.json`` and the files agree, in both directions.

NO_PLAN = f"there is no {PLAN_FILE}"
BROKEN_PLAN = f"{PLAN_FILE} cannot be read"
_Problems = Iterator[tuple[str, str]]


def check_plan_files(material: Material) -> list[CheckResult]:
    """Return the checks of the plan. They are skipped without a plan."""
    checks: dict[str, Callable[[Material, Plan], _Problems]] = {
        "plan": _files,
        "categories": _categories,
        "kinds": _kinds,
        "planned links": _link_problems,
    }
    results = [planned(name, material, problems) for name, problems in checks.items()]
    if material.plan_problems:
        results[0] = _unreadable(material)
    return results


def planned(name: str, material: Material, problems: Callable[[Material, Plan], _Problems]) -> CheckResult:
    """Run a check that needs the plan, or say why it was skipped."""
    if material.plan is None:
        return CheckResult(name, skipped=BROKEN_PLAN if material.plan_problems else NO_PLAN)
    check = CheckResult(name, f"{len(material.plan.pages)} planned pages")
    for where, message in problems(material, material.plan):
        check.error(where, message)
    return check


def _unreadable(material: Material) -> CheckResult:
    check = CheckResult("plan", "1 file")
    for line, problem in material.plan_problems:
        check.error(material.at(PLAN_FILE, line), problem)
    return check


def entry(material: Material, plan: Plan, page: PlanPage) -> str:
    """Return the place of a page in the plan."""
    return material.at(PLAN_FILE, plan.line_of(page.id) or plan.line_of(page.filename))


def _files(material: Material, plan: Plan) -> _Problems:
    yield from _duplicate_problems(material, plan, "id", lambda page: page.id)
    yield from _duplicate_problems(material, plan, "filename", lambda page: page.filename)
    if plan.num_pages not in (None, len(plan.pages)):
        what = f"num_pages is {plan.num_pages}, but {len(plan.pages)} pages are planned. Correct one of them."
        yield material.at(PLAN_FILE), what
    for page in plan.pages:
        if page.filename not in material.pages:
            said = material.no_file(page.filename).removesuffix(".")
            yield entry(material, plan, page), f"{page.filename!r} is planned: {said}. Write the page or drop it here."
        written = material.pages.get(page.filename)
        for fault in title_faults(page, written) if written else ():
            yield entry(material, plan, page), fault
    for name in sorted(material.pages.keys() - material.planned.keys()):
        yield material.at(name), f"the page is not in {PLAN_FILE}. Plan it there, or remove the file."
    for name, fault in inner_faults(plan):
        yield material.at(PLAN_FILE, plan.line_of(name)), f"{name}: {fault}"


def _duplicate_problems(material: Material, plan: Plan, key: str, value_of: Callable[[PlanPage], str]) -> _Problems:
    for value, pages in repeated(plan, value_of):
        for nth in range(1, len(pages)):
            first = plan.line_of(value)
            what = f"{key} {value!r} stands already on line {first}. Give each page its own."
            yield material.at(PLAN_FILE, plan.line_of(value, nth)), what


def _categories(material: Material, plan: Plan) -> _Problems:
    known = plan.categories
    if known is None:
        return
    for page in plan.pages:
        if page.category not in known:
            what = f"{page.id} has category {page.category!r}; categories lists {', '.join(known)}. Use one of them."
            yield entry(material, plan, page), what
    for unused in sorted(set(known) - {page.category for page in plan.pages}):
        yield material.at(PLAN_FILE), f"category {unused!r} has no page. Plan one, or drop the category."


def _kinds(material: Material, plan: Plan) -> _Problems:
    for page in plan.pages:
        written = material.pages.get(page.filename)
        for problem in kind_faults(page, written) if written else ():
            yield entry(material, plan, page), problem


def _link_problems(material: Material, plan: Plan) -> _Problems:
    for page in plan.pages:
        written = material.pages.get(page.filename)
        if page.links_to is not None and written:
            for problem in link_faults(page, plan, links_of(material, written)):
                yield entry(material, plan, page), problem


_FIGURES = re.compile(r"\d+")


def version_agreement(material: Material, plan: Plan) -> _Problems:
    """Yield contradictions between versions of a page that are not planned. Pairs without planned facts are skipped."""
    for pair in plan.version_pairs or ():
        outdated, current = plan.page(pair.outdated), plan.page(pair.current)
        if outdated and current and outdated.facts is not None and current.facts is not None:
            yield from _written(material, pair, outdated, current)


def _written(material: Material, pair: VersionPair, outdated: PlanPage, current: PlanPage) -> _Problems:
    pages = [material.pages.get(page.filename) for page in (outdated, current)]
    # Bold marks are removed: the same words are not a conflict, however they are marked.
    texts = [page.body.replace("**", "") for page in pages if page]
    for found in contradictions(texts) if len(texts) == len(pages) else ():
        if not _is_planned(found, pair, outdated, current):
            said = f"{outdated.filename} says {_said(found.first.sentence)}, this page {_said(found.second.sentence)}"
            advice = "is not a planned conflict. Make both say the same, or plan it."
            yield material.at(current.filename), f"{said}: {' against '.join(found.differs)} {advice}"


def _said(sentence: str) -> str:
    words = " ".join(sentence.split())
    return repr(words if len(words) <= 120 else f"{words[:117]}…")


def _is_planned(found: Contradiction, pair: VersionPair, outdated: PlanPage, current: PlanPage) -> bool:
    """Whether a contradiction is planned: a fact in its own words or in a table, or the versions' dates and numbers."""
    first, second = fold(found.first.sentence), fold(found.second.sentence)
    for conflict in pair.conflicts:
        old, new = fold(conflict.outdated_statement), fold(conflict.current_statement)
        if _within(first, old) and _within(second, new):
            return True
        if found.differs[0] in old and found.differs[1] in new:
            return True
    return _is_validity(first, outdated) or _is_validity(second, current)


def _within(said: str, statement: str) -> bool:
    return said in statement or statement in said


def _is_validity(said: str, page: PlanPage) -> bool:
    """Whether a sentence says from when the page is valid. The versions should differ in that."""
    figures = {figure.lstrip("0") for figure in _FIGURES.findall(page.effective_date or "")}
    is_fact = any(_within(said, fold(fact.statement)) for fact in page.facts or ())
    shown = {figure.lstrip("0") for figure in _FIGURES.findall(said)}
    return bool(figures) and not is_fact and len(figures & shown) >= min(2, len(figures))


# Checks that pages planned with facts state these facts, and nothing that was not planned.

NO_FACTS = f"{PLAN_FILE} plans no facts"
_ASKED: dict[str, Callable[[Brief, Page], Iterator[str]]] = {
    "planned facts": lambda brief, page: fact_faults(brief.page, page, brief.foreign),
    "planned tables": lambda brief, page: table_faults(brief.page, page),
    "planned steps": lambda brief, page: step_faults(brief.page, page),
    "planned figures": lambda brief, page: figure_faults(brief.page, page, brief.known()),
    "outlines": lambda brief, page: heading_faults(brief.page, page),
}


def check_facts(material: Material) -> list[CheckResult]:
    """Return the checks; without planned facts they are skipped."""
    checks = {name: _problems_of(asked) for name, asked in _ASKED.items()} | {"versions agree": version_agreement}
    results = [planned(name, material, problems) for name, problems in checks.items()]
    if material.plan is None:
        return results
    stated = sum(page.facts is not None for page in material.plan.pages)
    if not stated:
        return [CheckResult(name, skipped=NO_FACTS) for name in checks]
    for result in results:
        result.checked = f"{stated} pages with facts"
    return results


def _problems_of(asked: Callable[[Brief, Page], Iterator[str]]) -> Callable[[Material, Plan], _Problems]:
    def problems(material: Material, plan: Plan) -> _Problems:
        for brief in briefs(plan):
            written = material.pages.get(brief.page.filename)
            if written and brief.page.facts is not None:
                yield from ((material.at(brief.page.filename), fault) for fault in asked(brief, written))

    return problems


# Checks that version pairs are complete, marked and really in conflict, and how much of the base is outdated.

NO_PAIRS = f"{PLAN_FILE} names no version_pairs"


def check_version_pairs(material: Material) -> list[CheckResult]:
    """Return the checks of the version pairs. They are skipped if no plan names any."""
    results = [planned("version pairs", material, _versions), planned("rot", material, _rot)]
    if material.plan is not None and material.plan.version_pairs is None:
        return [CheckResult(result.name, skipped=NO_PAIRS) for result in results]
    if material.plan is not None:
        results[0].checked = f"{len(material.plan.version_pairs or ())} pairs"
        results[1].how = f"{_share(material.plan):.0%} of the pages are in version pairs"
    return results


def _share(plan: Plan) -> float:
    paired = {name for pair in plan.version_pairs or () for name in (pair.outdated, pair.current)}
    return len(paired) / max(1, len(plan.pages))


def _rot(material: Material, plan: Plan) -> _Problems:
    share, low, high = _share(plan), plan.rot / 2, plan.rot * 1.5
    if not low <= share <= high:
        asked = f"planned are about {plan.rot:.0%} ({low:.1%} to {high:.1%})"
        yield (
            material.at(PLAN_FILE),
            f"{share:.1%} of the pages are in version pairs, {asked}. "
            "Change the pairs, or plan another share with the key 'rot'.",
        )


def _versions(material: Material, plan: Plan) -> _Problems:
    pairs = plan.version_pairs or ()
    for pair in pairs:
        outdated, current = plan.page(pair.outdated), plan.page(pair.current)
        if outdated and current and outdated is not current:
            where = entry(material, plan, outdated)
            yield from ((where, problem) for problem in _status_problems(outdated, current))
            yield from _conflicts(material, pair, outdated, current)
        elif not (outdated and current):
            missing = pair.current if outdated else pair.outdated
            yield material.at(PLAN_FILE), f"a version pair names {missing!r}, which is not planned. Use a page's id."
    for page, fault in pairing_faults(plan):
        yield entry(material, plan, page), f"{page.id} {fault}"


def _status_problems(outdated: PlanPage, current: PlanPage) -> Iterator[str]:
    if outdated.status != "outdated":
        yield (
            f"{outdated.id} is the outdated page of a version pair, but its status is {outdated.status!r}. "
            "Set it to 'outdated', or swap the pair."
        )
    if current.status != "current":
        yield f"{current.id} replaces {outdated.id}, but its status is {current.status!r}. Set it to 'current'."
    if current.supersedes not in (outdated.id, outdated.filename):
        yield f"{current.id} supersedes {current.supersedes!r}, its version pair says {outdated.id!r}. Make them agree."
    for key in ("version", "effective_date"):
        old, new = getattr(outdated, key), getattr(current, key)
        if old is None or new is None or version_order(old) >= version_order(new):
            yield f"{key} of {outdated.id} is {old!r}, of {current.id} {new!r}. The current page must have the later."


def _conflicts(material: Material, pair: VersionPair, outdated: PlanPage, current: PlanPage) -> _Problems:
    if not pair.conflicts:
        where = material.at(PLAN_FILE)
        yield where, f"the pair {pair.outdated} / {pair.current} lists no conflict. List what the two disagree on."
    for conflict in pair.conflicts:
        if with_single_blanks(conflict.outdated_statement) == with_single_blanks(conflict.current_statement):
            same = f"both statements are the same: {conflict.current_statement!r}"
            what = f"{_conflict_name(conflict)}: {same}. State the conflict."
            yield material.at(PLAN_FILE), what
            continue
        yield from _stated(material, conflict, conflict.outdated_statement, outdated, current)
        yield from _stated(material, conflict, conflict.current_statement, current, outdated)


def _conflict_name(conflict: Conflict) -> str:
    return f"conflict {conflict.fact!r}"


def _stated(material: Material, conflict: Conflict, statement: str, owner: PlanPage, other: PlanPage) -> _Problems:
    there, elsewhere = (material.pages.get(page.filename) for page in (owner, other))
    if there and fold(statement) not in there.folded:
        lacks = f"the page does not say {statement!r}"
        what = f"{_conflict_name(conflict)}: {lacks}. Write it word for word, or mend {PLAN_FILE}."
        yield material.at(owner.filename), what
    if elsewhere and fold(statement) in elsewhere.folded:
        has = f"the page says {statement!r}, which belongs to {owner.filename} only"
        what = f"{_conflict_name(conflict)}: {has}. Remove it."
        yield material.at(other.filename), what
