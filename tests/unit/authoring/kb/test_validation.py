"""Each fault that the validator is for, planted alone, with its exact message."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rag_harness.authoring.kb.validation import validate
from rag_harness.core.errors import DataError
from tests.unit.data.kb_builder import Kb


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
        f"markdown: KB/shipping.md:11: '[x](my page.md)' is shown as text, it is no link. {advice}",
        f"markdown: KB/shipping.md:11: '[y][nowhere]' is shown as text, it is no link. {advice}",
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
