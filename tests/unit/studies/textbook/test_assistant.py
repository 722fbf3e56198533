"""The assistant from end to end on a small book: each step leaves its decision."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest

from rag_harness.core.errors import QueryTooLongError
from rag_harness.core.protocols import Experiment
from rag_harness.core.types import Decision, Hit, PipelineOutput, Query
from rag_harness.pipelines.experiments import experiment as build
from rag_harness.pipelines.parts import RunParts
from rag_harness.retrieval.retrievers import Rarity
from rag_harness.studies.conversations import Rewriting
from rag_harness.studies.textbook import Assistant, AssistantRules, Design, textbook
from rag_harness.studies.textbook_retrieval import MOST, Passages, Selection
from tests.unit.studies.textbook.book import PAGES, Says, parts_over

ALL = [
    "t1", "t1-nopassage", "t1-both", "t1-adaptive", "t1-boost0", "t1-boost12", "t1-boost15", "t1-floor07", "t2", "t3",
    "t3-rrf", "t4", "t5",
]  # fmt: skip
QUERY = Query("q", "topic messages publishers subscribers")
SELECTED = "Quartz drifts by twenty parts in a million."


@pytest.fixture(scope="module", autouse=True)
def no_settings() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        for name in ("KB_DIR", "DRY_RUN", "OVERWRITE", "RAG_PROFILE", "RAG_MODE"):
            patched.delenv(name, raising=False)
        yield


@pytest.fixture(scope="module")
def parts(no_settings: None, tmp_path_factory: pytest.TempPathFactory) -> RunParts:
    return parts_over(tmp_path_factory.mktemp("parts"))


def assistant_of(parts: RunParts, chat: Any, **rules: Any) -> Assistant:
    """Return t1's assistant with small chunks, so that the book has some, and with another model."""
    made = textbook("t1", parts, Design(least=0))
    assert isinstance(made.pipeline, Assistant)
    return replace(made.pipeline, chat=chat, rules=replace(made.pipeline.rules, **rules))


def ask(assistant: Assistant, query: Query = QUERY) -> PipelineOutput:
    return asyncio.run(assistant.answer(query))


async def given(made: Experiment, hits: Sequence[Hit]) -> PipelineOutput:
    assert made.answer_from is not None
    return await made.answer_from(QUERY, hits)


def decided(output: PipelineOutput) -> dict[str, Decision]:
    return {decision.name: decision for decision in output.decisions}


@pytest.fixture(scope="module")
def answered_by(no_settings: None, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], RunParts]:
    """Return the parts of a run whose answers are one model's. All experiments share them, as they do in a run."""
    root = tmp_path_factory.mktemp("run")
    return cache(lambda chat: parts_over(root, chat_model=chat))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("chat", ["mock/placeholder", "embedded/extractive"])
def test_every_experiment_answers(answered_by: Callable[[str], RunParts], name: str, chat: str) -> None:
    made = build(name, answered_by(chat))
    made.prepare([QUERY])  # type: ignore[misc]
    output = asyncio.run(made.pipeline.answer(QUERY))
    last = ["confidence", "answer", "decision" if name == "t1-floor07" else "citations"]
    assert list(decided(output))[-5:] == [*last, "disclaimer", "decision"] or list(decided(output))[-3:] == last
    assert (output.answer.abstained, len(output.calls)) == ((True, 0) if name == "t1-floor07" else (None, 1))
    assert output.retrieved
    assert output.confidence is not None
    assert 0 <= output.confidence <= 1
    assert made.retriever is not None
    assert made.retriever.retrieve("topic", 2)
    assert asyncio.run(given(made, output.retrieved[:1])).context == output.retrieved[:1]


def test_what_experiments_are_made_of_tells_them_apart(parts: RunParts) -> None:
    from rag_harness.core.files import json_digest

    digests = {name: json_digest(dict(build(name, parts).ingredients)) for name in ALL}
    assert len(set(digests.values())) == len(ALL)
    ingredients = build("t1", parts).ingredients
    assert (ingredients["temperature"], ingredients["max_output_tokens"]) == (0.3, 800)
    assert (ingredients["floor"], ingredients["candidates"], ingredients["top_k"]) == (0.0, 10, 5)
    assert build("t1-floor07", parts).ingredients["floor"] == 0.7
    assert [build(f"t1{more}", parts).ingredients["design"]["boost"] for more in ("", "-boost0", "-boost12")] == [
        2.0,
        1.0,
        1.2,
    ]
    asked = build("t1", parts_over(parts.settings.path("."), rewrite_model="a/b")).ingredients
    assert asked["rewrite_by"][0] == "a/b"


