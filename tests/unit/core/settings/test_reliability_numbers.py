"""Thresholds and weights of the reliability engine: from pyproject.toml and options, and what is refused."""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from functools import reduce
from operator import add
from pathlib import Path

import pytest

from rag_harness.core.errors import SettingsError
from rag_harness.core.settings.configurations import NORMAL, STRICT, USUAL, ReliabilityNumbers, reliability_numbers
from rag_harness.core.settings.loading import load_settings

TABLE = """
[tool.rag_harness.reliability]
thresholds = { passed = 0.65, warned = 0.3 }
strict.passed = 0.9
weights = { relevance = 0.7, margin = 0.1, coverage = 0.2, dispersion = 0 }
formula = { alpha = 1, beta = 0.0 }
"""

DOCS = Path(__file__).parents[4] / "docs"


def read(root: Path, table: str = "") -> object:
    (root / "pyproject.toml").write_text(table, encoding="utf-8")
    return load_settings(rootdir=root).reliability_numbers


def test_a_suite_that_sets_none_has_none(tmp_path: Path) -> None:
    assert read(tmp_path) is None
    assert reliability_numbers(tmp_path / "no such folder") is None


def test_a_table_replaces_what_it_names_and_leaves_the_rest(tmp_path: Path) -> None:
    assert read(tmp_path, TABLE) == ReliabilityNumbers(
        replace(NORMAL, passed=0.65, warned=0.3),
        replace(STRICT, passed=0.9),
        replace(USUAL.weights, relevance=0.7, margin=0.1, coverage=0.2, dispersion=0.0),
        replace(USUAL.formula, alpha=1.0, beta=0.0),
    )


@pytest.mark.parametrize(
    ("inside", "said"),
    [
        ("threshold.passed = 0.7", "Unknown key 'threshold'. Did you mean 'thresholds'?"),
        ("thresholds.pased = 0.7", ".thresholds]: Unknown key 'pased'. Did you mean 'passed'?"),
        ("strict.go-on = 0.7", ".strict]: Unknown key 'go-on'. Did you mean 'go_on'?"),
        ("weights.relevence = 0.4", "Unknown key 'relevence'. Did you mean 'relevance'?"),
        ("thresholds = 0.7", ".thresholds] is 0.7: expected a table of numbers."),
        ("thresholds.passed = 1.4", "passed is 1.4: expected a number from 0 to 1."),
        ("thresholds.passed = -0.1", "passed is -0.1: expected a number from 0 to 1."),
        ("thresholds.passed = nan", "passed is nan: expected a number from 0 to 1."),
        ("thresholds.passed = true", "passed is True: expected a number from 0 to 1."),
        ("thresholds.passed = '0.7'", "passed is '0.7': expected a number from 0 to 1."),
        (
            "weights.relevance = 0.5",
            "the sum of relevance 0.5, margin 0.2, coverage 0.2, dispersion 0.2 is 1.1, but must be 1.",
        ),
        ("formula.alpha = 0.6", "the sum of alpha 0.6, beta 0.5 is 1.1, but must be 1."),
        ("thresholds.warned = 0.61", "in thresholds, warned 0.61 is more than passed 0.6."),
        ("strict.fallback = 0.66", "in strict, fallback 0.66 is more than go_on 0.65."),
        ("thresholds.passed = 0.75", "passed is 0.75, but strict.passed is 0.7: mode strict may not ask for less."),
    ],
)
def test_a_table_that_cannot_be_used_is_refused(tmp_path: Path, inside: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read(tmp_path, f"[tool.rag_harness.reliability]\n{inside}\n")
    assert said in str(caught.value)


def test_weights_that_are_no_exact_floats_have_the_sum_1(tmp_path: Path) -> None:
    weights = {"relevance": 0.7, "margin": 0.2, "coverage": 0.1, "dispersion": 0}
    assert reduce(add, weights.values()) != 1  # sum() is exact since Python 3.12
    lines = "\n".join(f"{name} = {value}" for name, value in weights.items())
    assert read(tmp_path, f"[tool.rag_harness.reliability.weights]\n{lines}\n") is not None


def test_the_numbers_as_shipped() -> None:
    """A calibration names the numbers of a suite only where they are others. So who changes these, calibrates anew."""
    assert asdict(USUAL) == {
        "thresholds": {
            **{"go_on": 0.55, "fallback": 0.35, "relevance": 0.35, "coverage": 0.5, "grounded": 0.7},
            **{"claim": 0.5, "agreement": 0.5, "passed": 0.6, "warned": 0.2},
        },
        "strict": {
            **{"go_on": 0.65, "fallback": 0.45, "relevance": 0.5, "coverage": 0.6, "grounded": 0.8},
            **{"claim": 0.6, "agreement": 0.7, "passed": 0.7, "warned": 0.4},
        },
        "weights": {"relevance": 0.4, "margin": 0.2, "coverage": 0.2, "dispersion": 0.2},
        "formula": {"alpha": 0.5, "beta": 0.5, "gamma": 0.5},
    }


def test_the_table_of_the_page_is_read(tmp_path: Path) -> None:
    (shown,) = re.findall(r"```toml\n(.*?)```", (DOCS / "how-to" / "reliability.md").read_text(encoding="utf-8"), re.S)
    found = read(tmp_path, shown)
    assert isinstance(found, ReliabilityNumbers)
    assert (found.thresholds.passed, found.strict.passed, found.formula.beta) == (0.65, 0.8, 0.4)


def test_the_reference_has_every_threshold_with_its_default() -> None:
    page = (DOCS / "reference" / "reliability.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`\w+`, `\w+`|`\w+`) \| ([\d., ]+) \| ([\d., ]+) \|", page, re.M)
    told: dict[str, tuple[float, float]] = {}
    for names, normal, strict in rows:
        values = zip(map(float, normal.split(",")), map(float, strict.split(",")), strict=True)
        told |= dict(zip(re.findall(r"\w+", names), values, strict=True))
    strict_ones = asdict(STRICT)
    assert told == {name: (value, strict_ones[name]) for name, value in asdict(NORMAL).items()}
