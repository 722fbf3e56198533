"""The retail study: what vector search, a reranker, reasoning and planned searches each add to a shop's help desk."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from rag_harness.core.protocols import ChatModel, Experiment, Reranker, Retriever
from rag_harness.core.settings.configurations import read_configuration
from rag_harness.core.text.comparison import compared_words
from rag_harness.core.text.language_detection import asked_language
from rag_harness.core.text.languages import ENGLISH
from rag_harness.core.types import Decision, Hit, IndexSpec, Message, PipelineOutput, Query
from rag_harness.models.prompts import json_of
from rag_harness.pipelines.configuration import build as configured
from rag_harness.pipelines.parts import Generator, RunParts
from rag_harness.pipelines.trace import Trace
from rag_harness.retrieval.builder import spec_of
from rag_harness.retrieval.retrievers import RerankedRetriever, fused


@dataclass(frozen=True)
class Baseline:
    """Asks the model and nothing else."""

    generator: Generator

    async def answer(self, query: Query) -> PipelineOutput:
        return await self.generator.answer(query, Trace())


def build_e1(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return Experiment("e1", Baseline(Generator(parts.chat(), parts.prompts("e1"))))


@dataclass(frozen=True)
class StandardRag:
    """Retrieves ``top_k`` chunks and answers from them."""

    retriever: Retriever
    generator: Generator
    top_k: int

    async def answer(self, query: Query) -> PipelineOutput:
        trace = Trace()
        await trace.retrieve(self.retriever, query.text, self.top_k)
        trace.context = trace.retrieved
        return await self.generator.answer(query, trace)


def build_e2(parts: RunParts) -> Experiment:
    """Return this experiment."""
    retrieval, generator = parts.retrieval(), Generator(parts.chat(), parts.prompts("e2"))
    return Experiment(
        "e2",
        StandardRag(retrieval.dense, generator, parts.settings.top_k),
        retriever=retrieval.dense,
        prepare=parts.prepared(retrieval),
        answer_from=generator.answer_from,
        chunks=lambda: retrieval.chunks,
    )


@dataclass(frozen=True)
class FilteredRag:
    """Retrieves ``candidates`` chunks, reranks them, and answers from the best ``top_k``."""

    retriever: Retriever
    reranker: Reranker
    generator: Generator
    candidates: int
    top_k: int

    async def answer(self, query: Query) -> PipelineOutput:
        trace = Trace()
        await trace.retrieve(self.retriever, query.text, self.candidates)
        await trace.rerank(self.reranker, query.text, self.top_k)
        return await self.generator.answer(query, trace)


def build_e3(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return filtered("e3", parts)


def filtered(
    name: str,
    parts: RunParts,
    reasoning: bool = False,
    spec: IndexSpec | None = None,
    prompted_as: str = "",
    data: str = "",
) -> Experiment:
    """Return the experiment ``name`` of this design, over an index of ``spec``; without it, over the options' index.

    Its prompts are its own, or those of the experiment ``prompted_as``. Its documents are those of ``data``.
    """
    settings, retrieval = parts.settings, parts.retrieval(spec, data)
    generator = Generator(parts.chat(), parts.prompts(prompted_as or name), reasoning)
    reranker = retrieval.reranker()
    return Experiment(
        name,
        FilteredRag(retrieval.dense, reranker, generator, settings.candidates, settings.top_k),
        data=data,
        retriever=RerankedRetriever(retrieval.dense, reranker, settings.candidates),
        prepare=parts.prepared(retrieval),
        answer_from=generator.answer_from,
        chunks=lambda: retrieval.chunks,
    )


# E3 over the same chunks without their Markdown marks: does structured Markdown help?


def build_e3_plain(parts: RunParts) -> Experiment:
    """Return this experiment."""
    spec = replace(spec_of(parts.settings), chunker="plain")
    built = filtered("e3-plain", parts, spec=spec, prompted_as="e3")
    # The causes of its failures are taken from rows and gold. Running failed trials again would need most of the
    # recordings, and E3's causes already show as much.
    return replace(built, answer_from=None)


# E3 as a race chose it: ``tuned.toml`` is what ``rag-harness tune`` wrote for the space in ``tuning.toml``.

TUNED = Path(__file__).with_name("tuned.toml")
_OF_RUN = ("chat_model", "embed_model", "rerank_model", "index")
"""What the space does not vary comes from the run's profile, as for every experiment of the study."""


