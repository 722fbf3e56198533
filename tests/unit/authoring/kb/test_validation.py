"""``kb validate``: each fault of pages, diagnosed alone, with its exact message."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_harness.authoring.kb import validation
from rag_harness.authoring.kb.page_checks import NoParserError, find_mermaid, parse
from rag_harness.authoring.kb.validation import graph, validate
from rag_harness.core.errors import DataError
from rag_harness.core.text.shingles import Hashing, candidates, resemblance, signature
from tests.unit.data.kb_builder import Kb, planned

# Each fault that the validator is for, planted alone, with its exact message.


@pytest.fixture
def kb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kb:
    monkeypatch.setenv("RAG_MERMAID_MODULES", "/nowhere")
    return Kb(tmp_path / "kb")


def test_a_sound_knowledge_base_has_no_finding(kb: Kb) -> None:
    report = kb.validate()
    assert report.ok
    assert report.findings == []
    states = {check.name: check.state for check in report.checks}
    assert {name for name, state in states.items() if state == "ok"} >= {"links", "plan", "version pairs", "rot"}
    assert {name for name, state in states.items() if state == "skipped"} >= {"queries", "quotes", "golden"}


LINKS = {
    "refunds.md": "no such file in KB. The nearest is 'returns.md'. Mend the link.",
    "zzz.md": "no such file in KB. Mend the link.",
    "Returns.md": "the file is called 'returns.md', and case counts. Write it so. Mend the link.",
    "returns.md#Return-Window": "the anchor is 'return-window', and case counts. Mend the link.",
    "returns.md#return-windw": (
        "returns.md has no heading with the anchor 'return-windw'. The nearest is 'return-window'. Mend the link."
    ),
    "../../etc/passwd": "refused: the name leads out of KB. Name a file inside it. Mend the link.",
    "../": "refused: the name leads out of KB. Name a file inside it. Mend the link.",
    "../queries.jsonl": "refused: the name leads out of KB. Name a file inside it. Mend the link.",
}


@pytest.mark.parametrize("target", LINKS)
def test_a_link_that_leads_nowhere(kb: Kb, target: str) -> None:
    kb.pages["shipping.md"] += f"\n\n[x]({target})\n"
    # What a planned page links to and what its text links to are two checks.
    kb.planned["pages"][2].pop("links_to")
    assert kb.errors() == [f"links: KB/shipping.md:12: link to {target!r}: {LINKS[target]}"]


@pytest.mark.parametrize(
    "target",
    [
        "returns.md",
        "returns.md#return-window",
        "./returns.md#",
        "/returns.md",
        "#shipping",
        "https://example.org/no.md#x",
        "mailto:a@example.org",
        "returns.md?plain=1#return-fees",
        "sub/ä%20b.md#twice-1",
        "sub/",
        "sub/%C3%A4 b.md".replace(" ", "%20"),
    ],
)
def test_a_link_that_resolves(kb: Kb, target: str) -> None:
    kb.plan = None
    kb.pages["sub/ä b.md"] = "# Ä b\n\n## Twice\n\n## Twice\n\n[up](../returns.md#return-fees) [img](../a.png)\n"
    kb.pages["a.png"] = "not a page"
    kb.pages["shipping.md"] += f"\n[x]({target})\n"
    assert kb.errors() == []


def test_links_in_html_in_tables_and_as_references_are_checked(kb: Kb) -> None:
    kb.pages["shipping.md"] += (
        '\n<a href="gone1.md">x</a>\n\n| a | b |\n|---|---|\n| [x](gone2.md) | ![x](gone3.png) |\n\n'
        "[x][ref]\n\n[ref]: gone4.md\n"
    )
    assert [error.split(": link to ")[1].split(":")[0] for error in kb.errors()] == [
        f"'gone{number}'".replace("'gone3'", "'gone3.png'") if number == 3 else f"'gone{number}.md'"
        for number in range(1, 5)
    ]
    assert [error.split(":")[2] for error in kb.errors()] == ["11", "15", "15", "17"]


def test_the_line_is_that_of_the_link_and_not_of_its_paragraph(kb: Kb) -> None:
    kb.pages["shipping.md"] += "\none\ntwo  \n[x](zzz.md)\n"
    assert [error.split(":")[2] for error in kb.errors()] == ["13"]


def test_links_inside_code_are_no_links(kb: Kb) -> None:
    kb.pages["shipping.md"] += "\n`[x](gone.md)`\n\n```\n[x](gone.md)\n```\n"
    assert kb.errors() == []


def test_text_that_was_meant_as_a_link(kb: Kb) -> None:
    kb.pages["shipping.md"] += "\n[x](my page.md) and [y][nowhere], but not a[0][1]\n"
    advice = "Write [text](file.md), a target with blanks as <my file.md>, or define the reference."
    assert kb.errors() == [
        f"markdown: KB/shipping.md:11: '[x](my page.md)' is shown as text, not as a link. {advice}",
        f"markdown: KB/shipping.md:11: '[y][nowhere]' is shown as text, not as a link. {advice}",
    ]


def test_markdown_that_no_author_means(kb: Kb) -> None:
    kb.plan = None
    kb.pages |= {"a.md": " \n", "b.md": "# B\n\n~~~\nx\n```\n", "d.md": "# D\n\n```"}
    kb.write()
    (kb.folder / "c.md").write_bytes(b"# C\n\xff")
    assert kb.errors() == [
        "markdown: KB/c.md: not UTF-8 at byte 4. Save the file as UTF-8.",
        "markdown: KB/a.md:1: the page has no text. Write it, or remove the file.",
        "markdown: KB/b.md:3: the code block is never closed. End it with a line of ~~~.",
        "markdown: KB/d.md:3: the code block is never closed. End it with a line of ```.",
    ]


def test_ragged_rows(kb: Kb) -> None:
    rows = ["| 1 |", "| 1 | 2 | 3 |", r"| 1 \| 1 | 2 |", r"| `x \| y` | 2", "no blank line", "", "| a | b |", "|---|"]
    kb.pages["shipping.md"] += "\n" + "\n".join(["| a | b |", "|---|---|", *rows]) + "\n"
    advice = r"Add or remove cells; a | inside a cell is written \|, and a blank line ends a table."
    assert kb.errors() == [
        f"tables: KB/shipping.md:13: the row has 1 cell, the header on line 11 has 2. {advice}",
        f"tables: KB/shipping.md:14: the row has 3 cells, the header on line 11 has 2. {advice}",
        f"tables: KB/shipping.md:17: the row has 1 cell, the header on line 11 has 2. {advice}",
        f"tables: KB/shipping.md:20: the delimiter row has 1 cell, its header 2: no table. {advice}",
    ]


def test_tables_in_quotes_and_lists_are_measured_without_their_marks(kb: Kb) -> None:
    kb.pages["shipping.md"] += (
        "\n> | a | b |\n> |---|---|\n> | 1 | 2 |\n\n- x\n\n  | a | b |\n  |---|---|\n  | 1 | 2 |\n"
    )
    assert kb.errors() == []


def test_front_matter_is_no_heading_and_keeps_the_lines(kb: Kb) -> None:
    kb.plan = None
    kb.pages["a.md"] = "---\ntitle: x\n---\n# A\n\n[x](gone.md) [y](#title-x)\n"
    assert [error.split(": link")[0] for error in kb.errors()] == ["links: KB/a.md:6", "links: KB/a.md:6"]


def test_anybodys_pages_are_checked_without_a_plan(kb: Kb) -> None:
    kb.plan = None
    report = kb.validate()
    assert report.ok
    skipped = {check.name: check.skipped for check in report.checks if check.skipped}
    assert skipped["plan"] == skipped["version pairs"] == skipped["rot"] == "there is no structure.json"
    assert skipped["quotes"] == "no file of queries; name one with --queries FILE"


def test_near_duplicates_and_pasted_paragraphs_are_notes(kb: Kb) -> None:
    kb.plan = None
    words = " ".join(f"word{number}" for number in range(200))
    kb.pages |= {
        "a.md": f"# A\n\n{words}\n",
        "b.md": f"# B\n\n{words}\n",
        "c.md": f"# C\n\n{words} {words[:300]} end\n",
    }
    report = kb.validate()
    assert report.ok
    notes = kb.notes()
    assert notes[0].startswith("pasted paragraphs: KB/a.md:3: note: 'word0 word1 word2")
    assert notes[0].endswith("… stands word for word in b.md too.")
    assert notes[1] == "near-duplicates: KB/a.md: note: the same words as b.md."
    assert notes[2].startswith("near-duplicates: KB/a.md: note: near c.md: 9")
    assert notes[2].endswith("% of their three-word runs are the same.")
    assert len(notes) == 3


def test_pages_with_a_third_of_their_runs_in_common_are_near(kb: Kb) -> None:
    kb.plan = None
    shared = " ".join(f"word{number}" for number in range(100))
    kb.pages = {
        f"{name}.md": f"# A\n\n{shared} " + " ".join(f"{name}{number}" for number in range(90)) for name in "abc"
    }
    kb.pages["d.md"] = "# D\n\n" + " ".join(f"other{number}" for number in range(200))
    near = [note.split(": ")[1:] for note in kb.notes() if note.startswith("near-duplicates")]
    assert [(page, said.split()[1]) for page, _, said, _ in near] == [
        ("KB/a.md", "b.md"),
        ("KB/a.md", "c.md"),
        ("KB/b.md", "c.md"),
    ]


def test_the_table_and_the_json_say_the_same(kb: Kb) -> None:
    kb.pages["shipping.md"] += "\n[x](zzz.md)\n"
    report = kb.validate()
    lines = report.lines()
    assert lines[0].split() == ["check", "result", "checked", "details"]
    assert any(line.split() == ["links", "failed", "5", "links", "1", "error"] for line in lines)
    assert lines[-1] == f"{kb.folder}: not valid (1 failed, 11 ok, 0 notes, 17 skipped)"
    told = json.loads(report.json())
    assert told["ok"] is False
    assert [check["state"] for check in told["checks"]] == [check.state for check in report.checks]


def test_many_findings_are_cut_in_the_table_only(kb: Kb) -> None:
    kb.pages["shipping.md"] += "\n" + "[x](zzz.md)\n" * 150
    report = kb.validate()
    assert "… and 50 more of links; --json lists all." in report.lines()
    assert report.json().count("zzz.md") == 150


def test_a_folder_without_pages(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^No folder .*gone: name the one that holds your Markdown pages"):
        validate(tmp_path / "gone", None, None)
    with pytest.raises(DataError, match=r"^No Markdown page in "):
        validate(tmp_path, None, None)


def test_question_files_that_are_named_must_exist(kb: Kb) -> None:
    kb.write()
    with pytest.raises(DataError, match=r"^No file gone\.jsonl\. Name one that exists with --queries FILE\.$"):
        validate(kb.folder, Path("gone.jsonl"), None)
    with pytest.raises(DataError, match=r"^No file gone\.json\. Name one that exists with --golden FILE\.$"):
        validate(kb.folder, None, Path("gone.json"))


# Diagrams and the graph: the real parser where it is installed, the structural check everywhere.


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
    "flowchrt TD\n A-->B\n": (1, "'flowchrt' is not a type of diagram; the first line is for instance 'flowchart TD'."),
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


# structure.json against the files, and version pairs against their pages.


def line_of(kb: Kb, nth: int) -> int:
    """Return the line of the nth page's id in the written plan."""
    lines = (kb.folder / "structure.json").read_text().split("\n")
    return [number for number, line in enumerate(lines, 1) if '"id":' in line][nth]


