"""The state of one run in one process: settings, cases, pipelines, the engine. All lazy: unused, it costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rag_harness.files.log import close_log, log, open_log
from rag_harness.plugin.options import read_settings
from rag_harness.recording.network_guard import allow_connections, refuse_connections

if TYPE_CHECKING:
    import pytest

    from rag_harness.pipelines.parts import RunParts
    from rag_harness.plugin.golden import GoldenSuite
    from rag_harness.plugin.trials import Trials
    from rag_harness.protocols import Experiment
    from rag_harness.settings import Settings
    from rag_harness.types import Case


class RagSession:
    """What the hooks and fixtures share."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.scrub: Callable[[str], str] | None = None
        self.own_experiments: set[str] = set()
        self._experiments: dict[str, Experiment] = {}
        self._fingerprints: dict[str, tuple[Any, str]] = {}

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
        return self.parts.data().cases

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

        # Looked up at each text: what a recording run will cost is worked out before there is a fixture.
        return RunParts(self.share, lambda text: self.scrub(text) if self.scrub else text)

    @cached_property
    def trials(self) -> Trials:
        """What runs trials in this process."""
        from rag_harness.plugin.trials import Trials

        return Trials(self)

    @property
    def workers(self) -> int:
        """Processes that share this run."""
        return int(getattr(self.config, "workerinput", {}).get("workercount", 1))

    @cached_property
    def share(self) -> Settings:
        """The settings with this process's part of what is limited for the whole run."""
        from rag_harness.engine.shares import share_of

        return share_of(self.settings, min(self.workers, self.settings.concurrency))

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

    def experiment(self, name: str) -> Experiment:
        """Return the registered experiment ``name``, built on first use."""
        if name not in self._experiments:
            from rag_harness.pipelines import experiment

            _check_keys(self.settings)
            self._experiments[name] = experiment(name, self.parts)
        return self._experiments[name]

    def experiment_of(self, name: str, pipeline: Any) -> Experiment:
        """Return the experiment that ``pipeline`` is run as: the registered one, or one that declares nothing."""
        from rag_harness.protocols import Experiment

        registered = self._experiments.get(name)
        return registered if registered and registered.pipeline is pipeline else Experiment(name, pipeline)

    def fingerprint(self, name: str, pipeline: Any) -> str:
        """Return the digest of everything that changes a result of the experiment ``name``."""
        known = self._fingerprints.get(name)
        if known is None or known[0] is not pipeline:
            from rag_harness.engine.fingerprint import fingerprint_of
            from rag_harness.pipelines import builder

            experiment = self.experiment_of(name, pipeline)
            built_by = builder(name).__module__ if experiment is self._experiments.get(name) else ""
            queries = self.parts.data(experiment.data).queries_digest
            known = self._fingerprints[name] = pipeline, fingerprint_of(experiment, self.settings, queries, built_by)
        return known[1]

    def close(self) -> None:
        """Stop the engine, write what is waiting, and let the network be used again."""
        allow_connections()
        if "trials" in vars(self):
            self.trials.close(*([self.parts.endpoints.aclose] if "parts" in vars(self) else []))
        if "parts" in vars(self) and "stores" in vars(self.parts):
            self.parts.stores.flush()
        if "settings" in vars(self):
            close_log()


def _close_the_network(settings: Settings) -> None:
    """Refuse connections in replay, but to a Qdrant server on this machine that the user configured."""
    host = urlsplit(settings.qdrant_url).hostname
    local = host in ("127.0.0.1", "localhost", "::1")
    refuse_connections({"127.0.0.1", "::1", "localhost"} if local else ())


def _check_keys(settings: Settings) -> None:
    from rag_harness.models.keys import check_keys

    check_keys(settings)
