"""Panels of judges as a user sees them: own judges by entry points, no model."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from rag_harness.__main__ import main
from tests.plugin.conftest import Suite

MEASURES = "--rag-measures=faithfulness"
# Each judge gives one value to every claim. It says in a file that all processes share what it is asked.
JUDGES = """
from pathlib import Path

from rag_harness.core.errors import NotJudgedError
from rag_harness.evaluation.judges.mock import MockOpinion
from rag_harness.evaluation.measures.judged import Claim, Verdict, Verdicts

ASKED = Path(__file__).with_name("asked.txt")


class Says:
    revision = fingerprint = "1"

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


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        pytest.param("majority", 1.0, marks=pytest.mark.long),
        ("mean", 0.8),
        pytest.param("median", 1.0, marks=pytest.mark.long),
    ],
)
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


def test_workers_ask_each_judge_once_and_a_second_run_asks_only_the_new_judge(panel: Suite) -> None:
    # xdist gives workers the path that Python had when xdist was imported, and a warm Python had another.
    panel.pytester.makeconftest("import sys\n\nimport xdist.plugin\n\nxdist.plugin._sys_path[:] = sys.path\n")
    panel.run(MEASURES, "--rag-judge=kind@plain,strict@plain", "--rag-panel=mean", "-n2").assert_outcomes(passed=4)
    assert asked(panel) == {"kind plain": 4, "strict plain": 4}
    again = panel.run(MEASURES, "--rag-judge=strict@plain,kind@mild,kind@plain", "--rag-panel=median")
    again.stdout.fnmatch_lines(["judged by panel of 3 (median): strict plain, kind mild, kind plain"])
    assert asked(panel) == {"kind plain": 4, "strict plain": 4, "kind mild": 4}
    assert summary(panel)["e3"]["faithfulness"] == pytest.approx(0.4)
    alone = panel.run(MEASURES, "--rag-judge=strict", "--rag-judge-model=plain")
    alone.stdout.fnmatch_lines(["judged by plain (method strict)"])
    assert summary(panel)["e3"]["faithfulness"] == 0
    assert "panels" not in summary(panel)
    assert "panel" not in json.loads((panel.path / "output" / "run.json").read_text())["suites"]["e3"]
    assert sum(asked(panel).values()) == 12


def test_a_silent_judge_is_named_and_its_answer_has_no_score_of_the_panel(panel: Suite) -> None:
    judges = "--rag-judge=kind@plain,silent@plain,strict@plain"
    result = panel.run("--rag-gate=e3: faithfulness >= 0.1", judges, "--rag-panel=majority")
    result.assert_outcomes(passed=4, failed=1)
    reason = "1 of the 3 judges of the panel is silent: silent plain: it is asleep"
    result.stdout.fnmatch_lines(
        [
            f"e3: faithfulness: 1 of 4 have no verdict: {reason[:50]}*",
            "e3 faithfulness: 3 of 4 answers by all 3 judges; silent plain is silent on 1; judges among each*",
            "failed      e3: faithfulness >= 0.1*",
            "*25.0% of 4 cases could not be measured*",
        ]
    )
    (found,) = summary(panel)["panels"]
    assert (found["cases"], found["judged"], found["silent"]) == (4, 3, {"silent plain": 1})
    panel.run("--rag-gate=e3: faithfulness >= 0.1", judges, "--rag-panel=majority")
    assert asked(panel) == {"kind plain": 4, "strict plain": 4, "silent plain": 5}, "only the silent one is asked again"


SEEN_BY_A_TEST = """
import pytest

@pytest.mark.e3
def test_scores(rag_result, rag_scores):
    score = rag_scores["faithfulness"]
    if "lamp" in rag_result.query:
        assert score.value is None and "silent plain: it is asleep" in score.reason
    else:
        assert score.value == 1.0
        assert score.detail["judges"] == {"kind plain": 1.0, "strict plain": 0.0, "silent plain": 1.0}
"""


def test_a_test_sees_the_score_of_the_panel(panel: Suite) -> None:
    for file in panel.path.glob("test_*.py"):
        file.write_text(SEEN_BY_A_TEST)
    result = panel.run("--rag-judge=kind@plain,strict@plain,silent@plain", "--rag-panel=majority")
    result.assert_outcomes(passed=4)


@pytest.mark.parametrize(
    ("judges", "rule", "said"),
    [
        ("kind,brokn", "mean", "*Unknown judge 'brokn'. Did you mean 'broken'?*"),
        pytest.param(
            "kind,strict",
            "",
            "*names 2 judges: say how they decide, --rag-panel=majority, mean or median*",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "kind",
            "mean",
            "*--rag-panel=mean is for several judges, and --rag-judge names one judge, kind*",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "kind@a,kind@a",
            "mean",
            "*names the same judge and model twice: kind@a*",
            marks=pytest.mark.long,
        ),
        ("kind,broken", "mean", "*The judge cannot be asked: RuntimeError: no such judge here*"),
        (
            "kind,same@a,same@b",
            "mean",
            "*two judges of the panel are the same one, same one*",
        ),
    ],
)
def test_what_is_no_panel_is_refused_before_anything_is_asked(panel: Suite, judges: str, rule: str, said: str) -> None:
    result = panel.run(MEASURES, f"--rag-judge={judges}", *([f"--rag-panel={rule}"] if rule else []))
    assert result.ret != 0
    assert result.parseoutcomes().get("passed", 0) == 0
    assert any(result.stdout.str().find(part) >= 0 or part in result.stderr.str() for part in [said.strip("*")])
    assert not asked(panel)
    assert not panel.rows()


