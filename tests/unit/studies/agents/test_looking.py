"""What an agent searches for next: the part that is covered least, then the words that no chunk has, then nothing."""

from __future__ import annotations

from rag_harness.core.types import Chunk
from rag_harness.retrieval.retrievers import Rarity
from rag_harness.studies.agents import Looked, looked

TEXTS = ("A lamp goes back within 45 days.", "Refunds take five days.", "Rent a tent for a day.", "Lamps are bright.")
CHUNKS = [Chunk(f"{n}.md#0", f"{n}.md", text) for n, text in enumerate(TEXTS)]
RARITY = Rarity(CHUNKS)
QUESTION = "How long may a lamp go back, and when do I get the refund?"
PLAN = [QUESTION, "How long may a lamp go back?", "when do I get the refund?"]


def test_the_part_that_is_covered_least_is_searched_next() -> None:
    seen = looked(PLAN, [QUESTION], CHUNKS[:1], RARITY)
    assert seen.search == "when do I get the refund?"
    assert seen.why == "the best chunk has 0% of what this part asks"
    assert seen.missing == ("refund",)


def test_where_each_part_is_covered_it_stops() -> None:
    assert looked(PLAN, [QUESTION], CHUNKS, RARITY) == Looked("", "each part is covered")


def test_words_of_two_chunks_do_not_cover_one_part() -> None:
    """A part is answered in one place: two chunks that share its words between them answer another question."""
    plan = ["When does a bright tent go back?", "When does a bright tent go back, in short?"]
    assert looked(plan, plan[:1], CHUNKS, RARITY).search == plan[1]


def test_words_that_no_chunk_has_are_searched_once() -> None:
    question = "Is a lamp sold in Oslo or Bergen?"
    first = looked([question], [question], CHUNKS, RARITY)
    assert (first.search, first.why) == ("sold Oslo Bergen", "no chunk has these words")
    again = looked([question], [question, first.search], CHUNKS, RARITY)
    assert (again.search, again.why) == ("", "nothing is left to search for")


def test_one_missing_word_is_no_search() -> None:
    assert looked(["a lamp in Oslo"], ["a lamp in Oslo"], CHUNKS, RARITY).search == ""


def test_a_question_without_words_ends_at_once() -> None:
    assert looked(["?!"], ["?!"], [], RARITY) == Looked("", "each part is covered")
