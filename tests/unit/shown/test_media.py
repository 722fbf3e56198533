"""Each medium by itself: nothing of the corpus acts in it, and ordinary texts look the same."""

from __future__ import annotations

import csv
import io
import json
import logging
import sys
from time import process_time

import pytest
from markdown_it import MarkdownIt

from rag_harness.shown import cells, html, logs, markdown, terminal
from tests.hostile import BATCHES, ORDINARY
from tests.unit.shown.active import in_csv, in_markdown, on_terminal, read_html, unseen


@pytest.mark.parametrize("texts", BATCHES)
def test_a_terminal_and_a_ci_job_obey_nothing(texts: list[str]) -> None:
    for text in texts:
        assert on_terminal(terminal.line(text), kept="\t") == []
        assert on_terminal(terminal.block(text)) == []
        assert terminal.line(terminal.line(text)) == terminal.line(text)


@pytest.mark.parametrize("texts", BATCHES)
def test_json_on_a_terminal_obeys_nothing_and_means_the_same(texts: list[str]) -> None:
    for text in texts:
        for shown in (json.dumps([text], ensure_ascii=False, indent=1), json.dumps([text])):
            safe = terminal.json_block(shown)
            assert on_terminal(safe) == []
            assert json.loads(safe) == [text]


@pytest.mark.parametrize("texts", BATCHES)
def test_a_pull_request_links_fetches_runs_and_notifies_nothing(texts: list[str]) -> None:
    for text in texts:
        plain, code = markdown.plain(text), markdown.code(text)
        fenced = "\n".join(markdown.code_block([text, text]))
        for page in (
            plain,
            f"# {plain}",
            f"- {plain}  \n  **{plain}**. {plain}",
            f"| {plain} | b |\n| --- | --- |\n| {plain} | b |\n\n<sub>{plain}</sub>",
            f"- {code} after",
            f"{fenced}\n\nafter",
        ):
            assert in_markdown(page) == [], page
        assert MarkdownIt().render(plain).count("<") == 2, "a paragraph and nothing else"
        assert MarkdownIt().enable("table").render(f"| a |\n| - |\n| {plain} |").count("<td") == 1
        assert MarkdownIt().render(fenced).count("<pre>") == 1


@pytest.mark.parametrize("texts", BATCHES)
def test_a_spreadsheet_runs_nothing(texts: list[str]) -> None:
    for text in texts:
        file = io.StringIO(newline="")
        csv.writer(file, lineterminator="\r\n").writerows([["a", cells.cell(text), "b"]] * 2)
        assert in_csv(file.getvalue()) == []
        assert [len(row) for row in csv.reader(io.StringIO(file.getvalue(), newline=""))] == [3, 3]


@pytest.mark.parametrize("texts", BATCHES)
def test_a_log_has_as_many_lines_as_records(texts: list[str]) -> None:
    for text in texts:
        stream = io.StringIO()
        handler = logging.StreamHandler(stream)
        handler.setFormatter(logs.OneLine("%(levelname)s %(message)s"))
        logger = logging.Logger("own")
        logger.addHandler(handler)
        logger.error("said %s", text)
        try:
            raise ValueError(text)
        except ValueError:
            logger.error(text, exc_info=sys.exc_info())
        said = stream.getvalue()
        assert on_terminal(said) == []
        assert [line.startswith("ERROR ") for line in said.splitlines() if not line.startswith("    ")] == [True, True]


@pytest.mark.parametrize("texts", BATCHES)
def test_text_of_a_page_turns_nothing(texts: list[str]) -> None:
    for text in texts:
        seen = html.visible(text)
        assert unseen(seen, "\t\n\r") == []


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_texts_look_the_same_everywhere(text: str) -> None:
    assert terminal.line(text) == terminal.block(text) == html.visible(text) == cells.cell(text) == text
    rendered = MarkdownIt().render(markdown.plain(text))
    assert read_html(rendered).texts[0].replace("\u2060", "") == text
    assert markdown.code(text) == f"`{text}`"


def test_line_breaks_are_kept_where_they_are_ours() -> None:
    assert terminal.line("a\nb") == r"a\nb"
    assert terminal.block("a\r\nb\n::error::c") == "a\nb\n\\::error::c"


def test_a_formula_that_has_an_apostrophe_gets_another() -> None:
    assert [cells.cell(text) for text in ("=1", "'=1", "'tis", "- a\n- b", "x;=1")] == [
        "'=1", "''=1", "''tis", "'- a\n- b", "x;'=1"
    ]  # fmt: skip


def test_what_is_said_goes_where_it_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.say("a\x1b", "b\nc")
    terminal.say(to=sys.stderr)
    terminal.say_block("d\ne\x07", to=sys.stderr)
    terminal.say_json('{"a": "\x9b"}')
    terminal.redraw("f\x1b", sys.stderr)
    assert capsys.readouterr() == ('a\\x1b\nb\\nc\n{"a": "\\u009b"}\n', "d\ne\\x07\n\r\x1b[Kf\\x1b")


@pytest.mark.parametrize(
    "unit", [*"\n\t \r;#:@-=`|\\'\x1b\u200d\U0001f3f4", "a:", "##a", "-a;", "\n ", ";\t", "deadbeef", "GHSA-"]
)
def test_a_long_text_takes_no_longer_a_letter_than_a_short_one(unit: str) -> None:
    """Two hundred kilobytes, the longest answer: a pattern that looks at each letter twice would take minutes."""
    text = unit * (200_000 // len(unit))
    began = process_time()
    shows = (
        terminal.line,
        terminal.block,
        terminal.json_block,
        markdown.plain,
        markdown.code,
        cells.cell,
        html.visible,
    )
    for show in (*shows, lambda it: [*markdown.code_block([it])]):
        show(text)
    assert process_time() - began < 10
