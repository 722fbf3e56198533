"""Evaluate a pipeline from a notebook: pipeline, questions and settings in, an evaluation out."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from math import isnan
from os import PathLike, fspath
from pathlib import Path
from typing import Any, cast

from rag_harness.core.concurrency import Lazy, lasting_loop
from rag_harness.core.errors import CriticalError, DataError, RagHarnessError, SettingsError, unknown
from rag_harness.core.escaping import terminal_block
from rag_harness.core.files import write_atomically
from rag_harness.core.log import log_name
from rag_harness.core.protocols import Experiment
from rag_harness.core.registry import is_own_code, is_reusable, stated_fingerprint, stated_truth
from rag_harness.core.settings import Settings, access_of, options
from rag_harness.core.settings.endpoints import check_name
from rag_harness.core.settings.loading import ini_values, load_settings
from rag_harness.core.settings.removed import refuse_removed
from rag_harness.core.settings.table import names_in
from rag_harness.core.types import GOLDEN, Case, PipelineOutput, Query
from rag_harness.data.datasets import Data
from rag_harness.data.query_lines import columns_of, line_of_cells
from rag_harness.data.source_records import field_meant
from rag_harness.evaluation.measures import measure_named, parts_of
from rag_harness.evaluation.measures.conversations import LateMeasure
from rag_harness.evaluation.measures.metamorphic import metamorphic_of
from rag_harness.frontends.notebook.evaluation import Evaluation, evaluation_of
from rag_harness.frontends.notebook.run import NotebookRecord, NotebookRun, written_to
from rag_harness.models.dry_run import of_dry_run
from rag_harness.models.endpoints import check_api_keys
from rag_harness.models.recording.patches import own_calls_covered
from rag_harness.pipelines.experiments import data_of, endpoints_of, experiment, is_known, known_experiments
from rag_harness.pipelines.parts import RunParts
from rag_harness.pipelines.user_pipelines import RecordedPipeline, ReplayedParts, called, declared, output_of
from rag_harness.records.cases import tools_as_json
from rag_harness.records.expectations import (
    AddedExpectations,
    as_json,
    checked_expectations,
    plain_expectations,
    stated_in,
)
from rag_harness.records.manifest import is_own_name, is_played_name
from rag_harness.retrieval.indexes.server_connection import check_client
from rag_harness.runs.fingerprint import Identities
from rag_harness.runs.journal import InterruptedRuns, adopt_journals
from rag_harness.tables.answer_warnings import cuts_pages
from rag_harness.tables.requested_measures import WantedMeasures

Loop = asyncio.AbstractEventLoop
_WANTED = (
    "a function of a question, an object with a method answer(query), an Experiment, or the name of an experiment or "
    "endpoint"
)


class AskedApp:
    """A function, or an object with ``answer``, as a pipeline.

    Args:
        app: what is asked. A function gets the text of a question, or the ``Query`` where its parameter says so.
        name: what messages call it.
        loop: event loop for ``async`` pipelines; None: the loop of this process that outlives an evaluation.
    """

    def __init__(self, app: Any, name: str, loop: Loop | None = None) -> None:
        self.app, self._name, self._loop = app, name, loop
        self._ask: Callable[[Any], Any] = app if _is_function(app) else app.answer
        self._takes_query = not _is_function(app) or _says_query(app)

    @property
    def fingerprint(self) -> str:
        """What the app says of its version; empty where it says nothing."""
        return stated_fingerprint(self.app)

    @property
    def retrieves(self) -> bool | None:
        """Whether the app says that it retrieves; None where it does not say."""
        return stated_truth(self.app, "retrieves")

    async def answer(self, query: Query) -> PipelineOutput:
        """Answer a query.

        Raises:
            TypeError: the app returned something that is not an answer.
        """
        given = query if self._takes_query else query.text
        return output_of(await called(self._ask, given, self._name, self._loop or lasting_loop()), self._name)


def own_pipeline(pipeline: object, name: str, version: str, loop: Loop | None = None) -> Experiment:
    """Return the experiment of a function, an object or an ``Experiment``.

    Args:
        pipeline: one of these.
        name: name of the experiment; by default the name of the function or class.
        version: version of the pipeline, whose answers do not change; needed where the code cannot be read.
        loop: event loop for ``async`` pipelines; None: the loop of this process that outlives an evaluation.

    Raises:
        SettingsError: the pipeline is none of these, or cannot be called with one question; or the name is not valid.
    """
    if isinstance(pipeline, Experiment):
        reusable = pipeline.is_reusable and is_reusable(pipeline.pipeline, pipeline.code)
        named = replace(pipeline, id=name or pipeline.id, is_reusable=reusable)
        check_name(named.id, "evaluate")
        return _with_version(named, version)
    function = pipeline if _is_function(pipeline) else getattr(pipeline, "answer", None)
    if isinstance(pipeline, type) or not callable(function):
        raise SettingsError(f"evaluate: the pipeline is {pipeline!r:.80}: expected {_WANTED}.")
    called_name = _name_of(pipeline)
    _check_parameters(function, called_name)
    name = name or called_name.removesuffix(".answer")
    check_name(name, "evaluate: the name of the pipeline, name=")
    is_function = _is_function(pipeline)
    is_wrapped = is_function or loop is not None or inspect.iscoroutinefunction(function)
    asked: Any = AskedApp(pipeline, f"{called_name}()", loop) if is_wrapped else pipeline
    return _with_version(declared(name, asked, ""), version)


def _with_version(made: Experiment, version: str) -> Experiment:
    if not version:
        return made
    return replace(made, is_reusable=True, ingredients={**made.ingredients, "version": version})


def _is_function(pipeline: object) -> bool:
    return callable(pipeline) and not callable(getattr(pipeline, "answer", None)) and not isinstance(pipeline, type)


def _name_of(pipeline: object) -> str:
    if not _is_function(pipeline):
        return f"{type(pipeline).__name__}.answer"
    name = getattr(pipeline, "__name__", type(pipeline).__name__)
    return "pipeline" if name == "<lambda>" else str(name)


def _check_parameters(function: Any, name: str) -> None:
    """Refuse what cannot be called with one question.

    Raises:
        SettingsError: names the parameters.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # of C code, which says so when it is called
    try:
        signature.bind("")
    except TypeError as error:
        raise SettingsError(
            f"evaluate: {name}{signature} cannot be called with one question: {error}. Give it one parameter, the "
            f"question; functools.partial gives it the others."
        ) from None


