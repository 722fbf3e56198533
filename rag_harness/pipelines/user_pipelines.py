"""Pipelines of a user's own: declaration, calls, forms of their answers, and record and replay."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass, replace
from itertools import chain
from math import isfinite
from pathlib import Path
from time import perf_counter
from typing import Any, cast

from rag_harness.core.concurrency import awaited_on, in_a_thread, loop_of_this_thread
from rag_harness.core.protocols import Experiment, Pipeline
from rag_harness.core.registry import stated_fingerprint, stated_truth
from rag_harness.core.text.comparison import NAMES_OF_PAGES
from rag_harness.core.text.refusals import declines
from rag_harness.core.types import Answer, Chunk, Hit, PipelineOutput, Query
from rag_harness.models.prompts import split_reply
from rag_harness.models.recording.playback import AppCalls, answering_app
from rag_harness.records.document_ranking import document_of


def declared(name: str, pipeline: Pipeline, data: str, made_in: str = "") -> Experiment:
    """Return the experiment ``name`` of an object of the user's own, which declares nothing.

    Its code is its class and the module ``made_in``, which made it. Its rows are reused only where it
    states a ``fingerprint``.
    """
    app = getattr(pipeline, "app", pipeline)
    answers = getattr(type(app), "answer", app if callable(app) else None)
    named = (written_in(answers), type(app).__module__, made_in)
    # With several conftest.py, the module name "conftest" may mean another file.
    modules = tuple(dict.fromkeys(each for each in named if each and each != "conftest"))
    states = bool(stated_fingerprint(pipeline))
    return Experiment(name, pipeline, data=data, code={"pipeline": modules}, is_reusable=states)


def written_in(function: Any) -> str:
    """Return a function's module; its file if the module is at the top level, as a conftest.py is."""
    function = inspect.unwrap(function) if callable(function) else function
    module = str(getattr(function, "__module__", "") or "")
    file = getattr(getattr(function, "__code__", None), "co_filename", "")
    return file if module and "." not in module and Path(file).is_file() else module


# Results of a user's own pipeline, in the usual forms, as an output.
#
# An answer is a text, or is in a mapping or an object under one of a few names; its contexts are texts, mappings,
# or the documents of LangChain, LlamaIndex and Haystack. Objects are read by their attributes, so no framework is
# imported.

_ANSWERS = ("answer", "result", "response", "output", "output_text", "text", "content", "data", "replies")
_CONTEXTS = (
    "contexts", "context", "retrieved_contexts", "source_documents", "source_nodes", "documents", "sources", "hits",
    "chunks",
)  # fmt: skip
_TEXTS = ("text", "page_content", "content", "chunk")
_IDS = ("chunk_id", "id_", "id", "node_id")
_SCORES = ("score", "relevance_score", "similarity")
NAMELESS = "context"
"""Replaces, in ids, the page of a context that names none."""
_PAIR = 2
_SOURCE = "pipeline"
"""Names the scores of hits whose retriever is not told."""
_FORMS = (
    "Read as one: a pair of text and contexts; a mapping or an object with answer and contexts. A context is a text, a "
    "mapping with text and source, a Hit, or a document of LangChain, LlamaIndex or Haystack."
)


def output_of(returned: Any, name: str) -> PipelineOutput:
    """Return the result of a pipeline named ``name`` as an output.

    Raises:
        TypeError: no part of it is known as an answer. The message lists the known forms.
    """
    if isinstance(returned, PipelineOutput):
        return returned
    if isinstance(returned, str):
        return PipelineOutput(Answer(returned, raw=returned))
    if isinstance(returned, Answer):
        return PipelineOutput(returned)
    said, contexts = _parts(returned)
    if said is None:
        wanted = f"it must return a PipelineOutput or the answer as a string. {_FORMS}"
        raise TypeError(f"{name} returned {_described(returned)}; {wanted}")
    hits = tuple(_hit(context, rank, name) for rank, context in enumerate(contexts, start=1))
    return PipelineOutput(Answer(said, raw=said), retrieved=hits, context=hits)


