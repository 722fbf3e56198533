from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.text.shingles import TextOrigins
from rag_harness.core.types import UNMARKED, Document
from rag_harness.pipelines.endpoint.answer import BY_ID, BY_NAME, BY_NOTHING, NO_TEXT, OTHER_TEXT, Context, Placing
from rag_harness.records.document_ranking import document_of

RETURNS = """# Returns

You can return a **lamp** within [45 days](policy.md) of delivery.

| item | days |
|---|---|
| lamp | 45 |

We refund the price within 5 working days, shipping excluded.
"""
SHIPPING = "# Shipping\n\nExpress delivery costs €9.90 in Zone 1.\n\nThe same sentence stands on two of these pages.\n"
WARRANTY = "# Warranty\n\nThe warranty lasts 2 years.\n\nThe same sentence stands on two of these pages.\n"


def placing(*more: str) -> Placing:
    pages = {"returns.md": RETURNS, "eu/shipping.md": SHIPPING, "warranty.md": WARRANTY}
    documents = [Document(name, text, name) for name, text in [*pages.items(), *((name, "") for name in more)]]
    return Placing(lambda: documents, "my_service")


def found(context: Context, *more: str) -> tuple[str, str]:
    placed = placing(*more).place([context])
    (how,) = placed.how
    return placed.hits[0].chunk.doc_id, how


@pytest.mark.parametrize(
    ("context", "document"),
    [
        (Context("x", document="returns.md"), "returns.md"),
        (Context("x", document="eu/shipping.md"), "eu/shipping.md"),
        (Context("x", document="/srv/kb/eu/shipping.md"), "eu/shipping.md"),
        (Context("x", document="C:\\kb\\eu\\shipping.md"), "eu/shipping.md"),
        (Context("x", document="C:\\kb\\returns.md"), "returns.md"),
        (Context("x", document="/shipping.md"), "eu/shipping.md"),
        (Context("x", document="/srv/eu/shipping.html"), "eu/shipping.md"),
        (Context("x", document="shipping"), "eu/shipping.md"),
        (Context("x", id="returns.md"), "returns.md"),
        (Context("x", id="returns.md#chunk_3"), "returns.md"),
        (Context("x", document="unknown", id="returns.md#3"), "returns.md"),
    ],
)
def test_a_known_name_is_the_document(context: Context, document: str) -> None:
    doc_id, how = found(context)
    assert (doc_id, how == BY_NOTHING) == (document, False)


@pytest.mark.parametrize(
    ("context", "placed"),
    [
        (Context("x", document="any/page"), ("any/page", BY_NAME)),
        (Context("x", id="page#3"), ("page", BY_NAME)),
        (Context("x", id="17", others=("page", "Title")), ("page", BY_NAME)),
        (Context("x", others=("0b0e7b0c-5a3f-4a5e-9f57-2b1f6c1b7a10", "page")), ("page", BY_NAME)),
        (Context("", document="page"), ("page", NO_TEXT)),
        (Context("x", id="17"), ("", BY_NOTHING)),
        (Context("x", id="#3"), ("", BY_NOTHING)),
        (Context("x", others=("0b0e7b0c-5a3f-4a5e-9f57-2b1f6c1b7a10",)), ("", BY_NOTHING)),
        (Context("You can return a lamp"), ("", BY_NOTHING)),
    ],
)
def test_without_documents_a_name_is_taken_as_told(context: Context, placed: tuple[str, str]) -> None:
    found = Placing(None, "my_service").place([context])
    assert (found.hits[0].chunk.doc_id, *found.how) == placed
    assert UNMARKED not in found.hits[0].chunk.metadata.values()


@pytest.mark.parametrize("text", ["", " \n", "…"])
def test_a_named_document_without_text_is_told_apart(text: str) -> None:
    assert found(Context(text, document="returns.md")) == ("returns.md", NO_TEXT)


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("Express delivery costs 9.90 in Zone 1", OTHER_TEXT),
        ("The same sentence stands on two of these pages", OTHER_TEXT),
        ("Returned within 45 days of delivery, or not", OTHER_TEXT),
        ("n/a", OTHER_TEXT),
        ("Express", OTHER_TEXT),
        ("# Returns", BY_ID),
        ("a LAMP within 45 days", BY_ID),
        ("In short: we refund the price within 5 working days, but no shipping.", BY_ID),
        ("RETURNS you can return a LAMP within 45 days of delivery", BY_ID),
        (RETURNS, BY_ID),
    ],
)
def test_a_named_document_that_does_not_say_the_text_is_told_apart(text: str, how: str) -> None:
    assert found(Context(text, document="returns.md")) == ("returns.md", how)


def test_a_number_with_a_point_is_no_file_with_a_suffix() -> None:
    assert found(Context("x", id="3.12"), "3.md") == ("", "nothing")
    assert found(Context("x", document="3.html"), "3.md") == ("3.md", OTHER_TEXT)


