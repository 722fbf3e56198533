"""The page's script: small, and without what only its readers need."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

from rag_harness.core.escaping import page_script
from rag_harness.page.html import html_of
from rag_harness.page.payload import payload_of

MOST = 43_500
"""Bytes. One in ten is of conversations, which a page without any has, too: two scripts would be two pages to test."""


def script() -> str:
    page = html_of("title", [], payload_of([]))
    return page.rsplit("<script>", 1)[1].split("</script>", 1)[0]


def test_it_is_small_and_says_nothing_to_readers() -> None:
    lines = script().splitlines()
    assert len(script().encode()) < MOST
    assert not [line for line in lines if line.startswith(("//", "/**", "\t")) or not line]


def test_the_page_about_the_report_says_how_much_of_a_chat_is_in_sight() -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "read-a-report.md").read_text(encoding="utf-8")
    most, last = (re.findall(rf"\b{name} = (\d+)", script()) for name in ("MOST_TURNS", "LAST_TURNS"))
    assert f"more than {most[0]} earlier turns, the last {last[0]} are shown" in page


def test_no_text_of_it_spans_lines() -> None:
    """A text over several lines would lose its indentation."""
    assets = files("rag_harness.page").joinpath("assets")
    source = page_script(
        "".join(
            assets.joinpath(name).read_text(encoding="utf-8") for name in ("conversation.js", "steps.js", "page.js")
        )
    )
    assert [line for line in source.splitlines() if line.count("`") % 2] == []
