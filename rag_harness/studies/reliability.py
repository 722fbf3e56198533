"""The reliability engine: an experiment that says how sure it is and declines if it is not, and its variants."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from typing import Any, Literal

from rag_harness.core.files import file_digest
from rag_harness.core.protocols import ChatModel, Experiment, Reranker
from rag_harness.core.registry import REVISIONS
from rag_harness.core.settings.configurations import USUAL, WEAK_SIGNALS, ReliabilityNumbers, Thresholds
from rag_harness.core.settings.profiles import EMBEDDED_URL
from rag_harness.core.text.language_detection import told
from rag_harness.core.types import Answer, Decision, PipelineOutput, Query
from rag_harness.evaluation.judges.calibration.confidence import FROM_ANSWER, read_confidence
from rag_harness.evaluation.judges.factory import create_judge
from rag_harness.evaluation.judges.traits import traits
from rag_harness.evaluation.measures.opinion import Judge
from rag_harness.models.endpoints import chat_name
from rag_harness.models.prompts import Prompts
from rag_harness.pipelines.experiments import data_of
from rag_harness.pipelines.parts import Generator, RunParts
from rag_harness.pipelines.trace import Trace
from rag_harness.retrieval.builder import Retrieval
from rag_harness.retrieval.retrievers import HybridRetriever, RerankedRetriever
from rag_harness.studies.reliability_confidence import Confidence
from rag_harness.studies.reliability_retrieval import Fallback, Searcher, SearchResult, Signals
from rag_harness.studies.reliability_verification import (
    MOST_TOKENS,
    TEMPERATURE,
    Checked,
    ContradictionModel,
    SecondAsking,
    conflicts,
    grounded,
)
from rag_harness.studies.retail import planned, subquestions

# The gate before the model: go on, search again or stop, by the quality of the retrieved sources.

Way = Literal["go on", "fallback", "abstain"]
MOST_FALLBACKS = 2


def choose_way(found: float, thresholds: Thresholds, tried: int = 0) -> Way:
    """Return what to do at retrieval quality ``found`` after ``tried`` fallbacks. After the last one, go on or stop."""
    if found < thresholds.fallback:
        return "abstain"
    return "go on" if found > thresholds.go_on or tried >= MOST_FALLBACKS else "fallback"


def way_decision(found: float, thresholds: Thresholds, tried: int) -> Decision:
    """Return the gate's final decision for the row."""
    outcome = choose_way(found, thresholds, MOST_FALLBACKS)
    limit = thresholds.fallback if outcome == "abstain" else thresholds.go_on
    return Decision("gate", outcome, found, limit, f"after {tried} fallbacks" if tried else "")


# Decides whether to pass, warn or abstain; the reasons are codes for programs, each with a text for people.

Outcome = Literal["pass", "warn", "abstain"]
_SHOWN = 80


def decide_outcome(confidence: float, answer: Answer, codes: list[str], thresholds: Thresholds) -> Outcome:
    """Return the outcome for an answer: with a reason code it never passes, however confident it is.

    An answer that says it does not know counts as abstaining.
    """
    if answer.abstained or confidence < thresholds.warned:
        return "abstain"
    return "warn" if codes or confidence < thresholds.passed else "pass"


def codes_of(answer: Answer, signals: Signals, checked: Checked, thresholds: Thresholds) -> list[str]:
    """Return the reason codes of an answer, most serious first."""
    return [*_of_answer(answer, checked, thresholds), *of_retrieval(signals, thresholds)]


def of_retrieval(signals: Signals, thresholds: Thresholds) -> list[str]:
    """Return the reason codes about the retrieved sources."""
    low = [(signals.relevance, thresholds.relevance), (signals.coverage, thresholds.coverage)]
    named = zip(WEAK_SIGNALS, low, strict=True)
    return [name for name, (value, limit) in named if value is not None and value < limit]


