"""``evaluate`` and ``aevaluate``: a pipeline, questions and measures -> what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from rag_harness.dataset.data import Data
from rag_harness.dataset.owed import Owed, checked, plain, stated_in
from rag_harness.engine.foreign_text import cuts_pages
from rag_harness.engine.identities import Identities
from rag_harness.engine.interrupted_runs import InterruptedRuns
from rag_harness.engine.stored import adopt_journals
from rag_harness.errors import CriticalError, RagHarnessError, SettingsError
from rag_harness.files.log import log_name
from rag_harness.models.api_keys import check_api_keys
from rag_harness.models.recording.own_calls import own_calls_covered
from rag_harness.notebook.evaluation import Evaluation, evaluation_of
from rag_harness.notebook.given_pipeline import Loop, own_pipeline
from rag_harness.notebook.given_questions import questions_file
from rag_harness.notebook.given_settings import notebook_settings
from rag_harness.notebook.notebook_record import NotebookRecord
from rag_harness.notebook.notebook_run import NotebookRun
from rag_harness.notebook.output_folder import written_to
from rag_harness.notebook.refused import check_cases, check_named, check_questions, check_service
from rag_harness.pipelines import data_of, endpoints_of, experiment, is_known
from rag_harness.pipelines.parts import RunParts
from rag_harness.pipelines.recorded_pipeline import RecordedPipeline, ReplayedParts
from rag_harness.protocols import Experiment
from rag_harness.registry.own_parts import is_own_code
from rag_harness.report.wanted import WantedMeasures
from rag_harness.retrieval.indexes.server.connection import check_client
from rag_harness.settings import Settings, access_of
from rag_harness.shown.terminal import block
from rag_harness.types import Case
from rag_harness.work.once import Once


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
        version: names the version of a pipeline of your own, so that rows of the same version are reused.
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
        try:
            return self._evaluated()
        except RagHarnessError as error:
            # A notebook, or a terminal, shows a traceback as it is: with what a file of questions says in it.
            error.args = tuple(block(each) if isinstance(each, str) else each for each in error.args)
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
        identities = Identities(Once(lambda: settings), Once(lambda: parts), Once(_no_golden), lambda _: False)
        adopt_journals(settings.path(settings.output))
        interrupted = InterruptedRuns(settings.path(settings.output))
        (interrupted.resume if settings.resume else interrupted.begin)([asked.id])
        pages = Once(lambda: {each.doc_id: each.text for each in data.documents})

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
    owed = stated_in(spec.expect, where) if spec else checked(plain(asked.expect, where), where) if asked.expect else ()
    return Owed(owed, places=(where,)).added_to(data.cases, data.queries_file) if owed else data.cases


def _no_golden() -> Any:
    raise SettingsError("evaluate asks no golden set: pytest does.")
