"""Rows of results: ``ExperimentResult``, its parts, its line of JSONL and its JSON Schema."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from math import isfinite
from pathlib import Path
from textwrap import shorten
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ValidationError,
    model_validator,
)
from pydantic.dataclasses import dataclass
from pydantic_core import CoreSchema, core_schema, from_json

from rag_harness.core import json_text
from rag_harness.core.json_text import DRAFT, Schema
from rag_harness.core.settings.profiles import BASELINE_READER
from rag_harness.core.types import NEGATIVE, Query, TrialId

# Values that JSON can hold, so that no row is lost to one bad character.


def storable(value: Any) -> Any:
    """Return ``value`` in a form that JSON can hold.

    Lone surrogates, which some models send, become U+FFFD. NaN and infinity become null. A value of a type that JSON
    does not have becomes its ``str``.
    """
    if isinstance(value, str):
        return value if _has_whole_characters(value) else whole_characters(value)
    if isinstance(value, dict | Mapping):  # dict first: to ask an abstract class takes three times as long
        return {storable(str(key)): storable(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [storable(each) for each in value]
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value if value is None or isinstance(value, int) else storable(str(value))


def _has_whole_characters(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def whole_characters(text: str) -> str:
    """Return a text with lone surrogates: two that belong together are one character, others U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def read_json(line: bytes | str) -> Any:
    """Parse a line. Lines of older releases may contain lone surrogates: a slower parser reads them.

    Raises:
        ValueError: the line is not JSON.
    """
    try:
        return from_json(line)
    except ValueError:
        return json_text.read_json(line)


def _text(value: Any) -> Any:
    return storable(value) if isinstance(value, str) else value


class _OfPythonAlone:
    """Has only Python's values changed: pydantic's parser refuses JSON with lone surrogates before any validator."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        text = handler(source)
        python = core_schema.no_info_before_validator_function(_text, text)
        return core_schema.json_or_python_schema(text, python)


class AsItIs:
    """Has a value of Python's taken as it is, not copied, where ``is_right`` says so; any other is validated."""

    def __init__(self, is_right: Callable[[Any], bool]) -> None:
        self._is_right = is_right

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        checked = handler(source)
        python = core_schema.no_info_wrap_validator_function(self._taken, checked)
        return core_schema.json_or_python_schema(checked, python)

    def _taken(self, value: Any, check: core_schema.ValidatorFunctionWrapHandler) -> Any:
        return value if self._is_right(value) else check(value)


def has_finite_floats(value: Any) -> bool:
    """Return whether ``value`` is a dict of finite floats by plain names."""
    if type(value) is not dict:
        return False
    names_are_plain = all(type(name) is str and name.isascii() for name in value)
    return names_are_plain and all(type(each) is float and isfinite(each) for each in value.values())


StorableText = Annotated[str, _OfPythonAlone()]
Metadata = Annotated[dict[str, Any], BeforeValidator(storable)]


Finite = Annotated[float, Field(allow_inf_nan=False)]
Scores = Annotated[dict[str, Finite], AsItIs(has_finite_floats)]
Milliseconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


STEP_KINDS = ("retrieve", "rerank", "generate", "tool", "decide")
"""Kinds of steps. A step of such a name is of that kind."""
PlainJson = Annotated[Any, BeforeValidator(storable)]
"""Plain JSON."""


def is_absent(value: Any) -> bool:
    """Whether a step does not have this: few steps do, and rows without it stay as they were."""
    return value is None or value in ((), "")


def is_zero(value: Any) -> bool:
    """Whether there are none of something that most calls have none of."""
    return bool(value == 0)