def build_e3_tuned(parts: RunParts) -> Experiment:
    """Return this experiment."""
    chosen = read_configuration(TUNED)
    values = tuple((name, value) for name, value in chosen.values if name not in _OF_RUN)
    built = configured(replace(chosen, name="e3-tuned", values=values), parts)
    # As for e3-plain: running failed trials again would need most of the recordings.
    return replace(built, answer_from=None)


# E4: as E3, and the model reasons step by step before it answers.


def build_e4(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return filtered("e4", parts, reasoning=True)


# Splits a question into its parts by rules, for pipelines that plan their searches without a model.
#
# The rules are for English only, and simple: a question that no rule recognises stays whole. They look only at the
# words of the question, never at the documents.

MOST_SEARCHES = 3
"""The most questions in all, the original one included."""
VERSION_QUESTION = "Which version is current, and from which date does it hold?"
_FEWEST_WORDS = 3

_TO = r"(?:(?:from|by|until|till|for|at|in|on|to|with)\s+)?"
_ASKING = rf"{_TO}(?:what|which|who|whose|whom|when|where|why|how)\b"
_VERB = (
    r"(?:do|does|did|am|is|are|was|were|can|could|will|would|should|shall|must|may|might|have|has|had)(?:n['’]t)?\s+"
    r"(?:i|we|you|he|she|it|they|there|this|that|these|those|the|a|an|my|our|your|his|her|its|their|one|any)\b"
)
_ASKS = re.compile(rf"{_ASKING}|{_VERB}", re.IGNORECASE)
_QUESTION = re.compile(r"[^.?!;]*(?:[.?!](?!\s|$)[^.?!;]*)*[.?!;]*\s*")
"""What people type: a small letter begins a question, too ("is it open? how long?"), and ";" ends one."""
# After a comma alone, "who", "which", "when" and "where" mostly refer to the words before it.
_JOINT = re.compile(
    rf",? (?:and|or|but|then) (?:also |then |if so,? )?(?={_ASKING}|{_VERB})|, (?={_TO}(?:what|why|how)\b)",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"\bbetween (?P<one>[^,.;?!]{1,200}?) and (?P<other>[^,.;?!]{1,200})", re.IGNORECASE)
_AGAINST = re.compile(r",? (?:compared (?:to|with)|versus|vs|as opposed to) ", re.IGNORECASE)
_VERSIONS = (
    r"\b(?:(?:19|20)\d\d|used to be|no longer|up to date|outdated|superseded|(?:current|latest|newest|old|older|new|"
    r"previous|former) (?:version|policy|policies|rules?|terms|edition))\b"
)
_DATED = re.compile(_VERSIONS, re.IGNORECASE)
_VS = re.compile(r"\bvs\.(?=\s)", re.IGNORECASE)


def subquestions(text: str) -> list[str]:
    """Return the questions to search for: first ``text`` itself, then its parts; at most ``MOST_SEARCHES``.

    Two questions in one text are split: at the end of a sentence, or where a second question word or an inverted verb
    follows a conjunction. The two sides of a comparison are split, too. Statements before the questions are added to
    each part, since "where do I take it?" finds nothing alone. If nothing can be split, and the question names a year
    or versions of a rule, a second question asks which of them is current. A text that no rule recognises is its only
    part.
    """
    if asked_language(text) != ENGLISH:
        return [text]
    told, asked = _told_and_asked(_VS.sub("vs", " ".join(text.split())))
    parts = [part for question in asked for part in _parts(question)]
    if len(parts) == 1:
        parts = _sides(parts[0])
    if len(parts) < 2:
        parts = [f"{text.strip()} {VERSION_QUESTION}"] if _DATED.search(text) else []
        told = []
    found = [" ".join([*told, part]) for part in _joined(parts, MOST_SEARCHES - 1)]
    return _different([text, *found])


def _told_and_asked(text: str) -> tuple[list[str], list[str]]:
    """Return the sentences that ask nothing, and the questions. A sentence without an end mark may be a question."""
    sentences = [sentence.strip() for sentence in _QUESTION.findall(text) if any(map(str.isalnum, sentence))]
    marked = any(sentence.endswith("?") for sentence in sentences)
    told, asked = list[str](), list[str]()
    for sentence in sentences:
        asks = sentence.endswith("?") if marked else _ASKS.match(sentence)
        (asked if asks else told).append(sentence)
    return told, asked


def _parts(sentence: str) -> list[str]:
    """Return the questions of one sentence. A part that is too short stays with its neighbour."""
    pieces, start = list[str](), 0
    for joint in _JOINT.finditer(sentence):
        if _is_one(sentence[start : joint.start()]) and _is_one(sentence[joint.end() :]):
            pieces.append(sentence[start : joint.start()])
            start = joint.end()
    return [*pieces, sentence[start:]]


def _is_one(part: str) -> bool:
    return len(part.split()) >= _FEWEST_WORDS and _ASKS.search(part) is not None


def _sides(question: str) -> list[str]:
    """Return a comparison as two questions, one for each side; the question alone if it compares nothing."""
    between = _BETWEEN.search(question)
    if between:
        begin, end = question[: between.start()], question[between.end() :]
        return [f"{begin}{between[side]}{end}" for side in ("one", "other")]
    sides = _AGAINST.split(question, maxsplit=1)
    return sides if all(map(compared_words, sides)) else [question]


def _joined(parts: Sequence[str], most: int) -> list[str]:
    """Return ``parts``; if there are more than ``most``, the last ones are joined, so that nothing is dropped."""
    return [*parts[: most - 1], " and ".join(parts[most - 1 :])] if len(parts) > most else list(parts)


def _different(texts: Sequence[str]) -> list[str]:
    """Return the first text, and the later ones whose words do not repeat earlier texts."""
    by_words: dict[str, str] = {}
    for text in texts:
        by_words.setdefault(" ".join(compared_words(text)), text)
    return list(by_words.values())


# Plans what to search for: with a model of role ``rewrite`` if there is one, else by rules.

LONGEST_SEARCH = 500
"""The most characters of a search. A longer text is not a query."""
SYSTEM = (
    "You plan the searches of a retail support assistant, before anything is looked up. The customer's question itself "
    f"is searched already. Name at most {MOST_SEARCHES - 1} further searches for what the answer needs to know: one "
    "for each "
    "part of a question that asks several things, one for each side of a comparison, and where rules may have changed "
    "one for the version of the policy that is current, and its date. Each must make sense by itself. Do not answer. "
    'Where the question needs no further search, give it back as the only one. Reply as JSON: {"searches": ["..."]}'
)
FORMAT = {
    "type": "json_schema",
    "json_schema": {
        "name": "plan",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"searches": {"type": "array", "items": {"type": "string"}}},
            "required": ["searches"],
            "additionalProperties": False,
        },
    },
}


