"""The state of a run in one process: settings, cases, histories of conversations, versions of services."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rag_harness.core.concurrency import Lazy
from rag_harness.core.errors import SettingsError
from rag_harness.core.log import close_log, log, open_log
from rag_harness.core.processes import checks_within
from rag_harness.core.types import GOLDEN
from rag_harness.frontends.pytest_plugin.experiments import Experiments
from rag_harness.frontends.pytest_plugin.items import KnownTrials
from rag_harness.frontends.pytest_plugin.options import read_settings
from rag_harness.frontends.pytest_plugin.snapshots import Snapshots
from rag_harness.frontends.pytest_plugin.workers import VERSIONS, is_controller, is_worker, worker_count
from rag_harness.models.recording.playback import closed_network
from rag_harness.records.manifest import is_own_name, is_played_name, own_name, played_name, without_history
from rag_harness.runs.fingerprint import Identities
from rag_harness.tables.requested_measures import WantedMeasures

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from rag_harness.core.settings import Access, Settings
    from rag_harness.core.settings.endpoints import SessionReading
    from rag_harness.core.types import Case
    from rag_harness.data.datasets import DataSets
    from rag_harness.models.throttling import Meter
    from rag_harness.pipelines.parts import RunParts
    from rag_harness.records.expectations import AddedExpectations
    from rag_harness.records.row import ExperimentResult
    from rag_harness.runs.golden_suite import GoldenSuite
    from rag_harness.runs.trial import Trial


class RunCases:
    """Reads cases when somebody asks for them.

    Args:
        settings: of the run.
        snapshots: know which answers are kept.

    Attributes:
        query_ids: ids of all cases of all data that can be read.
        owed: what the answers of single experiments owe beside what their questions and data demand.
    """

    def __init__(self, settings: Lazy[Settings], snapshots: Snapshots) -> None:
        self._snapshots = snapshots
        self._settings, self._data = settings, Lazy(self._make_data)
        self.query_ids = Lazy(self._read_query_ids)
        self.owed: dict[str, AddedExpectations] = {}
        self._whole: dict[str, Sequence[Case]] = {}
        self._names: dict[str, str] = {}

    @property
    def data(self) -> DataSets:
        """The run's own data, and the named data of pyproject.toml."""
        return self._data.get()

    def _make_data(self) -> DataSets:
        # Light imports only: the controller of an xdist run needs just the cases before it hands out work.
        from rag_harness.data.datasets import DataSets

        return DataSets(self._settings.get())

    def data_of(self, experiment: str) -> str:
        """Return the name of the data that an experiment is asked about; empty means the run's own."""
        settings = self._settings.get()
        if not settings.data and not settings.endpoints:
            return ""
        if experiment not in self._names:
            from rag_harness.pipelines.experiments import data_of

            self._names[experiment] = data_of(experiment, settings)
        return self._names[experiment]

    def all_of(self, experiment: str) -> Sequence[Case]:
        """Return all queries of an experiment with their gold, in the order of the file."""
        if experiment not in self._whole:
            self._whole[experiment] = self._with_all(experiment)
        return self._whole[experiment]

    def is_played(self, experiment: str) -> bool:
        """Return whether a simulated user asks an experiment: its name says so, and its data have scenarios."""
        from rag_harness.records.manifest import is_played_name

        return is_played_name(experiment) and self.has_scenarios(experiment)

    def has_scenarios(self, experiment: str) -> bool:
        """Return whether the data of an experiment have scenarios. Data that cannot be read have none."""
        from rag_harness.core.errors import PrerequisiteError

        with suppress(PrerequisiteError):  # no test is made of them; collection reports it
            return bool(self.data.get(self.data_of(experiment)).scenarios)
        return False

    def _with_all(self, experiment: str) -> Sequence[Case]:
        cases, owed = self._of_data(experiment), self.owed.get(experiment)
        file = self.data.get(self.data_of(experiment)).queries_file
        return self._snapshots.filled(experiment, owed.added_to(cases, file) if owed else cases)

    def _of_data(self, experiment: str) -> list[Case]:
        data = self.data.get(self.data_of(experiment))
        return data.scenarios if self.is_played(experiment) else data.cases

    def forget(self, experiment: str) -> None:
        """Drop the cases of an experiment, so that they are built again: its snapshots have other answers now."""
        self._whole.pop(experiment, None)

    def renewed(self, trial: Trial, row: ExperimentResult) -> Trial:
        """Return a trial as it is after the run has kept the answer in ``row`` as its snapshot."""
        return replace(trial, case=self._snapshots.renewed(trial.case, row))

    def owe(self, experiment: str, owed: AddedExpectations) -> None:
        """Add to the cases of an experiment what its answers owe.

        Raises:
            PrerequisiteError: no answer can keep that and what a question demands; names the places of both.
        """
        self.owed[experiment] = owed
        self.forget(experiment)
        self.all_of(experiment)

    def is_like_its_data(self, experiment: str) -> bool:
        """Return whether the cases of an experiment are those of its data, and no more is demanded of its answers."""
        return self.all_of(experiment) is self._of_data(experiment)

    def of(self, experiment: str) -> Sequence[Case]:
        """Return the cases of an experiment that this run looks at."""
        return self.all_of(experiment)[: self._settings.get().limit or None]

    def count(self, marks: Collection[str]) -> int:
        """Return how many trials of shipped experiments ``marks`` select at most; 0 where that is not known."""
        from rag_harness.core.errors import PrerequisiteError
        from rag_harness.pipelines.experiments import built_in

        settings = self._settings.get()
        with suppress(PrerequisiteError):  # collection reports it
            # A test of t1 may name variants of t1, which -m t1 selects with it.
            asked = [name for name in built_in() if name.partition("-")[0] in marks]
            return sum(len(self.of(name)) for name in asked) * max(1, settings.repeats)
        return 0

    def _read_query_ids(self) -> set[str]:
        from rag_harness.core.errors import PrerequisiteError

        found: set[str] = set()
        for name in self.data.names:
            with suppress(PrerequisiteError):  # no test was made of them; collection reports it
                data = self.data.get(name)
                found |= {case.query.query_id for case in (*data.cases, *data.scenarios)}
        return found


