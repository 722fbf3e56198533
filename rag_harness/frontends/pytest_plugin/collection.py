"""Collection: tests from cases, expectations of their marks, injected tests, and checks of the selection."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rag_harness.core.errors import SettingsError, unknown
from rag_harness.core.log import log_name, name_log
from rag_harness.core.settings.table import names_in
from rag_harness.core.types import GOLDEN, TrialId
from rag_harness.frontends.pytest_plugin.items import (
    ExpectMarks,
    is_marked_itself,
    is_skipped,
    own_fixture,
    place_of,
    trial_id_of,
    trial_ids,
    trial_of,
)
from rag_harness.frontends.pytest_plugin.options import command_line, ini, is_everywhere, names_questions
from rag_harness.frontends.pytest_plugin.stash import OWED
from rag_harness.frontends.pytest_plugin.terminal import usage_error, write_lines
from rag_harness.frontends.pytest_plugin.workers import is_worker

if TYPE_CHECKING:
    from rag_harness.core.settings import Settings
    from rag_harness.core.types import Expectation
    from rag_harness.frontends.pytest_plugin.session import Histories, RagSession
    from rag_harness.records.expectations import AddedExpectations


# Checks for runs that would end as a bare "no tests ran": ``-m e9`` selects nothing, a folder has no test.

_NAME = re.compile(r"[A-Za-z_]\w*")
_PLAIN = re.compile(r"[\w\s()]{1,500}")
UNSELECTED = "unselected"
"""The id of a question or entry that ``-m`` leaves out with all others of its test: their files are not read."""
_WORDS = {"and", "or", "not", "True", "False", "None"}


def check_marker_expression(config: pytest.Config) -> None:
    """Make sure that every name in ``-m`` is a registered marker.

    Raises:
        SettingsError: a name is not registered; the message lists the experiments.
    """
    names = markers_in(config)
    known = {re.split(r"[:(]", line)[0].strip() for line in config.getini("markers")}
    for name in sorted(names - known):
        raise SettingsError(f"-m: {unknown('marker', name, known)}")


def markers_in(config: pytest.Config) -> set[str]:
    """Return the names in ``-m``."""
    return set(_NAME.findall(config.getoption("markexpr", "") or "")) - _WORDS


def never_selected(config: pytest.Config, marks: Collection[str], experiments: Collection[str]) -> bool:
    """Return whether ``-m`` leaves out every test with these markers, so that no more than one need be made.

    Only where the expression names experiments and nothing else: a plugin may add any other marker to a test later.
    """
    names = markers_in(config)
    if not names or not names <= set(experiments):
        return False
    expression = config.getoption("markexpr")
    if not _PLAIN.fullmatch(expression):
        return False
    decided = _NAME.sub(lambda found: _decided(found[0], marks), expression)
    try:
        return not _value(ast.parse(decided.strip(), mode="eval").body)
    except SyntaxError:
        return False  # pytest says what is wrong with it


def _decided(name: str, marks: Collection[str]) -> str:
    return name if name in _WORDS else str(name in marks)


def _value(node: ast.expr) -> bool:
    if isinstance(node, ast.BoolOp):
        values = [_value(each) for each in node.values]
        return all(values) if isinstance(node.op, ast.And) else any(values)
    if isinstance(node, ast.UnaryOp):
        return not _value(node.operand)
    return bool(ast.literal_eval(node))


def hint_without_tests(config: pytest.Config, items: Sequence[pytest.Item]) -> str | None:
    """Return what to do if the command line has options of ours and no test was found; else None."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    stats = reporter.stats if reporter else {}
    # If tests could not be collected, their error says why there are none.
    if items or not command_line(config) or stats.get("deselected") or stats.get("error"):
        return None
    return (
        "rag: no test is here that asks an experiment. --rag-run=e2,e3 asks two of ours about your documents; "
        "rag-harness init makes a suite of your own"
    )


