"""Kinds that look at citations, context, refusals, decisions, time, cost and tokens."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import ClassVar

from rag_harness.core.types import Expectation
from rag_harness.evaluation.expectations.text import found_text
from rag_harness.records.expectations import (
    AnswerSeen,
    ExpectationKind,
    Finding,
    most_problem,
    text_problem,
    texts_problem,
    true_problem,
)

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


# Kinds that look at what an answer cites, and at what was in its prompt. A document may be a pattern: ``a*.md``.

_NO_SOURCES = Finding(None, "the pipeline reports no sources")


def _is_one_of(document: str, wanted: list[str]) -> bool:
    return any(fnmatchcase(document, each) for each in wanted)


def _cited(answer: AnswerSeen) -> str:
    documents = answer.documents_cited
    return f"it cites {', '.join(documents)}" if documents else "it cites nothing"


class Cites(ExpectationKind):
    """The answer cites this document."""

    def problem(self, demand: Expectation) -> str:
        return text_problem(demand.wanted)

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        if answer.sources is None:
            return _NO_SOURCES
        return Finding(any(_is_one_of(each, [demand.wanted]) for each in answer.documents_cited), _cited(answer))


class CitesAny(ExpectationKind):
    """The answer cites at least one of these documents."""

    def problem(self, demand: Expectation) -> str:
        return texts_problem(demand.wanted)

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        if answer.sources is None:
            return _NO_SOURCES
        return Finding(any(_is_one_of(each, demand.wanted) for each in answer.documents_cited), _cited(answer))


class CitesAll(CitesAny):
    """The answer cites each of these documents."""

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        if answer.sources is None:
            return _NO_SOURCES
        cited = answer.documents_cited
        return Finding(all(any(_is_one_of(each, [one]) for each in cited) for one in demand.wanted), _cited(answer))


class CitesOnly(CitesAny):
    """The answer cites something, and nothing but these documents."""

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        if answer.sources is None:
            return _NO_SOURCES
        cited = answer.documents_cited
        return Finding(bool(cited) and all(_is_one_of(each, demand.wanted) for each in cited), _cited(answer))


class CitesSomething(ExpectationKind):
    """The answer cites at least one source of its prompt."""

    of_content = False

    def problem(self, demand: Expectation) -> str:
        return true_problem(demand.wanted)

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        return _NO_SOURCES if answer.sources is None else Finding(bool(answer.documents_cited), _cited(answer))


class ValidCitations(CitesSomething):
    """Each source that the answer cites was in its prompt."""

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        if answer.sources is None:
            return _NO_SOURCES
        wrong = ", ".join(map(str, answer.cited_wrongly))
        said = f"of {len(answer.sources)} sources it cites {wrong}" if wrong else "all cited sources were in the prompt"
        return Finding(not wrong, said)


class Retrieves(Cites):
    """A chunk of this document was in the prompt."""

    of_content = False

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        if answer.sources is None:
            return _NO_SOURCES
        documents = list(dict.fromkeys(each.document for each in answer.sources))
        said = f"its prompt had {', '.join(documents)}" if documents else "its prompt had no sources"
        return Finding(any(_is_one_of(each, [demand.wanted]) for each in documents), said)


class ContextContains(ExpectationKind):
    """The text stands in a source of the prompt."""

    of_content = False

    options: ClassVar[Mapping[str, type | tuple[type, ...]]] = {"case": bool}

    def problem(self, demand: Expectation) -> str:
        return text_problem(demand.wanted)

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        if answer.sources is None:
            return _NO_SOURCES
        for number, source in enumerate(answer.sources, 1):
            if found_text(AnswerSeen(source.text), demand.wanted, demand.options).does:
                return Finding(True, f"source {number}, {source.document}, has it")
        return Finding(False, f"none of its {len(answer.sources)} sources has it")
