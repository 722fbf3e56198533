"""Templates of request bodies: ``{{query}}``, ``{{inputs.selected_text}}``, ``{{messages}}`` inside its strings."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from rag_harness.errors import ModelCallError, SettingsError, unknown
from rag_harness.types import SESSION, Query

_ANY = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_SLOT = re.compile(r"\s*(\*?)\s*(\w[\w.-]*)\s*(\??)\s*")
_KNOWN = ("query", "query_id", "history", "messages", "inputs")
_HINT = "What else the user sent is {{inputs.NAME}}."
_ABSENT: Any = object()


class Template:
    """A request body with placeholders for the values of a query.

    A string that is only one placeholder becomes the value with its type. In a longer string the value becomes text.
    A placeholder with ``?`` at its end is optional: without a value, its key or item is left out. ``{{*history}}`` in
    a list inserts the items of the value. A question with nothing before it has an empty history.

    Args:
        value: any JSON.
        where: the place of the template, for messages.
        has_session: whether ``{{session}}`` may stand in it. Its key is left out as long as there is no session.

    Raises:
        SettingsError: a placeholder has a name that no query has.
    """

    def __init__(self, value: Any, where: str, has_session: bool = False) -> None:
        self._value, self._where = value, where
        _check(value, where, (*_KNOWN, "session") if has_session else _KNOWN)

    def fill(self, query: Query) -> Any:
        """Return the template with the values of ``query``.

        Raises:
            ModelCallError: the query lacks an input; names it, and the inputs of the query.
        """
        filled = self._filled(self._value, query)
        return None if filled is _ABSENT else filled

    def fill_url(self, query: Query) -> str:
        """Return the template of an address with the values of ``query``, URL-quoted.

        Raises:
            ModelCallError: the query lacks an input.
        """
        return _ANY.sub(lambda slot: quote(_as_text(self._value_of(slot[1], query)), safe=""), str(self._value))

    def _filled(self, value: Any, query: Query) -> Any:
        if isinstance(value, Mapping):
            filled = {key: self._filled(each, query) for key, each in value.items()}
            return {key: each for key, each in filled.items() if each is not _ABSENT}
        if isinstance(value, list):
            return [item for each in value for item in self._items(each, query)]
        return self._text(value, query) if isinstance(value, str) else value

    def _items(self, value: Any, query: Query) -> list[Any]:
        filled = self._filled(value, query)
        alone = _ANY.fullmatch(value.strip()) if isinstance(value, str) else None
        if alone and alone[1].strip().startswith("*"):
            return list(filled) if isinstance(filled, list) else [] if filled is _ABSENT else [filled]
        return [] if filled is _ABSENT else [filled]

    def _text(self, text: str, query: Query) -> Any:
        alone = _ANY.fullmatch(text.strip())
        if alone and "}}" not in alone[1]:
            return self._value_of(alone[1], query)
        return _ANY.sub(lambda slot: _as_text(self._value_of(slot[1], query)), text)

    def _value_of(self, slot: str, query: Query) -> Any:
        _, name, optional = _parts(slot)
        first, _, rest = name.partition(".")
        if first in ("query", "query_id"):
            return query.text if first == "query" else query.query_id
        if first == "session":
            return query.inputs.get(SESSION, _ABSENT)
        if first == "messages":
            return [*self._history(query), {"role": "user", "content": query.text}]
        if name == "history" and not optional and "history" not in query.inputs:
            return []
        value: Any = {key: each for key, each in query.inputs.items() if key != SESSION}
        for key in [*(["history"] if first == "history" else []), *(rest.split(".") if rest else [])]:
            value = value.get(key, _ABSENT) if isinstance(value, Mapping) else _ABSENT
        if value is _ABSENT and not optional:
            raise ModelCallError(self._missing(name, query))
        return value

    def _history(self, query: Query) -> list[Any]:
        history = query.inputs.get("history", [])
        if not isinstance(history, list):
            raise ModelCallError(
                f"{self._where} wants {{{{messages}}}}, and the history of {query.query_id} is no list of messages. "
                f"Send it as it is, {{{{history}}}}, or write it as a list of messages with role and content."
            )
        return history

    def _missing(self, name: str, query: Query) -> str:
        has = ", ".join(sorted(query.inputs.keys() - {SESSION})) or "none"
        return (
            f"{self._where} wants {{{{{name}}}}}, and {query.query_id} has no such input; its inputs: {has}. "
            f"Where it may be missing: {{{{{name}?}}}}."
        )


def _check(value: Any, where: str, known: Sequence[str]) -> None:
    for each in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        _check(each, where, known)
    for slot in _ANY.findall(value) if isinstance(value, str) else ():
        _, name, _ = _parts(slot, where)
        first, dot, _ = name.partition(".")
        if first not in known or (dot and first not in ("inputs", "history")):
            hint = "A service that keeps conversations has [session]." if first == "session" else _HINT
            raise SettingsError(f"{where}: {unknown('placeholder', name, known)} {hint}")


def _parts(slot: str, where: str = "") -> tuple[str, str, str]:
    found = _SLOT.fullmatch(slot)
    if found is None:
        raise SettingsError(f"{where}: {{{{{slot}}}}} is no placeholder. Write {{{{query}}}} or {{{{inputs.NAME}}}}.")
    return found[1], found[2], found[3]


def _as_text(value: Any) -> str:
    if value is _ABSENT or value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
