"""Reader of an answer's JSON. A path that finds nothing is an error, never an empty answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from rag_harness.errors import EmptyAnswerError, ModelCallError, ModelOutputError, RagHarnessError
from rag_harness.pipelines.context_limit import MOST_CONTEXTS, check_number
from rag_harness.pipelines.endpoint import answer_values
from rag_harness.pipelines.endpoint.answer_values import WrongKindError
from rag_harness.pipelines.endpoint.contexts import Context, read_contexts
from rag_harness.pipelines.endpoint.paths import Path, described
from rag_harness.settings.endpoint_spec import AnswerPaths
from rag_harness.types import Usage

_STOPPED = ("finish_reason", "stop_reason")
_RAW = 4000
"""Most characters of an answer that a failed row keeps."""


@dataclass(frozen=True)
class ServiceAnswer:
    """The parts of an answer. ``citations`` are numbers of ``contexts``, from 1, or their names."""

    answer: str = ""
    contexts: tuple[Context, ...] = ()
    citations: tuple[int | str, ...] | None = None
    confidence: float | None = None
    decision: str = ""
    abstained: bool | None = None
    model: str = ""
    usage_prompt: int = 0
    usage_completion: int = 0


@dataclass(frozen=True)
class AnswerField:
    """One part of an answer: its path, and the value, or why there is none."""

    name: str
    path: str
    value: Any = None
    problem: str = ""


class AnswerReader:
    """Reads the answers of one service.

    Args:
        paths: the paths of the parts.
        name: the name of the service, for messages.
        most: the most contexts of an answer.

    Raises:
        SettingsError: a path is malformed.
    """

    def __init__(self, paths: AnswerPaths, name: str, most: int = MOST_CONTEXTS) -> None:
        self._name, self._most = name, most
        given = {each.name: getattr(paths, each.name) for each in fields(AnswerPaths)}
        self._paths = {key: Path(text, f"{name}: read.{key}") for key, text in given.items() if text}

    def read(self, document: Any) -> ServiceAnswer:
        """Return the parts of the answer ``document``.

        Raises:
            ModelCallError: the answer is an error of the service.
            ModelOutputError: a path finds nothing, or the wrong type; names the path and what is there.
        """
        try:
            self.refuse_error(document)
            found = {name: self._field(name, document) for name in _READS if name in self._paths}
        except ModelOutputError as error:
            kind = EmptyAnswerError if isinstance(error, EmptyAnswerError) else ModelOutputError
            raise kind(str(error), raw_of(document)) from None
        return ServiceAnswer(**{name: value for name, value in found.items() if value is not None})

    def fields(self, document: Any) -> Iterator[AnswerField]:
        """Yield each part with its value, or why there is none."""
        for name in (name for name in _READS if name in self._paths):
            path = self._paths[name].text
            try:
                yield AnswerField(name, path, self._field(name, document))
            except RagHarnessError as error:
                yield AnswerField(name, path, problem=str(error))

    def refuse_error(self, document: Any) -> None:
        """Raise if the answer is an error of the service.

        Raises:
            ModelCallError: it is an error.
        """
        found = self._paths["error"].find(document) if "error" in self._paths else []
        if found and found[0]:
            raise ModelCallError(f"{self._name} says that it failed: {_short(found[0])}")

    def usage(self, document: Any) -> Usage:
        """Return the tokens stated in an answer. Without any: one call, no tokens."""
        counts = []
        for name in ("usage_prompt", "usage_completion"):
            found = self._paths[name].find(document) if name in self._paths else []
            counts.append(found[0] if found and isinstance(found[0], int) and found[0] > 0 else 0)
        return Usage(counts[0], counts[1], calls=1)

    def model(self, document: Any) -> str:
        """Return the model named in an answer; empty without one."""
        found = self._paths["model"].find(document) if "model" in self._paths else []
        return found[0] if found and isinstance(found[0], str) else ""

    def _field(self, name: str, document: Any) -> Any:
        value = self._one(name, document)
        if value is None and (self._paths[name].is_optional or name == "contexts"):
            return None
        try:
            read = _READS[name](value)
        except WrongKindError as error:
            raise self._wrong(name, value, str(error)) from None
        if name == "answer" and not value.strip() and not self._paths[name].is_optional:
            told = self._wrong(name, value, f"an answer. Where it may be empty: {self._paths[name].text}?")
            raise EmptyAnswerError(str(told), told.raw)
        if name != "contexts":
            return read
        check_number(len(read), self._most, self._name)
        return read_contexts(read, self._paths, self._name)

    def _one(self, name: str, document: Any) -> Any:
        """Return the value of a path, a list if there are several. None if an optional path finds nothing."""
        path = self._paths[name]
        found = path.find(document)
        if not found and not path.is_optional:
            raise ModelOutputError(
                f"{self._name}: read.{name} = {path.text!r} finds nothing in the answer. {path.nearest(document)}. "
                f"Where it may be missing: {path.text + '?'!r}."
            )
        if name in ("contexts", "citations") and path.is_many:
            return [item for each in found for item in (each if isinstance(each, list) else [each])]
        if len(found) > 1:
            raise self._wrong(name, found, "one thing; the path finds several")
        return found[0] if found else None

    def _wrong(self, name: str, value: Any, expected: str) -> ModelOutputError:
        path = self._paths[name].text
        return ModelOutputError(f"{self._name}: read.{name} = {path!r} finds {described(value)}; expected {expected}.")


_READS: Mapping[str, Callable[[Any], Any]] = {
    "answer": answer_values.text,
    "contexts": answer_values.items,
    "citations": answer_values.places,
    "confidence": answer_values.share,
    "decision": answer_values.text,
    "abstained": answer_values.truth,
    "model": answer_values.text,
    "usage_prompt": answer_values.count,
    "usage_completion": answer_values.count,
}


def raw_of(document: Any) -> str:
    """Return the beginning of an answer, for a row without a readable one."""
    return json.dumps(document, ensure_ascii=False)[:_RAW]


def finish_reason_of(document: Any) -> str:
    """Return why a model stopped, in the form of OpenAI's or Anthropic's API; else empty."""
    if not isinstance(document, Mapping):
        return ""
    choices = document.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    said = [place.get(key) for place in (first, document) if isinstance(place, Mapping) for key in _STOPPED]
    return next((word for word in said if isinstance(word, str)), "")


def _short(value: Any) -> str:
    message = value.get("message", value) if isinstance(value, Mapping) else value
    return (message if isinstance(message, str) else json.dumps(message, ensure_ascii=False))[:300]
