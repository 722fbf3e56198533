"""Answers of a service: paths into their JSON, typed values, citations, contexts and the documents of these."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_harness.core.errors import EmptyAnswerError, ModelCallError, ModelOutputError, RagHarnessError, SettingsError
from rag_harness.core.files import text_digest
from rag_harness.core.settings import Settings
from rag_harness.core.settings.endpoints import AnswerPaths
from rag_harness.core.settings.removed import RARE_TABLE
from rag_harness.core.text.comparison import PageNames, words_of
from rag_harness.core.text.shingles import PageTexts
from rag_harness.core.text.terms import cited_sources
from rag_harness.core.types import UNMARKED, Answer, Chunk, Document, Hit, Metadata, PipelineOutput, Usage
from rag_harness.records.document_ranking import document_of

if TYPE_CHECKING:
    from rag_harness.data.datasets import Data


_STEP = re.compile(r"""(?:^|\.)([^.\[\]'"*?@()$,\s]+)|\[(\d+)\]|\['([^'\\]*)'\]|\["([^"\\]*)"\]""")
_SHOWN = 12
"""Most keys that a message lists."""


class AnswerPath:
    """One path: a JSON Pointer (RFC 6901) where it begins with ``/``, else JSONPath (RFC 9535), whose ``$.`` may be
    left out. A path with ``?`` at its end is optional.

    Raises:
        SettingsError: the text is neither.
    """

    def __init__(self, text: str, where: str = "") -> None:
        self.text, self.is_optional = text, text.endswith("?")
        plain = text.removesuffix("?")
        self._steps = _pointer(plain) if plain.startswith("/") else _steps(plain)
        self._query = None if self._steps is not None else _compiled(plain, where)

    def find(self, document: Any) -> list[Any]:
        """Return the values that the path finds, in order."""
        if self._query is not None:
            return list(self._query.find(document).values())
        depth, value = self._walk(document)
        return [value] if depth == len(self._steps or ()) else []

    @property
    def is_many(self) -> bool:
        """Whether the path may find several values."""
        return self._query is not None and not self._query.singular_query()

    def nearest(self, document: Any) -> str:
        """Return a text on how far the path leads, and on the value there."""
        depth, value = self._walk(document) if self._steps else (0, document)
        at = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in (self._steps or ())[:depth])
        return f"At ${at} there is {described(value)}"

    def _walk(self, document: Any) -> tuple[int, Any]:
        """Return how many steps of the path exist, and the value after the last of them."""
        value = document
        for depth, step in enumerate(self._steps or ()):
            if isinstance(value, Mapping) and str(step) in value:
                value = value[str(step)]
            elif isinstance(value, list) and str(step).isdecimal() and int(step) < len(value):
                value = value[int(step)]
            else:
                return depth, value
        return len(self._steps or ()), value


def described(value: Any) -> str:
    """Describe a value in words: the keys of an object, the length of a list."""
    if isinstance(value, Mapping):
        more = ", …" if len(value) > _SHOWN else ""
        return f"an object with {', '.join(map(repr, list(value)[:_SHOWN])) or 'no keys'}{more}"
    if isinstance(value, list):
        return f"a list of {len(value)}" + (f", first {described(value[0])}" if value else "")
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f"text: {value[:60]!r}" if isinstance(value, str) else f"the number {value!r}"


def _pointer(text: str) -> tuple[str | int, ...]:
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/"))


def _steps(text: str) -> tuple[str | int, ...] | None:
    """Return the steps of a path that has only names and positions; None for other paths."""
    rest = text.removeprefix("$")
    if text.startswith("$") and rest[:1] not in ("", ".", "["):
        return None
    steps: list[str | int] = []
    at = 0
    while at < len(rest):
        found = _STEP.match(rest, at)
        if found is None:
            return None
        steps.append(int(found[2]) if found[2] else next(name for name in found.group(1, 3, 4) if name is not None))
        at = found.end()
    return tuple(steps)


def _compiled(text: str, where: str) -> Any:
    # The import takes 0.1 s, because of its regular expressions. So only paths that need it pay for it.
    import jsonpath_rfc9535 as jsonpath

    try:
        return jsonpath.compile(text if text.startswith("$") else f"$.{text}")
    except jsonpath.JSONPathError as error:
        raise SettingsError(
            f"{where} = {text!r} is not a path: {' '.join(str(error).split())}. Write names with dots between them, "
            f"JSONPath ($.hits[*].text) or a JSON Pointer (/hits/0/text)."
        ) from None


