"""The trials of the page as compressed JSON for its script."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from math import isnan, nan
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from rag_harness.core.json_text import read_json
from rag_harness.core.progress import uncollected
from rag_harness.evaluation.measures import Measure
from rag_harness.evaluation.measures.answers import as_shown
from rag_harness.evaluation.measures.expectations import EXPECTATIONS, found_in, kept_of_rubrics
from rag_harness.evaluation.measures.judged import JudgedMeasure
from rag_harness.evaluation.measures.opinion import Support
from rag_harness.page.listed_trials import Cases, LineOfMeasure, Sample, claims_of, rows_of, sample_of
from rag_harness.page.run import Run
from rag_harness.records.cases import chat_before, inputs_beside
from rag_harness.records.document_ranking import document_of
from rag_harness.records.expectations import ExpectationResult
from rag_harness.records.files import PROMPTS
from rag_harness.records.row import ExperimentResult, RetrievedChunk, RowCall, RowStage, StepHit
from rag_harness.records.scores import CauseLine
from rag_harness.tables.suite_table import SuiteTable
from rag_harness.tables.wording import better_of

# Finds the evidence in a chunk, with white space folded as in the measure ``evidence_recall``.

_MOST = 65_536


def quotes_in(text: str, quotes: Sequence[str]) -> list[list[int]]:
    """Return number of the quote, start and end in ``text``, for each quote in it."""
    places = ((n, _place(text, quote)) for n, quote in enumerate(quotes))
    return [[n, *place] for n, place in places if place is not None]


@lru_cache(maxsize=_MOST)
def _place(text: str, quote: str) -> tuple[int, int] | None:
    as_it_stands = text.find(quote)
    if as_it_stands >= 0 and quote.strip() == quote != "":
        return as_it_stands, as_it_stands + len(quote)
    words = quote.split()
    if not words or " ".join(words) not in _folded(text):
        return None
    found = re.search(r"\s+".join(map(re.escape, words)), text)
    return found.span() if found else None


@lru_cache(maxsize=_MOST)
def _folded(text: str) -> str:
    return " ".join(text.split())


_T = TypeVar("_T", bound=Hashable)


class Pool(Generic[_T]):
    """Gives each new value the next number."""

    def __init__(self) -> None:
        self._numbers: dict[_T, int] = {}

    def number(self, value: _T) -> int:
        """Return the number of ``value``, from 0."""
        return self._numbers.setdefault(value, len(self._numbers))

    @property
    def values(self) -> list[_T]:
        """All values, by their number."""
        return list(self._numbers)


# The columns for filters and sorting: a list for each column, in the order of the trials.

STATES = ("ok", "error", "lost", "left out")
_OF_A_ROW = ("answer", "abstained", "ms", "cost", "confidence")
_OF_NO_ROW: tuple[Any, ...] = ("", 0, None, None, None)


class Columns:
    """The columns as they grow.

    Args:
        tables: tables of all experiments of the report.
    """

    def __init__(self, tables: Iterable[SuiteTable]) -> None:
        self._kinds: Pool[str] = Pool()
        self._causes: Pool[str] = Pool()
        names = ("experiment", "case", "state", "category", "cause", *_OF_A_ROW)
        self._columns: dict[str, list[Any]] = {name: [] for name in names}
        self._measures = {measure.name: measure for table in tables for measure in _measures(table)}
        self._values: dict[str, list[float | None]] = {name: [] for name in self._measures}

    def add(
        self, experiment: int, case: int, table: SuiteTable, position: int, of_row: tuple[Any, ...], cause: str
    ) -> None:
        """Add the trial at ``position`` of a table; ``of_row`` is the result of the function of that name."""
        kind = table.categories[position] if table.categories else ""
        said = (
            experiment,
            case,
            STATES.index(table.state_of(position)),
            self._kinds.number(kind) if kind else -1,
            self._causes.number(cause) if cause else -1,
            *of_row,
        )
        for values, value in zip(self._columns.values(), said, strict=True):
            values.append(value)
        for measure, found in self._values.items():
            found.append(_shown(table, measure, position))

    def said(self) -> dict[str, Any]:
        """Return the columns for the script."""
        return {
            "measures": [_said(measure) for measure in self._measures.values()],
            "categories": self._kinds.values,
            "causes": self._causes.values,
            "states": STATES,
            "trials": {**self._columns, "values": self._values},
        }


def of_row(row: ExperimentResult | None) -> tuple[Any, ...]:
    """Return a row's values in the columns; None is a trial without a row."""
    if row is None:
        return _OF_NO_ROW
    return row.llm_answer, int(row.abstained), round(row.total_time_ms, 1), row.cost_usd, row.confidence


