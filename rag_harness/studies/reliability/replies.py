"""The pipeline's own replies: it found too little, or is not sure enough."""

from __future__ import annotations

from dataclasses import replace

from rag_harness.types import Answer

TALK = "Hello. Ask me a question, and I will look it up in the documents."
TOO_LITTLE = "I don't know. The documents that I found do not match the question well enough."
NOT_SURE = "I don't know. I have found something, but I am not sure enough that it answers the question."


def talk() -> Answer:
    """Return the reply to a greeting or thanks."""
    return Answer(TALK, raw=TALK)


def too_little() -> Answer:
    """Return the reply when no model is asked."""
    return Answer(TOO_LITTLE, abstained=True, raw=TOO_LITTLE)


def not_sure(answer: Answer) -> Answer:
    """Return the reply in place of ``answer``, together with the model's text."""
    return replace(answer, text=NOT_SURE, abstained=True, citations=(), invalid_citations=())
