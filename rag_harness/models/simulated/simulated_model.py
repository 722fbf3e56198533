"""The simulated model: which fault it makes for a question and a context, and what it answers then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from rag_harness.models.simulated.drawing import drawn, one_of
from rag_harness.models.simulated.fault_rates import (
    DECLINED,
    GUESSED,
    IGNORED,
    INVENTED,
    MIXED,
    WRONG_MEMORY,
    fault_rate,
)
from rag_harness.models.simulated.known_questions import KnownQuestion, Sources, question_key, read_questions
from rag_harness.models.simulated.wrong_answers import changed, names_in, nearest_sentence

I_DONT_KNOW = "I don't know."
"""What the model says when it declines."""


@dataclass(frozen=True, slots=True)
class SimulatedAnswer:
    """An answer, and the truth about it.

    Attributes:
        text: what the model says.
        outcome: whether that is right, wrong, or no answer. An answer with a false part or a wrong citation is wrong.
        fault: the fault that was planted, a key of ``fault_rates.FAULTS``; empty for none.
        steps: reasoning steps. They name the sources that were used, and no fault.
    """

    text: str
    outcome: Literal["right", "wrong", "declined"]
    fault: str = ""
    steps: tuple[str, ...] = ()


class SimulatedModel:
    """A model that knows questions and their gold, and makes faults at the rates of ``fault_rates``.

    Whether a question meets a fault is drawn once a seed and question, whatever the context is. So two experiments
    differ only in what their contexts hold, and in the lower rates of reasoning.

    Args:
        questions: the questions by ``question_key``.
    """

    def __init__(self, questions: Mapping[str, KnownQuestion]) -> None:
        self._questions = questions
        self._answered = [each for each in questions.values() if each.pages]
        self._names = names_in(each.answer for each in self._answered)

    @classmethod
    def reading(cls, queries: Path, mapped: Mapping[str, str] = MappingProxyType({})) -> SimulatedModel:
        """Return a model that knows the questions of a ``queries.jsonl``, or of a table by the columns of ``mapped``.

        Raises:
            DataError: the file cannot be read.
        """
        return cls(read_questions(queries, mapped))

    def answer(self, question: str, context: Sources = (), *, seed: int = 7, reasons: bool = False) -> SimulatedAnswer:
        """Answer a question from ``context``, or from memory where that is empty. A strange question is declined.

        Args:
            question: a question of the file that the model knows.
            context: file and text of each source.
            seed: another seed makes other faults.
            reasons: whether the prompt asks for reasoning steps, with which the model makes fewer faults.
        """
        known = self._questions.get(question_key(question))
        if known is None:
            return SimulatedAnswer(I_DONT_KNOW, "declined", steps=_steps(context, ()))
        return _Trial(self, known, context, seed, reasons).answer()

    def from_memory(self, known: KnownQuestion, seed: int) -> SimulatedAnswer:
        """Return what the model remembers. It remembers the same each time."""
        key = question_key(known.text)
        fault = WRONG_MEMORY if known.pages else INVENTED
        is_wrong = drawn(seed, key, fault) < fault_rate(fault, reasons=False)
        if not is_wrong:
            return SimulatedAnswer(known.answer, "right") if known.pages else SimulatedAnswer(I_DONT_KNOW, "declined")
        other = self._other_answer(known, seed)
        said = changed(known.answer if known.pages else other, self._names, seed, key, fault)
        is_other = known.pages and (drawn(seed, key, "other question") < 0.25 or said == known.answer)
        return SimulatedAnswer(other if is_other else said, "wrong", fault)

    def changed(self, sentence: str, *draw: object) -> str:
        """Return a sentence with one thing changed."""
        return changed(sentence, self._names, *draw)

    def _other_answer(self, known: KnownQuestion, seed: int) -> str:
        others = [each for each in self._answered if not each.pages & known.pages and each.answer != known.answer]
        alike = [each for each in others if each.topic == known.topic] or others
        return one_of(alike, seed, question_key(known.text), "other").answer if alike else "Certainly."


@dataclass(frozen=True, slots=True)
class _Trial:
    """One question with one context."""

    model: SimulatedModel
    known: KnownQuestion
    context: Sources
    seed: int
    reasons: bool

    def answer(self) -> SimulatedAnswer:
        if not self.context:
            return self._remembered("")
        if self._makes(IGNORED):
            return self._remembered(IGNORED)
        holding = self.known.evidence_in(self.context)
        return self._read(holding) if holding else self._without_evidence()

    def _makes(self, fault: str) -> bool:
        return drawn(self.seed, question_key(self.known.text), fault) < fault_rate(fault, self.reasons)

    def _remembered(self, fault: str) -> SimulatedAnswer:
        found = self.model.from_memory(self.known, self.seed)
        return SimulatedAnswer(found.text, found.outcome, fault or found.fault, _steps(self.context, ()))

    def _read(self, holding: list[int]) -> SimulatedAnswer:
        if self._makes(DECLINED):
            return SimulatedAnswer(I_DONT_KNOW, "declined", DECLINED, _steps(self.context, ()))
        said = f"{self.known.answer} {' '.join(f'[Source {n}]' for n in holding)}"
        pages = {self.context[n - 1][0] for n in holding}
        # Sources of the right pages keep their number, and have no text, so that no sentence of theirs is taken.
        strange = [(file, "" if file in pages else text) for file, text in self.context]
        sentence, _ = nearest_sentence(self.known.text, strange)
        if sentence and self._makes(MIXED):
            mixed = f"{said} {sentence} [Source {holding[0]}]"
            return SimulatedAnswer(mixed, "wrong", MIXED, _steps(self.context, holding))
        return SimulatedAnswer(said, "right", "", _steps(self.context, holding))

    def _without_evidence(self) -> SimulatedAnswer:
        sentence, number = nearest_sentence(self.known.text, self.context)
        if not sentence or not self._makes(GUESSED):
            return SimulatedAnswer(I_DONT_KNOW, "declined", "", _steps(self.context, ()))
        said = self.model.changed(sentence, self.seed, question_key(self.known.text), GUESSED)
        return SimulatedAnswer(f"{said} [Source {number}]", "wrong", GUESSED, _steps(self.context, [number]))


def _steps(context: Sources, used: list[int] | tuple[int, ...]) -> tuple[str, ...]:
    sources = ", ".join(map(str, used)) or "none"
    return (f"Simulated step: {len(context)} sources were read.", f"Simulated step: sources used: {sources}.")
