"""How many workers a run starts whose tests wait for models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest

from rag_harness.core.settings import Settings
from rag_harness.core.settings.profiles import EMBEDDED_URL
from rag_harness.frontends.pytest_plugin import needed_workers
from rag_harness.frontends.pytest_plugin.needed_workers import asks_shipped_alone, limit_waiting

LIVE = replace(
    Settings(mode="live", chat_base_url="http://models.test/v1", concurrency=16), rerank_model="mock/word-overlap"
)
TRIALS = """
@pytest.mark.e3
def test_answers(rag_result):
    assert rag_result.ok

class TestMore:
    async def test_found(self, tmp_path, rag_retrieval):
        pass
"""


def configured(folder: Path, plugins: tuple[object, ...] = (), **options: Any) -> pytest.Config:
    known = {"tx": ["popen"] * 4, "dist": "load", "numprocesses": 4, "markexpr": "", **options}
    ini = {"python_functions": ["test"], "python_files": ["test_*.py"], "norecursedirs": [".*", "venv"]}
    option = SimpleNamespace(**known)
    config = SimpleNamespace(
        option=option,
        args=[str(folder)],
        getoption=lambda name, _=None: getattr(option, name),
        getini=ini.__getitem__,
        invocation_params=SimpleNamespace(dir=folder),
        pluginmanager=SimpleNamespace(get_plugins=lambda: plugins),
    )
    return cast("pytest.Config", config)


@pytest.mark.parametrize(
    ("specs", "concurrency", "left"),
    [
        (["popen"] * 4, 16, []),
        (["popen"] * 4, 64, []),
        (["popen"] * 4, 65, ["popen"] * 2),
        (["popen"] * 2, 200, ["popen"] * 2),
        (["popen"], 16, ["popen"]),  # one worker is asked for because it may die
        (["popen", "ssh=far"], 16, ["popen", "ssh=far"]),
        (["4*popen"], 16, ["4*popen"]),
        ([], 16, []),
    ],
)
def test_no_more_workers_than_have_all_calls_in_flight(
    specs: list[str], concurrency: int, left: list[str], tmp_path: Path
) -> None:
    config = configured(tmp_path, tx=specs, markexpr="e3 or e1")
    said = limit_waiting(config, replace(LIVE, concurrency=concurrency))
    assert config.option.tx == left
    assert config.option.dist == ("no" if specs and not left else "load")
    assert bool(said) is (specs != left)
    assert not said or said.startswith(f"rag: -n {len(specs)} starts {len(left) or 'no worker'} here: ")


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        (replace(LIVE, engine="ray"), {}),  # which says itself that it has workers of its own
        (replace(LIVE, chat_base_url=EMBEDDED_URL), {}),
        (replace(LIVE, rerank_model="cross-encoder/ms-marco-MiniLM-L-6-v2"), {}),
        (LIVE, {"dist": "each"}),
        (LIVE, {"markexpr": "not e3"}),
        (LIVE, {"markexpr": "e3 or slow"}),
        (LIVE, {"markexpr": ""}),
    ],
)
def test_others_get_the_workers_that_were_asked_for(settings: Settings, options: Any, tmp_path: Path) -> None:
    config = configured(tmp_path, **{"markexpr": "e3", **options})
    assert limit_waiting(config, settings) == ""
    assert config.option.tx == ["popen"] * 4


def test_a_pipeline_of_a_users_own_may_compute(tmp_path: Path) -> None:
    conftest, ours = ModuleType("conftest"), ModuleType("rag_harness.frontends.pytest_plugin")
    conftest.rag_pipeline = ours.rag_pipeline = None  # type: ignore[attr-defined]
    assert asks_shipped_alone(configured(tmp_path, (ours,), markexpr="e3"))
    assert not asks_shipped_alone(configured(tmp_path, (ours, conftest), markexpr="e3"))


@pytest.mark.parametrize(
    ("text", "alone"),
    [
        (TRIALS, True),
        (f"{TRIALS}\ndef test_other(tmp_path): pass\n", False),
        (f"{TRIALS}\n@pytest.fixture\ndef rag_pipeline(): pass\n", False),
        (TRIALS.replace("mark.e3", "mark.rag_experiment('mine')"), False),
        ("import unittest\n\nclass Old(unittest.TestCase): pass\n", False),
        ("", False),
    ],
)
def test_files_of_tests_tell_where_nothing_is_selected(text: str, alone: bool, tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(TRIALS)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "test_b.py").write_text(text)
    for unread in (tmp_path / "venv" / "test_c.py", tmp_path / ".x" / "test_c.py", tmp_path / "sub" / "helper.py"):
        unread.parent.mkdir(exist_ok=True)
        unread.write_text("def test_c(): pass")
    assert asks_shipped_alone(configured(tmp_path)) is alone


def test_large_suites_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needed_workers, "_MOST_FILES", 2)
    for number in range(3):
        (tmp_path / f"test_{number}.py").write_text(TRIALS)
    assert not asks_shipped_alone(configured(tmp_path))
