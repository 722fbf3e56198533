"""BM25 against a second implementation of the formula, in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_harness.core.types import LANGUAGE, Chunk
from rag_harness.retrieval import bm25
from rag_harness.retrieval.bm25 import K1, B, Bm25Index, LiveWords, bm25_words
from rag_harness.retrieval.retrievers import Rarity
from tests.unit.hits import chunks_of

# BM25 against a second implementation of the formula, in numpy.

# Of two letters or more and no plural: what the tokenizer leaves as it is.
WORDS = ["lamp", "fee", "zinc", "bulb", "oak", "rug"]


def lucene(texts: Sequence[Sequence[str]], query: Sequence[str]) -> list[float]:
    """Sum over the query's words of idf * tf / (tf + k1 (1 - b + b * length / mean length)).

    Source: Robertson & Zaragoza 2009, with Lucene's idf = ln(1 + (N - n + 0.5) / (n + 0.5)).
    """
    lengths = np.array([len(text) for text in texts], float)
    total = np.zeros(len(texts))
    for word in query:
        tf = np.array([list(text).count(word) for text in texts], float)
        n = (tf > 0).sum()
        idf = np.log(1 + (len(texts) - n + 0.5) / (n + 0.5))
        total += idf * tf / (tf + K1 * (1 - B + B * lengths / lengths.mean()))
    return [float(score) for score in total]


def scored(texts: Sequence[str], query: str) -> list[float]:
    chunks = chunks_of(texts)
    found = Bm25Index(lambda: chunks).scores(query)
    assert list(found) == [chunk.chunk_id for chunk in chunks]
    return list(found.values())


def test_by_hand() -> None:
    # Two chunks of 2 and 1 words, mean 1.5. "lamp" is in one: idf = ln(1 + 1.5 / 1.5) = 0.693147;
    # tf part = 1 / (1 + 0.9 (0.6 + 0.4 * 2 / 1.5)) = 1 / 2.02.
    assert scored(["lamp fee", "oak"], "lamp") == pytest.approx([0.693147 / 2.02, 0], abs=1e-6)


@settings(max_examples=40)
@given(
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=12), min_size=1, max_size=8),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4, unique=True),
)
def test_formula(texts: list[list[str]], query: list[str]) -> None:
    expected = lucene(texts, query)
    assert scored([" ".join(text) for text in texts], " ".join(query)) == pytest.approx(expected, abs=1e-5)


def bm25s_of(texts: Sequence[str]) -> bm25s.BM25:
    index = bm25s.BM25(k1=K1, b=B, method="lucene")
    index.index([bm25_words(text) for text in texts], show_progress=False)
    return index


@settings(max_examples=40)
@given(
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join), min_size=1, max_size=30),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join),
)
def test_scores_are_those_of_bm25s_to_the_last_bit(texts: list[str], query: str) -> None:
    assert scored(texts, query) == bm25s_of(texts).get_scores(bm25_words(query)).tolist()


def test_scores_of_the_shipped_pages_are_those_of_bm25s() -> None:
    pages = [page.read_text("utf-8") for page in sorted((Path(__file__).parents[3] / "data" / "kb").glob("*.md"))]
    assert len(pages) > 50
    ours, theirs = Bm25Index(lambda: chunks_of(pages)), bm25s_of(pages)
    for page in pages[:20]:
        query = " ".join(page.split()[:60])
        assert list(ours.scores(query).values()) == theirs.get_scores(bm25_words(query)).tolist()


def test_stems_and_stop_words() -> None:
    lamps, rug = scored(["Two lamps were returned.", "The rug."], "the RETURNING of a lamp")
    assert lamps > 0
    assert rug == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The retailer's CUSTOMERS’ returns", ["retail", "custom", "return"]),
        ("Pay £3.95 or 1,400 by 5 p.m.", ["pai", "3.95", "1,400", "5", "p.m"]),
        ("next-day e-mail, order_no", ["next", "dai", "e", "mail", "order_no"]),
        ("can't 5.x 3:1 a.b:c", ["can't", "5", "x", "3", "1", "a.b:c"]),
        ("the of", []),
    ],
)
def test_words_are_those_of_lucene(text: str, expected: list[str]) -> None:
    """By hand, from UAX #29 (rules WB6, WB7, WB11, WB12), Lucene's 33 stop words and Porter's algorithm of 1980."""
    assert bm25_words(text) == expected


def test_search_is_ordered_and_leaves_out_what_shares_no_word() -> None:
    index = Bm25Index(lambda: chunks_of(["lamp", "oak", "lamp fee", "fee"]))
    hits = index.search("fee lamp", 10)
    assert [hit.chunk.text for hit in hits] == ["lamp fee", "lamp", "fee"]  # equal scores in the chunks' order
    assert [hit.rank for hit in hits] == [1, 2, 3]
    assert {hit.source for hit in hits} == {"bm25"}
    assert [hit.chunk.text for hit in index.search("fee lamp", 1)] == ["lamp fee"]