def _parts(returned: Any) -> tuple[str | None, Sequence[Any]]:
    """Return the text and the contexts of a result; None where it has no text."""
    if isinstance(returned, tuple | list):
        is_pair = len(returned) == _PAIR and isinstance(returned[0], str) and _is_listed(returned[1])
        return (returned[0], list(returned[1])) if is_pair else (None, ())
    known = _fields(returned)
    found = next((name for name in _ANSWERS if _text(known.get(name)) is not None), "")
    # LangChain's chains nest a message, Haystack's pipelines a component.
    said = _text(known.get(found))
    if said is None:
        nested = (_parts(value) for value in known.values() if isinstance(value, Mapping))
        return next((each for each in nested if each[0] is not None), (None, ()))
    contexts = next((known[name] for name in _CONTEXTS if name != found and _is_listed(known.get(name))), ())
    return said, list(contexts)


def _text(value: Any) -> str | None:
    """Return the text of an answer: the answer itself, or the text of a message, or of the first of several replies."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value:
        return _text(value[0])
    content = None if value is None or isinstance(value, Mapping) else getattr(value, "content", None)
    content = getattr(value, "data", None) if content is None and not isinstance(value, Mapping) else content
    return content if isinstance(content, str) else None


def _is_listed(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def _fields(thing: Any) -> Mapping[str, Any]:
    """Return the values of a mapping, a pydantic model, a dataclass or another object under the known names."""
    if isinstance(thing, Mapping):
        return thing
    if is_dataclass(thing) or hasattr(thing, "__dict__") or hasattr(thing, "model_fields"):
        names = chain(_ANSWERS, _CONTEXTS, _TEXTS, _IDS, _SCORES, NAMES_OF_PAGES, ("metadata", "meta", "node"))
        return {name: value for name in dict.fromkeys(names) if (value := getattr(thing, name, None)) is not None}
    return {}


def _hit(context: Any, rank: int, name: str) -> Hit:
    """Return a context as a hit.

    Raises:
        TypeError: it has no text.
    """
    if isinstance(context, Hit):
        return context
    if isinstance(context, Chunk):
        return Hit(context, 1.0 / rank, rank, source=_SOURCE)
    if isinstance(context, str):
        return Hit(Chunk(f"{NAMELESS}#{rank}", "", context), 1.0 / rank, rank, source=_SOURCE)
    known = dict(_fields(context))
    if isinstance(context, tuple) and len(context) == _PAIR:  # a document with its score
        return _scored(_hit(context[0], rank, name), _number(context[1]))
    inner = known.get("node")
    known = {**_fields(inner), **known} if inner is not None else known
    text = next((known[key] for key in _TEXTS if isinstance(known.get(key), str)), None)
    if text is None and inner is not None and callable(getattr(inner, "get_content", None)):
        text = str(inner.get_content())
    if text is None:
        raise TypeError(f"{name} returned the context {_described(context)}, which has no text. {_FORMS}")
    nested = (known[key] for key in ("metadata", "meta") if isinstance(known.get(key), Mapping))
    about: Mapping[str, Any] = next(nested, {})
    names = (each[key] for each in (known, about) for key in NAMES_OF_PAGES if isinstance(each.get(key), str))
    page = next(filter(None, names), "")
    chunk_id = next((str(known[key]) for key in _IDS if known.get(key)), f"{page or NAMELESS}#{rank}")
    score = next((found for key in _SCORES if (found := _number(known.get(key))) is not None), None)
    return _scored(Hit(Chunk(chunk_id, page, text), 1.0 / rank, rank, source=_SOURCE), score)


def _scored(hit: Hit, score: float | None) -> Hit:
    return hit if score is None else Hit(hit.chunk, score, hit.rank, hit.source)


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and isfinite(value) else None


def _described(thing: Any) -> str:
    """Return the type of a value, with its keys or attributes."""
    kind = type(thing).__name__
    if isinstance(thing, Mapping):
        return f"{kind} with {_listed(map(str, thing))}"
    if isinstance(thing, tuple | list):
        return f"{kind} of {_listed(type(each).__name__ for each in thing)}"
    has = [key for key in vars(thing) if not key.startswith("_")] if hasattr(thing, "__dict__") else []
    return f"{kind} with {_listed(has)}" if has else kind


def _listed(names: Iterable[str]) -> str:
    return ", ".join(_first(names)) or "nothing"


def _first(names: Iterable[str], most: int = 8) -> Iterator[str]:
    for number, name in enumerate(names):
        if number == most:
            yield "…"
            return
        yield name


# Calls code of the user's own: async as it is, anything else in a thread. Reads what it returns as an answer.


async def called(
    function: Callable[[Any], Any], given: Any, name: str, loop: asyncio.AbstractEventLoop | None = None
) -> Any:
    """Return what ``function`` returns for ``given``.

    Args:
        function: async, or not.
        given: its argument.
        name: what messages call its owner.
        loop: the event loop of an async call; None: this one.

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
    # A row refuses an answer that is not a text, with a message.
    return isinstance(answer.text, str) and declines(answer.text, refusals)


