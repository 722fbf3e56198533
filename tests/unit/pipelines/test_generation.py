"""From a model's words to an answer, and the four pipelines from end to end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from rag_harness.core.errors import CriticalError, ModelCallError, ModelOutputError, SettingsError
from rag_harness.core.registry import resolve
from rag_harness.core.settings.loading import load_settings
from rag_harness.core.text.refusals import declines
from rag_harness.core.text.terms import cited_sources
from rag_harness.core.types import Chunk, Completion, Hit, Matrix, Message, PipelineOutput, Query, Usage
from rag_harness.models.prompts import Prompts, load_prompts
from rag_harness.pipelines.experiments import experiment as build
from rag_harness.pipelines.parts import Generator, RunParts, read_answer, response_format
from rag_harness.pipelines.trace import Trace
from rag_harness.retrieval import builder as retrieval_room
from rag_harness.retrieval.builder import spec_of
from rag_harness.studies.retail import FilteredRag, StandardRag
from tests.unit.hits import hits_of
from tests.unit.pipelines.mock_parts import parts_of, write_kb

PAGES = {
    "returns.md": "# Returns\n\nYou can return a lamp within 45 days.\n\n## Refunds\n\nWe refund in 5 days.\n",
    "shipping.md": "# Shipping\n\nExpress delivery costs €9.90 in Zone 1.\n",
    "warranty.md": "# Warranty\n\nThe warranty of a lamp lasts 2 years.\n",
}
QUERY = Query("q1", "Within how many days can I return a lamp?")


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("No source.", []),
        ("A [Source 1] and B [Source 3].", [1, 3]),
        ("Twice [Source 2] [Source 2].", [2]),
        ("[Sources 1, 3] [source 2; 4] [Sources 5 and 6]", [1, 3, 2, 4, 5, 6]),
        ("[Source 1: returns.md]", [1]),
        ("[Source 1: a.md, Source 3: b.md]", [1, 3]),
        ("[ Source 9 ] [SOURCE 0]", [9, 0]),
        ("[Source 12345678]", []),
        ("[1] Source 2 (Source 3) [Resource 4]", []),
        ("[Source]", []),
    ],
)
def test_cited_sources(text: str, cited: list[int]) -> None:
    assert cited_sources(text) == cited


def said(answer: str, **more: Any) -> str:
    return json.dumps({**more, "answer": answer})


def test_citation_of_a_source_that_is_not_there() -> None:
    answer = read_answer(said("A [Source 2], B [Source 9], C [Source 0]."), sources=5, reasoning=False)
    assert answer.citations == (2,)
    assert answer.invalid_citations == (9, 0)
    assert answer.reasoning_steps is None


@pytest.mark.parametrize(
    "raw",
    [
        '```json\n{"answer": "Yes."}\n```',
        '```\n{"answer": "Yes."}\n```\n',
        '  ```JSON\n\n{"answer": "Yes."}\n\n```',
        '```json {"answer": "Yes."} ```',
        '\n{"answer": "Yes.", "extra": 1}',
    ],
)
def test_fenced_json(raw: str) -> None:
    answer = read_answer(raw, 0, reasoning=False)
    assert (answer.text, answer.raw) == ("Yes.", raw)


def test_fence_inside_an_answer_stays() -> None:
    text = "Run ```\nx\n``` twice."
    assert read_answer(said(text), 0, reasoning=False).text == text


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        ("It costs €29.", "not the JSON"),
        ("", "not the JSON"),
        ('{"answer": "cut o', "not the JSON"),
        ('["answer"]', "not the JSON"),
        ('{"reply": "Yes."}', "not the JSON"),
        ('{"answer": 29}', "not the JSON"),
        ('{"answer": null}', "not the JSON"),
        ('{"answer": ' + "9" * 5000 + "}", "not the JSON"),
        ("[" * 100_000, "not the JSON"),
        ('{"answer": ""}', "empty"),
        ('{"answer": " \\n"}', "empty"),
    ],
    ids=[
        "prose",
        "nothing",
        "cut off",
        "list",
        "other key",
        "number",
        "null",
        "huge number",
        "deep",
        "empty",
        "blank",
    ],
)
def test_unreadable_answer_keeps_what_was_said(raw: str, complaint: str) -> None:
    with pytest.raises(ModelOutputError, match=complaint) as caught:
        read_answer(raw, 5, reasoning=False)
    assert caught.value.raw == raw
    assert len(str(caught.value)) < 300


def test_an_answer_that_its_limit_has_cut_off_says_so() -> None:
    with pytest.raises(ModelOutputError, match="limit") as caught:
        read_answer('{"answer": "cut o', 5, reasoning=False, finish_reason="length")
    assert str(caught.value) == (
        "The model reached its limit in the middle of its answer (finish_reason 'length'); allow more with "
        "max_tokens of role answer, or have it say less."
    )
    assert caught.value.raw == '{"answer": "cut o'
    # What is whole counts, whatever the server says of its end.
    assert read_answer(said("Yes."), 5, reasoning=False, finish_reason="length").text == "Yes."


def test_half_characters_are_joined_or_replaced() -> None:
    # A server may cut an emoji in two, at the border of two events.
    answer = read_answer('{"answer": "\ud83d\ude42 \\ud83d\\ude42 \\ud83d!"}', 0, reasoning=False)
    assert answer.text == "🙂 🙂 \ufffd!"
    (answer.raw + answer.text).encode()


def test_reasoning_steps() -> None:
    assert read_answer(said("Yes.", reasoning_steps=["a", "b"]), 0, reasoning=True).reasoning_steps == ("a", "b")


@pytest.mark.parametrize("more", [{}, {"reasoning_steps": []}, {"reasoning_steps": [" "]}, {"reasoning_steps": "a"}])
def test_missing_reasoning_steps(more: dict[str, Any]) -> None:
    with pytest.raises(ModelOutputError, match=r"no reasoning steps|not the JSON"):
        read_answer(said("Yes.", **more), 0, reasoning=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I don't know.", True),
        ("I don’t know", True),
        ("Sorry, i do not know that.", True),
        ("I dont know", True),
        ("You don't know the fee? It is €29.", False),
        ("AI don't know", False),
        ("It is not known.", False),
    ],
)
def test_declines(text: str, expected: bool) -> None:
    assert declines(text) is expected
    assert read_answer(said(text), 0, reasoning=False).abstained is (expected or None)


def test_schema_puts_the_steps_first() -> None:
    schema = response_format(True)["json_schema"]["schema"]
    assert list(schema["properties"]) == schema["required"] == ["reasoning_steps", "answer"]
    assert list(response_format(False)["json_schema"]["schema"]["properties"]) == ["answer"]


# Prompts


def test_prompts_number_the_sources() -> None:
    system, user = load_prompts("e2").messages("How {much}?", hits_of(["One {context}.", "Two."]))
    assert (system.role, user.role) == ("system", "user")
    assert user.content == (
        "Context:\n[Source 1: page.md] One {context}.\n\n[Source 2: page.md] Two.\n\nQuestion: How {much}?"
    )
    assert "I don't know" in load_prompts("e1").system


def test_prompt_files_override_one_by_one(tmp_path: Path) -> None:
    (tmp_path / "e2.system.md").write_text("Say {JSON}.\n", encoding="utf-8")
    prompts = load_prompts("e2", tmp_path)
    assert prompts.system == "Say {JSON}."
    assert prompts.user == load_prompts("e2").user
    assert load_prompts("e3", tmp_path) == load_prompts("e3")


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("e2.user.md", b"Answer!", r"e2\.user\.md has no \{question\}"),
        ("e2.user.md", b"\xff{question}", r"e2\.user\.md: not UTF-8 at byte 0"),
    ],
)
def test_bad_prompt_file(tmp_path: Path, name: str, content: bytes, complaint: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SettingsError, match=complaint):
        load_prompts("e2", tmp_path)


def test_missing_prompts(tmp_path: Path) -> None:
    assert load_prompts("e2", tmp_path / "none") == load_prompts("e2")
    with pytest.raises(SettingsError, match=r"No prompt e9\.system\.md"):
        load_prompts("e9", tmp_path)


# Pipelines


def run(pipeline: Any) -> PipelineOutput:
    return asyncio.run(pipeline.answer(QUERY))  # type: ignore[no-any-return]


@pytest.fixture
def kb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return write_kb(tmp_path, PAGES, monkeypatch)


@pytest.mark.parametrize(
    ("experiment", "retrieved", "context"), [("e1", 0, 0), ("e2", 2, 2), ("e3", 3, 2), ("e4", 3, 2)]
)
@pytest.mark.parametrize("chat", ["mock/placeholder", "embedded/extractive"])
def test_pipelines_from_end_to_end(kb: Path, chat: str, experiment: str, retrieved: int, context: int) -> None:
    parts = parts_of(kb, chat_model=chat)
    output = run(build(experiment, parts).pipeline)
    assert (len(output.retrieved), len(output.context)) == (retrieved, context)
    assert (output.model, output.usage.calls) == (chat, 1)
    assert output.answer.text
    assert output.answer.invalid_citations == ()
    assert (output.answer.reasoning_steps is not None) == (experiment == "e4")
    reranked = experiment in ("e3", "e4")
    assert all((hit.rerank_score is not None) == reranked for hit in (*output.retrieved, *output.context))
    assert [hit.rank for hit in output.context] == list(range(1, context + 1))
    times = {stage.name: stage.ms for stage in output.stages}
    assert ("retrieve" in times) == (experiment != "e1")
    assert ("rerank" in times) == reranked
    assert times["generate"] >= 0
    if chat == "embedded/extractive":
        assert ("45 days" in output.answer.text) == (experiment != "e1")
        assert output.answer.abstained is (True if experiment == "e1" else None)


def test_prompts_of_the_settings_are_used(kb: Path) -> None:
    (kb / "prompts").mkdir()
    (kb / "prompts" / "e3.system.md").write_text("Mine.", encoding="utf-8")
    pipeline = cast("Any", build("e3", parts_of(kb, prompts="prompts")).pipeline)
    assert pipeline.generator.prompts.system == "Mine."


def test_prepare_embeds_every_query_once(kb: Path) -> None:
    retrieval = parts_of(kb).retrieval()
    retrieval.prepare(["a lamp", "a lamp", "a fee"])
    computed = retrieval.embedder.computed
    assert computed == len(retrieval.chunks) + 2
    retrieval.dense.retrieve("a fee", 2)
    assert retrieval.embedder.computed == computed
    again = parts_of(kb).retrieval()
    again.prepare(["a lamp", "a fee"])
    assert again.embedder.computed == 0


@pytest.mark.parametrize("change", ["a document", "the size of chunks"])
def test_only_texts_that_have_changed_are_embedded_again(kb: Path, change: str) -> None:
    long = "\n\n".join(f"## Part {n}\n\n" + f"Sentence {n} of a page about lamps. " * 12 for n in range(6))
    (kb / "kb" / "long.md").write_text(f"# Long\n\n{long}\n", encoding="utf-8")
    before = parts_of(kb, chunk_size=120, chunk_overlap=0).retrieval()
    before.prepare(["a lamp"])
    if change == "a document":
        text = (kb / "kb" / "long.md").read_text(encoding="utf-8")
        (kb / "kb" / "long.md").write_text(text.replace("Sentence 3", "Statement 3"), encoding="utf-8")
    after = parts_of(kb, chunk_size=120 if change == "a document" else 90, chunk_overlap=0).retrieval()
    new = {chunk.text for chunk in after.chunks} - {chunk.text for chunk in before.chunks}
    after.prepare(["a lamp"])
    assert 0 < after.embedder.computed == len(new) < len(after.chunks)


class Full:
    """An index that has no room."""

    def upsert(self, chunks: Sequence[Chunk], vectors: Matrix) -> None:
        raise CriticalError(f"no room for {len(chunks)} chunks of {vectors.shape[1]} numbers")


def test_what_was_embedded_is_written_though_the_index_fails(kb: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(retrieval_room, "resolve", lambda g, n: (lambda _: Full()) if g == "indexes" else resolve(g, n))
        with pytest.raises(CriticalError, match="no room for 4 chunks of 512 numbers"):
            _ = parts_of(kb).retrieval().index
    again = parts_of(kb).retrieval()
    _ = again.index
    assert again.embedder.computed == 0


def test_experiments_of_one_spec_share_a_retrieval_and_others_do_not(kb: Path) -> None:
    parts = parts_of(kb)
    assert parts.retrieval() is parts.retrieval(spec_of(parts.settings))
    assert build("e2", parts).retriever is cast("Any", build("e3", parts).pipeline).retriever
    whole = parts.retrieval(replace(spec_of(parts.settings), chunker="whole"))
    assert whole is not parts.retrieval()
    assert whole.embedder is parts.retrieval().embedder
    assert {chunk.chunk_id.partition("#")[2] for chunk in whole.chunks} == {"whole"}
    assert len(parts.retrieval().dense.retrieve("a lamp", 3)) == 3
    assert all(hit.chunk.chunk_id.endswith("#whole") for hit in whole.dense.retrieve("a lamp", 3))


def test_named_data_has_documents_of_its_own(kb: Path) -> None:
    (kb / "book").mkdir()
    (kb / "book" / "one.md").write_text("# One\n\nGravity pulls.", encoding="utf-8")
    (kb / "pyproject.toml").write_text('[tool.rag_harness.data.textbook]\nkb = "book"\ngates = ["t1: hit@1 >= 1"]\n')
    parts = RunParts(load_settings({"profile": "mock"}, {"kb_dir": "kb"}, kb))
    assert [document.doc_id for document in parts.data("textbook").documents] == ["one.md"]
    assert parts.data("textbook").digest != parts.data().digest
    assert parts.retrieval(data="textbook") is not parts.retrieval()
    assert parts.retrieval(data="textbook").dense.retrieve("gravity", 1)[0].chunk.doc_id == "one.md"
    with pytest.raises(SettingsError, match=r"Unknown data 'textbok'. Did you mean 'textbook'"):
        parts.data("textbok")
    asked = parts_of(kb)  # a knowledge base on the command line stands in for every named one
    assert asked.data("textbook").digest == asked.data().digest
    assert asked.settings.data[0].instead == "kb"


class Part:
    """Stands for any part; fails where it is told to."""

    model, revision = "test/part", "1"

    def __init__(self, fails: Exception | None = None, text: str = '{"answer": "Yes."}') -> None:
        self.fails, self.text = fails, text

    def _maybe(self) -> None:
        if self.fails:
            raise self.fails

    def retrieve(self, query: str, k: int) -> list[Hit]:
        self._maybe()
        return hits_of(["one", "two", "three"])[:k]

    def rerank(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        self._maybe()
        return [hit.reranked(float(n), n) for n, hit in enumerate(reversed(hits), 1)]

    async def complete(
        self, messages: Sequence[Message], response_format: Mapping[str, Any] | None = None
    ) -> Completion:
        self._maybe()
        return Completion(self.text, self.model, Usage(calls=1), total_ms=5.0, retries=2, waited_ms=9.0)


ERROR = ModelCallError("it broke")
PROMPTS = Prompts("system", "{context} {question}")


@pytest.mark.parametrize(
    ("retriever", "reranker", "chat", "stage", "retrieved", "context"),
    [
        (Part(ERROR), Part(), Part(), "retrieve", 0, 0),
        (Part(), Part(ERROR), Part(), "rerank", 3, 0),
        (Part(), Part(), Part(ERROR), "generate", 3, 2),
        (Part(), Part(), Part(text="no JSON"), "parse", 3, 2),
    ],
    ids=["retrieve", "rerank", "generate", "parse"],
)
def test_failure_knows_its_stage_and_keeps_the_hits(
    retriever: Part, reranker: Part, chat: Part, stage: str, retrieved: int, context: int
) -> None:
    pipeline = FilteredRag(retriever, reranker, Generator(chat, PROMPTS), candidates=3, top_k=2)
    with pytest.raises((ModelCallError, ModelOutputError)) as caught:
        run(pipeline)
    trace = getattr(caught.value, "rag_trace", None)
    assert isinstance(trace, Trace)
    assert trace.failed_stage == stage
    assert (len(trace.retrieved), len(trace.context)) == (retrieved, context)
    assert trace.milliseconds["retrieve"] >= 0


def test_reranked_order_is_the_context_and_the_first_order_is_kept() -> None:
    output = run(FilteredRag(Part(), Part(), Generator(Part(), PROMPTS), candidates=3, top_k=2))
    assert [hit.chunk.text for hit in output.context] == ["three", "two"]
    assert [(hit.chunk.text, hit.rank, hit.rerank_score) for hit in output.retrieved] == [
        ("one", 1, 3.0),
        ("two", 2, 2.0),
        ("three", 3, 1.0),
    ]
    (call,) = output.calls
    assert (call.retries, call.waited_ms, call.ms) == (2, 9.0, 5.0)
    assert [message.role for message in call.messages] == ["system", "user"]
    assert [stage.name for stage in output.stages] == ["retrieve", "rerank", "prompt", "generate", "parse"]


def test_reranker_that_drops_hits_loses_none_of_the_candidates() -> None:
    class Dropping(Part):
        def rerank(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
            return super().rerank(query, hits)[:1]

    output = run(FilteredRag(Part(), Dropping(), Generator(Part(), PROMPTS), candidates=3, top_k=2))
    assert [hit.chunk.text for hit in output.context] == ["three"]
    assert [hit.rerank_score for hit in output.retrieved] == [None, None, 1.0]


def test_nothing_retrieved_is_still_answered() -> None:
    output = run(StandardRag(Part(), Generator(Part(text=said("Yes [Source 1].")), PROMPTS), top_k=0))
    assert output.answer.invalid_citations == (1,)
