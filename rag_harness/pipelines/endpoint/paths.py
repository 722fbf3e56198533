"""Paths into an answer: ``answer``, ``choices[0].message.content``, ``/data/0/text``, ``$.hits[*].text``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rag_harness.errors import SettingsError

_STEP = re.compile(r"""(?:^|\.)([^.\[\]'"*?@()$,\s]+)|\[(\d+)\]|\['([^'\\]*)'\]|\["([^"\\]*)"\]""")
_SHOWN = 12
"""Most keys that a message lists."""


class Path:
    """One path: a JSON Pointer (RFC 6901) where it begins with ``/``, else JSONPath (RFC 9535), whose ``$.`` may be
    left out. A path with ``?`` at its end is optional.

    Raises:
        SettingsError: the text is neither.
    """

    def __init__(self, text: str, where: str = "") -> None:
        self.text, self.is_optional = text, text.endswith("?")
        plain = text.removesuffix("?")
        self._steps = _pointer(plain) if plain.startswith("/") else _steps(plain)
        self._query = None if self._steps is not None else _compiled(plain, where)

    def find(self, document: Any) -> list[Any]:
        """Return the values that the path finds, in order."""
        if self._query is not None:
            return list(self._query.find(document).values())
        depth, value = self._walk(document)
        return [value] if depth == len(self._steps or ()) else []

    @property
    def is_many(self) -> bool:
        """Whether the path may find several values."""
        return self._query is not None and not self._query.singular_query()

    def nearest(self, document: Any) -> str:
        """Say how far the path leads, and what the value there is."""
        depth, value = self._walk(document) if self._steps else (0, document)
        at = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in (self._steps or ())[:depth])
        return f"At ${at} there is {described(value)}"

    def _walk(self, document: Any) -> tuple[int, Any]:
        """Return how many steps of the path exist, and the value after the last of them."""
        value = document
        for depth, step in enumerate(self._steps or ()):
            if isinstance(value, Mapping) and str(step) in value:
                value = value[str(step)]
            elif isinstance(value, list) and str(step).isdecimal() and int(step) < len(value):
                value = value[int(step)]
            else:
                return depth, value
        return len(self._steps or ()), value


def described(value: Any) -> str:
    """Describe a value in words: the keys of an object, the length of a list."""
    if isinstance(value, Mapping):
        more = ", …" if len(value) > _SHOWN else ""
        return f"an object with {', '.join(map(repr, list(value)[:_SHOWN])) or 'no keys'}{more}"
    if isinstance(value, list):
        return f"a list of {len(value)}" + (f", first {described(value[0])}" if value else "")
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f"text: {value[:60]!r}" if isinstance(value, str) else f"the number {value!r}"


def _pointer(text: str) -> tuple[str | int, ...]:
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/"))


def _steps(text: str) -> tuple[str | int, ...] | None:
    """Return the steps of a path that has only names and positions; None for other paths."""
    rest = text.removeprefix("$")
    if text.startswith("$") and rest[:1] not in ("", ".", "["):
        return None
    steps: list[str | int] = []
    at = 0
    while at < len(rest):
        found = _STEP.match(rest, at)
        if found is None:
            return None
        steps.append(int(found[2]) if found[2] else next(name for name in found.group(1, 3, 4) if name is not None))
        at = found.end()
    return tuple(steps)


def _compiled(text: str, where: str) -> Any:
    # The import takes 0.1 s, because of its regular expressions. So only paths that need it pay for it.
    import jsonpath_rfc9535 as jsonpath

    try:
        return jsonpath.compile(text if text.startswith("$") else f"$.{text}")
    except jsonpath.JSONPathError as error:
        raise SettingsError(
            f"{where} = {text!r} is no path: {' '.join(str(error).split())}. Write names with dots between them, "
            f"JSONPath ($.hits[*].text) or a JSON Pointer (/hits/0/text)."
        ) from None
