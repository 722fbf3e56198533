"""The baseline reader: quote the context's best units with citations, or say that the context has no answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_harness.chat.embedded.evidence import Evidence, gather
from rag_harness.chat.embedded.prompt import parse_prompt
from rag_harness.chat.embedded.scoring import read_question
from rag_harness.chat.embedded.steps import explain

UNKNOWN = "I don't know. The provided context does not answer this."
NO_CONTEXT = "I don't know."

# Less than half of what the question asks about is a guess, not an answer.
MIN_SUPPORT = 0.5


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read: ``support`` is the share of the question's weight that the answer's units and source cover."""

    answer: str
    steps: tuple[str, ...] = ()
    supported: bool = False
    support: float = 0.0
    citations: tuple[int, ...] = ()


def read(messages: Sequence[Mapping[str, Any]], wants_steps: bool = False) -> Reading:
    """Answer the last user message from its own context; the same messages give the same reading."""
    prompt = parse_prompt(messages)
    question = read_question(prompt.question)
    evidence = gather(prompt, question)
    supported = evidence.support >= MIN_SUPPORT
    cited = tuple(dict.fromkeys(c.unit.source for c in evidence.chosen)) if supported else ()
    refusal = UNKNOWN if prompt.sources else NO_CONTEXT
    return Reading(
        answer=_quote(evidence) if supported else refusal,
        steps=explain(prompt, question, evidence, cited) if wants_steps else (),
        supported=supported,
        support=evidence.support,
        citations=cited,
    )


def _quote(evidence: Evidence) -> str:
    return " ".join(f"{candidate.unit.text} [Source {candidate.unit.source}]" for candidate in evidence.chosen)
