"""The simulated model over somebody's own data: every mode may call it, and what it answers is said to be simulated."""

from __future__ import annotations

import json

import pytest

from rag_harness.__main__ import main
from rag_harness.core.settings.profiles import EMBEDDED_URL
from tests.plugin.conftest import Suite

NAME = "simulated/known-faults"
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
