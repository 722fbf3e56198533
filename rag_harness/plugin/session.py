"""The state of one run in one process: settings, cases, pipelines, the engine. All lazy: unused, it costs nothing."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from rag_harness.errors import RecordingMissError
from rag_harness.log import close_log, log, open_log
from rag_harness.plugin.batches import plan
from rag_harness.plugin.options import read_settings
from rag_harness.recording.network_guard import allow_connections, refuse_connections

if TYPE_CHECKING:
    from rag_harness.engine.loop import BackgroundLoop
    from rag_harness.pipelines.parts import RunParts
    from rag_harness.plugin.golden import GoldenSuite
    from rag_harness.results import ExperimentResult
    from rag_harness.settings import Settings
    from rag_harness.trial import Outcome, Trial
    from rag_harness.types import Case


@dataclass(frozen=True)
class Shipped:
    """A result on its way from a test to the recorder."""

    row: ExperimentResult
    resumed: bool = False


class RagSession:
    """What the hooks and fixtures share."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.next_item: pytest.Item | None = None
        self.own_experiments: set[str] = set()
        self._pipelines: dict[str, Any] = {}
        self._fingerprints: dict[str, tuple[Any, str]] = {}
        self._stored_rows: dict[str, dict[str, ExperimentResult]] = {}
        self._batches: dict[str, str] = {}
        self._batches_ahead: set[str | None] = {None}
        self._walked: frozenset[tuple[str, Any]] = frozenset()
        self._prepared = False

    @cached_property
    def settings(self) -> Settings:
        """The effective settings; logged once, keys masked."""
        from rag_harness.settings import masked

        settings = read_settings(self.config)
        open_log(settings.path(settings.logs))
        log.info("Settings: %s", masked(settings))
        if settings.mode == "replay":
            _close_the_network(settings)
        return settings

    @cached_property
    def all_cases(self) -> list[Case]:
        """The queries with their gold, as the file has them."""
        from rag_harness.dataset.queries import distribution, read_queries

        settings = self.settings
        cases = read_queries(settings.queries_path, settings.path(settings.kb_dir))
        log.info("Read %d queries: %s", len(cases), distribution(cases))
        return cases

    @property
    def cases(self) -> list[Case]:
        """The queries that this run looks at."""
        return self.all_cases[: self.settings.limit or None]

    @cached_property
    def golden(self) -> GoldenSuite:
        """The golden suite."""
        from rag_harness.plugin.golden import GoldenSuite

        return GoldenSuite(self)

    @cached_property
    def parts(self) -> RunParts:
        """Index, embedder, models, prompts."""
        from rag_harness.pipelines.parts import RunParts

        return RunParts(self.settings)

    @cached_property
    def engine(self) -> BackgroundLoop[Outcome]:
        """The loop that runs trials ahead of the tests."""
        from rag_harness.engine.loop import BackgroundLoop

        return BackgroundLoop(-(-self.settings.concurrency // self._workers))

    @property
    def _workers(self) -> int:
        return int(getattr(self.config, "workerinput", {}).get("workercount", 1))

    def selected(self, param_ids: Iterable[str]) -> list[str]:
        """Return those ids of parameters that are trials or golden entries, e.g. ``e3-q_direct_001``, ``golden-g001``.

        Experiments that only a marker names are learnt on the way.
        """
        from rag_harness.pipelines import known_experiments

        known = tuple(f"{each}-" for each in [*known_experiments(), "golden"])
        ids = list(param_ids)
        strange = [each for each in ids if "-" in each and not each.startswith(known)]
        if strange and self.settings.queries_path.is_file():
            queries = {case.query.query_id for case in self.all_cases}
            cuts = ((each[:n], each[n + 1 :]) for each in strange for n, sign in enumerate(each) if sign == "-")
            self.own_experiments |= {name for name, query_id in cuts if name and query_id in queries}
        return [each for each in ids if each.startswith((*known, *(f"{name}-" for name in self.own_experiments)))]

    def pipeline(self, experiment: str) -> Any:
        """Return the registered pipeline of ``experiment``, built on first use."""
        if experiment not in self._pipelines:
            from rag_harness.pipelines import builder

            _check_keys(self.settings)
            self._pipelines[experiment] = builder(experiment)(self.parts)
        return self._pipelines[experiment]

    def fingerprint(self, experiment: str, pipeline: Any) -> str:
        """Return the digest of everything that changes a result of ``experiment``."""
        known = self._fingerprints.get(experiment)
        if known is None or known[0] is not pipeline:
            from rag_harness.fingerprint import digest_of_parts, experiment_parts, file_digest
            from rag_harness.pipelines import builder

            queries = file_digest(self.settings.queries_path)
            registered = self._pipelines.get(experiment) is pipeline
            built_by = builder(experiment).__module__ if registered else ""
            digest = digest_of_parts(experiment_parts(pipeline, self.parts, queries, built_by))
            known = self._fingerprints[experiment] = (pipeline, digest)
        return known[1]

    def result(self, item: pytest.Item, trial: Trial, pipeline: Any) -> Shipped:
        """Return the result of ``trial``: stored, or run now together with the trials of the tests that follow.

        Raises:
            PrerequisiteError: the index or a model cannot be had.
            CriticalError: the trial met something that no later trial can get past.
        """
        stored = self._stored(trial, pipeline)
        if stored is not None:
            return Shipped(stored, resumed=True)
        self._submit(trial, pipeline)
        for ahead in self._ahead_of(item, trial.experiment):
            self._submit_ahead(ahead, item, pipeline)
        outcome = self.engine.result(trial.trial_id)
        if outcome.critical:
            item.session.shouldstop = f"rag_harness: {outcome.row.why}"
        return Shipped(outcome.row)

    def _stored(self, trial: Trial, pipeline: Any) -> ExperimentResult | None:
        if self.settings.overwrite:
            return None
        fingerprint = self.fingerprint(trial.experiment, pipeline)
        if fingerprint not in self._stored_rows:
            from rag_harness.result_file import finished_rows

            self._stored_rows[fingerprint] = finished_rows(result_path(self.settings, trial.experiment), fingerprint)
        return self._stored_rows[fingerprint].get(trial.case.query.query_id)

    def _submit(self, trial: Trial, pipeline: Any) -> None:
        from rag_harness.trial import run_trial

        if hasattr(pipeline, "retriever") and not self._prepared:
            self._prepared = True
            # Trials that retrieve say themselves what nobody recorded; those that do not, go on.
            with suppress(RecordingMissError):
                self.parts.prepare([case.query.text for case in self.cases])
        fingerprint, settings = self.fingerprint(trial.experiment, pipeline), self.settings
        self.engine.submit(trial.trial_id, lambda: run_trial(trial, pipeline, settings, fingerprint))

    def _submit_ahead(self, item: pytest.Item, current: pytest.Item, pipeline: Any) -> None:
        trial, own = trial_of(item), self._pipeline_of(item, current, pipeline)
        if trial is not None and own is not None and self._stored(trial, own) is None:
            self._submit(trial, own)

    def _pipeline_of(self, item: pytest.Item, current: pytest.Item, pipeline: Any) -> Any:
        """Return the pipeline that ``item`` will get: None where a fixture of the user's own has yet to make it."""
        trial, fixture = trial_of(item), _own_fixture(item)
        if trial is None:
            return None
        if fixture is None:
            return self.pipeline(trial.experiment)
        shared = fixture.params is None and fixture.scope == "session"
        return pipeline if shared and fixture is _own_fixture(current) else None

    def _ahead_of(self, item: pytest.Item, experiment: str) -> Iterable[pytest.Item]:
        """Yield the tests whose trials this process may run ahead of time, in their order."""
        items = item.session.items
        if not hasattr(self.config, "workerinput"):
            # Once for each pipeline: what a fixture of the user's own makes is known when its first test has come.
            walked, asked = self._walked, (experiment, _own_fixture(item))
            self._walked = walked | {asked}
            return () if asked in walked else items
        batch_of = self._batch_of(items)
        mine = {batch_of.get(item.nodeid)}
        if self.next_item is not None:
            mine.add(batch_of.get(self.next_item.nodeid))
        new = mine - self._batches_ahead
        self._batches_ahead |= new
        return [each for each in items if batch_of.get(each.nodeid) in new] if new else ()

    def _batch_of(self, items: list[pytest.Item]) -> dict[str, str]:
        if not self.config.workerinput.get("rag_batches"):  # type: ignore[attr-defined]
            return {}
        if not self._batches:
            self._batches.update(plan([each.nodeid for each in items], self._workers, self.settings.concurrency))
        return self._batches

    def close(self) -> None:
        """Stop the engine, write what is waiting, and let the network be used again."""
        allow_connections()
        if "engine" in vars(self):
            self.engine.close(*(each for each in [getattr(self._chat(), "aclose", None)] if each))
        if "parts" in vars(self) and "stores" in vars(self.parts):
            self.parts.stores.flush()
        if "settings" in vars(self):
            close_log()

    def _chat(self) -> Any:
        return vars(self.parts).get("chat") if "parts" in vars(self) else None


def _close_the_network(settings: Settings) -> None:
    """Refuse connections in replay, but to a Qdrant server on this machine that the user configured."""
    host = urlsplit(settings.qdrant_url).hostname
    local = host in ("127.0.0.1", "localhost", "::1")
    refuse_connections({"127.0.0.1", "::1", "localhost"} if local else ())


def _check_keys(settings: Settings) -> None:
    from rag_harness.keys import check_keys

    check_keys(settings)


def _own_fixture(item: pytest.Item) -> Any:
    """Return the user's own definition of ``rag_pipeline`` that ``item`` gets, None where it gets the plugin's."""
    fixtures = getattr(item, "_fixtureinfo").name2fixturedefs.get("rag_pipeline", ())  # noqa: B009
    return fixtures[-1] if len(fixtures) > 1 else None


def trial_of(item: pytest.Item) -> Trial | None:
    """Return the trial that a test is about, None for other tests."""
    callspec = getattr(item, "callspec", None)
    trial: Trial | None = callspec.params.get("rag_trial") if callspec else None
    return trial


def result_path(settings: Settings, experiment: str) -> Any:
    """Return the result file of ``experiment``."""
    from rag_harness.pipelines import result_name

    return settings.path(settings.output) / f"{result_name(experiment)}.jsonl"