def test_the_model_is_asked_with_the_sampling_of_the_record(parts: RunParts) -> None:
    asked = parts.endpoints.settings_of("answer", temperature=0.3, max_output_tokens=800)
    assert cast("Assistant", build("t1", parts).pipeline).chat is parts.chat(temperature=0.3, max_output_tokens=800)
    assert (asked.temperature, asked.max_output_tokens) == (0.3, 800)


def test_answered(parts: RunParts) -> None:
    chat = Says()
    output = ask(assistant_of(parts, chat, floor=0.1))
    system, user = chat.asked[0]
    assert "ONLY the provided context" in system.content
    assert user.content.startswith(
        "Context:\n[Source 1: module-1/chapter-1-nodes.md | Section: Module 1: Nerves > Chapter 1: Nodes > Topics | "
        "Relevance: 0."
    )
    assert user.content.endswith("\n\nQuestion: topic messages publishers subscribers")
    assert [hit.rank for hit in output.context] == list(range(1, len(output.context) + 1))
    said = decided(output)
    assert {name: decision.outcome for name, decision in said.items()} == {
        "floor chosen": "calibrated",
        "boost": "none",
        "floor": "kept",
        "confidence": "enough",
        "answer": "answered",
        "citations": "cited",
        "disclaimer": "none",
        "decision": "pass",
    }
    assert said["floor"].threshold == said["confidence"].threshold == 0.1
    assert output.answer.text == "A topic carries messages [Source 1]."
    links = next(stage.detail["links"] for stage in output.stages if stage.name == "parse")
    assert links == [{"source": 1, "title": "Chapter 1: Nodes > Topics", "url": "/module-1/chapter-1#topics"}]


def test_low_confidence_is_said_with_sections_to_look_at(parts: RunParts) -> None:
    output = ask(assistant_of(parts, Says(), floor=0.4))
    assert output.context
    assert output.confidence is not None
    assert output.confidence < 0.4
    said = decided(output)
    assert (said["confidence"].outcome, said["disclaimer"].outcome) == ("low", "added")
    assert (said["decision"].outcome, said["decision"].reason) == ("warn", "LOW_RELEVANCE")
    assert output.answer.text.startswith(
        "A topic carries messages [Source 1].\n\nPlease check this in the book: the sections found match the question "
        "only loosely. See also: Chapter 1: Nodes > Topics; "
    )
    assert output.answer.text.count(";") == 2
    assert output.answer.citations == (1,)


def test_an_answer_without_a_citation_gets_the_disclaimer(parts: RunParts) -> None:
    output = ask(assistant_of(parts, Says("It carries messages."), floor=0.1))
    assert output.answer.text == ("It carries messages.\n\nPlease check this in the book: the answer names no section.")
    assert decided(output)["disclaimer"].reason == "the answer names no section"
    assert decided(output)["citations"].outcome == "none"
    assert decided(output)["decision"].reason == "NO_CITATION"


def test_who_says_that_he_does_not_know_needs_no_disclaimer(parts: RunParts) -> None:
    output = ask(assistant_of(parts, Says("I don't know."), floor=0.4))
    assert (output.answer.text, output.answer.abstained) == ("I don't know.", True)
    assert decided(output)["answer"].outcome == "abstained"
    assert decided(output)["disclaimer"].outcome == "none"
    assert (decided(output)["decision"].outcome, decided(output)["decision"].reason) == ("abstain", "NOT_IN_SOURCES")


def test_nothing_found_asks_no_model(parts: RunParts) -> None:
    chat = Says()
    output = ask(assistant_of(parts, chat, floor=1.0))
    assert chat.asked == []
    assert output.calls == ()
    assert output.answer.abstained
    assert output.answer.text.startswith(
        "I couldn't find relevant content. Related topics: Chapter 1: Nodes > Topics; "
    )
    assert output.answer.text.count(";") == 2
    assert output.context == ()
    assert output.retrieved
    assert [decided(output)[name].outcome for name in ("floor", "confidence", "answer", "decision")] == [
        "nothing found", "low", "declined", "abstain",
    ]  # fmt: skip
    assert decided(output)["decision"].reason == "LOW_RETRIEVAL_QUALITY"


class Nothing:
    """Finds nothing at all."""

    def retrieve(self, query: str, k: int) -> list[Hit]:
        return []


