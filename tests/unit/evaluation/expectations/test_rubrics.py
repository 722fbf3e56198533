"""Files of rubrics: what they say, which version they are, and what is wrong with them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rag_harness.core.errors import SettingsError
from rag_harness.evaluation.expectations.rubrics import MOST_CRITERIA, Criterion, Rubric, read_rubrics, rubric_named

TONE = """
about = "How an answer sounds"
experiments = ["e3"]
criteria = ["does not blame the customer", {text = "names the next step", weight = 2, must = true}]

[[scales]]
text = "how easily it is understood"
levels = ["not", "on a second reading", "at first reading"]
"""


def read(folder: Path, text: str, name: str = "tone") -> Rubric:
    (folder / f"{name}.toml").write_text(text)
    return read_rubrics(folder)[name]


def test_a_rubric_has_criteria_and_scales(tmp_path: Path) -> None:
    rubric = read(tmp_path, TONE)
    assert rubric.criteria == (
        Criterion("does not blame the customer"),
        Criterion("names the next step", weight=2, must=True),
        Criterion("how easily it is understood", ("not", "on a second reading", "at first reading")),
    )
    assert (rubric.experiments, rubric.about) == (("e3",), "How an answer sounds")
    assert len(rubric.asked) == 2 + 2


def test_no_folder_is_no_rubric(tmp_path: Path) -> None:
    assert read_rubrics(tmp_path / "none") == {}


def test_its_version_is_that_of_what_is_asked_and_of_nothing_else(tmp_path: Path) -> None:
    first = read(tmp_path, TONE).version
    assert 0 < first < 2**31
    same = [TONE.replace("How an answer sounds", "Sound"), TONE.replace('["e3"]', "[]"), f"# more\n{TONE}"]
    assert {read(tmp_path, each).version for each in same} == {first}
    others = [
        TONE.replace("blame", "accuse"),
        TONE.replace("weight = 2", "weight = 3"),
        TONE.replace(", must = true", ""),
        TONE.replace('"not", ', ""),
        TONE.replace('"at first reading"', '"at once"'),
    ]
    assert len({first, *(read(tmp_path, each).version for each in others)}) == 1 + len(others)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("about = ?", "cannot be read: .*line 1"),
        ('criterion = ["x"]', "Unknown key 'criterion'. Did you mean 'criteria'"),
        ("", "it has no criterion"),
        ('criteria = "polite"', "criteria is 'polite': a list was expected"),
        ("criteria = [1]", r"criteria\[0\]: a text was expected"),
        ('criteria = [" "]', r"criteria\[0\]: a text was expected"),
        ('criteria = [{text = "x", wieght = 2}]', r"criteria\[0\]: Unknown key 'wieght'. Did you mean 'weight'"),
        ('criteria = [{text = "x", weight = 0}]', "weight is 0. Write a number above 0"),
        ('criteria = [{text = "x", weight = -1}]', "weight is -1. Write a number above 0"),
        ('criteria = [{text = "x", weight = nan}]', "weight is nan"),
        ('criteria = [{text = "x", weight = true}]', "weight is True"),
        ('criteria = [{text = "x", must = 1}]', "must is 1. Write true or false"),
        ('criteria = ["x", "y", "x"]', "'x' stands there twice"),
        (f'criteria = ["{"word " * 151}"]', "151 words; at most 150"),
        (f"criteria = {[str(n) for n in range(MOST_CRITERIA + 1)]}", f"{MOST_CRITERIA + 1} criteria; at most"),
        ('scales = [{text = "x", levels = ["a"]}]', "levels are 2 to 7 texts"),
        ('scales = [{text = "x", levels = ["a", "a"]}]', "two levels have one name"),
        ('scales = ["x"]', r"scales\[0\] is 'x': expected a table"),
        ('criteria = ["x"]\nexperiments = [3]', "experiments is"),
        ('criteria = ["x"]\nexperiments = "e3"', "a list was expected"),
    ],
)
def test_what_is_wrong_is_named_with_the_file_and_the_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SettingsError, match=rf"tone\.toml.*{said}"):
        read(tmp_path, text)


def test_a_file_whose_name_is_no_name(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="a rubric's name"):
        read(tmp_path, TONE, "my tone")


def test_a_name_that_is_no_rubric(tmp_path: Path) -> None:
    rubrics = {"tone": read(tmp_path, TONE)}
    with pytest.raises(SettingsError, match=re.escape("Unknown rubric 'tune'. Did you mean 'tone'?")):
        rubric_named("tune", rubrics, tmp_path)
    with pytest.raises(SettingsError, match="There is no rubric 'tune'"):
        rubric_named("tune", {}, tmp_path)
