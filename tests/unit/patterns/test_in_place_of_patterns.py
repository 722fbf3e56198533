"""Code that stands where a pattern was: it finds what the pattern found, in a time that grows with the text alone."""

from __future__ import annotations

import re
import time

from hypothesis import given
from hypothesis import strategies as st

from rag_harness.data.loaders.html_pages import _without_comments
from rag_harness.models.prompts import json_of

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


@given(st.text("/*a ", max_size=20))
def test_comments_of_a_style_sheet_are_taken_out_as_the_pattern_did(text: str) -> None:
    assert _without_comments(text) == _COMMENT.sub("", text)


def test_a_model_that_loops_in_white_space_is_read_at_once() -> None:
    begin = time.thread_time()
    for text in ("```json" + "\n" * 200_000, "```json" + "\n" * 200_000 + "x", "```" * 70_000, "/* " * 70_000):
        json_of(text)
        json_of("{" + text)
        _without_comments(text)
    assert time.thread_time() - begin < 1  # a second is a thousand times what it takes; the pattern took minutes
