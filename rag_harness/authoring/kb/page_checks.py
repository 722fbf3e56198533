"""Checks of pages: against their plan, and their Markdown, links, tables, diagrams, languages and flowchart."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import zip_longest
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from rag_harness.authoring.kb.checks import CheckResult, Material, leaves
from rag_harness.authoring.kb.page import ELSEWHERE, Page, TextAtLine, fold, linked_file, linked_files, visible_text
from rag_harness.authoring.kb.plan import Plan, PlannedFact, PlannedTable, PlanPage
from rag_harness.core.text.comparison import with_single_blanks
from rag_harness.core.text.languages import ENGLISH
from rag_harness.core.text.sentences import sentence_texts
from rag_harness.core.types import Document
from rag_harness.data.documents import languages_said, with_languages

# Checks that a page has the title, the kind and the links of its plan. Faults say what to do.

_SHOWS: dict[str, tuple[Callable[[Page], bool], str]] = {
    "tabular": (lambda page: page.tables > 0, "a table"),
    "logical": (lambda page: page.lists + len(page.diagrams) > 0, "a list of steps or conditions, or a diagram"),
    "mixed": (lambda page: page.tables + page.lists + len(page.diagrams) > 0, "a table, a list or a diagram"),
}


def title_faults(page: PlanPage, written: Page) -> Iterator[str]:
    """Yield a fault if the first heading is not the planned title."""
    if page.title is not None and with_single_blanks(written.title) != visible_text(page.title):
        yield f"the first heading of {page.filename} is {written.title!r}, planned is {page.title!r}. Make them agree."


def kind_faults(page: PlanPage, written: Page) -> Iterator[str]:
    """Yield what the page lacks for its kind, and a diagram too many or too few."""
    if page.kind is not None and page.kind not in _SHOWS:
        yield f"{page.id} has kind {page.kind!r}; known are {', '.join(_SHOWS)}. Use one of them."
    elif page.kind is not None and not _SHOWS[page.kind][0](written):
        yield f"{page.filename} is planned as {page.kind}, but has not {_SHOWS[page.kind][1]}. Add it or change kind."
    if page.mermaid is not None and page.mermaid != bool(written.diagrams):
        found = "has none. Draw one" if page.mermaid else f"has {len(written.diagrams)}. Remove it"
        planned_for = "a Mermaid diagram" if page.mermaid else "no Mermaid diagram"
        yield f"{page.filename} is planned with {planned_for}, but {found}, or change the plan."


def link_faults(page: PlanPage, plan: Plan, found: Collection[str]) -> Iterator[str]:
    """Yield missing links and unplanned links; ``found`` are the files that the page links to."""
    goals = {reference: plan.page(reference) for reference in page.links_to or ()}
    for reference, goal in goals.items():
        if goal is None:
            yield f"{page.id} links_to {reference!r}, which is not planned. Use the id of a planned page."
        elif goal.filename not in found:
            yield f"{page.filename} has no link to {goal.filename}, as links_to says. Add it or drop it here."
    for name in sorted(set(found) - {goal.filename for goal in goals.values() if goal}):
        yield f"{page.filename} links to {name}, which its links_to does not list. List it, or drop the link."


def heading_faults(page: PlanPage, written: Page) -> Iterator[str]:
    """Yield faults of the outline: it needs one heading of the first level, and sections below it."""
    first = [text for level, text in written.headings if level == 1]
    if len(first) != 1:
        yield f"{page.filename} has {len(first)} headings of the first level (#). Write one, the title."
    if not any(level == 2 for level, _ in written.headings):
        yield f"{page.filename} has no section. Put headings of the second level (##) over its parts."


_FIGURE = re.compile(r"\d+(?:[.,:]\d+)*")
_SHOWN = 5
"""How many figures a fault names."""


def fact_faults(page: PlanPage, written: Page, foreign: tuple[PlannedFact, ...] = ()) -> Iterator[str]:
    """Yield planned facts that are missing, and facts of another version that are not.

    ``foreign`` are facts that another version of the page states differently.
    """
    for fact in page.facts or ():
        if fold(fact.statement) not in written.folded:
            near = _nearest(written, fact.statement)
            yield f"fact {fact.id}: the page does not say {fact.statement!r}.{near} Write it word for word."
    for fact in foreign:
        if fold(fact.statement) in written.folded:
            yield f"fact {fact.id}: the page says {fact.statement!r}, which belongs to its other version. Remove it."


def _nearest(written: Page, statement: str) -> str:
    sentences = [text.strip(" -*>|") for text in sentence_texts(written.text) if text.strip()]
    close = get_close_matches(statement, sentences[:1000], n=1, cutoff=0.8)
    return f" It says {close[0]!r}." if close else ""


def step_faults(page: PlanPage, written: Page) -> Iterator[str]:
    """Yield the first step that is missing or stands before its predecessor."""
    text, place = written.folded, 0
    for diagram in written.diagrams:
        text = text.replace(fold(diagram.text), "")
    for number, step in enumerate(page.steps or (), 1):
        found = text.find(fold(step), place)
        if found < 0:
            why = "stands too early" if fold(step) in text else "is not there"
            yield f"step {number}, {step!r}, {why}. Write all steps word for word, in their order."
            return
        place = found + len(fold(step))


def table_faults(page: PlanPage, written: Page) -> Iterator[str]:
    """Yield missing tables, cells that differ, and tables that were not planned."""
    if page.tables is None:
        return
    left = [[[fold(cell) for cell in row] for row in grid] for grid in written.grids]
    missing = []
    for table in page.tables:
        wanted = _grid(table)
        if wanted in left:
            left.remove(wanted)
        else:
            missing.append((table, wanted))
    for table, wanted in missing:
        like = next((grid for grid in left if grid and grid[0] == wanted[0]), None)
        if like is not None:
            left.remove(like)
        yield _table_fault(table, wanted, like)
    for grid in left:
        yield f"a table of {_row(grid[0] if grid else [])} is not planned. Remove it, or write it as a list."


def _grid(table: PlannedTable) -> list[list[str]]:
    """Return the rows as a reader sees them: cells may contain marks of code, bold or links."""
    return [[fold(visible_text(cell)) for cell in row] for row in (table.columns, *table.rows)]


def _table_fault(table: PlannedTable, wanted: list[list[str]], like: list[list[str]] | None) -> str:
    if like is None:
        return f"the table {table.title!r} is not there. Write it with the columns {_row(wanted[0])}."
    none: list[str] = []
    for number, (planned, found) in enumerate(zip_longest(wanted, like, fillvalue=none)):
        if planned != found:
            said = f"is {_row(found)}" if found else "is not there"
            asked = f"planned is {_row(planned)}" if planned else "planned is none"
            return f"the table {table.title!r}: row {number} {said}, {asked}. Write it so."
    raise AssertionError("unreachable")


def _row(cells: list[str]) -> str:
    return " | ".join(cells) or "no cells"


def figure_faults(page: PlanPage, written: Page, known: Iterator[str]) -> Iterator[str]:
    """Yield the figures of a page that are not in ``known``: nothing planned states them."""
    planned = {figure for text in known for figure in _figures(text)}
    seen = " ".join(text for _, text in (*written.headings, *written.paragraphs))
    unplanned = list(dict.fromkeys(figure for figure in _figures(seen) if figure not in planned))
    if unplanned:
        shown = ", ".join(unplanned[:_SHOWN])
        yield f"{page.filename} has figures that its plan has not: {shown}. Leave out what is not planned."


def _figures(text: str) -> Iterator[str]:
    return (found[0].lstrip("0") or "0" for found in _FIGURE.finditer(text))


# Checks the structure of a Mermaid diagram without its parser: type, quotes, brackets, ends of subgraphs.

_NAMES = """
    flowchart graph sequenceDiagram classDiagram classDiagram-v2 stateDiagram stateDiagram-v2 erDiagram journey gantt
    pie quadrantChart requirementDiagram gitGraph mindmap timeline zenuml sankey sankey-beta xychart xychart-beta
    block block-beta packet packet-beta kanban architecture architecture-beta radar-beta treemap treemap-beta
    C4Context C4Container C4Component C4Dynamic C4Deployment
