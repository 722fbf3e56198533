"""The study of conversations: search queries for questions that depend on earlier turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

from rag_harness.core.protocols import ChatModel, Experiment
from rag_harness.core.text.terms import without_marks
from rag_harness.core.types import Decision, Hit, Message, PipelineOutput, Query
from rag_harness.pipelines.experiments import data_of
from rag_harness.pipelines.parts import RunParts
from rag_harness.pipelines.trace import Trace
from rag_harness.retrieval.builder import Retrieval
from rag_harness.retrieval.retrievers import CarriedOver, Rarity, with_carried_words
from rag_harness.studies.retail import FilteredRag, filtered

__all__ = ["DATA", "build_c1", "build_c1_full", "build_c1_lastturn"]


MOST_MESSAGES = 12
"""The most messages that are used: six questions and their replies. No conversation of the study has more."""
LONGEST_MESSAGE = 2_000
"""The most characters of a message that are used."""


@dataclass(frozen=True, slots=True)
class EarlierTurns:
    """What was said before a question.

    Attributes:
        used: the last messages, the oldest first, each cut to its first ``LONGEST_MESSAGE`` characters.
        said: how many messages there are in all.
        shortened: how many of the used ones are cut.
        fault: why the history of the inputs cannot be read; empty where it can be, or where there is none.
    """

    used: tuple[Message, ...] = ()
    said: int = 0
    shortened: int = 0
    fault: str = ""

    @property
    def left_out(self) -> str:
        """What is not used, in words; empty where everything is."""
        older = self.said - len(self.used)
        found = [self.fault] if self.fault else []
        found += [f"{older} older messages are not used"] if older else []
        found += [f"{self.shortened} are cut to {LONGEST_MESSAGE} characters"] if self.shortened else []
        return "; ".join(found)


def earlier_turns(query: Query) -> EarlierTurns:
    """Return what was said before a query: messages in its inputs under ``history``, or texts by both in turn."""
    said = messages_of(query.inputs.get("history", ()))
    if said is None:
        return EarlierTurns(fault="history is not a list of texts or of objects with role and content")
    last = said[-MOST_MESSAGES:]
    used = tuple(replace(each, content=each.content[:LONGEST_MESSAGE]) for each in last)
    return EarlierTurns(used, len(said), sum(len(each.content) > LONGEST_MESSAGE for each in last))


def messages_of(history: Any) -> list[Message] | None:
    """Return messages from objects with ``role`` and ``content``, or from texts by user and assistant in turn.

    Empty ones are left out. The result is None if ``history`` is neither.
    """
    if not isinstance(history, Sequence) or isinstance(history, str):
        return None
    found = [_message(each, "user" if n % 2 == 0 else "assistant") for n, each in enumerate(history)]
    messages = [each for each in found if each is not None]
    return [each for each in messages if each.content] if len(messages) == len(found) else None


def _message(said: Any, role: str) -> Message | None:
    if isinstance(said, str):
        return Message(role, said.strip())
    if isinstance(said, Mapping) and isinstance(said.get("content"), str):
        # Only these two may speak to a model in somebody's name.
        return Message("assistant" if said.get("role", role) == "assistant" else "user", said["content"].strip())
    return None


DATA = "conversations"


class TurnSearch(Protocol):
    """Makes the text to search for of a turn and of what was said before it."""

    async def searched(self, query: Query, trace: Trace) -> str:
        """Return the text, and note the stage ``rewrite`` in ``trace``."""
        ...

    def ahead(self, query: Query) -> str:
        """Return the text, or the likeliest one if a model makes it. Its vector is prepared before the first trial."""
        ...


@dataclass(frozen=True)
class Conversing:
    """Answers turns of conversations.

    The text that is searched for is also what the reranker and the prompt get as the question. The model gets what was
    said before as messages in front of the prompt.
    """

    filtered: FilteredRag
    turn_search: TurnSearch

    async def answer(self, query: Query) -> PipelineOutput:
        trace, e3 = Trace(), self.filtered
        question = replace(query, text=await self.turn_search.searched(query, trace))
        await trace.retrieve(e3.retriever, question.text, e3.candidates)
        await trace.rerank(e3.reranker, question.text, e3.top_k)
        return await e3.generator.answer(question, trace, history_messages(query))

    async def answer_from(self, query: Query, hits: Sequence[Hit]) -> PipelineOutput:
        """Answer from ``hits`` alone, in their order."""
        trace = Trace(retrieved=list(hits), context=list(hits))
        question = replace(query, text=await self.turn_search.searched(query, trace))
        return await self.filtered.generator.answer(question, trace, history_messages(query))


def history_messages(query: Query) -> list[Message]:
    """Return the messages before a turn as a prompt needs them. Their citations name sources of other prompts."""
    return [replace(each, content=without_marks(each.content)) for each in earlier_turns(query).used]


def conversing(name: str, parts: RunParts, made: Callable[[RunParts, Retrieval], TurnSearch]) -> Experiment:
    """Return the experiment ``name``, which searches for what ``made`` makes, on the experiment's data."""
    data = data_of(name, parts.settings)
    retrieval = parts.retrieval(data=data)
    turn_search = made(parts, retrieval)
    e3 = filtered(name, parts, prompted_as="c1", data=data)
    pipeline = Conversing(cast("FilteredRag", e3.pipeline), turn_search)

    def prepare(queries: Sequence[Query]) -> None:
        retrieval.prepare([turn_search.ahead(query) for query in queries])

    return replace(
        e3,
        pipeline=pipeline,
        prepare=prepare,
        answer_from=pipeline.answer_from,
        ingredients={"searches": type(turn_search).__name__},
        code={"turn search": (type(turn_search).__module__,)},
    )