# Types of an answer's parts. Each function returns the value, or raises an error that says what was expected.


class WrongKindError(Exception):
    """A value has the wrong type. The message has the expected one."""


def text_value(value: Any) -> str:
    """Return a text."""
    if not isinstance(value, str):
        raise WrongKindError("text")
    return value


def name_value(value: Any) -> str:
    """Return a name: a text, or a whole number."""
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise WrongKindError("text")
    return str(value)


def number_value(value: Any) -> float:
    """Return a number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value):
        raise WrongKindError("a number")
    return float(value)


def share_value(value: Any) -> float:
    """Return a number from 0 to 1."""
    if not 0 <= number_value(value) <= 1:
        raise WrongKindError("a number from 0 to 1")
    return number_value(value)


def count_value(value: Any) -> int:
    """Return a whole number that is not negative."""
    if number_value(value) < 0 or number_value(value) != int(value):
        raise WrongKindError("a whole number, 0 or more")
    return int(value)


def truth_value(value: Any) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise WrongKindError("true or false")
    return value


def places_value(value: Any) -> tuple[int | str, ...]:
    """Return citations: numbers or names."""
    if not isinstance(value, list) or not all(isinstance(each, (int, str)) for each in value):
        raise WrongKindError("a list of places among the contexts, from 1, or of their names")
    return tuple(value)


def items_value(value: Any) -> list[Any]:
    """Return a list."""
    if not isinstance(value, list):
        raise WrongKindError("a list")
    return value


_UUID = re.compile(r"(?i)[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}")
CONTEXT_PARTS = {
    "text": text_value,
    "id": name_value,
    "document": name_value,
    "score": number_value,
}
"""The fields of an item, and the type of each."""


@dataclass(frozen=True, slots=True)
class Context:
    """A piece of text that the service names as a source of its answer. ``others`` may name its document, too."""

    text: str
    id: str = ""
    document: str = ""
    score: float | None = None
    others: tuple[str, ...] = ()


def is_uuid(name: str) -> bool:
    """Return whether a name is a UUID: frameworks make new ones for each index."""
    return bool(_UUID.fullmatch(name))


def read_contexts(items: Sequence[Any], paths: Mapping[str, AnswerPath], name: str) -> tuple[Context, ...]:
    """Return ``items`` as contexts. An item may be a plain text. ``name`` is the name of the service.

    Raises:
        ModelOutputError: a field of an item is missing or has the wrong type.
    """
    return tuple(_context(item, paths, f"{name}: context {place}") for place, item in enumerate(items, 1))


def _context(item: Any, paths: Mapping[str, AnswerPath], where: str) -> Context:
    if isinstance(item, str):
        return Context(item)
    found = {part: value for part in CONTEXT_PARTS if (value := _part(item, part, paths[part], where)) is not None}
    if not found.keys() - {"score"}:
        tried = ", ".join(f"{part} = {paths[part].text!r}" for part in ("text", "id", "document"))
        raise ModelOutputError(
            f"{where} is {described(item)}, and nothing is read of it: {tried} find nothing. Say in [read] where they "
            f"are."
        )
    return Context(**{"text": "", **found})


def _part(item: Any, part: str, path: AnswerPath, where: str) -> Any:
    found = path.find(item)
    if not found and not path.is_optional:
        raise ModelOutputError(f"{where}: read.{part} = {path.text!r} finds nothing. {path.nearest(item)}.")
    if not found or found[0] is None:
        return None
    try:
        return CONTEXT_PARTS[part](found[0])
    except WrongKindError as error:
        raise ModelOutputError(
            f"{where}: read.{part} = {path.text!r} finds {described(found[0])}; expected {error}."
        ) from None


# The limit of the contexts of an answer. No model reads more; and each takes memory and time in all that is measured.
#
# More of them are an error of the trial, and none is left out: figures of a part would look like those of the whole.

MOST_CONTEXTS = 1_000
"""Most contexts by default. ``max_contexts`` changes it."""


def most_contexts(settings: Settings) -> int:
    """Return the limit of a run: what it asks for itself, as many candidates or chunks, is within it."""
    return max(settings.max_contexts, settings.candidates, settings.top_k)


def refuse_many(output: PipelineOutput, most: int, author: str) -> None:
    """Refuse an output with more contexts, retrieved hits or hits of a step than ``most``.

    Raises:
        ModelOutputError: it has more.
    """
    numbers = [len(output.context), len(output.retrieved), *(len(stage.hits) for stage in output.stages)]
    check_number(max(numbers), most, author)


def check_number(number: int, most: int, author: str) -> None:
    """Refuse ``number`` contexts where that is more than ``most``.

    Raises:
        ModelOutputError: it is.
    """
    if number > most:
        raise ModelOutputError(
            f"{author} returned {number:,} contexts, and {most:,} are taken at most. Let it return those that the "
            f"answer was made of; where they are so many: max_contexts in {RARE_TABLE}"
        )


# Reader of an answer's JSON. A path that finds nothing is an error, never an empty answer.

_STOPPED = ("finish_reason", "stop_reason")
_RAW = 4000
"""Most characters of an answer that a failed row keeps."""


@dataclass(frozen=True)
class ServiceAnswer:
    """The parts of an answer. ``citations`` are numbers of ``contexts``, from 1, or their names."""

    answer: str = ""
    contexts: tuple[Context, ...] = ()
    citations: tuple[int | str, ...] | None = None
    confidence: float | None = None
    decision: str = ""
    abstained: bool | None = None
    model: str = ""
    usage_prompt: int = 0
    usage_completion: int = 0


@dataclass(frozen=True)
class AnswerField:
    """One part of an answer: its path, and the value, or why there is none."""

    name: str
    path: str
    value: Any = None
    problem: str = ""


class AnswerReader:
    """Reads the answers of one service.

    Args:
        paths: the paths of the parts.
        name: the name of the service, for messages.
        most: the most contexts of an answer.

    Raises:
        SettingsError: a path is malformed.
    """

    def __init__(self, paths: AnswerPaths, name: str, most: int = MOST_CONTEXTS) -> None:
        self._name, self._most = name, most
        given = {each.name: getattr(paths, each.name) for each in fields(AnswerPaths)}
        self._paths = {key: AnswerPath(text, f"{name}: read.{key}") for key, text in given.items() if text}

    def read(self, document: Any) -> ServiceAnswer:
        """Return the parts of the answer ``document``.

        Raises:
            ModelCallError: the answer is an error of the service.
            ModelOutputError: a path finds nothing, or the wrong type. The message has the path and the value there.
        """
        try:
            self.refuse_error(document)
            found = {name: self._field(name, document) for name in _READS if name in self._paths}
        except ModelOutputError as error:
            kind = EmptyAnswerError if isinstance(error, EmptyAnswerError) else ModelOutputError
            raise kind(str(error), raw_of(document)) from None
        return ServiceAnswer(**{name: value for name, value in found.items() if value is not None})

    def fields(self, document: Any) -> Iterator[AnswerField]:
        """Yield each part with its value, or why there is none."""
        for name in (name for name in _READS if name in self._paths):
            path = self._paths[name].text
            try:
                yield AnswerField(name, path, self._field(name, document))
            except RagHarnessError as error:
                yield AnswerField(name, path, problem=str(error))

    def refuse_error(self, document: Any) -> None:
        """Raise if the answer is an error of the service.

        Raises:
            ModelCallError: it is an error.
        """
        found = self._paths["error"].find(document) if "error" in self._paths else []
        if found and found[0]:
            raise ModelCallError(f"{self._name} says that it failed: {_short(found[0])}")

    def usage(self, document: Any) -> Usage:
        """Return the tokens stated in an answer. Without any: one call, no tokens."""
        counts = []
        for name in ("usage_prompt", "usage_completion"):
            found = self._paths[name].find(document) if name in self._paths else []
            counts.append(found[0] if found and isinstance(found[0], int) and found[0] > 0 else 0)
        return Usage(counts[0], counts[1], calls=1)

    def model(self, document: Any) -> str:
        """Return the model named in an answer; empty without one."""
        found = self._paths["model"].find(document) if "model" in self._paths else []
        return found[0] if found and isinstance(found[0], str) else ""

    def _field(self, name: str, document: Any) -> Any:
        value = self._one(name, document)
        if value is None and (self._paths[name].is_optional or name == "contexts"):
            return None
        try:
            read = _READS[name](value)
        except WrongKindError as error:
            raise self._wrong(name, value, str(error)) from None
        if name == "answer" and not value.strip() and not self._paths[name].is_optional:
            told = self._wrong(name, value, f"an answer. Where it may be empty: {self._paths[name].text}?")
            raise EmptyAnswerError(str(told), told.raw)
        if name != "contexts":
            return read
        check_number(len(read), self._most, self._name)
        return read_contexts(read, self._paths, self._name)

    def _one(self, name: str, document: Any) -> Any:
        """Return the value of a path, a list if there are several. None if an optional path finds nothing."""
        path = self._paths[name]
        found = path.find(document)
        if not found and not path.is_optional:
            raise ModelOutputError(
                f"{self._name}: read.{name} = {path.text!r} finds nothing in the answer. {path.nearest(document)}. "
                f"Where it may be missing: {path.text + '?'!r}."
            )
        if name in ("contexts", "citations") and path.is_many:
            return [item for each in found for item in (each if isinstance(each, list) else [each])]
        if len(found) > 1:
            raise self._wrong(name, found, "one thing; the path finds several")
        return found[0] if found else None

    def _wrong(self, name: str, value: Any, expected: str) -> ModelOutputError:
        path = self._paths[name].text
        return ModelOutputError(f"{self._name}: read.{name} = {path!r} finds {described(value)}; expected {expected}.")


_READS: Mapping[str, Callable[[Any], Any]] = {
    "answer": text_value,
    "contexts": items_value,
    "citations": places_value,
    "confidence": share_value,
    "decision": text_value,
    "abstained": truth_value,
    "model": text_value,
    "usage_prompt": count_value,
    "usage_completion": count_value,
}


def raw_of(document: Any) -> str:
    """Return the beginning of an unreadable answer. The row stores it."""
    return json.dumps(document, ensure_ascii=False)[:_RAW]


def finish_reason_of(document: Any) -> str:
    """Return why a model stopped, in the form of OpenAI's or Anthropic's API; else empty."""
    if not isinstance(document, Mapping):
        return ""
    choices = document.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    said = [place.get(key) for place in (first, document) if isinstance(place, Mapping) for key in _STOPPED]
    return next((word for word in said if isinstance(word, str)), "")


def _short(value: Any) -> str:
    message = value.get("message", value) if isinstance(value, Mapping) else value
    return (message if isinstance(message, str) else json.dumps(message, ensure_ascii=False))[:300]


def answer_of(said: ServiceAnswer, hits: Sequence[Hit]) -> Answer:
    """Return the answer. Without a path for citations, they are read from the text: ``[Source 1]``."""
    cited = _places(said, hits) if said.citations is not None else list(cited_sources(said.answer))
    inside = [n for n in cited if 1 <= n <= len(hits)]
    return Answer(
        said.answer,
        citations=tuple(inside),
        invalid_citations=tuple(n for n in cited if n not in inside),
        abstained=said.abstained,
        raw=said.answer,
    )


def _places(said: ServiceAnswer, hits: Sequence[Hit]) -> list[int]:
    """Return citations as numbers, once each. A name of no context gets a number after the last context."""
    names: dict[str, int] = {}
    for place, (context, hit) in reversed(list(enumerate(zip(said.contexts, hits, strict=True), 1))):
        names |= dict.fromkeys(filter(None, (context.document, hit.chunk.doc_id)), place)
        names |= {context.id: place} if context.id else {}
    found: list[int] = []
    behind = len(hits)
    for cited in said.citations or ():
        place = cited if isinstance(cited, int) else names.get(cited, 0)
        behind += not place
        found.append(place or behind)
    return list(dict.fromkeys(found))


BY_ID, BY_TEXT, BY_NAME, BY_NOTHING = "id", "text", "name", "nothing"
"""Where there are no documents to look in, a document is taken by the name that the context tells."""
NO_TEXT, OTHER_TEXT = "id, no text", "id, other text"
"""Found by id or name, but the context has no text, or one that shares no run of six words with the document."""


@dataclass(frozen=True)
class PlacedContexts:
    """Contexts as hits, and the number of contexts that were placed in each way."""

    hits: tuple[Hit, ...] = ()
    how: Mapping[str, int] = field(default_factory=dict)


class _Place(NamedTuple):
    """The document of a context, "" if unknown; how it was found; whether its text is not literally that document's."""

    doc_id: str
    how: str
    lacks_marks: bool = False