def _says_query(function: Any) -> bool:
    """Whether the first parameter of a function is annotated as a ``Query``."""
    try:
        first = next(iter(inspect.signature(function).parameters.values()))
    except (StopIteration, TypeError, ValueError):
        return False
    said = first.annotation
    return said is Query or (isinstance(said, str) and said.strip("'\"").rpartition(".")[2] == Query.__name__)


# Questions as a person hands them over -> a file that the reader of ``queries.jsonl`` takes.
#
# A file is read where it lies. Anything else becomes lines of ``<output>/asked/queries.jsonl``, so that a run of pytest
# can be asked the same: ``--rag-queries=output/asked/queries.jsonl``.

ASKED = "asked"
"""Folder beside the result files of questions that were not a file."""
_ACCEPTED_QUESTIONS = "a path, a DataFrame, or a list of questions, (question, expected answer), dicts or Case"
_PAIR = ("query", "ground_truth")


def questions_file(queries: object, output: Path) -> Path:
    """Return the file of questions; write it if the questions are not a file yet.

    Args:
        queries: the path of a JSONL file or a table; a DataFrame, whose columns are known as those of tables; or a
            list: texts, pairs of question and expected answer, dicts with the fields of a question, ``Case``.
        output: folder of the result files.

    Raises:
        DataError: the questions are empty, or one has a form that is none of these; says which.
        CriticalError: the file cannot be written.
    """
    if isinstance(queries, (str, PathLike)):
        return Path(fspath(queries)).absolute()
    lines = [_line(number, each) for number, each in enumerate(_items(queries), 1)]
    if not lines:
        raise DataError(f"evaluate: there is no question. Expected {_ACCEPTED_QUESTIONS}.")
    file = output / ASKED / "queries.jsonl"
    text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.is_file() or file.read_bytes() != text.encode():
            write_atomically(file, text.encode())
    except (OSError, UnicodeEncodeError) as error:
        raise CriticalError(
            f"The questions cannot be written to {file}: {error}. Choose another folder: output="
        ) from None
    return file.absolute()