async def planned(question: str, rewriter: ChatModel | None, trace: Trace) -> list[str]:
    """Return what to search for, the question itself first; at most ``MOST_SEARCHES`` searches.

    The plan is noted in ``trace``: the stage ``plan`` has the searches, and a decision says who made them. If a reply
    cannot be used, the rules plan, and the decision says why. A failed call fails the trial.
    """
    if rewriter is None:
        return _by_rules(question, trace, "no model of role rewrite is configured")
    said = await trace.complete(rewriter, _messages(question), FORMAT, stage="plan", role="rewrite")
    searches, why_not = searches_in(said.text)
    if why_not:
        return _by_rules(question, trace, f"the reply of the model of role rewrite cannot be used: {why_not}")
    further = [search for search in searches if _same(search) != _same(question)]
    return _noted([question, *further], "by model", "", trace)


def searches_in(reply: str) -> tuple[list[str], str]:
    """Return the searches in a reply; or none, and why the reply cannot be used."""
    named = (json_of(reply) or {}).get("searches")
    if not isinstance(named, list):
        return [], 'it is not JSON with a list "searches"'
    texts = [" ".join(search.split()) for search in named if isinstance(search, str)]
    return ([], fault) if (fault := _fault(named, texts)) else (texts, "")


def _fault(named: Sequence[Any], texts: Sequence[str]) -> str:
    if not named:
        return "it names no search"
    if len(texts) < len(named) or not all(texts):
        return "a search is empty or no text"
    if len(named) >= MOST_SEARCHES:
        return f"it names {len(named)} searches, and {MOST_SEARCHES - 1} were asked for"
    if max(map(len, texts)) > LONGEST_SEARCH:
        return f"a search has more than {LONGEST_SEARCH} characters"
    return "it names a search twice" if len(set(map(_same, texts))) < len(texts) else ""