class FrozenModel(BaseModel):
    """What never changes once it is read; keys that it does not know are ignored."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="ignore")


@dataclass(frozen=True, slots=True, kw_only=True)
class HitMetadata:
    """Where a chunk comes from."""

    filename: StorableText = Field(description="name of the document; empty where it is not known")
    section: StorableText = Field(description="headings above the chunk, outermost first, joined by ' > '")
    version: StorableText | None = Field(
        default=None, description="of the page, null where the knowledge base names none"
    )
    date: StorableText | None = Field(
        default=None, description="from which the page holds; null where the knowledge base names none"
    )
    markup: StorableText | None = Field(
        default=None, description="'taken off' where the text has lost the page's marks, null where it has them"
    )
    module: StorableText | None = Field(
        default=None, description="of a book that the page belongs to; null where none is named"
    )
    chapter: StorableText | None = Field(default=None, description="of that book; null where none is named")
    url: StorableText | None = Field(
        default=None, description="address of the chunk or of its page; null where none is named"
    )
    page: int | None = Field(
        default=None, description="of the file that the chunk begins on; null where it has no pages"
    )
    last_page: int | None = Field(
        default=None, description="of the file that the chunk ends on; null where it has no pages"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievedChunk:
    """A chunk that went into the prompt."""

    chunk_id: StorableText = Field(description="the same text of the same document has the same id")
    text: StorableText = Field(description="as the model read it")
    score: Finite = Field(description="first stage's score; cosine for dense retrieval")
    rerank_score: Finite | None = Field(default=None, description="null where the experiment has no reranker")
    scores: Scores = Field(default_factory=dict, description="score of each signal by its name: dense, bm25, rerank, …")
    metadata: HitMetadata = Field(description="where the chunk comes from")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A chunk that the first stage returned."""

    chunk_id: StorableText = Field(description="as in retrieved_chunks")
    score: Finite = Field(description="first stage's score")
    rerank_score: Finite | None = Field(default=None, description="null where the experiment has no reranker")
    scores: Scores = Field(default_factory=dict, description="score of each signal by its name")


class TokenUsage(FrozenModel):
    """Tokens as the model's server counted them."""

    prompt_tokens: int = Field(0, description="tokens that were sent")
    completion_tokens: int = Field(0, description="tokens that were generated")
    calls: int = Field(0, description="calls that these are of")
    cached_tokens: int = Field(
        0, description="of those sent, the ones that the server had read before; absent: none", exclude_if=is_zero
    )
    reasoning_tokens: int = Field(
        0, description="of those generated, the ones that the model thought; absent: none", exclude_if=is_zero
    )


