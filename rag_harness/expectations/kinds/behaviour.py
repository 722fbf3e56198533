"""Kinds that look at how an answer came about: whether it declines, what was decided, time, cost, tokens."""

from __future__ import annotations

from rag_harness.expectations.kind import AnswerSeen, ExpectationKind, Finding
from rag_harness.expectations.kinds.demand_checks import most_problem, text_problem, true_problem
from rag_harness.types import Expectation

_DECISIONS = ("pass", "warn", "abstain")


class Declines(ExpectationKind):
    """The answer says that it does not know."""

    def problem(self, demand: Expectation) -> str:
        return true_problem(demand.wanted)

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        return Finding(answer.declined, "it declines" if answer.declined else f"it says “{answer.text[:160].strip()}”")


class Answers(Declines):
    """The answer says something other than that it does not know."""

    of_content = False

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        found = super().look(answer, demand)
        return Finding(not found.does and bool(answer.text.strip()), found.said)


class Decides(ExpectationKind):
    """A pipeline that decides has decided this: pass, warn or abstain."""

    def problem(self, demand: Expectation) -> str:
        return (
            "" if demand.wanted in _DECISIONS else f"write one of {', '.join(_DECISIONS)}; found {demand.wanted!r:.40}"
        )

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        if not answer.decision:
            return Finding(None, "the pipeline decides nothing")
        return Finding(answer.decision == demand.wanted, f"it decided {answer.decision}")


class MinConfidence(ExpectationKind):
    """The pipeline is at least so sure of its answer, from 0 to 1."""

    of_content = False

    def problem(self, demand: Expectation) -> str:
        return most_problem(demand.wanted) or (
            "" if demand.wanted <= 1 else f"a number up to 1 was expected; found {demand.wanted}"
        )

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        if answer.confidence is None:
            return Finding(None, "the pipeline states no confidence")
        return Finding(answer.confidence >= demand.wanted, f"its confidence is {answer.confidence:.2f}")


class MaxMs(ExpectationKind):
    """The trial took at most so many milliseconds."""

    of_content = False

    def problem(self, demand: Expectation) -> str:
        return most_problem(demand.wanted)

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        return Finding(answer.ms <= demand.wanted, f"it took {answer.ms:,.0f} ms")


class MaxUsd(MaxMs):
    """The trial cost at most so many US dollars."""

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        if answer.usd is None:
            return Finding(None, "the cost is not known")
        return Finding(answer.usd <= demand.wanted, f"it cost ${answer.usd:.6f}")


class MaxTokens(MaxMs):
    """All calls of the trial together used at most so many tokens."""

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        if answer.tokens is None:
            return Finding(None, "no call reported tokens")
        return Finding(answer.tokens <= demand.wanted, f"it used {answer.tokens:,} tokens")


class Finishes(ExpectationKind):
    """The model stopped for this reason: "stop" where it came to its end, "length" where it was cut short."""

    of_content = False

    def problem(self, demand: Expectation) -> str:
        return text_problem(demand.wanted)

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        if not answer.finish_reason:
            return Finding(None, "the model does not say why it stopped")
        return Finding(answer.finish_reason == demand.wanted, f"it stopped for the reason {answer.finish_reason!r}")