def _messages(question: str) -> list[Message]:
    return [Message("system", SYSTEM), Message("user", f"Question: {question}")]


def _by_rules(question: str, trace: Trace, why: str) -> list[str]:
    with trace.stage("plan"):
        searches = subquestions(question)
    language = asked_language(question)
    if language != ENGLISH:
        why = f"{why}; no rules for {language}: a question is split in English alone"
    return _noted(searches, "by rules", why, trace)


def _noted(searches: list[str], outcome: str, why: str, trace: Trace) -> list[str]:
    said = f"{len(searches)} searches" if len(searches) > 1 else "the question is searched as it is"
    trace.note("plan", searches=searches)
    trace.decisions.append(
        Decision("plan", outcome, float(len(searches)), MOST_SEARCHES, "; ".join(filter(None, (said, why))))
    )
    return searches


def _same(search: str) -> str:
    return " ".join(search.casefold().split())


SOURCE = "planned"
"""The source of a chunk that several fused searches have found."""


@dataclass(frozen=True)
class PlannedRag:
    """Plans searches, retrieves ``candidates`` chunks for each, fuses them to as many, and goes on as E4 does.

    The reranker gets the original question, and as many candidates as in E4. With a single search, this is E4.
    """

    unplanned: FilteredRag
    rewriter: ChatModel | None

    async def answer(self, query: Query) -> PipelineOutput:
        trace, e4 = Trace(), self.unplanned
        rankings = list[list[Hit]]()
        for search in await planned(query.text, self.rewriter, trace):
            await trace.retrieve(e4.retriever, search, e4.candidates)
            rankings.append(trace.retrieved)
        trace.retrieved = _fused(rankings, e4.candidates)
        await trace.rerank(e4.reranker, query.text, e4.top_k)
        return await e4.generator.answer(query, trace)


@dataclass(frozen=True)
class PlannedRetriever:
    """The retrieve step alone. It plans by rules, since the retrieval suite asks no model."""

    inner: Retriever

    def retrieve(self, query: str, k: int) -> list[Hit]:
        return _fused([self.inner.retrieve(search, k) for search in subquestions(query)], k)


def _fused(rankings: Sequence[list[Hit]], k: int) -> list[Hit]:
    return fused(rankings, k, SOURCE) if len(rankings) > 1 else rankings[0]


def build_e4_plan(parts: RunParts) -> Experiment:
    """Return this experiment."""
    settings, retrieval = parts.settings, parts.retrieval()
    e4 = filtered("e4-plan", parts, reasoning=True, prompted_as="e4")

    def prepare(queries: Sequence[Query]) -> None:
        retrieval.prepare([search for query in queries for search in subquestions(query.text)])

    planned_first = PlannedRetriever(retrieval.dense)
    return replace(
        e4,
        pipeline=PlannedRag(cast("FilteredRag", e4.pipeline), parts.rewriter()),
        retriever=RerankedRetriever(planned_first, retrieval.reranker(), settings.candidates),
        prepare=prepare,
    )