class ExperimentExpectations:
    """Finds what each experiment owes itself, once all tests are collected and selected.

    The controller of an xdist run collects nothing. A worker tells it, with the first row of an experiment.

    Args:
        session: state of the run.

    Attributes:
        marks: reads the marks of tests.
    """

    def __init__(self, session: RagSession) -> None:
        self._session, self.marks = session, ExpectMarks()
        self._is_worker = is_worker(session.config)
        self._sent: set[str] = set()
        self._problem = ""

    @pytest.hookimpl(wrapper=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None, object, object]:
        """Add to the cases what the selected tests demand. Done after other plugins have selected."""
        from rag_harness.core.errors import PrerequisiteError

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
            from rag_harness.core.errors import SettingsError

            raise SettingsError(self._problem)

    def unsent(self, experiment: str) -> tuple[str, Mapping[str, Any]] | None:
        """Return what an experiment owes, once, in a worker: for its first report of it."""
        owed = self._session.cases.owed.get(experiment)
        if not self._is_worker or not owed or experiment in self._sent:
            return None
        self._sent.add(experiment)
        return experiment, owed.as_json()

    def _take(self, items: Sequence[pytest.Item]) -> None:
        if self._session.config.option.collectonly:
            return
        for experiment, mine in _by_experiment(items).items():
            if owed := self._owed(experiment, mine):
                self._session.owe(experiment, owed)
                self._hand_over(experiment, mine)

    def _owed(self, experiment: str, items: Sequence[pytest.Item]) -> AddedExpectations:
        from rag_harness.records.expectations import AddedExpectations as Owed
        from rag_harness.records.expectations import joined_expectations as joined

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
        from rag_harness.pipelines.experiments import answering, endpoints_of, known_experiments
        from rag_harness.records.expectations import checked_expectations as checked
        from rag_harness.records.expectations import plain_expectations as plain
        from rag_harness.records.expectations import stated_in

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
        from rag_harness.runs.trial import Trial

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
    """Refuse the mark on a test that asks for no answer because nothing would be checked.

    Raises:
        pytest.Collector.CollectError: the test has the mark.
    """
    if is_marked_itself(node):
        raise pytest.Collector.CollectError(
            f"{place_of(node)}: rag_expect is about answers, and {node.name} does not use rag_result."
        )


def parametrize_trials(metafunc: pytest.Metafunc, session: RagSession) -> None:
    """Turn a test that uses ``rag_result`` into one test a trial, and ``rag_retrieval`` into one test a golden entry.

    Raises:
        pytest.Collector.CollectError: queries, golden set or settings are wrong, or the test names no experiment.
    """
    from rag_harness.core.errors import PrerequisiteError

    try:
        if "rag_result" in metafunc.fixturenames:
            metafunc.config.stash[OWED].marks.of(metafunc.definition)
            _parametrize_trials(metafunc, session)
        else:
            check_marked(metafunc.definition)
        if "rag_retrieval" in metafunc.fixturenames:
            entries = _golden_entries(metafunc, session)
            metafunc.parametrize("rag_golden_id", entries, ids=[str(TrialId(GOLDEN, entry)) for entry in entries])
    except PrerequisiteError as error:
        if str(error) not in session.refused:
            session.refused.add(str(error))
            raise pytest.Collector.CollectError(str(error)) from None
        # The first test has reported the error, and ends the run.
        for name in {"rag_trial", "rag_golden_id"}.intersection(metafunc.fixturenames):
            metafunc.parametrize(name, [])


def _golden_entries(metafunc: pytest.Metafunc, session: RagSession) -> Sequence[str]:
    from rag_harness.pipelines.experiments import built_in

    marks = {mark.name for mark in metafunc.definition.iter_markers()}
    is_left = never_selected(metafunc.config, marks, {*built_in(), *session.markers})
    return [UNSELECTED] if is_left else session.golden.ids