def _measures(table: SuiteTable) -> list[Measure]:
    """Return the measures in which trials of the table have a value."""
    return [column.measure for name, column in table.columns.items() if table.has(name)]


def _said(measure: Measure) -> dict[str, Any]:
    """Return the data of a measure for the script; ``claims`` names the text with the claims, and their sources."""
    said: dict[str, Any] = {"name": measure.name, "better": better_of(measure), "unit": measure.unit}
    asked = [ask for ask in measure.asks if isinstance(ask, Support)] if isinstance(measure, JudgedMeasure) else []
    return said | ({"claims": list(asked[0])} if asked else {})


def _shown(table: SuiteTable, measure: str, position: int) -> float | None:
    """Return the value of a case, rounded for people."""
    column = table.columns.get(measure)
    value = nan if column is None else float(column.values[position])
    return None if isnan(value) else float(f"{value:.4g}")


PromptPieces = list[list[object]]
"""A list for each message: its role, then a number for each piece: n is text n of the pool, -n - 1 is chunk n."""


class Prompts:
    """Reads the prompts of a run and cuts them into pieces.

    Args:
        output: folder of the result files.
        texts: pool of the texts between chunks.
    """

    def __init__(self, output: Path, texts: Pool[str]) -> None:
        self._folder, self._texts = output / PROMPTS, texts

    def pieces(self, digest: str, chunks: Mapping[int, str]) -> PromptPieces | None:
        """Return a prompt; None where its file is missing. ``chunks`` are the row's, by their number in the pool."""
        try:
            # A path of ``pathlib`` takes longer to make than such a file to read.
            with open(f"{self._folder}/{digest}.json", "rb", buffering=0) as file:  # noqa: PTH123
                messages = read_json(file.read())
            return [[m["role"], *self._cut(m["content"], chunks)] for m in messages]
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _cut(self, text: str, chunks: Mapping[int, str]) -> list[int]:
        found = _places(text, chunks)
        pieces, done = list[int](), 0
        for start, end, number in found:
            if start > done:
                pieces.append(self._texts.number(text[done:start]))
            pieces.append(-number - 1)
            done = end
        if done < len(text):
            pieces.append(self._texts.number(text[done:]))
        return pieces


def _places(text: str, chunks: Mapping[int, str]) -> Sequence[tuple[int, int, int]]:
    """Return the positions of chunks in order, without overlaps."""
    every = sorted(
        (start, start + len(body), number)
        for number, body in chunks.items()
        if body and (start := text.find(body)) >= 0
    )
    kept: list[tuple[int, int, int]] = []
    for place in every:
        if not kept or place[0] >= kept[-1][1]:
            kept.append(place)
    return kept


def told_steps(stages: Sequence[RowStage], names: Pool[str]) -> Iterator[dict[str, Any]]:
    """Yield what each step tells beside its name, its time and its calls; nothing for a stage of a flat trace.

    Args:
        stages: steps of a trial.
        names: ids of chunks. A hit is the number of its id, and 1 where no search before has found it.
    """
    seen: set[str] = set()
    tells_hits = any(stage.hits for stage in stages)
    for stage in stages:
        is_told = stage.kind or stage.input is not None or stage.output is not None or stage.hits
        searches = stage.does == "retrieve"
        hits = [[names.number(_named(hit)), int(hit.chunk_id not in seen)] for hit in stage.hits]
        if searches:
            seen |= {hit.chunk_id for hit in stage.hits}
        said = {"kind": stage.does, "input": stage.input, "output": stage.output}
        found = {"hits": hits} if hits or (searches and tells_hits) else {}
        yield {**{key: value for key, value in said.items() if value not in (None, "")}, **found} if is_told else {}


def _named(hit: StepHit) -> str:
    """Return the id of a chunk, with its document before it where the id does not begin with that."""
    is_within = not hit.filename or document_of(hit.chunk_id) == hit.filename
    return hit.chunk_id if is_within else f"{hit.filename}#{hit.chunk_id}"


