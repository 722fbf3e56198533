"""A terminal or a pipe whose charset lacks a letter gets an escape, and no error."""

from __future__ import annotations

from io import BytesIO, TextIOWrapper

import pytest

from rag_harness.core.escaping import say


@pytest.mark.parametrize(
    ("charset", "shown"),
    [("utf-8", "★ ≥ 0.8, für"), ("cp1252", r"\u2605 \u2265 0.8, für"), ("ascii", r"\u2605 \u2265 0.8, f\xfcr")],
)
def test_a_letter_that_the_charset_lacks_is_an_escape(charset: str, shown: str) -> None:
    with TextIOWrapper(BytesIO(), encoding=charset) as pipe:
        say("★ ≥ 0.8, für", to=pipe)
        pipe.seek(0)
        assert pipe.read() == f"{shown}\n"
