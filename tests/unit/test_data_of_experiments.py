"""The data of shipped experiments, as collection learns them without importing each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from rag_harness.core.concurrency import Lazy
from rag_harness.core.settings.loading import ini_values, load_settings
from rag_harness.frontends.pytest_plugin.session import RunCases
from rag_harness.pipelines.experiments import built_in, data_of

ROOT = Path(__file__).parents[2]
SETTINGS = load_settings({}, ini_values(ROOT), ROOT)


def test_no_import_is_no_other_answer() -> None:
    cases = RunCases(Lazy(lambda: SETTINGS), cast("Any", None))
    experiments = [*built_in(), "c1-own", "e3-own", "nobody"]
    assert {name: cases.data_of(name) for name in experiments} == {
        name: data_of(name, SETTINGS) for name in experiments
    }


def test_what_the_settings_give_an_experiment_counts() -> None:
    specs = tuple(replace(spec, experiments=("e3",)) for spec in SETTINGS.data[:1])
    given = replace(SETTINGS, data=specs)
    assert RunCases(Lazy(lambda: given), cast("Any", None)).data_of("e3") == specs[0].name
