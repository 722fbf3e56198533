"""YAML of other tools is read as YAML 1.2, with lines, and cannot blow up."""

from __future__ import annotations

import time

import pytest

from rag_harness.core.errors import DataError
from rag_harness.data.record_files import read_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("12:30", "12:30"),
        ("2024-03-01", "2024-03-01"),
        ("1_000", "1_000"),
        ("010", "010"),
        ("0x1f", "0x1f"),
        ("82,959 million", "82,959 million"),
        ("true", True),
        ("False", False),
        ("42", 42),
        ("-1", -1),
        ("0.8", 0.8),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("~", None),
        ("null", None),
        ("", None),
        ("''", ""),
        ("{a: {<<: {b: 1}, c: 2}}", {"a": {"b": 1, "c": 2}}),
        ("a:", {"a": None}),
    ],
)
def test_a_value_is_what_yaml_1_2_says(text: str, value: object) -> None:
    assert read_yaml(text, "c.yaml").value == value


def test_lines_of_parts_are_known() -> None:
    found = read_yaml("prompts:\n  - a\ntests:\n  - vars: {q: 1}\n\n  - vars:\n      q: 2\n", "c.yaml")
    assert [found.line_of("tests", n) for n in (0, 1)] == [4, 6]
    assert found.line_of("tests", 1, "vars", "q") == 7
    assert found.line_of("nothing") == 1


LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)
MERGES = "a0: &a0 {x0: 1}\n" + "".join(
    f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}], x{n}: 1}}\n" for n in range(1, 12)
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LAUGHS, "c.yaml: its aliases stand for more than"),
        (MERGES, "c.yaml: its aliases stand for more than"),
        ("a: &a [*a]", "c.yaml: its aliases stand for more than"),
        ("[" * 50_000, "c.yaml:1: "),  # libyaml has a limit of its own, and versions of it differ
        ("- " * 2_000 + "x", "c.yaml:1: "),
        ("[" * 200, "c.yaml:1: nested deeper than 100 levels."),
        ("a: 1\nb: [\n", "c.yaml:3: no YAML"),
        ("a: !!python/object/apply:os.system [ls]", "c.yaml:1: no YAML: could not determine a constructor"),
        ("a: 1\n---\nb: 2\n", "c.yaml:2: no YAML: but found another document"),
        ("? {a: 1}\n: 2", "c.yaml:1: no YAML: found unhashable key"),
    ],
)
def test_what_cannot_be_meant_is_named_soon(text: str, said: str) -> None:
    begun = time.process_time()
    with pytest.raises(DataError) as caught:
        read_yaml(text, "c.yaml")
    assert str(caught.value).startswith(said)
    assert time.process_time() - begun < 2
