"""The textbook's retrieval: boost, floor, confidence and fusion."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import CriticalError, ModelCallError, ModelOutputError, RagHarnessError, RecordingMissError
from rag_harness.core.files import json_digest
from rag_harness.core.types import Case, Chunk, Completion, Decision, Hit, Message, PipelineOutput, Query, Usage
from rag_harness.models.dry_run import MockChat
from rag_harness.models.prompts import Prompts
from rag_harness.pipelines.experiments import experiment as build
from rag_harness.pipelines.parts import read_answer
from rag_harness.retrieval.builder import Retrieval
from rag_harness.retrieval.chunking.chunkers import summary_of
from rag_harness.studies.textbook import (
    Cited,
    Design,
    above_floor,
    boost,
    boosted,
    cited,
    confidence_of,
    cosine_of,
    near_the_first,
)
from rag_harness.studies.textbook_retrieval import (
    CALIBRATED,
    RECORD,
    Fused,
    Selection,
    SummariesFirst,
    Writer,
    book_place_of,
    by_rank,
    different_titles,
    floor_of,
    selected_text,
    weighted,
    written_by,
)
from tests.effort import bounded
from tests.unit.studies.textbook.book import PAGES, parts_over
from tests.unit.studies.textbook.hits import near, section

# The boost orders and nothing else; the floor and the confidence ask for the raw cosine.

# The boost orders and nothing else; the floor and the confidence ask for the raw cosine.

HELD = "the selected words"
cosines = st.lists(st.floats(-1, 1, width=32), max_size=12)
factors = st.sampled_from([1.0, 1.2, 1.5, 2.0])


def hits_of(values: list[float], held: set[int]) -> list[Hit]:
    falling = sorted(values, reverse=True)
    return near([section(f"{n} {HELD if n in held else 'others'}") for n in range(len(falling))], falling)


@given(cosines, st.sets(st.integers(0, 11)), factors)
def test_a_boost_only_orders(values: list[float], held: set[int], factor: float) -> None:
    before = hits_of(values, held)
    after, count = boosted(before, Selection(HELD), factor)
    assert count == sum(n in held for n in range(len(before)))
    assert sorted(hit.chunk.chunk_id for hit in after) == sorted(hit.chunk.chunk_id for hit in before)
    assert [hit.rank for hit in after] == list(range(1, len(before) + 1))
    raw = {hit.chunk.chunk_id: hit.score for hit in before}
    assert all(hit.score == cosine_of(hit) == raw[hit.chunk.chunk_id] for hit in after)
    assert confidence_of(after, 5) == confidence_of(before, 5)


@given(cosines, st.sets(st.integers(0, 11)), factors)
def test_boosted_scores_fall_stay_at_most_one_and_ties_go_by_cosine(
    values: list[float], held: set[int], factor: float
) -> None:
    after, _ = boosted(hits_of(values, held), Selection(HELD), factor)
    scores = [hit.scores["boosted"] for hit in after]
    assert scores == sorted(scores, reverse=True)
    assert all(score <= 1 for score in scores)
    for first, second in pairwise(after):
        if first.scores["boosted"] == second.scores["boosted"]:
            assert cosine_of(first) >= cosine_of(second)


@given(cosines, st.sets(st.integers(0, 11)), factors)
def test_nothing_that_holds_the_selection_falls_behind(values: list[float], held: set[int], factor: float) -> None:
    after, _ = boosted(hits_of(values, held), Selection(HELD), factor)
    before = {hit.chunk.chunk_id: n for n, hit in enumerate(hits_of(values, held))}
    others = [before[hit.chunk.chunk_id] for hit in after if HELD not in hit.chunk.text]
    assert others == sorted(others)
    for rank, hit in enumerate(after):
        if HELD in hit.chunk.text:
            overtook = [one for one in after[rank + 1 :] if before[one.chunk.chunk_id] < before[hit.chunk.chunk_id]]
            assert not [one for one in after[:rank] if before[one.chunk.chunk_id] > before[hit.chunk.chunk_id]
                        and HELD not in one.chunk.text], overtook  # fmt: skip


def test_two_at_the_cap_are_told_apart_by_their_cosines() -> None:
    hits = near([section("a"), section(f"b {HELD}"), section(f"c {HELD}")], [0.9, 0.6, 0.55])
    after, _ = boosted(hits, Selection(HELD), 2)
    assert [hit.chunk.text[0] for hit in after] == ["b", "c", "a"]
    assert [hit.scores["boosted"] for hit in after] == [1.0, 1.0, 0.9]


def test_ties_go_by_cosine_whatever_the_hits_were_ranked_by() -> None:
    first = Hit(section(f"a {HELD}"), 0.9, 1, "hybrid", {"dense": 0.3})
    second = Hit(section(f"b {HELD}"), 0.8, 2, "hybrid", {"dense": 0.5})
    after, _ = boosted([first, second], Selection(HELD), 2)
    assert [hit.chunk.text[0] for hit in after] == ["b", "a"]


def test_a_boost_leaves_the_confidence() -> None:
    hits = near([section(f"{n} {HELD if n == 5 else ''}") for n in range(6)], [0.9, 0.8, 0.7, 0.6, 0.5, 0.48])
    after, _ = boosted(hits, Selection(HELD), 2)
    assert after[0].score == 0.48
    assert confidence_of(after, 5) == confidence_of(hits, 5) == pytest.approx(0.7)


FORTY = near([section(f"{n} {HELD}") for n in range(40)], [0.9 - n / 100 for n in range(40)])
OTHERS = near([section("a"), section("b")], [0.9, 0.4])


@pytest.mark.parametrize(
    ("hits", "inputs", "factor", "outcome", "value", "reason"),
    [
        (OTHERS, {}, 2, "none", None, "nothing is selected"),
        (OTHERS, {"selected_text": 7}, 2, "none", None, "selected_text is int, not text"),
        (OTHERS, {"selected_text": " \n "}, 2, "none", None, "the selection is white space"),
        (OTHERS, {"selected_text": HELD}, 1, "none", None, "this experiment does not boost"),
        (OTHERS, {"selected_text": HELD}, 2, "none", 0.0, "none of the 2 candidates holds the selection, x2; the"),
        (OTHERS, {"selected_text": "word " * 2000}, 2, "none", 0.0, "has 9,999 characters"),
        ([], {"selected_text": HELD}, 2, "none", 0.0, "none of the 0 candidates"),
        (FORTY, {"selected_text": HELD}, 2, "boosted", 40.0, "all 40 candidates hold the selection, which tells none"),
        (near([section("a"), section(HELD)], [0.6, 0.5]), {"selected_text": HELD}, 1.5, "boosted", 1.0,
         "1 of 2 candidates hold the selection and the order changed, x1.5"),
        (near([section(HELD), section("a")], [0.6, 0.5]), {"selected_text": HELD}, 1.2, "boosted", 1.0,
         "and the order stayed, x1.2"),
    ],
)  # fmt: skip
def test_what_is_said_of_a_boost(
    hits: list[Hit], inputs: dict[str, object], factor: float, outcome: str, value: float | None, reason: str
) -> None:
    after, decision = boost(hits, inputs, factor)
    assert len(after) == len(hits)
    assert (decision.name, decision.outcome, decision.value) == ("boost", outcome, value)
    assert reason in decision.reason


@given(cosines, st.floats(0, 1))
def test_the_floor_keeps_the_first_five_that_reach_it(values: list[float], floor: float) -> None:
    hits = hits_of(values, set())
    kept, decision = above_floor(hits, floor, 5)
    assert [hit.chunk for hit in kept] == [hit.chunk for hit in hits if hit.score >= floor][:5]
    assert [hit.rank for hit in kept] == list(range(1, len(kept) + 1))
    assert (decision.outcome == "kept") == bool(kept)
    assert decision.threshold == floor


def test_a_floor_of_nothing_and_of_one() -> None:
    hits = near([section("a"), section("b"), section("c")], [1.0, 0.0, -0.1])
    assert len(above_floor(hits, 0.0, 5)[0]) == 2
    assert [hit.chunk.text for hit in above_floor(hits, 1.0, 5)[0]] == ["a"]
    kept, decision = above_floor([], 0.0, 5)
    assert (kept, decision.outcome, decision.value) == ([], "nothing found", None)
    assert decision.reason == "nothing was retrieved at all"


def test_the_floor_asks_for_the_cosine_and_not_for_the_score_it_was_ranked_by() -> None:
    low = Hit(section("low"), 0.95, 1, "hybrid", {"dense": 0.2})
    high = Hit(section("high"), 0.5, 2, "hybrid", {"dense": 0.8})
    assert [hit.chunk.text for hit in above_floor([low, high], 0.7, 5)[0]] == ["high"]
    assert confidence_of([low, high], 5) == pytest.approx(0.5)


def test_confidence_lies_between_nought_and_one() -> None:
    assert confidence_of([], 5) == 0
    assert confidence_of(near([section("a")], [-0.4]), 5) == 0
    assert confidence_of(near([section("a")], [1.0000001]), 5) == 1
    six = near([section(str(n)) for n in range(6)], [0.6, 0.5, 0.4, 0.3, 0.2, 0.1])
    assert confidence_of(six, 5) == pytest.approx(0.4)


def test_floors() -> None:
    assert floor_of("mock/hashed-words", "calibrated")[0] == CALIBRATED["mock/hashed-words"]
    assert floor_of("mock/hashed-words", "record")[0] == RECORD == 0.7
    floor, decision = floor_of("nobody/knows", "calibrated")
    assert floor == RECORD
    assert "none is calibrated for nobody/knows" in decision.reason
    assert [floor_of("a", kind)[0] for kind in ("0", "1", "0.25")] == [0, 1, 0.25]
    for wrong in ("1.01", "-0.1", "nan", "high"):
        with pytest.raises(ValueError, match="expected calibrated, record, or a number from 0 to 1"):
            floor_of("a", wrong)


@pytest.mark.parametrize(
    ("scores", "kept", "near"),
    [
        ([0.8, 0.3, 0.2, 0.1], 3, 1),
        ([0.8, 0.7, 0.65, 0.61, 0.59], 4, 4),
        ([0.8] * 10, 8, 10),
        ([0.8, 0.1], 2, 1),
        ([], 0, 0),
    ],
)
def test_the_scores_decide_how_many_sources_there_are(scores: list[float], kept: int, near: int) -> None:
    hits = hits_of(scores, set())
    found, decision = near_the_first(hits)
    assert found == hits[:kept]
    assert decision.value == kept
    assert decision.reason.startswith(f"{near} of {len(scores)} sections have 75% of the first one's score")


def test_adaptive_sources_go_by_the_boosted_order() -> None:
    first, *others = hits_of([0.6] * 6, set())
    boosted_first = replace(first, scores={"dense": 0.6, "boosted": 0.9})
    assert len(near_the_first([boosted_first, *others])[0]) == 3


# Summaries that a model of role ``writer`` writes: what it is asked, what is kept of it, what the rows say.

QUERY = Query("q", "topic messages publishers subscribers")
SHORT = Design(least=0)
PROMPTS = Prompts("Summarise.", "{context}\n\nSection: {question}")


class Says:
    """A chat model that says something of each section, and keeps what it was asked and how many asked at once."""

    model = "test/writer"

    def __init__(self, **by_heading: str | Exception) -> None:
        self.by_heading, self.asked = by_heading, list[str]()
        self.in_flight = self.most = 0

    async def complete(
        self, messages: Sequence[Message], response_format: Mapping[str, Any] | None = None
    ) -> Completion:
        self.asked.append(messages[-1].content)
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        await asyncio.sleep(0.001)
        self.in_flight -= 1
        said = self.by_heading.get(messages[-1].content.rpartition(" > ")[2], "It is said.")
        if isinstance(said, Exception):
            raise said
        return Completion(said, self.model, Usage(10, 5, 1), 1.0)


def on_a_loop_that_goes_on(calls: Coroutine[Any, Any, list[str]]) -> list[str]:
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(calls)
    finally:
        loop.run_until_complete(asyncio.sleep(0.05))
        loop.close()


def summaries_of(root: Path, chat: Any, at_once: int = 4) -> Retrieval:
    parts = parts_over(root)
    writer = Writer(chat, PROMPTS, at_once, on_a_loop_that_goes_on)
    return parts.rewritten(parts.retrieval(SHORT.spec(parts)), writer)


def sections_of(root: Path) -> list[Chunk]:
    parts = parts_over(root)
    return parts.retrieval(SHORT.spec(parts)).chunks


def test_each_section_has_the_summary_that_was_written_of_it(tmp_path: Path) -> None:
    chat = Says(Drift=" Quartz drifts.\n")
    summaries = summaries_of(tmp_path, chat)
    sections = sections_of(tmp_path)
    assert [chunk.chunk_id for chunk in summaries.chunks] == [section.chunk_id for section in sections]
    texts = {chunk.section[-1]: chunk.text for chunk in summaries.chunks}
    assert texts["Drift"] == "Clocks > Drift: Quartz drifts."
    assert texts["Topics"] == "Nodes > Topics: It is said."
    assert len(chat.asked) == len(sections)
    asked = next(each for each in chat.asked if each.endswith("> Drift"))
    assert asked.startswith("[Source 1: module-1/chapter-2-clocks.md] ")
    assert "| quartz | 20 ppm |" in asked
    assert asked.endswith("\n\nSection: Module 1: Nerves > Chapter 2: Clocks > Drift")
    assert 1 < chat.most <= 4
    assert written_by(chat.model, summaries.chunks) == Decision(
        "summaries", "written by test/writer", 0.0, None, f"{len(sections)} of {len(sections)} sections"
    )


def test_what_is_no_summary_is_replaced_and_counted(tmp_path: Path) -> None:
    chat = Says(Drift="", Topics="x" * 128, Queues=ModelOutputError("no text"), Stall=" \n ")
    summaries = summaries_of(tmp_path, chat)
    sections = {section.chunk_id: section for section in sections_of(tmp_path)}
    replaced = [chunk for chunk in summaries.chunks if chunk.section[-1] in ("Drift", "Topics", "Queues", "Stall")]
    assert len(replaced) == 5
    assert all(chunk.text == summary_of(sections[chunk.chunk_id]) for chunk in replaced)
    decided = written_by(chat.model, summaries.chunks)
    assert decided.value == 5.0
    assert decided.reason == (
        f"{len(sections) - 5} of {len(sections)} sections; extractive in place of what came back "
        f"4 empty, 1 longer than the section"
    )


def test_a_call_that_fails_for_good_gives_up_the_others(tmp_path: Path) -> None:
    chat = Says(Introduction=CriticalError("the key is refused"))
    summaries = summaries_of(tmp_path, chat, at_once=1)
    with pytest.raises(CriticalError, match="refused"):
        summaries.prepare([])
    assert len(chat.asked) < len(sections_of(tmp_path))


@pytest.mark.parametrize("error", [RecordingMissError("not there", ()), ModelCallError("not there")])
def test_what_fails_is_asked_for_once(tmp_path: Path, error: RagHarnessError) -> None:
    chat = Says(Introduction=error)
    summaries = summaries_of(tmp_path, chat)
    for _ in range(2):
        with pytest.raises(type(error), match="not there"):
            summaries.dense.retrieve("topic", 2)
    assert len(chat.asked) == len(set(chat.asked))


def test_from_end_to_end_with_the_mock_writer(tmp_path: Path) -> None:
    made = build("t5", parts_over(tmp_path, writer_model="mock/placeholder"))
    assert made.prepare is not None
    made.prepare([QUERY])
    output: PipelineOutput = asyncio.run(made.pipeline.answer(QUERY))
    said = {decision.name: decision for decision in output.decisions}
    assert said["summaries"].outcome == f"written by {MockChat.model}"
    # The placeholder is longer than three of the small sections.
    assert (said["summaries"].value, said["summaries"].reason[:17]) == (3.0, "3 of 6 sections; ")
    # What comes back are the sections themselves.
    assert "carries messages from publishers" in "".join(hit.chunk.text for hit in output.retrieved)
    assert all("Placeholder" not in hit.chunk.text for hit in output.retrieved)
    assert all(hit.scores["summary"] <= hit.scores["dense"] for hit in output.retrieved)


def test_without_a_writer_they_are_extractive(tmp_path: Path) -> None:
    made = build("t5", parts_over(tmp_path))
    output = asyncio.run(made.pipeline.answer(QUERY))
    assert next(each for each in output.decisions if each.name == "summaries").outcome == "extractive"
    assert "rewritten_by" not in made.ingredients


def test_the_fingerprint_knows_who_wrote_them_and_what_was_asked(tmp_path: Path) -> None:
    (tmp_path / "own" / "prompts").mkdir(parents=True)
    (tmp_path / "own" / "prompts" / "t5.summary.system.md").write_text("Say less.")
    writer: dict[str, Any] = {"writer_model": "mock/placeholder"}
    others: list[dict[str, Any]] = [
        {},
        writer,
        {"writer_model": "mock:other"},
        {**writer, "writer_base_url": "http://127.0.0.1:1/v1"},
        {**writer, "project": "own"},
        {**writer, "max_output_tokens": 99},
    ]
    made = [build("t5", parts_over(tmp_path, **changes)).ingredients for changes in others]
    assert len({json_digest(dict(ingredients)) for ingredients in made}) == len(others)
    plain, written = (build("t1", parts_over(tmp_path, **changes)).ingredients for changes in ({}, writer))
    assert plain == written


def test_the_shipped_prompts_are_found(tmp_path: Path) -> None:
    prompts = parts_over(tmp_path).prompts("t5.summary")
    assert "ONLY what the section says" in prompts.system
    assert "{context}" in prompts.user


def test_cuts_and_names_of_the_extractive_ones_are_as_they_were(tmp_path: Path) -> None:
    parts = parts_over(tmp_path)
    spec = SHORT.spec(parts)
    extractive = parts.retrieval(replace(spec, chunker="summaries"))
    written = summaries_of(tmp_path, Says())
    assert [chunk.chunk_id for chunk in extractive.chunks] == [chunk.chunk_id for chunk in written.chunks]
    assert extractive.content_digest != written.content_digest


# What an answer cites: sources by number, chapters by name, and what leads nowhere.

CONTEXT = near(
    [
        section("a", 1, 2, "Nodes and the graph", "Names"),
        section("b", 2, 2),
        section("c", 1, 3, "Services"),
        section("d", 1, 3),
        section("e", 0, 1),
    ],
    [0.9, 0.8, 0.7, 0.6, 0.5],
)


def cite(text: str) -> Cited:
    quoted = text.replace('"', "'")
    return cited(read_answer(f'{{"answer": "{quoted}"}}', len(CONTEXT), False), CONTEXT)


@pytest.mark.parametrize(
    ("text", "sources", "invalid", "outcome"),
    [
        ("Yes [Source 1].", (1,), (), "cited"),
        ("Yes [Source 3, Source 1].", (3, 1), (), "cited"),
        ("See Module 1, Chapter 2.", (1,), (), "cited"),
        ("See module 1 chapter 2 and MODULE 2: CHAPTER 2.", (1, 2), (), "cited"),
        ("See Chapter 1.", (5,), (), "cited"),  # Module 0, Chapter 1: no other module has one here
        ("See Chapter 3.", (3,), (), "cited"),  # two sources of one chapter: the better one
        ("Yes [Source 4], as Chapter 3 says.", (4,), (), "cited"),
        ("Yes [Source 1], and Chapter 3 too.", (1, 3), (), "cited"),
        ("See Chapter 2.", (), (), "none"),  # of Module 1 or of Module 2?
        ("See Module 9, Chapter 9.", (), (0,), "invalid"),
        ("See Chapter 9, and again Chapter 9.", (), (0,), "invalid"),
        ("Yes [Source 1] (Module 3, Chapter 2).", (1,), (0,), "invalid"),
        ("Yes [Source 8].", (), (8,), "invalid"),
        ("Yes.", (), (), "none"),
        ("Chapters 1 and 2 of a module", (), (), "none"),
    ],
)
def test_cited(text: str, sources: tuple[int, ...], invalid: tuple[int, ...], outcome: str) -> None:
    found = cite(text)
    assert found.answer.citations == sources
    assert found.answer.invalid_citations == invalid
    assert [link.source for link in found.links] == list(sources)
    assert (found.decision.outcome, found.decision.value) == (outcome, len(sources))


def test_links_lead_to_headings() -> None:
    links = cite("Yes [Source 1] [Source 2].").links
    assert [link.url for link in links] == ["/module-1/c2#names", "/module-2/c2"]
    assert [link.title for link in links] == ["Nodes and the graph > Names", "Module 2: M2 > Chapter 2: Title 2"]


def test_a_decision_names_what_leads_nowhere() -> None:
    assert cite("Yes [Source 8], Module 9, Chapter 9.").decision.reason == (
        "leads nowhere: Source 8, Module 9, Chapter 9"
    )
    assert cite("Chapter 2.").decision.reason == "in several modules: Chapter 2"


def test_places() -> None:
    place = book_place_of(section("x", 1, 2, "Nodes"))
    assert (place.module, place.chapter, place.path) == (1, 2, ("Module 1: M1", "Chapter 2: Title 2", "Nodes"))
    by_path = book_place_of(Chunk("m#1", "module-3/chapter-4-maps.md", "x", section=("Maps",)))
    assert (by_path.module, by_path.chapter, by_path.url) == (3, 4, "/module-3/chapter-4-maps")
    nowhere = book_place_of(Chunk("n#1", "notes.md", "x"))
    assert (nowhere.module, nowhere.chapter, nowhere.path, nowhere.url) == (None, None, ("notes.md",), "/notes")
    opening = Chunk("o#1", "notes.md", "x", section=("Notes",), metadata={"heading": "Introduction", "url": "/n#notes"})
    assert (book_place_of(opening).path, book_place_of(opening).url) == (("Notes", "Introduction"), "/n#notes")
    odd = Chunk("p#1", "notes.md", "x", metadata={"module": True, "chapter": "four", "title": "T"})
    assert (book_place_of(odd).module, book_place_of(odd).chapter, book_place_of(odd).path) == (None, None, ("T",))


def test_different_titles() -> None:
    chunks = [section("a", 1, 1, "H"), section("b", 1, 1, "H"), section("c", 1, 1, "G"), section("d", 1, 2, "F")]
    assert different_titles(chunks, 2) == ["Chapter 1: Title 1 > H", "Chapter 1: Title 1 > G"]
    assert different_titles([], 3) == []


# The script that sets a floor: its rule, and that it looks at one half of the questions.

# Benchmarks are scripts and no package: a type checker would meet the file under two names.
_script: Any = import_module("benchmarks.textbook_floor")
best_floor, is_development, main, share_below = (
    _script.best_floor,
    _script.is_development,
    _script.main,
    _script.share_below,
)


@given(st.lists(st.floats(-1, 1, width=32), max_size=60))
def test_the_highest_floor_at_which_few_find_nothing(cosines: list[float]) -> None:
    floor = best_floor(cosines)
    assert floor == 0 or share_below(cosines, floor) <= 0.05
    assert floor == 1 or share_below(cosines, floor + 0.01) > 0.05


def test_one_of_twenty_may_find_nothing() -> None:
    assert best_floor([0.3] + [0.625] * 19) == 0.62
    assert best_floor([0.3, 0.4] + [0.625] * 18) == 0.4


def test_halves_by_the_text_of_a_question() -> None:
    halves = [is_development(Case(Query(f"q{n}", f"question {n}"))) for n in range(200)]
    assert 70 < sum(halves) < 130
    assert is_development(Case(Query("a", "question 3"))) == is_development(Case(Query("b", "question 3")))


def test_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in PAGES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    page = {"context_reference": ["module-1/chapter-1-nodes.md"]}
    queries = [{"query_id": f"q{n}", "query": f"a topic carries messages {n}", **page} for n in range(20)]
    outside = [{"query_id": f"n{n}", "query": f"zebra {n}", "query_type": "negative"} for n in range(10)]
    lines = "".join(json.dumps(query) + "\n" for query in [*queries, *outside])
    (tmp_path / "queries.jsonl").write_text(lines, encoding="utf-8")
    monkeypatch.setenv("RAG_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "argv", ["textbook_floor.py", "--book", str(tmp_path), "--profile", "mock"])
    main()
    said = capsys.readouterr().out
    assert "answerable questions of the development half" in said
    assert "mock/hashed-words: 0." in said
    monkeypatch.setattr(sys, "argv", ["textbook_floor.py", "--book", str(tmp_path / "none")])
    with pytest.raises(SystemExit, match=r"queries.jsonl. Name the questions"):
        main()


# Fusion of two rankings, and summaries that stand for their sections.

# Fusion of two rankings, and summaries that stand for their sections.

A, B, C, D = (section(name) for name in "ABCD")


class Fixed:
    """Returns the hits that it was made with."""

    def __init__(self, hits: Sequence[Hit]) -> None:
        self.hits = list(hits)

    def retrieve(self, query: str, k: int) -> list[Hit]:
        return self.hits[:k]


def worded(chunks: Sequence[Chunk], scores: Sequence[float]) -> list[Hit]:
    return [Hit(c, score, rank, "bm25") for rank, (c, score) in enumerate(zip(chunks, scores, strict=True), 1)]


NEAR, WORDED = near([A, B, C], [0.9, 0.7, 0.5]), worded([D, B], [12.0, 4.0])


def test_weights_over_stretched_scores() -> None:
    scores = {name[-1]: score for name, score in weighted(NEAR, WORDED).items()}
    assert scores == pytest.approx({"A": 0.7, "B": 0.35, "C": 0.0, "D": 0.3})


def test_equal_scores_count_fully_and_nothing_counts_nothing() -> None:
    assert set(weighted(near([A, B], [0.5, 0.5]), []).values()) == {0.7}
    assert weighted([], []) == {}
    assert list(weighted([], worded([D], [3.0])).values()) == [0.3]


def test_fused_hits_keep_their_cosines() -> None:
    hits = Fused(Fixed(NEAR), Fixed(WORDED), weighted).retrieve("q", 3)
    assert [hit.chunk.text for hit in hits] == ["A", "B", "D"]
    assert [hit.rank for hit in hits] == [1, 2, 3]
    assert hits[1].scores == pytest.approx({"dense": 0.7, "bm25": 4.0, "hybrid": 0.35})
    assert hits[2].scores["dense"] == 0.5  # only words have found it: the lowest cosine of the candidates
    assert all(hit.score == hit.scores["hybrid"] for hit in hits)


def test_fused_by_rank() -> None:
    hits = Fused(Fixed(NEAR), Fixed(WORDED), by_rank).retrieve("q", 9)
    assert [hit.chunk.text for hit in hits] == ["B", "A", "D", "C"]
    assert hits[0].score == pytest.approx(2 / 62)
    assert Fused(Fixed([]), Fixed([]), by_rank).retrieve("q", 9) == []


def test_sections_come_back_whole_by_the_better_cosine() -> None:
    sections = [Chunk(name, "p.md", f"the whole of {name}") for name in "abc"]
    summaries = near([Chunk(name, "p.md", "short") for name in "abc"], [0.6, 0.5, 0.4])
    own = near([sections[1]], [0.8])
    hits = SummariesFirst(Fixed(summaries), Fixed(own), lambda: sections).retrieve("q", 2)
    assert [(hit.chunk.text, hit.score) for hit in hits] == [("the whole of b", 0.8), ("the whole of a", 0.6)]
    assert hits[0].scores == {"dense": 0.8, "summary": 0.5}


def test_a_summary_of_a_section_that_was_left_out_is_passed_over() -> None:
    summaries = near([Chunk(name, "p.md", "short") for name in "ab"], [0.6, 0.5])
    hits = SummariesFirst(Fixed(summaries), Fixed([]), lambda: [Chunk("b", "p.md", "the whole")]).retrieve("q", 2)
    assert [(hit.chunk.chunk_id, hit.rank) for hit in hits] == [("b", 1)]


TEXT = """## Reading

