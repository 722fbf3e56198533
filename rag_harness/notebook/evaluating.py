"""``evaluate`` and ``aevaluate``: a pipeline, questions and measures -> what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from rag_harness.dataset.data import Data
from rag_harness.dataset.owed import Owed, checked, plain, stated_in
from rag_harness.engine.identities import Identities
from rag_harness.errors import CriticalError, DataError, SettingsError
from rag_harness.files.alone import RUN_LOCK, HeldError, alone
from rag_harness.files.log import close_log, open_log
from rag_harness.models.api_keys import check_api_keys
from rag_harness.models.recording.network_guard import LOOPBACK, allow_connections, refuse_connections
from rag_harness.notebook.evaluation import Evaluation, evaluation_of
from rag_harness.notebook.given_pipeline import Loop, own_pipeline
from rag_harness.notebook.given_questions import questions_file
from rag_harness.notebook.given_settings import notebook_settings
from rag_harness.notebook.notebook_record import NotebookRecord
from rag_harness.notebook.notebook_run import NotebookRun
from rag_harness.pipelines import data_of, endpoints_of, experiment, is_known, known_experiments
from rag_harness.pipelines.history_names import is_own_name, is_played_name
from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Experiment
from rag_harness.registry.identity import remember_in
from rag_harness.report.wanted import WantedMeasures
from rag_harness.retrieval.indexes.server.connection import check_client
from rag_harness.settings import Settings, access_of
from rag_harness.types import GOLDEN, Case
from rag_harness.work.once import Once

_SNAPSHOT = "snapshot"


def evaluate(
    pipeline: object,
    queries: object = None,
    *,
    measures: str | Sequence[str] = (),
    name: str = "",
    version: str = "",
    **options: Any,
) -> Evaluation:
    """Ask a pipeline questions, judge the answers, and return what came of it. Rows are kept as by a run of pytest.

    It may be called where an event loop runs, as in Jupyter: what is asked runs in a thread of its own, on a loop of
    its own. What needs the notebook's loop, such as a client that was opened there, is for ``aevaluate``.

    Args:
        pipeline: a function of a question, sync or async, that returns the answer or a ``PipelineOutput``; an object
            with ``answer(query)``; an ``Experiment``; or the name of an experiment or endpoint. A function gets the
            text of a question, or the ``Query`` where its parameter is annotated so. None sees the gold.
        queries: the path of a file of questions or of a table; a DataFrame; a list of texts, of pairs of question and
            expected answer, of dicts with the fields of a question, or of ``Case``. None: as the settings say.
        measures: names, as gates name them. Those that are judged need a judge: ``judge="embedded"``.
        name: of the experiment, its rows and gates; by default that of the function or class.
        version: names the version of a pipeline that was typed into the notebook, so that its rows are taken over.
        options: options of the harness by their names: ``kb="docs"``, ``limit=20``, ``output="output"``.

    Raises:
        PrerequisiteError: something that was handed over cannot be used; nothing was asked.
        CriticalError: no later question could be answered, as with a refused key. Rows that came are kept.
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

    If it is cancelled, no more questions are asked; rows that came are kept, and the next evaluation takes them over.

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
    """One evaluation, from what was handed over to what came of it."""

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
        settings = notebook_settings(self._options, self._measures)
        named = self._pipeline if isinstance(self._pipeline, str) else ""
        own = None if named else own_pipeline(self._pipeline, self._name, self._version, self._loop)
        if named:
            self._check_named(named, settings)
        elif own is not None and is_known(own.id, settings):
            raise SettingsError(
                f"evaluate: {own.id!r} is the name of an experiment that there is. Choose another: name="
            )
        output = settings.path(settings.output)
        if self._queries is not None:
            settings = _asked_of(settings, questions_file(self._queries, output), named)
        with _opened(settings, output):
            return self._asked(settings, named, own)

    def _check_named(self, named: str, settings: Settings) -> None:
        if self._name or self._version:
            raise SettingsError(
                f"evaluate: {named} is an experiment with a name and a version: leave name= and version= out."
            )
        if (
            named == GOLDEN
            or is_played_name(named)
            or (is_own_name(named) and named not in known_experiments(settings))
        ):
            raise SettingsError(f"evaluate: {named} is asked by a run of pytest: pytest --rag-run={named}")

    def _asked(self, settings: Settings, named: str, own: Experiment | None) -> Evaluation:
        parts = RunParts(settings)
        asked = own if own is not None else _built(named, parts)
        data = parts.data(data_of(named, settings) if named else asked.data)
        cases = _owing(asked, data, settings)
        _check_cases(cases, data, asked, settings)
        chosen = cases[: settings.limit or None]
        wanted = WantedMeasures(lambda: settings, lambda _: chosen)
        wanted.check_judge([asked.id])
        _check_service(asked, parts, chosen)
        identities = Identities(Once(lambda: settings), Once(lambda: parts), Once(_no_golden), lambda _: False)
        pages = Once(lambda: {each.doc_id: each.text for each in data.documents})

        def pages_of(_: str, case: Case) -> list[str]:
            return [pages.get()[name] for name in case.context_reference if name in pages.get()]

        run = NotebookRun(parts, asked, chosen, wanted.judged_measures(asked.id), identities, pages_of)
        self._run = run
        if self._is_stopped:
            raise CriticalError("evaluate was cancelled before anything was asked.")
        record = NotebookRecord(settings, asked.id, data, cases, wanted)
        with ExitStack() as closing:
            closing.callback(parts.flush)
            # After an interrupt or a refused key, too: what came is a run that a report can read.
            closing.callback(lambda: record.leave([case.query.query_id for case in chosen], run.arrived))
            run.run()
        return evaluation_of(settings, asked.id, run.arrived, takes_over=not identities.takes_over_nothing(asked))