# Makes a question that stands alone: with a model of role ``rewrite`` if there is one, else by rules.

STAGE = "rewrite"
LONGEST_QUESTION = 1_000
"""The most bytes of a question that was rewritten. A longer text is not a question."""
SPECIAL_TOKENS = 2
"""Tokens that frame a text in an embedder. Each other token has at least one byte."""
SYSTEM = (
    "Rewrite the user's last question so that it can be understood, and looked up, without the conversation before it. "
    'Put what is meant in place of words such as "it", "that one" or "the bigger one". Keep its words where you can, '
    "add nothing that was not said, and do not answer it. If it is complete in itself, or changes the subject, give it "
    "back as it is. Reply with the question alone."
)


@dataclass(frozen=True)
class Rewriting:
    """Makes questions that stand alone.

    Args:
        rewriter: the model of role ``rewrite``; None if rules do it.
        rarity: returns the weights of words in the documents; used by the rules.
        longest: largest size of a rewritten question, in bytes.
    """

    rewriter: ChatModel | None
    rarity: Callable[[], Rarity]
    longest: int = LONGEST_QUESTION

    async def searched(self, query: Query, trace: Trace) -> str:
        """Return a question that can be searched for alone. A query without turn and history stays as it is.

        The stage ``rewrite`` in ``trace`` has the original and the searched question, and a decision names the author.
        If a reply of the model cannot be used, the rules do it, and the decision says why. A failed call fails the
        trial.
        """
        if "history" not in query.inputs and not query.place:
            return query.text
        earlier, why = earlier_turns(query), "no model of role rewrite is configured"
        if self.rewriter is not None and earlier.used:
            text, why = await self._by_model(self.rewriter, query.text, earlier, trace)
            if text:
                return noted_search(query, text, "by model", trace, earlier)
        made = await trace.off_loop(STAGE, self._by_rules, query)
        outcome = "as it is" if made.why_not else "by rules"
        return noted_search(query, made.text, outcome, trace, earlier, made.why_not, why if earlier.used else "")

    def ahead(self, query: Query) -> str:
        """Return the question that the rules make, which is prepared before any model is asked."""
        return self._by_rules(query).text

    def _by_rules(self, query: Query) -> CarriedOver:
        return with_carried_words(query.text, earlier_turns(query).used, self.rarity(), self.longest)

    async def _by_model(self, rewriter: ChatModel, turn: str, earlier: EarlierTurns, trace: Trace) -> tuple[str, str]:
        """Return the model's question, or nothing and why its reply cannot be used."""
        said = await trace.complete(rewriter, _messages(turn, earlier), stage=STAGE, role="rewrite")
        text = " ".join(said.text.split())
        fault = "it says nothing" if not text else ""
        if len(text.encode(errors="replace")) > self.longest:
            fault = f"it has more than {self.longest} bytes"
        return ("", f"the reply of the model of role rewrite cannot be used: {fault}") if fault else (text, "")