@pytest.mark.parametrize("query", ["zebra", "the of", "???", ""])
def test_query_without_known_words(query: str) -> None:
    index = Bm25Index(lambda: chunks_of(["lamp fee", "oak"]))
    assert list(index.scores(query).values()) == [0, 0]
    assert index.search(query, 5) == []


@pytest.mark.parametrize("texts", [[], ["€ --", "???"], ["the of"]])
def test_corpus_without_words(texts: list[str]) -> None:
    assert scored(texts, "lamp") == [0] * len(texts)
    assert Bm25Index(lambda: chunks_of(texts)).search("lamp", 5) == []


def test_one_chunk_without_words() -> None:
    blank, lamp = scored(["€ --", "lamp"], "lamp")
    assert blank == 0 < lamp


# BM25 and word weights read each chunk by its own language, and each question by its own.

GERMAN, ENGLISH, FRENCH = (
    "Die Rücksendungen der Räder sind kostenlos.",
    "Returned bicycles are sent back for free.",
    "L'assurance des vélos coûte 12 €.",
)


def _chunks(*languages: str) -> list[Chunk]:
    texts = {"de": GERMAN, "en": ENGLISH, "fr": FRENCH}
    made = chunks_of([texts[language] for language in languages])
    return [replace(chunk, metadata={LANGUAGE: language}) for chunk, language in zip(made, languages, strict=True)]


def _found(chunks: list[Chunk], query: str) -> list[str]:
    return [hit.chunk.language for hit in Bm25Index(lambda: chunks).search(query, 5)]


def test_a_german_question_finds_other_forms_of_its_words() -> None:
    assert _found(_chunks("de"), "Rücksendung eines Rades") == ["de"]
    assert _found([replace(_chunks("de")[0], metadata={})], "Rücksendung eines Rades") == []


def test_in_a_mixed_collection_each_question_finds_what_is_in_its_language() -> None:
    mixed = _chunks("de", "en", "fr")
    assert _found(mixed, "Ist die Rücksendung von einem Rad möglich?") == ["de"]
    assert _found(mixed, "Can I return the bicycle that was sent to me?") == ["en"]
    assert _found(mixed, "Quelles sont les assurances pour un vélo ?") == ["fr"]


def test_stop_words_are_those_of_the_language() -> None:
    assert bm25_words("Die Frist ist 30 Tage", "de") == ["frist", "30", "tag"]
    assert bm25_words("l'assurance du vélo", "fr") == bm25_words("assurance vélo", "fr")
    assert bm25_words("Die Frist", "zh") == bm25_words("Die Frist")


def test_a_changing_collection_scores_as_one_that_stands() -> None:
    mixed = _chunks("de", "en", "fr")
    live = LiveWords().view(mixed)
    for query in ("Rücksendung der Räder", "returning bicycles for free", "assurances"):
        assert live.scores(query) == Bm25Index(lambda: mixed).scores(query)


def test_word_weights_are_by_language() -> None:
    assert Rarity(_chunks("de", "en")).of("rucksend") < Rarity(_chunks("en", "en")).of("rucksend")


LIVE_WORDS = ["lamp", "lamps", "fee", "the", "zinc", "bulb", "oak's"]
TEXTS = st.lists(st.lists(st.sampled_from(LIVE_WORDS), max_size=9).map(" ".join), min_size=1, max_size=12)


@settings(max_examples=60)
@given(TEXTS, st.data())
def test_every_view_scores_as_bm25_over_its_chunks(texts: list[str], data: st.DataObject) -> None:
    pool, words = chunks_of(texts), LiveWords()
    views = []
    for _ in range(data.draw(st.integers(1, 5))):
        some = [pool[n] for n in data.draw(st.lists(st.integers(0, len(pool) - 1), unique=True))]
        views.append((some, words.view(some)))
    # The older ones are asked only now: what came since must not be seen in them.
    for some, view in views:
        alone = Bm25Index(lambda some=some: some)  # type: ignore[misc]
        for query in ("lamp fee", "zinc zinc oak", "nothing"):
            assert view.scores(query) == alone.scores(query)
            assert view.search(query, 5) == alone.search(query, 5)


def test_words_of_chunks_that_nobody_finds_are_thrown_away() -> None:
    pool = chunks_of([f"lamp{n} bulb" for n in range(bm25._LEAST_DEAD + 50)])
    words, few = LiveWords(), pool[:3]
    before = words.view(pool)
    view = words.view(few)
    assert len(words._counted.chunks) == 3
    assert set(words._counted.having) == {"lamp0", "lamp1", "lamp2", "bulb"}
    assert view.scores("lamp1 bulb") == Bm25Index(lambda: few).scores("lamp1 bulb")
    assert before.scores("lamp7 bulb") == Bm25Index(lambda: pool).scores("lamp7 bulb")
