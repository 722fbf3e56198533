"""The collected tests, passed once to each listener in a fixed order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import pytest

from rag_harness.files.log import log_name, name_log
from rag_harness.plugin.bring import brought_in, brought_line
from rag_harness.plugin.items import is_skipped, own_fixture, trial_id_of
from rag_harness.plugin.screen import write_lines
from rag_harness.plugin.trial_ids import trial_ids
from rag_harness.types import GOLDEN

if TYPE_CHECKING:
    from rag_harness.plugin.session import RagSession
    from rag_harness.types import TrialId


@dataclass(frozen=True)
class Collected:
    """The tests of a run that have trials.

    Args:
        by_node: the trial of each test, by its node id; entries of the golden suite are trials of ``golden``.
        own: trials whose pipeline is made by a fixture of the user. The controller of an xdist run cannot know them.
        items: the tests themselves, in a process that has collected them.
    """

    by_node: Mapping[str, TrialId]
    own: frozenset[TrialId] = frozenset()
    items: Sequence[pytest.Item] = ()

    @cached_property
    def left_out(self) -> frozenset[TrialId]:
        """Trials whose tests are all skipped by a mark. Looking at marks takes time, so this is computed on demand."""
        asked = {trial_id_of(item) for item in self.items if not is_skipped(item)}
        return frozenset(self.every if self.items else ()) - asked

    @property
    def every(self) -> list[TrialId]:
        """All trials in the order of their tests, each once."""
        return list(dict.fromkeys(self.by_node.values()))

    @property
    def trials(self) -> list[TrialId]:
        """The trials of experiments that answer."""
        return [trial for trial in self.every if trial.experiment != GOLDEN]

    @property
    def suites(self) -> set[str]:
        """The experiments that the trials are of; the golden suite is ``golden``."""
        return {trial.experiment for trial in self.by_node.values()}

    @property
    def golden(self) -> list[str]:
        """The ids of the golden entries."""
        return [trial.query_id for trial in self.every if trial.experiment == GOLDEN]


def of_items(items: Iterable[pytest.Item]) -> Collected:
    """Return the trials of tests that this process has collected."""
    found = {item: trial_id for item in items if (trial_id := trial_id_of(item)) is not None}
    own = frozenset(trial_id for item, trial_id in found.items() if own_fixture(item) is not None)
    return Collected({item.nodeid: trial_id for item, trial_id in found.items()}, own, tuple(found))


class CollectionListener(Protocol):
    """A listener that is told what was collected, before the first test runs."""

    def collection_done(self, selected: Collected) -> None:
        """Called once a run, in the process that writes and prints.

        Raises:
            pytest.UsageError: the run cannot work with what was collected.
        """
        ...


class CollectedByWorker:
    """Names the log of a worker, by what it has collected."""

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Name it as the process that writes does."""
        if suites := of_items(session.items).suites:
            name_log(log_name(suites))


class CollectedTrials:
    """Tells the listeners, in the process that writes. Under xdist only workers collect, and all collect the same.

    Args:
        session: state of the run.
        listeners: are told in their order.
        refused: told why, where a listener refuses the run.
    """

    def __init__(
        self, session: RagSession, listeners: Sequence[CollectionListener], refused: Callable[[str], None]
    ) -> None:
        self._session, self._listeners, self._refused = session, listeners, refused
        self._told = False

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Note which suites were left out: their absence is no error."""
        found = {trial.experiment for item in items if (trial := trial_id_of(item))}
        self._session.deselected |= found

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Tell the listeners what is about to run."""
        self._tell(of_items(session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Do the same under xdist, before work is handed out."""
        if not self._told:
            selected = Collected(trial_ids(ids, self._session.known))
            self._say(selected)
            self._tell(selected)

    def _say(self, selected: Collected) -> None:
        from rag_harness.plugin.unasked import unasked_questions

        terminal = self._session.config.pluginmanager.get_plugin("terminalreporter")
        brought = brought_in(selected.by_node)
        lines = [brought_line(brought) if brought else "", unasked_questions(self._session, selected.suites)]
        if any(lines) and terminal is not None:
            terminal.ensure_newline()
            write_lines(terminal, filter(None, lines))

    def _tell(self, selected: Collected) -> None:
        self._told = True
        if selected.suites:
            name_log(log_name(selected.suites))
        self._session.own_experiments |= {trial.experiment for trial in selected.trials}
        try:
            for listener in self._listeners:
                listener.collection_done(selected)
        except pytest.UsageError as error:
            self._refused(str(error))
            raise
