"""An answer as a stream of events: the sources, the words as they come, the citations, and the outcome."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_harness.errors import RagHarnessError
from rag_harness.pipelines.watched import watching
from rag_harness.service.telling import AnswerEvent, Telling, retrieval
from rag_harness.types import PipelineOutput
from rag_harness.work.local_work import in_a_thread

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