class Histories:
    """Gives experiments over turns the names that --rag-history asks for.

    Args:
        settings: of the run.
        cases: of the run.
    """

    def __init__(self, settings: Lazy[Settings], cases: RunCases) -> None:
        self._settings, self._cases = settings, cases
        self._has_turns: dict[str, bool] = {}

    def names(self, experiments: Iterable[str]) -> list[str]:
        """Return the experiments that are asked for these: ``c1``, ``c1-own``, or both, where their cases are turns.

        Where the data have scenarios, ``c1-sim`` is asked, too.

        Raises:
            SettingsError: own answers are to be the history, and of a conversation not all turns are there.
        """
        found = list(dict.fromkeys(name for experiment in experiments for name in self._names(experiment)))
        for name in found:
            if self.is_own(name):
                self._check_whole(name)
        return found

    def _check_whole(self, experiment: str) -> None:
        begun: dict[str, int] = {}
        for case in self._cases.all_of(experiment):
            if place := case.query.place:
                conversation, turn = place["conversation"], int(place["turn"])
                wanted = begun.get(conversation, 0) + 1
                if turn != wanted:
                    is_kept = self.session_of(experiment) is not None
                    way_out = "Ask it with the history that its data have: --rag-history=gold"
                    raise SettingsError(
                        f"{experiment} goes on from its own answers, and {case.query.query_id} comes without turn "
                        f"{wanted} of {conversation!r}. {'Add the turns before it.' if is_kept else way_out}"
                    )
                begun[conversation] = turn

    def _names(self, experiment: str) -> Iterator[str]:
        if is_own_name(experiment) or is_played_name(experiment):
            self._refuse_unplayed(experiment)
            self._refuse_second_name(experiment)
            yield experiment
            return
        has_scenarios = self._cases.has_scenarios(experiment)
        if not has_scenarios or self._cases.all_of(experiment):
            yield from self._recorded(experiment)
        if has_scenarios:
            yield played_name(experiment)

    def _refuse_unplayed(self, experiment: str) -> None:
        from rag_harness.pipelines.experiments import is_known

        plain = without_history(experiment)
        if not is_played_name(experiment) or self._cases.has_scenarios(experiment):
            return
        if is_known(plain, self._settings.get()):
            raise SettingsError(
                f"{experiment} is {plain} asked by a simulated user, and the questions of {plain} have no scenario. "
                f'Add one: {{"conversation": "sim_1", "scenario": {{"opening": "…", "asks": ["…"]}}}}.'
            )

    def _refuse_second_name(self, experiment: str) -> None:
        kept = without_history(experiment)
        if is_own_name(experiment) and self.session_of(kept) is not None:
            raise SettingsError(
                f"{experiment!r} is not an experiment: {kept} keeps conversations itself, so its own answers are "
                f"always their history. Name it {kept}."
            )

    def _recorded(self, experiment: str) -> Iterator[str]:
        """Yield the experiments whose turns are asked with the file's history."""
        history = self._settings.get().history
        if history == "gold" or self.session_of(experiment) is not None or not self.has_turns(experiment):
            yield experiment
            return
        if history == "both":
            yield experiment
        yield own_name(experiment)

    def is_own(self, experiment: str) -> bool:
        """Return whether an experiment's own answers are the history of its turns."""
        asks_in_a_row = is_own_name(experiment) or self.session_of(experiment) is not None
        return self._cases.is_played(experiment) or (asks_in_a_row and self.has_turns(experiment))

    def session_of(self, experiment: str) -> SessionReading | None:
        """Return how the sessions of a service are read that keeps conversations itself; None for any other."""
        service = without_history(experiment)
        specs = (spec for spec in self._settings.get().endpoints if spec.name == service)
        return next((spec.session for spec in specs if spec.session), None)

    def said_of(self, experiment: str) -> str:
        """Return whose replies are the history: ``own`` or ``gold``; ``played`` where a simulated user asks.

        It is empty where no case is a turn.
        """
        if self._cases.is_played(experiment):
            return "played"
        if not self.has_turns(experiment):
            return ""
        return "own" if self.is_own(experiment) else "gold"

    def has_turns(self, experiment: str) -> bool:
        """Return whether any of an experiment's cases is a turn of a conversation."""
        if self._cases.is_played(experiment):
            return True
        data = self._cases.data_of(experiment)
        if data not in self._has_turns:
            self._has_turns[data] = any(case.query.place for case in self._cases.all_of(experiment))
        return self._has_turns[data]


