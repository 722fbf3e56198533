"""The simulated model: the shipped recording by it, and runs over somebody's own data."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from rag_harness.__main__ import main
from rag_harness.core.settings.profiles import EMBEDDED_URL
from rag_harness.models.simulated_model import FAULTS
from tests.plugin.conftest import Suite
from tests.plugin.study import ROOT, replay

# The recording by the simulated model: it replays, it is said to be simulated, and its page has its figures.

PAGE = ROOT / "docs/dev/results/simulated.md"
RATES = ROOT / "docs/reference/simulated.md"
NAME = "simulated/known-faults"
EXPERIMENTS = ("e1", "e4")
"""What the quick tests replay: the first of the funnel, and the last."""
# Benchmarks are scripts and no package: a type checker would meet the file under two names.
_script: Any = import_module("benchmarks.simulated_faults")


def replayed(folder: Path, experiments: Iterable[str], *more: str, python: str = "") -> Path:
    options = ("-c", str(ROOT / "simulated.ini"), "-m", " or ".join(experiments), *more)
    result = replay(folder, *options, f"--rag-report={folder / 'report.html'}", python=python)
    assert result.returncode == 0, result.stdout[-2000:]
    (folder / "said.txt").write_text(result.stdout)
    return folder


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory, started_python: str) -> Path:
    """A part of the study, with the measure that its gates look at; why trials failed is left to the whole."""
    part = ("-o", "rag_measures=factuality", "-o", "rag_attribute=false")
    return replayed(tmp_path_factory.mktemp("simulated"), EXPERIMENTS, *part, python=started_python)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Replay the study without torch, as the page says."""
    return replayed(tmp_path_factory.mktemp("whole"), ("e1", "e2", "e3", "e4"))


def check_said(folder: Path, trials: int) -> None:
    said = (folder / "said.txt").read_text()
    assert f"{trials} passed" in said
    assert "RecordingMissError" not in said
    assert re.search(r"passed +e4: factuality > e1 @95%", said)


@pytest.mark.long
def test_a_part_of_the_study_replays_and_its_gates_hold(simulated: Path) -> None:
    check_said(simulated, 400)


@pytest.mark.long
def test_the_study_of_the_simulated_model_replays_and_its_gates_hold(whole: Path) -> None:
    check_said(whole, 800)
    causes = [json.loads(line) for line in (whole / "out/causes.jsonl").read_text().splitlines()]
    again = {cause["limits"] for cause in causes if cause["experiment"] != "e1"}
    assert again == {""}, "failed trials are run again without a recording"


def test_it_is_said_to_be_simulated_wherever_its_figures_stand(simulated: Path) -> None:
    said, out = (simulated / "said.txt").read_text(), simulated / "out"
    assert said.startswith(f"rag: 400 trials, profile simulated, mode replay, answers by {NAME} (SIMULATED, ")
    assert f"by {NAME}, SIMULATED answers" in " ".join(said.split())
    assert json.loads((out / "summary.json").read_text())["profile"] == "simulated"
    assert json.loads((out / "run.json").read_text())["settings"]["chat_model"] == NAME
    rows = [json.loads(line) for line in (out / "e4_reasoning_rag.jsonl").read_text().splitlines()]
    assert {(row["model"], row["profile"], row["recorded_at"]) for row in rows} == {(NAME, "simulated", "")}
    for text in ((simulated / "report.html").read_text(), _report(simulated)):
        assert "The answers of e1, e4 are SIMULATED: " in text
        assert f"{NAME} (SIMULATED, with planted faults" in text.replace("\\", "")


def _report(simulated: Path) -> str:
    file = simulated / "report.md"
    assert main(["report", str(simulated / "out"), "-o", str(file)]) == 0
    return file.read_text(encoding="utf-8")


def page_lines() -> list[str]:
    return PAGE.read_text(encoding="utf-8").splitlines()


def test_the_page_has_what_this_code_plants_and_judges(simulated: Path) -> None:
    """The lines of the funnel, and the columns of the faults that were made and expected."""
    found = _script.truths(simulated / "out", ROOT / "data/kb/queries.jsonl")
    _, _, *funnel = _script.table(_script.funnel(found))
    assert len(funnel) == len(EXPERIMENTS)
    assert [line for line in funnel if line not in page_lines()] == []
    head, *rates = _script.rates(found)
    cells = [[cell.strip() for cell in line[1:-1].split("|")] for line in page_lines() if line.startswith("|")]
    (columns,) = [row for row in cells if row[:2] == head[:2]]
    shown = [[row[columns.index(name)] for name in head] for row in cells if len(row) == len(columns)]
    assert (len(rates), len(head)) == (len(FAULTS), 1 + 2 * len(EXPERIMENTS))
    assert [row for row in rates if row not in shown] == []


