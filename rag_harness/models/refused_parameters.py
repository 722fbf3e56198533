"""Parameters of a chat completion that a model or its server refuses, and what it is asked with instead."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_harness.core.files import regular_bytes, write_atomically
from rag_harness.core.log import log

if TYPE_CHECKING:
    from openai import APIError


# Reasoning models of OpenAI want ``max_completion_tokens`` and no temperature; Groq has no logprobs; older servers have
# no schemas; some know no system message. A few are known by name. The rest say so: a refusal that names parameters is
# answered by asking again without them. The prompt itself stays.

Request = dict[str, Any]
MOST_REFUSALS = 6
"""Most times that one call is asked again for its parameters."""

_REASONING = re.compile(r"(?:o[1-9](?:-|$)|gpt-5)")
"""Models of OpenAI that reason, as OpenAI, Azure and OpenRouter call them."""
_FORBIDDEN, _NOT_FOUND = 403, 404
_REFUSES = (400, _FORBIDDEN, _NOT_FOUND, 422)
_REFUSAL = re.compile(
    r"unsupported|not supported|n[o']t support|unrecogni[sz]ed|unknown|unexpected|not (?:permitted|allowed|available|"
    r"compatible|implemented|recogni[sz]ed)|extra (?:inputs|fields)|additional propert|invalid|must be|only |"
    r"deprecated|incompatible|cannot|no endpoints|without",
    re.IGNORECASE,
)
_BOUNDS = re.compile(r"(?:min|max)items")
_FORMAT = re.compile(r"response[ _]?format|json[_ ]?(?:schema|object|mode)|structured")
_STREAM = re.compile(r"(?<![a-z_])stream(?:ing)?(?![a-z_])")
_INSTRUCTIONS = re.compile(r"(?:system|developer)[ _](?:message|prompt|instruction|role)")
_TOO_MUCH = re.compile(
    r"too (?:large|long|many|high|big)|context[ _](?:length|window)|at most|exceed|above[ _]max|below[ _]min|less than|"
    r"greater than|between|out of range",
    re.IGNORECASE,
)
"""The parameter is taken, and its value is not."""


def _completion_tokens(request: Request) -> None:
    if "max_tokens" in request:
        request["max_completion_tokens"] = request.pop("max_tokens")


def _object_alone(request: Request) -> None:
    if request.get("response_format", {}).get("type") == "json_schema":
        request["response_format"] = {"type": "json_object"}


def _no_list_bounds(request: Request) -> None:
    if "response_format" in request:
        request["response_format"] = _unbounded(request["response_format"])


def _unbounded(schema: Any) -> Any:
    """Return a schema whose lists have no lengths."""
    if isinstance(schema, Mapping):
        return {name: _unbounded(each) for name, each in schema.items() if name not in ("minItems", "maxItems")}
    return schema


def _no_stream(request: Request) -> None:
    request.pop("stream_options", None)
    request.pop("stream", None)


def _no_probabilities(request: Request) -> None:
    request.pop("logprobs", None)
    request.pop("top_logprobs", None)


def _developer(request: Request) -> None:
    request["messages"] = [
        {**each, "role": "developer"} if each["role"] == "system" else each for each in request["messages"]
    ]


def _user(request: Request) -> None:
    """Put the instructions before the first question: two messages of a user in a row are refused as well."""
    told = [each["content"] for each in request["messages"] if each["role"] == "developer"]
    others = [each for each in request["messages"] if each["role"] != "developer"]
    place = next((at for at, each in enumerate(others) if each["role"] == "user"), None)
    if place is None:
        request["messages"] = [*({"role": "user", "content": text} for text in told), *others]
        return
    asked = {**others[place], "content": "\n\n".join([*told, others[place]["content"]])}
    request["messages"] = [*others[:place], asked, *others[place + 1 :]]


def _dropping(name: str) -> Callable[[Request], None]:
    return lambda request: request.pop(name, None)


_CHANGES: Mapping[str, Callable[[Request], None]] = {
    "max_tokens": _completion_tokens,
    "max_completion_tokens": _dropping("max_completion_tokens"),
    "list_bounds": _no_list_bounds,
    "json_schema": _object_alone,
    "response_format": _dropping("response_format"),
    "system": _developer,
    "developer": _user,
    "stream": _no_stream,
    "logprobs": _no_probabilities,
    **{name: _dropping(name) for name in ("temperature", "seed", "stream_options", "reasoning_effort")},
}
"""What a request without a parameter is made of, in the order in which that is done."""


_KEPT = frozenset(("model", "messages", "tools"))
"""The prompt, which is always sent."""


def known_without(model: str) -> frozenset[str]:
    """Return the parameters that a model is known not to take, by its name."""
    name = model.rpartition("/")[2]
    reasons = _REASONING.match(name) and "-chat" not in name
    return frozenset(("max_tokens", "temperature")) if reasons else frozenset()


def shaped(request: Mapping[str, Any], without: frozenset[str]) -> Request:
    """Return a request without parameters: ``max_tokens`` is asked as ``max_completion_tokens``, and so on."""
    made = {name: value for name, value in request.items() if name not in without - _CHANGES.keys() - _KEPT}
    for name, change in _CHANGES.items():
        if name in without:
            change(made)
    return made


def refused_parameters(error: APIError, request: Mapping[str, Any]) -> frozenset[str]:
    """Return the fields that a refusal of ``request`` names; empty where it is about something else."""
    status, said = getattr(error, "status_code", None), _said(error)
    if status not in _REFUSES or _TOO_MUCH.search(said):
        return frozenset()
    if status in (_FORBIDDEN, _NOT_FOUND) and not _REFUSAL.search(said):
        return frozenset()  # the key, the model or the address is refused
    param = str(getattr(error, "param", None) or "")
    return _named(param, said, request) or _named(said, said, request)


def _said(error: APIError) -> str:
    """Return all that a server says of a refusal: its message, and what its body has besides."""
    return f"{error.message} {getattr(error, 'code', '') or ''} {_without_input(getattr(error, 'body', ''))}"


def _without_input(body: Any) -> Any:
    """Return a body without the parts of the request that it repeats: pydantic shows the whole input."""
    if isinstance(body, Mapping):
        return {name: _without_input(value) for name, value in body.items() if name not in ("input", "request")}
    return [_without_input(each) for each in body] if isinstance(body, list) else body


def _named(where: str, whole: str, request: Mapping[str, Any]) -> frozenset[str]:
    """Return the parameters of a request that a part of a refusal names; ``whole`` is all of it."""
    said = where.casefold()
    found = [
        name
        for name in ("temperature", "seed", "stream_options", "reasoning_effort", "max_tokens", "max_completion_tokens")
        if name in request and re.search(rf"(?<![a-z_]){name}(?![a-z_])", said)
    ]
    if "logprobs" in request and "logprob" in said:
        found.append("logprobs")
    form = request.get("response_format")
    if form and _BOUNDS.search(whole.casefold()) and _unbounded(form) != form:
        found.append("list_bounds")
    elif form and _FORMAT.search(said):
        has_schema = form.get("type") == "json_schema"
        found.append("json_schema" if has_schema and "json_object" in whole else "response_format")
    if "stream" in request and "stream_options" not in found and _STREAM.search(said):
        found.append("stream")
    found += [name for name in sorted(request.keys() - _CHANGES.keys() - _KEPT - {"top_logprobs"}) if _says(said, name)]
    roles = {message["role"] for message in request["messages"]}
    is_of_role = _INSTRUCTIONS.search(said) or ("role" in said and ("system" in said or "developer" in said))
    if is_of_role and roles & {"system", "developer"}:
        found.append("system" if "system" in roles else "developer")
    return frozenset(found)


def _says(said: str, name: str) -> bool:
    """Return whether a refusal names a field that a profile sets: as it is, or in quotes where it is a word."""
    if said == name or "_" in name:
        return bool(re.search(rf"(?<![a-z_]){re.escape(name.casefold())}(?![a-z_])", said))
    return bool(re.search(rf"['\"`]{re.escape(name.casefold())}['\"`]", said))


FILE_NAME = "asked_without.json"


class AskedWithout:
    """The parameters that one model of one server is asked without.

    Args:
        model: the server's name of the model; some are known by it.
        read: files that other runs and processes may have written. A replay finds recordings by the request, so it
            reads what the run that recorded them has learned.
        written: the file to keep it in; None keeps it in this process.
    """

    def __init__(self, model: str, read: Iterable[Path] = (), written: Path | None = None) -> None:
        self._model, self._read, self._written = model, tuple(read), written
        self._names = known_without(model)
        self._is_kept = False
        self._look()

    @property
    def names(self) -> frozenset[str]:
        """The names of the parameters."""
        return self._names

    def learn(self, refused: frozenset[str], sent_without: frozenset[str], why: str) -> bool:
        """Take over the fields that a refusal named, and those that other processes have learned.

        Args:
            refused: the fields that the refusal named.
            sent_without: the fields that the refused request lacked.
            why: the server's words, which are logged.

        Returns:
            Whether another form of the request is left to try.
        """
        self._look()
        if "max_completion_tokens" in refused and "max_tokens" in known_without(self._model):
            # The name promised too much: this server wants the older parameter.
            self._names, refused = self._names - {"max_tokens"}, refused - {"max_completion_tokens"}
        learned = refused - self._names
        self._names |= refused
        if learned:
            log.info("%s is asked without %s: %s", self._model, ", ".join(sorted(learned)), why)
            self._keep()
        return self._names != sent_without

    def answered(self) -> None:
        """Keep the names of a request that was answered: what the cache of another run knew, a replay has to know."""
        if not self._is_kept:
            self._keep()

    def _look(self) -> None:
        for file in self._read:
            with suppress(OSError, ValueError, TypeError):
                found = json.loads(regular_bytes(file))["without"]
                self._names |= frozenset(name for name in found if isinstance(name, str))

    def _keep(self) -> None:
        self._is_kept = True
        said = {"model": self._model, "without": sorted(self._names - known_without(self._model))}
        if self._written is None or not said["without"]:
            return
        # Where it cannot be kept, each process learns it by a refusal of its own.
        with suppress(OSError):
            self._written.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._written, f"{json.dumps(said, indent=1)}\n".encode())