def _items(queries: object) -> Iterable[object]:
    """Return the questions of a list, or the rows of a frame as lines.

    Raises:
        DataError: it is neither.
    """
    rows = _rows(queries)
    if rows is not None:
        return rows
    if isinstance(queries, (Mapping, bytes)) or not isinstance(queries, Iterable):
        raise DataError(f"evaluate: queries is {type(queries).__name__}: expected {_ACCEPTED_QUESTIONS}.")
    return queries


def _rows(queries: object) -> list[object] | None:
    """Return the rows of a frame of pandas or polars as lines; None for other objects."""
    of_polars, of_pandas = getattr(queries, "to_dicts", None), getattr(queries, "to_dict", None)
    if not (hasattr(queries, "columns") and (callable(of_polars) or callable(of_pandas))):
        return None
    records: list[dict[Any, Any]] = of_polars() if callable(of_polars) else of_pandas("records")  # type: ignore[misc]
    columns = columns_of("the frame", [str(name) for name in queries.columns], {})
    found: list[object] = []
    for number, record in enumerate(records, 1):
        line, problems = line_of_cells({str(name): _cell(value) for name, value in record.items()}, columns)
        _refuse(f"row {number} of the frame", problems)
        found.append(line)
    return found


def _cell(value: Any) -> Any:
    """Return a cell in types of JSON. A missing value of pandas is not a number, not a text, and unequal to itself."""
    if hasattr(value, "tolist"):  # of NumPy: a scalar or an array
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_cell(each) for each in value]
    if isinstance(value, dict):
        return {str(name): _cell(each) for name, each in value.items()}
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return None if isnan(value) else value
    return None if type(value).__name__ in ("NAType", "NaTType") else str(value)


def _line(number: int, question: object) -> dict[str, Any]:
    """Return a question as a line of ``queries.jsonl``.

    Raises:
        DataError: it has another form.
    """
    if isinstance(question, Case):
        return _line_of_case(number, question)
    if isinstance(question, str):
        question = {"query": question}
    elif (
        isinstance(question, tuple) and len(question) == len(_PAIR) and all(isinstance(each, str) for each in question)
    ):
        question = dict(zip(_PAIR, question, strict=True))
    if not isinstance(question, Mapping):
        raise DataError(f"evaluate: question {number} is {question!r:.80}: expected a text, a pair, a dict or a Case.")
    values = {str(name): _cell(value) for name, value in question.items()}
    # A name that means none of our fields stays: the reader of the line names it, and the nearest field.
    columns = {field_meant(name) or name: name for name in values}
    if len(columns) < len(values):
        raise DataError(f"evaluate: question {number}: two of {', '.join(values)} mean the same field. Leave one out.")
    line, problems = line_of_cells(values, columns)
    _refuse(f"question {number}", problems)
    return line


def _line_of_case(number: int, case: Case) -> dict[str, Any]:
    if case.scenario is not None:
        raise DataError(f"evaluate: question {number} is a turn that a simulated user says, which pytest plays.")
    if case.query.place:
        raise DataError(
            f"evaluate: question {number} is a turn of a conversation, whose history is made of the turns before it. "
            f"Name the file of the conversation."
        )
    return {
        "query_id": case.query.query_id,
        "query": case.query.text,
        "inputs": dict(case.query.inputs),
        "query_type": case.query_type,
        "answerable": case.answerable,
        "ground_truth": case.ground_truth,
        "qrels": dict(case.qrels),
        "evidence": [{"filename": each.filename, "quote": each.quote} for each in case.evidence],
        "metadata": dict(case.metadata),
        **({"expect": [as_json(each) for each in case.expect]} if case.expect else {}),
        **({} if case.tools is None else {"tools": tools_as_json(case.tools)}),
    }


def _refuse(where: str, problems: list[str]) -> None:
    if problems:
        raise DataError("\n".join(f"evaluate: {where}: {each}" for each in problems))


# Settings of an evaluation: options by keyword, environment, ``.env`` and the ini file, in this order.

