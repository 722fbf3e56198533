"""What is said of answers whose figures do not show it, and when nothing is."""

from __future__ import annotations

from typing import Any

import pytest

from rag_harness.pipelines.endpoint.answer import BY_ID, NO_TEXT, OTHER_TEXT
from rag_harness.tables.answer_warnings import doubts
from tests.unit.tables.standing_tables import kinds, table

N = 20
LABELS = kinds(any=N)


def said(*, foreign: Any = (), unknown_pages: Any = (), **totals: Any) -> list[str]:
    one = table(LABELS)
    one.foreign, one.unknown_pages = foreign, unknown_pages
    for name, value in {"rows": N, "retrieves": True, "depth": 3, **totals}.items():
        setattr(one.totals, name, value)
    return [*doubts({"svc": one})]


@pytest.mark.parametrize(("evasive", "errors", "is_said"), [(0, 0, False), (1, 0, False), (2, 0, True), (1, 10, True)])
def test_refusals_that_are_not_counted_are_told_above_one_in_twenty(evasive: int, errors: int, is_said: bool) -> None:
    found = said(evasive=evasive, errors=errors)
    assert [text.startswith(f"svc: {evasive} of {N - errors} answers read like refusals") for text in found] == (
        [True] if is_said else []
    )


@pytest.mark.parametrize(
    ("totals", "is_said"),
    [
        ({"depth": 0}, True),
        ({"depth": 1}, False),
        ({"depth": 0, "retrieves": False}, False),
        ({"depth": 0, "errors": N}, False),
    ],
)
def test_a_search_that_finds_nothing_is_told(totals: dict[str, Any], is_said: bool) -> None:
    assert (said(**totals) == [f"svc: none of {N} answers came with a context"]) is is_said


def test_contexts_without_the_words_of_their_page_are_told() -> None:
    assert said(placed={BY_ID: 8}) == []
    (silent,) = said(placed={BY_ID: 8, NO_TEXT: 1, OTHER_TEXT: 2})
    assert silent.startswith("svc: of 11 contexts 1 without text. Recall ")
    assert said(foreign=(0, 9)) == []
    (others,) = said(foreign=(2, 11))
    assert others.startswith("svc: 2 of 11 contexts with a text that is not in the page that they name. Recall ")


def test_names_that_fit_no_page_are_told_beside_those_of_pages() -> None:
    (found,) = said(unknown_pages=(("doc-1", "doc-2"), ("fees.md",)))
    assert found.startswith("svc: no context names a page of the documents, so recall ")
    assert "It says 'doc-1', 'doc-2'; pages are 'fees.md'." in found
