"""Calls code of the user's own: async as it is, anything else in a thread. Reads what it returns as an answer."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import replace
from typing import Any, cast

from rag_harness.models.reasoning import parted
from rag_harness.pipelines.returned import NAMELESS
from rag_harness.retrieval.documents import document_of
from rag_harness.types import Answer, Hit, PipelineOutput
from rag_harness.words.abstention import declines
from rag_harness.work.lasting_loop import awaited_on, loop_of_this_thread
from rag_harness.work.local_work import in_a_thread


async def called(
    function: Callable[[Any], Any], given: Any, name: str, loop: asyncio.AbstractEventLoop | None = None
) -> Any:
    """Return what ``function`` returns for ``given``.

    Args:
        function: async, or not.
        given: what it is called with.
        name: what messages call its owner.
        loop: where what is async is awaited; None: here.

    Raises:
        RuntimeError: it asked Python to exit, or raised StopIteration. Any other error is its own.
    """
    try:
        is_async = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
        answered = function(given) if is_async else await in_a_thread(lambda: _call(function, given, name))
        if inspect.isasyncgen(answered):
            answered = _joined(cast("AsyncIterator[str]", answered))
        if not inspect.isawaitable(answered):
            return answered
        return await (answered if loop is None else awaited_on(loop, answered, name))
    except SystemExit as error:
        # SystemExit would end the event loop, and tests would wait for their trials for ever.
        raise RuntimeError(f"{name} asked Python to exit, with {error.code!r}") from error


def declined(answer: Answer, refusals: tuple[str, ...] = ()) -> bool:
    """Return whether an answer says that it does not know: as its pipeline states, else as its words say.

    ``refusals`` are phrases that decline besides those that are known.
    """
    if answer.abstained is not None:
        return answer.abstained
    # A row refuses what is no text, and says so.
    return isinstance(answer.text, str) and declines(answer.text, refusals)


def without_reasoning(output: PipelineOutput) -> PipelineOutput:
    """Return an output whose answer is what stands behind the marks of reasoning; what stands between them is kept."""
    answer = output.answer
    if not isinstance(answer.text, str):
        return output  # a row refuses what is no text
    thought, text = parted(answer.text)
    if not thought:
        return output
    thoughts = "\n\n".join(filter(None, [answer.reasoning, thought]))
    return replace(output, answer=replace(answer, text=text, reasoning=thoughts))


def with_page_names(output: PipelineOutput, find_page: Callable[[str, str], str]) -> PipelineOutput:
    """Return an output whose hits name pages as the knowledge base does; names that fit no page stay.

    A hit that names no page is of the one page that has its words.
    """
    retrieved, context = (
        tuple(_renamed(hit, find_page) for hit in hits) for hits in (output.retrieved, output.context)
    )
    return replace(output, retrieved=retrieved, context=context)


def _renamed(hit: Hit, find_page: Callable[[str, str], str]) -> Hit:
    chunk = hit.chunk
    told = chunk.doc_id or document_of(chunk.chunk_id)
    page = find_page(told, chunk.text) if told != NAMELESS else ""
    page = page if page or chunk.doc_id else find_page("", chunk.text)
    if not page or (page == chunk.doc_id and document_of(chunk.chunk_id) == page):
        return hit
    part = chunk.chunk_id.rpartition("#")[2].replace("#", ".")
    # An id without a part stands whole behind the page, so that two chunks of a page keep ids of their own.
    chunk_id = chunk.chunk_id if document_of(chunk.chunk_id) == page else f"{page}#{part}"
    return replace(hit, chunk=replace(chunk, chunk_id=chunk_id, doc_id=page))


async def _joined(pieces: AsyncIterator[str]) -> str:
    """Return the text that a pipeline gives piece by piece."""
    return "".join([piece async for piece in pieces])


def _call(function: Callable[[Any], Any], given: Any, name: str) -> Any:
    try:
        with loop_of_this_thread():
            answered: Any = function(given)
            return "".join(cast("Iterable[str]", answered)) if inspect.isgenerator(answered) else answered
    except StopIteration as error:
        # asyncio cannot pass a StopIteration on: the caller would wait for ever.
        raise RuntimeError(f"{name} raised StopIteration") from error
