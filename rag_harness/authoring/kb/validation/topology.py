"""Draws the links between pages as a Mermaid flowchart, by category, with versions marked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from rag_harness.authoring.kb.validation.material import Material
from rag_harness.authoring.kb.validation.pages import links_of

_LIMIT = 500
"""Mermaid refuses to draw more edges. A viewer can raise ``maxEdges``; the graph itself cannot."""


def flowchart(material: Material) -> str:
    """Return the graph. Links in both directions are one edge with two heads; an outdated page is dashed."""
    nodes = {name: f"p{number}" for number, name in enumerate(material.pages, 1)}
    edges = [*_links(material, nodes), *_successions(material, nodes)]
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


def _links(material: Material, nodes: dict[str, str]) -> Iterator[str]:
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