def _parametrize_trials(metafunc: pytest.Metafunc, session: RagSession) -> None:
    from rag_harness.core.types import Case, Query
    from rag_harness.pipelines.experiments import built_in
    from rag_harness.records.manifest import without_history
    from rag_harness.runs.trial import Trial

    said = experiments_of(metafunc.definition, session.experiments.endpoints)
    # A test may name its experiment by rag_experiment(...). `-m my_service` and `-m e3` must select it all the same.
    known = {*built_in(), *session.markers}

    def marks(experiment: str) -> list[pytest.MarkDecorator]:
        by = experiment if experiment in known else without_history(experiment)
        return [getattr(pytest.mark, by)] if by in known and by.isidentifier() else []

    own = {mark.name for mark in metafunc.definition.iter_markers()}
    left = [name for name in said if never_selected(metafunc.config, {*own, *(m.name for m in marks(name))}, known)]
    names = session.histories.names(name for name in said if name not in left)
    session.experiments.tracing.note(metafunc.definition, [*names, *left])
    trials = [Trial(name, case) for name in names for case in session.cases.of(name)]
    trials += [Trial(name, Case(Query(UNSELECTED, ""))) for name in left]
    params = [pytest.param(trial, id=trial.trial_id, marks=marks(trial.experiment)) for trial in trials]
    metafunc.parametrize("rag_trial", params)


def experiments_of(node: pytest.Item, endpoints: Collection[str] = ()) -> list[str]:
    """Return the experiments that the markers of a test name: ``e3``, an endpoint, or ``rag_experiment("mine")``.

    If a test has both, ``rag_experiment`` names the experiments and ``e3`` only selects: ``-m t1`` runs the variants of
    ``t1`` too.
    """
    from rag_harness.core.errors import PrerequisiteError
    from rag_harness.pipelines.experiments import built_in

    marks = list(reversed(list(node.iter_markers())))
    named = dict.fromkeys(name for mark in marks if mark.name == "rag_experiment" for name in mark.args)
    found = named or dict.fromkeys(mark.name for mark in marks if mark.name in built_in() or mark.name in endpoints)
    if not found:
        raise PrerequisiteError(
            f"{node.nodeid} uses rag_result but names no experiment. Mark it: @pytest.mark.e3, or "
            f'@pytest.mark.rag_experiment("mine") for a pipeline of your own.'
        )
    return list(found)


# Brings a test for an experiment that a person has named and no test of the folder asks.
#
# A person names an experiment in three ways: --rag-run, a service's file after --rag-endpoint, and ``-m e3`` where no
# test has that marker.

NODE = "rag"
"""First part of the node ids of brought tests. Other node ids begin with the path of a file."""


def bring(session: RagSession, collected: pytest.Session, items: list[pytest.Item]) -> None:
    """Add the missing tests to ``items``. Under --rag-run, leave out tests that ask another experiment.

    Raises:
        pytest.UsageError: --rag-run names an experiment that is not there, or may not be named so.
    """
    if collected.testsfailed:
        return  # the file that cannot be collected may have the test
    asked = {trial.experiment for item in items if (trial := trial_id_of(item))}
    config, settings = session.config, session.settings
    if GOLDEN in asked:
        asked.add(settings.retriever)  # a service may be asked only for what it finds
    said = list(dict.fromkeys(names_in(settings.run)))
    _check(settings, said, asked)
    named = _named(session.histories, said)
    others = [] if named else [*_typed_services(config, settings), *_marked(config, settings, items)]
    wanted = dict.fromkeys(named or session.histories.names(others))
    if missing := [name for name in wanted if name not in asked]:
        session.brought += missing
        items += _collect(collected, missing)
    if named:
        _leave_out_others(collected, items, named)


def _named(histories: Histories, said: Sequence[str]) -> list[str]:
    from rag_harness.core.errors import SettingsError

    try:
        return histories.names(said)
    except SettingsError as error:
        raise usage_error(error) from None


def _check(settings: Settings, named: Sequence[str], asked: Collection[str]) -> None:
    from rag_harness.core.errors import unknown
    from rag_harness.pipelines.experiments import is_known, known_experiments

    known = {*known_experiments(settings), *asked} if named else set()
    for name in named:
        if name not in known and not is_known(name, settings):
            own = f'@pytest.mark.rag_experiment("{name}")'
            raise usage_error(
                f"--rag-run: {unknown('experiment', name, known)} A pipeline of your own is asked by a test that is "
                f"marked {own} and gets it from your fixture rag_pipeline."
            )


