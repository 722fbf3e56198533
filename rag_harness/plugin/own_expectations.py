"""What single experiments owe beside their questions: by marks of tests, by their own description, by an endpoint's."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from rag_harness.plugin.expect_marks import ExpectMarks, is_marked_itself, place_of
from rag_harness.plugin.items import is_skipped, own_fixture, trial_of
from rag_harness.plugin.screen import usage_error

if TYPE_CHECKING:
    from rag_harness.dataset.owed import Owed
    from rag_harness.plugin.session import RagSession
    from rag_harness.types import Expectation


class OwnExpectations:
    """Finds what each experiment owes itself, once all tests are collected and selected.

    The controller of an xdist run collects nothing. A worker tells it, with the first row of an experiment.

    Args:
        session: state of the run.

    Attributes:
        marks: reads the marks of tests.
    """

    def __init__(self, session: RagSession) -> None:
        self._session, self.marks = session, ExpectMarks()
        self._is_worker = hasattr(session.config, "workerinput")
        self._shipped: set[str] = set()
        self._problem = ""

    @pytest.hookimpl(wrapper=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None, object, object]:
        """Add to the cases what the selected tests demand. Done after other plugins have selected."""
        from rag_harness.errors import PrerequisiteError

        result = yield
        try:
            self._take([item for item in items if trial_of(item) is not None])
        except PrerequisiteError as error:
            if not self._is_worker:
                raise usage_error(error) from None
            self._problem = str(error)  # pytest-xdist would take a usage error in a worker for a crash
        return result

    def check(self) -> None:
        """Stop a worker that met a problem when the tests were collected, before it asks anything.

        Raises:
            SettingsError: an experiment cannot keep all that is expected of it.
        """
        if self._problem:
            from rag_harness.errors import SettingsError

            raise SettingsError(self._problem)

    def ship(self, experiment: str, report: pytest.TestReport) -> None:
        """Attach to a report what its experiment owes, if this is a worker's first report of it."""
        owed = self._session.cases.owed.get(experiment)
        if self._is_worker and owed and experiment not in self._shipped:
            self._shipped.add(experiment)
            vars(report).update(rag_owed=(experiment, owed.as_json()))

    def _take(self, items: Sequence[pytest.Item]) -> None:
        if self._session.config.option.collectonly:
            return
        for experiment, mine in _by_experiment(items).items():
            if owed := self._owed(experiment, mine):
                self._session.owe(experiment, owed)
                self._hand_over(experiment, mine)

    def _owed(self, experiment: str, items: Sequence[pytest.Item]) -> Owed:
        from rag_harness.dataset.owed import Owed, joined

        where, stated = ("", ()) if own_fixture(items[0]) else self._stated(experiment)
        places = dict.fromkeys([where] if stated else [])
        of_case: dict[str, tuple[Expectation, ...]] = {}
        for item in items:
            query_id, marked = _query_id(item), self.marks.of(item)
            if marked and is_skipped(item):
                marked = []  # it asks for nothing
            places |= dict.fromkeys(each.place for each in marked)
            of_case[query_id] = joined(of_case.get(query_id, stated), *(each.expected for each in marked))
        first = next(iter(of_case.values()))
        if all(each == first for each in of_case.values()):
            # What every selected case owes, those that were left out owe, too: a part of a run is no other run.
            return Owed(first, places=tuple(places))
        return Owed(of_case=of_case, places=tuple(places))

    def _stated(self, experiment: str) -> tuple[str, tuple[Expectation, ...]]:
        """Return what the description of an experiment demands of its answers, and where that stands."""
        from rag_harness.dataset.owed import checked, plain, stated_in
        from rag_harness.pipelines import answering, endpoints_of, known_experiments

        settings = self._session.settings
        asked = answering(experiment, settings)
        if spec := endpoints_of(settings).get(asked):
            where = f"{spec.where}: expect"
            return where, stated_in(spec.expect, where)
        if asked not in known_experiments():
            return "", ()
        try:
            built = self._session.experiments.registered(experiment)
        except Exception:
            return "", ()  # the first test of the experiment says why it cannot be built
        where = f"{experiment}: expect, in its Experiment(…)"
        return where, checked(plain(built.expect, where), where) if built.expect else ()

    def _hand_over(self, experiment: str, items: Iterable[pytest.Item]) -> None:
        """Give the tests the cases with what they owe: the tests were made when it was not yet known."""
        from rag_harness.engine.trial_rows import Trial

        cases = {case.query.query_id: case for case in self._session.cases.all_of(experiment)}
        for item in items:
            params: dict[str, Any] = item.callspec.params  # type: ignore[attr-defined]
            params["rag_trial"] = Trial(experiment, cases[_query_id(item)])


def _by_experiment(items: Sequence[pytest.Item]) -> Mapping[str, list[pytest.Item]]:
    found: dict[str, list[pytest.Item]] = {}
    for item in items:
        if trial := trial_of(item):
            found.setdefault(trial.experiment, []).append(item)
    return found


def _query_id(item: pytest.Item) -> str:
    trial = trial_of(item)
    assert trial is not None
    return trial.case.query.query_id


def check_marked(node: pytest.Item) -> None:
    """Refuse the mark at a test that asks for no answer: nothing would be looked at.

    Raises:
        pytest.Collector.CollectError: it stands there.
    """
    if is_marked_itself(node):
        raise pytest.Collector.CollectError(
            f"{place_of(node)}: rag_expect is about answers, and {node.name} does not use rag_result."
        )