def _asked_of(settings: Settings, file: Path, named: str) -> Settings:
    """Return the settings with other questions.

    Raises:
        SettingsError: the experiment has data of its own.
    """
    if named and (data := data_of(named, settings)):
        raise SettingsError(
            f"evaluate: {named} is asked about the data {data!r} of pyproject.toml. Leave the questions out, or those "
            f"data."
        )
    return replace(settings, queries=str(file), dataset="")


@contextmanager
def _opened(settings: Settings, output: Path) -> Iterator[None]:
    """Hold the output folder, write the log, and close the network where the mode calls nobody.

    Raises:
        CriticalError: the folder cannot be written, or another run writes there.
    """
    with ExitStack() as closing:
        try:
            output.mkdir(parents=True, exist_ok=True)
            closing.enter_context(alone(output / RUN_LOCK))
        except HeldError as error:
            raise CriticalError(
                f"Another run is writing to {output}: {error.by}. Wait until it has ended, or choose a folder: output="
            ) from None
        except OSError as error:
            raise CriticalError(f"Results cannot be written to {output}: {error}. Choose another: output=") from None
        open_log(settings.path(settings.logs))
        closing.callback(close_log)
        remember_in(settings.path(settings.cache_dir))
        if access_of(settings).calls_nobody:
            host = urlsplit(settings.qdrant_url).hostname
            refuse_connections(LOOPBACK if host in LOOPBACK else ())
            closing.callback(allow_connections)
        yield


def _built(named: str, parts: RunParts) -> Experiment:
    if named not in endpoints_of(parts.settings) and is_known(named, parts.settings):
        check_api_keys(parts.settings)
        check_client(parts.settings)
    return experiment(named, parts)


def _owing(asked: Experiment, data: Data, settings: Settings) -> list[Case]:
    """Return the cases with what every answer of the experiment owes."""
    spec = endpoints_of(settings).get(asked.id)
    where = f"{spec.where}: expect" if spec else f"{asked.id}: expect, in its Experiment(…)"
    owed = stated_in(spec.expect, where) if spec else checked(plain(asked.expect, where), where) if asked.expect else ()
    return Owed(owed, places=(where,)).added_to(data.cases, data.queries_file) if owed else data.cases


def _check_cases(cases: Sequence[Case], data: Data, asked: Experiment, settings: Settings) -> None:
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


def _check_service(asked: Experiment, parts: RunParts, cases: Sequence[Case]) -> None:
    spec = endpoints_of(parts.settings).get(asked.id)
    if spec is not None:
        from rag_harness.pipelines.endpoint.pipeline import EndpointPipeline
        from rag_harness.pipelines.endpoint.ready import check_ready

        queries = [case.query for case in cases]
        check_ready(spec, cast("EndpointPipeline", asked.pipeline), queries, access_of(parts.settings))


def _no_golden() -> Any:
    raise SettingsError("evaluate asks no golden set: pytest does.")