def test_a_name_that_two_documents_have_is_none() -> None:
    assert found(Context("x", document="shipping.md"), "us/shipping.md") == ("", "nothing")
    assert found(Context("x", document="us/shipping.md"), "us/shipping.md") == ("us/shipping.md", OTHER_TEXT)


@pytest.mark.parametrize(
    ("name", "more", "document"),
    [
        ("us/shipping.md", (), ""),  # only eu has it
        ("/srv/kb/us/shipping.md", (), ""),
        ("C:\\kb\\shipping.md", (), ""),  # a folder kb may be the root, and then its shipping.md is not that of eu
        ("us/shipping", (), ""),
        ("us/shipping.html", (), ""),
        ("us/returns.md", ("eu/returns.md",), ""),  # two have the name, and neither lies in us
        ("/srv/kb/returns.md", ("eu/returns.md",), ""),
        ("/srv/kb/eu/returns.md", ("eu/returns.md",), "eu/returns.md"),
        ("returns.md", ("eu/returns.md",), "returns.md"),  # its very id
        ("/srv/eu/shipping.md", ("us/shipping.md",), "eu/shipping.md"),
        ("eu/zones.md", ("shop/eu/zones.md", "shop/us/zones.md"), "shop/eu/zones.md"),
        ("eu/zones.md", ("shop/eu/zones.md", "old/eu/zones.md"), ""),
        ("zones", ("eu/zones.md", "eu/zones.txt"), ""),
        ("/kb/eu/zones", ("eu/zones.md", "eu/zones"), "eu/zones"),
        ("a/" * 40_000 + "eu/shipping.md", (), "eu/shipping.md"),
    ],
)
def test_a_name_in_another_folder_is_another_document(name: str, more: tuple[str, ...], document: str) -> None:
    assert found(Context("x", document=name), *more)[0] == document


@pytest.mark.parametrize(
    ("text", "document"),
    [
        ("You can return a lamp within 45 days of delivery.", "returns.md"),
        ("you CAN return\na   lamp — within 45 days of delivery", "returns.md"),
        ("<p>You can return a lamp within 45 days of <b>delivery</b></p>", "returns.md"),
        ("item days\nlamp 45\nWe refund the price within 5 working days", "returns.md"),
        ("Express delivery costs €9.90", "eu/shipping.md"),
        ("Our policy. You can return a lamp within 45 days of delivery. We refund: see", ""),
        ("Policy: We refund the price within 5 working days, shipping excluded.", "returns.md"),
        ("The same sentence stands on two of these pages.", ""),
        ("45 days", ""),
        ("", ""),
        ("Nothing that any page of these has ever said to anybody.", ""),
        ("the price refund we within working days 5 shipping excluded", ""),
    ],
)
def test_a_text_is_found_by_its_words(text: str, document: str) -> None:
    assert found(Context(text)) == (document, "text" if document else "nothing")


def test_chunks_are_named_after_their_documents_and_once_each() -> None:
    contexts = [Context("x", "7", "returns.md"), Context("y", "7", "returns.md"), Context("z", "a#b"), Context("w")]
    ids = [hit.chunk.chunk_id for hit in placing().place(contexts).hits]
    assert ids[:3] == ["returns.md#7", "returns.md#7-2", "my_service:a.b"]
    assert [document_of(chunk_id) for chunk_id in ids] == ["returns.md", "returns.md", *ids[2:]]
    assert len(set(ids)) == 4


def test_how_many_were_found_by_what_is_counted() -> None:
    contexts = [Context("x", document="returns.md"), Context("Express delivery costs €9.90"), Context("no")]
    assert placing().place(contexts).how == {"id": 1, "text": 1, "nothing": 1}


def test_scores_are_the_services_or_fall_with_the_rank() -> None:
    hits = placing().place([Context("a", score=0.25), Context("b")]).hits
    assert [(hit.score, hit.rank) for hit in hits] == [(0.25, 1), (0.5, 2)]


def test_a_text_that_has_lost_its_marks_says_so() -> None:
    hits = placing().place(
        [Context("We refund the price within 5 working days"), Context("You can return a lamp within")]
    )
    assert [hit.chunk.metadata.get("markup") for hit in hits.hits] == [None, UNMARKED]


def test_without_documents_nothing_is_found() -> None:
    assert Placing(tuple, "a").place([Context("Express delivery costs €9.90", document="a.md")]).how == {"nothing": 1}
    assert Placing(tuple, "a").place([Context("x", document="a/" * 40_000)]).how == {"nothing": 1}


_WORDS = [f"word{n}" for n in range(200)]


@given(st.integers(0, 2**32), st.integers(6, 40))
def test_every_passage_is_found_in_its_own_document(seed: int, length: int) -> None:
    chance = random.Random(seed)
    texts = [" ".join(chance.choices(_WORDS, k=120)) for _ in range(8)]
    at = chance.randrange(8)
    start = chance.randrange(120 - length)
    passage = " ".join(texts[at].split()[start : start + length])
    assert TextOrigins(texts).find(passage.upper().replace(" ", "\n* ")) == at