def test_a_planned_page_that_is_missing(kb: Kb) -> None:
    kb.planned["pages"].append(planned("refunds"))
    kb.planned["num_pages"] = 4
    said = "'refunds.md' is planned: no such file in KB. The nearest is 'returns.md'. Write the page or drop it here."
    assert kb.errors() == [f"plan: KB/structure.json:{line_of(kb, 3)}: {said}"]


def test_a_page_that_is_not_planned(kb: Kb) -> None:
    kb.pages["extra.md"] = "# Extra\n"
    said = "the page is not in structure.json. Plan it there, or remove the file."
    assert kb.errors() == [f"plan: KB/extra.md: {said}"]


def test_a_planned_name_that_leaves_the_folder(kb: Kb) -> None:
    kb.planned["pages"].append(planned("passwd", filename="../../etc/passwd"))
    kb.planned["num_pages"] = 4
    said = "'../../etc/passwd' is planned: refused: the name leads out of KB. Name a file inside it."
    assert kb.errors() == [f"plan: KB/structure.json:{line_of(kb, 3)}: {said} Write the page or drop it here."]


def test_duplicate_ids_and_a_wrong_count(kb: Kb) -> None:
    kb.pages["more.md"] = "# More\n"
    kb.planned["pages"].append(planned("shipping", filename="more.md", category="shipping"))
    errors = kb.errors()
    first, second = line_of(kb, 2), line_of(kb, 3)
    said = f"id 'shipping' stands already on line {first}. Give each page its own."
    assert f"plan: KB/structure.json:{second}: {said}" in errors
    assert "plan: KB/structure.json: num_pages is 3, but 4 pages are planned. Correct one of them." in errors


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("title", "Parcels", "the first heading of shipping.md is 'Shipping', planned is 'Parcels'. Make them agree."),
        ("category", "toys", "shipping has category 'toys'; categories lists returns, shipping. Use one of them."),
        ("kind", "odd", "shipping has kind 'odd'; known are tabular, logical, mixed. Use one of them."),
        ("kind", "tabular", "shipping.md is planned as tabular, but has not a table. Add it or change kind."),
        (
            "mermaid",
            False,
            "shipping.md is planned with no Mermaid diagram, but has 1. Remove it, or change the plan.",
        ),
        (
            "links_to",
            ["returns", "gone"],
            "shipping links_to 'gone', which is not planned. Use the id of a planned page.",
        ),
        (
            "links_to",
            ["returns", "returns-2024"],
            "shipping.md has no link to returns-2024.md, as links_to says. Add it or drop it here.",
        ),
        (
            "links_to",
            [],
            "shipping.md links to returns.md, which its links_to does not list. List it, or drop the link.",
        ),
    ],
)
def test_a_page_that_is_not_as_planned(kb: Kb, key: str, value: Any, said: str) -> None:
    kb.planned["pages"][2][key] = value
    errors = [error.split(": ", 2) for error in kb.errors()]
    assert [f"KB/structure.json:{line_of(kb, 2)}", said] in [error[1:] for error in errors]


