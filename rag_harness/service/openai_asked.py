"""From the body of ``POST /v1/chat/completions`` to the question for a pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_harness.models.reader.wire import RequestError

_ROLES = ("system", "developer", "user", "assistant", "tool", "function")


@dataclass(frozen=True, slots=True)
class ChatQuestion:
    """A question of a chat.

    Attributes:
        query: the last message of the user.
        history: the earlier messages of user and assistant, as objects with ``role`` and ``content``.
        stream: whether to send the answer as it comes.
        include_usage: whether to end the stream with the tokens that were used.
    """

    query: str
    history: tuple[Mapping[str, str], ...]
    stream: bool = False
    include_usage: bool = False


def asked_of(body: Any, model: str) -> ChatQuestion:
    """Read a request that was parsed from JSON.

    Only messages of user and assistant are read: the experiment has its own instructions, which no client may change.
    Sampling options and tools are left out, too: the served experiment must be the one that was evaluated.

    Args:
        body: the request's body.
        model: the name of the experiment, the only model there is.

    Raises:
        RequestError: the request cannot be answered; ``status`` and ``body`` are in OpenAI's form.
    """
    if not isinstance(body, dict):
        raise RequestError(400, "The request body must be a JSON object.")
    if body.get("model") != model:
        message = f"The model {_short(body.get('model'))} does not exist here; this service has {model!r}."
        raise RequestError(404, message, "model_not_found", "model")
    _refuse_other_forms(body)
    options = body.get("stream_options") or {}
    if not isinstance(options, dict):
        raise _bad("stream_options", "must be an object", options)
    query, history = _turns(body.get("messages"))
    return ChatQuestion(query, history, _flag(body, "stream"), _flag(options, "include_usage", "stream_options."))


def _refuse_other_forms(body: Mapping[str, Any]) -> None:
    if body.get("n") not in (None, 1):
        raise _bad("n", "must be 1: a question has one answer here", body["n"])
    form = body.get("response_format") or {"type": "text"}
    if not isinstance(form, dict) or form.get("type") != "text":
        raise _bad("response_format", 'must be {"type": "text"}: answers are text with citations', form)


def _flag(holder: Mapping[str, Any], name: str, above: str = "") -> bool:
    value = holder.get(name)
    if value is not None and not isinstance(value, bool):
        raise _bad(f"{above}{name}", "must be true or false", value)
    return bool(value)


def _turns(messages: Any) -> tuple[str, tuple[Mapping[str, str], ...]]:
    if not isinstance(messages, list) or not messages:
        raise _bad("messages", "must be a list of at least one message", messages)
    turns = list(_spoken(messages))
    last = max((n for n, turn in enumerate(turns) if turn["role"] == "user"), default=None)
    if last is None:
        raise _bad("messages", "must have a message of the user", ", ".join(turn["role"] for turn in turns))
    if not turns[last]["content"].strip():
        raise _bad("messages", "must end with a question: the user's last message is empty", "")
    return turns[last]["content"], tuple(turn for turn in turns[:last] if turn["content"].strip())


def _spoken(messages: Sequence[Any]) -> Iterator[Mapping[str, str]]:
    for n, message in enumerate(messages):
        place = f"messages[{n}]"
        if not isinstance(message, dict):
            raise _bad(place, "must be an object", message)
        role = message.get("role")
        if role not in _ROLES:
            raise _bad(f"{place}.role", f"must be one of {', '.join(_ROLES)}", role)
        if role in ("user", "assistant"):
            yield {"role": role, "content": _text(message.get("content"), f"{place}.content")}


def _text(content: Any, place: str) -> str:
    """Return the text of a message: a string, a list of parts, or nothing if the assistant called a tool."""
    if content is None or isinstance(content, str):
        return _whole(content or "", place)
    if not isinstance(content, list):
        raise _bad(place, "must be a text or a list of parts", content)
    return "\n".join(_part(part, f"{place}[{n}]") for n, part in enumerate(content))


def _part(part: Any, place: str) -> str:
    text = part.get("text") if isinstance(part, dict) else None
    if not isinstance(part, dict) or part.get("type") not in ("text", "refusal"):
        kind = part.get("type") if isinstance(part, dict) else part
        raise _bad(place, "must be a part of type text: images, audio and files are not read", kind)
    if part["type"] == "refusal":
        text = part.get("refusal")
    if not isinstance(text, str):
        raise _bad(f"{place}.text", "must be a text", text)
    return _whole(text, place)


def _whole(text: str, place: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _bad(place, "must have no half of a character (a lone surrogate)", text) from None
    return text


def _bad(param: str, wanted: str, found: Any) -> RequestError:
    return RequestError(400, f"'{param}' {wanted}; found {_short(found)}.", param=param)


def _short(found: Any) -> str:
    """Return the found value as short text: a nest of ten thousand lists is not worth printing."""
    return repr(found)[:80] if isinstance(found, (str, int, float, bool, type(None))) else type(found).__name__
