"""The context of a model call: its state and usage, seeds, sessions, listeners, tools and limits of the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter
from typing import Any, Literal, Protocol, TypeAlias

from rag_harness.core.errors import ModelOutputError
from rag_harness.core.settings.removed import RARE_TABLE
from rag_harness.core.types import Message, ToolCall, Usage
from rag_harness.models.throttling import Turn

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


Session: TypeAlias = Literal["", "anew", "earlier"]
"""The session of a turn: begun in this run, to be begun anew without recordings, or begun by an earlier run."""
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


# Listeners for a model's text while the model writes it, for showing an answer as it grows.


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