def rewriting(parts: RunParts, retrieval: Retrieval) -> Rewriting:
    """Return the rewriting of questions to the documents of ``retrieval``, whose embedder reads each question whole."""
    longest = min(LONGEST_QUESTION, retrieval.embedder.max_tokens - SPECIAL_TOKENS)
    return Rewriting(parts.rewriter(), parts.rarity(retrieval), longest)


def noted_search(query: Query, text: str, by: str, trace: Trace, earlier: EarlierTurns, *why: str) -> str:
    """Return ``text``, which is searched for ``query``, after noting it in the row with who made it and why."""
    reason = "; ".join(filter(None, (*why, earlier.left_out)))
    trace.note(STAGE, asked=query.text, searched=text, by=by)
    trace.decisions.append(Decision(STAGE, by, float(len(earlier.used)), float(MOST_MESSAGES), reason))
    return text


def _messages(turn: str, earlier: EarlierTurns) -> list[Message]:
    said = "\n".join(f"{'Assistant' if each.role == 'assistant' else 'User'}: {each.content}" for each in earlier.used)
    return [Message("system", SYSTEM), Message("user", f"Conversation:\n{said}\n\nLast question: {turn}")]


# C1: a turn becomes a question that stands alone, which is searched and answered as E3 does.


def build_c1(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return conversing("c1", parts, rewriting)


BYTES_A_TOKEN = 2
"""Bytes of a token: for the length of a text that an embedder reads whole. An English token has about four."""


class LastTurn:
    """Searches for the words of the turn."""

    async def searched(self, query: Query, trace: Trace) -> str:
        """Return the words of the turn, noted in ``trace``."""
        with trace.stage(STAGE):
            return noted_search(query, query.text, "the turn alone", trace, EarlierTurns())

    def ahead(self, query: Query) -> str:
        """Return the same words, for preparation."""
        return query.text


@dataclass(frozen=True)
class JoinedTurns:
    """Searches for everything that was said, the turn at the end.

    Args:
        most_tokens: how many tokens the embedder reads. Of a text with more than ``BYTES_A_TOKEN`` as many bytes, the
            last ones are searched, from the beginning of a word.
    """

    most_tokens: int

    async def searched(self, query: Query, trace: Trace) -> str:
        """Return the joined text, noted in ``trace`` with what was cut."""
        with trace.stage(STAGE):
            whole, text = _joined(query), self.ahead(query)
            lost = len(whole) - len(text)
            why = f"the first {lost} of {len(whole)} characters are left out" if lost else ""
            return noted_search(query, text, "all turns", trace, earlier_turns(query), why)

    def ahead(self, query: Query) -> str:
        """Return the joined text, for preparation."""
        whole = _joined(query)
        most = BYTES_A_TOKEN * self.most_tokens
        kept = whole.encode(errors="replace")[-most:].decode(errors="ignore")
        return kept if len(kept) == len(whole) else kept.partition(" ")[2] or kept


def _joined(query: Query) -> str:
    return " ".join([*(each.content for each in earlier_turns(query).used), query.text])


# C1 that searches for everything that was said.


def build_c1_full(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return conversing("c1-full", parts, lambda _parts, retrieval: JoinedTurns(retrieval.embedder.max_tokens))


def build_c1_lastturn(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return conversing("c1-lastturn", parts, lambda _parts, _retrieval: LastTurn())
