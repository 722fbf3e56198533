"""Diagrams and the graph: the real parser where it is installed, the structural check everywhere."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rag_harness.authoring.kb.page_checks import NoParserError, find_mermaid, parse
from rag_harness.authoring.kb.validation import graph
from tests.unit.data.kb_builder import Kb


def _installed() -> bool:
    try:
        find_mermaid(Path(__file__))
    except NoParserError:
        return False
    return shutil.which("node") is not None


needs_parser = pytest.mark.skipif(not _installed(), reason="npm package mermaid is not installed; see CONTRIBUTING.md")
BROKEN = {
    "flowchart TD\n A[x --> B\n": (2, "'[' has no partner on its line."),
    'flowchart TD\n A["x] --> B\n': (2, "a quote is opened and not closed."),
    "flowchart TD\n subgraph s\n A-->B\n": (2, "the subgraph is never closed with 'end'."),
    "flowchart TD\n %% note\n A-->B\n end\n": (4, "'end' closes no subgraph."),
    "flowchrt TD\n A-->B\n": (1, "'flowchrt' is no type of diagram; the first line is for instance 'flowchart TD'."),
    "": (1, "the diagram is empty."),
}
VALID = [
    'flowchart TD\n A>"flag ]"] --> B([x]) --> C{{"y (z"}}\n subgraph s\n D[(db)]\n end\n',
    "sequenceDiagram\n A->>B: hi :)\n",
    '---\ntitle: t\n---\npie title x\n "a" : 3\n',
    "%%{init: {}}%%\nstateDiagram-v2\n [*] --> A\n",
]


@pytest.fixture
def no_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAG_MERMAID_MODULES", "/nowhere")


@pytest.mark.usefixtures("no_parser")
@pytest.mark.parametrize("text", BROKEN)
def test_the_structural_check_finds(text: str) -> None:
    assert parse([text], Path()).problems == [BROKEN[text]]


@pytest.mark.usefixtures("no_parser")
def test_the_structural_check_accepts() -> None:
    parsed = parse(VALID, Path())
    assert parsed.problems == [None] * len(VALID)
    where = "no npm package mermaid in /nowhere; npm install mermaid, or set RAG_MERMAID_MODULES"
    assert parsed.how == f"structural check only: {where}"


@needs_parser
@pytest.mark.parametrize("text", [text for text in BROKEN if text])
def test_the_real_parser_finds(text: str) -> None:
    [problem] = parse([text], Path(__file__)).problems
    assert problem is not None
    assert problem.text.startswith("the parser says: ")
    assert 1 <= problem.line <= text.count("\n")


@needs_parser
def test_the_real_parser_accepts_and_says_that_it_ran() -> None:
    parsed = parse(VALID, Path(__file__))
    assert parsed.problems == [None] * len(VALID)
    assert parsed.how.startswith("parsed by npm mermaid 1")


@needs_parser
def test_the_line_of_an_error_counts_comments() -> None:
    [problem] = parse(["flowchart TD\n %% note\n A --> --> B\n C-->D\n"], Path(__file__)).problems
    assert problem is not None
    assert problem.line == 3


@pytest.mark.usefixtures("no_parser")
def test_a_broken_diagram_is_named_by_its_line_in_the_page(tmp_path: Path) -> None:
    kb = Kb(tmp_path / "kb")
    kb.pages["shipping.md"] = kb.pages["shipping.md"].replace('"Ordered?"]', '"Ordered?"')
    assert kb.errors() == ["mermaid: KB/shipping.md:8: '[' has no partner on its line. Mend the diagram."]


def test_a_package_that_does_not_run_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mermaid").mkdir()
    (tmp_path / "mermaid" / "package.json").write_text('{"module": "gone.mjs"}')
    monkeypatch.setenv("RAG_MERMAID_MODULES", str(tmp_path))
    parsed = parse(["flowchart TD\n A[x\n"], Path())
    assert parsed.problems == [(2, "'[' has no partner on its line.")]
    assert parsed.how.startswith("structural check only: ")


def test_what_lies_among_the_pages_is_never_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kb = tmp_path / "kb"
    (kb / "node_modules" / "mermaid").mkdir(parents=True)
    (kb / "node_modules" / "mermaid" / "package.json").write_text("{}")
    monkeypatch.delenv("RAG_MERMAID_MODULES", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NoParserError, match="no npm package mermaid"):
        find_mermaid(kb)


GRAPH = """flowchart LR
    subgraph c1["returns"]
        p1["Returns policy 2024 (v1)"]
        p2["Returns #quot;policy#quot; (v2)"]
    end
    subgraph c2["shipping"]
        p3["Shipping"]
    end
    p1 <--> p2
    p2 <--> p3
    p2 -. supersedes .-> p1
    classDef outdated stroke-dasharray: 5 5, opacity: 0.6
    class p1 outdated
"""


@pytest.mark.usefixtures("no_parser")
def test_the_graph_shows_categories_links_and_versions(tmp_path: Path) -> None:
    kb = Kb(tmp_path / "kb")
    kb.pages["returns.md"] = kb.pages["returns.md"].replace("# Returns policy", '# Returns "policy"', 1)
    kb.write()
    assert graph(kb.folder) == GRAPH
    assert parse([GRAPH], kb.folder).problems == [None]


@needs_parser
def test_the_graph_is_valid_mermaid() -> None:
    assert parse([GRAPH], Path(__file__)).problems == [None]


def test_the_graph_of_anybodys_pages_goes_by_folder(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.md").write_text("# A\n\n[b](sub/b.md#b) [b](sub/b.md) [gone](gone.md) [a](a.md)\n")
    (tmp_path / "sub" / "b.md").write_text("no heading\n")
    assert graph(tmp_path).split("\n")[1:-1] == [
        '    subgraph c1["pages"]',
        '        p1["A"]',
        "    end",
        '    subgraph c2["sub"]',
        '        p2["sub/b.md"]',
        "    end",
        "    p1 --> p2",
    ]


def test_more_edges_than_mermaid_draws_are_announced(tmp_path: Path) -> None:
    names = [f"p{number}" for number in range(33)]
    for name in names:
        (tmp_path / f"{name}.md").write_text("# T\n\n" + " ".join(f"[x]({other}.md)" for other in names) + "\n")
    assert "%% 528 edges: show it with mermaid.initialize({maxEdges: 528}), the default is 500" in graph(tmp_path)
