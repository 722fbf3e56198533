"""Spaces that are read, and those that are refused with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_harness.core.errors import SettingsError
from rag_harness.diagnosis.tuning.space import read_space

BEGIN = 'objective = "evidence_recall"\n'
MANY = ", ".join(map(str, range(1, 51)))
BAD = {
    BEGIN: "there is nothing to try",
    f"{BEGIN}[parameters]\n": "there is nothing to try",
    f"{BEGIN}[parameters]\ntop_k = []\n": "top_k has no values",
    f"{BEGIN}[parameters]\ntop_k = [{MANY}]\ncandidates = [{MANY}]\n": "more than 2,000 configurations",
    f"{BEGIN}[parameters]\ntop_kk = [1, 2]\n": "Unknown parameter 'top_kk'. Did you mean 'top_k'?",
    f'{BEGIN}[parameters]\ntop_k = ["1"]\n': "top_k is '1': Input should be a valid integer",
    f"{BEGIN}[parameters]\ntop_k = [true]\n": "top_k is True",
    f"{BEGIN}[parameters]\ntemperature = [nan]\n": "temperature is nan",
    f'{BEGIN}[parameters]\nretriever = ["dens"]\n': "Unknown retriever 'dens'. Did you mean 'dense'?",
    f"{BEGIN}[parameters]\ndense_weight = [1.5]\n": "expected a number from 0 to 1",
    f'{BEGIN}experiment = "e3"\n[parameters]\nprofile = ["mock"]\n': "Unknown parameter 'profile'",
    f"{BEGIN}[parameters]\ntop_k = {{ values = [1, 2], if = {{ rerankk = true }} }}\n": "rerankk",
    f"{BEGIN}[parameters]\ntop_k = {{ values = [1, 2], if = {{ rerank = true }} }}\n": "Unknown parameter 'rerank'",
    f"{BEGIN}[parameters]\nrerank = false\ntop_k = {{ values = [1], if = {{ rerank = true }} }}\n": (
        "rerank never is True, so top_k would never be tried"
    ),
    f"{BEGIN}[parameters]\ntop_k = {{ values = [1], if = {{ candidates = 5 }} }}\n"
    "candidates = { values = [5], if = { top_k = 1 } }\n": "conditions of top_k, candidates go round in a circle",
    "[parameters]\ntop_k = [1, 2]\n": "there is no objective",
    'objective = "evidence_recal"\n[parameters]\ntop_k = [1, 2]\n': "Did you mean 'evidence_recall'",
    'objective = "total_ms"\n[parameters]\ntop_k = [1, 2]\n': "whose values have no lowest and highest",
    f'{BEGIN}constraints = ["cost_usd"]\n[parameters]\ntop_k = [1, 2]\n': "constraint 'cost_usd'",
    f'{BEGIN}constraints = "cost_usd <= 1"\n[parameters]\ntop_k = [1, 2]\n': "expected a list of texts",
    f'{BEGIN}[[start]]\nname = "a"\n[[start]]\nname = "a"\n': "two configurations are called 'a'",
    f'{BEGIN}[[start]]\nname = "today"\n': "two configurations are called 'today'",
    f"{BEGIN}[[start]]\nname = 3\n": "3 is no name for an experiment",
    f"{BEGIN}seed = true\n": "expected a whole number",
    f"{BEGIN}held_out = nan\n": "expected a number from 0.1 to 0.9",
    f"{BEGIN}[parameters\n": "is no TOML",
    "\x00": "is no TOML",
}


@pytest.mark.parametrize("text", BAD, ids=[f"{n}" for n in range(len(BAD))])
def test_a_space_that_cannot_be_used_says_why(tmp_path: Path, text: str) -> None:
    file = tmp_path / "space.toml"
    file.write_text(text)
    with pytest.raises(SettingsError) as raised:
        read_space(file)
    assert BAD[text] in str(raised.value)
    assert str(file) in str(raised.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"gone\.toml cannot be read: No such file"):
        read_space(tmp_path / "gone.toml")


def test_a_parameter_counts_only_where_its_condition_does(tmp_path: Path) -> None:
    """A condition on a parameter that has no value itself does not hold."""
    file = tmp_path / "space.toml"
    file.write_text(
        f"{BEGIN}[parameters]\nrerank_model = {{ values = ['a', 'b'], if = {{ candidates = 20 }} }}\n"
        "candidates = { values = [10, 20], if = { rerank = true } }\nrerank = [true, false]\n"
    )
    found = list(read_space(file).combinations())
    assert len(found) == 4
    assert {"rerank": False} in found
    assert {"rerank": True, "candidates": 10} in found


def test_conditions_make_a_large_space_small_enough(tmp_path: Path) -> None:
    file = tmp_path / "space.toml"
    condition = "if = { top_k = 1 }"
    file.write_text(f"{BEGIN}[parameters]\ntop_k = [{MANY}]\ncandidates = {{ values = [{MANY}], {condition} }}\n")
    assert len(list(read_space(file).combinations())) == 99