_SHORT = {"kb": "kb_dir"}
_ARGUMENTS = {"queries": "the second argument", "measures": "measures=", "run": "the first argument"}
_OF_PYTEST = (
    *("affected_by", "attribute", "compare", "engine", "export", "failed_turn", "family", "gate", "gates_elsewhere"),
    *("golden", "undecided", "judge_repeats", "max_age", "metamorphic", "metamorphic_cases", "misses", "not_judged"),
    *("order_seed", "otlp", "ray_address", "ray_gpus", "ray_workers", "repeats", "report", "retriever", "save"),
    *("sections", "slices", "stop_early", "strict", "tune", "user_base_url", "user_model"),
)
"""Options that only a run of pytest looks at. Nothing here could keep what they promise."""


def notebook_settings(given: Mapping[str, Any], measures: Sequence[str]) -> Settings:
    """Return the settings of an evaluation. Relative paths begin in the working directory.

    Args:
        given: options by their names, ``kb`` for ``kb_dir``. They count more than the environment.
        measures: names of measures.

    Raises:
        SettingsError: an option is unknown, or needs pytest; a value cannot be used; a name is not a measure.
    """
    said = {_SHORT.get(name, name): value for name, value in given.items() if value is not None}
    _check_names(said)
    loaded = load_settings({name: _plain(value) for name, value in said.items()}, ini_values(Path.cwd()))
    settings = of_dry_run(loaded)
    usual = {name: getattr(Settings(), name) for name in _OF_PYTEST}
    named = tuple(names_in(measures or settings.measures))
    _check_measures(named)
    return replace(settings, **usual, measures=named)


def _check_names(names: Iterable[str]) -> None:
    known = [each.name for each in options()]
    for name in names:
        refuse_removed(f"evaluate: {name}", name)
        if name in _ARGUMENTS:
            raise SettingsError(f"evaluate: {name} is not an option here: it is {_ARGUMENTS[name]}.")
        if name in _OF_PYTEST:
            flag = name.replace("_", "-")
            raise SettingsError(f"evaluate: {name} is an option of a run of pytest: pytest --rag-{flag}=…")
        if name not in known:
            usable = [each for each in (*known, *_SHORT) if each not in (*_OF_PYTEST, *_ARGUMENTS)]
            raise SettingsError(f"evaluate: {unknown('option', name, usable)}")


def _plain(value: Any) -> Any:
    """Return a value as the command line gives it: paths as text, and of an option with several values a list."""
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return fspath(value) if hasattr(value, "__fspath__") else value


def _check_measures(names: Sequence[str]) -> None:
    """Refuse measures that do not exist, and those that only a run of pytest works out.

    Raises:
        SettingsError: names the measure; suggests the nearest one.
    """
    for name in names:
        measure_named(name)
        if metamorphic_of([name]) or any(isinstance(each, LateMeasure) for each in parts_of([name])):
            raise SettingsError(
                f"evaluate: {name} is worked out after the last test of a run of pytest: pytest --rag-measures={name}"
            )


_SNAPSHOT = "snapshot"


def check_named(named: str, settings: Settings, has_own_name: bool) -> None:
    """Refuse experiments of which only a run of pytest can ask, and a name or version beside one.

    Raises:
        SettingsError: it is one of these.
    """
    if has_own_name:
        raise SettingsError(
            f"evaluate: {named} is an experiment with a name and a version: leave name= and version= out."
        )
    if named == GOLDEN or is_played_name(named) or (is_own_name(named) and named not in known_experiments(settings)):
        raise SettingsError(f"evaluate: {named} is asked by a run of pytest: pytest --rag-run={named}")


def check_questions(named: str, settings: Settings) -> None:
    """Refuse questions beside an experiment that has data of its own.

    Raises:
        SettingsError: it has.
    """
    if named and (data := data_of(named, settings)):
        raise SettingsError(
            f"evaluate: {named} is asked about the data {data!r} of pyproject.toml. Leave the questions out, or those "
            f"data."
        )


def check_cases(cases: Sequence[Case], data: Data, asked: Experiment, settings: Settings) -> None:
    """Refuse questions of which only a run of pytest can ask.

    Raises:
        DataError: there is none, or only scenarios.
        SettingsError: turns are to follow the pipeline's own answers, or answers are compared with kept ones.
    """
    if not cases:
        why = "only scenarios, which pytest plays" if data.scenarios else "no question"
        raise DataError(f"evaluate: there is {why} in {data.queries_file}.")
    spec = endpoints_of(settings).get(asked.id)
    keeps_conversations = spec is not None and bool(spec.session)
    if any(case.query.place for case in cases) and (keeps_conversations or settings.history != "gold"):
        raise SettingsError(
            f"evaluate: turns of {data.queries_file.name} are to follow the answers of {asked.id} itself, which are "
            f"asked one after the other by a run of pytest: pytest --rag-run={asked.id}"
        )
    if snapshot := next((each for each in cases if any(one.kind == _SNAPSHOT for one in each.expect)), None):
        raise SettingsError(
            f"evaluate: {snapshot.query.query_id} expects its snapshot, which a run of pytest keeps and compares."
        )


