"""Calls of models: their context, usage and listeners, retries, and the decompression of replies."""

from __future__ import annotations

import random
import zlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timezone
from email.utils import parsedate_to_datetime
from math import isfinite
from time import perf_counter, time
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

from rag_harness.core.concurrency import Deadline
from rag_harness.core.errors import CriticalError, ModelCallError, ModelOutputError
from rag_harness.core.json_text import read_json
from rag_harness.core.settings.removed import RARE_TABLE
from rag_harness.core.types import Message, ToolCall, Usage
from rag_harness.models.throttling import LONGEST_WAIT, Turn

if TYPE_CHECKING:
    from openai import APIError

    from rag_harness.core.protocols import KeyOwner


# The context of a model call: its state and usage, seeds, sessions, listeners, tools and limits of the answer.

IS_OVER = "rag_is_over"
"""The key of a response's extensions that says whether all of it has come and was read."""
CALL = "rag_call"
"""Key of the ``Call`` in the extensions of a response."""
_BYTES_A_TOKEN = 3
_TOKENS_A_MESSAGE = 16
NO_USAGE = Usage()
"""Usage of a call that was refused or never reached the server."""


class Call:
    """One call in flight: its limits and its usage."""

    def __init__(self, most: Usage, cost: Callable[[Usage], float]) -> None:
        self.most: Usage = most
        self._cost = cost
        self.used: Usage | None = None
        self.asked: float = perf_counter()
        self.started: float = self.asked
        self.turn: Turn | None = None

    @property
    def waited_ms(self) -> float:
        """Milliseconds of waiting before the request was sent."""
        return (self.started - self.asked) * 1000

    @property
    def highest_cost(self) -> float:
        """USD to reserve for the call."""
        return self._cost(self.most)

    @property
    def cost(self) -> float:
        """USD of the call; the highest cost while the usage is unknown."""
        return self._cost(self.most if self.used is None else self.used)

    def settle(self, usage: Usage) -> None:
        """Set the usage of the call, before its response is closed."""
        self.used = usage


def upper_bound(content: bytes, asked: Mapping[str, Any]) -> Usage:
    """Return the most tokens that a request can use, without its model's tokenizer.

    It counts 3 bytes of UTF-8 for a token. English has 4 to 5; other scripts about one character of 2 or 3 bytes.
    """
    prompt = len(content) // _BYTES_A_TOKEN + _TOKENS_A_MESSAGE * (1 + len(asked.get("messages", ())))
    return Usage(prompt, int(asked.get("max_tokens") or asked.get("max_completion_tokens") or 0), calls=1)


def tokens(usage: Usage) -> float:
    """Return the total of tokens, as caps per minute count them."""
    return usage.prompt_tokens + usage.completion_tokens


# How a trial is asked beyond its query: seeds of repeats, and sessions of services that keep conversations.
#
# Each repeat of a trial or judgement has its own seeds, and therefore its own recordings.

seed_shift: ContextVar[int] = ContextVar("seed_shift", default=0)
"""Number added to the seed of every request of the current trial or judgement; 0 for the first time."""


Session: TypeAlias = Literal["", "restarted", "earlier"]
"""The session of a turn: begun in this run, to be begun again without recordings, or begun by an earlier run."""
session_of_turn: ContextVar[Session] = ContextVar("session_of_turn", default="")
"""The session of the turn that is asked now."""

_before_sending: ContextVar[Callable[[], Awaitable[None]] | None] = ContextVar("before_sending", default=None)


@contextmanager
def asked_again(times: int) -> Iterator[None]:
    """Add ``times`` to the seeds of requests in the block, also in its threads and tasks."""
    token = seed_shift.set(times)
    try:
        yield
    finally:
        seed_shift.reset(token)


@contextmanager
def asked_in(session: Session) -> Iterator[None]:
    """Ask a turn in such a session in the block, also in its threads and tasks."""
    token = session_of_turn.set(session)
    try:
        yield
    finally:
        session_of_turn.reset(token)


@contextmanager
def noting_what_is_sent(note: Callable[[], Awaitable[None]]) -> Iterator[None]:
    """Await ``note`` before a question of the block is sent to a service, also in its tasks."""
    token = _before_sending.set(note)
    try:
        yield
    finally:
        _before_sending.reset(token)


async def note_what_is_sent() -> None:
    """Note that a question is sent now: it has waited for its turn, and the budget allows it."""
    note = _before_sending.get()
    if note is not None:
        await note()


class CallListener(Protocol):
    """Listens to one call of a chat model, in the thread that reads the answer. It must not raise."""

    def begins(self) -> None:
        """An answer begins. A retry begins again, and the text before it is void."""
        ...

    def hears(self, text: str) -> None:
        """Take the next piece of the model's text, never empty. A recorded answer comes in one piece."""
        ...


