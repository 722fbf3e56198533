"""Scores of earlier replays: which are found, which are worked out anew, and what a damaged or pruned cache costs."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.errors import ModelOutputError
from rag_harness.core.settings import Settings
from rag_harness.core.types import Case
from rag_harness.evaluation.measures import Score, parts_of
from rag_harness.evaluation.measures.judged import Faithfulness
from rag_harness.evaluation.measures.opinion import Material, Opinion
from rag_harness.runs import judging as module
from rag_harness.runs.judging import JudgedRow, KeptScores, RowJudge, kept_scores
from tests.unit.rows import make_row
from tests.unit.runs.test_row_judging import CASE, PAGES, Said, lines

MEASURES = ("faithfulness", "factuality", "answer_relevancy")


def judge(said: Any, folder: Path, *, row: Any = None, case: Case = CASE, measures: Any = None) -> JudgedRow:
    """Judge a row in a process of its own, as far as the cache can tell."""
    kept = KeptScores(folder)
    judging = RowJudge(lambda: said, lambda *_: PAGES, 5, kept=kept)
    judged = asyncio.run(judging.row(row or make_row(), case, measures or parts_of(MEASURES), lambda *_: None))
    kept.flush()
    return judged


def is_asked(folder: Path, said: Said | None = None, **changed: Any) -> bool:
    said = said or Said()
    judge(said, folder, **changed)
    return bool(said.materials)


def test_the_same_is_not_judged_again_and_its_lines_are_the_same(tmp_path: Path) -> None:
    first, again = judge(Said(), tmp_path), Said()
    second = judge(again, tmp_path)
    assert not again.materials
    assert second.scores == first.scores
    assert sorted(second.new) == sorted(first.new)
    assert len(lines(second)) == len(first.scores)


CHANGED: dict[str, dict[str, Any]] = {
    "answer": {"row": make_row(llm_answer="Within 31 days. [Source 1]")},
    "question": {"row": make_row(query="How long exactly?")},
    "abstained": {"row": make_row(abstained=True)},
    "ground truth": {"case": replace(CASE, ground_truth="31 days")},
    "quotes": {"case": replace(CASE, evidence=(replace(CASE.evidence[0], quote="31 d"),))},
    "judge": {"said": Said(revision="2")},
}


@pytest.mark.parametrize("what", CHANGED)
def test_what_has_changed_is_judged_anew(tmp_path: Path, what: str) -> None:
    judge(Said(), tmp_path)
    assert not is_asked(tmp_path)
    assert is_asked(tmp_path, **CHANGED[what]), what


def test_other_contexts_are_judged_anew(tmp_path: Path) -> None:
    row = make_row()
    first = row.retrieved_chunks[0]
    other = row.model_copy(update={"retrieved_chunks": (replace(first, text=f"{first.text} Not."),)})
    judge(Said(), tmp_path, row=row)
    assert is_asked(tmp_path, row=other)


def test_other_pages_are_judged_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge(Said(), tmp_path)
    monkeypatch.setattr("tests.unit.runs.test_kept_scores.PAGES", ["Return it within 31 days."])
    assert is_asked(tmp_path)


def test_a_measure_of_ones_own_is_judged_each_time(tmp_path: Path) -> None:
    class Own(Faithfulness):
        async def judge(self, material: Material, opinion: Opinion) -> Score:
            return await super().judge(material, opinion)

    Own.__module__ = "my_measures"
    judge(Said(), tmp_path, measures=[Own()])
    assert is_asked(tmp_path, measures=[Own()])


def test_a_failure_is_not_kept(tmp_path: Path) -> None:
    failed = judge(Said(ModelOutputError("no verdict")), tmp_path, measures=parts_of(["faithfulness"]))
    assert [score.value for score in failed.scores.values()] == [None]
    assert is_asked(tmp_path, measures=parts_of(["faithfulness"]))


@pytest.mark.parametrize("damage", [b"", b"not ours", b"\x00" * 900])
def test_a_torn_or_foreign_file_is_judged_anew(tmp_path: Path, damage: bytes) -> None:
    whole = judge(Said(), tmp_path)
    (file,) = tmp_path.iterdir()
    for content in (damage, file.read_bytes()[:-1]):
        file.write_bytes(content)
        said = Said()
        assert judge(said, tmp_path).scores == whole.scores
        assert said.materials


def test_pruning_during_a_run_loses_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    first = judge(Said(), folder)
    kept, said = KeptScores(folder), Said()
    judging = RowJudge(lambda: said, lambda *_: PAGES, 5, kept=kept)

    def row(**changes: Any) -> JudgedRow:
        work = judging.row(make_row(**changes), CASE, parts_of(MEASURES), lambda *_: None)
        return asyncio.run(work)

    assert row().scores == first.scores
    shutil.rmtree(folder)
    assert row().scores == first.scores
    assert not said.materials
    row(llm_answer="Another one.")
    kept.flush()
    assert not is_asked(folder, row=make_row(llm_answer="Another one."))


def test_files_do_not_become_many(tmp_path: Path) -> None:
    for number in range(3 * module._FILES):
        judge(Said(), tmp_path, row=make_row(llm_answer=f"Within {number} days."))
    assert len(list(tmp_path.iterdir())) <= module._FILES


def test_more_than_a_folder_takes_is_judged_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SCORES", 1)
    judge(Said(), tmp_path)
    assert is_asked(tmp_path)


def settings(tmp_path: Path, **given: Any) -> Settings:
    said = {"mode": "replay", "judge_model": "embedded/alignment", "cache_dir": str(tmp_path), "rootdir": str(tmp_path)}
    return Settings(**(said | given))


def folder_of(settings: Settings) -> Path:
    kept = kept_scores(settings)
    assert kept is not None
    return kept._folder


def test_each_judge_with_its_options_and_versions_has_a_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = settings(tmp_path)
    folders = [folder_of(asked), folder_of(settings(tmp_path, judge="encoder", judge_model="a/b"))]
    folders.append(folder_of(settings(tmp_path, embed_model="mock/other")))
    for name, other in {
        "package_digest": lambda: "other",
        "library_versions": lambda: {"numpy": "0.0.0"},
    }.items():
        with monkeypatch.context() as patch:
            patch.setattr(module, name, other)
            folders.append(folder_of(asked))
    with monkeypatch.context() as patch:
        patch.setattr("sys.version", "4.0")
        folders.append(folder_of(asked))
    assert len(set(folders)) == len(folders) == 6
    assert folder_of(asked) == folders[0]


@pytest.mark.parametrize(
    "given",
    [
        {"mode": "record"},
        {"mode": "live"},
        {"panel": "mean"},
        {"engine": "ray"},
        {"judge_model": "gpt-x"},
    ],
)
def test_elsewhere_each_row_is_judged(tmp_path: Path, given: dict[str, Any]) -> None:
    assert kept_scores(settings(tmp_path, **given)) is None


def test_scores_are_kept_where_no_network_is_asked(tmp_path: Path) -> None:
    assert kept_scores(settings(tmp_path, mode="auto"))