One *node* reads. It has v. 2 and waits!

```python
Not = "a sentence."
```

| table | x |
|---|---|

$$ y. Z $$

Third sentence here? Fourth is left out. """


def test_a_summary_has_the_headings_and_the_first_sentences() -> None:
    chunk = Chunk("a", "p.md", TEXT, section=("Page", "Reading"))
    said = summary_of(chunk)
    assert said == "Page > Reading: One *node* reads. It has v. 2 and waits! Third sentence here?"


def test_a_section_without_prose_has_its_headings_and_one_without_these_its_text() -> None:
    code = "```\nx = 1\n```\n"
    assert summary_of(Chunk("a", "p.md", code, section=("Page",))) == "Page"
    assert summary_of(Chunk("a", "p.md", code)) == code


# Does a chunk hold what a student has selected?

TEN = "one two three four five six seven eight nine ten"


@pytest.mark.parametrize(
    ("selected", "text", "held"),
    [
        ("two  three\n\tfour", f"# Numbers\n\n{TEN}", True),
        ("two three", "one two\n\nthree", True),
        ("Best effort sends once.", "*Best effort* sends once.", True),  # a screen shows no marks
        ("cross", "across the grass", False),
        ("gras", "across the grass", False),
        ("cross", "across a cross", True),
        ("ros", "ROS 2 Humble", True),
        ("→ ★", "a → ★ b", True),
        ("→ ★", "a b", False),
        (TEN, "one two three four five six and so on", True),  # six of ten in a row
        (TEN, "one two three four five and six", False),
        (TEN, "one two three x four five six x seven eight nine", False),  # nine of ten, three in a row
        (TEN, "xone two three four five six", False),
        ("one two three", "one two", True),  # 60 % of three words are two
        ("one two three", "one x two x three", False),
        ("", "anything", False),
        (" \n\t\u00a0", "anything", False),
    ],
)
def test_held(selected: str, text: str, held: bool) -> None:
    assert Selection(selected).is_in(text) is held


@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=8), st.lists(st.sampled_from(["a", "b", "c"]), max_size=12))
def test_a_run_of_three_fifths_and_nothing_less(selected: list[str], text: list[str]) -> None:
    runs = [end - start for start in range(len(selected)) for end in range(start + 1, len(selected) + 1)
            if selected[start:end] in [text[at : at + end - start] for at in range(len(text))]]  # fmt: skip
    longest = max(runs, default=0)
    expected = bool(selected) and longest * 10 >= len(selected) * 6
    assert Selection(" ".join(selected)).is_in(" ".join(text)) is expected


@pytest.mark.parametrize("characters", [10_000, 200_000])
def test_a_long_selection_is_looked_for_in_bounded_time(characters: int) -> None:
    selection = Selection("word after word, " * (characters // 17))
    text = f"{'word after word. ' * 300} other " * 2
    with bounded(10):
        assert not any(selection.is_in(f"{text} {n}") for n in range(10))


def test_what_is_no_text_is_no_selection() -> None:
    assert selected_text({}) is None
    assert selected_text({"selected_text": ["a"]}) is None
    found = selected_text({"selected_text": " a\nb "})
    assert found is not None
    assert found.text == "a b"
