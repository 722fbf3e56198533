"""A question as a file of another tool has it, before its evidence is looked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class SaidBefore:
    """What a user said before a question, and what was replied; ``reply`` is empty where nothing was."""

    query: str
    reply: str = ""


@dataclass(frozen=True, slots=True)
class ImportedQuestion:
    """A question with what is known of it.

    Attributes:
        where: its place in the file.
        query: the question.
        name: its id in the file; empty where it has none.
        ground_truth: the answer that is wanted.
        contexts: texts that carry the answer, each with the name of its document, empty where none is said.
        documents: names of documents that carry it.
        expect: what its answer owes, as ``queries.jsonl`` has it.
        tools: the calls of tools that are expected, as ``queries.jsonl`` has them; empty where the file says none.
        query_type: its type; empty where the file says none.
        answerable: whether the documents answer it; None where the file says nothing.
        metadata: labels.
        inputs: what else the user sends.
        before: what was said before it; then it is the last turn of a conversation.
        reply: what was replied to it, where it is a turn.
        conversation: the id of its conversation; empty where the file has none.
        synthetic: whether the file says that no person wrote it.
    """

    where: str
    query: str
    name: str = ""
    ground_truth: str = ""
    contexts: Sequence[tuple[str, str]] = ()
    documents: Sequence[str] = ()
    expect: Sequence[Mapping[str, Any]] = ()
    tools: Sequence[Mapping[str, Any]] = ()
    query_type: str = ""
    answerable: bool | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, Any] = field(default_factory=dict)
    before: Sequence[SaidBefore] = ()
    reply: str = ""
    conversation: str = ""
    synthetic: bool = False
