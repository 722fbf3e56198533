"""The turns of MTRAG's conversations, and its generation tasks as cases of ours."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag_harness.dataset.conversations import turn_id
from rag_harness.dataset.mtrag_files import QUESTIONS
from rag_harness.types import NEGATIVE, Case, Document, Query

TYPES = {
    "ANSWERABLE": "direct",
    "PARTIAL": "partial",
    "UNANSWERABLE": NEGATIVE,
    "CONVERSATIONAL": "conversational",
    "UNDERSPECIFIED": "underspecified",
}
"""The type of a case by its answerability. The right reply to what is underspecified asks back; only ``negative`` is
declined."""
HAS_PASSAGES = ("direct", "partial")
"""Types whose passages answer them: those that the benchmarks' judgements cover."""
_NAME = re.compile(r"([\w.\-]{1,100})(?:<::>|::)([1-9][0-9]{0,3})")


@dataclass(frozen=True, slots=True)
class MtragTurn:
    """A turn by its conversation's id and its number there, from 1."""

    conversation: str
    number: int

    @property
    def case_id(self) -> str:
        return turn_id(self.conversation, self.number)


@dataclass(frozen=True, slots=True)
class GenerationTask:
    """One task. ``said`` are the turns of user and agent up to the question, which is the last."""

    turn: MtragTurn
    collection: str
    query_type: str
    said: tuple[str, ...]
    passages: tuple[Document, ...]
    reply: str
    labels: Mapping[str, str]

    def query(self, variant: str) -> Query:
        """Return the question: the last turn, or all of the user's turns, a line each."""
        text = "\n".join(self.said[::2]) if variant == QUESTIONS else self.said[-1]
        roles = ["user", "assistant"] * len(self.said)
        history = [{"role": role, "content": each} for role, each in zip(roles, self.said[:-1], strict=False)]
        return query_of(self.turn, text, history)

    def case(self, variant: str, qrels: Mapping[str, int] | None) -> Case:
        """Return the case, with the judgements of the benchmark; None: its passages are the relevant ones."""
        found = dict.fromkeys((each.doc_id for each in self.passages), 1) if qrels is None else qrels
        kept = found if self.query_type in HAS_PASSAGES else {}
        return Case(
            self.query(variant), self.query_type, self.reply, kept,
            answerable=self.query_type != NEGATIVE, metadata=self.labels,
        )  # fmt: skip


def query_of(turn: MtragTurn, text: str, history: Sequence[Mapping[str, str]]) -> Query:
    """Return the query of a turn; ``history`` are messages with ``role`` and ``content``."""
    before = {"history": [*history]} if history else {}
    return Query(turn.case_id, text, {"conversation": turn.conversation, "turn": turn.number, **before})


def turn_of(name: object) -> MtragTurn | None:
    """Return the turn that an id names, ``conversation<::>7`` or ``conversation::7``; None if it names none."""
    found = _NAME.fullmatch(name) if isinstance(name, str) else None
    return MtragTurn(found[1], int(found[2])) if found else None