def test_a_plan_that_is_no_json(kb: Kb) -> None:
    kb.plan = None
    kb.write()
    (kb.folder / "structure.json").write_text('{\n"pages": [\n}')
    report = kb.validate()
    assert kb.errors() == [
        "plan: KB/structure.json:3: invalid JSON at column 1: Expecting value. Mend the file."
    ] or kb.errors()[0].startswith("plan: KB/structure.json:3: invalid JSON at column 1: ")
    assert {check.skipped for check in report.checks if check.name == "rot"} == {"structure.json cannot be read"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[]",
            "expected an object with a list 'pages', found a list. Mend the file, or remove it: a plan is optional.",
        ),
        ('{"pages": [{"id": "x"}]}', "pages.0.filename: Field required. Mend it."),
    ],
)
def test_a_plan_of_another_shape(kb: Kb, text: str, said: str) -> None:
    kb.plan = None
    kb.write()
    (kb.folder / "structure.json").write_text(text)
    assert kb.errors() == [f"plan: KB/structure.json:1: {said}"]


def test_a_plan_of_filenames_alone_is_enough(kb: Kb) -> None:
    kb.plan = {"pages": [{"filename": name} for name in kb.pages]}
    report = kb.validate()
    assert report.findings == []
    assert {check.skipped for check in report.checks if check.name == "rot"} == {
        "structure.json names no version_pairs"
    }


