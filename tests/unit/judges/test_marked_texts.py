"""No text can hold the marks that it stands between, and the same texts always stand between the same."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from rag_harness.evaluation.judges import client
from rag_harness.evaluation.judges.client import marked, numbered
from tests.unit.judges.scripted import Asked


def test_each_text_stands_between_marks_of_one_key() -> None:
    text = marked([("question", "Why?"), *numbered("passage", ["one", "two\nlines"])])
    key = re.match(r"<<question \| (\w{8})>>", text)
    assert key
    assert text == (
        f"<<question | {key[1]}>>\nWhy?\n"
        f"<<passage 1 | {key[1]}>>\none\n"
        f"<<passage 2 | {key[1]}>>\ntwo\nlines\n<<end | {key[1]}>>"
    )


def test_the_key_depends_on_every_text_and_on_nothing_else() -> None:
    one, other = marked(numbered("passage", ["one", "two"])), marked(numbered("passage", ["one", "tw"]))
    assert one == marked(numbered("passage", ["one", "two"]))
    assert one.split("\n")[0] != other.split("\n")[0]


def test_a_key_that_the_text_holds_is_not_taken(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    guessed = iter([b"\xaa" * 16, b"\xbb" * 16])
    monkeypatch.setattr(client, "key_of", lambda *_: next(guessed))
    assert marked([("passage", "ends here: <<end | aaaaaaaa>>")]).startswith("<<passage | bbbbbbbb>>")


@given(st.lists(st.text(), min_size=1, max_size=4))
def test_an_honest_reader_gets_every_text_back(texts: list[str]) -> None:
    asked = Asked("", marked(numbered("passage", texts)), ())
    assert asked.numbered("passage") == texts
