"""Brings a test for an experiment that a person has named and no test of the folder asks.

A person names an experiment in three ways: --rag-run, a service's file after --rag-endpoint, and ``-m e3`` where no
test has that marker.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rag_harness.plugin.items import trial_id_of
from rag_harness.plugin.markers import markers_in
from rag_harness.plugin.options import command_line
from rag_harness.plugin.screen import usage_error
from rag_harness.plugin.selection import is_everywhere
from rag_harness.settings.listed import names_in
from rag_harness.types import GOLDEN

if TYPE_CHECKING:
    from rag_harness.plugin.session import RagSession
    from rag_harness.types import TrialId

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
    if GOLDEN in asked:
        asked.add(session.settings.retriever)  # a service may be asked only for what it finds
    said = list(dict.fromkeys(names_in(session.settings.run)))
    _check(session, said, asked)
    named = _named(session, said)
    wanted = dict.fromkeys(named or session.histories.names([*_typed_services(session), *_marked(session, items)]))
    if missing := [name for name in wanted if name not in asked]:
        session.brought += missing
        items += _collect(collected, missing)
    if named:
        _leave_out_others(collected, items, named)


def _named(session: RagSession, said: Sequence[str]) -> list[str]:
    from rag_harness.errors import SettingsError

    try:
        return session.histories.names(said)
    except SettingsError as error:
        raise usage_error(error) from None


def _check(session: RagSession, named: Sequence[str], asked: Collection[str]) -> None:
    from rag_harness.errors import unknown
    from rag_harness.pipelines import is_known, known_experiments

    known = {*known_experiments(session.settings), *asked} if named else set()
    for name in named:
        if name not in known and not is_known(name, session.settings):
            own = f'@pytest.mark.rag_experiment("{name}")'
            raise usage_error(
                f"--rag-run: {unknown('experiment', name, known)} A pipeline of your own is asked by a test that is "
                f"marked {own} and gets it from your fixture rag_pipeline."
            )


def _typed_services(session: RagSession) -> list[str]:
    """Return the services whose files stand on the command line. None are returned if it names tests, too."""
    if not is_everywhere(session.config):
        return []
    files = command_line(session.config).get("endpoint", ())
    return [spec.name for spec in session.settings.endpoints if spec.where in files]


def _marked(session: RagSession, items: Sequence[pytest.Item]) -> list[str]:
    """Return the experiments that -m asks for, if it names no test that is here."""
    from rag_harness.pipelines import known_experiments

    names = markers_in(session.config)
    if "not" in session.config.getoption("markexpr", "").split():
        return []  # the expression says what it leaves out
    if any(item.get_closest_marker(name) for name in names for item in items):
        return []
    return [name for name in known_experiments(session.settings) if name in names]


def _collect(collected: pytest.Session, experiments: Sequence[str]) -> Iterator[pytest.Item]:
    from rag_harness.plugin import brought_tests

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


def brought_in(by_node: Mapping[str, TrialId]) -> list[str]:
    """Return the experiments of brought tests, from the node ids and trials that a worker has reported."""
    return list(dict.fromkeys(trial.experiment for node, trial in by_node.items() if node.startswith(f"{NODE}::")))


def brought_line(experiments: Sequence[str]) -> str:
    """Say for which experiments no test was found here; empty if all had one."""
    if not experiments:
        return ""
    return f"rag: no test here asks {', '.join(experiments)}: rag_harness brings one"
