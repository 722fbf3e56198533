"""The engine with parts that say what a test wants: what is asked of whom, and what stands in the row."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from rag_harness.core.errors import ModelCallError, RecordingMissError
from rag_harness.core.settings.reliability import NORMAL, STRICT, Thresholds
from rag_harness.core.types import Completion, Decision, Hit, Message, PipelineOutput, Query, Usage
from rag_harness.evaluation.measures.opinion import Claim, Verdict, Verdicts
from rag_harness.models.dry_run import MockReranker
from rag_harness.models.prompts import Prompts
from rag_harness.pipelines.generation import Generator
from rag_harness.pipelines.trace import Trace
from rag_harness.retrieval.retrievers import Rarity
from rag_harness.studies.reliability import Reliable, Steps
from rag_harness.studies.reliability_retrieval import Fallback, Searcher, by_meaning
from rag_harness.studies.reliability_verification import Confidence, ContradictionModel, SecondAsking
from tests.unit.studies.reliability.hits import hit
from tests.unit.studies.reliability.test_verification import JudgeSays

PAGES = [
    hit("You can return a lamp within 45 days.", "returns.md", 0, dense=0.9),
    hit("Express delivery costs €9.90 in Zone 1.", "shipping.md", 1, dense=0.4),
    hit("The warranty of a kettle lasts 2 years.", "warranty.md", 2, dense=0.3),
]
ANSWER = "You can return a lamp within 45 days [Source 1]."
UNKNOWN = "I don't know."
ALL = Steps(decompose=False)
GROUNDED = Verdicts((Verdict(Claim("You can return a lamp within 45 days."), 0.9),))


class Finds:
    """Returns the same hits for any query, with scores that a word in it changes, and keeps what it was asked."""

    def __init__(self, hits: Sequence[Hit], word: str = "", by: float = 0.0) -> None:
        self.hits, self.word, self.by, self.asked = list(hits), word, by, list[tuple[str, int]]()

    def retrieve(self, query: str, k: int) -> list[Hit]:
        self.asked.append((query, k))
        more = self.by if self.word and self.word in query else 0.0
        raised = [replace(one, scores={**one.scores, "dense": one.scores["dense"] + more}) for one in self.hits[:k]]
        return [replace(one, rank=rank) for rank, one in enumerate(raised, 1)]


class Says:
    """A chat model that says one thing after the other."""

    model = "test/chat"

    def __init__(self, *says: str) -> None:
        self.says, self.asked = list(says), list[Sequence[Message]]()

    async def complete(self, messages: Sequence[Message], response_format: Any = None) -> Completion:
        self.asked.append(messages)
        return Completion(json.dumps({"answer": self.says.pop(0)}), self.model, Usage(9, 3, 1), 10.0)


def run(
    finds: Finds,
    chat: Says,
    question: str = "How long may I return a lamp?",
    steps: Steps = ALL,
    thresholds: Thresholds = NORMAL,
    judged: Verdicts = GROUNDED,
) -> PipelineOutput:
    return asyncio.run(made(finds, chat, steps, thresholds, judged).answer(Query("q1", question)))


def made(
    finds: Finds,
    chat: Says,
    steps: Steps = ALL,
    thresholds: Thresholds = NORMAL,
    judged: Verdicts = GROUNDED,
) -> Reliable:
    def rarity() -> Rarity:
        return Rarity(one.chunk for one in PAGES)

    searcher = Searcher([finds], MockReranker(), rarity, top_k=2)
    prompts = Prompts("system", "{context}\n\nQuestion: {question}")
    return Reliable(
        searcher,
        Fallback(searcher, None, rarity),
        Generator(chat, prompts),
        SecondAsking(chat, prompts, varies_sources=True),
        JudgeSays(judged),  # type: ignore[arg-type]
        ContradictionModel(),
        None,
        Confidence(None, dict),
        thresholds,
        candidates=3,
        steps=steps,
    )


def decisions(output: PipelineOutput) -> dict[str, Decision]:
    return {one.name: one for one in output.decisions}


def test_an_answer_that_passes() -> None:
    chat = Says(ANSWER, ANSWER)
    output = run(Finds(PAGES), chat)
    said = decisions(output)
    assert output.answer.text == ANSWER
    assert said["gate"].outcome == "go on"
    assert said["signal: groundedness"].value == 0.9
    assert said["signal: contradiction"].value == 0.0
    assert said["signal: self_consistency"].value == 1.0
    assert said["confidence"].outcome == "uncalibrated"
    assert (said["decision"].outcome, said["decision"].value) == ("pass", output.confidence)
    assert len(chat.asked) == 2
    assert {"retrieve", "rerank", "quality", "generate", "verify", "contradict", "again"} <= {
        stage.name for stage in output.stages
    }


@pytest.mark.parametrize("thresholds", [NORMAL, STRICT], ids=["normal", "strict"])
def test_sources_without_a_word_of_the_question_are_a_warning_and_the_answer_is_given(thresholds: Thresholds) -> None:
    output = run(Finds(PAGES), Says(ANSWER, ANSWER), "Which animals live here?", thresholds=thresholds)
    said = decisions(output)
    assert said["signal: coverage"].value == 0.0
    assert output.confidence is not None
    assert output.confidence >= thresholds.passed
    assert (said["decision"].outcome, said["decision"].reason) == ("warn", "LOW_COVERAGE")
    assert output.answer.text == ANSWER


def test_the_second_answer_sees_other_sources() -> None:
    chat = Says(ANSWER, "It is 30 days [Source 1].")
    output = run(Finds(PAGES), chat)
    assert decisions(output)["signal: self_consistency"].value == 0.0
    assert "INCONSISTENT_ANSWERS" in decisions(output)["decision"].reason
    assert decisions(output)["decision"].outcome == "warn"
    assert "[Source 2" in chat.asked[0][1].content
    assert "[Source 2" not in chat.asked[1][1].content


def poor(word: str = "", by: float = 0.0, dense: float = 0.45) -> Finds:
    return Finds([replace(one, scores={"dense": dense}) for one in PAGES], word, by)


def test_where_little_is_found_no_model_is_asked() -> None:
    chat = Says()
    output = run(poor(), chat, "Do you sell live fish?")
    assert decisions(output)["gate"].outcome == "abstain"
    assert output.answer.abstained
    assert (chat.asked, output.context) == ([], ())
    assert len(output.retrieved) == 3
    assert decisions(output)["decision"].reason.startswith("LOW_RETRIEVAL_QUALITY; LOW_RELEVANCE")
    assert decisions(output)["signal: groundedness"].reason == "nothing was answered"


def test_the_confidence_of_an_abstention_is_that_the_sources_do_not_answer() -> None:
    football, lamps = (run(poor(dense=dense), Says(), "Who won the cup?") for dense in (0.05, 0.45))
    assert football.answer.abstained
    assert football.confidence is not None
    assert lamps.confidence is not None
    assert football.confidence > 0.9
    assert football.confidence > lamps.confidence


def test_without_a_gate_it_is_asked_all_the_same() -> None:
    output = run(poor(), Says(UNKNOWN), "Do you sell live fish?", Steps(decompose=False, gate=False))
    assert "gate" not in decisions(output)
    assert decisions(output)["decision"].reason.startswith("NOT_IN_SOURCES")


def test_a_fallback_searches_wider_with_other_words_and_keeps_the_better() -> None:
    finds = poor("days", 0.3, dense=0.53)
    output = run(finds, Says(ANSWER, ANSWER), "return a lamp?")
    first, *again = finds.asked
    assert first == ("return a lamp?", 3)
    assert [k for _, k in again] == [6, 6]
    assert again[1][0].startswith("return a lamp? ")
    assert decisions(output)["fallback"].outcome == "better"
    assert decisions(output)["gate"].outcome == "go on"
    assert output.retrieved[0].scores["dense"] == pytest.approx(0.83)


def test_what_other_words_find_worse_is_not_kept() -> None:
    searcher = Searcher([poor("days", -0.3, dense=0.53)], MockReranker(), lambda: Rarity(()), top_k=2)
    fallback, trace = Fallback(searcher, None, lambda: Rarity(one.chunk for one in PAGES)), Trace()
    best = asyncio.run(searcher.search("return a lamp?", ["return a lamp?"], 3, trace))
    searcher.retrievers[0].hits = [replace(one, scores={"dense": 0.1}) for one in PAGES]  # type: ignore[attr-defined]
    assert asyncio.run(fallback.better("return a lamp?", best, 3, 1, trace)) is best
    assert trace.decisions[-1].outcome == "no better"


def test_twice_in_vain_and_then_it_goes_on_with_the_first() -> None:
    finds = poor(dense=0.53)
    output = run(finds, Says(ANSWER, ANSWER), "return a lamp?")
    assert [one.outcome for one in output.decisions if one.name == "fallback"] == ["no better"] * 2
    assert [k for _, k in finds.asked] == [3, 6, 6, 12, 12]
    assert decisions(output)["gate"].reason == "after 2 fallbacks"


def test_what_is_not_sure_enough_is_withheld_and_kept() -> None:
    output = run(Finds(PAGES), Says(ANSWER, ANSWER), thresholds=replace(NORMAL, warned=0.99, passed=0.995))
    assert output.answer.abstained
    assert output.answer.citations == ()
    (kept,) = [stage.detail for stage in output.stages if stage.name == "decide"]
    assert kept == {"withheld": ANSWER, "withheld_citations": [1]}
    assert decisions(output)["decision"].outcome == "abstain"


def test_without_verification_nobody_is_asked_twice() -> None:
    chat = Says(ANSWER)
    output = run(Finds(PAGES), chat, steps=Steps(decompose=False, verify=False))
    assert len(chat.asked) == 1
    assert decisions(output)["signal: groundedness"].reason == "not verified"
    assert output.confidence == decisions(output)["retrieval quality"].value


class Fails(Says):
    """Answers once, and then fails, a while later."""

    def __init__(self, error: Exception) -> None:
        super().__init__(ANSWER)
        self.error = error

    async def complete(self, messages: Sequence[Message], response_format: Any = None) -> Completion:
        if self.says:
            return await super().complete(messages, response_format)
        await asyncio.sleep(0)
        raise self.error


def test_a_second_answer_that_fails_costs_one_signal_and_not_the_trial() -> None:
    output = run(Finds(PAGES), Fails(ModelCallError("429 of the model")))
    said = decisions(output)["signal: self_consistency"]
    assert (said.outcome, said.value) == ("not measured", None)
    assert said.reason == "there is no second answer: 429 of the model"
    assert output.answer.text == ANSWER


class SlowJudge(JudgeSays):
    """A judge that would say something later, and notes whether it was told to stop."""

    ended = ""
    asks_model, deterministic, reads_conversation = False, False, True

    def opinion(self, *_: Any) -> Any:
        return self

    async def supported(self, *_: Any) -> Verdicts:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.ended = "cancelled"
            raise
        return GROUNDED


def test_where_a_check_fails_no_other_goes_on() -> None:
    judge = SlowJudge(GROUNDED)
    pipeline = replace(
        made(Finds(PAGES), Fails(RecordingMissError("not recorded"))),
        judge=judge,
    )

    async def asked() -> str:
        with pytest.raises(RecordingMissError):
            await pipeline.answer(Query("q1", "How long may I return a lamp?"))
        return judge.ended

    assert asyncio.run(asked()) == "cancelled"


def test_declining_is_set_against_no_threshold() -> None:
    declined = decisions(run(poor(), Says(), "Do you sell live fish?"))["decision"]
    assert (declined.outcome, declined.threshold) == ("abstain", None)
    unknown = decisions(run(Finds(PAGES), Says(UNKNOWN)))["decision"]
    assert (unknown.outcome, unknown.threshold) == ("abstain", None)
    held = run(Finds(PAGES), Says(ANSWER, ANSWER), thresholds=replace(NORMAL, warned=0.99, passed=0.995))
    assert decisions(held)["decision"].threshold == 0.99


class WorseWhereMore(Finds):
    """Finds worse where more than three hits are asked for."""

    def retrieve(self, query: str, k: int) -> list[Hit]:
        found = super().retrieve(query, k)
        return found if k <= 3 else [replace(one, scores={"dense": 0.1}) for one in found]


def test_the_raw_scores_in_the_row_are_those_of_what_was_kept() -> None:
    output = run(WorseWhereMore(poor(dense=0.53).hits), Says(ANSWER, ANSWER), "return a lamp?")
    assert [one.outcome for one in output.decisions if one.name == "fallback"] == ["no better"] * 2
    (noted,) = [stage.detail for stage in output.stages if stage.name == "quality"]
    assert noted["dense"]["best"] == pytest.approx(0.53)


def test_two_questions_are_searched_each() -> None:
    finds = Finds(PAGES)
    run(finds, Says(ANSWER, ANSWER), "How long may I return a lamp and what does express cost?", Steps())
    assert [query for query, _ in finds.asked] == [
        "How long may I return a lamp and what does express cost?",
        "How long may I return a lamp",
        "what does express cost?",
    ]


def test_talk_is_answered_without_a_search() -> None:
    finds = Finds(PAGES)
    output = run(finds, Says(), "hello!")
    assert finds.asked == []
    assert not output.answer.abstained
    assert decisions(output)["decision"].reason == "CHIT_CHAT"


def test_fused_hits_go_by_their_cosine() -> None:
    fused = [hit("a", rrf=0.03, dense=0.7), hit("b", rrf=0.02, bm25=9.0), hit("c", rrf=0.01, dense=0.4)]
    assert [one.score for one in by_meaning(fused)] == [0.7, 0.4, 0.4]
    assert [one.scores for one in by_meaning(fused)] == [one.scores for one in fused]
    words_alone = [hit("a", rrf=0.03, bm25=9.0)]
    assert by_meaning(words_alone) == words_alone
