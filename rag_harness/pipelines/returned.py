"""What a pipeline of a user's own returns, in the forms that people have, as an output.

An answer is a text, or stands in a mapping or an object under one of a few names; its contexts are texts, mappings, or
the documents of LangChain, LlamaIndex and Haystack. Objects are read by their attributes, so no framework is imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from itertools import chain
from math import isfinite
from typing import Any

from rag_harness.types import Answer, Chunk, Hit, PipelineOutput
from rag_harness.words.page_names import NAMES_OF_PAGES

_ANSWERS = ("answer", "result", "response", "output", "output_text", "text", "content", "data", "replies")
_CONTEXTS = (
    "contexts", "context", "retrieved_contexts", "source_documents", "source_nodes", "documents", "sources", "hits",
    "chunks",
)  # fmt: skip
_TEXTS = ("text", "page_content", "content", "chunk")
_IDS = ("chunk_id", "id_", "id", "node_id")
_SCORES = ("score", "relevance_score", "similarity")
NAMELESS = "context"
"""Stands in ids for the page of a context that names none."""
_PAIR = 2
_SOURCE = "pipeline"
"""Names the scores of hits whose retriever is not told."""
_FORMS = (
    "Read as one: a pair of text and contexts; a mapping or an object with answer and contexts. A context is a text, a "
    "mapping with text and source, a Hit, or a document of LangChain, LlamaIndex or Haystack."
)


def output_of(returned: Any, name: str) -> PipelineOutput:
    """Return what a pipeline called ``name`` returned as an output.

    Raises:
        TypeError: nothing in it is known as an answer; says what is understood.
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
    """Return the text and the contexts of what was returned; None where it has no text."""
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
    """Return the text of an answer: itself, that of a message, or of the first of several replies."""
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
    """Return what a mapping, a pydantic model, a dataclass or another object has under the known names."""
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
    """Return the type of something, and what it has."""
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
