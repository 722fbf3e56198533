"""Citations that open: the quote is always the document's own words, and the claim what stands before the mark."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.protocols import Experiment
from rag_harness.core.registry import resolve
from rag_harness.core.text.sentences import stripped
from rag_harness.core.text.terms import terms
from rag_harness.core.types import UNMARKED, Chunk, Document, Hit, PipelineOutput, Query
from rag_harness.pipelines.experiments import experiment
from rag_harness.retrieval.chunking import ChunkingSettings
from rag_harness.retrieval.chunking.markdown import unmarked
from rag_harness.service.citations import Citation, cited, marks_of, page_of, url_of
from rag_harness.studies.reliability_verification import claims_agreement
from tests.unit.retrieval.chunking.test_chunking import Words
from tests.unit.service.shipped import shipped_parts

PAGE = """# Returns

You can return a lamp within **45 days**. Boots are different.

| Service | Price | Time |
|---|---|---|
| Trolley van | €25 | 3 hours |
| Missed collection | €35 | 2 hours |

Two exceptions:

- Pennock Quay is closed on Mondays, e.g. 4 May.
- The garden yard closes one hour before
  the shop, on every day of the week.
"""
DOCUMENT = Document("returns.md", PAGE, "Returns", {"url": "https://shop.example/returns"})


def chunk_of(document: Document, start: int = 0, end: int | None = None) -> Chunk:
    end = len(document.text) if end is None else end
    return Chunk("c", document.doc_id, document.text[start:end], start, end, ("Shop", "Returns"))


def hit(chunk: Chunk) -> Hit:
    return Hit(chunk, 1.0, 1)


def ask(answer: str, *chunks: Chunk, document: Document = DOCUMENT, numbers: tuple[int, ...] = ()) -> list[Citation]:
    context = [hit(chunk) for chunk in chunks or (chunk_of(document),)]
    found = cited(answer, numbers or range(1, len(context) + 1), context, {document.doc_id: document}.__getitem__)
    assert all(document.text[one.start : one.end] == one.quote for one in found)
    return list(found)


def claims(answer: str, *chunks: Chunk) -> list[tuple[int, str]]:
    return [(one.source, answer[one.answer_start : one.answer_end]) for one in ask(answer, *chunks)]


TWO = (chunk_of(DOCUMENT), chunk_of(DOCUMENT))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("A lamp goes back [Source 1]. Boots do not [Source 2].", [(1, "A lamp goes back"), (2, "Boots do not")]),
        ("A lamp goes back. [Source 1] Boots do not. [Source 2]", [(1, "A lamp goes back."), (2, "Boots do not.")]),
        ("Hello. A lamp goes back. [Source 1]", [(1, "A lamp goes back.")]),
        ("A lamp [Source 1] and boots [Source 2] differ.", [(1, "A lamp"), (2, "and boots")]),
        ("Boots differ [Source 1][Source 2].", [(1, "Boots differ"), (2, "Boots differ")]),
        ("Boots differ [Source 1], [Source 2] and so on.", [(1, "Boots differ"), (2, "Boots differ")]),
        ("Boots differ [Sources 1, 2].", [(1, "Boots differ"), (2, "Boots differ")]),
        ("According to [Source 1], a lamp goes back within 45 days.", [(1, "a lamp goes back within 45 days.")]),
        ("[Source 1] A lamp goes back.", [(1, "A lamp goes back.")]),
        ("- Boots differ [Source 1]\n- A lamp goes back [Source 2]", [(1, "Boots differ"), (2, "A lamp goes back")]),
        ("Boots: see below\nA lamp goes back [Source 1]", [(1, "A lamp goes back")]),
        ("Closed, e.g. Mondays [Source 1]", [(1, "Closed, e.g. Mondays")]),
        ("A lamp [Source 1: returns.md, page 2] goes.", [(1, "A lamp")]),
        ("[Source 1]", [(1, "")]),
        ("Boots differ [Source 1]. [Source 2] Lamps do not.", [(1, "Boots differ"), (2, "Boots differ")]),
        ("According to [Source 1], lamps go back [Source 2].", [(1, "According to"), (2, "lamps go back")]),
        ("A lamp [Source 9] goes back [Source 1].", [(1, "goes back")]),
    ],
)
def test_the_claim_is_what_its_sentence_says_before_the_mark(answer: str, expected: list[tuple[int, str]]) -> None:
    found = claims(answer, *TWO)
    assert [one for one in found if one[0] in {n for n, _ in expected}][: len(expected)] == expected


@pytest.mark.parametrize(
    ("claim", "quote"),
    [
        ("You have 45 days for a lamp", "You can return a lamp within **45 days**."),
        ("Service: Trolley van; Price: €25; Time: 3 hours", "| Trolley van | €25 | 3 hours |"),
        ("Service: Missed collection; Price: €35", "| Missed collection | €35 | 2 hours |"),
        ("Pennock Quay is closed on Mondays", "- Pennock Quay is closed on Mondays, e.g. 4 May."),
        (
            "The yard closes an hour before the shop",
            "- The garden yard closes one hour before\n  the shop, on every day of the week.",
        ),
        (
            "Lamps return within 45 days, boots are different",
            "You can return a lamp within **45 days**. Boots are different.",
        ),
        ("Nobody knows xylophones", PAGE),
        ("", PAGE),
    ],
)
def test_the_quote_is_the_passage_with_most_of_the_claims_words(claim: str, quote: str) -> None:
    [found] = ask(f"{claim} [Source 1].")
    assert found.quote == quote


def test_a_figure_decides_between_passages_alike() -> None:
    document = Document("a.md", "Lamps cost 30 euro here. Lamps cost 45 euro there.", "A")
    assert ask("Lamps cost 45 [Source 1].", document=document)[0].quote == "Lamps cost 45 euro there."


def test_a_sentence_that_brings_one_word_of_many_is_left_out() -> None:
    text = "It is paid as store credit, never in cash or back to a card. The Help Desk cannot grant it by phone."
    answer = "When it is granted: it is paid as store credit, never in cash or back to a card. [Source 1]"
    [found] = ask(answer, document=Document("a.md", text, "A"))
    assert found.quote == text[:60]


def test_items_of_a_list_are_passages_of_their_own() -> None:
    document = Document("a.md", "- lamps 45 days\n- boots 30 days\n1. sofas 9 days", "A")
    quotes = [ask(f"{word} [Source 1].", document=document)[0].quote for word in ("lamps", "boots", "sofas")]
    assert quotes == ["- lamps 45 days", "- boots 30 days", "1. sofas 9 days"]


def test_of_passages_that_say_the_same_the_first_is_quoted() -> None:
    document = Document("a.md", "Lamps cost 30. Boots cost 5. Lamps cost 30.", "A")
    assert ask("Lamps cost 30 [Source 1].", document=document)[0].start == 0


def test_a_citation_says_where_its_source_stands() -> None:
    document = Document("b.pdf", "First page.\fSecond page: lamps.", "B", pages=(0, 12))
    [found] = ask("Lamps [Source 1].", document=document)
    assert (found.document, found.section, found.page, found.url) == ("b.pdf", "Shop > Returns", 2, None)
    assert page_of(document, 11) == 1
    assert ask("A lamp [Source 1].")[0].page is None


@pytest.mark.parametrize(
    ("metadata", "url"),
    [
        ({"url": "https://shop.example/a#b"}, "https://shop.example/a#b"),
        ({"source": "http://shop.example"}, "http://shop.example"),
        ({"url": "/module-2", "source": "https://shop.example/x"}, "https://shop.example/x"),
        ({"url": "javascript:alert(1)"}, None),
        ({"url": "data:text/html,x"}, None),
        ({"url": "file:///etc/passwd"}, None),
        ({"url": "javascript://shop.example/%0aalert(1)"}, None),
        ({"url": "ftp://shop.example"}, None),
        ({"url": "https://"}, None),
        ({"url": "https://a b"}, None),
        ({"url": "https://a\u202eb"}, None),
        ({"url": "https://[::1"}, None),
        ({"url": 7}, None),
        ({"link": "https://shop.example"}, None),
    ],
)
def test_an_address_is_that_of_the_metadata_and_of_the_web(metadata: Mapping[str, object], url: str | None) -> None:
    assert url_of(Document("a.md", "See https://evil.example for more.", "A", metadata)) == url


def test_a_source_that_is_cited_without_a_mark_stands_for_the_whole_answer() -> None:
    answer = " Boots differ, says Chapter 3. "
    [found] = ask(answer, numbers=(1,))
    assert answer[found.answer_start : found.answer_end] == answer.strip()
    assert ask("Lamps [Source 1]. So does Chapter 3.", *TWO, numbers=(1, 2))[1].source == 2


def test_marks_of_sources_that_do_not_count_are_left_out() -> None:
    assert ask("Boots [Source 2]. Lamps [Source 3]. A [Source 0].", numbers=(3, 9)) == []
    assert [one.source for one in ask("Boots [Source 2]. Lamps [Source 1].", *TWO, numbers=(1,))] == [1]
    assert [one.source for one in ask("Boots [Sources 1, 2].", *TWO, numbers=(1,))] == [1]


def test_a_repeated_header_is_no_part_of_the_quote() -> None:
    header = "| Service | Price | Time | Floor | Weight | Booking | Crew |\n|---|---|---|---|---|---|---|\n"
    document = Document("returns.md", f"{header}| Van | 25 |\n| Missed | 35 |", "Returns")
    start = len(header) + len("| Van | 25 |\n")
    own = chunk_of(document, start)
    [found] = ask(
        "Missed costs 35 [Source 1].", replace(own, text=header + own.text, repeated_header=header), document=document
    )
    assert (found.start, found.quote) == (start, "| Missed | 35 |")


def test_of_a_chunk_without_marks_the_marked_passage_is_quoted() -> None:
    plain = replace(chunk_of(DOCUMENT), text=unmarked(PAGE), metadata={"markup": UNMARKED})
    [found] = ask("You can return a lamp within 45 days [Source 1].", plain)
    assert found.quote == "You can return a lamp within **45 days**."


def test_a_chunk_that_moved_is_found_where_it_is_now() -> None:
    stale = replace(chunk_of(DOCUMENT, PAGE.index("Boots"), PAGE.index("\n\n| S")), start=0, end=21)
    assert stale.text == "Boots are different."
    assert ask("Boots are different [Source 1].", stale)[0].quote == "Boots are different."


@pytest.mark.parametrize("place", [(0, 20), (-5, 10), (10, 10**6), (7, 7)])
def test_a_chunk_that_the_document_has_no_more_gives_no_quote(place: tuple[int, int]) -> None:
    gone = Chunk("c", "returns.md", "Sofas are carried upstairs for free.", *place)
    [found] = ask("Sofas are carried upstairs [Source 1].", gone)
    assert (found.quote, found.start, found.end, found.page) == ("", 0, 0, None)


def test_a_document_that_is_gone_gives_no_quote() -> None:
    [found] = cited("Lamps [Source 1].", (1,), [hit(chunk_of(DOCUMENT))], dict[str, Document]().__getitem__)
    assert (found.document, found.quote, found.url) == ("returns.md", "", None)


PIECES = st.sampled_from(
    [
        "# Head\n",
        "Lamps cost 45 euro. ",
        "Boots, e.g. red ones. ",
        "| A | B |\n|---|---|\n| lamp | 45 |\n",
        "- item one\n",
        "\n",
        "\r\n",
        "```\ncode = 45\n```\n",
        "**Bold** and _soft_. ",
        "日本語です。灯は45円。",
        "\0",
        "\x1c",
        "😀 lamp! ",
        "[Source 1] ",
        "[Sources 1, 2]",
        "[Source 2: b.md]",
        "> quoted boots\n",
        "word " * 40,
    ]
)
TEXTS = st.one_of(st.lists(PIECES, max_size=12).map("".join), st.text(max_size=60))
CHUNKERS = ("sections", "plain", "fixed", "sliding", "headings", "whole")


def assert_holds(answer: str, documents: Mapping[str, Document], context: list[Hit]) -> None:
    numbers = range(1, len(context) + 1)
    found = cited(answer, numbers, context, documents.__getitem__)
    for one in found:
        assert documents[one.document].text[one.start : one.end] == one.quote
        assert 0 <= one.answer_start <= one.answer_end <= len(answer)
        assert one.document == context[one.source - 1].chunk.doc_id
    marks = [n for mark in marks_of(answer) for n in mark.sources if n in numbers]
    assert [one.source for one in found[: len(marks)]] == marks, "a mark lost its citation"
    assert {one.source for one in found} == set(numbers)
    for one in found[: len(marks)]:
        assert not marks_of(answer[one.answer_start : one.answer_end]), "a claim has a mark in it"


@given(TEXTS, TEXTS, st.data())
def test_quotes_are_the_documents_words_whatever_chunks_say(page: str, answer: str, data: st.DataObject) -> None:
    document = Document("a.md", page, "A", {}, (0, 5, 9))
    offsets = st.integers(-3, len(page) + 3)
    texts = st.one_of(TEXTS, st.just(page), st.tuples(offsets, offsets).map(lambda span: page[slice(*span)]))
    chunks = st.builds(Chunk, st.just("c"), st.just("a.md"), texts, offsets, offsets, repeated_header=st.just(""))
    assert_holds(answer, {"a.md": document}, [hit(chunk) for chunk in data.draw(st.lists(chunks, max_size=3))])


@given(TEXTS, TEXTS, st.sampled_from(CHUNKERS), st.data())
def test_quotes_are_the_documents_words_of_whatever_a_chunker_cuts(
    page: str, answer: str, chunker: str, data: st.DataObject
) -> None:
    document = Document("a.md", page, "A")
    chunks = resolve("chunkers", chunker)(document, Words(), ChunkingSettings(40, 8))
    context = [hit(chunk) for chunk in chunks[:4]]
    said = data.draw(st.sampled_from([answer, *(f"{each.chunk.text} [Source 1]" for each in context)]))
    assert_holds(said, {"a.md": document}, context)
    for one in cited(said, range(1, len(context) + 1), context, {"a.md": document}.__getitem__):
        chunk = context[one.source - 1].chunk
        assert (chunk.start <= one.start <= one.end <= chunk.end) or not one.quote


@pytest.mark.parametrize(
    ("link", "url"),
    [
        ("/module-1/chapter-4#quality-of-service", "/module-1/chapter-4#quality-of-service"),
        ("https://book.example/a#b", "https://book.example/a#b"),
        ("//evil.example/a", "https://shop.example/returns"),
        ("/\\evil.example", "https://shop.example/returns"),
        ("javascript:alert(1)", "https://shop.example/returns"),
        ("module-1/chapter-4", "https://shop.example/returns"),
        ("", "https://shop.example/returns"),
    ],
)
def test_a_link_of_the_experiment_is_a_path_or_an_address_of_the_web(link: str, url: str) -> None:
    hit = Hit(Chunk("returns.md#0", "returns.md", PAGE, 0, len(PAGE)), 0.9, 1)
    found = cited("Lamps [Source 1].", (1,), (hit,), {"returns.md": DOCUMENT}.__getitem__, {1: link})
    assert [each.url for each in found] == [url]


def test_a_german_claim_finds_its_passage_by_other_forms_of_its_words() -> None:
    text = "Der Standard gilt z. B. für Möbel. Räder schicken wir per Spedition. Bücher kommen mit der Post."
    document = Document("versand.md", text, "Versand", {"language": "de"})
    chunk = replace(chunk_of(document), metadata=document.metadata)
    answer = "Ein Rad kommt mit der Spedition [Source 1]."
    (citation,) = cited(answer, (1,), [Hit(chunk, 1.0, 1)], lambda _: document)
    assert citation.quote == "Räder schicken wir per Spedition."


# Answers of the longest length that a model may give are cited, and compared, in a time that grows with them alone.

TEXT = "Lamps can be returned within 45 days. Every lamp is made by hand."
HITS = [Hit(Chunk("lamp.md#0", "lamp.md", TEXT, 0, len(TEXT)), 1.0, 1)]


def document(doc_id: str) -> Document:
    return Document(doc_id, TEXT, "lamp", {})


@pytest.mark.parametrize(
    "answer",
    [
        "lamp " * 20_000 + "[source 1])" * 8_500,
        "a\n" * 50_000 + "x[source 1]" * 9_000,
        "Lamps can be returned within 45 days [Source 1]. " * 4_000,
        "[Source 1][Source 1]" * 9_000,
        "[source " * 25_000,
        " )" * 100_000 + "[source 1]",
    ],
    ids=["one claim, many marks", "many sentences, many marks", "an ordinary list", "marks", "unclosed", "blanks"],
)
def test_citations_open_in_a_time_that_grows_with_the_answer(answer: str) -> None:
    began = time.thread_time()
    cited(answer, (1,), HITS, document)
    assert time.thread_time() - began < 5  # the first took minutes


def test_two_long_lists_are_compared_at_once() -> None:
    lists = [" ".join(f"Lamp {n} costs {n + more} euros." for n in range(7_000)) for more in (0, 10_000)]
    began = time.thread_time()
    assert claims_agreement(lists[0], lists[0]) == 1
    assert claims_agreement(*lists) < 1
    assert time.thread_time() - began < 10


@pytest.mark.parametrize(
    ("text", "kept"), [(" \t- a b ", "a b"), ("\u2003)\n * x", "x"), (" ) ", ""), ("", ""), ("a -", "a -")]
)
def test_blanks_and_marks_of_lists_are_taken_off_in_any_order(text: str, kept: str) -> None:
    start, end = stripped(text, 0, len(text), "-*)")
    assert text[start:end] == kept


# Every citation of the shipped answers opens at what the answer says.


async def _answered(built: Experiment, queries: list[Query]) -> list[PipelineOutput]:
    return [await built.pipeline.answer(query) for query in queries]


@pytest.mark.parametrize(("name", "at_least"), [("e3", 230), pytest.param("r1", 130, marks=pytest.mark.long)])
def test_quotes_of_the_200_shipped_answers_are_verbatim_and_say_it(name: str, at_least: int, tmp_path: Path) -> None:
    parts = shipped_parts(tmp_path)
    queries, documents = [case.query for case in parts.data().cases], parts.data().documents
    by_id = {document.doc_id: document for document in documents}
    built = experiment(name, parts)
    assert built.prepare is not None
    built.prepare(queries)
    outputs = asyncio.run(_answered(built, queries))
    assert len(outputs) == 200
    checked = 0
    for output in outputs:
        for one in cited(output.answer.text, output.answer.citations, output.context, by_id.__getitem__):
            chunk, claim = output.context[one.source - 1].chunk, output.answer.text[one.answer_start : one.answer_end]
            assert by_id[one.document].text[one.start : one.end] == one.quote
            assert chunk.start <= one.start < one.end <= chunk.end
            assert len(one.quote) < len(chunk.text), "the whole chunk is no quote of a claim it has the words of"
            # The reader writes a row of a table with the words of its header, which stand in another row.
            least = 0.2 if one.quote.startswith("|") else 0.5
            assert len(terms(claim) & terms(one.quote)) >= least * len(terms(claim)), claim
            checked += 1
    assert checked >= at_least
