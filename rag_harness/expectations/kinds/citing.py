"""Kinds that look at what an answer cites, and at what was in its prompt. A document may be a pattern: ``a*.md``."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import ClassVar

from rag_harness.expectations.kind import AnswerSeen, ExpectationKind, Finding
from rag_harness.expectations.kinds.demand_checks import text_problem, texts_problem, true_problem
from rag_harness.expectations.kinds.text import found_text
from rag_harness.types import Expectation

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
