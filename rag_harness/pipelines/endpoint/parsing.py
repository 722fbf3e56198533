"""Parser for the JSON of an answer, with a reason where it fails."""

from __future__ import annotations

import json
from typing import Any

from rag_harness.errors import ModelOutputError
from rag_harness.files.json_text import DEEPEST_JSON, is_deep

_SHOWN = 120


def parsed_json(content: bytes, name: str, kind: str) -> Any:
    """Return the JSON of an answer.

    Args:
        content: the whole body.
        name: the name of the service, for messages.
        kind: the content type.

        Raises:
            ModelOutputError: the body is no UTF-8, no JSON (HTML, cut short, empty), or nested too deeply.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        said = content[:_SHOWN].decode("utf-8", "replace")
        raise ModelOutputError(f"{name} answered with no UTF-8, at byte {error.start}: {said!r}", said) from None
    try:
        found = json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise _too_deep(name, text) from None
    except ValueError as error:
        raise ModelOutputError(_no_json(text, name, kind, error), text[:4000]) from None
    if text.count("[") + text.count("{") > DEEPEST_JSON and is_deep(found):
        raise _too_deep(name, text)
    return found


def _no_json(text: str, name: str, kind: str, error: ValueError) -> str:
    what = kind.partition(";")[0] or "a text"
    if not text.strip():
        return f"{name} answered with nothing: {what} without a body."
    if text.lstrip()[:1] == "<":
        return f"{name} answered with {what} that is no JSON but a page: {text.strip()[:_SHOWN]!r}. Is the url right?"
    end = (
        "; it looks cut short" if getattr(error, "pos", 0) >= len(text.rstrip()) or "Unterminated" in str(error) else ""
    )
    return f"{name} answered with {what} that is no JSON ({error}{end}): {text[:_SHOWN]!r}"


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


def _too_deep(name: str, text: str) -> ModelOutputError:
    return ModelOutputError(f"{name} answered with JSON that is nested deeper than {DEEPEST_JSON} levels.", text[:4000])