Chunk = tuple[str, str, str, str, str, str]
"""Id, text, file, section, version, date."""


class Details:
    """Makes the details of a run's trials.

    Args:
        chunks: chunks of all trials of the report.
        names: ids of chunks that were only candidates, and names of measures' reasons.
        prompts: prompts of the run.
        strings: texts of messages.
    """

    def __init__(self, chunks: Pool[Chunk], names: Pool[str], prompts: Prompts, strings: Pool[str]) -> None:
        self._chunks, self._names, self._prompts, self._strings = chunks, names, prompts, strings

    def of(
        self,
        row: ExperimentResult,
        judged: LineOfMeasure,
        quotes: Sequence[str],
        cause: CauseLine | None,
        gaps: Mapping[str, str],
        expected: Sequence[ExpectationResult] = (),
    ) -> dict[str, Any]:
        """Return the details, without empty fields.

        Args:
            row: row of the trial.
            judged: its scores by measure.
            quotes: evidence of its case.
            cause: cause of its failure, where that is known.
            gaps: why a measure has no value, by measure.
            expected: what its case expects, and whether the answer keeps to it.
        """
        numbers = [self._chunks.number(_chunk(chunk)) for chunk in row.retrieved_chunks]
        found = {
            "context": [
                _kept(number, chunk, quotes) for number, chunk in zip(numbers, row.retrieved_chunks, strict=True)
            ],
            "candidates": self._candidates(row),
            "claims": claims_of(judged),
            "gaps": {measure: self._names.number(why) for measure, why in gaps.items()},
            "expected": [_expected(each) for each in expected],
            "citations": list(row.citations),
            "invalid": list(row.invalid_citations),
            "stages": list(map(_stage, row.stages, told_steps(row.stages, self._names))),
            "decisions": [[d.name, d.outcome, d.value, d.threshold, d.reason] for d in row.decisions],
            "prompts": self._sent(row, {n: c.text.strip() for n, c in zip(numbers, row.retrieved_chunks, strict=True)}),
            "raw": row.raw_output if row.raw_output != row.llm_answer else "",
            "steps": list(row.reasoning_steps or ()),
            "thought": row.reasoning,
            "inputs": {**inputs_beside(row.asked), **_user(row)},
            "history": self._history(row),
            "usage": [row.usage.prompt_tokens, row.usage.completion_tokens, row.usage.calls],
            "error": [row.error.stage, row.error.type, row.error.message] if row.error else None,
            "cause": _cause(cause) if cause else None,
            "model": self._names.number(row.model),
        }
        return {name: value for name, value in found.items() if value not in (None, "", [], {})}

    def _candidates(self, row: ExperimentResult) -> dict[str, Any]:
        """Return ids and scores by signal, a list each: equal numbers beside each other compress well."""
        if not row.candidates:
            return {}
        signals = sorted({name for candidate in row.candidates for name in candidate.scores})
        scores = {name: [_short(candidate.scores.get(name)) for candidate in row.candidates] for name in signals}
        if not signals:
            scores = {"score": [_short(candidate.score) for candidate in row.candidates]}
        return {"ids": [self._names.number(candidate.chunk_id) for candidate in row.candidates], "scores": scores}

    def _history(self, row: ExperimentResult) -> list[list[object]]:
        """Return role and number of the text of each message before a turn, and 1 of a reply that failed."""
        said = chat_before(row.asked)
        return [[each.role, self._strings.number(each.text), *([1] if each.failed else [])] for each in said]

    def _sent(self, row: ExperimentResult, chunks: Mapping[int, str]) -> list[Any]:
        calls = [call for stage in row.stages for call in stage.calls if call.prompt]
        sent = [self._prompts.pieces(call.prompt, chunks) for call in calls]
        return [pieces for pieces in sent if pieces is not None]


def _user(row: ExperimentResult) -> dict[str, Any]:
    """Return who said the question, where a user is simulated, with the calls of its model."""
    if row.user is None:
        return {}
    calls = [f"{call.usage.prompt_tokens} → {call.usage.completion_tokens} tokens" for call in row.user.calls]
    return {"user": ", ".join([f"simulated by {row.user.detail.get('by', '')}", *calls])}


def _chunk(chunk: RetrievedChunk) -> Chunk:
    about = chunk.metadata
    return chunk.chunk_id, chunk.text, about.filename, about.section, about.version or "", about.date or ""