def check_service(asked: Experiment, parts: RunParts, cases: Sequence[Case]) -> None:
    """Refuse a service that cannot be asked; other experiments pass.

    Raises:
        PrerequisiteError: nothing listens at its address; or nothing is recorded, and the mode may not ask.
    """
    spec = endpoints_of(parts.settings).get(asked.id)
    if spec is not None:
        from rag_harness.pipelines.endpoint.pipeline import EndpointPipeline, check_ready

        queries = [case.query for case in cases]
        check_ready(spec, cast("EndpointPipeline", asked.pipeline), queries, access_of(parts.settings))


def evaluate(
    pipeline: object,
    queries: object = None,
    *,
    measures: str | Sequence[str] = (),
    name: str = "",
    version: str = "",
    **options: Any,
) -> Evaluation:
    """Ask a pipeline questions, judge the answers, and return the result. Rows are stored as by a run of pytest.

    It may be called where an event loop runs, as in Jupyter: the pipeline runs in a separate thread, on a separate
    loop. Use ``aevaluate`` for a pipeline that needs the notebook's loop, such as one with a client that was opened
    there.

    Args:
        pipeline: a function of a question, sync or async, that returns the answer or a ``PipelineOutput``; an object
            with ``answer(query)``; an ``Experiment``; or the name of an experiment or endpoint. A function gets the
            text of a question, or the ``Query`` where its parameter is annotated so. No pipeline sees the gold.
        queries: the path of a file of questions or of a table; a DataFrame; a list of texts, of pairs of question and
            expected answer, of dicts with the fields of a question, or of ``Case``. None: as the settings say.
        measures: names, as gates name them. Those that are judged need a judge: ``judge="embedded"``.
        name: name of the experiment, its rows and gates; by default the name of the function or class.
        version: version of a pipeline of your own. Rows of the same version are reused.
        options: options of the harness by their names: ``kb="docs"``, ``limit=20``, ``output="output"``.

    Raises:
        PrerequisiteError: an argument cannot be used; nothing was asked.
        CriticalError: no later question could be answered, as with a refused key. Finished rows are stored.
    """
    return _Evaluating(pipeline, queries, measures, name, version, options).run()


async def aevaluate(
    pipeline: object,
    queries: object = None,
    *,
    measures: str | Sequence[str] = (),
    name: str = "",
    version: str = "",
    **options: Any,
) -> Evaluation:
    """Do what ``evaluate`` does while the caller's event loop goes on. A pipeline that is ``async`` is asked on it.

    If it is cancelled, no more questions are asked; rows that came are kept, and ``resume=True`` goes on with them.

    Raises:
        PrerequisiteError, CriticalError: as ``evaluate`` does.
    """
    loop = asyncio.get_running_loop()
    evaluating = _Evaluating(pipeline, queries, measures, name, version, options, loop)
    work = asyncio.ensure_future(asyncio.to_thread(evaluating.run))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        # In a thread: calls under way may need this loop to come to their end.
        await asyncio.to_thread(evaluating.stop)
        await asyncio.gather(work, return_exceptions=True)
        raise


