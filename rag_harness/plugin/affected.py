"""--rag-affected-by: keeps only the tests whose questions are affected by a change of documents."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from rag_harness.dataset.conversations import turn_id
from rag_harness.plugin.items import trial_id_of
from rag_harness.plugin.screen import usage_error, write_section
from rag_harness.shown.terminal import line
from rag_harness.types import GOLDEN

if TYPE_CHECKING:
    from rag_harness.authoring.questions.since import DatedQuestion, Why
    from rag_harness.dataset.data import Data
    from rag_harness.plugin.changes import Changes
    from rag_harness.plugin.session import RagSession
    from rag_harness.results.manifest import Some
    from rag_harness.types import Case

_SHIPPED, _LEFT_OUT = "rag_affected", "rag_left_out"


class Affected:
    """Selects the affected tests, in every process. Without the option it does nothing.

    The controller tells each worker which questions are affected. A worker must not find out itself: the controller has
    begun to write rows by then, and the workers would collect different tests.

    Args:
        session: state of the run.
    """

    def __init__(self, session: RagSession) -> None:
        self._session = session
        self._found: dict[str, Mapping[str, Why]] = dict(getattr(session.config, "workerinput", {}).get(_SHIPPED) or {})
        self._changes: dict[str, Changes] = {}
        self._left_out = 0
        self._is_said = False

    @property
    def revision(self) -> str:
        """The revision that the option names; empty if it was not given."""
        return self._session.settings.affected_by

    def of_suite(self, suite: str) -> Mapping[str, Why]:
        """Return the affected questions of an experiment, or entries of the golden suite, each with its reason.

        Raises:
            PrerequisiteError: git, the documents or the questions cannot be read.
        """
        return self._of_data(GOLDEN if suite == GOLDEN else f"data {self._session.cases.data_of(suite)}")

    def _of_data(self, key: str) -> Mapping[str, Why]:
        if key not in self._found:
            self._found[key] = self._find(key)
        return self._found[key]

    def _find(self, key: str) -> Mapping[str, Why]:
        from rag_harness.authoring.questions import DocumentCollection
        from rag_harness.authoring.questions.retrieved import retrieved_before
        from rag_harness.authoring.questions.since import affected
        from rag_harness.errors import SettingsError
        from rag_harness.plugin.changes import changes_of

        golden, settings = key == GOLDEN, self._session.settings
        if settings.save:
            raise SettingsError(
                f"--rag-save={settings.save} keeps a whole run, and --rag-affected-by leaves cases out. Give one of "
                "the two."
            )
        data = self._session.cases.data.get("" if golden else key.removeprefix("data "))
        self._changes[key] = changes = changes_of(data, settings, golden)
        touched = changes.change.pages
        before = retrieved_before(self._session.output, settings.candidates, lambda name: self._is_of(name, key))
        collection = DocumentCollection(data.documents) if touched else None
        return affected(_questions(data, golden), changes.change, before, collection, settings.candidates)

    def _is_of(self, experiment: str, key: str) -> bool:
        golden = experiment == GOLDEN
        return golden if key == GOLDEN else not golden and f"data {self._session.cases.data_of(experiment)}" == key

    @pytest.hookimpl(wrapper=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None, object, object]:
        """Leave out tests whose questions are not affected. Done after all other plugins have selected."""
        result = yield
        if any(trial_id_of(item) for item in items) and self.revision:
            kept, left = self._split(items)
            self._left_out += len(left)
            if left:
                config.hook.pytest_deselected(items=left)
                items[:] = kept
        return result

    def _split(self, items: list[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
        from rag_harness.errors import PrerequisiteError

        kept: list[pytest.Item] = []
        left: list[pytest.Item] = []
        try:
            for item in items:
                trial = trial_id_of(item)
                is_kept = trial is None or trial.query_id in self.of_suite(trial.experiment)
                (kept if is_kept else left).append(item)
        except PrerequisiteError as error:
            raise usage_error(error) from None
        return kept, left

    def pytest_report_collectionfinish(self) -> list[str]:
        """Say which questions are affected and which data are not looked at."""
        return self._lines()

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker what is affected, in all data that can be read: only workers know which data are used."""
        from rag_harness.errors import PrerequisiteError

        if not self.revision:
            return
        first: PrerequisiteError | None = None
        for key in [*(f"data {name}" for name in self._session.cases.data.names), GOLDEN]:
            try:
                self._of_data(key)
            except PrerequisiteError as error:
                first = first or error
        if not self._found and first is not None:
            raise usage_error(first)
        node.workerinput[_SHIPPED] = {key: dict(found) for key, found in self._found.items()}

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Learn from a worker whether it left out any test."""
        self._left_out = max(self._left_out, getattr(node, "workeroutput", {}).get(_LEFT_OUT, 0))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Generator[None, object, object]:
        """Let a run that had nothing to ask succeed: pytest calls it "no tests collected".

        Done after all other plugins: some of them restore the exit status that they were called with.
        """
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[_LEFT_OUT] = self._left_out
        result = yield
        if self._left_out and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK
        return result

    def print(self, terminal: pytest.TerminalReporter) -> None:
        """Print the affected questions, under xdist only: nothing could print them at the beginning."""
        if not self._is_said and (lines := self._lines()):
            write_section(terminal, f"rag affected by {self.revision}", lines)

    def _lines(self) -> list[str]:
        from rag_harness.plugin.affected_lines import lines_of

        self._is_said = True
        found = [(key, self._found[key], changes) for key, changes in self._changes.items() if key in self._found]
        return [line(each) for each in lines_of(self.revision, found)] if found else []

    def is_all_of(self, suite: str, selected: Some) -> bool:
        """Whether the selected cases of a suite are all of its affected cases, so nothing else was left out."""
        if not self.revision or selected == "all":
            return False
        affected = {*self.of_suite(suite)}
        if suite != GOLDEN:  # data may have questions that another experiment is asked: those of simulated users
            affected &= {case.query.query_id for case in self._session.cases.all_of(suite)}
        return {*selected} == affected


def _questions(data: Data, golden: bool) -> Iterator[DatedQuestion]:
    from rag_harness.authoring.questions.since import DatedQuestion

    if golden:
        for entry in data.golden:
            pages = {name for each in entry.expected for name in (each, each.rpartition("#")[0]) if name}
            yield DatedQuestion(entry.entry_id, entry.query, frozenset(pages))
    else:
        for case in (*data.cases, *data.scenarios):
            quoted = (quote.filename for quote in case.evidence)
            yield DatedQuestion(
                case.query.query_id, _searched(case), frozenset([*case.qrels, *quoted]), _turn_before(case)
            )


def _searched(case: Case) -> str:
    """Return the words that a question is searched by: a turn that says little, with the user's turn before it."""
    if case.scenario is not None:
        return case.scenario.opening
    before = [each.content for each in case.query.history if each.role == "user"]
    return case.asked_alone or " ".join([*before[-1:], case.query.text])


def _turn_before(case: Case) -> str:
    place = case.query.place
    turn = int(place["turn"]) if place else 1
    return turn_id(place["conversation"], turn - 1) if turn > 1 else ""