def without_reasoning(output: PipelineOutput) -> PipelineOutput:
    """Return an output whose answer is the text behind the marks of reasoning, with the text between as reasoning."""
    answer = output.answer
    if not isinstance(answer.text, str):
        return output  # a row refuses it
    thought, text = split_reply(answer.text)
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


ReplayedBefore = Callable[[], str]
"""Returns when the oldest recording was made that a pipeline was set up from; empty without one."""


class ReplayedParts:
    """Dates answers by the recordings behind them.

    Args:
        in_set_up: returns the date of the recordings that were replayed while the pipeline was made.
    """

    def __init__(self, in_set_up: ReplayedBefore = lambda: "") -> None:
        self._in_set_up, self._earlier = in_set_up, ""

    def dated(self, output: PipelineOutput, calls: AppCalls) -> PipelineOutput:
        """Return an answer with the date of the oldest recording behind it.

        An answer without any call may depend on recordings that an earlier answer replayed, by a cache of the pipeline.
        """
        self._earlier = _oldest(self._earlier, calls.oldest)
        is_replayed = calls.recorded_at is not None
        cached = "" if is_replayed or calls.has_called else self._earlier
        recorded_at = _oldest(output.recorded_at, calls.oldest, cached, self._in_set_up())
        return replace(output, recorded_at=recorded_at, replayed=output.replayed or is_replayed)


class RecordedPipeline:
    """Asks ``app``, an object with ``answer(query)``, and notes the results of its HTTP calls."""

    def __init__(self, app: Any, parts: ReplayedParts) -> None:
        self.app, self._parts = app, parts

    @property
    def fingerprint(self) -> str:
        """The fingerprint that the app states."""
        return stated_fingerprint(self.app)

    @property
    def retrieves(self) -> bool | None:
        """Whether the app says that it retrieves; None where it does not say."""
        return stated_truth(self.app, "retrieves")

    async def answer(self, query: Query) -> PipelineOutput:
        """Answer a query. An answer that depends on recordings has the date of the oldest one.

        Raises:
            RecordingMissError: a call of the app is not recorded, and this mode sends no calls.
            TypeError: the app returned something other than an answer.
        """
        name, started = type(self.app).__name__, perf_counter()
        answered, calls = await called_noting(self.app.answer, query, f"{name}.answer")
        output = self._parts.dated(output_of(answered, f"{name}.answer"), calls)
        if calls.recorded_at is None or output.total_ms is not None:
            return output
        return replace(output, total_ms=(perf_counter() - started) * 1000 + calls.chat_elapsed_ms)


async def called_noting(function: Callable[[Any], Any], given: Any, name: str) -> tuple[Any, AppCalls]:
    """Return the result of ``function`` for ``given``, and the results of its HTTP calls.

    Raises:
        RecordingMissError, RecordingWriteError: a call was refused, or its answer was not stored. A function that goes
            on without an answer would behave differently here from a run that asks the model.
    """
    with answering_app() as calls:
        try:
            returned = await called(function, given, name)
        except Exception as error:
            if calls.refused is None:
                raise
            raise calls.refused from error
    if calls.refused is not None:
        raise calls.refused
    return returned, calls


def _oldest(*dates: str) -> str:
    return min(filter(None, dates), default="")
