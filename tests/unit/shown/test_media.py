"""Each medium by itself: nothing of the corpus acts in it, and ordinary texts look the same."""

from __future__ import annotations

import csv
import io
import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from time import process_time
from typing import Any

import pytest
from markdown_it import MarkdownIt

from rag_harness.core import escaping, log
from tests.hostile import CORPUS, ORDINARY
from tests.unit.shown.active import in_csv, in_markdown, on_terminal, read_html, unseen


def none(faults: Iterable[str]) -> None:
    """Fail with each fault, where there is one."""
    found = [*faults]
    assert not found, "\n".join(found)


def test_a_terminal_and_a_ci_job_obey_nothing() -> None:
    none(fault for text in CORPUS for fault in on_terminal(escaping.terminal_line(text), kept="\t"))
    none(fault for text in CORPUS for fault in on_terminal(escaping.terminal_block(text)))
    none(
        repr(text)
        for text in CORPUS
        if escaping.terminal_line(escaping.terminal_line(text)) != escaping.terminal_line(text)
    )


def test_json_on_a_terminal_obeys_nothing_and_means_the_same() -> None:
    for form in ({"ensure_ascii": False, "indent": 1}, dict[str, Any]()):
        safe = {text: escaping.json_block(json.dumps([text], **form)) for text in CORPUS}
        none(fault for shown in safe.values() for fault in on_terminal(shown))
        none(f"{text!r}: {shown!r}" for text, shown in safe.items() if json.loads(shown) != [text])


def test_a_pull_request_links_fetches_runs_and_notifies_nothing() -> None:
    none(fault for text in CORPUS for page in pages_with(text) for fault in in_markdown(page))
    paragraph, table = MarkdownIt(), MarkdownIt().enable("table")
    for text in CORPUS:
        plain, fenced = escaping.markdown_text(text), "\n".join(escaping.markdown_code_block([text, text]))
        assert paragraph.render(plain).count("<") == 2, f"more than a paragraph: {text!r}"
        assert table.render(f"| a |\n| - |\n| {plain} |").count("<td") == 1, f"more than a cell: {text!r}"
        assert paragraph.render(fenced).count("<pre>") == 1, f"more than a block of code: {text!r}"


def pages_with(text: str) -> Iterator[str]:
    plain, code, fenced = (
        escaping.markdown_text(text),
        escaping.markdown_code(text),
        "\n".join(escaping.markdown_code_block([text, text])),
    )
    yield plain
    yield f"# {plain}"
    yield f"- {plain}  \n  **{plain}**. {plain}"
    yield f"| {plain} | b |\n| --- | --- |\n| {plain} | b |\n\n<sub>{plain}</sub>"
    yield f"- {code} after"
    yield f"{fenced}\n\nafter"


def test_a_spreadsheet_runs_nothing() -> None:
    for text in CORPUS:
        file = io.StringIO(newline="")
        csv.writer(file, lineterminator="\r\n").writerows([["a", escaping.csv_cell(text), "b"]] * 2)
        none(in_csv(file.getvalue()))
        rows = [*csv.reader(io.StringIO(file.getvalue(), newline=""))]
        assert [len(row) for row in rows] == [3, 3], f"{text!r}: {rows}"


def test_a_log_has_as_many_lines_as_records() -> None:
    for text in CORPUS:
        stream = io.StringIO()
        handler = logging.StreamHandler(stream)
        handler.setFormatter(log.OneLine("%(levelname)s %(message)s"))
        logger = logging.Logger("own")
        logger.addHandler(handler)
        logger.error("said %s", text)
        try:
            raise ValueError(text)
        except ValueError:
            logger.error(text, exc_info=sys.exc_info())
        said = stream.getvalue()
        none(on_terminal(said))
        begins = [line.startswith("ERROR ") for line in said.splitlines() if not line.startswith("    ")]
        assert begins == [True, True], said


def test_text_of_a_page_turns_nothing() -> None:
    none(fault for text in CORPUS for fault in unseen(escaping.html_text(text), "\t\n\r"))


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_texts_look_the_same_everywhere(text: str) -> None:
    assert (
        escaping.terminal_line(text)
        == escaping.terminal_block(text)
        == escaping.html_text(text)
        == escaping.csv_cell(text)
        == text
    )
    rendered = MarkdownIt().render(escaping.markdown_text(text))
    assert read_html(rendered).texts[0].replace("\u2060", "") == text
    assert escaping.markdown_code(text) == f"`{text}`"


def test_line_breaks_are_kept_where_they_are_ours() -> None:
    assert escaping.terminal_line("a\nb") == r"a\nb"
    assert escaping.terminal_block("a\r\nb\n::error::c") == "a\nb\n\\::error::c"


def test_a_formula_that_has_an_apostrophe_gets_another() -> None:
    assert [escaping.csv_cell(text) for text in ("=1", "'=1", "'tis", "- a\n- b", "x;=1")] == [
        "'=1", "''=1", "''tis", "'- a\n- b", "x;'=1"
    ]  # fmt: skip


def test_what_is_said_goes_where_it_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    escaping.say("a\x1b", "b\nc")
    escaping.say(to=sys.stderr)
    escaping.say_block("d\ne\x07", to=sys.stderr)
    escaping.say_json('{"a": "\x9b"}')
    escaping.redraw("f\x1b", sys.stderr)
    assert capsys.readouterr() == ('a\\x1b\nb\\nc\n{"a": "\\u009b"}\n', "d\ne\\x07\n\r\x1b[Kf\\x1b")


UNITS = (*"\n\t \r;#:@-=`|\\'\x1b\u200d\U0001f3f4", "a:", "##a", "-a;", "\n ", ";\t", "deadbeef", "GHSA-")


def seconds(show: Callable[[str], object], text: str) -> float:
    began = process_time()
    show(text)
    return process_time() - began


def test_a_long_text_takes_no_longer_a_letter_than_a_short_one() -> None:
    """The longest answer has 200 kilobytes. A pattern that looks at each letter twice takes 4 s for 40."""
    shows: tuple[Callable[[str], object], ...] = (
        escaping.terminal_line,
        escaping.terminal_block,
        escaping.json_block,
        escaping.markdown_text,
        escaping.markdown_code,
        lambda text: [*escaping.markdown_code_block([text])],
        escaping.csv_cell,
        escaping.html_text,
    )
    took = {unit: sum(seconds(show, unit * (40_000 // len(unit))) for show in shows) for unit in UNITS}
    none(f"{unit!r}: {each:.1f} s" for unit, each in took.items() if each >= 2)
