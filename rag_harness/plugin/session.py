"""The state of one run in one process: settings, cases, experiments. Each is made when it is first used."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rag_harness.files.log import close_log, log, open_log
from rag_harness.models.recording.network_guard import LOOPBACK, allow_connections, refuse_connections
from rag_harness.plugin.items import written_in
from rag_harness.plugin.options import read_settings
from rag_harness.plugin.trial_ids import Known
from rag_harness.plugin.versions import told, versions_for_workers
from rag_harness.plugin.wanted import Wanted
from rag_harness.types import GOLDEN
from rag_harness.work.once import Once

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from rag_harness.dataset.data import DataSets
    from rag_harness.engine.golden.suite import GoldenSuite
    from rag_harness.engine.rows import Trial
    from rag_harness.models.meter import Meter
    from rag_harness.pipelines.parts import RunParts
    from rag_harness.protocols import Experiment, Pipeline
    from rag_harness.settings import Access, Settings
    from rag_harness.types import Case, Query


class RagSession:
    """The state that hooks and fixtures share. ``closing`` undoes what was opened, the last first."""

    def __init__(self, config: pytest.Config) -> None:
        self.config, self.closing = config, ExitStack()
        self.scrub: Callable[[str], str] | None = None
        # Code that opens a cluster puts the cluster's ledger here.
        self.ledger: Callable[[], Any] = lambda: None
        self.own_experiments: set[str] = set()
        self.markers: list[str] = []
        # Experiments that no test of the folder asks. The plugin brings their tests.
        self.brought: list[str] = []
        # Experiments whose tests were collected and then left out, for example by -m.
        self.deselected: set[str] = set()
        # Errors in the data. The first test that meets one reports it.
        self.refused: set[str] = set()
        self._settings, self._share = Once(self._read_settings), Once(self._share_of_settings)
        self._data, self._query_ids = Once(self._make_data), Once(self._read_query_ids)
        self._parts, self._golden = Once(self._make_parts), Once(self._make_golden)
        self._recorded_last: dict[Path, float] = {}
        self._versions = Once(lambda: versions_for_workers(self.settings))
        self.wanted = Wanted(self._settings.get)
        self._pages: dict[str, dict[str, str]] = {}
        self._registered: dict[str, Experiment] = {}
        self._declared: dict[str, Experiment] = {}
        self._fingerprints: dict[str, tuple[Experiment, str]] = {}

    @property
    def settings(self) -> Settings:
        """The effective settings; logged once, with keys masked."""
        return self._settings.get()

    def _read_settings(self) -> Settings:
        from rag_harness.registry.identity import remember_in
        from rag_harness.settings import access_of, masked

        settings = read_settings(self.config)
        open_log(settings.path(settings.logs))
        self.closing.callback(close_log)
        log.info("Settings: %s", masked(settings))
        remember_in(settings.path(settings.cache_dir))
        for spec in settings.endpoints:
            if not spec.name.isidentifier():
                continue  # -m cannot name it; rag_experiment("my-service") marks it
            self.markers.append(spec.name)
            self.config.addinivalue_line("markers", f"{spec.name}: rag_harness endpoint {spec.url}")
        if access_of(settings).calls_nobody:
            self._close_the_network(settings)
        return settings

    @property
    def output(self) -> Path:
        """The folder of the result files."""
        return self.settings.path(self.settings.output)

    @property
    def access(self) -> Access:
        """What the mode of this run may read, call and keep."""
        from rag_harness.settings import access_of

        return access_of(self.settings)

    def _close_the_network(self, settings: Settings) -> None:
        """Refuse connections in replay, except to a Qdrant server on this machine that the user configured."""
        host = urlsplit(settings.qdrant_url).hostname
        refuse_connections(LOOPBACK if host in LOOPBACK else ())
        self.closing.callback(allow_connections)

    @property
    def data(self) -> DataSets:
        """The run's own data, and the named data of pyproject.toml."""
        return self._data.get()

    def _make_data(self) -> DataSets:
        # Light imports only: the controller of an xdist run needs just the cases before it hands out work.
        from rag_harness.dataset.data import DataSets

        return DataSets(self.settings)

    def data_of(self, experiment: str) -> str:
        """Return the name of the data that an experiment is asked about; empty means the run's own."""
        if not self.settings.data and not self.settings.endpoints:
            return ""
        from rag_harness.pipelines import data_of

        return data_of(experiment, self.settings)

    def all_cases_of(self, experiment: str) -> list[Case]:
        """Return all queries of an experiment with their gold, in the order of the file."""
        return self.data.get(self.data_of(experiment)).cases

    def cases_of(self, experiment: str) -> list[Case]:
        """Return the cases of an experiment that this run looks at."""
        return self.all_cases_of(experiment)[: self.settings.limit or None]

    @property
    def golden(self) -> GoldenSuite:
        """The golden suite."""
        return self._golden.get()

    def _make_golden(self) -> GoldenSuite:
        from rag_harness.engine.golden.suite import GoldenSuite

        return GoldenSuite(self.parts, self.registered, self._fingerprint_of_parts)

    def golden_trial(self, entry_id: str) -> Trial:
        """Return the trial of a golden entry."""
        from rag_harness.engine.rows import Trial

        return Trial(GOLDEN, self.golden.case(entry_id))

    @property
    def parts(self) -> RunParts:
        """Index, embedder, models, prompts."""
        return self._parts.get()

    def _make_parts(self) -> RunParts:
        from rag_harness.pipelines.parts import RunParts

        # Looked up for each text: the costs of a recording run are estimated before the fixture exists.
        scrub = lambda text: self.scrub(text) if self.scrub else text  # noqa: E731
        parts = RunParts(self.share, scrub, self.data, self._leased_meter() if self.settings.engine == "ray" else None)
        # The controller of an xdist run asks services once, for its workers and for itself.
        parts.told_versions = told(self.config) or (self.versions_for_workers if self._is_controller else {})
        self.closing.callback(parts.flush)
        return parts

    @property
    def _is_controller(self) -> bool:
        """Whether this process is the controller of an xdist run."""
        return bool(self.config.getoption("tx", None))

    @property
    def versions_for_workers(self) -> dict[str, dict[str, str]]:
        """The versions that services report, asked once for all workers."""
        return self._versions.get()

    def _leased_meter(self) -> Meter:
        """Return a meter that leases from the ledger of a cluster, under this process's name."""
        from rag_harness.engine.distributed import LeasedMeter

        return LeasedMeter(self.share, self.ledger, "tests")

    @property
    def workers(self) -> int:
        """The number of processes that share this run."""
        return int(getattr(self.config, "workerinput", {}).get("workercount", 1))

    @property
    def share(self) -> Settings:
        """The settings with this process's share of the limits of the whole run."""
        return self._share.get()

    def _share_of_settings(self) -> Settings:
        from rag_harness.engine.shares import share_of

        return share_of(self.settings, min(self.workers, self.settings.concurrency))

    @property
    def known(self) -> Known:
        """The experiments and ids that the id of a test can name."""
        from rag_harness.pipelines import known_experiments

        return Known(known_experiments(self.settings), self._query_ids.get, lambda: self.golden.known_ids)

    def _read_query_ids(self) -> set[str]:
        from rag_harness.errors import PrerequisiteError

        found: set[str] = set()
        for name in self.data.names:
            with suppress(PrerequisiteError):  # no test was made of them; collection reports it
                found |= {case.query.query_id for case in self.data.get(name).cases}
        return found

    def registered(self, name: str) -> Experiment:
        """Return the registered experiment ``name``, built on first use.

        Raises:
            PrerequisiteError: there is no such experiment, or a key that it needs is missing.
        """
        if name not in self._registered:
            from rag_harness.models.keys import check_keys
            from rag_harness.pipelines import experiment

            if name not in self.endpoints:
                check_keys(self.settings)
            self._registered[name] = experiment(name, self.parts)
        return self._registered[name]

    def experiment(self, name: str, pipeline: Pipeline | None = None, made_in: str = "") -> Experiment:
        """Return the experiment ``name`` for the ``pipeline`` that a test got; None: for the registered one.

        An object of the user's own declares nothing and is asked nothing. Its identity is the code of its class, and
        the code of the module ``made_in``, whose fixture made it.
        """
        if name == GOLDEN:
            return self.golden.experiment
        built = self._registered.get(name)
        if pipeline is None or (built is not None and built.pipeline is pipeline):
            return self.registered(name)
        known = self._declared.get(name)
        if known is None or known.pipeline is not pipeline:
            known = self._declared[name] = self._declare(name, pipeline, made_in)
        return known

    def _declare(self, name: str, pipeline: Pipeline, made_in: str) -> Experiment:
        from rag_harness.protocols import Experiment
        from rag_harness.registry.identity import code_digest

        answers = getattr(type(pipeline), "answer", None)
        named = (written_in(answers), type(pipeline).__module__, made_in)
        # With several conftest.py, the module name "conftest" may stand for another file.
        modules = tuple(dict.fromkeys(each for each in named if each and each != "conftest"))
        has_source = bool(code_digest(*modules))
        return Experiment(name, pipeline, data=self.data_of(name), code={"pipeline": modules}, has_version=has_source)

    def known_experiment(self, name: str) -> Experiment | None:
        """Return an experiment that this process knows: registered, or with a pipeline that a fixture here made."""
        from rag_harness.pipelines import known_experiments

        # A user's fixture may have taken a registered name. Then the fixture's pipeline has answered.
        if name in self._declared:
            return self._declared[name]
        return self.registered(name) if name in known_experiments(self.settings) else None

    @property
    def endpoints(self) -> Collection[str]:
        """The names of the services that are experiments of this run.

        Raises:
            SettingsError: a service has the name of another experiment.
        """
        if not self.settings.endpoints:
            return ()
        from rag_harness.pipelines import endpoints_of

        return endpoints_of(self.settings).keys()

    def queries(self, experiment: Experiment) -> Sequence[Query]:
        """Return the queries that ``experiment`` will be asked in this run."""
        if experiment.id == GOLDEN:
            return self.golden.queries
        return [case.query for case in self.cases_of(experiment.id)]

    def fingerprint(self, experiment: Experiment) -> str:
        """Return the digest of everything that changes a result of ``experiment``."""
        known = self._fingerprints.get(experiment.id)
        if known is None or known[0] is not experiment:
            known = self._fingerprints[experiment.id] = experiment, self._fingerprint(experiment)
        return known[1]

    def _fingerprint(self, experiment: Experiment) -> str:
        from rag_harness.engine.series import fingerprint_in_series

        found = self._fingerprint_of_parts(experiment)
        if not self.takes_over_nothing(experiment):
            return found
        return fingerprint_in_series(self.output, experiment.id, found)

    def _fingerprint_of_parts(self, experiment: Experiment) -> str:
        from rag_harness.engine.fingerprint import fingerprint_of

        return fingerprint_of(experiment, self.settings, self.queries_digest(experiment))

    def takes_over_nothing(self, experiment: Experiment) -> bool:
        """Whether rows of a finished run are not taken over, because it is unknown whether they would come again.

        If a service's answers come from recordings, they would come again, and the run says how old they are. A run
        that asks recorded calls again takes over nothing either: its rows would be the old answers.
        """
        if self.settings.rerecord and self.access.records:
            return True
        is_replayed = self._asked_by(experiment.id) in self.endpoints and self.access.reads_recordings
        return not experiment.has_version and not is_replayed

    def _asked_by(self, suite: str) -> str:
        """Return the experiment that answers a suite. For the golden suite it is the retriever's experiment."""
        return self.settings.retriever if suite == GOLDEN else suite

    def has_recorded_since(self, suite: str, seconds: float) -> bool:
        """Whether an answer that a suite would replay may have been recorded later than ``seconds`` since 1970."""
        return self.access.reads_recordings and seconds < self.recorded_last(suite)

    def recorded_last(self, suite: str) -> float:
        """Return when answers of a suite were last recorded, as known at the first call."""
        from rag_harness.models.recording.cassettes import SERVICES, last_written

        name, folder = self._asked_by(suite), self.settings.path(self.settings.cassettes)
        folder = folder / SERVICES / name if name in self.endpoints else folder / self.settings.profile
        if folder not in self._recorded_last:
            self._recorded_last[folder] = last_written(folder)
        return self._recorded_last[folder]

    def is_registered(self, experiment: Experiment) -> bool:
        """Return whether every process of the run can build an experiment by its name."""
        return self._registered.get(experiment.id) is experiment

    def queries_digest(self, experiment: Experiment) -> str:
        """Return the digest of an experiment's queries and their gold."""
        golden = experiment.id == GOLDEN
        return self.golden.digest if golden else self.parts.data(experiment.data).queries_digest

    def gold_pages(self, experiment: str, case: Case) -> list[str]:
        """Return the texts of the relevant documents of one of an experiment's cases."""
        name = self.data_of(experiment)
        if name not in self._pages:
            documents = self.parts.data(name).documents
            self._pages[name] = {document.doc_id: document.text for document in documents}
        pages = self._pages[name]
        return [pages[doc_id] for doc_id in case.context_reference if doc_id in pages]

    def cassettes_used(self) -> Collection[Path]:
        """Return the recordings that this process has used."""
        return self._parts.made.recordings_used if self._parts.made is not None else ()

    async def close_models(self) -> None:
        """Close the connections to models, on the loop that has asked them."""
        if self._parts.made is not None:
            await self._parts.made.endpoints.aclose()

    def close(self) -> None:
        """Write what is waiting, and allow the network again."""
        self.closing.close()
