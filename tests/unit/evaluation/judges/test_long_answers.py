"""Long answers: what the embedded judge reads of one before it asks its model, and what takes its marks off."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from rag_harness.core import processes
from rag_harness.core.processes import checks_within
from rag_harness.core.protocols import JudgeParts
from rag_harness.core.settings import Settings
from rag_harness.core.text.language_detection import not_judged
from rag_harness.evaluation.judges.citation_marks import placed_claims, unmarked_answer
from rag_harness.evaluation.judges.embedded.alignment import split_text
from rag_harness.evaluation.judges.embedded.judge import create, readable_material
from rag_harness.evaluation.judges.embedded.judgement import missed
from rag_harness.evaluation.judges.factory import judged
from rag_harness.evaluation.measures import Score, opinion
from rag_harness.evaluation.measures.judged import AnswerRelevancy, ContextPrecision, Faithfulness
from rag_harness.evaluation.measures.opinion import Claim, Material
from rag_harness.models.array_store import ArrayStore, CachedEmbedder, StoreRoom
from rag_harness.models.onnx import OnnxEmbedder
from tests.effort import check_growth
from tests.long_answers import LONG_ANSWERS, WORST
from tests.unit.evaluation.judges.embedded.made_up import WordEmbedder

CONTEXTS = tuple(f"The lamp can be returned within 45 days, says page {number}." for number in range(5))


def _placed(text: str) -> None:
    plain = unmarked_answer(text, len(CONTEXTS))
    placed_claims(plain, [Claim(plain.text[start:end], start, end) for start, end in split_text(plain.text).sentences])


PARTS: dict[str, Callable[[str], object]] = {
    "readable text": lambda text: readable_material(Material("How long?", text, CONTEXTS, "45 days")),
    "language": lambda text: not_judged("How long?", text, "\n".join(CONTEXTS)),
    "what is missed": lambda text: missed(text, CONTEXTS, "How long?"),
    "places of claims": _placed,
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", WORST)
def test_reading_an_answer_takes_time_as_it_is_long(part: str, name: str) -> None:
    check_growth(PARTS[part], LONG_ANSWERS[name][:50_000])


@pytest.mark.long
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", LONG_ANSWERS)
def test_reading_the_longest_answer_takes_time_as_it_is_long(part: str, name: str) -> None:
    check_growth(PARTS[part], LONG_ANSWERS[name])


# What the embedded judge computes of a long answer is computed in the process that is ended in time.

QUESTION = "How long may I return the lamp?"
ANSWER = ("The lamp can be returned within 45 days. Parcels to Norway cost 12 euros [2]. " * 300)[:21_000]


class Room:
    """The parts of a run with its embedder and stores in a folder of its own."""

    def __init__(self, folder: Path, inner: Any) -> None:
        self.settings = Settings(rootdir=str(folder), profile="mock")
        self.stores = StoreRoom(self.settings)
        self._embedder = CachedEmbedder(inner, ArrayStore([]))

    def embedder(self, model: str = "") -> CachedEmbedder:
        return self._embedder


@pytest.fixture(scope="module")
def encoder() -> OnnxEmbedder:
    pytest.importorskip("onnxruntime")
    return OnnxEmbedder()


def scores_of(folder: Path, inner: Any, answer: str, contexts: Sequence[str] = CONTEXTS) -> dict[str, Score]:
    material = Material(QUESTION, answer, tuple(contexts), "It is 45 days.")
    measures = [Faithfulness(), AnswerRelevancy(), ContextPrecision()]
    return asyncio.run(judged(material, measures, create(cast(JudgeParts, Room(folder, inner)))))


@pytest.mark.parametrize("contexts", [CONTEXTS, ("The lamp can be returned within 45 days. " * 2_500,)])
def test_scores_of_long_texts_are_those_that_are_computed_here(
    tmp_path: Path, encoder: OnnxEmbedder, monkeypatch: pytest.MonkeyPatch, contexts: tuple[str, ...]
) -> None:
    answer = ANSWER if contexts == CONTEXTS else "The lamp can be returned within 45 days, not 30."
    with checks_within(300):
        there = scores_of(tmp_path / "there", encoder, answer, contexts)
        assert processes._processes[-1].started == 1
    monkeypatch.setattr(opinion, "is_long", lambda *_: False)
    assert scores_of(tmp_path / "here", encoder, answer, contexts) == there
    assert there["answer_relevancy"].value
    assert there["context_precision"].value


def test_what_outlasts_the_time_has_a_reason_and_the_next_answer_its_scores(
    tmp_path: Path, encoder: OnnxEmbedder
) -> None:
    with checks_within(1.0):
        late = scores_of(tmp_path, encoder, LONG_ANSWERS["words"])["answer_relevancy"]
        assert (late.value, late.reason) == (None, "not checked within 1 s. Allow more: --rag-deadline")
    with checks_within(300):
        assert scores_of(tmp_path, encoder, ANSWER)["answer_relevancy"].value


def test_an_embedder_of_a_users_own_is_asked_here(tmp_path: Path) -> None:
    inner = WordEmbedder()
    with checks_within(300):
        assert scores_of(tmp_path, inner, ANSWER)["context_precision"].value is not None
        assert processes._processes[-1].started == 1, "for the rules, which ask no model"
    assert inner.asked


def test_half_a_character_is_no_end_of_a_judgement(tmp_path: Path, encoder: OnnxEmbedder) -> None:
    assert scores_of(tmp_path, encoder, "Within 45 days. \ud83d It is so.")["answer_relevancy"].value
