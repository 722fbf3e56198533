"""The agent that a model leads: its calls are searches and looks, its mistakes are told to it, and its rounds end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from rag_harness.core.types import Chunk, Completion, Hit, Message, PipelineOutput, Query, ToolCall, Usage
from rag_harness.data.queries import read_queries
from rag_harness.models.calls import offered
from rag_harness.pipelines.experiments import experiment
from rag_harness.pipelines.trace import StepTrace
from rag_harness.retrieval.retrievers import Rarity
from rag_harness.studies.agents import MOST_ROUNDS, TOOLS, Looked, ToolAgent, in_turn, looked
from rag_harness.studies.retail import FilteredRag
from tests.unit.hits import hits_of
from tests.unit.pipelines.mock_parts import parts_of, write_kb

# The agent that a model leads: its calls are searches and looks, its mistakes are told to it, and its rounds end.

TEXTS = {"returns.md": "A lamp goes back within 45 days.", "refunds.md": "Refunds take 5 days."}
CHUNKS = [Chunk(f"{name}#0", name, text) for name, text in TEXTS.items()]


class Finds:
    """Finds the page whose name begins as the query does, and ranks hits as they come."""

    def retrieve(self, query: str, k: int) -> list[Hit]:
        return [Hit(each, 1.0, 1) for each in CHUNKS if each.doc_id[:6] == query[:6]][:k]

    def rerank(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        return list(hits)


class Leads:
    """A model that calls what it was told to, a list of calls each round, and then stops."""

    model = "scripted/leader"

    def __init__(self, *rounds: list[tuple[str, str]]) -> None:
        self._rounds, self.heard, self.offers = list(rounds), list[list[Message]](), list[int]()

    async def complete(self, messages: Sequence[Message], response_format: Any = None) -> Completion:
        self.heard.append(list(messages))
        self.offers.append(len(offered.get()))
        made = self._rounds.pop(0) if self._rounds else []
        calls = tuple(ToolCall(f"c{n}", name, said) for n, (name, said) in enumerate(made))
        return Completion("" if calls else "DONE", self.model, Usage(1, 1, 1), 1.0, tool_calls=calls)


def search(query: str) -> tuple[str, str]:
    return "search", json.dumps({"query": query})


def led(leader: Leads, most: int = 3) -> tuple[list[list[str]], StepTrace]:
    finds = Finds()
    e3 = FilteredRag(finds, cast("Any", finds), cast("Any", None), 20, 5)
    trace = StepTrace()
    found = asyncio.run(ToolAgent(e3, lambda: CHUNKS, most).search("How long?", leader, trace))
    return [[hit.chunk.doc_id for hit in hits] for hits in found], trace


def test_it_searches_looks_and_searches_again_until_the_model_stops() -> None:
    leader = Leads([search("return a lamp")], [("look", '{"page": "returns.md"}')], [search("refund")])
    found, trace = led(leader)
    assert found == [["returns.md"], ["refunds.md"]]
    assert [(step.name, step.kind) for step in trace.steps] == [
        ("lead", "generate"),
        ("search", "retrieve"),
        ("rerank", "rerank"),
        ("lead", "generate"),
        ("look", "tool"),
        ("lead", "generate"),
        ("search", "retrieve"),
        ("rerank", "rerank"),
        ("lead", "generate"),
    ]
    assert leader.offers == [len(TOOLS)] * 4
    assert offered.get() == ()
    said = leader.heard[1][-2:]
    assert (said[0].role, said[0].tool_calls[0].name) == ("assistant", "search")
    assert said[1] == Message("tool", f"[returns.md] {TEXTS['returns.md']}", call_id="c0")
    assert leader.heard[2][-1].content == TEXTS["returns.md"]
    assert (trace.decisions[0].outcome, trace.decisions[0].reason) == ("by model", "the model stopped")


@pytest.mark.parametrize(
    "call",
    [
        ("search", "{"),
        ("search", "[]"),
        ("search", "{}"),
        ("search", '{"query": 3}'),
        ("search", '{"query": "  "}'),
        ("search", "[" * 100_000),
        ("delete", '{"query": "all"}'),
        ("look", '{"query": "returns.md"}'),
    ],
)
def test_a_call_that_cannot_be_made_is_told_to_the_model(call: tuple[str, str]) -> None:
    leader = Leads([call], [search("return a lamp")])
    found, _ = led(leader)
    assert leader.heard[1][-1].content.startswith("error: call search with a query or look with a page")
    assert len(leader.heard[1][-1].content) < 400
    assert found == [["returns.md"]]


def test_a_page_that_is_not_there_and_a_search_too_many_are_told() -> None:
    leader = Leads([("look", '{"page": "no.md"}'), search("return"), search("refund")])
    found, _ = led(leader, most=1)
    told = [each.content for each in leader.heard[1][-3:]]
    assert told[0] == "error: there is no page no.md"
    assert told[2] == "error: 1 searches were made, and no more are allowed"
    assert found == [["returns.md"]]


def test_a_model_that_never_stops_is_stopped() -> None:
    leader = Leads(*([search("return a lamp")] for _ in range(50)))
    found, trace = led(leader)
    assert len(leader.heard) == MOST_ROUNDS
    assert len(found) == 3
    assert trace.decisions[0].reason == "the most rounds"


# The agent on the mock profile: what it does is in its row, and one search is one search.

KB = Path(__file__).parents[4] / "data" / "kb"
PAGES = {
    "returns.md": "# Returns\n\nYou can return a lamp within 45 days of delivery.\n",
    "refunds.md": "# Refunds\n\nThe refund of a purchase takes 5 working days.\n",
    "shipping.md": "# Shipping\n\nExpress delivery takes one day and costs €9.90.\n",
    "warranty.md": "# Warranty\n\nThe warranty of a mower lasts 3 years.\n",
}
TWO = Query("q1", "Within how many days can I return a lamp, and what does express delivery cost?")


@pytest.fixture
def kb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return write_kb(tmp_path, PAGES, monkeypatch)


def answered(kb: Path, name: str, query: Query = TWO) -> PipelineOutput:
    parts = parts_of(kb, chat_model="embedded/extractive", candidates=1, top_k=2)
    return asyncio.run(experiment(name, parts).pipeline.answer(query))  # type: ignore[no-any-return]


def test_it_plans_searches_looks_searches_again_and_answers(kb: Path) -> None:
    output = answered(kb, "a1")
    steps = [(step.name, step.kind) for step in output.stages]
    round_ = [("search", "retrieve"), ("rerank", "rerank"), ("look", "decide")]
    assert steps[:5] == [("plan", ""), *round_, round_[0]]
    assert steps[-3:] == [("prompt", ""), ("generate", "generate"), ("parse", "")]
    first, second = (step for step in output.stages if step.kind == "retrieve")
    look = next(step for step in output.stages if step.name == "look")
    assert first.input == TWO.text
    assert second.input == look.output["next"] != TWO.text
    assert {hit.chunk.doc_id for hit in output.context} == {"returns.md", "shipping.md"}


def test_the_same_agent_with_one_search_finds_one_page(kb: Path) -> None:
    output = answered(kb, "a1-once")
    assert [step.name for step in output.stages] == ["plan", "search", "rerank", "prompt", "generate", "parse"]
    assert len(output.context) == 1


def test_it_stops_where_the_first_search_has_it_all(kb: Path) -> None:
    output = answered(kb, "a1", Query("q2", "Can I return a lamp?"))
    assert sum(step.kind == "retrieve" for step in output.stages) == 1


def test_hits_of_several_searches_take_turns_and_no_chunk_comes_twice() -> None:
    def ids(hits: list[Hit]) -> list[str]:
        return [hit.chunk.chunk_id for hit in hits]

    a, b, c = hits_of(["a", "b", "c"])
    assert ids(in_turn([[a, b], [b, c]])) == ids([a, b, c])
    assert ids(in_turn([[a], [b, a, c]])) == ids([a, b, c])
    assert in_turn([]) == in_turn([[], []]) == []


def test_its_questions_are_those_of_the_study_that_need_more_than_one_page() -> None:
    """Chosen by their gold alone: no score has a say."""
    shipped = (KB / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    pages = {line: json.loads(line)["context_reference"] for line in shipped}
    wanted = [line for line in shipped if isinstance(pages[line], list) and len(pages[line]) > 1]
    assert (KB / "agent_queries.jsonl").read_text(encoding="utf-8").splitlines() == wanted
    cases = read_queries(KB / "agent_queries.jsonl", KB)
    assert sorted(len(case.context_reference) for case in cases) == [2] * 30 + [3] * 10


# What an agent searches for next: the part that is covered least, then the words that no chunk has, then nothing.

LOOKING_TEXTS = (
    "A lamp goes back within 45 days.",
    "Refunds take five days.",
    "Rent a tent for a day.",
    "Lamps are bright.",
)
LOOKING_CHUNKS = [Chunk(f"{n}.md#0", f"{n}.md", text) for n, text in enumerate(LOOKING_TEXTS)]
RARITY = Rarity(LOOKING_CHUNKS)
QUESTION = "How long may a lamp go back, and when do I get the refund?"
PLAN = [QUESTION, "How long may a lamp go back?", "when do I get the refund?"]


def test_the_part_that_is_covered_least_is_searched_next() -> None:
    seen = looked(PLAN, [QUESTION], LOOKING_CHUNKS[:1], RARITY)
    assert seen.search == "when do I get the refund?"
    assert seen.why == "the best chunk has 0% of what this part asks"
    assert seen.missing == ("refund",)


def test_where_each_part_is_covered_it_stops() -> None:
    assert looked(PLAN, [QUESTION], LOOKING_CHUNKS, RARITY) == Looked("", "each part is covered")


def test_words_of_two_chunks_do_not_cover_one_part() -> None:
    """A part is answered in one place: two chunks that share its words between them answer another question."""
    plan = ["When does a bright tent go back?", "When does a bright tent go back, in short?"]
    assert looked(plan, plan[:1], LOOKING_CHUNKS, RARITY).search == plan[1]


def test_words_that_no_chunk_has_are_searched_once() -> None:
    question = "Is a lamp sold in Oslo or Bergen?"
    first = looked([question], [question], LOOKING_CHUNKS, RARITY)
    assert (first.search, first.why) == ("sold Oslo Bergen", "no chunk has these words")
    again = looked([question], [question, first.search], LOOKING_CHUNKS, RARITY)
    assert (again.search, again.why) == ("", "nothing is left to search for")


def test_one_missing_word_is_no_search() -> None:
    assert looked(["a lamp in Oslo"], ["a lamp in Oslo"], LOOKING_CHUNKS, RARITY).search == ""


def test_a_question_without_words_ends_at_once() -> None:
    assert looked(["?!"], ["?!"], [], RARITY) == Looked("", "each part is covered")
