"""The rules: a turn takes over the words that it lacks, and one that is complete takes none."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.settings import Settings
from rag_harness.core.types import Chunk, Hit, IndexSpec, Matrix, Message, Vector
from rag_harness.pipelines.trace import Trace
from rag_harness.retrieval.builder import Retrieval
from rag_harness.retrieval.ingest import WindowedRetriever
from rag_harness.retrieval.retrievers import (
    MOST_CARRIED,
    DenseRetriever,
    Rarity,
    SharedReranker,
    SharedRetriever,
    SharedWork,
    fused,
    with_carried_words,
)
from tests.hostile import CORPUS
from tests.unit.hits import chunks_of

PAGES = (
    "The Ridge 2 tent weighs 3 kg. Renting the Ridge 2 costs €14 for a day.",
    "The Ridge 3 tent weighs 5 kg. Renting the Ridge 3 costs €18 for a day.",
    "Our stores take small batteries; the box stands near the entrance.",
    "Standard delivery takes 3 days. Express delivery takes one day.",
    "A gift card is valid for five years. It cannot be returned.",
    "The warranty of a mower lasts 36 months and covers the motor.",
)
RARITY = Rarity([Chunk(f"p{n}", f"p{n}.md", text) for n, text in enumerate(PAGES)])
SAID = [Message("user", "can i rent a tent?"), Message("assistant", "Yes, the Ridge 2 and the Ridge 3.")]
LONGEST = 510
texts = st.text(max_size=300) | st.sampled_from(CORPUS)
words = st.lists(st.sampled_from(" ".join(PAGES).split()), max_size=60).map(" ".join)
said = st.lists(st.builds(Message, st.sampled_from(["user", "assistant"]), texts | words), max_size=12)


def carried(turn: str, *earlier: Message, longest: int = LONGEST) -> tuple[str, tuple[str, ...]]:
    made = with_carried_words(turn, earlier or SAID, RARITY, longest)
    return made.text, made.words


def test_a_turn_gets_the_words_that_it_lacks_those_said_last_first() -> None:
    text, taken = carried("the bigger one please. how much is that")
    assert text == "the bigger one please. how much is that? This is about: Ridge 2 3 rent tent."
    assert taken == ("Ridge", "2", "3", "rent", "tent")


def test_a_word_of_the_turn_is_not_repeated_in_whatever_form() -> None:
    assert carried("and the TENTS?")[0] == "and the TENTS? This is about: Ridge 2 3 rent."


def test_words_that_no_page_has_are_not_taken_over() -> None:
    made = with_carried_words("and?", [Message("user", "my zebra sleeps")], RARITY, LONGEST)
    assert (made.text, made.words, made.why_not) == ("and?", (), "no words of the pages were said")


@pytest.mark.parametrize(
    "turn", ["another thing, is the box for batteries near the entrance?", "gift card valid five years"]
)
def test_a_turn_that_is_complete_in_itself_stays_as_it_is(turn: str) -> None:
    made = with_carried_words(turn, SAID, RARITY, LONGEST)
    assert (made.text, made.words) == (turn, ())
    assert made.why_not.startswith("it is complete in itself")


def test_a_turn_of_few_words_is_not_complete_though_none_of_them_was_said() -> None:
    assert carried("and batteries for the box?")[1] == ("Ridge", "2", "3", "rent", "tent")


def test_one_that_repeats_a_word_is_not_complete() -> None:
    assert carried("is the box for batteries near the entrance of a tent?")[1] == ("Ridge", "2", "3", "rent")


def test_a_first_question_stays_as_it_is() -> None:
    made = with_carried_words("  how much is\n that ", [], RARITY, LONGEST)
    assert (made.text, made.why_not) == ("  how much is\n that ", "nothing was said before it")


def test_the_weightiest_words_are_chosen() -> None:
    everything = Message("user", " ".join(PAGES))
    taken = set(carried("and?", everything)[1])
    assert len(taken) == MOST_CARRIED
    # Two pages have these, and those that are left out are no rarer than any that is chosen.
    assert not {"Ridge", "tent", "takes", "day", "kg"} <= taken


def test_what_does_not_fit_is_left_out() -> None:
    # One page has "2", two have each of the others but "3", which three have.
    whole = "and? This is about: Ridge 2 3 rent tent."
    assert carried("and?", longest=len(whole))[0] == whole
    assert carried("and?", longest=len(whole) - 1) == (
        "and? This is about: Ridge 2 rent tent.",
        ("Ridge", "2", "rent", "tent"),
    )
    made = with_carried_words("x" * LONGEST, SAID, RARITY, LONGEST)
    assert (made.text, made.why_not) == ("x" * LONGEST, "there is no room for words")


def test_a_question_in_another_language_gets_words_of_its_language_and_no_english_ones() -> None:
    earlier = [Message("user", "Kann ich ein Zelt wie das Ridge 2 für einen Tag mieten?")]
    text, taken = carried("und was kostet das", *earlier)
    assert text == "und was kostet das? Ridge 2"
    assert taken == ("Ridge", "2")


@given(turn=texts, earlier=said, longest=st.integers(0, 600))
def test_no_question_is_longer_than_its_bound_or_the_turn_itself(
    turn: str, earlier: list[Message], longest: int
) -> None:
    made = with_carried_words(turn, earlier, RARITY, longest)
    assert made.text == turn or len(made.text.encode(errors="replace")) <= longest
    assert len(made.words) <= MOST_CARRIED
    assert bool(made.words) != bool(made.why_not)
    assert made.text.startswith(turn.rstrip())


@given(turn=words, earlier=said)
def test_equal_conversations_give_equal_questions(turn: str, earlier: list[Message]) -> None:
    again = Rarity([Chunk(f"p{n}", f"p{n}.md", text) for n, text in enumerate(PAGES)])
    first = with_carried_words(turn, earlier, RARITY, LONGEST)
    assert with_carried_words(turn, [*earlier], again, LONGEST) == first


@given(turn=words, earlier=said)
def test_every_word_that_is_taken_over_was_said(turn: str, earlier: list[Message]) -> None:
    everything = " ".join(each.content for each in earlier)
    assert all(word in everything for word in with_carried_words(turn, earlier, RARITY, LONGEST).words)


@pytest.mark.parametrize("part", ["a", "a ", "é", "2-", "a-1", "tent ", "[Source 1: ", "'s", "\ud800", "«€ "])
def test_hostile_text_takes_no_more_than_linear_time(part: str) -> None:
    def seconds(times: int) -> float:
        started = time.thread_time()
        with_carried_words(part * times, [Message("user", part * times)] * 12, RARITY, LONGEST)
        return time.thread_time() - started

    # 16 times the text takes about 16 times as long, and 256 times as long if it were quadratic.
    assert seconds(8_000) < 64 * max(seconds(500), 0.005)


# Each request is worked on once, in batches, off the loop; one that fails takes no other with it.


class Work:
    """Doubles numbers, refuses odd ones, and remembers the batches."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.threads: set[str] = set()
        self.may_go = threading.Event()
        self.may_go.set()

    def __call__(self, numbers: Sequence[int]) -> list[int]:
        self.batches.append(list(numbers))
        self.threads.add(threading.current_thread().name)
        assert self.may_go.wait(5)
        if any(number % 2 for number in numbers):
            raise ValueError(f"odd: {numbers}")
        return [number * 2 for number in numbers]


