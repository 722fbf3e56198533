"""The state of one run in one process: settings, cases, experiments. Each is made when it is first used."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rag_harness.engine.identities import Identities
from rag_harness.files.log import close_log, log, open_log
from rag_harness.models.recording.network_guard import LOOPBACK, allow_connections, refuse_connections
from rag_harness.plugin.experiments import Experiments
from rag_harness.plugin.histories import Histories
from rag_harness.plugin.options import read_settings
from rag_harness.plugin.run_cases import RunCases
from rag_harness.plugin.service_versions import versions_for_workers, versions_told
from rag_harness.plugin.snapshots import Snapshots
from rag_harness.plugin.trial_ids import KnownTrials
from rag_harness.report.wanted import WantedMeasures
from rag_harness.types import GOLDEN
from rag_harness.work.checks_in_time import checks_within
from rag_harness.work.once import Once

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from rag_harness.dataset.owed import Owed
    from rag_harness.engine.golden.suite import GoldenSuite
    from rag_harness.engine.trial_rows import Trial
    from rag_harness.models.meter import Meter
    from rag_harness.pipelines.parts import RunParts
    from rag_harness.settings import Access, Settings
    from rag_harness.types import Case


class RagSession:
    """The state that hooks and fixtures share. ``closing`` undoes what was opened, the last first."""

    def __init__(self, config: pytest.Config) -> None:
        self.config, self.closing = config, ExitStack()
        self.scrub: Callable[[str], str] | None = None
        # Of an xdist run only the workers know it: the fixture is never asked for in the controller.
        self.knows_scrub = False
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
        self._parts, self._golden = Once(self._make_parts), Once(self._make_golden)
        self.snapshots = Snapshots(config, self._settings)
        self.cases = RunCases(self._settings, self.snapshots)
        self.histories = Histories(self._settings, self.cases)
        self.experiments = Experiments(self._settings, self.cases, self._parts, self._golden)
        is_traced = self.experiments.tracing.is_of
        self.identities = Identities(self._settings, self._parts, self._golden, is_traced)
        self._versions = Once(lambda: versions_for_workers(self.settings))
        self.wanted = WantedMeasures(self._settings.get, self.cases.of)
        self._pages: dict[str, dict[str, str]] = {}

    @property
    def settings(self) -> Settings:
        """The effective settings; logged once, with keys masked."""
        return self._settings.get()

    def _read_settings(self) -> Settings:
        from rag_harness.registry.package_digest import remember_in
        from rag_harness.settings import access_of, masked

        settings = read_settings(self.config)
        open_log(settings.path(settings.logs))
        self.closing.callback(close_log)
        self.closing.enter_context(checks_within(settings.deadline))
        if not hasattr(self.config, "workerinput"):
            log.info("Settings: %s", masked(settings))  # once a run: workers have the same
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
    def is_whole(self) -> bool:
        """Whether all tests and all queries were asked for, and no test was left out."""
        from rag_harness.plugin.selection import is_whole

        return not self.deselected and is_whole(self.config, self.settings)

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
    def golden(self) -> GoldenSuite:
        """The golden suite."""
        return self._golden.get()

    def _make_golden(self) -> GoldenSuite:
        from rag_harness.engine.golden.suite import GoldenSuite

        return GoldenSuite(self.parts, self.experiments.registered, self.identities.of_parts)

    def golden_trial(self, entry_id: str) -> Trial:
        """Return the trial of a golden entry."""
        from rag_harness.engine.trial_rows import Trial

        return Trial(GOLDEN, self.golden.case(entry_id))

    @property
    def parts(self) -> RunParts:
        """Index, embedder, models, prompts."""
        return self._parts.get()

    def _make_parts(self) -> RunParts:
        from rag_harness.pipelines.parts import RunParts

        # Looked up for each text: the costs of a recording run are estimated before the fixture exists.
        scrub = lambda text: self.scrub(text) if self.scrub else text  # noqa: E731
        parts = RunParts(
            self.share, scrub, self.cases.data, self._leased_meter() if self.settings.engine == "ray" else None
        )
        # The controller of an xdist run asks services once, for its workers and for itself.
        parts.told_versions = versions_told(self.config) or (self.versions_for_workers if self._is_controller else {})
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
    def known(self) -> KnownTrials:
        """The experiments and ids that the id of a test can name."""
        from rag_harness.pipelines import known_experiments

        return KnownTrials(known_experiments(self.settings), self.cases.query_ids.get, lambda: self.golden.known_ids)

    def owe(self, experiment: str, owed: Owed) -> None:
        """Let the answers of an experiment owe more than its questions and data demand.

        Raises:
            SettingsError: no answer can keep all of it.
        """
        self.cases.owe(experiment, owed)
        self.wanted.forget()

    def gold_pages(self, experiment: str, case: Case) -> list[str]:
        """Return the texts of the relevant documents of one of an experiment's cases."""
        name = self.cases.data_of(experiment)
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
