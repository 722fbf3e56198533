"""How --rag-judge names the judges of a panel, and what is refused before anything is asked."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from rag_harness.core.errors import RegistryError, SettingsError
from rag_harness.core.settings import Settings
from rag_harness.core.settings.loading import load_settings
from rag_harness.evaluation.judges.factory import panel_score
from rag_harness.evaluation.judges.traits import check_judge, check_one_judge
from rag_harness.evaluation.measures import Score
from rag_harness.models.endpoints import PanelMember, panel_of, settings_of_judges
from rag_harness.records.experiment_names import judge_label, panel_label


def named(judge: str, panel: str = "", **more: str) -> Settings:
    return replace(load_settings({}), judge=judge, panel=panel, **more)  # type: ignore[arg-type]


def test_a_model_may_have_colons_slashes_and_an_at() -> None:
    said = "fused@meta/llama-3:8b, fused@claude@20250101 ,embedded"
    assert panel_of(named(said, "mean")) == (
        PanelMember("fused", "meta/llama-3:8b"),
        PanelMember("fused", "claude@20250101"),
        PanelMember("embedded"),
    )


def test_each_judge_has_settings_in_which_it_is_alone() -> None:
    settings = named("fused@gpt-x,ragas", "mean", judge_model="gpt-y")
    assert [(each.judge, each.judge_model, each.panel) for each in settings_of_judges(settings)] == [
        ("fused", "gpt-x", ""),
        ("ragas", "gpt-y", ""),
    ]
    alone = named("fused")
    assert settings_of_judges(alone) == (alone,)


@pytest.mark.parametrize(
    ("judge", "panel", "said"),
    [
        ("embedded,mock", "", "names 2 judges: say how they decide, --rag-panel=majority, mean or median"),
        ("embedded", "mean", "--rag-judge names one judge, embedded. Name two or more"),
        ("", "mean", "--rag-judge names no judge"),
        ("fused@gpt-x", "", "write --rag-judge=fused --rag-judge-model=gpt-x"),
        ("fused@gpt-x,embedded,fused@gpt-x", "mean", "the same judge and model twice: fused@gpt-x"),
        ("embedded,", "mean", "'' names no judge"),
        ("fused@,embedded", "mean", "'fused@' names no judge model"),
    ],
)
def test_what_is_no_panel_is_refused(judge: str, panel: str, said: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(said)):
        check_judge(named(judge, panel))


def test_a_judge_that_takes_the_model_of_the_run_is_the_same_as_one_that_names_it() -> None:
    with pytest.raises(SettingsError, match="twice: fused@gpt-x"):
        panel_of(named("fused,fused@gpt-x", "mean", judge_model="gpt-x"))


def test_an_unknown_judge_of_a_panel_is_named_with_the_nearest() -> None:
    with pytest.raises(RegistryError, match=r"Unknown judge 'embeded'\. Did you mean 'embedded'"):
        check_judge(named("mock,embeded", "mean"))


@pytest.mark.parametrize("panel", ["", "mean"])
def test_what_takes_one_judge_says_so(panel: str) -> None:
    with pytest.raises(
        SettingsError, match="judge score takes one judge at a time, and --rag-judge=mock,embedded is a panel"
    ):
        check_one_judge(named("mock,embedded", panel), "judge score")


def test_a_cluster_asks_no_panel() -> None:
    with pytest.raises(SettingsError, match="leave out --rag-engine=ray"):
        check_judge(named("mock,embedded", "mean", engine="ray"))


def test_the_names_of_a_panel() -> None:
    judges = [("embedded", "embedded/alignment"), ("fused", "gpt-x"), ("fused", "meta/llama-3:8b")]
    assert panel_label("majority", judges) == "panel of 3 (majority): embedded, fused gpt-x, fused meta/llama-3:8b"
    assert judge_label("own", "") == "own"


def test_a_silent_judge_leaves_the_panel_without_a_score_and_is_named() -> None:
    said = {"a": Score(1.0), "b": Score(None, "it is asleep"), "c": Score(None, "nothing to say", undefined=True)}
    found = panel_score("majority", said)
    assert (found.value, found.undefined) == (None, False)
    assert found.reason == "2 of the 3 judges of the panel are silent: b (and c): it is asleep"
    nothing = Score(None, "no context", undefined=True)
    assert panel_score("mean", {"a": nothing, "b": nothing}) == nothing
    assert panel_score("mean", {"a": Score(1.0), "b": Score(0.5)}).value == 0.75


def test_a_removed_rule_names_what_is_used_in_its_place() -> None:
    with pytest.raises(SettingsError, match="a gate on measure~calibrated corrects any rule's figure"):
        load_settings({"panel": "calibrated"})