listening: ContextVar[CallListener | None] = ContextVar("listening", default=None)
"""The listener of the current calls, or None."""


@contextmanager
def hearing(listener: CallListener) -> Iterator[None]:
    """Let ``listener`` hear the calls of the block, also in its threads and tasks."""
    token = listening.set(listener)
    try:
        yield
    finally:
        listening.reset(token)


# The probabilities of the first word of a reply. Chat models that can state them do so where they are wanted.

alternatives: ContextVar[int] = ContextVar("alternatives", default=0)
"""How many tokens are wanted with their log-probabilities, for each token of the reply; 0 for none."""
MOST_ALTERNATIVES = 20
"""The most that the API of OpenAI gives."""


@contextmanager
def with_alternatives() -> Iterator[None]:
    """Ask for the log-probabilities of tokens in the block, also in its tasks."""
    token = alternatives.set(MOST_ALTERNATIVES)
    try:
        yield
    finally:
        alternatives.reset(token)


# The limit of an answer's length. A longer text does not count as an answer, and would slow down everything that reads
# it.

LONGEST_ANSWER = 200_000
"""Most characters by default: the longest chapter of a book. ``max_answer`` changes it."""
_KEPT = 4000
"""Characters of a too long answer that a row keeps."""


def refuse_long(answer: str, longest: int, author: str) -> None:
    """Refuse an answer of more than ``longest`` characters.

    Raises:
        ModelOutputError: the answer is longer.
    """
    if isinstance(answer, str) and len(answer) > longest:  # a user's pipeline may return anything
        raise answer_too_long(author, answer, longest)


def answer_too_long(author: str, said: str, longest: int) -> ModelOutputError:
    """Return the error for a too long answer; ``said`` is the text so far."""
    return ModelOutputError(
        f"{author} answered with at least {len(said):,} characters, and {longest:,} are taken. A model that repeats "
        f"itself needs another prompt or a lower max_tokens of role answer; where answers are so long: max_answer "
        f"in {RARE_TABLE}",
        said[:_KEPT],
    )


offered: ContextVar[tuple[Mapping[str, Any], ...]] = ContextVar("offered", default=())
"""The tools of the requests that are made here."""
MOST_CALLS = 32
"""The most calls of one reply that are read."""


@contextmanager
def offering(tools: Sequence[Mapping[str, Any]]) -> Iterator[None]:
    """Offer tools to the chat models that are asked in the block."""
    token = offered.set(tuple(tools))
    try:
        yield
    finally:
        offered.reset(token)


def sent_message(message: Message) -> dict[str, Any]:
    """Return a message as it is sent. Without tools it is role and content."""
    sent: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        sent["tool_calls"] = [
            {"id": each.call_id, "type": "function", "function": {"name": each.name, "arguments": each.arguments}}
            for each in message.tool_calls
        ]
    return {**sent, "tool_call_id": message.call_id} if message.call_id else sent


class StreamedToolCalls:
    """Puts calls together that a stream brings in pieces.

    Attributes:
        length: characters of all arguments so far.
    """

    def __init__(self) -> None:
        self.length: int = 0
        self._found: dict[int, list[str]] = {}

    def add(self, pieces: Any) -> None:
        """Add the pieces of an event. Leave out other values, and calls beyond the limit."""
        for piece in pieces if isinstance(pieces, list) else ():
            place = piece.get("index", 0) if isinstance(piece, dict) else -1
            if isinstance(place, int) and 0 <= place < MOST_CALLS:
                self._add(self._found.setdefault(place, ["", "", ""]), piece)

    def _add(self, call: list[str], piece: Mapping[str, Any]) -> None:
        function = piece.get("function")
        said = function if isinstance(function, dict) else {}
        call[0], call[1] = call[0] or str(piece.get("id") or ""), call[1] or str(said.get("name") or "")
        call[2] += (more := str(said.get("arguments") or ""))
        self.length += len(more)

    def calls(self) -> tuple[ToolCall, ...]:
        """Return the calls in their order."""
        return tuple(ToolCall(*self._found[place]) for place in sorted(self._found))