"""
_TYPES = frozenset(_NAMES.split())
_QUOTED = re.compile(r'"[^"]*"')
_FLAG_SHAPE = re.compile(r"(?<=\w)>[^\]]{0,300}\]")
_PAIRS = {")": "(", "]": "[", "}": "{"}


def shape_problem(text: str) -> TextAtLine | None:
    """Return the first fault in the structure of a diagram, with its line; None if there is none."""
    lines = list(_meaningful(text))
    if not lines:
        return TextAtLine(1, "the diagram is empty.")
    number, first = lines[0]
    kind = re.split(r"[\s:;]", first, maxsplit=1)[0]
    if kind not in _TYPES:
        return TextAtLine(number, f"{kind!r} is not a type of diagram; the first line is for instance 'flowchart TD'.")
    return _flowchart_problem(lines[1:]) if kind in ("flowchart", "graph") else None


def _meaningful(text: str) -> Iterator[tuple[int, str]]:
    in_front = False
    for number, line in enumerate(text.split("\n"), 1):
        plain = line.strip()
        if plain == "---":
            in_front = not in_front
        elif plain and not in_front and not plain.startswith("%%"):
            yield number, plain


def _flowchart_problem(lines: list[tuple[int, str]]) -> TextAtLine | None:
    open_subgraphs: list[int] = []
    for number, line in lines:
        if line.count('"') % 2:
            return TextAtLine(number, "a quote is opened and not closed.")
        plain = _FLAG_SHAPE.sub("", _QUOTED.sub("", line))
        if wrong := _unbalanced(plain):
            return TextAtLine(number, f"{wrong!r} has no partner on its line.")
        if plain.split()[:1] == ["subgraph"]:
            open_subgraphs.append(number)
        elif plain.rstrip(";") == "end":
            if not open_subgraphs:
                return TextAtLine(number, "'end' closes no subgraph.")
            open_subgraphs.pop()
    return TextAtLine(open_subgraphs[-1], "the subgraph is never closed with 'end'.") if open_subgraphs else None


def _unbalanced(line: str) -> str:
    opened: list[str] = []
    for character in line:
        if character in _PAIRS.values():
            opened.append(character)
        elif character in _PAIRS and (not opened or opened.pop() != _PAIRS[character]):
            return character
    return opened[-1] if opened else ""


def check_pages(material: Material) -> list[CheckResult]:
    """Return the checks of the pages themselves."""
    return [_markdown(material), _links(material), _tables(material)]


def _markdown(material: Material) -> CheckResult:
    check = CheckResult("markdown", f"{len(material.pages) + len(material.unreadable)} pages")
    for byte, name in material.unreadable:
        check.error(material.at(name), f"not UTF-8 at byte {byte}. Save the file as UTF-8.")
    for page in material.pages.values():
        for line, problem in page.problems:
            check.error(material.at(page.doc_id, line), problem)
    return check


def _tables(material: Material) -> CheckResult:
    check = CheckResult("tables", f"{sum(page.tables for page in material.pages.values())} tables")
    for page in material.pages.values():
        for line, problem in page.ragged:
            check.error(material.at(page.doc_id, line), problem)
    return check


def _links(material: Material) -> CheckResult:
    elsewhere = total = 0
    check = CheckResult("links")
    for page in material.pages.values():
        total += len(page.links)
        for line, target in page.links:
            if ELSEWHERE.match(target):
                elsewhere += 1
            elif problem := _problem(material, page, target):
                check.error(material.at(page.doc_id, line), f"link to {unquote(target)!r}: {problem}")
    check.checked = f"{total - elsewhere} links"
    check.how = f"{elsewhere} links to other sites were not followed" if elsewhere else ""
    return check


def links_of(material: Material, page: Page) -> list[str]:
    """Return the other pages that ``page`` links to, each once, in order."""
    return [name for name in linked_files(page) if name in material.pages]


def _problem(material: Material, page: Page, target: str) -> str:
    name, anchor = linked_file(page, target)
    if leaves(name) or (name not in material.files and not _is_folder(material, name)):
        return f"{material.no_file(name).removesuffix('.')}. Mend the link."
    if anchor in ("", "top") or name not in material.pages:
        return ""
    problem = anchor_problem(material, material.pages[name], anchor)
    return f"{problem} Mend the link." if problem else ""


def _is_folder(material: Material, name: str) -> bool:
    return (material.folder / name).is_dir()


def anchor_problem(material: Material, page: Page, anchor: str) -> str:
    """Return why ``page`` has no such ``anchor``; empty if it has."""
    if anchor in page.anchors:
        return ""
    for known in page.anchors:
        if known.casefold() == anchor.casefold():
            return f"the anchor is {known!r}, and case counts."
    return (
        f"{page.doc_id} has no heading with the anchor {anchor!r}.{material.nearest(anchor, frozenset(page.anchors))}"
    )


MODULES = "RAG_MERMAID_MODULES"
_SCRIPT = Path(__file__).with_name("mermaid_parser.mjs")
_LINE = re.compile(r"error on line (\d+)", re.IGNORECASE)
_PLACE = re.compile(r"Parse error on line \d+: (?:\.\.\.)?")
_EXPECTING = re.compile(r"Expecting .{0,500}, got")
_COMMENT = re.compile(r"^[ \t]*%%(?!\{).*$", re.MULTILINE)


class NoParserError(Exception):
    """The real parser cannot be used; the message says why and how to get it."""


@dataclass(frozen=True)
class Parsed:
    """The result for each diagram (None is valid), and the parser that gave it."""

    problems: list[TextAtLine | None]
    how: str


def check_diagrams(material: Material) -> list[CheckResult]:
    """Return the check of all diagrams."""
    placed = [(page.doc_id, diagram) for page in material.pages.values() for diagram in page.diagrams]
    if not placed:
        return [CheckResult("mermaid", "0 diagrams")]
    parsed = parse([diagram.text for _, diagram in placed], material.folder)
    check = CheckResult("mermaid", f"{len(placed)} diagrams", how=parsed.how)
    for (name, diagram), problem in zip(placed, parsed.problems, strict=True):
        if problem is not None:
            check.error(material.at(name, diagram.line + problem.line), f"{problem.text} Mend the diagram.")
    return [check]


def parse(diagrams: Sequence[str], folder: Path) -> Parsed:
    """Parse ``diagrams`` with npm's mermaid if it is found from ``folder``; else check their structure."""
    try:
        return _really_parsed(diagrams, find_mermaid(folder))
    except NoParserError as error:
        return Parsed([shape_problem(text) for text in diagrams], f"structural check only: {error}")