class RowCall(FrozenModel):
    """A call of a model."""

    role: StorableText = Field(description="what the model was asked for: answer, judge, service, …")
    model: StorableText = Field(description="name of the model")
    usage: TokenUsage = Field(TokenUsage(), description="tokens of the call")
    ms: Milliseconds = Field(0.0, description="time of the last try, without waiting")
    ttft_ms: Milliseconds | None = Field(None, description="time to first token; null where nothing was streamed")
    waited_ms: Milliseconds = Field(0.0, description="time spent waiting between tries and for a turn")
    retries: int = Field(0, description="tries after the first")
    recorded: bool = Field(False, description="the times are those of the recorded call")
    recorded_at: StorableText = Field(
        "", description="when a replayed call was recorded: UTC, ISO 8601; empty: not known"
    )
    finish_reason: StorableText = Field(
        "", description="why the model stopped, as its server says; empty where it does not"
    )
    asked_without: tuple[StorableText, ...] = Field(
        (),
        description="parameters that the model does not take, so it was asked without them; absent: none",
        exclude_if=is_absent,
    )
    prompt: StorableText = Field("", description="digest of the messages that were sent: prompts/<digest>.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepHit:
    """A chunk that a step returned."""

    chunk_id: StorableText = Field(description="as in retrieved_chunks")
    filename: StorableText = Field(description="name of its document")
    score: Finite | None = Field(default=None, description="null where the step states none")


class RowStage(FrozenModel):
    """A timed step. An agent has several of one name: each search is a step, and each call of a tool."""

    name: StorableText = Field(description="as the pipeline calls it: retrieve, rerank, generate, …")
    ms: Milliseconds = Field(description="time of the step, without waiting for other trials")
    calls: tuple[RowCall, ...] = Field((), description="calls of models within it")
    detail: Metadata = Field({}, description="what the step has to say, by name")
    kind: StorableText = Field(
        "", description="retrieve, rerank, generate, tool or decide; absent: its name says it", exclude_if=is_absent
    )
    input: PlainJson = Field(
        None, description="the query of a search, the arguments of a tool; absent: not told", exclude_if=is_absent
    )
    output: PlainJson = Field(None, description="what came out; absent: not told", exclude_if=is_absent)
    hits: tuple[StepHit, ...] = Field(
        (),
        description="what a search or a reranker returned, best first; absent: nothing, or not told",
        exclude_if=is_absent,
    )

    @property
    def does(self) -> str:
        """What kind of step it is: as it says, or else as its name does; empty for any other."""
        return self.kind or (self.name if self.name in STEP_KINDS else "")


class RowDecision(FrozenModel):
    """The decision of the pipeline, with its reason."""

    name: StorableText = Field(description="what was decided on")
    outcome: StorableText = Field(description="what was decided")
    value: Finite | None = Field(None, description="null where it was not a number that decided")
    threshold: Finite | None = Field(None, description="what the value was set against; null where there is none")
    reason: StorableText = Field("", description="why, in words; empty where the pipeline gives none")


class RowError(FrozenModel):
    """Why a trial has no answer."""

    stage: StorableText = Field(description="query, retrieve, rerank, prompt, generate, parse or pipeline")
    type: StorableText = Field(description="class of the exception")
    message: StorableText = Field(description="what it says")


# Rows of results: ``ExperimentResult``, and how it is written and read as one line of JSONL.
#
# The format is stable: one JSON object a line, UTF-8; within a ``schema_version`` keys are only added. Readers ignore
# keys that they do not know. Null means "this stage does not exist for this experiment" or "the answer is missing"; the
# description of each field says which.

SCHEMA_VERSION = 1
_SHORT = 300
"""Characters of a text that fit in one line."""
_BY_EXPECTATIONS = "expectations"
_BEGIN = b'{"query_id":"'
"""Beginning of the lines that this package writes."""


def _is_none(value: object) -> bool:
    return value is None


class ExperimentResult(FrozenModel):
    """One trial: one experiment on one query."""

    query_id: StorableText = Field(description="id of the case; with the experiment it names the trial")
    experiment: StorableText = Field(description="name of what answered")
    query: StorableText = Field(description="the question as it was asked")
    inputs: Metadata = Field({}, description="what else the user sent, by name")
    query_type: StorableText = Field(description="any label: direct, multi_hop, negative, …")
    answerable: bool = Field(True, description="the documents answer the query")
    retrieved_chunks: tuple[RetrievedChunk, ...] = Field(description="what went into the prompt, in prompt order")
    candidates: tuple[Candidate, ...] = Field(description="all that the first stage returned, in its order")
    ranking: tuple[StorableText, ...] | None = Field(
        None,
        description="names that ranking measures look up, best first; null where they are the documents of the chunks",
    )
    llm_answer: StorableText = Field(description="empty where status is error")
    raw_output: StorableText = Field(description="what the model said, before it was read into parts")
    citations: tuple[int, ...] = Field(description="n of each [Source n] cited that is in retrieved_chunks, 1-based")
    invalid_citations: tuple[int, ...] = Field(description="n of each [Source n] cited that is not")
    abstained: bool = Field(description="the answer says that it does not know")
    correct: bool | None = Field(None, description="the answer is right; null where nothing checked it")
    correct_by: StorableText = Field(
        "",
        description="what decided that: expectations, declined (whether it declines) or ground_truth; "
        "empty: not checked",
    )
    retrieves: bool | None = Field(
        None,
        description="whether the experiment says that it retrieves; absent where it does not say",
        exclude_if=_is_none,
    )
    reasoning_steps: tuple[StorableText, ...] | None = Field(
        description="null where the experiment asks for no reasoning"
    )
    reasoning: StorableText = Field(
        "",
        description="what the model thought before it answered; no figure looks at it; absent: nothing is told",
        exclude_if=is_absent,
    )
    ground_truth: StorableText = Field(description="the right answer; empty where nobody wrote one")
    context_reference: tuple[StorableText, ...] = Field(description="names of the documents that have the answer")
    metadata: Metadata = Field(description="what else the line of queries.jsonl says of the case")
    retrieval_time_ms: Milliseconds | None = Field(
        description="of the search, without the embedding of a question that is known before the run: all these are "
        "embedded ahead. Of a search text that the pipeline writes on its way, the embedding is in it. "
        "null where the experiment does not retrieve"
    )
    rerank_time_ms: Milliseconds | None = Field(description="null where the experiment has no reranker")
    llm_time_ms: Milliseconds | None = Field(description="null where no model was called")
    ttft_ms: Milliseconds | None = Field(description="time to first token; null where the model did not stream")
    total_time_ms: Milliseconds = Field(
        description="sum of the stages, without waiting for other trials in flight; wall time where no stage is timed, "
        "and of a traced app"
    )
    usage: TokenUsage = Field(description="tokens of all calls of the trial")
    cost_usd: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        None,
        description="what the model call costs; where the answer was replayed, what the recorded call cost; "
        "null where the price of the model or its tokens are not known",
    )
    retries: int = Field(0, description="model calls that were tried again")
    waited_ms: Milliseconds = Field(
        0.0, description="time spent waiting between tries, and for a turn where calls are limited"
    )
    stages: tuple[RowStage, ...] = Field((), description="timed steps with their calls, in the order in which they ran")
    user: RowStage | None = Field(
        None,
        description="who said the question, where a user is simulated: its time and calls count in no figure of the "
        "row; absent where a person wrote the question",
        exclude_if=_is_none,
    )
    decisions: tuple[RowDecision, ...] = Field((), description="what the pipeline decided, in its order")
    confidence: Finite | None = Field(None, description="0 to 1; null where the pipeline states none")
    model: StorableText = Field(description="chat model; empty where no answer was asked for")
    profile: StorableText = Field(description="named set of models that answered")
    mode: Literal["auto", "replay", "record", "live"] = Field(description="of the run that made the row")
    dry_run: bool = Field(description="mode was replay")
    timings_recorded: bool = Field(False, description="the model's times are those of the recorded call")
    recorded_at: StorableText = Field(
        "", description="UTC, ISO 8601, of the oldest call that was replayed; empty where none was, or it is not known"
    )
    version: StorableText = Field("", description="of the service that answered; empty where it has none")
    trace_id: StorableText = Field(
        "", description="of the trial's spans, 32 hexadecimal digits; absent: none were read", exclude_if=is_absent
    )
    status: Literal["ok", "error"] = Field(description="error: the trial has no answer")
    error: RowError | None = Field(description="null where status is ok")
    fingerprint: StorableText = Field(description="digest of everything that changes a result of this experiment")
    finished_at: StorableText = Field("", description="UTC, ISO 8601")
    schema_version: int = Field(SCHEMA_VERSION, description="of the row; keys are only added within one")

    @model_validator(mode="after")
    def _of_an_older_release(self) -> ExperimentResult:
        """Fill in ``answerable`` for rows of older releases, where only negative queries could not be answered."""
        # The validator runs "after": "before" would turn the line into Python objects first, a quarter of the time.
        if "answerable" not in self.model_fields_set:
            vars(self)["answerable"] = self.query_type != NEGATIVE
        return self

    @property
    def is_computed(self) -> bool:
        """Whether no model was asked: in a replay, where only the baseline reader may compute new answers."""
        calls = [call for stage in self.stages for call in stage.calls]
        # Only for pipelines that report stages: any other may have called a model without saying so.
        return bool(self.stages) and all(self.dry_run and not c.recorded and c.model == BASELINE_READER for c in calls)

    @property
    def repeats_itself(self) -> bool:
        """Whether the same question has the same answer: it is recorded, or computed."""
        return self.timings_recorded or self.is_computed

    @property
    def trial(self) -> TrialId:
        """Experiment and query: what makes a row unique in a run."""
        return TrialId(self.experiment, self.query_id)

    @property
    def trial_id(self) -> str:
        """The same as text, e.g. ``e3-q_direct_001``."""
        return str(self.trial)

    @property
    def asked(self) -> Query:
        """The question as the pipeline got it, with its place in its conversation and the messages before it."""
        return Query(self.query_id, self.query, self.inputs)

    @property
    def ok(self) -> bool:
        """Whether the trial has an answer."""
        return self.status == "ok"

    @property
    def error_text(self) -> str:
        """The failure in one line; empty where an answer came."""
        return f"{self.error.stage}: {self.error.type}: {self.error.message}" if self.error else ""

    @property
    def why(self) -> str:
        """The failure in one line, or the expected and the given words of a wrong answer; else empty."""
        if self.error or self.correct is not False:
            return self.error_text
        return f"wrong: expected {self._expected}; found {_in_short(self.llm_answer)}"

    @property
    def _expected(self) -> str:
        truth = _in_short(self.ground_truth) if self.ground_truth.strip() else ""
        if self.correct_by == _BY_EXPECTATIONS:
            return f"what the question's expectations say{f', and {truth}' if truth else ''}"
        return truth or ("an answer" if self.answerable else "to decline, because the documents do not answer it")

    @cached_property
    def text(self) -> str:
        """The row as JSON; made once, however many files and reports use it."""
        return self.model_dump_json()

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> ExperimentResult:
        """Return a copy. Its JSON text is made again."""
        copied = super().model_copy(update=update, deep=deep)
        vars(copied).pop("text", None)
        return copied

    def line(self) -> str:
        """Return the row as one line of JSON, newline included."""
        return self.text + "\n"


