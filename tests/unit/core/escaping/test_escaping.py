"""Each medium by itself: nothing of the corpus acts in it, and ordinary texts look the same."""

from __future__ import annotations

import csv
import io
import json
import logging
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib.resources import files
from io import BytesIO, TextIOWrapper
from typing import Any

import pytest
from markdown_it import MarkdownIt

from rag_harness.core import escaping, log
from rag_harness.core.escaping import escaped, page_policy, page_script, page_style, say
from tests.effort import spent
from tests.hostile import CORPUS, ORDINARY
from tests.unit.core.escaping.active import in_csv, in_markdown, on_terminal, read_html, unseen

# Each medium by itself: nothing of the corpus acts in it, and ordinary texts look the same.


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
    took = {unit: sum(spent(partial(show, unit * (40_000 // len(unit)))) for show in shows) for unit in UNITS}
    none(f"{unit!r}: {each:.1f} s" for unit, each in took.items() if each >= 2)


# Characters that nobody sees are written out, and no others are touched.

_SEEN = {0x600, 0x601, 0x602, 0x603, 0x604, 0x605, 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
_EGYPTIAN = range(0x13430, 0x13440)
"""Numbers and ends of verses of Arabic, and joints of hieroglyphs: of category Cf, and seen."""


def test_the_corpus_is_large() -> None:
    assert len(CORPUS) >= 400


def test_every_character_that_steers_is_written_out() -> None:
    left = [
        hex(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        and code not in _SEEN
        and code not in _EGYPTIAN
        and chr(code) in escaped(f"a{chr(code)}b")
    ]
    assert left == []


def test_letters_signs_and_marks_are_left_alone() -> None:
    touched = [
        hex(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code))[0] in "LMNPS"
        and code not in (0x115F, 0x1160, 0x3164, 0xFFA0)
        and code not in range(0xE0100, 0xE01F0)
        and escaped(chr(code)) != chr(code)
    ]
    assert touched == []


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_texts_look_the_same(text: str) -> None:
    assert escaped(text) == text


def test_escapes_are_those_of_python() -> None:
    assert escaped("a\x1b[2J\x9b\u202e\U000e0041\n\ud800") == r"a\x1b[2J\x9b\u202e\U000e0041\n\ud800"
    assert escaped("a\nb\tc", kept="\n\t") == "a\nb\tc"


def test_a_joiner_is_kept_between_what_it_joins_alone() -> None:
    assert escaped("👩\u200d👧") == "👩\u200d👧"
    assert escaped("pay\u200dpal") == r"pay\u200dpal"
    assert escaped("👩\u200d\u200d👧") == r"👩\u200d\u200d👧"
    assert escaped("a\U000e0067\U000e007f") == r"a\U000e0067\U000e007f"


def test_what_was_written_out_stays_as_it_is() -> None:
    again = [text for text in CORPUS if escaped(escaped(text)) != escaped(text)]
    assert again == []
    assert [fault for text in CORPUS for fault in unseen(escaped(text))] == []


# What all pages begin with: one file of styles and one of script functions.

_STYLES = {
    "rag_harness.page": ("assets/page.css", "assets/trials.css"),
    "rag_harness.authoring.questions.review": ("assets/review.css",),
    "rag_harness.service": ("page/page.css",),
}
_SCRIPTS = {
    "rag_harness.page": "assets/page.js",
    "rag_harness.authoring.questions.review": "assets/review.js",
    "rag_harness.service": "page/page.js",
}
packages = pytest.mark.parametrize("package", _STYLES)


def text_of(package: str, *names: str) -> str:
    return "".join(files(package).joinpath(name).read_text(encoding="utf-8") for name in names)


@packages
def test_a_page_has_the_colours_of_all_pages_and_none_of_its_own(package: str) -> None:
    assert len(re.findall(r":root \{.*?--bg: ", page_style(""), re.S)) == 2
    assert not re.search(
        r"--(?:bg|fg|panel|muted|accent|text|mono): ", text_of(package, *_STYLES[package]).split("@media print")[0]
    )


@packages
def test_a_page_makes_its_elements_by_the_function_of_all_pages(package: str) -> None:
    script = text_of(package, _SCRIPTS[package])
    assert "createElement(" not in script
    assert re.search(r"^const el = elements\(.+\);$", script, re.M)


def test_the_script_of_a_page_is_strict_from_its_first_line() -> None:
    assert page_script("go();").startswith('"use strict";\n')
    assert page_script("go();").endswith("\ngo();")


def test_what_all_pages_share_overrides_what_stands_before_it() -> None:
    assert page_style("b {}", before="a {}").startswith("a {}")
    assert page_style("b {}", before="a {}").endswith("b {}")


def test_a_policy_lets_in_what_has_these_digests() -> None:
    said = page_policy("", "x")
    assert "style-src 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='" in said
    assert "script-src 'sha256-LXEWQrcmsEQBYnyp+6wy9chTD7GQPMTbAiWHF5IaSIE='" in said


# A terminal or a pipe whose charset lacks a letter gets an escape, and no error.


@pytest.mark.parametrize(
    ("charset", "shown"),
    [("utf-8", "★ ≥ 0.8, für"), ("cp1252", r"\u2605 \u2265 0.8, für"), ("ascii", r"\u2605 \u2265 0.8, f\xfcr")],
)
def test_a_letter_that_the_charset_lacks_is_an_escape(charset: str, shown: str) -> None:
    with TextIOWrapper(BytesIO(), encoding=charset) as pipe:
        say("★ ≥ 0.8, für", to=pipe)
        pipe.seek(0)
        assert pipe.read() == f"{shown}\n"