def test_an_outdated_page_marked_current(kb: Kb) -> None:
    kb.planned["pages"][0]["status"] = "current"
    said = "returns-2024 is the outdated page of a version pair, but its status is 'current'."
    where = "version pairs: KB/structure.json:"
    errors = kb.errors()
    assert errors == [f"{where}{line_of(kb, 0)}: {said} Set it to 'outdated', or swap the pair."]


@pytest.mark.parametrize(
    ("page", "key", "value", "said"),
    [
        (1, "status", "outdated", "returns replaces returns-2024, but its status is 'outdated'. Set it to 'current'."),
        (1, "supersedes", None, "returns supersedes None, its version pair says 'returns-2024'. Make them agree."),
        (0, "version", "10", "version of returns-2024 is '10', of returns '2'. The current page must have the later."),
        (
            0,
            "effective_date",
            "2025-02-01",
            "effective_date of returns-2024 is '2025-02-01', of returns '2025-01-01'. "
            "The current page must have the later.",
        ),
    ],
)
def test_marks_of_a_pair(kb: Kb, page: int, key: str, value: Any, said: str) -> None:
    kb.planned["pages"][page][key] = value
    errors = kb.errors()
    assert errors == [f"version pairs: KB/structure.json:{line_of(kb, 0)}: {said}"]


