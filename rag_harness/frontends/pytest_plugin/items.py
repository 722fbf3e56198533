"""Test items: their trials, their marks, and the trials that their ids name."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from rag_harness.core.types import GOLDEN, TrialId

if TYPE_CHECKING:
    from rag_harness.core.types import Expectation
    from rag_harness.runs.trial import Trial


def trial_id_of(item: pytest.Item) -> TrialId | None:
    """Return the trial that a test is about, golden entries included; None for other tests."""
    params = _params(item)
    if "rag_trial" in params:
        found: TrialId = params["rag_trial"].id
        return found
    return TrialId(GOLDEN, params["rag_golden_id"]) if "rag_golden_id" in params else None


def trial_of(item: pytest.Item) -> Trial | None:
    """Return the trial of an experiment that answers; None for other tests, those of the golden suite included."""
    trial: Trial | None = _params(item).get("rag_trial")
    return trial


def _params(item: pytest.Item) -> dict[str, Any]:
    callspec = getattr(item, "callspec", None)
    params = callspec.params if callspec else {}
    # pytest puts a placeholder where a test is parametrized with nothing: here, since its data have errors.
    return {name: value for name, value in params.items() if type(value).__name__ != "NotSetType"}


def own_fixture(item: pytest.Item) -> Any:
    """Return the user's own definition of ``rag_pipeline`` that ``item`` gets; None if it gets the plugin's."""
    fixtures = getattr(item, "_fixtureinfo").name2fixturedefs.get("rag_pipeline", ())  # noqa: B009
    return fixtures[-1] if len(fixtures) > 1 else None


def made_in(fixture: Any) -> str:
    """Return where a fixture is written, as ``written_in`` does; empty without a fixture."""
    from rag_harness.pipelines.user_pipelines import written_in

    return written_in(getattr(fixture, "func", None))


def is_skipped(item: pytest.Item) -> bool:
    """Return whether a mark will skip the test, so that nobody pays for its trial."""
    try:
        from _pytest.skipping import evaluate_skip_marks
    except ImportError:
        return any(item.iter_markers("skip"))
    try:
        return evaluate_skip_marks(item) is not None
    except Exception:
        return True  # the condition cannot be evaluated; the test itself will say so


# From pytest's test ids to trials: ``test_a.py::test_one[e3-q_direct_001]`` is experiment e3 on q_direct_001.
#
# A process that has the tests reads their parameters. The controller of an xdist run has only their ids. An
# experiment's name and a query's id may both have hyphens, so an id is cut where both halves are known names.

_PARAMETERS = re.compile(r"\[(.+)\]$")


def param_id(nodeid: str) -> str:
    """Return the id of a test's parameters, e.g. ``e3-q_direct_001``; empty if it has none."""
    match = _PARAMETERS.search(nodeid)
    return match[1] if match else ""


@dataclass(frozen=True)
class KnownTrials:
    """The names that a trial can have. The ids are read when they are first needed.

    Args:
        experiments: names of built-in and registered experiments. Names that only a marker gives are learnt.
        queries: ids of the queries.
        entries: ids of the golden set.
    """

    experiments: Collection[str]
    queries: Callable[[], Collection[str]]
    entries: Callable[[], Collection[str]]


@dataclass
class _Reading:
    """What the ids of one collection have shown so far."""

    known: KnownTrials
    of_function: dict[str, set[str]] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def settle(self, function: str, trial: TrialId) -> TrialId:
        """Note a trial that is certain. It shows which experiment an ambiguous id of the same function belongs to."""
        self.of_function.setdefault(function, set()).add(trial.experiment)
        self.used.add(trial.experiment)
        return trial

    def likeliest(self, function: str, cuts: list[TrialId]) -> TrialId:
        """Return the cut whose experiment this function uses; else one used elsewhere; else a registered one."""
        for names in (self.of_function.get(function, ()), self.used, self.known.experiments):
            found = [cut for cut in cuts if cut.experiment in names]
            if found:
                return found[0]
        return cuts[0]


