"""Finds the facts of a document in its text without a model, each with its sentence or table row."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from rag_harness.authoring.questions.by_language.stated_facts import StatedFact, facts_stated
from rag_harness.authoring.questions.quotable_passages import QuotablePassage, passages
from rag_harness.authoring.questions.sentence_facts import read_sentence
from rag_harness.authoring.questions.tables import read_row
from rag_harness.types import Document
from rag_harness.words.languages import ENGLISH

PLANNED_KINDS = ("amount", "date", "limit", "rule")


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact, which the quote ``document.text[start:end]`` states.

    Attributes:
        kind: condition, purpose, definition, property, quantity, permission or cell; one of PLANNED_KINDS if a plan
            says that the page must state it.
        said: the statement as a reader sees it: the ground truth of a question about it.
        answer: the part of the statement that is asked for.
        parts: the other parts of the question, by name.
    """

    doc_id: str
    section: tuple[str, ...]
    kind: str
    start: int
    end: int
    quote: str
    said: str
    answer: str
    parts: Mapping[str, str] = field(default_factory=dict)


def read_facts(document: Document, names: Collection[str] = frozenset()) -> Iterator[Fact]:
    """Yield the facts of a document in their order; a passage may state several.

    ``names`` are words that keep their capital within a sentence.
    """
    for passage in passages(document):
        for kind, answer, parts, said in _stated(passage, document.language, names):
            quote = document.text[passage.start : passage.end]
            place = (document.doc_id, passage.section, kind, passage.start, passage.end)
            yield Fact(*place, quote, said, answer, parts)


def _stated(passage: QuotablePassage, language: str, names: Collection[str]) -> Iterator[StatedFact]:
    if language != ENGLISH:
        return facts_stated(passage, language)
    return read_row(passage, names) if passage.names else read_sentence(passage, names)
