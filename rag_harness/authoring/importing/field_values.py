"""Values of records as our fields have them: contexts with their documents, the text of an object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_harness.authoring.importing.messages import message_text, structured
from rag_harness.authoring.importing.notes import Notes
from rag_harness.dataset.records.list_cells import texts_of
from rag_harness.dataset.records.source_record import plain_text, said_flag

_DOCUMENT = ("document_id", "doc_id", "document", "source_file", "source", "filename", "id")
_SHOWN = 40
_TEXT = ("text", "content", "page_content", "context", "quote")


def contexts_of(value: Any, separator: str = "") -> list[tuple[str, str]]:
    """Return the texts of contexts, each with the name of its document, empty where none is said.

    Raises:
        ListCellError: a cell begins like a list of texts, and is none.
    """
    is_objects = isinstance(value, str) and value.lstrip()[:1] == "[" and value.lstrip()[1:].lstrip()[:1] == "{"
    found = structured(value) if is_objects else value
    if isinstance(found, list) and any(isinstance(each, dict) for each in found):
        parts = [(_first(each, _TEXT), _first(each, _DOCUMENT)) for each in found if isinstance(each, dict)]
        return [each for each in parts if any(each)]
    return [(text, "") for text in texts_of(value, separator)]


def object_text(value: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return the only text of an object, and its key; None as key where it has several, or none.

    A message counts as its content. A number or a flag alone says nothing without its key, so it is no text.
    """
    if {"role", "speaker"} & value.keys() and (said := message_text(value)):
        return said, "content"
    texts = {key: text for key, each in value.items() if isinstance(each, str) and (text := each.strip())}
    if len(texts) == len(value) == 1:
        ((key, text),) = texts.items()
        return text, key
    return "", None


def noted_flag(value: Any, name: str, where: str, notes: Notes) -> bool | None:
    """Return what a field ``name`` says; None where it says nothing, or neither yes nor no, which is noted."""
    flag = said_flag(value)
    if flag is None and value not in (None, "", []):
        notes.lose(f"{name}: {str(value)[:_SHOWN]!r} is neither yes nor no", where)
    return flag


def _first(values: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((text for name in names if (text := plain_text(values.get(name)))), "")