def trial_ids(nodeids: Iterable[str], known: KnownTrials) -> dict[str, TrialId]:
    """Return the trials of the node ids that have one."""
    reading = _Reading(known)
    cuts = {nodeid: found for nodeid in nodeids if (found := list(_cuts(param_id(nodeid), known)))}
    certain = {nodeid: reading.settle(_function(nodeid), found[0]) for nodeid, found in cuts.items() if len(found) == 1}
    return {
        nodeid: certain.get(nodeid) or reading.likeliest(_function(nodeid), found) for nodeid, found in cuts.items()
    }


def _function(nodeid: str) -> str:
    return nodeid.partition("[")[0]


def _cuts(text: str, known: KnownTrials) -> Iterator[TrialId]:
    """Yield every trial that ``text`` can mean. Other parameters may come before and after it."""
    if "-" not in text:
        return
    parts = text.split("-")
    whole = list(_cuts_of(parts, known))
    yield from whole
    if not whole:
        # An unregistered name has no known beginning, so it is not looked for.
        names = {*known.experiments, GOLDEN}
        for start in range(len(parts)):
            for end in range(len(parts), start + 1, -1):
                yield from (cut for cut in _cuts_of(parts[start:end], known) if cut.experiment in names)


def _cuts_of(parts: list[str], known: KnownTrials) -> Iterator[TrialId]:
    for n in range(1, len(parts)):
        name, rest = "-".join(parts[:n]), "-".join(parts[n:])
        if name and rest in (known.entries() if name == GOLDEN else known.queries()):
            yield TrialId(name, rest)


MARKER = "rag_expect"
_EXAMPLE = '@pytest.mark.rag_expect({"max_words": 80})'


class MarkedExpectations(NamedTuple):
    """The expectations of one mark, and its place: ``test_rag.py:12``."""

    place: str
    expected: tuple[Expectation, ...]


class ExpectMarks:
    """Reads each mark once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[pytest.Mark, MarkedExpectations]] = {}

    def of(self, node: pytest.Item) -> list[MarkedExpectations]:
        """Return the expectations of each mark of a test, its class and its module.

        Raises:
            SettingsError: a mark states no expectation, or one that cannot be read; names its place.
        """
        return [self._marked(each, mark) for each, mark in node.iter_markers_with_node(MARKER)]

    def _marked(self, node: Any, mark: pytest.Mark) -> MarkedExpectations:
        if id(mark) not in self._known:
            # The mark is kept too: otherwise another one could get its id.
            self._known[id(mark)] = mark, _read(node, mark)
        return self._known[id(mark)][1]


def is_marked_itself(node: pytest.Item) -> bool:
    """Return whether the mark is the test's own, not its class's or module's."""
    return any(mark.name == MARKER for mark in node.own_markers)


def _read(node: Any, mark: pytest.Mark) -> MarkedExpectations:
    from rag_harness.records.expectations import checked_expectations as checked

    place = place_of(node)
    return MarkedExpectations(place, checked(_raw(mark, place), f"{place}: {MARKER}"))


def _raw(mark: pytest.Mark, place: str) -> Any:
    """Return the objects of a mark as plain JSON."""
    from rag_harness.core.errors import SettingsError
    from rag_harness.records.expectations import plain_expectations as plain

    if mark.kwargs or not mark.args:
        given = f"{next(iter(mark.kwargs))}=…" if mark.kwargs else "none"
        raise SettingsError(f"{place}: {MARKER} takes objects, and has {given}. Write {_EXAMPLE}.")
    if any(isinstance(each, list | tuple) for each in mark.args):
        raise SettingsError(f"{place}: {MARKER} takes objects, and has a list. Write them one by one: {_EXAMPLE}.")
    return plain(mark.args, f"{place}: {MARKER}")


def place_of(node: Any) -> str:
    """Return file and line of a mark of a test, a class or a module; of one that code has added, of the test."""
    file = Path(node.path)
    # With --rag-kb DIR, the folder of pytest's root is another one.
    root = node.config.inipath.parent if node.config.inipath else node.config.invocation_params.dir
    shown = file.relative_to(root).as_posix() if file.is_relative_to(root) else str(file)
    try:
        lines, first = inspect.getsourcelines(inspect.unwrap(node.obj))
    except (AttributeError, OSError, TypeError):
        return shown
    # The lines of a module are counted from 0.
    first = max(first, 1)
    return f"{shown}:{next((n for n, line in enumerate(lines, first) if MARKER in line), first)}"
