"""Values of records as our fields have them: contexts with their documents, the text of an object."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from rag_harness.authoring.importing.messages import message_text, structured
from rag_harness.authoring.importing.notes import Notes
from rag_harness.dataset.records.list_cells import texts_of
from rag_harness.dataset.records.source_record import given, plain_text, said_flag

DOCUMENT_NAMES = ("document_id", "doc_id", "document", "source_file", "source", "filename", "doc_uri", "title", "id")
"""Members of an object that name its document; the first counts."""
_SHOWN = 40
_NESTED = re.compile(r"\s*\[\s*[\[{]")
TEXT_NAMES = ("text", "content", "page_content", "context", "quote")
"""Members of an object that are its text; the first counts."""


def contexts_of(value: Any, separator: str = "") -> tuple[list[tuple[str, str]], int]:
    """Return the texts of contexts, each with the name of its document, and how many items have no text that is known.

    A document's name is empty where none is said.

    Raises:
        ListCellError: a cell begins like a list of texts, and is none.
    """
    found = _items_of(value)
    if found is None:
        return [(text, "") for text in texts_of(value, separator)], 0
    parts = [_text_and_document(each) for each in found]
    return [each for each in parts if any(each)], sum(not any(each) for each in parts)


def beside_texts(value: Any, *read: Sequence[str]) -> list[str]:
    """Return the names of what objects in a list say beside their texts or documents, whose names are ``read``."""
    items = [each for each in flat(_items_of(value) or []) if isinstance(each, Mapping)]
    parts = [each for each in items if any(_first(each, names) for names in read)]
    used = {next((name for name in names if plain_text(each.get(name))), "") for each in parts for names in read}
    return other_members(parts, used)


def other_members(parts: Iterable[Mapping[str, Any]], read: Collection[str]) -> list[str]:
    """Return the names of members that say something and are not among those that are read."""
    named = [name for each in parts for name, value in each.items() if value not in (None, "", [], {})]
    return [name for name in dict.fromkeys(named) if name not in read]


def documents_of(value: Any, separator: str) -> tuple[list[str], int]:
    """Return names of documents, of lists inside a list too, and how many items have no name that is known.

    Raises:
        ListCellError: a cell begins like a list of texts, and is none.
    """
    found = _items_of(value)
    if found is None:
        return texts_of(value, separator), 0
    names = [_first(each, DOCUMENT_NAMES) if isinstance(each, Mapping) else plain_text(each) for each in flat(found)]
    return [name for name in dict.fromkeys(names) if name], names.count("")


def flat(values: list[Any]) -> list[Any]:
    """Return the items of a list and of lists inside it, without empty ones."""
    inner = [item for each in values for item in (flat(each) if isinstance(each, list) else [each])]
    return [each for each in inner if given(each) not in (None, "", {})]


def _items_of(value: Any) -> list[Any] | None:
    """Return the items of a list or an object; None for a text, be it that of a list of texts."""
    is_nested = isinstance(value, str) and (value.lstrip()[:1] == "{" or _NESTED.match(value) is not None)
    found = structured(value) if is_nested else value
    if isinstance(found, Mapping):
        return [found] if found else []
    listed = list(found) if isinstance(found, (list, tuple)) else None
    return None if listed is None else [each for each in listed if given(each) not in (None, "", [], {})]


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


def _text_and_document(value: Any) -> tuple[str, str]:
    if isinstance(value, Mapping):
        return _first(value, TEXT_NAMES), _first(value, DOCUMENT_NAMES)
    return plain_text(value), ""


def _first(values: Mapping[str, Any], names: Sequence[str]) -> str:
    return next((text for name in names if (text := plain_text(values.get(name)))), "")
