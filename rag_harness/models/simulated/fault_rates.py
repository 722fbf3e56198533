"""The faults of the simulated model and their rates. The numbers were chosen before anybody had looked at a verdict.

They are round, and large enough that 200 questions show each fault. They describe no real model.
"""

from __future__ import annotations

from dataclasses import dataclass

WRONG_MEMORY = "wrong memory"
INVENTED = "invented"
IGNORED = "ignored the context"
MIXED = "mixed sources"
GUESSED = "answered without evidence"
DECLINED = "declined in spite of evidence"


@dataclass(frozen=True, slots=True)
class FaultRate:
    """How often a fault is made where it is possible.

    Attributes:
        rate: share of the answers to prompts that ask for no reasoning.
        reasoned: share of the answers to prompts that ask for reasoning steps.
        possible: where the fault is possible.
        made: what the answer is then.
    """

    rate: float
    reasoned: float
    possible: str
    made: str


FAULTS = {
    WRONG_MEMORY: FaultRate(
        0.55,
        0.55,
        "the model answers from memory, and the documents answer the question",
        "the gold answer with another number, another name or a turned negation, or the answer to another question",
    ),
    INVENTED: FaultRate(
        0.70,
        0.70,
        "the model answers from memory, and no document answers the question",
        "the answer to another question, changed in the same way; otherwise it declines",
    ),
    IGNORED: FaultRate(0.20, 0.08, "the prompt has a context", "an answer from memory, without a citation"),
    MIXED: FaultRate(
        0.20,
        0.08,
        "the context has all evidence, and a source of another page",
        "the gold answer, and a sentence of the other page, cited as if it stood on the right one",
    ),
    GUESSED: FaultRate(
        0.40,
        0.12,
        "the context lacks evidence, or no document answers the question",
        "the nearest sentence of the context with another number, another name or a turned negation, cited",
    ),
    DECLINED: FaultRate(0.10, 0.05, "the context has all evidence", "I don't know"),
}
"""Each fault with its rates. Without a fault, the model gives the gold answer and cites the sources of its evidence
where the context has all of it, and declines where it has not."""


def fault_rate(fault: str, reasons: bool) -> float:
    """Return the rate of ``fault`` for a prompt that asks for reasoning, or for one that does not."""
    return FAULTS[fault].reasoned if reasons else FAULTS[fault].rate
