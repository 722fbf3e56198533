"""Parser for contexts: text, id, document and score of each item."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_harness.errors import ModelOutputError
from rag_harness.pipelines.endpoint import answer_values
from rag_harness.pipelines.endpoint.paths import Path, described

_UUID = re.compile(r"(?i)[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}")
CONTEXT_PARTS = {
    "text": answer_values.text,
    "id": answer_values.name,
    "document": answer_values.name,
    "score": answer_values.number,
}
"""The fields of an item, and the type of each."""


@dataclass(frozen=True, slots=True)
class Context:
    """A piece of text that the service names as a source of its answer. ``others`` may name its document, too."""

    text: str
    id: str = ""
    document: str = ""
    score: float | None = None
    others: tuple[str, ...] = ()


def is_uuid(name: str) -> bool:
    """Return whether a name is a UUID: frameworks make new ones for each index."""
    return bool(_UUID.fullmatch(name))


def read_contexts(items: Sequence[Any], paths: Mapping[str, Path], name: str) -> tuple[Context, ...]:
    """Return ``items`` as contexts. An item may be a plain text. ``name`` is the name of the service.

    Raises:
        ModelOutputError: a field of an item is missing or has the wrong type.
    """
    return tuple(_context(item, paths, f"{name}: context {place}") for place, item in enumerate(items, 1))


def _context(item: Any, paths: Mapping[str, Path], where: str) -> Context:
    if isinstance(item, str):
        return Context(item)
    found = {part: value for part in CONTEXT_PARTS if (value := _part(item, part, paths[part], where)) is not None}
    if not found.keys() - {"score"}:
        tried = ", ".join(f"{part} = {paths[part].text!r}" for part in ("text", "id", "document"))
        raise ModelOutputError(
            f"{where} is {described(item)}, and nothing is read of it: {tried} find nothing. Say in [read] where they "
            f"are."
        )
    return Context(**{"text": "", **found})


def _part(item: Any, part: str, path: Path, where: str) -> Any:
    found = path.find(item)
    if not found and not path.is_optional:
        raise ModelOutputError(f"{where}: read.{part} = {path.text!r} finds nothing. {path.nearest(item)}.")
    if not found or found[0] is None:
        return None
    try:
        return CONTEXT_PARTS[part](found[0])
    except answer_values.WrongKindError as error:
        raise ModelOutputError(
            f"{where}: read.{part} = {path.text!r} finds {described(found[0])}; expected {error}."
        ) from None
