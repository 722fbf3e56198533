"""What a document states, found in its text without a model: each fact with the sentence or table row that says it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from rag_harness.authoring.questions.passages import passages
from rag_harness.authoring.questions.sentences import read_sentence
from rag_harness.authoring.questions.tables import read_row
from rag_harness.types import Document

PLANNED_KINDS = ("amount", "date", "limit", "rule")


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that ``document.text[start:end]``, the quote, says.

    Attributes:
        kind: condition, purpose, definition, property, quantity, permission or cell; or one of PLANNED_KINDS where a
            plan says that the page must state it.
        said: the statement as a reader sees it, which is the ground truth of a question about it.
        answer: the part of it that is asked for.
        parts: what else the question is made of, by name.
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

    ``names`` are words that keep their capital letter inside of a sentence.
    """
    for passage in passages(document):
        for kind, answer, parts, said in read_row(passage, names) if passage.names else read_sentence(passage, names):
            quote = document.text[passage.start : passage.end]
            place = (document.doc_id, passage.section, kind, passage.start, passage.end)
            yield Fact(*place, quote, said, answer, parts)