def _expected(each: ExpectationResult) -> list[Any]:
    """Return the expectation, whether it is met (1, 0, None where this cannot be decided), and what the answer has."""
    counts = ["must"] if each.expectation.must else []
    counts += [f"weight {each.expectation.weight:g}"] if each.expectation.weight != 1 else []
    said = f"{each.expectation}{' (' + ', '.join(counts) + ')' if counts else ''}"
    return [said, None if each.kept is None else int(each.kept), each.said]


def _kept(number: int, chunk: RetrievedChunk, quotes: Sequence[str]) -> list[Any]:
    """Return the chunk's number, its scores by signal, and the quotes in it: number, start and end of each."""
    scores = chunk.scores or {"score": chunk.score}
    return [number, {name: _short(value) for name, value in scores.items()}, quotes_in(chunk.text, quotes)]


def _stage(stage: RowStage, told: Mapping[str, Any]) -> list[Any]:
    found: list[Any] = [stage.name, _short(stage.ms), [_call(call) for call in stage.calls], dict(stage.detail), told]
    while not found[-1]:
        found.pop()
    return found


def _call(call: RowCall) -> list[Any]:
    tokens = [call.usage.prompt_tokens, call.usage.completion_tokens]
    return [call.role, call.model, _short(call.ms), _short(call.ttft_ms), *tokens, int(call.recorded), call.retries]


def _cause(line: CauseLine) -> dict[str, Any]:
    said = {
        "cause": line.cause,
        "detail": line.detail,
        "evidence": line.evidence,
        "remedy": line.remedy,
        "repaired_by": line.repaired_by,
        "limits": line.limits,
        "observational": line.observational,
        "reviewed": f"{line.reviewed_cause}, by {line.reviewed_by}" if line.reviewed_cause else "",
        "tried": [
            [name, came_to.get("answer", ""), came_to.get("right"), came_to.get("why", "")]
            for name, came_to in line.answers.items()
            if isinstance(came_to, Mapping)
        ],
    }
    return {name: value for name, value in said.items() if value}


def _short(value: float | None) -> float | None:
    """Return a number rounded for people."""
    return None if value is None else float(f"{value:.4g}")


BLOCK = 250
"""Trials whose details are unpacked together."""
Finished = Callable[[str, list[dict[str, Any]]], None]


@dataclass(frozen=True)
class Payload:
    """The script's data: JSON values by the name of their block. ``trials`` are the blocks of details.

    ``sampled`` says which trials are listed, where not all are.
    """

    index: dict[str, Any]
    texts: dict[str, Any]
    trials: list[list[dict[str, Any]]]
    sampled: str = ""

    def blocks(self) -> Iterator[tuple[str, Any]]:
        """Yield the blocks in the order in which the script reads them."""
        yield "index", self.index
        yield "texts", self.texts
        for number, block in enumerate(self.trials):
            yield _name(number), block


def payload_of(runs: Sequence[Run], sample: Sample | None = None, finished: Finished | None = None) -> Payload:
    """Return the trials of ``runs``, all or a sample, grouped by run and experiment.

    ``finished`` is called with name and content of each block of details as soon as that will not change.
    """
    with uncollected():  # all of it is kept, and the garbage collector would take a third of the time
        return _Gathering(runs, sample or sample_of(runs), finished).payload()


def _name(number: int) -> str:
    return f"trials-{number}"