# How often a failing model is retried: often in a run, seldom when a person waits at a screen.


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The number of ``retries``. A server that asks to wait longer than ``longest`` seconds is given up."""

    retries: int = 3
    longest: float = LONGEST_WAIT


OF_SOMEBODY = RetryPolicy(1, 5.0)
"""One retry after a second. It helps against a broken connection, and a person need not wait 7 s for a dead server."""
patience: ContextVar[RetryPolicy] = ContextVar("patience", default=RetryPolicy())  # noqa: B039 - it is frozen
"""The patience of the current caller."""


@contextmanager
def somebody_waits() -> Iterator[None]:
    """Use short retries in the block, because a person waits for the answer. Its tasks inherit that."""
    token = patience.set(OF_SOMEBODY)
    try:
        yield
    finally:
        patience.reset(token)


_HALTING = {"401", "402", "403", "404", "model_not_found", "invalid_api_key", "insufficient_quota"}
"""A rejected key, no credit, no permission, no such model. No later call can succeed."""
_NO_SUCH_MODEL = "not a valid model"
"""OpenRouter's message for an unknown model, with status 400."""
_UNAUTHORISED, _FORBIDDEN = 401, 403
_FIRST_WAIT = 1.0
_PASSING = {408, 409, 425, 429}
"""Statuses to retry. 5xx and errors without a status are retried, too."""


