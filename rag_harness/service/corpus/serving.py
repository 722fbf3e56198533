"""One state of a collection. A question keeps the state with which it began until it is answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from rag_harness.models.answer_length import LONGEST_ANSWER
from rag_harness.protocols import Experiment
from rag_harness.types import Document

DEFAULT = "default"
"""The collection for requests that name none; it begins with a folder of documents."""


@dataclass(frozen=True)
class Serving:
    """What answers questions about one state of a collection.

    Attributes:
        experiment: the experiment over these documents.
        strict: the variant that answers in mode strict; None if the experiment has none.
        document: returns a document of this state by the ``doc_id`` of its chunks; KeyError if it does not exist.
        generation: counts the states of the collection.
        check: raises QueryTooLongError if a question is too long for the embedder.
        longest_answer: most characters of an answer; a longer one counts as an error of the model.
        refusals: phrases that decline, besides those that are known.
    """

    experiment: Experiment
    strict: Experiment | None
    document: Callable[[str], Document]
    generation: int
    check: Callable[[str], None] = lambda _question: None
    longest_answer: int = LONGEST_ANSWER
    refusals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DocumentInfo:
    """The details of a document, without its text.

    ``status`` is ``pending``, ``ready`` or ``failed``; ``why`` says why it failed, or which charset was guessed;
    ``dropped`` counts what was left out, by reason; ``coverage`` is the share of the text's characters, blanks aside,
    that lie in chunks.
    """

    doc_id: str
    name: str
    status: Literal["pending", "ready", "failed", "deleting"]
    why: str
    chunks: int
    dropped: dict[str, int]
    coverage: float | None
    bytes: int
    created: str
