"""Gates that others have replaced, gates that cannot fail: the run, its files and its comment say so."""

from __future__ import annotations

import json
import re

import pytest

from rag_harness.page.comment import comment_of
from tests.plugin.conftest import Suite
from tests.unit.page.runs import read

INI = "[pytest]\naddopts = -p no:cacheprovider\nrag_kb_dir = kb\nrag_profile = mock\nrag_gate =\n"
STRICT, LAX = "e3: recall@5 >= 0.75", "e3: recall@5 >= 0.0"
SAID = f"gate replaced: {STRICT}, by e3: recall@5 >= 0 (a later one on the same)"


def brief(suite: Suite, monkeypatch: pytest.MonkeyPatch, *args: str) -> str:
    """Run the suite, and return its output as a user sees it, without the breaks of lines."""
    monkeypatch.delenv("RAG_SECTIONS", raising=False)
    result = suite.run(*args)
    assert result.ret == 0
    return " ".join(result.stdout.str().split())


def kept(suite: Suite) -> object:
    return json.loads((suite.path / "output" / "summary.json").read_text()).get("replaced")


@pytest.mark.parametrize(
    ("gates", "args"),
    [pytest.param((STRICT, LAX), (), marks=pytest.mark.long), ((STRICT,), (f"--rag-gate={LAX}",))],
)
def test_a_stricter_gate_does_not_go_without_a_word(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, gates: tuple[str, ...], args: tuple[str, ...]
) -> None:
    suite.pytester.makeini(INI + "".join(f"    {gate}\n" for gate in gates))
    coloured = brief(suite, monkeypatch, *args, "--color=yes")
    assert "\x1b[33mnote gate replaced" in coloured
    said = " ".join(re.sub(r"\x1b\[\d{1,3}m", "", coloured).split())
    assert f"note {SAID}" in said
    assert "note cannot fail: e3: recall@5 >= 0, which every value meets" in said
    assert kept(suite) == [SAID]
    assert r"Gate replaced: e3: recall@5 \>= 0.75, by" in comment_of(read(suite.path / "output"))


def test_beside_the_gates_it_stands_too(suite: Suite) -> None:
    suite.pytester.makeini(f"{INI}    {STRICT}\n    {LAX}\n")
    result = suite.run("--rag-sections=gates")
    result.stdout.fnmatch_lines(["passed *e3: recall@5 >= 0 *", SAID, "cannot fail: e3: recall@5 >= 0, *"])


@pytest.mark.parametrize("place", [pytest.param("environment", marks=pytest.mark.long), ".env"])
def test_gates_of_the_environment_say_which_they_replace(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    suite.pytester.makeini(f"{INI}    {STRICT}\n    e3: mrr@5 >= 0.5\n    e3: error_rate <= 0\n")
    if place == ".env":
        (suite.path / ".env").write_text("RAG_GATE=e3: mrr@5 >= 0.1\n")
    else:
        monkeypatch.setenv("RAG_GATE", "e3: mrr@5 >= 0.1")
    said = "RAG_GATE replaces the 3 gates of tox.ini"
    assert f"note {said}" in brief(suite, monkeypatch)
    assert kept(suite) == [said]


def test_where_nothing_is_replaced_nothing_is_said(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.pytester.makeini(f"{INI}    {STRICT}\n")
    said = brief(suite, monkeypatch, "--rag-gate=e3: mrr@5 >= 0.1", f"--rag-gate={STRICT}")
    assert "gate replaced" not in said
    assert "RAG_GATE" not in said
    assert "cannot fail" not in said
    assert kept(suite) is None


@pytest.mark.long
def test_a_cutoff_with_a_zero_in_front_is_refused_before_anything_is_asked(suite: Suite) -> None:
    result = suite.run("--rag-gate=e3: recall@03 >= 0.0")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*recall@03: write recall@3.*"])
    assert suite.rows() == []