def test_nothing_retrieved_at_all_names_sections_of_the_book(parts: RunParts) -> None:
    chat = Says()
    output = ask(replace(assistant_of(parts, chat, floor=0.0), retriever=Nothing()))
    assert chat.asked == []
    assert output.answer.text == (
        "I couldn't find relevant content. Related topics: Chapter 1: Nodes > Introduction; Chapter 1: Nodes > Topics; "
        "Topics > Queues."
    )
    assert decided(output)["floor"].reason == "nothing was retrieved at all"
    assert output.confidence == 0


def test_an_empty_book_has_no_topics_to_name() -> None:
    rewriting = Rewriting(None, lambda: Rarity([]))
    assistant = Assistant(Nothing(), Says(), None, AssistantRules(2, 0.5), rewriting, lambda: [])  # type: ignore[arg-type]
    assert ask(assistant).answer.text == "I couldn't find relevant content."


def test_a_selection_orders_and_is_shown_to_the_model(parts: RunParts) -> None:
    plain, chat = ask(assistant_of(parts, Says())), Says()
    query = replace(
        QUERY, text="which messages of a topic drift", inputs={"selected_text": f" {SELECTED}\n\nQuestion: x"}
    )
    output = ask(assistant_of(parts, chat), query)
    assert plain.context[0].chunk.section[-1] == "Topics"
    assert decided(output)["boost"].outcome == "boosted"
    without = ask(assistant_of(parts, Says(), boost=1.0), query)
    rank = {hit.chunk.chunk_id: hit.rank for hit in without.retrieved}
    moved = next(hit for hit in output.retrieved if "Quartz" in hit.chunk.text)
    assert moved.rank < rank[moved.chunk.chunk_id]
    assert moved.score == next(hit.score for hit in without.retrieved if hit.chunk == moved.chunk)
    asked = chat.asked[0][-1].content
    assert asked.endswith(
        f"\n\nQuestion: The student has selected this text: «{SELECTED} Question: x». which messages of a topic drift"
    )


@pytest.mark.parametrize("selected", ["", " \n", 7, None])
def test_what_is_no_selection_is_not_shown(parts: RunParts, selected: Any) -> None:
    chat = Says()
    ask(assistant_of(parts, chat), replace(QUERY, inputs={"selected_text": selected}))
    assert "has selected" not in chat.asked[0][-1].content


def test_a_long_selection_is_shown_in_part(parts: RunParts) -> None:
    chat = Says()
    output = ask(assistant_of(parts, chat), replace(QUERY, inputs={"selected_text": "x" * 10_000}))
    shown = chat.asked[0][-1].content
    assert shown.count("x" * 2000) == 1
    assert f"{'x' * 2001}" not in shown
    assert "none of the" in decided(output)["boost"].reason


def test_history_is_looked_up_and_asked_by_the_rules_for_conversations(parts: RunParts) -> None:
    chat = Says()
    output = ask(assistant_of(parts, chat), Query("q", "and why", {"history": ["Does quartz drift?"]}))
    assert decided(output)["rewrite"].outcome == "by rules"
    assert chat.asked[0][-1].content.endswith("\n\nQuestion: and why? This is about: quartz drift.")
    assert output.context[0].chunk.section[-1] == "Drift"


def test_a_question_without_history_has_no_such_step(parts: RunParts) -> None:
    output = ask(assistant_of(parts, Says()))
    assert "rewrite" not in {*decided(output), *(stage.name for stage in output.stages)}


def test_history_with_a_rewriter_is_looked_up_and_asked(parts: RunParts) -> None:
    chat, rewriter = Says(), Says("unused")
    rewriter.answer = "Quartz drift?"
    assistant = assistant_of(parts, chat)
    assistant = replace(assistant, rewriting=replace(assistant.rewriting, rewriter=rewriter))
    output = ask(assistant, replace(QUERY, inputs={"history": ["Which clocks drift?"]}))
    assert decided(output)["rewrite"].outcome == "by model"
    assert chat.asked[0][-1].content.endswith('Question: {"answer": "Quartz drift?"}')
    assert [call.role for call in output.calls] == ["rewrite", "answer"]
    assert output.context[0].chunk.section[-1] == "Drift"


@pytest.mark.parametrize(
    ("text", "invalid", "outcome", "named"),
    [
        ("Module 9, Chapter 9 says so.", (0,), "invalid", "Module 9, Chapter 9"),
        ("[Source 99]", (99,), "invalid", "Source 99"),
    ],
)
def test_citations_that_lead_nowhere(
    parts: RunParts, text: str, invalid: Sequence[int], outcome: str, named: str
) -> None:
    output = ask(assistant_of(parts, Says(text), floor=0.1))
    assert output.answer.invalid_citations == invalid
    assert decided(output)["citations"].outcome == outcome
    assert decided(output)["disclaimer"].outcome == "added"
    assert decided(output)["decision"].reason == f"NO_CITATION; UNKNOWN_SOURCE: {named}"


