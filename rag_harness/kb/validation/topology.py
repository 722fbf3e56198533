"""The links between pages as a Mermaid flowchart: by category, versions marked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from rag_harness.kb.validation.pages import links_of
from rag_harness.kb.validation.source import Source

_LIMIT = 500
"""Edges that Mermaid draws before it refuses. Who shows the graph can raise ``maxEdges``; the graph itself cannot."""


def flowchart(source: Source) -> str:
    """Return the graph. A link both ways is one edge with two heads, an outdated page is dashed."""
    nodes = {name: f"p{number}" for number, name in enumerate(source.pages, 1)}
    edges = [*_links(source, nodes), *_successions(source, nodes)]
    lines = ["flowchart LR", *_warning(len(edges)), *_categories(source, nodes), *edges, *_marks(source, nodes)]
    return "\n".join(lines) + "\n"


def _warning(edges: int) -> Iterator[str]:
    if edges > _LIMIT:
        yield f"    %% {edges} edges: show it with mermaid.initialize({{maxEdges: {edges}}}), the default is {_LIMIT}"


def _categories(source: Source, nodes: dict[str, str]) -> Iterator[str]:
    groups: dict[str, list[str]] = {}
    for name in nodes:
        groups.setdefault(_category(source, name), []).append(name)
    for number, (category, names) in enumerate(groups.items(), 1):
        yield f'    subgraph c{number}["{_escape(category)}"]'
        yield from (f'        {nodes[name]}["{_escape(_label(source, name))}"]' for name in names)
        yield "    end"


def _category(source: Source, name: str) -> str:
    """Return the planned category, or the folder that the page lies in."""
    page = source.planned.get(name)
    folder = PurePosixPath(name).parent.as_posix()
    return (page.category if page else None) or (folder if folder != "." else "pages")


def _label(source: Source, name: str) -> str:
    page = source.planned.get(name)
    title = (page.title if page else None) or source.pages[name].title or name
    return f"{title} (v{page.version})" if page and page.version and _versioned(source, name) else title


def _versioned(source: Source, name: str) -> bool:
    return source.status(name) == "outdated" or bool(source.planned[name].supersedes)


def _links(source: Source, nodes: dict[str, str]) -> Iterator[str]:
    links = {name: links_of(source, page) for name, page in source.pages.items()}
    for name, goals in links.items():
        for goal in goals:
            if name not in links[goal]:
                yield f"    {nodes[name]} --> {nodes[goal]}"
            elif nodes[name] < nodes[goal]:
                yield f"    {nodes[name]} <--> {nodes[goal]}"


def _successions(source: Source, nodes: dict[str, str]) -> Iterator[str]:
    for name, page in source.planned.items():
        old = source.plan.page(page.supersedes) if source.plan and page.supersedes else None
        if old and name in nodes and old.filename in nodes:
            yield f"    {nodes[name]} -. supersedes .-> {nodes[old.filename]}"


def _marks(source: Source, nodes: dict[str, str]) -> Iterator[str]:
    outdated = [node for name, node in nodes.items() if source.status(name) == "outdated"]
    if outdated:
        yield "    classDef outdated stroke-dasharray: 5 5, opacity: 0.6"
        yield f"    class {','.join(outdated)} outdated"


def _escape(text: str) -> str:
    return text.replace("&", "#amp;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
