"""Which experiments are judged and checked, and on what, by options and gates."""

from __future__ import annotations

from typing import Any

import pytest

from rag_harness.core.errors import PrerequisiteError, SettingsError
from rag_harness.core.settings import Settings
from rag_harness.core.types import GOLDEN
from rag_harness.evaluation.measures import Measure, measure_named
from rag_harness.evaluation.measures.metamorphic import METAMORPHIC
from rag_harness.tables.requested_measures import WantedMeasures


def wanted(**options: Any) -> WantedMeasures:
    return WantedMeasures(lambda: Settings(**options), lambda _: [])


def measures(of: WantedMeasures, experiment: str, *names: str) -> list[str]:
    return [measure.name for measure in of.judged_measures(experiment, names)]


def test_nothing_is_judged_where_nothing_is_named() -> None:
    assert (measures(wanted(), "e2"), list(wanted().judged_names("e2"))) == ([], [])


def test_what_options_name_is_judged_of_every_experiment_and_never_of_the_golden_suite() -> None:
    asked = wanted(measures=("faithfulness, hri", "recall@5"))
    assert measures(asked, "e2") == measures(asked, "e3") == ["faithfulness", "answer_relevancy"]
    assert list(asked.judged_names("e2")) == ["faithfulness", "answer_relevancy", "hri"]
    assert (measures(asked, GOLDEN), list(asked.judged_names(GOLDEN))) == ([], [])
    assert measures(asked, GOLDEN, "faithfulness") == []


def test_what_a_gate_names_is_judged_of_its_experiments() -> None:
    asked = wanted(gate=("e3: faithfulness >= e2", "e4: hri <= 0.2"))
    assert measures(asked, "e2") == measures(asked, "e3") == ["faithfulness"]
    assert measures(asked, "e4") == ["faithfulness", "answer_relevancy"]
    assert measures(asked, "e1") == []


def test_names_that_a_test_asks_for_stand_for_those_of_the_run() -> None:
    asked = wanted(measures=("faithfulness",))
    assert measures(asked, "e2", "g_mean") == ["context_precision", "faithfulness", "answer_relevancy"]
    assert measures(asked, "e2", "recall@5") == []


def test_names_are_looked_up_once_for_an_experiment_and_not_for_every_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[str] = []

    def named(name: str) -> Measure:
        looked_up.append(name)
        return measure_named(name)

    monkeypatch.setattr("rag_harness.evaluation.measures.names.measure_named", named)
    asked = wanted(measures=("faithfulness",), gate=("e3: factuality >= 0.2",))
    assert measures(asked, "e2") == list(asked.judged_names("e2")) == ["faithfulness"]
    once = len(looked_up)
    assert measures(asked, "e2") == ["faithfulness"]
    assert list(asked.judged_names("e2")) == ["faithfulness"]
    assert len(looked_up) == once
    assert measures(asked, "e3") == ["faithfulness", "factuality"]  # each experiment has its own


def test_a_slip_is_said_before_anything_runs() -> None:
    with pytest.raises(SettingsError, match="Did you mean 'faithfulness'"):
        wanted(measures=("faithfullness",)).check_judge([])
    with pytest.raises(SettingsError, match="Did you mean 'faithfulness'"):
        wanted(gate=("e4: faithfullness >= 0.2",)).check_judge(["e1"])


def test_a_judge_that_is_not_there_is_refused_only_where_it_is_asked() -> None:
    asked = wanted(gate=("e4: faithfulness >= 0.2",), judge="nobody")
    asked.check_judge(["e1", GOLDEN])
    with pytest.raises(PrerequisiteError, match="nobody"):
        asked.check_judge(["e4"])


def test_checks_are_those_named_and_all_where_they_are_asked_for() -> None:
    named = wanted(measures=("metamorphic_typos",), gate=("e3: metamorphic_case >= 0.9",))
    assert named.metamorphic_measures("e2") == ["metamorphic_typos"]
    assert named.metamorphic_measures("e3") == ["metamorphic_case", "metamorphic_typos"]
    every = wanted(metamorphic=True).metamorphic_measures("e2")
    assert every == [name for name in METAMORPHIC if name != "metamorphic_paraphrase"]
    assert wanted(metamorphic=True, writer_model="a/b").metamorphic_measures("e2") == list(METAMORPHIC)


def test_the_headline_is_judged_and_names_measures_alone() -> None:
    assert list(wanted(headline=("factuality, recall@5",)).judged_names("e2")) == ["factuality"]
    with pytest.raises(SettingsError, match="'factuality'"):
        wanted(headline=("factualty",)).check_judge([])
    with pytest.raises(SettingsError, match=r"rag_headline names measures, .* found 'e9: hri'. Write 'hri'."):
        wanted(headline=("e9: hri",)).check_judge([])