LONG = "# Long\n\n## One\n\n" + "".join(f"Sentence number {n} of a long section of the book.\n\n" for n in range(1_000))
ODD = {
    "a.md": "No heading at all.\n",
    "b.md": "# B\n\n### Deep first\n\nAn H3 before any H2.\n",
    "c.md": LONG,
    "d.md": "---\ntitle: D\nchapter: 4\n---\n\n# D\n\n## Same\n\nFirst.\n\n## Same\n\nSecond.\n\n## Tiny\n\nTwenty.\n",
}


@pytest.fixture(scope="module")
def odd_parts(no_settings: None, tmp_path_factory: pytest.TempPathFactory) -> RunParts:
    return parts_over(tmp_path_factory.mktemp("odd"), ODD)


@pytest.mark.parametrize("name", ["t1", "t2", "t3", "t4", "t5"])
def test_odd_pages_are_answered_from(odd_parts: RunParts, name: str) -> None:
    made = build(name, odd_parts)
    for words in ("heading at all", "H3 before any", "Sentence number 77", "Twenty", "Second"):
        output = asyncio.run(made.pipeline.answer(Query("q", words)))
        assert output.answer.text
        assert output.context


def test_a_chapter_without_its_module_is_no_citation(tmp_path: Path) -> None:
    parts = parts_over(tmp_path, {"d.md": ODD["d.md"]})
    output = ask(assistant_of(parts, Says("As Chapter 4 says."), floor=0.0), Query("q", "Second"))
    assert decided(output)["citations"].reason == "leads nowhere: Chapter 4"
    assert "| Section: D" in source_lines(parts)


def source_lines(parts: RunParts) -> str:
    chat = Says()
    ask(assistant_of(parts, chat, floor=0.0), Query("q", "Second"))
    return chat.asked[0][-1].content


def test_the_book_has_its_own_data(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.rag_harness.data.textbook]\nkb = "book"\n', encoding="utf-8")
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "a.md").write_text("# A\n\nOther.\n", encoding="utf-8")
    from rag_harness.core.settings.loading import load_settings

    parts_over(tmp_path)
    made = build("t1", RunParts(load_settings({"profile": "mock"}, {"kb_dir": "kb"}, tmp_path)))
    assert made.data == "textbook"
    assert {chunk.doc_id for chunk in made.chunks()} == set(PAGES)  # type: ignore[misc]


def test_sections_and_summaries_are_embedded_before_the_first_question(tmp_path: Path) -> None:
    parts = parts_over(tmp_path)
    made = build("t5", parts)
    made.prepare([QUERY])  # type: ignore[misc]
    computed = parts.embedder().computed
    ask(cast("Assistant", made.pipeline))
    assert parts.embedder().computed == computed


# The selected passage as a candidate: found anywhere in the book, added where the question does not find it.

DRIFT = "Quartz drifts by twenty parts in a million."


def assistant_with_passages(parts: RunParts, candidates: int = 2, **design: Any) -> Assistant:
    """Return t1's assistant with small chunks and few candidates, so that a passage can be missed."""
    made = textbook("t1", parts, Design(least=0, **design))
    assert isinstance(made.pipeline, Assistant)
    return replace(made.pipeline, chat=Says(), rules=replace(made.pipeline.rules, candidates=candidates))


def ask_of_passage(
    assistant: Assistant, selected: object, text: str = "topic messages publishers subscribers"
) -> PipelineOutput:
    return asyncio.run(assistant.answer(Query("q", text, {"selected_text": selected})))


def holding(output: PipelineOutput, text: str) -> list[str]:
    return [hit.source for hit in output.retrieved if text in hit.chunk.text]


def test_the_passage_is_a_candidate_though_the_question_does_not_find_it(tmp_path: Path) -> None:
    parts = parts_over(tmp_path)
    without = ask_of_passage(assistant_with_passages(parts, passage=False), DRIFT)
    assert holding(without, DRIFT) == []
    assert "passage" not in decided(without)
    output = ask_of_passage(assistant_with_passages(parts), DRIFT)
    assert holding(output, DRIFT) == ["passage"]
    assert decided(output)["passage"] == Decision(
        "passage", "added", 1.0, reason="1 section holds the selection, and cosine missed 1"
    )
    assert decided(output)["boost"].outcome == "boosted"
    assert len(output.retrieved) == 3
    assert [hit.rank for hit in output.retrieved] == [1, 2, 3]


