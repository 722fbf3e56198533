"""From pytest's test ids to trials: ``test_a.py::test_one[e3-q_direct_001]`` is experiment e3 on q_direct_001.

A process that has the tests reads their parameters. The controller of an xdist run has only their ids. An experiment's
name and a query's id may both have hyphens, so an id is cut where both halves are known names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field

from rag_harness.types import GOLDEN, TrialId

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
    """Yield every trial that ``text`` can stand for. Other parameters may stand before and after it."""
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