def _of_answer(answer: Answer, checked: Checked, thresholds: Thresholds) -> Iterator[str]:
    if answer.abstained:
        yield "NOT_IN_SOURCES"
        return
    for claim, value in checked.unsupported:
        if value < thresholds.claim:
            yield f"UNGROUNDED_CLAIM: {_short(claim)}"
    if checked.groundedness is not None and checked.groundedness < thresholds.grounded:
        yield "UNGROUNDED_ANSWER"
    for one, other in checked.conflicting:
        yield f"CONFLICTING_SOURCES: {', '.join(dict.fromkeys((one, other)))}"
    for name in checked.against:
        yield f"CONTRADICTS_SOURCE: {name}"
    for name in checked.outdated:
        yield f"OUTDATED_SOURCE: {name}"
    if checked.self_consistency is not None and checked.self_consistency < thresholds.agreement:
        yield "INCONSISTENT_ANSWERS"
    if not answer.citations:
        yield "NO_CITATION"
    if answer.invalid_citations:
        yield f"UNKNOWN_SOURCE: {', '.join(map(str, answer.invalid_citations))}"


def _short(claim: str) -> str:
    plain = " ".join(claim.split()).replace(";", ",")
    return plain if len(plain) <= _SHOWN else f"{plain[:_SHOWN]} …"


TALK = "Hello. Ask me a question, and I will look it up in the documents."
TOO_LITTLE = "I don't know. The documents that I found do not match the question well enough."
NOT_SURE = "I don't know. I have found something, but I am not sure enough that it answers the question."


def small_talk() -> Answer:
    """Return the reply to a greeting or thanks."""
    return Answer(TALK, raw=TALK)


def too_little() -> Answer:
    """Return the reply when no model is asked."""
    return Answer(TOO_LITTLE, abstained=True, raw=TOO_LITTLE)


def not_sure(answer: Answer) -> Answer:
    """Return the reply in place of ``answer``, together with the model's text."""
    return replace(answer, text=NOT_SURE, abstained=True, citations=(), invalid_citations=())


# Finds out the language of a question, and whether it is a question: by words, because a model would cost too much.