def find_mermaid(folder: Path) -> Path:
    """Return the folder of the npm package: from RAG_MERMAID_MODULES, or upwards from the current folder or the pages'.

    Raises:
        NoParserError: the package is not found; the message names the places. A package among the pages is never run.
    """
    named = os.environ.get(MODULES)
    starts = (Path.cwd(), folder.resolve().parent)
    above = [place / "node_modules" for start in starts for place in (start, *start.parents)]
    for place in [Path(named)] if named else dict.fromkeys(above):
        if (place / "mermaid" / "package.json").is_file():
            return place / "mermaid"
    where = named or f"node_modules of {starts[0]}, {starts[1]} or above"
    raise NoParserError(f"no npm package mermaid in {where}; npm install mermaid, or set {MODULES}")


def _really_parsed(diagrams: Sequence[str], package: Path) -> Parsed:
    # The parser drops comments together with their lines, and then counts lines wrongly.
    answer = _ask_node([_COMMENT.sub("", text) for text in diagrams], package)
    problems = [_parser_error(text, message) for text, message in zip(diagrams, answer["results"], strict=True)]
    return Parsed(problems, f"parsed by npm mermaid {answer['version']}")


def _ask_node(diagrams: Sequence[str], package: Path) -> dict[str, list[str | None]]:
    node = shutil.which("node")
    if node is None:
        raise NoParserError("node is not on the PATH")
    command = [node, str(_SCRIPT), str(package.resolve())]
    limit = 60 + len(diagrams) / 10
    try:
        ran = subprocess.run(
            command, input=json.dumps(diagrams).encode(), capture_output=True, timeout=limit, check=True
        )
        answer: dict[str, list[str | None]] = json.loads(ran.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        raise NoParserError(f"npm mermaid in {package} did not answer in {limit:.0f} s") from None
    except (subprocess.CalledProcessError, OSError, ValueError, IndexError) as error:
        said = (getattr(error, "stderr", None) or b"").decode("utf-8", "replace").strip().split("\n")
        why = next((line for line in said if "Error" in line), said[-1]) or str(error)
        raise NoParserError(f"npm mermaid in {package} did not run: {why}") from None
    return answer


def _parser_error(text: str, message: str | None) -> TextAtLine | None:
    if message is None:
        return None
    found = _LINE.search(message)
    # The parser counts one line too many if the error is at the end of the text.
    line = min(int(found[1]), max(1, text.count("\n"))) if found else 1
    said = " ".join(part.strip() for part in message.splitlines() if part.strip(" -^"))
    said = _EXPECTING.sub("is unexpected:", _PLACE.sub("", said))
    return TextAtLine(line, f"the parser says: {said[:200].rstrip('.')}.")


def check_languages(material: Material) -> list[CheckResult]:
    """Return a check with notes; none where every page is in English."""
    pages = with_languages([Document(name, page.body, name) for name, page in material.pages.items()])
    notes = languages_said(pages)
    if not notes:
        return []
    check = CheckResult("languages", f"{len(pages)} pages")
    for note in notes:
        check.note(str(material.folder), note)
    if any(page.language != ENGLISH for page in pages):
        check.note(str(material.folder), "Contradictions between versions of a page are looked for in English alone.")
    return [check]


_LIMIT = 500
"""Mermaid refuses to draw more edges. A viewer can raise ``maxEdges``; the graph itself cannot."""


def flowchart(material: Material) -> str:
    """Return the graph. Links in both directions are one edge with two heads; an outdated page is dashed."""
    nodes = {name: f"p{number}" for number, name in enumerate(material.pages, 1)}
    edges = [*_one_way_links(material, nodes), *_successions(material, nodes)]
    lines = ["flowchart LR", *_warning(len(edges)), *_categories(material, nodes), *edges, *_marks(material, nodes)]
    return "\n".join(lines) + "\n"


def _warning(edges: int) -> Iterator[str]:
    if edges > _LIMIT:
        yield f"    %% {edges} edges: show it with mermaid.initialize({{maxEdges: {edges}}}), the default is {_LIMIT}"


def _categories(material: Material, nodes: dict[str, str]) -> Iterator[str]:
    groups: dict[str, list[str]] = {}
    for name in nodes:
        groups.setdefault(_category(material, name), []).append(name)
    for number, (category, names) in enumerate(groups.items(), 1):
        yield f'    subgraph c{number}["{_escape(category)}"]'
        yield from (f'        {nodes[name]}["{_escape(_label(material, name))}"]' for name in names)
        yield "    end"


def _category(material: Material, name: str) -> str:
    """Return the planned category; without a plan, the page's folder."""
    page = material.planned.get(name)
    folder = PurePosixPath(name).parent.as_posix()
    return (page.category if page else None) or (folder if folder != "." else "pages")


def _label(material: Material, name: str) -> str:
    page = material.planned.get(name)
    title = (page.title if page else None) or material.pages[name].title or name
    return f"{title} (v{page.version})" if page and page.version and _versioned(material, name) else title


def _versioned(material: Material, name: str) -> bool:
    return material.status(name) == "outdated" or bool(material.planned[name].supersedes)


def _one_way_links(material: Material, nodes: dict[str, str]) -> Iterator[str]:
    links = {name: links_of(material, page) for name, page in material.pages.items()}
    for name, goals in links.items():
        for goal in goals:
            if name not in links[goal]:
                yield f"    {nodes[name]} --> {nodes[goal]}"
            elif nodes[name] < nodes[goal]:
                yield f"    {nodes[name]} <--> {nodes[goal]}"


def _successions(material: Material, nodes: dict[str, str]) -> Iterator[str]:
    for name, page in material.planned.items():
        old = material.plan.page(page.supersedes) if material.plan and page.supersedes else None
        if old and name in nodes and old.filename in nodes:
            yield f"    {nodes[name]} -. supersedes .-> {nodes[old.filename]}"


def _marks(material: Material, nodes: dict[str, str]) -> Iterator[str]:
    outdated = [node for name, node in nodes.items() if material.status(name) == "outdated"]
    if outdated:
        yield "    classDef outdated stroke-dasharray: 5 5, opacity: 0.6"
        yield f"    class {','.join(outdated)} outdated"


def _escape(text: str) -> str:
    return text.replace("&", "#amp;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
