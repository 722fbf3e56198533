"""The recording most similar to a request without one, and the differences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rag_harness.models.recording.abridged import abridged
from rag_harness.models.recording.cassette_file import Recorded
from rag_harness.models.recording.cleaned_request import CleanedRequest, normal

_SHORT = ("model", "temperature", "seed", "max_tokens")
"""Fields whose recorded value is short enough for a message."""


class Neighbours:
    """The requests of one folder's recordings. Each is read and split into lines once, for all requests without one.

    Args:
        recordings: the recordings of the folder, by file. Their answers are not kept.
    """

    def __init__(self, recordings: Iterable[tuple[Path, Recorded]]) -> None:
        self._recorded: dict[Path, Recorded] = {}
        self._lines: dict[Path, frozenset[str]] = {}
        known: dict[str, str] = {}  # prompts share most of their lines, so each line is kept once
        for file, recorded in recordings:
            self._recorded[file] = replace(recorded, body=b"")
            lines = _lines(abridged(recorded.request), recorded.url)
            self._lines[file] = frozenset(known.setdefault(line, line) for line in lines)

    def nearest(self, asked: CleanedRequest) -> tuple[Path, Recorded] | None:
        """Return the recording with the largest share of lines in common with a request, or None.

        Of equal ones, the last by name is returned.
        """
        mine = _lines(abridged(asked.body), asked.url)
        best = max(self._lines, key=lambda file: (_likeness(mine, self._lines[file]), file.name), default=None)
        return None if best is None else (best, self._recorded[best])


def _likeness(mine: Set[str], theirs: Set[str]) -> float:
    shared = len(mine & theirs)
    return shared / max(1, len(mine) + len(theirs) - shared)


def request_differences(asked: CleanedRequest, recorded: Recorded) -> list[str]:
    """Return the differences: fields of the request; in the prompt, the system text, the sources or the question."""
    # Some recordings have an abridged prompt. The digests of cut paragraphs differ where the paragraphs do.
    one, other = _fields(abridged(asked.body)), _fields(abridged(recorded.request))
    keys = [key for key in {*one, *other} - {"messages"} if normal(one.get(key)) != normal(other.get(key))]
    found = [f"{key} ({other.get(key)!r} recorded)" if key in _SHORT else key for key in sorted(keys)]
    mine, theirs = _parts(one), _parts(other)
    found += [name for name in dict.fromkeys([*mine, *theirs]) if mine.get(name) != theirs.get(name)]
    return [*_address(asked.url, recorded.url), *found, *(["the body"] if asked.raw else [])]


def _address(asked: str, recorded: str) -> Iterator[str]:
    mine, theirs = urlsplit(asked), urlsplit(recorded)
    if mine.path != theirs.path:
        yield f"the path ({theirs.path} recorded)"
    if mine.query != theirs.query:
        yield f"the query string ({theirs.query!r} recorded)"


def _fields(body: Any) -> Mapping[str, Any]:
    return body if isinstance(body, Mapping) else {"the body": body}


def _lines(body: Any, url: str) -> set[str]:
    messages = body.get("messages") if isinstance(body, Mapping) else None
    said = (str(each.get("content", "")) for each in _messages(body)) if messages else _texts(body)
    return {line for text in said for line in text.splitlines()} or set(re.split(r"[/?&]", url))


def _messages(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    messages = body.get("messages")
    return [each for each in messages if isinstance(each, Mapping)] if isinstance(messages, list) else []


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for each in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from _texts(each)


def _parts(body: Mapping[str, Any]) -> dict[str, str]:
    parts: dict[str, str] = {}
    for message in _messages(body):
        content = str(message.get("content", ""))
        if message.get("role") == "system":
            parts["the system prompt"] = content
            continue
        context, _, question = content.rpartition("Question: ")
        parts["the question"] = question
        # A source's address counts, too: a long one is abridged together with its text.
        for label, text in re.findall(r"^\[(Source \d+): (.*?)(?=^\[Source \d+: |\Z)", context, re.M | re.S):
            parts[f"the text of [{label}]"] = text.strip()
    return parts