class Placing:
    """Finds the documents of contexts in one set of data.

    Args:
        documents: reads the documents; None where there are none to look in.
        name: the service's name. Chunks without a document are named after it.
        source: who found the hits.
        most: the most contexts of an answer.
    """

    def __init__(
        self,
        documents: Callable[[], Sequence[Document]] | None,
        name: str,
        source: str = "service",
        most: int = MOST_CONTEXTS,
    ) -> None:
        self._documents, self._name, self._source, self._most = documents, name, source, most
        # Shared by all chunks that say the same: a mapping of its own takes a fifth of the memory of a context.
        self._about: dict[_Place, Metadata] = {}

    @cached_property
    def _texts(self) -> Mapping[str, str]:
        return {} if self._documents is None else {document.doc_id: document.text for document in self._documents()}

    @cached_property
    def _names(self) -> PageNames:
        return PageNames(lambda: self._texts)

    @cached_property
    def _pages(self) -> PageTexts:
        return PageTexts(self._texts)

    def text_of(self, doc_id: str) -> str:
        """Return the text of a document; empty where the document does not exist."""
        return self._texts.get(doc_id, "")

    def place(self, contexts: Sequence[Context]) -> PlacedContexts:
        """Return ``contexts`` as hits, in order.

        Raises:
            ModelOutputError: they are too many.
        """
        check_number(len(contexts), self._most, self._name)
        found = [self._place(context) for context in contexts]
        taken: set[str] = set()
        ranked = enumerate(zip(contexts, found, strict=True), 1)
        hits = [self._hit(context, at, rank, taken) for rank, (context, at) in ranked]
        return PlacedContexts(tuple(hits), dict(Counter(at.how for at in found)))

    def _place(self, context: Context) -> _Place:
        if self._documents is None:
            named = _told(context)
            return _Place(named, (BY_NAME if context.text.strip() else NO_TEXT) if named else BY_NOTHING)
        for name in (context.document, context.id, *context.others):
            doc_id = self._names.find(name) or self._names.find(document_of(name))
            if doc_id:
                return _Place(doc_id, self._by_id(context.text, doc_id), not self._pages.quotes(doc_id, context.text))
        doc_id = self._pages.find(context.text)
        return (
            _Place(doc_id, BY_TEXT, not self._pages.quotes(doc_id, context.text)) if doc_id else _Place("", BY_NOTHING)
        )

    def _by_id(self, text: str, doc_id: str) -> str:
        """Return how well the text of a context agrees with the document that its id names.

        A service may shorten texts or join them, so one run of words in common is enough. A text with fewer words than
        a run has to be there whole, in one sequence.
        """
        if not words_of(text):
            return NO_TEXT
        return BY_ID if self._pages.says(doc_id, text) else OTHER_TEXT

    def _hit(self, context: Context, at: _Place, rank: int, taken: set[str]) -> Hit:
        doc_id, own = at.doc_id, (context.id or text_digest(context.text)).replace("#", ".")
        chunk_id = f"{doc_id}#{own}" if doc_id else f"{self._name}:{own}"
        chunk_id = chunk_id if chunk_id not in taken else f"{chunk_id}-{rank}"
        taken.add(chunk_id)
        marks = {"markup": UNMARKED} if at.lacks_marks else {}
        about = self._about.setdefault(at._replace(doc_id=""), {**marks, "placed": at.how})
        score = context.score if context.score is not None else 1 / rank
        chunk = Chunk(chunk_id, doc_id, context.text, metadata=about)
        return Hit(chunk, score, rank, source=self._source)


def placing_in(data: Data, name: str, source: str = "service", most: int = MOST_CONTEXTS) -> Placing:
    """Return the finder of the documents of contexts in ``data``; without documents, it takes names as they are."""
    return Placing((lambda: data.documents) if data.has_documents else None, name, source, most)


def _told(context: Context) -> str:
    """Return the document that a context tells: by its name, or by an id with a ``#``, which is a chunk of one.

    Another id may be a number, which says nothing of a document.
    """
    names = (context.document, context.id.rpartition("#")[0], *context.others)
    return next((name for name in names if name and not is_uuid(name)), "")
