"""Who plays the users of a run, and that it counts in the identity of the experiment that they ask."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from rag_harness.core.concurrency import Lazy
from rag_harness.core.protocols import Experiment
from rag_harness.core.settings import Settings
from rag_harness.core.types import Scenario
from rag_harness.frontends.pytest_plugin.experiments import Experiments
from rag_harness.pipelines.parts import RunParts
from rag_harness.pipelines.simulated_user import SCRIPT, Exchange, SayMove, played_by, simulated_user
from rag_harness.runs.fingerprint import fingerprint_parts

MODEL = {"user_model": "gpt-x", "user_base_url": "http://127.0.0.1:9/v1"}
TENT = Scenario("a tent?", asks=("and the deposit?",))
BEFORE = [Exchange("a tent?", "Yes.")]


def identity(folder: Path, **options: Any) -> dict[str, Any]:
    """Return what decides the rows of ``mine-sim`` under these options."""
    settings = Settings(rootdir=str(folder), **options)
    data = {"": SimpleNamespace(find_page=None)}
    cases = cast("Any", SimpleNamespace(is_played=lambda name: name.endswith("-sim"), data_of=lambda _: "", data=data))
    experiments = Experiments(Lazy(lambda: settings), cases, Lazy(lambda: RunParts(settings)), cast("Any", None))
    made = experiments.of("mine-sim", SimpleNamespace(answer=lambda _: ""))
    assert isinstance(made, Experiment)
    return fingerprint_parts(made, settings, "")


def test_without_a_model_a_script_plays() -> None:
    user = simulated_user(Settings(), lambda: None)
    assert user.by == played_by(Settings()) == SCRIPT
    assert user.known(TENT, BEFORE) == SayMove("and the deposit?")


def test_a_model_is_asked_for_what_rules_do_not_say(tmp_path: Path) -> None:
    settings = Settings(rootdir=str(tmp_path), **MODEL)
    user = simulated_user(settings, lambda: RunParts(settings))
    assert user.by == played_by(settings) == "gpt-x"
    assert user.known(TENT, []) == SayMove("a tent?")
    assert user.known(TENT, BEFORE) is None
    assert user.move(TENT, BEFORE).chat.model == "gpt-x"


def test_who_plays_the_user_and_its_code_decide_the_rows(tmp_path: Path) -> None:
    script = identity(tmp_path)
    assert script["code"]["user"]
    assert script["ingredients"]["user"][0] == SCRIPT
    by_model = identity(tmp_path, **MODEL)
    assert by_model["code"]["user"] != script["code"]["user"]
    (tmp_path / "own" / "prompts").mkdir(parents=True)
    (tmp_path / "own" / "prompts" / "user.system.md").write_text("Be brief.")
    others = [
        identity(tmp_path, **{**MODEL, "user_model": "gpt-y"}),
        identity(tmp_path, **{**MODEL, "user_base_url": "http://127.0.0.1:8/v1"}),
        identity(tmp_path, **MODEL, project="own"),
        identity(tmp_path, **MODEL, seed=8),
    ]
    users = [each["ingredients"]["user"] for each in (script, by_model, *others)]
    assert all(users.count(each) == 1 for each in users)
