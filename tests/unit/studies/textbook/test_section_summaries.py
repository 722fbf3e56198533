"""Summaries that a model of role ``writer`` writes: what it is asked, what is kept of it, what the rows say."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.errors import CriticalError, ModelCallError, ModelOutputError, RagHarnessError, RecordingMissError
from rag_harness.core.files import json_digest
from rag_harness.core.types import Chunk, Completion, Decision, Message, PipelineOutput, Query, Usage
from rag_harness.models.dry_run import MockChat
from rag_harness.models.prompts import Prompts
from rag_harness.pipelines.experiments import experiment as build
from rag_harness.retrieval.builder import Retrieval
from rag_harness.retrieval.chunking.chunkers import summary_of
from rag_harness.studies.textbook import Design
from rag_harness.studies.textbook_retrieval import Writer, written_by
from tests.unit.studies.textbook.book import parts_over

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