@pytest.mark.long
def test_the_page_has_the_recount_of_this_code(whole: Path) -> None:
    """``benchmarks/simulated_faults.py`` prints tables; each line of them stands on the page."""
    said = _script.report(whole / "out", ROOT / "data/kb/queries.jsonl")
    lines = [line for line in said if line.startswith("|")]
    assert len(lines) > 40
    assert not [line for line in lines if line not in page_lines()]


def test_the_page_has_the_rates_of_the_model() -> None:
    page = RATES.read_text(encoding="utf-8")
    for name, fault in FAULTS.items():
        assert f"| {name} | {fault.possible} | {fault.made} | {fault.rate:.0%} | {fault.reasoned:.0%} |" in page


def test_vectors_and_judgements_are_those_of_profile_embedded() -> None:
    """They are shared, and answers are computed: there is nothing to keep under the profile's own name."""
    assert not (ROOT / "cassettes/simulated").exists()


# The simulated model over somebody's own data: every mode may call it, and what it answers is said to be simulated.

PROFILE = (
    "[tool.rag_harness.profiles.sim]\n"
    f'chat_model = "{NAME}"\nchat_base_url = "{EMBEDDED_URL}"\nchat_api_key_env = ""\n'
    'embed_model = "mock/hashed-words"\nembed_base_url = ""\nrerank_model = "mock/word-overlap"\n'
    '[tool.rag_harness.profiles.sim.judge]\nmodel = "mock/word-overlap"\n'
)


@pytest.fixture
def own(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    monkeypatch.delenv("RAG_SECTIONS", raising=False)
    (suite.path / "pyproject.toml").write_text(PROFILE)
    return suite


@pytest.mark.parametrize(
    "mode",
    ["replay", "record", pytest.param("auto", marks=pytest.mark.long), pytest.param("live", marks=pytest.mark.long)],
)
def test_every_mode_may_call_it_and_none_records_it(own: Suite, mode: str) -> None:
    result = own.run("--rag-profile=sim", f"--rag-mode={mode}")
    result.assert_outcomes(passed=4)
    assert {row["model"] for row in own.rows()} == {NAME}
    result.stdout.no_fnmatch_line("*answers to ask for*")
    assert not list(own.path.glob("cassettes/**/*.yaml"))


def test_header_brief_quiet_lines_and_comment_say_that_it_is_simulated(own: Suite) -> None:
    result = own.run("--rag-profile=sim", "--rag-measures=faithfulness")
    result.stdout.fnmatch_lines(
        [
            f"rag: 4 trials, profile sim, mode auto, answers by {NAME} (SIMULATED, with planted faults, not an LLM)",
            f"*by {NAME}, SIMULATED?answers; judged by",
            "*mock/word-overlap, NOT?an?LLM",
        ]
    )
    own.run("--rag-profile=sim", "-q").stdout.fnmatch_lines(["rag      4 of 4 answered, 0 wrong (SIMULATED)*"])
    assert main(["report", "output", "-o", "report.md"]) == 0
    comment = (own.path / "report.md").read_text(encoding="utf-8")
    assert "The answers of e3 are SIMULATED: " in comment
    assert f"by {NAME} \\(SIMULATED" in comment or f"by {NAME} (SIMULATED" in comment
    assert json.loads((own.path / "output" / "run.json").read_text())["settings"]["chat_model"] == NAME


def test_another_seed_makes_other_faults(own: Suite) -> None:
    answers = set()
    for seed in (0, 3):  # most plant the same in as few as four answers
        own.set_table("profiles.sim.answer", seed=seed)
        own.run("--rag-profile=sim", "--rag-overwrite")
        answers.add(tuple(sorted(str(row["llm_answer"]) for row in own.rows())))
    assert len(answers) > 1


def test_repeats_are_asked_for_with_seeds_of_their_own(own: Suite) -> None:
    result = own.run("--rag-profile=sim", "--rag-repeats=2")
    result.stdout.fnmatch_lines(["e3: 2 answers to each query"])
    assert len(own.rows("derived/e3+repeat2")) == 4
