"""Panels of judges as a user sees them: own judges by entry points, no model."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from tests.plugin.conftest import Suite

MEASURES = "--rag-measures=faithfulness"
# Each judge gives one value to every claim. It says in a file that all processes share what it is asked.
JUDGES = """
from pathlib import Path

from rag_harness.errors import NotJudgedError
from rag_harness.judges.mock import MockOpinion
from rag_harness.measures.judged import Claim, Verdict, Verdicts

ASKED = Path(__file__).with_name("asked.txt")


class Says:
    revision = "1"

    def __init__(self, name, parts):
        self.name, self.model = name, parts.settings.judge_model or "plain"

    def opinion(self, material, asks):
        return Opinion(material, self)


class Opinion(MockOpinion):
    def __init__(self, material, judge):
        super().__init__(material)
        self._of = judge

    async def supported(self, claims, source):
        with ASKED.open("a") as stream:
            stream.write(f"{self._of.name} {self._of.model} {self._material.question}\\n")
        return Verdicts((Verdict(Claim(self._material.answer), self.value()),))

    def value(self):
        if self._of.name == "silent" and "lamp" in self._material.question:
            raise NotJudgedError("it is asleep")
        if self._of.name == "strict":
            return 0.0
        return 0.4 if self._of.model == "mild" else 1.0


def kind(parts):
    return Says("kind", parts)


def strict(parts):
    return Says("strict", parts)


def silent(parts):
    return Says("silent", parts)


def broken(parts):
    raise RuntimeError("no such judge here")


def same(parts):
    made = Says("same", parts)
    made.model = "one"
    return made
"""
NAMES = ("kind", "strict", "silent", "broken", "same")


@pytest.fixture
def panel(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    site = suite.path / "site"
    about = site / "own-1.0.dist-info"
    about.mkdir(parents=True)
    (site / "own_judges.py").write_text(JUDGES)
    points = "".join(f"{name} = own_judges:{name}\n" for name in NAMES)
    (about / "entry_points.txt").write_text(f"[rag_harness.judges]\n{points}")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
    monkeypatch.setenv("PYTHONPATH", str(site))
    return suite


def asked(suite: Suite) -> Counter[str]:
    """Return how often each judge was asked, by its name and model."""
    file = suite.path / "site" / "asked.txt"
    lines = file.read_text().splitlines() if file.exists() else []
    return Counter(" ".join(line.split(" ")[:2]) for line in lines)


def scores(suite: Suite) -> list[dict[str, Any]]:
    file = suite.path / "output" / "scores" / "e3_filtered_rag.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()]


def summary(suite: Suite) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((suite.path / "output" / "summary.json").read_text())
    return found


@pytest.mark.parametrize(("rule", "value"), [("majority", 1.0), ("mean", 0.8), ("calibrated", 0.8)])
def test_the_figure_of_a_panel_is_made_of_all_judges_whose_lines_stay_their_own(
    panel: Suite, rule: str, value: float
) -> None:
    result = panel.run(MEASURES, "--rag-judge=kind@plain,kind@mild,same", f"--rag-panel={rule}")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines([f"*judged by panel of 3 ({rule}): kind plain, kind mild, same one*"])
    assert {(line["judge"], line["model"]): line["value"] for line in scores(panel)} == {
        ("kind", "plain"): 1.0,
        ("kind", "mild"): 0.4,
        ("same", "one"): 1.0,
    }
    assert len(scores(panel)) == 12
    assert summary(panel)["e3"]["faithfulness"] == pytest.approx(value)