def test_an_added_passage_has_its_own_cosine_and_stays_behind_without_a_boost(tmp_path: Path) -> None:
    parts = parts_over(tmp_path)
    all_found = ask_of_passage(assistant_with_passages(parts, candidates=10, boost=1.0), DRIFT)
    (own,) = (hit for hit in all_found.retrieved if DRIFT in hit.chunk.text)
    added = ask_of_passage(assistant_with_passages(parts, boost=1.0), DRIFT).retrieved[-1]
    assert added.source == "passage"
    assert added.scores["dense"] == pytest.approx(own.score, abs=1e-6)
    assert added.score <= all_found.retrieved[1].score


def test_a_passage_that_is_found_is_not_added_again(tmp_path: Path) -> None:
    output = ask_of_passage(assistant_with_passages(parts_over(tmp_path)), DRIFT, "quartz drifts parts million")
    assert holding(output, DRIFT) == ["dense"]
    assert (decided(output)["passage"].outcome, decided(output)["passage"].value) == ("found", 0.0)


def test_a_selection_that_stands_nowhere_changes_nothing(tmp_path: Path) -> None:
    parts = parts_over(tmp_path)
    output, without = (
        ask_of_passage(assistant_with_passages(parts), "Zebras graze."),
        ask_of_passage(assistant_with_passages(parts, passage=False), "Zebras graze."),
    )
    assert output.retrieved == without.retrieved
    assert decided(output)["passage"].reason == "no section was found that holds the selection"


@pytest.mark.parametrize("selected", ["", " \n", 7, None])
def test_no_selection_looks_for_no_passage(tmp_path: Path, selected: object) -> None:
    output = ask_of_passage(assistant_with_passages(parts_over(tmp_path), search_selection=True), selected)
    assert len(output.retrieved) == 2
    assert not {"passage", "search"} & decided(output).keys()


def repeated(times: int) -> dict[str, str]:
    """Return a book with the same sentence in several chapters."""
    return PAGES | {
        f"module-3/chapter-{n}-again.md": f"# Again {n}\n\n## Part\n\n{DRIFT} Chapter {n} goes on.\n"
        for n in range(1, times)
    }


def test_a_selection_that_stands_twice_adds_both_sections(tmp_path: Path) -> None:
    output = ask_of_passage(assistant_with_passages(parts_over(tmp_path, repeated(2))), DRIFT)
    assert holding(output, DRIFT) == ["passage", "passage"]
    assert decided(output)["passage"].reason == "2 sections hold the selection, and cosine missed 2"


def test_a_selection_that_stands_everywhere_adds_none(tmp_path: Path) -> None:
    output = ask_of_passage(assistant_with_passages(parts_over(tmp_path, repeated(MOST + 1))), DRIFT)
    assert "passage" not in holding(output, DRIFT)
    assert decided(output)["passage"].outcome == "not told apart"
    assert decided(output)["passage"].threshold == MOST


def test_both_are_searched_together(tmp_path: Path) -> None:
    output = ask_of_passage(
        assistant_with_passages(parts_over(tmp_path), search_selection=True, boost=1.0), DRIFT, "and the other one?"
    )
    assert output.retrieved[0].chunk.section[-1] == "Drift"
    assert decided(output)["search"] == Decision("search", "question and selection", float(len(DRIFT)))


def test_the_question_is_searched_alone_where_both_are_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passages = assistant_with_passages(parts_over(tmp_path)).passages
    assert isinstance(passages, Passages)

    def refuse(text: str) -> None:
        raise QueryTooLongError("too long", 600, 512)

    monkeypatch.setattr(passages.retrieval.embedder, "check_query", refuse)
    searched, decision = passages.searched("and here?", Selection(DRIFT))
    assert (searched, decision.outcome) == ("and here?", "question alone")
    assert decision.reason == "with the selection the question has 600 tokens, and the embedding model reads 512"


def test_a_long_selection_is_searched_in_part(tmp_path: Path) -> None:
    passages = assistant_with_passages(parts_over(tmp_path)).passages
    assert isinstance(passages, Passages)
    searched, decision = passages.searched("and here?", Selection("word " * 1_000))
    assert len(searched) == len("and here? ") + 400
    assert decision.value == 400