class PassingError(Exception):
    """A temporary failure: a timeout, a broken connection, 429, 5xx, an error in the middle of a stream."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause

    def pause(self, retry: int) -> float:
        response = getattr(self.cause, "response", None)
        asked = retry_after(response.headers) if response is not None else None
        return asked if asked is not None else _FIRST_WAIT * 2**retry * random.uniform(0.75, 1.25)

    def explain(self, retry: int, pause: float, longest: float = LONGEST_WAIT) -> str:
        # The SDK says no more than "Connection error."; what is below it names the address, and why.
        below = self.cause.__cause__ if type(self.cause).__name__ == "APIConnectionError" else None
        what = f"{type(self.cause).__name__}: {below or self.cause}".rstrip(".")
        if pause > longest:
            return f"{what}. The server asks to wait {pause:.0f} s, longer than the {longest:.0f} s we wait."
        return f"{what}. Gave up after {retry + 1} tries."


def forbidden(error: APIError) -> bool:
    """Return whether a refusal may be about the key, or about what one question says: moderation answers 403, too."""
    return getattr(error, "status_code", None) == _FORBIDDEN


def may_pass(error: APIError) -> bool:
    """Return whether a retry can succeed."""
    status = getattr(error, "status_code", 500)
    return status in _PASSING or status >= 500


def hopeless(error: APIError, model: str, url: str, key: KeyOwner) -> CriticalError | None:
    """Return the error that ends the run where no later call can succeed; None where one may."""
    status = getattr(error, "status_code", None)
    if status == _UNAUTHORISED:
        return CriticalError(key_refused(url, key))
    if {str(status), str(error.code)} & _HALTING or _NO_SUCH_MODEL in error.message:
        return CriticalError(
            f"The chat endpoint {url} refused {model!r} with {status or error.code}: "
            f"{error.message} Check the model's name, the key and its credit."
        )
    return None


def key_refused(url: str, key: KeyOwner) -> str:
    """Return a sentence about a server that answered 401: whose call it was, where, and which variable has the key."""
    why = f"it refuses the key of {key.variable}" if key.is_set else f"it wants a key, and {key.variable} is not set"
    return f"The server of role {key.role} at {url} answers 401: {why}."


async def reply_in_json(response: Any) -> Mapping[str, Any] | None:
    """Return the whole completion of a server that does not stream; None for a stream.

    Raises:
        APIError: the server sent an error with status 200. As a stream, it would only have no events.
    """
    if "json" not in response.headers.get("content-type", ""):
        return None
    said = (await response.aread()).decode(errors="replace")
    error: Any = {"message": f"a stream was asked for, and the server sent {said[:200]!r}"}
    with suppress(ValueError):
        found = read_json(said)
        if isinstance(found, dict) and found.get("choices") and not found.get("error"):
            return found
        error = (isinstance(found, dict) and found.get("error")) or error
    body = error if isinstance(error, dict) else {"message": str(error)}
    raise sdk_error(str(body.get("message")), response, body)


def sdk_error(message: str, response: Any, body: Any) -> APIError:
    """Return the SDK's error for a failure that a server sent with status 200."""
    from openai import APIError

    return APIError(message, response.request, body=body)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait, as a number or by a date (RFC 9110); None without either."""
    said = headers.get("retry-after", "")
    try:
        seconds = float(said)
    except ValueError:
        try:
            asked = parsedate_to_datetime(said)
        except ValueError:
            return None
        seconds = (asked if asked.tzinfo else asked.replace(tzinfo=timezone.utc)).timestamp() - time()
        if seconds < 0:
            return None  # one of the clocks is wrong
    return max(0.0, seconds) if isfinite(seconds) else None


def stated_cost(headers: Mapping[str, str]) -> float | None:
    """Return the USD of a call as a gateway (LiteLLM) states them in a header; None where none does."""
    try:
        usd = float(headers.get("x-litellm-response-cost", ""))
    except ValueError:
        return None
    return usd if isfinite(usd) and usd >= 0 else None


def transport_errors() -> tuple[type[Exception], ...]:
    """Return the errors of a stream that breaks off: errors of the transport, and incomplete JSON."""
    from httpx2 import HTTPError

    return HTTPError, ValueError, ConnectionError


_T = TypeVar("_T")


@dataclass
class RetriesNoted:
    """The retries of all calls of a trial so far, and the milliseconds of waiting before them.

    An error that ends a trial in the middle of a call, such as a deadline, does not know them.
    """

    retries: int = 0
    waited_ms: float = 0.0


trial_retries: ContextVar[RetriesNoted] = ContextVar("trial_retries", default=RetriesNoted())  # noqa: B039
"""Of the trial under way. Its tasks share the object; calls outside of trials are noted where nobody looks."""


async def retried(
    once: Callable[[Deadline], Awaitable[_T]],
    deadline: Callable[[], Deadline],
    given_up: Callable[[PassingError, str], Exception],
    wait: Callable[[float], Awaitable[object]],
) -> tuple[_T, int, float]:
    """Return the result of ``once``, the number of retries, and the milliseconds of waiting, between tries included.

    Args:
        once: makes the call within its deadline; raises PassingError where a retry may succeed.
        deadline: makes the deadline of one try.
        given_up: makes the final error from the last failure and a message.
        wait: sleeps for some seconds.
    """
    waited, asked = 0.0, patience.get()
    for retry in range(asked.retries + 1):
        time = deadline()
        try:
            return await once(time), retry, (waited + time.waited) * 1000
        except PassingError as failure:
            pause = failure.pause(retry)
            if retry == asked.retries or pause > asked.longest:
                error = given_up(failure, failure.explain(retry, pause, asked.longest))
                if isinstance(error, ModelCallError):
                    error.retries, error.waited_ms = retry, (waited + time.waited) * 1000
                raise error from failure.cause
        waited += time.waited + pause
        await wait(pause)
        noted = trial_retries.get()
        noted.retries, noted.waited_ms = noted.retries + 1, noted.waited_ms + (time.waited + pause) * 1000
    raise AssertionError("unreachable")


# A few kilobytes of gzip may decompress to gigabytes. So the bytes are counted, and never more than one piece is
# decompressed at once.

MOST_REPLY_BYTES = 20 * 2**20
"""Most bytes of a decompressed reply: fifty times the default longest answer, as each word has an event around it."""
PACKINGS = "gzip, deflate"
"""The encodings that requests accept and this module can decompress."""
_PIECE = 2**16


class Decompressor:
    """Decompresses the body of one reply and counts its bytes.

    Args:
        server: the server's name, for messages.
        packing: the header ``content-encoding``; empty without one.
        most: most bytes after decompression.

    Raises:
        ModelOutputError: the encoding is not one that the request accepts.
    """

    def __init__(self, server: str, packing: str = "", most: int = MOST_REPLY_BYTES) -> None:
        self._server, self._most, self._size = server, most, 0
        self._kind = packing.strip().lower()
        if self._kind not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise ModelOutputError(
                f"{server} packed its answer with {packing[:40]!r}; {PACKINGS} can be unpacked. Have it, or the proxy "
                f"before it, send answers as they are."
            )
        self._head, self._engine = b"", zlib.decompressobj(16 + zlib.MAX_WBITS)

    def feed(self, part: bytes) -> Iterator[bytes]:
        """Yield the decompressed bytes of ``part``, in pieces.

        Raises:
            ModelOutputError: there are more bytes than allowed.
            ValueError: the bytes do not have the encoding of the header.
        """
        if self._kind in ("", "identity"):
            yield self._counted(part)
            return
        part, piece = self._begun(part), b""
        while not self._engine.eof and (part or len(piece) == _PIECE):
            try:
                piece = self._engine.decompress(part, _PIECE)
            except zlib.error as error:
                raise ValueError(f"the reply is not packed as its header says ({self._kind}): {error}") from None
            part = self._engine.unconsumed_tail
            if piece:
                yield self._counted(piece)

    def _begun(self, part: bytes) -> bytes:
        """Return the bytes to decompress now. The first two bytes of "deflate" show whether zlib's header is there."""
        if self._kind != "deflate" or len(self._head) == 2:
            return part
        part = self._head + part
        self._head = part[:2]
        if len(self._head) < 2:
            return b""
        has_header = self._head[0] & 0x0F == 8 and int.from_bytes(self._head, "big") % 31 == 0  # RFC 1950, 2.2
        self._engine = zlib.decompressobj(zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS)
        return part

    def _counted(self, piece: bytes) -> bytes:
        self._size += len(piece)
        if self._size > self._most:
            raise ModelOutputError(
                f"{self._server} answered with more than {self._most / 2**20:g} MB, and was cut off there. Have it "
                f"send what is read: the answer, and the contexts that it is from."
            )
        return piece
