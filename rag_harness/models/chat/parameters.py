"""The parameters of a request that a model or its server does not take, and what it is asked with instead.

Reasoning models of OpenAI want ``max_completion_tokens`` and no temperature; Groq has no logprobs; older servers have
no schemas; some know no system message. A few are known by name. The rest say so: a refusal that names parameters is
answered by asking again without them. The prompt itself stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openai import APIError

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
    """Return what a refusal of ``request`` wants to be left out; empty where it is about something else."""
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
    """Return a body without what it repeats of the request: pydantic shows the whole input."""
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