UNKNOWN_LANGUAGE = "unknown"
_TALK = re.compile(
    r"(?:hi|hey|hello|good (?:morning|afternoon|evening|day)|thanks?(?: you)?(?: (?:very|so) much| a lot)?|cheers|bye|"
    r"goodbye|ok(?:ay)?|how are you(?: (?:today|doing))?|who are you|nice to meet you|great|perfect|there)"
)
_ALL_TALK = re.compile(rf"\W*{_TALK.pattern}(?:\W+{_TALK.pattern}){{0,5}}\W*", re.IGNORECASE)
_LONGEST_TALK = 200
"""Number of characters. A longer text may have a question after its greeting."""
_ORDERS = re.compile(
    r"\W*(?:please |can you |could you )*(?:cancel|change|send|book|order|write|translate|show|list|give|tell|explain|"
    r"summari[sz]e|compare|calculate|find|check|update|delete|remove|open|refund)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Understood:
    """``language`` is a code of two letters or ``unknown``; ``intent`` is question, command or chit-chat."""

    language: str
    intent: str

    @property
    def is_talk(self) -> bool:
        """Whether the text asks nothing that documents could answer."""
        return self.intent == "chit-chat"

    def decisions(self) -> tuple[Decision, ...]:
        """The language and the intent, as decisions for the row."""
        return Decision("language", self.language), Decision("intent", self.intent)


def understood(text: str) -> Understood:
    """Return the language of a text, and its intent by its first words.

    A text that is neither chit-chat nor a command counts as a question: a search in vain costs less than a refusal.
    """
    if len(text) <= _LONGEST_TALK and _ALL_TALK.fullmatch(text):
        intent = "chit-chat"
    else:
        intent = "command" if _ORDERS.match(text) and "?" not in text else "question"
    return Understood(told(text) or UNKNOWN_LANGUAGE, intent)


UNVERIFIED = tuple((name, "not verified") for name in FROM_ANSWER)
DECLINED = tuple((name, "nothing was answered") for name in FROM_ANSWER)


@dataclass(frozen=True, slots=True)
class Steps:
    """Which steps the engine has; an ablation lacks one of them."""

    decompose: bool = True
    gate: bool = True
    verify: bool = True


@dataclass(frozen=True)
class Reliable:
    """Runs the steps: understand, decompose, search, rate, gate, generate, verify, state confidence, decide.

    Args:
        searcher: finds sources and rates them.
        fallback: searches again with other words.
        generator: answers from the sources.
        again: gives the second answer.
        judge: judges groundedness.
        contradictions: asks a model which sources contradict each other.
        rewriter: decomposes questions; None if rules do it.
        confidence: computes the confidence.
        thresholds: the limits of all decisions.
        candidates: number of hits of a search.
        steps: the steps that it has.
    """

    searcher: Searcher
    fallback: Fallback
    generator: Generator
    again: SecondAsking
    judge: Judge
    contradictions: ContradictionModel
    rewriter: ChatModel | None
    confidence: Confidence
    thresholds: Thresholds
    candidates: int
    steps: Steps

    async def answer(self, query: Query) -> PipelineOutput:
        trace = Trace()
        with trace.stage("understand"):
            asked = understood(query.text)
        trace.decisions += asked.decisions()
        if asked.is_talk:
            trace.decisions.append(Decision("decision", "pass", reason="CHIT_CHAT"))
            return trace.output(small_talk())
        found = await self._searched(query.text, trace)
        if self._stops(found, trace):
            answer, checked = too_little(), Checked(reasons=DECLINED)
        else:
            answer = (await self.generator.answer(query, trace)).answer
            checked = await self._checked(query, answer, trace)
        trace.decisions += checked.decisions()
        return self._decided(answer, found, checked, trace)

    async def _searched(self, question: str, trace: Trace) -> SearchResult:
        searches = await planned(question, self.rewriter, trace) if self.steps.decompose else [question]
        best, tried = await self.searcher.search(question, searches, self.candidates, trace), 0
        while self.steps.gate and choose_way(best.quality, self.thresholds, tried) == "fallback":
            tried += 1
            best = await self.fallback.better(question, best, self.candidates, tried, trace)
        trace.retrieved, trace.context = list(best.retrieved), list(best.context)
        trace.note("quality", **{name: asdict(raw) for name, raw in best.raw.items()})
        trace.decisions += [*best.signals.decisions(), Decision("retrieval quality", "", best.quality)]
        if self.steps.gate:
            trace.decisions.append(way_decision(best.quality, self.thresholds, tried))
        return best

    def _stops(self, found: SearchResult, trace: Trace) -> bool:
        stops = self.steps.gate and found.quality < self.thresholds.fallback
        if stops:
            # Nothing was sent to a model, so the row has no context. The found sources stay among the candidates.
            trace.context = []
        return stops

    async def _checked(self, query: Query, answer: Answer, trace: Trace) -> Checked:
        """Run the three checks at the same time."""
        if answer.abstained or not self.steps.verify:
            return Checked(reasons=DECLINED if answer.abstained else UNVERIFIED)
        checks = (
            asyncio.ensure_future(grounded(self.judge, query.text, answer, trace.context, trace)),
            asyncio.ensure_future(self._contradictions(answer, trace)),
            asyncio.ensure_future(self.again.agreement(query, answer, trace)),
        )
        try:
            said, conflicting, (agreed, why) = await asyncio.gather(*checks)
        except BaseException:
            await _ended(checks)
            raise
        trace.note("contradict", found=list(conflicting.differences))
        reasons = (*conflicting.reasons, ("groundedness", said.reason), ("self_consistency", why))
        return replace(
            conflicting, groundedness=said.share, self_consistency=agreed, unsupported=said.claims, reasons=reasons
        )

    async def _contradictions(self, answer: Answer, trace: Trace) -> Checked:
        context = tuple(trace.context)
        told = await self.contradictions.asked(context, trace)
        return await trace.beside("contradict", conflicts, answer, context, told)

    def _decided(self, answer: Answer, found: SearchResult, checked: Checked, trace: Trace) -> PipelineOutput:
        with trace.stage("confidence"):
            stated = self.confidence.stated(found.quality, found.signals, checked, bool(answer.abstained))
        trace.note("confidence", made_of=dict(self.confidence.made_of()))
        codes = self._codes(answer, found.signals, checked, trace.context)
        outcome = decide_outcome(stated.value, answer, codes, self.thresholds)
        limit = self._limit(answer, outcome)
        trace.decisions += [*stated.decisions, Decision("decision", outcome, stated.value, limit, "; ".join(codes))]
        kept = self._withheld(answer, trace) if outcome == "abstain" and not answer.abstained else answer
        return trace.output(kept, stated.value)

    def _limit(self, answer: Answer, outcome: Outcome) -> float | None:
        """Return the threshold for the confidence of this outcome; None if the model itself has declined."""
        if answer.abstained:
            return None
        return self.thresholds.warned if outcome == "abstain" else self.thresholds.passed

    def _codes(self, answer: Answer, found: Signals, checked: Checked, context: Sequence[object]) -> list[str]:
        if not context:
            return ["LOW_RETRIEVAL_QUALITY", *of_retrieval(found, self.thresholds)]
        return codes_of(answer, found, checked, self.thresholds)

    def _withheld(self, answer: Answer, trace: Trace) -> Answer:
        """Return the reply in place of an answer with too little confidence. The row keeps the answer."""
        with trace.stage("decide"):
            trace.note("decide", withheld=answer.text, withheld_citations=list(answer.citations))
        return not_sure(answer)


async def _ended(checks: Iterable[asyncio.Future[Any]]) -> None:
    """Cancel the checks and wait until they have ended, so that no call goes on unnoticed."""
    for check in checks:
        check.cancel()
    await asyncio.gather(*checks, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class Design:
    """The settings of an experiment. Other experiments may differ in them.

    Attributes:
        steps: the steps of the engine.
        hybrid: whether to search by words, too, and not only by meaning.
        mode: whose thresholds to use.
        original: whether to rate retrieval as the first design did.
    """

    steps: Steps = Steps()
    hybrid: bool = True
    mode: Literal["normal", "strict"] = "normal"
    original: bool = False

    def thresholds(self, numbers: ReliabilityNumbers) -> Thresholds:
        """Return the thresholds of its mode."""
        return numbers.strict if self.mode == "strict" else numbers.thresholds


def reliable(name: str, parts: RunParts, design: Design) -> Experiment:
    """Return the experiment ``name``: the engine with the settings of ``design``, on the experiment's data."""
    data = data_of(name, parts.settings)
    retrieval, prompts = parts.retrieval(data=data), parts.prompts("r1")
    reranker, rewriter = retrieval.reranker(), parts.rewriter()
    retrievers = [retrieval.dense, *([retrieval.words] if design.hybrid else [])]
    rarity = parts.rarity(retrieval)
    numbers = parts.settings.reliability_numbers or USUAL
    thresholds = design.thresholds(numbers)
    searcher = Searcher(retrievers, reranker, rarity, parts.settings.top_k, design.original, numbers.weights)
    judge = create_judge(parts)
    contradictions = _contradiction_model(parts, judge)
    file = parts.settings.folder("reliability") / f"{name}.json"

    def made_of() -> Mapping[str, Any]:
        made = _made_of(name, parts, retrieval, reranker, judge)
        asked = {"model asked for contradictions": contradictions.chat.model} if contradictions.chat else {}
        return {**made, **asked, **_changed(numbers, design)}

    pipeline = Reliable(
        searcher,
        Fallback(searcher, rewriter, rarity),
        Generator(parts.chat(), prompts),
        _again(parts, prompts),
        judge,
        contradictions,
        rewriter,
        Confidence(read_confidence(file), cache(made_of), numbers.formula),
        thresholds,
        parts.settings.candidates,
        design.steps,
    )
    first = HybridRetriever(retrievers, depth=parts.settings.candidates) if design.hybrid else retrieval.dense
    return Experiment(
        name,
        pipeline,
        data=data,
        ingredients={
            "design": asdict(design),
            "thresholds": asdict(thresholds),
            "weights": {**asdict(numbers.weights), **asdict(numbers.formula)},
            "judged_by": [judge.name, judge.model, judge.revision],
            "calibration": file_digest(file) if file.is_file() else "",
        },
        retriever=RerankedRetriever(first, reranker, parts.settings.candidates),
        prepare=_prepared(retrieval, design),
        chunks=lambda: retrieval.chunks,
    )


def _again(parts: RunParts, prompts: Prompts) -> SecondAsking:
    """Return what asks a second time: at another temperature; without one, with other sources."""
    varies = parts.settings.chat_base_url == EMBEDDED_URL
    return SecondAsking(parts.chat() if varies else parts.chat(temperature=TEMPERATURE), prompts, varies)


def _contradiction_model(parts: RunParts, judge: Judge) -> ContradictionModel:
    """Return the judge's model, else the one that answers; none where both are parts of this process."""
    settings = parts.settings
    answers_here = settings.chat_base_url == EMBEDDED_URL or chat_name(settings) == "mock"
    role = "judge" if traits(judge).asks_model else "" if answers_here else "answer"
    if not role:
        return ContradictionModel()
    return ContradictionModel(parts.chat(role, temperature=0.0, max_output_tokens=MOST_TOKENS), role)


def _prepared(retrieval: Retrieval, design: Design) -> Callable[[Sequence[Query]], None]:
    def prepare(queries: Sequence[Query]) -> None:
        parted = [search for query in queries for search in subquestions(query.text)]
        retrieval.prepare(parted if design.steps.decompose else [query.text for query in queries])

    return prepare


def _made_of(name: str, parts: RunParts, retrieval: Retrieval, reranker: Reranker, judge: Judge) -> Mapping[str, Any]:
    """Return everything that the signals depend on. If any of it changes, a calibration is no longer valid."""
    return {
        "experiment": name,
        "embedder": f"{retrieval.embedder.model} {retrieval.embedder.revision}",
        "reranker": f"{reranker.model} {reranker.revision}",
        "index": retrieval.content_digest,
        "answering model": parts.settings.chat_model,
        "judge": f"{judge.name} {judge.model} {judge.revision}",
        "top_k": parts.settings.top_k,
        "candidates": parts.settings.candidates,
        "code of the signals": REVISIONS["reliability/signals"],
    }


def _changed(numbers: ReliabilityNumbers, design: Design) -> dict[str, Any]:
    """Return the numbers that decide what is found and what is answered, where a suite has set others.

    The other thresholds do not count: they only decide what is done with a confidence.
    """
    ours, shipped = design.thresholds(numbers), design.thresholds(USUAL)
    changed: dict[str, Any] = {}
    if numbers.weights != USUAL.weights:
        changed["weights of retrieval quality"] = asdict(numbers.weights)
    if design.steps.gate and (ours.go_on, ours.fallback) != (shipped.go_on, shipped.fallback):
        changed["thresholds of the gate"] = {"go_on": ours.go_on, "fallback": ours.fallback}
    return changed


# R1: every step, with retrieval rated by absolute scores.

STRICT = "r6"
"""The experiment that answers in mode strict when this one is served."""


def build_r1(parts: RunParts, name: str = "r1", **values: Any) -> Experiment:
    """Return this experiment, or a variant of it: ``values`` are those of its ``Design`` and of its ``Steps``."""
    steps = {each.name: values.pop(each.name) for each in fields(Steps) if each.name in values}
    return reliable(name, parts, Design(Steps(**steps), **values))
