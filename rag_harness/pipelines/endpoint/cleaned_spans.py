"""Spans without secrets and private text: their words are cleaned, and never their ids, their times or a number."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rag_harness.models.recording.scrubbing import REDACTED, Cleaner, json_of
from rag_harness.settings.secret_names import SECRET_HEADER, SECRET_NAME
from rag_harness.traces.span_record import SpanRecord


def cleaned_span(span: SpanRecord, cleaner: Cleaner) -> SpanRecord:
    """Return a span whose name, message, attributes and events are clean."""
    return replace(
        span,
        name=cleaner.text(span.name),
        message=cleaner.text(span.message),
        attributes=_attributes(span.attributes, cleaner),
        events=tuple(
            replace(event, name=cleaner.text(event.name), attributes=_attributes(event.attributes, cleaner))
            for event in span.events
        ),
    )


def _attributes(said: Mapping[str, Any], cleaner: Cleaner) -> dict[str, Any]:
    return {
        cleaner.without_secrets(name): REDACTED
        if _is_secret(name) and not _is_number(value)
        else _value(value, cleaner)
        for name, value in said.items()
    }


def _is_secret(name: str) -> bool:
    """Return whether an attribute has the name of a secret: ``app.api_key``, ``http.request.header.cookie``."""
    last = name.rpartition(".")[2]
    return bool(SECRET_NAME.fullmatch(last) or (".header." in name and SECRET_HEADER.search(last)))


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float))


def _value(value: Any, cleaner: Cleaner) -> Any:
    if isinstance(value, str):
        # Arguments, messages and documents stand in attributes as JSON, with names of their own.
        said = json_of(value)
        if said is None:
            return cleaner.text(value)
        cleaned = cleaner.value(said)
        return value if cleaned == said else json.dumps(cleaned, ensure_ascii=False)
    if isinstance(value, Mapping):
        return _attributes(value, cleaner)
    return [_value(each, cleaner) for each in value] if isinstance(value, (list, tuple)) else value