def test_what_waits_is_one_batch_and_nothing_is_asked_twice() -> None:
    work = Work()
    shared = SharedWork(work, key=int)

    async def run() -> list[int]:
        work.may_go.clear()
        first = [asyncio.create_task(shared.ask(each)) for each in (2, 4, 2)]
        while not work.batches:
            await asyncio.sleep(0)
        later = [asyncio.create_task(shared.ask(each)) for each in (6, 8, 4, 6)]
        await asyncio.sleep(0)
        work.may_go.set()
        answered = await asyncio.gather(*first, *later, shared.ask(2))
        assert all(milliseconds > 0 for _, milliseconds in answered)
        return [result for result, _ in answered]

    assert asyncio.run(run()) == [4, 8, 4, 12, 16, 8, 12, 4]
    assert work.batches == [[2, 4], [6, 8]]
    assert all(name.startswith("rag-local") for name in work.threads)


def test_a_failure_is_its_own_and_may_be_asked_again() -> None:
    work = Work()
    shared = SharedWork(work, key=int)

    async def run() -> list[object]:
        asked = [shared.ask(each) for each in (2, 3, 4)]
        answers: list[object] = [*await asyncio.gather(*asked, return_exceptions=True)]
        with pytest.raises(ValueError, match="odd"):
            await shared.ask(3)
        return answers

    two, three, four = asyncio.run(run())
    assert isinstance(two, tuple)
    assert isinstance(four, tuple)
    assert (two[0], type(three), four[0]) == (4, ValueError, 8)
    assert work.batches == [[2, 3, 4], [2], [3], [4], [3]]


def test_a_trial_that_is_cancelled_leaves_the_others_their_result() -> None:
    work = Work()
    shared = SharedWork(work, key=int)

    async def run() -> int:
        work.may_go.clear()
        one, other = asyncio.create_task(shared.ask(2)), asyncio.create_task(shared.ask(2))
        while not work.batches:
            await asyncio.sleep(0)
        one.cancel()
        work.may_go.set()
        return (await other)[0]

    assert asyncio.run(run()) == 4


