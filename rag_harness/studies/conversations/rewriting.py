"""Makes a question that stands alone: with a model of role ``rewrite`` if there is one, else by rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rag_harness.pipelines.parts import RunParts
from rag_harness.pipelines.trace import Trace
from rag_harness.protocols import ChatModel
from rag_harness.retrieval.carried_words import CarriedOver, with_carried_words
from rag_harness.retrieval.rarity import Rarity
from rag_harness.retrieval.retrieval import Retrieval
from rag_harness.studies.conversations.earlier_turns import MOST_MESSAGES, EarlierTurns, earlier_turns
from rag_harness.types import Decision, Message, Query

STAGE = "rewrite"
LONGEST_QUESTION = 1_000
"""The most bytes of a question that was rewritten. A longer text is no question."""
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
        rarity: returns the weights of words in the documents, for the rules.
        longest: the most bytes of a rewritten question.
    """

    rewriter: ChatModel | None
    rarity: Callable[[], Rarity]
    longest: int = LONGEST_QUESTION

    async def searched(self, query: Query, trace: Trace) -> str:
        """Return a question that can be searched for alone. A query that is no turn and has no history is one.

        The stage ``rewrite`` in ``trace`` has what was asked and what is searched, and a decision says who made it. If
        a reply of the model cannot be used, the rules do it, and the decision says why. A failed call fails the trial.
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
