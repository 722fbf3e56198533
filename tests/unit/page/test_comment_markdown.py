"""The report for a pull request: GitHub's Markdown, nothing that notifies or escapes, never too long."""

from __future__ import annotations

from markdown_it import MarkdownIt

from rag_harness.page.comment_markdown import markdown_of
from rag_harness.page.content import (
    Cell,
    Code,
    Facts,
    FailedTrial,
    Failures,
    Figure,
    More,
    Prose,
    Section,
    Table,
    word_cells,
)

HOSTILE = "<img src=x onerror=alert(1)> | `a` *b* [c](javascript:1) @octocat #12\n# head"


def rendered(*blocks: object, most: int = 60_000) -> str:
    """Return the HTML that a reader of GitHub's dialect makes of a report of these blocks."""
    text = markdown_of("Title", [Section("one", "One", blocks)], most)  # type: ignore[arg-type]
    return str(MarkdownIt("commonmark").enable("table").render(text))


def test_a_table_is_a_table_with_its_signs() -> None:
    row = [Cell("passed", "good"), Cell("0.5", is_best=True), Cell("0.1", "bad"), Cell("?", "unsure")]
    html = rendered(Table("t", ["state", "a", "b", "c"], [row], caption="Gates", notes=["n=3"]))
    assert "<td>✅ passed</td>\n<td><strong>0.5</strong> ★</td>\n<td>❌ 0.1</td>\n<td>❔ ?</td>" in html
    assert "Gates" in html
    assert "n=3" in html


def test_a_column_of_drawings_alone_is_left_out() -> None:
    html = rendered(Table("t", ["a", "drawn", "b"], [[Cell("1"), Cell("", drawing="<svg/>"), Cell("2")]]))
    assert "drawn" not in html
    assert html.count("<td>") == 2


def test_what_others_wrote_stays_text() -> None:
    failure = FailedTrial("e3-q1", HOSTILE, "kind", HOSTILE, HOSTILE, HOSTILE)
    html = rendered(
        Table("t", [HOSTILE], [word_cells(HOSTILE)], caption=HOSTILE, notes=[HOSTILE]),
        Prose(HOSTILE, "bad"),
        Facts([(HOSTILE, HOSTILE)]),
        Failures("e3", [failure], 9),
        Code(["pytest", "``` not the end"]),
    )
    assert "<img" not in html
    assert "<a " not in html
    assert "<em>" not in html
    assert html.count("<h1>") == 1
    assert html.count("<td>") == 1
    assert "@octocat" not in html  # a mention would notify somebody


def test_a_measure_at_a_cutoff_is_no_mention() -> None:
    assert "recall@5" in rendered(Prose("recall@5"))


def test_what_is_folded_is_read_as_markdown() -> None:
    table = Table("t", ["a"], [word_cells("1")])
    html = rendered(More("Inside", [table]), Figure("Drawn", ["<svg/>"], table))
    assert html.count("<details>") == html.count("</details>") == 2
    assert html.count("<table>") == 2
    assert "<svg" not in html


def test_it_is_never_longer_than_a_comment_may_be_and_says_what_is_left_out() -> None:
    blocks = [Prose("é" * 500) for _ in range(100)]
    text = markdown_of("Title", [Section("a", "First", blocks), Section("b", "Second", blocks)], 20_000)
    assert len(text.encode()) <= 20_000
    assert "*Cut short: First, Second." in text
    assert text.count("é") > 9000 / 2


def test_nothing_is_left_out_that_fits() -> None:
    assert "Cut short" not in markdown_of("Title", [Section("a", "First", [Prose("a")])])