def _in_short(text: str) -> str:
    """Return a text as part of one line."""
    return repr(shorten(text, _SHORT, placeholder=" …"))


def parse_row(line: str | bytes) -> ExperimentResult:
    """Read one line.

    Raises:
        pydantic.ValidationError: the line is not a row.
    """
    return ExperimentResult.model_validate_json(line)


def row_or_none(line: str | bytes) -> ExperimentResult | None:
    """Read one line; None where it is not a row."""
    try:
        return parse_row(line)
    except ValidationError:
        return None


def rows_in(file: Path) -> Iterator[ExperimentResult]:
    """Yield the rows of a file, in its order. Lines that are not rows, as a kill leaves them, are skipped."""
    for _, line, _ in numbered_lines(file):
        row = row_or_none(line)
        if row is not None:
            yield row


def rows_among(file: Path, query_ids: Collection[str]) -> Iterator[ExperimentResult]:
    """Yield the rows of some queries. Lines that begin with the id of another query are not parsed."""
    for _, line, _ in numbered_lines(file):
        row = row_or_none(line) if _may_be_of(line, query_ids) else None
        if row is not None and row.query_id in query_ids:
            yield row


def _may_be_of(line: bytes, query_ids: Collection[str]) -> bool:
    if not line.startswith(_BEGIN):
        return True
    said = line[len(_BEGIN) : line.find(b'"', len(_BEGIN))]
    return b"\\" in said or said.decode(errors="replace") in query_ids


def numbered_lines(file: Path) -> Iterator[tuple[int, bytes, bool]]:
    """Yield line number, line, and whether the line has no newline at its end (a torn write)."""
    if not file.is_file():
        return
    with file.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            if not line.isspace():
                yield number, line, not line.endswith(b"\n")


def first_problem(error: ValidationError) -> str:
    """Return the first problem of a validation in one line."""
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"])
    return f"{field}: {first['msg']}" if field else str(first["msg"])


def row_schema() -> Schema:
    """Return the schema of a line of a result file, as it is written."""
    return {"$schema": DRAFT, **ExperimentResult.model_json_schema(mode="serialization")}