# Versions of services under xdist: the controller asks once, and tells its workers the answers.


def versions_for_workers(settings: Settings) -> dict[str, dict[str, str]]:
    """Return the version of each service, or why it is not known; empty if nobody may be called."""
    from rag_harness.core.settings import access_of

    if access_of(settings).calls_nobody:
        return {}
    return {spec.name: _asked(settings, spec) for spec in settings.endpoints if spec.version}


def _asked(settings: Settings, spec: Any) -> dict[str, str]:
    from rag_harness.core.errors import PrerequisiteError
    from rag_harness.pipelines.endpoint.experiment import ask_for_version

    try:
        return {"version": ask_for_version(spec, settings)}
    except PrerequisiteError as error:
        # Trials of this service will report the problem. The run may be about another service only.
        return {"problem": str(error)}


# The state of one run in one process: settings, cases, experiments. Each is made when it is first used.


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
        self.lazy_settings, self._share = Lazy(self._read_settings), Lazy(self._share_of_settings)
        self._parts, self._golden = Lazy(self._make_parts), Lazy(self._make_golden)
        self.snapshots = Snapshots(config, self.lazy_settings)
        self.cases = RunCases(self.lazy_settings, self.snapshots)
        self.histories = Histories(self.lazy_settings, self.cases)
        self.experiments = Experiments(self.lazy_settings, self.cases, self._parts, self._golden)
        is_traced = self.experiments.tracing.is_of
        self.identities = Identities(self.lazy_settings, self._parts, self._golden, is_traced)
        self._versions = Lazy(lambda: versions_for_workers(self.settings))
        self.wanted = WantedMeasures(self.lazy_settings.get, self.cases.of)
        self._pages: dict[str, dict[str, str]] = {}

    @property
    def settings(self) -> Settings:
        """The effective settings; logged once, with keys masked."""
        return self.lazy_settings.get()

    def _read_settings(self) -> Settings:
        from rag_harness.core.package import remember_in
        from rag_harness.core.settings import access_of, masked
        from rag_harness.core.text.memory import open_memory

        settings = read_settings(self.config)
        open_log(settings.path(settings.logs))
        self.closing.callback(close_log)
        self.closing.enter_context(checks_within(settings.deadline))
        if not is_worker(self.config):
            log.info("Settings: %s", masked(settings))  # once a run: workers have the same
        remember_in(settings.path(settings.cache_dir))
        self.closing.callback(open_memory(settings.path(settings.cache_dir)))
        for spec in settings.endpoints:
            if not spec.name.isidentifier():
                continue  # -m cannot name it; rag_experiment("my-service") marks it
            self.markers.append(spec.name)
            self.config.addinivalue_line("markers", f"{spec.name}: rag_harness endpoint {spec.url}")
        if access_of(settings).calls_nobody:
            self.closing.enter_context(closed_network(settings.qdrant_url))
        return settings

    @property
    def output(self) -> Path:
        """The folder of the result files."""
        return self.settings.path(self.settings.output)

    @property
    def is_whole(self) -> bool:
        """Whether all tests and all queries were asked for, and no test was left out."""
        from rag_harness.frontends.pytest_plugin.options import is_whole

        return not self.deselected and is_whole(self.config, self.settings)

    @property
    def access(self) -> Access:
        """What the mode of this run may read, call and keep."""
        from rag_harness.core.settings import access_of

        return access_of(self.settings)

    @property
    def golden(self) -> GoldenSuite:
        """The golden suite."""
        return self._golden.get()

    def _make_golden(self) -> GoldenSuite:
        from rag_harness.runs.golden_suite import GoldenSuite

        return GoldenSuite(self.parts, self.experiments.registered, self.identities.of_parts)

    def golden_trial(self, entry_id: str) -> Trial:
        """Return the trial of a golden entry."""
        from rag_harness.runs.trial import Trial

        return Trial(GOLDEN, self.golden.case(entry_id))

    @property
    def parts(self) -> RunParts:
        """Index, embedder, models, prompts."""
        return self._parts.get()

    def _make_parts(self) -> RunParts:
        from rag_harness.pipelines.parts import RunParts

        parts = RunParts(
            self.share, self._scrubbed, self.cases.data, self._leased_meter() if self.settings.engine == "ray" else None
        )
        # The controller of an xdist run asks services once, on behalf of its workers and itself.
        for_workers = self.versions_for_workers if is_controller(self.config) else {}
        parts.told_versions = VERSIONS.received(self.config) or for_workers
        self.closing.callback(parts.flush)
        return parts

    def _scrubbed(self, text: str) -> str:
        # Looked up for each text: the costs of a recording run are estimated before the fixture exists.
        return self.scrub(text) if self.scrub else text

    @property
    def versions_for_workers(self) -> dict[str, dict[str, str]]:
        """The versions that services report, asked once for all workers."""
        return self._versions.get()

    def _leased_meter(self) -> Meter:
        """Return a meter that leases from the ledger of a cluster, under this process's name."""
        from rag_harness.runs.distributed import LeasedMeter

        return LeasedMeter(self.share, self.ledger, "tests")

    @property
    def share(self) -> Settings:
        """The settings with this process's share of the limits of the whole run."""
        return self._share.get()

    def _share_of_settings(self) -> Settings:
        from rag_harness.runs.distributed.ledger import share_of

        return share_of(self.settings, min(worker_count(self.config), self.settings.concurrency))

    @property
    def known(self) -> KnownTrials:
        """The experiments and ids that the id of a test can name."""
        from rag_harness.pipelines.experiments import known_experiments

        return KnownTrials(known_experiments(self.settings), self.cases.query_ids.get, lambda: self.golden.known_ids)

    def owe(self, experiment: str, owed: AddedExpectations) -> None:
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