def label(suite: Suite) -> None:
    labels = [("q_direct_001", 1), ("q_direct_002", 1), ("q_direct_003", 0)]
    lines = [json.dumps({"experiment": "e3", "query_id": query, "human": human}) for query, human in labels]
    (suite.path / "labels.jsonl").write_text("\n".join(lines))


@pytest.mark.parametrize(
    "rule",
    ["mean", pytest.param("median", marks=pytest.mark.long), pytest.param("majority", marks=pytest.mark.long)],
)
def test_people_correct_a_panel_and_say_what_it_is_worth(
    panel: Suite, rule: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(panel.path)
    judges = ["--rag-judge=kind@plain,kind@mild,strict@plain", f"--rag-panel={rule}"]
    gate = "--rag-gate=e3: faithfulness~calibrated >= 0.1"
    before = panel.run(gate, *judges)
    before.stdout.fnmatch_lines(
        [
            "*what they are worth is not known: no calibration of faithfulness*",
            "failed *",
            "*cannot be calibrated: no calibration of faithfulness*",
        ]
    )
    label(panel)
    assert main(["judge", "calibrate", "labels.jsonl"]) == 2
    assert "has scores of faithfulness by 3 judges" in capsys.readouterr().err
    for judge in ("kind@plain", "kind@mild", "strict"):
        assert main(["judge", "calibrate", "labels.jsonl", "--judge", judge]) == 0
    assert sorted(file.name for file in (panel.path / "judges").iterdir()) == [
        "kind-mild-faithfulness.json",
        "kind-plain-faithfulness.json",
        "strict-faithfulness.json",
    ]
    after = panel.run(gate, *judges)
    assert after.ret == 0
    after.stdout.fnmatch_lines(
        [
            "*on 3 labels: 3 judges are 1.0 independent votes (ρ of errors 1.00); accuracy of the panel *",
            "passed      e3: faithfulness~calibrated >= 0.1*",
            f"*calibrated on 3 labels, panel of 3 ({rule})*",
        ]
    )
    worth = summary(panel)["panels"][0]["worth"]
    assert (worth["n_eff"], worth["best"]) == (pytest.approx(1), "kind plain")
    assert worth["by_judge"] == {
        "kind plain": pytest.approx(2 / 3),
        "kind mild": pytest.approx(1 / 3),
        "strict plain": pytest.approx(1 / 3),
    }
    assert main(["report", "output", "-o", "report.html"]) == 0
    page = (panel.path / "report.html").read_text()
    assert "Panel of judges" in page
    assert f"panel of 3 ({rule})" in page


def test_other_judges_or_another_rule_are_not_compared(panel: Suite) -> None:
    judges = "--rag-judge=kind@plain,strict@plain"
    panel.run(MEASURES, judges, "--rag-panel=mean", "--rag-save=main").assert_outcomes(passed=4)
    other = panel.run(MEASURES, judges, "--rag-panel=majority", "--rag-compare=main")
    other.stdout.fnmatch_lines(["*are not compared: before was judged by panel of 2 (mean):*"])
    saved = json.loads((panel.path / "baselines" / "main.json").read_text())
    assert set(saved["panels"].values()) == {"mean"}


def test_a_judge_of_a_panel_that_is_asked_again_gives_the_panel_again(panel: Suite) -> None:
    result = panel.run(MEASURES, "--rag-judge=kind@plain,strict@plain", "--rag-panel=mean", "--rag-judge-repeats=2")
    result.stdout.fnmatch_lines(["faithfulness: judged again: 0.0% of verdicts flip*n=4"])
    assert asked(panel) == {"kind plain": 12, "strict plain": 12}


def test_a_killed_run_asks_no_judge_again_what_all_judges_have_said(panel: Suite) -> None:
    own = panel.path / "site" / "own_judges.py"
    whole = own.read_text()
    # Not before the scores of the three answers before it, of both judges, are on the disk.
    end = """        if self._of.name == "strict" and len(ASKED.read_text().splitlines()) == 8:
            import asyncio, os
            kept = lambda: sum(file.read_bytes().count(b'"measure"') for file in Path("output/journal").iterdir())
            for _ in range(600):
                await asyncio.sleep(0.05 if kept() < 6 else 0)
            os.kill(os.getpid(), 9)
        return Verdicts("""
    own.write_text(whole.replace("        return Verdicts(", end, 1))
    options = [MEASURES, "--rag-judge=kind@plain,strict@plain", "--rag-panel=mean", "--rag-concurrency=1"]
    assert panel.run(*options).ret == -9
    assert asked(panel) == {"kind plain": 4, "strict plain": 4}
    own.write_text(whole)
    panel.run(*options).assert_outcomes(passed=4)
    assert len(scores(panel)) == 8
    # Only the answer that was being judged when the run was killed is judged again.
    assert asked(panel) == {"kind plain": 5, "strict plain": 5}


def test_without_a_fingerprint_a_judge_of_ones_own_judges_in_each_run(panel: Suite) -> None:
    judges = panel.path / "site" / "own_judges.py"
    judges.write_text(judges.read_text().replace("revision = fingerprint =", "revision ="))
    for n in (4, 8):
        panel.run(MEASURES, "--rag-judge=kind", "--rag-judge-model=plain").assert_outcomes(passed=4)
        assert asked(panel) == {"kind plain": n}
    judges.write_text(judges.read_text().replace("else 1.0", "else 0.25"))
    panel.run(MEASURES, "--rag-judge=kind", "--rag-judge-model=plain")
    assert summary(panel)["e3"]["faithfulness"] == 0.25