class OneByOne:
    """A reranker of somebody else's, without ``rerank_many``."""

    model, revision = "mine", "1"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def rerank(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        self.asked.append(query)
        return [hit.reranked(1.0, rank) for rank, hit in enumerate(reversed(hits), 1)]


def test_two_experiments_rerank_a_query_once_and_record_the_same_time() -> None:
    inner = OneByOne()
    reranker = SharedReranker(inner, nullcontext)
    hits = [Hit(Chunk(f"c{n}", "d", "text"), 1.0 / n, n) for n in (1, 2, 3)]

    async def trial() -> Trace:
        trace = Trace(retrieved=list(hits))
        await trace.rerank(reranker, "a lamp", 2)
        return trace

    async def run() -> list[Trace]:
        return [*await asyncio.gather(trial(), trial()), await trial()]

    traces = asyncio.run(run())
    assert inner.asked == ["a lamp"]
    assert len({trace.milliseconds["rerank"] for trace in traces}) == 1
    assert [[hit.chunk.chunk_id for hit in trace.context] for trace in traces] == [["c3", "c2"]] * 3


# Queries in flight together are one request to an index behind a network.

CHUNKS = chunks_of(["a", "b", "c", "d"])


class Index:
    """Finds chunk n first for the vector [n]."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    def search(self, vector: Vector, k: int) -> list[Hit]:
        first = int(vector[0])
        return [Hit(CHUNKS[(first + n) % 4], 1.0 - n, n + 1) for n in range(k)]


class Together(Index):
    def search_many(self, vectors: Sequence[Vector], k: int) -> list[list[Hit]]:
        self.asked.append((len(vectors), k))
        return [self.search(vector, k) for vector in vectors]


def over(index: Index) -> Any:
    def embed_queries(texts: Sequence[str]) -> Matrix:
        return np.array([[float(text)] for text in texts], np.float32)

    return SimpleNamespace(index=index, embedder=SimpleNamespace(embed_queries=embed_queries))


def test_queries_of_one_k_are_one_request() -> None:
    requests = [("2", 1), ("0", 3), ("1", 1), ("3", 3), ("2", 3)]
    together, alone = Together(), Index()
    found = DenseRetriever(over(together)).retrieve_many(requests)
    assert sorted(together.asked) == [(2, 1), (3, 3)]
    assert found == DenseRetriever(over(alone)).retrieve_many(requests)
    assert found == [DenseRetriever(over(alone)).retrieve(*each) for each in requests]


def test_trials_that_ask_at_once_share_a_request() -> None:
    index = Together()
    shared = SharedRetriever(DenseRetriever(over(index))).shared

    async def ask() -> list[str]:
        found = await asyncio.gather(*(shared.ask((str(n % 4), 2)) for n in range(8)))
        return [hits[0].chunk.text for hits, _ in found]

    assert asyncio.run(ask()) == ["a", "b", "c", "d"] * 2
    assert sum(count for count, _ in index.asked) == 4
    assert len(index.asked) <= 2


def test_windows_of_many_queries_are_one_request_and_deeper_ones_what_is_lacking() -> None:
    windows = [replace(chunk, chunk_id=f"{chunk.chunk_id}~{n}") for chunk in CHUNKS for n in range(3)]

    class Windows(Together):
        """The windows of chunk n first, for [n]; then those of the next."""

        def search(self, vector: Vector, k: int) -> list[Hit]:
            placed = [windows[(int(vector[0]) * 3 + n) % 12] for n in range(min(k, 12))]
            return [Hit(window, 1.0 - n, n + 1) for n, window in enumerate(placed)]

    index = Windows()
    windowed = over(index)
    windowed.chunk_of_window = {window.chunk_id: CHUNKS[n // 3] for n, window in enumerate(windows)}
    retriever = WindowedRetriever(windowed)
    found = retriever.retrieve_many([("2", 1), ("0", 3), ("1", 3)])
    assert [[hit.chunk.text for hit in hits] for hits in found] == [["c"], ["a", "b", "c"], ["b", "c", "d"]]
    assert sorted(index.asked) == [(1, 2), (2, 6)]
    assert found[1] == retriever.retrieve("0", 3)


@pytest.mark.parametrize(("url", "counts"), [("http://127.0.0.1:6333", True), ("", False)])
def test_what_is_searched_by_a_graph_is_another_retrieval(url: str, counts: bool) -> None:
    def identity(graph: tuple[str, ...]) -> Any:
        settings = Settings(qdrant_url=url, qdrant_graph=graph)
        embedder: Any = SimpleNamespace(model="tiny", revision="1")
        stores: Any = None
        return Retrieval(IndexSpec("sections", 512, 128, "tiny", "qdrant"), list, settings, stores, embedder).identity()

    assert "searched_by" not in identity(())
    assert ("searched_by" in identity(("m=8",))) == counts
    assert (identity(("m=8",)) != identity(("m=9",))) == counts


# Several rankings become one by their ranks.

A, B, C = chunks_of(["a", "b", "c"])


def test_what_several_rankings_have_goes_before_what_one_has() -> None:
    first = [Hit(A, 0.9, 1), Hit(B, 0.8, 2)]
    second = [Hit(C, 0.7, 1), Hit(B, 0.95, 2)]
    found = fused([first, second], 3, "several")
    assert [hit.chunk for hit in found] == [B, A, C]
    assert [hit.rank for hit in found] == [1, 2, 3]
    assert found[0].score == pytest.approx(2 / 62)
    assert found[0].scores == {"rrf": found[0].score, "dense": 0.95, "several": found[0].score}
    assert fused([first, second], 1, "several") == found[:1]
    assert fused([], 3, "several") == []