OLD_SAYS, NEW_SAYS = "Send items back within 30 days.", "Send items back within 45 days."


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        (
            "returns-2024.md",
            OLD_SAYS,
            "",
            f"the page does not say {OLD_SAYS!r}. Write it word for word, or mend structure.json.",
        ),
        (
            "returns.md",
            NEW_SAYS,
            "",
            f"the page does not say {NEW_SAYS!r}. Write it word for word, or mend structure.json.",
        ),
        (
            "returns-2024.md",
            OLD_SAYS,
            f"{OLD_SAYS} {NEW_SAYS}",
            f"the page says {NEW_SAYS!r}, which belongs to returns.md only. Remove it.",
        ),
        (
            "returns.md",
            NEW_SAYS,
            f"{NEW_SAYS} {OLD_SAYS}",
            f"the page says {OLD_SAYS!r}, which belongs to returns-2024.md only. Remove it.",
        ),
    ],
)
def test_a_conflict_that_is_none(kb: Kb, name: str, old: str, new: str, said: str) -> None:
    kb.pages[name] = kb.pages[name].replace(old, new)
    assert kb.errors() == [f"version pairs: KB/{name}: conflict 'window': {said}"]


def test_statements_that_agree_and_pairs_without_any(kb: Kb) -> None:
    conflict = kb.planned["version_pairs"][0]["conflicts"][0]
    conflict["outdated_statement"] = conflict["current_statement"]
    said = f"conflict 'window': both statements are the same: {NEW_SAYS!r}. State the conflict."
    assert kb.errors() == [f"version pairs: KB/structure.json: {said}"]
    kb.planned["version_pairs"][0]["conflicts"] = []
    said = "the pair returns-2024 / returns lists no conflict. List what the two disagree on."
    assert kb.errors() == [f"version pairs: KB/structure.json: {said}"]


