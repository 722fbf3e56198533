"""What a race writes is read back as it was, whatever texts are in it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_harness.core.errors import SettingsError
from rag_harness.core.settings import Settings
from rag_harness.core.settings.configurations import ConfigurationSpec, ParameterValue, read_configuration
from rag_harness.diagnosis.tuning.outcome import Entry, RaceFigure, RaceOutcome
from rag_harness.diagnosis.tuning.trials import Contender
from rag_harness.diagnosis.tuning.tuner import check_tuned, write_tuned

FIGURE = RaceFigure(0.5, 0.4, 0.6, 10)
OUTCOME = RaceOutcome(
    space="space.toml",
    objective=("evidence_recall",),
    better="higher",
    began={},
    by="",
    questions=(10, 10),
    groups=(10, 10),
    asks_answers=False,
    ended="the budget is spent",
    asked=10,
    calls=10,
    grid=10,
    margin=0.0,
    confidence=0.95,
    entries=(Entry("tune+1", "title", {}, {"evidence_recall": FIGURE}, 10.0),),
    winner="tune+1",
    today="tune+1",
    held_out=None,
    looks=(),
    needed=0,
    seen=0.05,
    left_out={},
)
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
_VALUES = _TEXTS | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.booleans()
_PLACES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@settings(max_examples=50)
@given(values=st.dictionaries(_PLACES.map("body.{}".format), _VALUES, max_size=4), said=_TEXTS)
def test_values_are_read_back_whatever_they_are(
    tmp_path_factory: pytest.TempPathFactory, values: dict[str, ParameterValue], said: str
) -> None:
    file = tmp_path_factory.mktemp("tuned") / "mine.toml"
    spec = ConfigurationSpec("tune+1", tuple(sorted(values.items())), "my_service")
    outcome = replace(OUTCOME, space=said, entries=(replace(OUTCOME.entries[0], title=said),))
    write_tuned(file, outcome, Contender(spec, {"top_k": 5}, said))
    read = read_configuration(file)
    assert read == ConfigurationSpec("mine", spec.values, "my_service", str(file))
    assert all(type(read.by_name[name]) is type(value) for name, value in values.items())


def test_the_own_pipeline_is_read_back(tmp_path: Path) -> None:
    values: dict[str, ParameterValue] = {
        "top_k": 3,
        "rerank": False,
        "temperature": 1e-7,
        "chat_model": 'a"b\\c',
        "retriever": "hybrid",
    }
    write_tuned(tmp_path / "mine.toml", OUTCOME, Contender(ConfigurationSpec("tune+1"), values, "t"))
    assert read_configuration(tmp_path / "mine.toml").by_name == values


@pytest.mark.parametrize(
    ("name", "why"), [("e3.toml", "'e3' is the name of an experiment"), ("my file.toml", "is no name for an exp")]
)
def test_a_name_that_no_experiment_can_have_is_refused_before_the_race(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(SettingsError, match=why):
        check_tuned(tmp_path / name, Settings())
    with pytest.raises(SettingsError, match="is a folder"):
        check_tuned(tmp_path, Settings())
