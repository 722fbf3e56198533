"""Judges of a project as a user sees them: by rules, and by a model of role judge."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import Suite
from tests.unit.server import refusal, serving

JUDGES = """
from rag_harness.evaluation.judges.mock import MockOpinion


class Rules:
    name, model, revision = "rules", "house-rules", "1"
    asks_model, deterministic, reads_conversation = False, True, False

    def opinion(self, material, asks):
        return MockOpinion(material)


class Asks(Rules):
    name, asks_model = "asks", True

    def __init__(self, parts):
        self.chat = parts.chat("judge")
        self.model = self.chat.model

    def opinion(self, material, asks):
        return Asked(material, self.chat)


class Asked(MockOpinion):
    def __init__(self, material, chat):
        super().__init__(material)
        self.chat = chat

    async def supported(self, claims, source):
        from rag_harness.core.types import Message

        await self.chat.complete([Message("user", self._material.answer)])
        return await super().supported(claims, source)


def rules(parts):
    return Rules()


def asks(parts):
    return Asks(parts)
"""


@pytest.fixture
def own(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    about = suite.path / "site" / "own-1.0.dist-info"
    about.mkdir(parents=True)
    (suite.path / "site" / "own_judges.py").write_text(JUDGES)
    (about / "entry_points.txt").write_text("[rag_harness.judges]\nrules = own_judges:rules\nasks = own_judges:asks\n")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
    monkeypatch.setenv("PYTHONPATH", str(suite.path / "site"))
    return suite


def test_a_judge_by_rules_is_no_llm_and_needs_no_key(own: Suite) -> None:
    own.set_table("profiles.mock.judge", base_url="https://models.example/v1")
    more = ("--rag-judge=rules", "--rag-judge-model=gpt-x")
    result = own.run("--rag-measures=faithfulness", *more, "--rag-mode=live")
    result.assert_outcomes(passed=4)
    said = "judged by house-rules (method rules, no LLM)"
    result.stdout.fnmatch_lines([f"rag: {said}", said])


def test_a_judge_that_asks_a_model_is_checked_before_it_is_paid_for(own: Suite) -> None:
    judged = ("--rag-measures=faithfulness", "--rag-judge=asks", "--rag-judge-model=gpt-x", "--rag-mode=live")
    own.set_table("profiles.mock.judge", base_url="https://models.example/v1")
    result = own.run(*judged)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*RAG_JUDGE_API_KEY is not set: mode live judges with gpt-x at https://models.example*"]
    )
    with serving(refusal(401, "no such key")) as server:
        own.set_table("profiles.mock.judge", base_url=server.url)
        refused = own.run(*judged)
        assert len(server.requests) == 1
    assert "The judge cannot be asked: " in refused.stdout.str()
