from __future__ import annotations

from pathlib import Path

import pytest

from tests.by_file import OF_THE_STUDY, scope


def test_tests_of_a_file_stay_together_whatever_their_parameters() -> None:
    ids = (
        "tests/unit/core/work/test_once.py::test_one",
        "tests/unit/core/work/test_once.py::TestAll::test_two[a::b-tests/x.py]",
    )
    assert {scope(nodeid) for nodeid in ids} == {"tests/unit/core/work/test_once.py"}


@pytest.mark.parametrize("file", ["models/embedders/test_pieces.py", "evaluation/judges/encoder/test_encoder_judge.py"])
def test_files_that_load_torch_stay_together(file: str) -> None:
    assert scope(f"tests/unit/{file}::test_one") == scope("tests/unit/models/embedders/test_mock.py::test_two")


def test_files_that_look_at_the_replayed_study_stay_together() -> None:
    folder = Path(__file__).parents[1] / "plugin"
    files = {
        f"tests/plugin/{each.name}" for each in folder.glob("test_*.py") if "study: Path" in each.read_text("utf-8")
    }
    assert files == OF_THE_STUDY