class _Gathering:
    """The payload as it grows."""

    def __init__(self, runs: Sequence[Run], sample: Sample, finished: Finished | None) -> None:
        self._runs, self._sample, self._finished = runs, sample, finished
        self._chunks: Pool[Chunk] = Pool()
        self._strings: Pool[str] = Pool()
        self._names: Pool[str] = Pool()
        self._cases = Cases()
        self._columns = Columns(table for run in runs for table in run.experiments.values())
        self._details: list[list[dict[str, Any]]] = []

    def payload(self) -> Payload:
        """Return the finished payload."""
        suites = [(run, name) for run in self._runs for name in run.experiments]
        for number, (run, name) in enumerate(suites):
            self._add(number, run, name)
        index = {
            "version": 1,
            "block": BLOCK,
            "runs": [{"name": run.name, "date": run.manifest.date} for run in self._runs],
            "experiments": [_suite_entry(run, self._runs.index(run), name) for run, name in suites],
            "cases": self._cases.said,
            **self._columns.said(),
        }
        texts = {
            "chunks": [list(chunk) for chunk in self._chunks.values],
            "strings": self._strings.values,
            "names": self._names.values,
        }
        return Payload(index, texts, self._details, self._sample.said)

    def _add(self, number: int, run: Run, name: str) -> None:
        """Add the listed trials of an experiment: those with a row, and lost ones."""
        table, places = run.tables[name], self._sample.places[run.name, name].tolist()
        causes = {trial.query_id: line for trial, line in run.causes.items() if trial.experiment == name}
        details = Details(self._chunks, self._names, Prompts(run.output, self._strings), self._strings)
        cases = run.cases_of(name)
        found: dict[int, dict[str, Any]] = {}
        rows: dict[int, tuple[Any, ...]] = {}
        said_by_user: dict[int, str] = {}
        try:
            for position, row, judged in rows_of(run, name, places):
                asked = cases[position].case
                if asked.scenario is not None:
                    said_by_user[position] = row.query
                quotes = [quote.quote for quote in as_shown(asked, row).evidence]
                detail = {name: score.detail for name, score in judged.items()}
                expected = found_in(asked, row, judged=detail.get(EXPECTATIONS)) if row.ok and asked.expect else []
                expected += kept_of_rubrics(detail)
                found[position] = details.of(
                    row, judged, quotes, causes.get(row.query_id), _gaps(table, position), expected
                )
                rows[position] = of_row(row)
            for position in places:
                case = self._cases.number(run, name, cases, position, said_by_user.get(position, ""))
                line = causes.get(table.ids[position])
                said = rows.get(position, of_row(None))
                self._columns.add(number, case, table, position, said, line.cause if line else "")
                self._keep(found.pop(position, {}))
        finally:
            cases.close()

    def _keep(self, details: dict[str, Any]) -> None:
        if not self._details or len(self._details[-1]) == BLOCK:
            self._details.append([])
        block = self._details[-1]
        block.append(details)
        if len(block) == BLOCK and self._finished is not None:
            self._finished(_name(len(self._details) - 1), block)


def _suite_entry(run: Run, place: int, name: str) -> dict[str, Any]:
    history = run.suites[name].history
    return {"id": name, "run": place, **({"history": history} if history else {})}


def _gaps(table: SuiteTable, position: int) -> dict[str, str]:
    """Return why the case has no value, for each measure that could have one."""
    return {
        name: column.reasons[number]
        for name, column in table.columns.items()
        if column.unmeasured and (number := int(column.absent[position])) in column.unmeasured
    }


# Packs JSON for a block of the page: as gzip in base64, or plain for browsers that cannot unpack.

_LEVEL = 9


def packed(value: Any) -> str:
    """Return ``value`` as gzip in base64. The same value gives the same text."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    # zlib writes neither a name nor a time into the gzip header.
    return base64.b64encode(packer.compress(_encoded(value)) + packer.flush()).decode("ascii")


def script_json(value: Any) -> str:
    """Return ``value`` as JSON for a script element. Nothing in it can end the element."""
    text = _encoded(value).decode("ascii")
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _encoded(value: Any) -> bytes:
    # ASCII output: a lone surrogate stays an escape.
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode("ascii")


# Packs the blocks of the page's data in threads, while later ones are still made: zlib releases Python's lock.

_THREADS = 2


class Packing:
    """The blocks of one page, by name.

    Args:
        is_plain: keep them as plain JSON, for browsers that cannot unpack gzip: about three times the size.

    Attributes:
        how: name of the packing for the script.
    """

    def __init__(self, is_plain: bool = False) -> None:
        self.how, self._pack = ("json", script_json) if is_plain else ("gzip", packed)
        self._threads = ThreadPoolExecutor(_THREADS, "rag-packing")
        self._begun: dict[str, Future[str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown(cancel_futures=True)

    def begin(self, name: str, value: Any) -> None:
        """Begin to pack a finished block; ``value`` is plain JSON."""
        self._begun[name] = self._threads.submit(self._pack, value)

    def of(self, payload: Payload) -> Iterator[tuple[str, str]]:
        """Yield name and text of each block of a payload, in their order."""
        for name, value in payload.blocks():
            if name not in self._begun:
                self.begin(name, value)
        for name, _ in payload.blocks():
            yield name, self._begun[name].result()
