"""Makes tests from cases: one test for each experiment and case, or for each golden entry."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import pytest

from rag_harness.plugin.markers import never_selected
from rag_harness.plugin.own_expectations import check_marked
from rag_harness.plugin.stash_keys import OWED
from rag_harness.types import GOLDEN, TrialId

if TYPE_CHECKING:
    from rag_harness.plugin.session import RagSession


def parametrize(metafunc: pytest.Metafunc, session: RagSession) -> None:
    """Turn a test that uses ``rag_result`` into one test a trial, and ``rag_retrieval`` into one test a golden entry.

    Raises:
        pytest.Collector.CollectError: queries, golden set or settings are wrong, or the test names no experiment.
    """
    from rag_harness.errors import PrerequisiteError

    try:
        if "rag_result" in metafunc.fixturenames:
            metafunc.config.stash[OWED].marks.of(metafunc.definition)
            _parametrize_trials(metafunc, session)
        else:
            check_marked(metafunc.definition)
        if "rag_retrieval" in metafunc.fixturenames:
            entries = session.golden.ids
            metafunc.parametrize("rag_golden_id", entries, ids=[str(TrialId(GOLDEN, entry)) for entry in entries])
    except PrerequisiteError as error:
        if str(error) not in session.refused:
            session.refused.add(str(error))
            raise pytest.Collector.CollectError(str(error)) from None
        # The first test has reported the error, and ends the run.
        for name in {"rag_trial", "rag_golden_id"}.intersection(metafunc.fixturenames):
            metafunc.parametrize(name, [])


def _parametrize_trials(metafunc: pytest.Metafunc, session: RagSession) -> None:
    from rag_harness.engine.trial_rows import Trial
    from rag_harness.pipelines import built_in
    from rag_harness.pipelines.history_names import without_history

    names = session.histories.names(experiments_of(metafunc.definition, session.experiments.endpoints))
    session.experiments.tracing.note(metafunc.definition, names)
    # A test may name its experiment by rag_experiment(...). `-m my_service` and `-m e3` must select it all the same.
    known = {*built_in(), *session.markers}
    answering = {name: name if name in known else without_history(name) for name in names}
    marks = {name: [getattr(pytest.mark, by)] for name, by in answering.items() if by in known and by.isidentifier()}
    asked = {name: session.cases.of(name) for name in names}
    own = {mark.name for mark in metafunc.definition.iter_markers()}
    for name in names:
        if never_selected(metafunc.config, {*own, *(mark.name for mark in marks.get(name, ()))}, known):
            asked[name] = asked[name][:1]  # one is left, to be deselected as a person expects
    trials = [Trial(name, case) for name, cases in asked.items() for case in cases]
    params = [pytest.param(trial, id=trial.trial_id, marks=marks.get(trial.experiment, ())) for trial in trials]
    metafunc.parametrize("rag_trial", params)


def experiments_of(node: pytest.Item, endpoints: Collection[str] = ()) -> list[str]:
    """Return the experiments that the markers of a test name: ``e3``, an endpoint, or ``rag_experiment("mine")``.

    If a test has both, ``rag_experiment`` names the experiments and ``e3`` only selects: ``-m t1`` runs the variants of
    ``t1`` too.
    """
    from rag_harness.errors import PrerequisiteError
    from rag_harness.pipelines import built_in

    marks = list(reversed(list(node.iter_markers())))
    named = dict.fromkeys(name for mark in marks if mark.name == "rag_experiment" for name in mark.args)
    found = named or dict.fromkeys(mark.name for mark in marks if mark.name in built_in() or mark.name in endpoints)
    if not found:
        raise PrerequisiteError(
            f"{node.nodeid} uses rag_result but names no experiment. Mark it: @pytest.mark.e3, or "
            f'@pytest.mark.rag_experiment("mine") for a pipeline of your own.'
        )
    return list(found)