class _Evaluating:
    """One evaluation, from its arguments to its result."""

    def __init__(
        self,
        pipeline: object,
        queries: object,
        measures: str | Sequence[str],
        name: str,
        version: str,
        options: dict[str, Any],
        loop: Loop | None = None,
    ) -> None:
        self._pipeline, self._queries, self._name, self._version = pipeline, queries, name, version
        self._measures = [measures] if isinstance(measures, str) else list(measures)
        self._options, self._loop = options, loop
        self._run: NotebookRun | None = None
        self._is_stopped = False

    def stop(self) -> None:
        """Ask nothing more."""
        self._is_stopped = True
        if self._run is not None:
            self._run.stop()

    def run(self) -> Evaluation:
        """Check, ask, judge, write."""
        try:
            return self._evaluated()
        except RagHarnessError as error:
            # A notebook, or a terminal, shows a traceback as it is: with what a file of questions says in it.
            error.args = tuple(terminal_block(each) if isinstance(each, str) else each for each in error.args)
            raise

    def _evaluated(self) -> Evaluation:
        settings = notebook_settings(self._options, self._measures)
        named = self._pipeline if isinstance(self._pipeline, str) else ""
        own = None if named else own_pipeline(self._pipeline, self._name, self._version, self._loop)
        if named:
            check_named(named, settings, has_own_name=bool(self._name or self._version))
        elif own is not None and is_known(own.id, settings):
            raise SettingsError(
                f"evaluate: {own.id!r} is the name of an experiment that there is. Choose another: name="
            )
        output = settings.path(settings.output)
        if self._queries is not None:
            check_questions(named, settings)
            settings = replace(settings, queries=str(questions_file(self._queries, output)), dataset="")
        # A notebook has no use for a log that nobody asked for.
        is_logged = "logs" in self._options or settings.logs != Settings().logs
        suite = named or (own.id if own is not None else "")
        with written_to(settings, output, log_name([suite]) if is_logged else ""):
            return self._asked(settings, named, own)

    def _asked(self, settings: Settings, named: str, own: Experiment | None) -> Evaluation:
        parts = RunParts(settings)
        asked = own if own is not None else _built(named, parts)
        is_recorded = access_of(settings).covers_own_calls and is_own_code(asked.code)
        if is_recorded:
            asked = replace(asked, pipeline=RecordedPipeline(asked.pipeline, ReplayedParts()))
        data = parts.data(data_of(named, settings) if named else asked.data)
        if is_own_code(asked.code):
            asked = replace(asked, find_page=data.find_page)
        cases = _owing(asked, data, settings)
        check_cases(cases, data, asked, settings)
        chosen = cases[: settings.limit or None]
        wanted = WantedMeasures(lambda: settings, lambda _: chosen)
        wanted.check_judge([asked.id])
        check_service(asked, parts, chosen)
        identities = Identities(Lazy(lambda: settings), Lazy(lambda: parts), Lazy(_no_golden), lambda _: False)
        adopt_journals(settings.path(settings.output))
        interrupted = InterruptedRuns(settings.path(settings.output))
        (interrupted.resume if settings.resume else interrupted.begin)([asked.id])
        pages = Lazy(lambda: {each.doc_id: each.text for each in data.documents})

        def pages_of(_: str, case: Case) -> list[str]:
            return [pages.get()[name] for name in case.context_reference if name in pages.get()]

        run = NotebookRun(parts, asked, chosen, wanted.judged_measures(asked.id), identities, pages_of)
        self._run = run
        if self._is_stopped:
            raise CriticalError("evaluate was cancelled before anything was asked.")
        record = NotebookRecord(settings, asked.id, data, cases, wanted, cuts_pages(asked, settings))
        with ExitStack() as closing:
            closing.callback(parts.flush)
            # After an interrupt or a refused key, too: what came is a run that a report can read.
            closing.callback(lambda: record.leave([case.query.query_id for case in chosen], run.arrived))
            if is_recorded:
                closing.enter_context(own_calls_covered(settings, None))
            run.run()
        return evaluation_of(settings, asked.id, run.arrived, is_reusable=not identities.reuses_nothing(asked))


def _built(named: str, parts: RunParts) -> Experiment:
    if named not in endpoints_of(parts.settings) and is_known(named, parts.settings):
        check_api_keys(parts.settings)
        check_client(parts.settings)
    return experiment(named, parts)


def _owing(asked: Experiment, data: Data, settings: Settings) -> list[Case]:
    """Return the cases with what every answer of the experiment owes."""
    spec = endpoints_of(settings).get(asked.id)
    where = f"{spec.where}: expect" if spec else f"{asked.id}: expect, in its Experiment(…)"
    owed = (
        stated_in(spec.expect, where)
        if spec
        else checked_expectations(plain_expectations(asked.expect, where), where)
        if asked.expect
        else ()
    )
    return AddedExpectations(owed, places=(where,)).added_to(data.cases, data.queries_file) if owed else data.cases


def _no_golden() -> Any:
    raise SettingsError("evaluate asks no golden set: pytest does.")