def _typed_services(config: pytest.Config, settings: Settings) -> list[str]:
    """Return the services whose files stand on the command line. None are returned if it names tests, too."""
    if not is_everywhere(config):
        return []
    files = command_line(config).get("endpoint", ())
    return [spec.name for spec in settings.endpoints if spec.where in files]


def _marked(config: pytest.Config, settings: Settings, items: Sequence[pytest.Item]) -> list[str]:
    """Return the experiments that -m asks for, if it names no test that is here."""
    from rag_harness.pipelines.experiments import known_experiments

    names = markers_in(config)
    if "not" in config.getoption("markexpr", "").split():
        return []  # the expression says what it leaves out
    if any(item.get_closest_marker(name) for name in names for item in items):
        return []
    return [name for name in known_experiments(settings) if name in names]


def _collect(collected: pytest.Session, experiments: Sequence[str]) -> Iterator[pytest.Item]:
    from rag_harness.frontends.pytest_plugin import injected_tests as brought_tests

    module = pytest.Module.from_parent(collected, path=Path(brought_tests.__file__), nodeid=NODE)
    module.obj = brought_tests  # pytest would import it by its path, and put that folder first in sys.path
    module.add_marker(pytest.mark.rag_experiment(*experiments))
    yield from collected.genitems(module)


def _leave_out_others(collected: pytest.Session, items: list[pytest.Item], named: Collection[str]) -> None:
    kept: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item in items:
        trial = trial_id_of(item)
        (kept if trial is not None and trial.experiment in named else others).append(item)
    if others:
        collected.config.hook.pytest_deselected(items=others)
        items[:] = kept


def golden_first(session: RagSession, items: list[pytest.Item]) -> None:
    """Put files with nothing but the golden suite before the first test of an answer, if it searches by words.

    It is over in a second, and the vectors that answers need are made beside it. Other plugins may order tests later.
    """
    found = {item: trial.experiment for item in items if (trial := trial_id_of(item))}
    answering = next((place for place, item in enumerate(items) if found.get(item, GOLDEN) != GOLDEN), None)
    if answering is None or GOLDEN not in found.values() or session.settings.retriever != "bm25":
        return
    others = {item.path for item in items if found.get(item) != GOLDEN}
    later = items[answering:]
    items[answering:] = sorted(later, key=lambda item: item.path in others)


def brought_in(by_node: Mapping[str, TrialId]) -> list[str]:
    """Return the experiments of brought tests, from the node ids and trials that a worker has reported."""
    return list(dict.fromkeys(trial.experiment for node, trial in by_node.items() if node.startswith(f"{NODE}::")))


def brought_line(experiments: Sequence[str]) -> str:
    """Say for which experiments no test was found here; empty if all had one."""
    if not experiments:
        return ""
    return f"rag: no test here asks {', '.join(experiments)}: rag_harness brings one"


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
        listeners: are called in their order with what was collected, once a run, before the first test runs. They
            raise a UsageError where the run cannot work with it.
        refused: told why, where a listener refuses the run.
    """

    def __init__(
        self, session: RagSession, listeners: Sequence[Callable[[Collected], None]], refused: Callable[[str], None]
    ) -> None:
        self._session, self._listeners, self._refused = session, listeners, refused
        self._told = False

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Note which suites were left out, so that their absence does not count as an error."""
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
        config, brought = self._session.config, brought_in(selected.by_node)
        unasked = unasked_questions(config, self._session.settings, selected.suites)
        lines = [brought_line(brought) if brought else "", unasked]
        terminal = config.pluginmanager.get_plugin("terminalreporter")
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
                listener(selected)
        except pytest.UsageError as error:
            self._refused(str(error))
            raise


def unasked_questions(config: pytest.Config, settings: Settings, suites: Collection[str]) -> str:
    """Say that the questions which somebody has named for this run are asked by none of its ``suites``; else empty."""
    if set(suites) != {GOLDEN} or settings.dataset or not names_questions(settings, ini(config)):
        return ""
    if settings.path(settings.golden) == settings.queries_path:
        return ""
    return (
        f"rag: no test of this run asks {settings.queries_path.name} (--rag-queries, RAG_QUERIES): the golden suite "
        f"asks {settings.path(settings.golden).name}. To have it ask others: --rag-golden FILE"
    )
