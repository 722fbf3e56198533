"""The stream of an answer: sources, words as the model writes them, citations, outcome."""

from __future__ import annotations

import asyncio
import codecs
import re
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from rag_harness.core.concurrency import in_a_thread
from rag_harness.core.errors import RagHarnessError
from rag_harness.core.types import Hit, PipelineOutput
from rag_harness.models.calls import CallListener
from rag_harness.pipelines.trace import watching
from rag_harness.service.citations import section_of

_T = TypeVar("_T")
_Say = Callable[[str], object]
_Reading = Generator[re.Pattern[str], str, _T]
"""A reader: it yields the pattern of the next piece of JSON, and is sent that piece."""

KEY = "answer"
_ANY = re.compile(r".", re.DOTALL)
_INSIDE = re.compile(r'[^"\\]+|.', re.DOTALL)
"""In a string: plain characters as far as they go, or the one character that ends it or begins an escape."""
_OUTSIDE = re.compile(r'[^"{}\[\],]+|.', re.DOTALL)
"""In a value that is skipped: everything up to the next start or end of a string, an object or a list."""
_FENCE = re.compile(r"```(?:json)?\s*\{|\{", re.IGNORECASE)
_LONGEST_FENCE = 64
"""The most characters before the opening brace. With more, the text is not taken for JSON."""
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class WholeCharacters:
    """Joins halves of a character that come one by one, and replaces a lone half, as reading the whole text does."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-16-le")("replace")

    def feed(self, text: str) -> str:
        """Return the whole characters that were not returned before."""
        return self._decoder.decode(text.encode("utf-16-le", "surrogatepass"))

    def end(self) -> str:
        """Return the rest."""
        return self._decoder.decode(b"", final=True)


class PlainText:
    """Reads an answer that is plain text."""

    def __init__(self) -> None:
        self._characters = WholeCharacters()

    def feed(self, piece: str) -> str:
        """Return what ``piece`` adds to the answer."""
        return self._characters.feed(piece)


class AnswerInJson:
    """Reads the string at "answer" of a JSON object, in a fence or not; if there are several, the first.

    Everything else in the object is skipped. If the JSON is not valid, nothing is read, or the answer up to the fault.
    """

    def __init__(self) -> None:
        self._said = WholeCharacters()
        self._found: list[str] = []
        self._reading: _Reading[None] = _answer(self._found.append)
        self._wanted = next(self._reading)
        self._is_over = False

    def feed(self, piece: str) -> str:
        """Return what ``piece`` adds to the decoded answer. Half a character waits for its other half."""
        self._read(piece)
        said = self._said.feed("".join(self._found))
        self._found.clear()
        # After the end, no other half can come.
        return said + self._said.end() if self._is_over else said

    def _read(self, text: str) -> None:
        at = 0
        while at < len(text) and not self._is_over:
            match = self._wanted.match(text, at)
            assert match is not None
            at = match.end()
            try:
                self._wanted = self._reading.send(match[0])
            except (StopIteration, ValueError):
                self._is_over = True


def _answer(say: _Say) -> _Reading[None]:
    yield from _opening()
    while True:
        key: list[str] = []
        if (yield from _visible()) != '"':
            return
        yield from _string(key.append)
        yield from _visible()  # the colon
        first = yield from _visible()
        if "".join(key) == KEY:
            if first == '"':
                yield from _string(say)
            return
        if (yield from _passed_over(first)) != ",":
            return


def _opening() -> _Reading[None]:
    before = ""
    while not _FENCE.fullmatch(before):
        before = (before + (yield _ANY)).lstrip()
        if len(before) > _LONGEST_FENCE or not "```json".startswith(before.partition("{")[0].lower().rstrip()):
            raise ValueError("no JSON object")


def _visible() -> _Reading[str]:
    char = " "
    while char.isspace():
        char = yield _ANY
    return char


def _string(say: _Say) -> _Reading[None]:
    """Read up to the quote that ends the string. Its opening quote is already read."""
    while (piece := (yield _INSIDE)) != '"':
        say((yield from _escaped()) if piece == "\\" else piece)


def _escaped() -> _Reading[str]:
    char = yield _ANY
    if char != "u":
        return _SHORT.get(char, char)
    digits = ""
    while len(digits) < 4:
        digits += yield _ANY
    return chr(int(digits, 16))


def _passed_over(first: str) -> _Reading[str]:
    """Read a value that begins with ``first``; return what follows it."""
    depth, piece = 0, first
    while True:
        if piece == '"':
            yield from _string(lambda _: None)
        depth += (piece in ("{", "[")) - (piece in ("}", "]"))
        if depth < 0:
            return piece
        piece = yield _OUTSIDE
        if depth == 0 and piece in (",", "}"):
            return piece


Name = Literal["retrieval", "token", "replace", "citation", "verdict", "done", "error"]


@dataclass(frozen=True, slots=True)
class AnswerEvent:
    """One event for a client; ``data`` is plain JSON."""

    name: Name
    data: Mapping[str, Any]


def retrieval(context: Sequence[Hit]) -> AnswerEvent:
    """Return the event with the sources of an answer, in the order of their numbers."""
    return AnswerEvent("retrieval", {"sources": [_source(n, hit) for n, hit in enumerate(context, 1)]})


def _source(n: int, hit: Hit) -> dict[str, Any]:
    chunk = hit.chunk
    page = chunk.pages[0] if chunk.pages else None
    where = {"document": chunk.doc_id, "section": section_of(chunk), "page": page}
    return {"source": n, **where, "score": hit.score, "text": chunk.text}


class Telling:
    """Watches one pipeline answer, from any thread, and makes events for the loop on which it was made.

    Args:
        holds: whether to send no word of the answer.
    """

    def __init__(self, holds: bool) -> None:
        self._holds = holds
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        self._events: asyncio.Queue[AnswerEvent | None] = asyncio.Queue()
        self._words: list[str] = []
        self._reading: type[AnswerInJson | PlainText] = PlainText
        self._reader: AnswerInJson | PlainText = PlainText()
        self.context: tuple[Hit, ...] | None = None

    @property
    def words(self) -> str:
        """The words that were sent and not withdrawn."""
        return "".join(self._words)

    async def next(self) -> AnswerEvent | None:
        """Return the next event; None if no more will come."""
        return await self._events.get()

    def close(self) -> None:
        """Note that no more events will come."""
        self._put(None)

    def answering(self, context: Sequence[Hit], in_json: bool) -> CallListener:
        """Take the sources of the answer. The same sources are sent only once."""
        if tuple(context) != self.context:
            self.context = tuple(context)
            self._put(retrieval(context))
        self._reading = AnswerInJson if in_json else PlainText
        return self

    def begins(self) -> None:
        """Withdraw the words of a call that broke off, or of an earlier call."""
        self._reader = self._reading()
        if self._words:
            self._words.clear()
            self._put(AnswerEvent("replace", {"answer": ""}))

    def hears(self, text: str) -> None:
        """Send the new words of the answer."""
        said = "" if self._holds else self._reader.feed(text)
        if said:
            self._words.append(said)
            self._put(AnswerEvent("token", {"text": said}))

    def _put(self, event: AnswerEvent | None) -> None:
        if threading.get_ident() == self._thread:
            self._events.put_nowait(event)
        else:
            self._loop.call_soon_threadsafe(self._events.put_nowait, event)


_WIND_UP = 2.0
"""Seconds for the work on an answer to end when no client waits for it any more."""
_VERDICT = ("decision", "confidence", "reasons")


@dataclass(frozen=True, slots=True)
class Shows:
    """How the result or the error of a pipeline is shown to a client.

    Args:
        answer: the body of an answer that is not streamed: ``answer``, ``citations``, ``confidence``, ``decision``,
            ``reasons``, and any other fields of ``done``.
        failure: the description of an exception; no traceback, no path.
    """

    answer: Callable[[PipelineOutput], Mapping[str, Any]]
    failure: Callable[[Exception], Mapping[str, Any]]


async def events(
    answering: Callable[[], Coroutine[Any, Any, PipelineOutput]], shows: Shows, *, strict: bool = False
) -> AsyncGenerator[AnswerEvent, None]:
    """Yield what happens while ``answering`` works; the last event is ``done`` or ``error``.

    - ``retrieval`` {sources}: the sources of the answer, before it is written. Sent again if they change.
    - ``token`` {text}: the next words of the answer.
    - ``replace`` {answer}: all words so far are withdrawn and replaced by these; more may follow.
    - ``citation``: one event each, as in the body; offsets are those of the final answer.
    - ``verdict`` {decision, confidence, reasons}.
    - ``done``: the body.
    - ``error``: the description by ``shows.failure``. Words that were sent before it are withdrawn.

    If ``strict``, no word is sent before the verdict, so none is ever withdrawn. When the generator is closed or its
    task is cancelled, the work is cancelled too, with the model call that it waits for.
    """
    telling = Telling(holds=strict)
    with watching(telling):
        work = asyncio.ensure_future(answering())
    work.add_done_callback(lambda _: telling.close())
    try:
        while (event := await telling.next()) is not None:
            yield event
        for event in await _ending(work, shows, telling, strict):
            yield event
    finally:
        await _ended(work)


async def _ended(work: asyncio.Future[PipelineOutput]) -> None:
    work.cancel()
    await asyncio.wait({work}, timeout=_WIND_UP)
    # No caller is left to read the exception, and asyncio would complain about that.
    work.add_done_callback(lambda done: done.cancelled() or done.exception())


async def _ending(
    work: asyncio.Future[PipelineOutput], shows: Shows, telling: Telling, strict: bool
) -> Sequence[AnswerEvent]:
    try:
        output = _result(work)
        # Making the citations of a long answer takes a while.
        body = await in_a_thread(lambda: shows.answer(output))
    except Exception as error:
        return [
            *([AnswerEvent("replace", {"answer": ""})] if telling.words else []),
            AnswerEvent("error", shows.failure(error)),
        ]
    found = [retrieval(output.context)] if telling.context != output.context else []
    return [*found, *_told(body, telling.words, strict)]


def _result(work: asyncio.Future[PipelineOutput]) -> PipelineOutput:
    if work.cancelled():
        raise RagHarnessError("The work on this answer was ended from outside.")
    return work.result()


def _told(body: Mapping[str, Any], words: str, strict: bool) -> Iterator[AnswerEvent]:
    verdict = AnswerEvent("verdict", {name: body[name] for name in _VERDICT})
    said = [*_rest(body["answer"], words), *(AnswerEvent("citation", each) for each in body["citations"])]
    yield from [verdict, *said] if strict else [*said, verdict]
    yield AnswerEvent("done", body)


def _rest(answer: str, told: str) -> Iterator[AnswerEvent]:
    """Yield the rest of the answer. If other words were sent, yield the whole of it."""
    if not answer.startswith(told):
        yield AnswerEvent("replace", {"answer": answer})
    elif answer != told:
        yield AnswerEvent("token", {"text": answer[len(told) :]})