def test_outdated_pages_without_a_pair_and_pairs_without_a_page(kb: Kb) -> None:
    kb.planned["version_pairs"][0]["current"] = "gone"
    errors = kb.errors()
    assert errors == [
        "version pairs: KB/structure.json: a version pair names 'gone', which is not planned. Use a page's id.",
        f"version pairs: KB/structure.json:{line_of(kb, 1)}: returns supersedes 'returns-2024', "
        "but is in no version pair. Add the pair.",
    ]


def test_a_pair_counts_once_where_ids_are_filenames(kb: Kb) -> None:
    old, new = sorted(kb.planned["pages"][:2], key=lambda page: page["status"], reverse=True)
    for each in (old, new):
        each["id"] = each["filename"]
    new["supersedes"] = old["id"]
    kb.planned["version_pairs"][0] |= {"outdated": old["id"], "current": new["id"]}
    assert [error for error in kb.errors() if "version pairs" in error] == []


def test_a_pair_of_a_page_with_itself(kb: Kb) -> None:
    kb.planned["version_pairs"][0]["outdated"] = "returns.md"
    said = "returns is in a version pair with itself. Name the page that replaced it."
    errors = kb.errors()
    assert f"version pairs: KB/structure.json:{line_of(kb, 1)}: {said}" in errors
    assert not any("2 version pairs" in error for error in errors)


def test_too_much_and_too_little_rot(kb: Kb) -> None:
    del kb.planned["rot"]
    said = "66.7% of the pages are in version pairs, planned are about 10% (5.0% to 15.0%)."
    advice = "Change the pairs, or plan another share with the key 'rot'."
    assert kb.errors() == [f"rot: KB/structure.json: {said} {advice}"]


SHIPPED = Path(__file__).parents[4] / "data" / "kb"


@pytest.mark.skipif(not (SHIPPED / "queries.jsonl").is_file(), reason="the queries are being written")
def test_the_shipped_data_is_sound() -> None:
    golden = SHIPPED.parents[1] / "test_retrieval_golden" / "golden.json"
    report = validate(SHIPPED, SHIPPED / "queries.jsonl", golden if golden.is_file() else None)
    assert [finding.line() for finding in report.findings if finding.level == "error"] == []
    assert [finding.line() for finding in report.findings if "no evidence" in finding.message] == []


# Near pages are those that comparing pair by pair finds, in the same order and with the same shares.


def pair_by_pair(words: dict[str, tuple[str, ...]]) -> Iterator[tuple[str, str, float]]:
    names, hashing, copies = list(words), Hashing(), set[int]()
    runs = [hashing.runs(" ".join(of_page)) for of_page in words.values()]
    for number, earlier in candidates(np.stack([signature(each) for each in runs]), 2).items():
        shares = {names[near]: resemblance(runs[near], runs[number]) for near in earlier if near not in copies}
        yield from ((near, names[number], share) for near, share in sorted(shares.items()) if share >= 0.3)
        if max(shares.values(), default=0.0) >= 0.9:
            copies.add(number)


def pages(seed: int) -> dict[str, tuple[str, ...]]:
    """Pages of shared paragraphs and of words of their own, some of them copies but for a word."""
    draw, found = random.Random(seed), list[tuple[str, ...]]()
    paragraphs = [tuple(f"w{draw.randrange(300)}" for _ in range(20)) for _ in range(6)]
    for number in range(40):
        if found and draw.random() < 0.3:
            found.append((*draw.choice(found), f"last{number}"))
        else:
            shared = [word for part in draw.sample(paragraphs, draw.randrange(4)) for word in part]
            found.append((*shared, *(f"w{draw.randrange(300)}" for _ in range(draw.randrange(60)))))
    # Not in the order of their names: near pages are told by name, copies by place.
    return {f"p{draw.random()}.md": words for words in found}


@pytest.mark.parametrize("seed", range(8))
def test_near_pages_are_those_of_each_pair(seed: int) -> None:
    words = pages(seed)
    found = list(validation._pairs(words))
    assert found == list(pair_by_pair(words))
    assert any(share >= 0.9 for *_, share in found)
    assert any(share < 0.9 for *_, share in found)
