"""Judging a row: what is asked, and which scores of earlier replays are found."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core import cache
from rag_harness.core.errors import BudgetError, CriticalError, ModelOutputError, PrerequisiteError
from rag_harness.core.settings import Settings
from rag_harness.core.types import Case, Evidence, Message, Query
from rag_harness.evaluation.judges.mock import MockJudge, MockOpinion
from rag_harness.evaluation.measures import Score, parts_of
from rag_harness.evaluation.measures.judged import Faithfulness
from rag_harness.evaluation.measures.opinion import (
    ClaimedText,
    Judge,
    JudgeQuestion,
    Material,
    Opinion,
    SupportSource,
    Verdicts,
    said_before,
)
from rag_harness.records.scores import ScoreLine, parse_score
from rag_harness.runs import judging as module
from rag_harness.runs.judging import JudgedRow, KeptScores, RowJudge, kept_scores
from tests.unit.rows import make_row

# Judging a row: what is asked, what is known, what a judge that fails leaves behind.

CASE = Case(Query("q1", "How long?"), ground_truth="30 days", qrels={"returns.md": 1}, evidence=(Evidence("", "30 d"),))
PAGES = ["Return it within 30 days."]


class Said:
    """A mock judge that notes what it is asked, and raises what it is told to."""

    name, model = "mock", "mock/said"
    asks_model, deterministic, reads_conversation = False, False, True

    def __init__(self, error: Exception | None = None, revision: str = "1", waits: float = 0.0) -> None:
        self.revision, self.error, self.waits = revision, error, waits
        self.materials: list[Material] = []
        self.asks: list[Collection[JudgeQuestion]] = []

    def opinion(self, material: Material, asks: Collection[JudgeQuestion]) -> MockOpinion:
        self.materials.append(material)
        self.asks.append(asks)
        return _Opinion(material, self)


class _Opinion(MockOpinion):
    def __init__(self, material: Material, said: Said) -> None:
        super().__init__(material)
        self._said = said

    async def supported(self, claims: ClaimedText, source: SupportSource) -> Verdicts:
        await asyncio.sleep(self._said.waits)
        if self._said.error is not None:
            raise self._said.error
        return await super().supported(claims, source)


def judge(
    said: Any, *names: str, known: Sequence[ScoreLine] = (), seconds: float = 5.0, row: Any = None, case: Case = CASE
) -> JudgedRow:
    judging = said if isinstance(said, RowJudge) else RowJudge(lambda: said, lambda *_: PAGES, seconds)
    stored = {line.key: line for line in known}
    work = judging.row(row or make_row(), case, parts_of(names), lambda _, key: stored.get(key))
    return asyncio.run(work)


def lines(judged: JudgedRow) -> list[ScoreLine]:
    return [line for line in map(parse_score, judged.new) if line is not None]


def test_a_row_becomes_a_line_a_measure_of_one_opinion() -> None:
    said = Said()
    judged = judge(said, "faithfulness", "factuality", "answer_relevancy")
    assert len(said.materials) == 1
    assert said.materials[0].gold_pages == tuple(PAGES)
    assert said.materials[0].quotes == ("30 d",)
    assert {line.measure: line.value for line in lines(judged)} == {
        name: score.value for name, score in judged.scores.items()
    }
    assert {(line.author.model, line.author.revision, line.row) for line in lines(judged)} == {
        ("mock/said", "1", lines(judged)[0].row)
    }


def test_pages_are_read_for_measures_that_look_at_them_only() -> None:
    def never(*_: Any) -> list[str]:
        raise AssertionError("nobody asked for pages")

    judge(RowJudge(Said, never, 5), "faithfulness")


def test_what_is_known_is_not_asked_again_and_what_another_judge_said_is() -> None:
    first = judge(Said(), "faithfulness", "answer_relevancy")
    again = Said()
    judged = judge(again, "faithfulness", "answer_relevancy", known=lines(first))
    assert (again.materials, judged.new) == ([], ())
    assert judged.scores == first.scores
    other = Said(revision="2")
    assert len(judge(other, "faithfulness", known=lines(first)).new) == 1


def test_other_gold_is_judged_again_where_the_measure_looks_at_it() -> None:
    first = judge(Said(), "factuality")
    changed = RowJudge(Said, lambda *_: ["Return it within 45 days."], 5)
    assert len(judge(changed, "factuality", known=lines(first)).new) == 1


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ModelOutputError("half a JSON"), "half a JSON"),
        (BudgetError("0.02 of 0.01 USD"), "not judged: budget: 0.02 of 0.01 USD"),
        (ZeroDivisionError("division by zero"), "ZeroDivisionError: division by zero"),
        (KeyError(), "KeyError: KeyError()"),
    ],
)
def test_a_judge_that_fails_is_a_score_of_none_with_the_reason(error: Exception, reason: str) -> None:
    judged = judge(Said(error), "faithfulness", "answer_relevancy")
    failed = {line.measure: line for line in lines(judged)}
    assert (failed["faithfulness"].value, failed["faithfulness"].reason) == (None, reason)
    assert not failed["faithfulness"].is_final
    assert failed["answer_relevancy"].value is not None


def test_after_an_error_that_no_later_call_gets_past_the_judge_is_not_asked_again() -> None:
    said = Said(CriticalError("the key is refused"))
    judging = RowJudge(lambda: said, lambda *_: PAGES, 5)
    reasons = [line.reason for _ in range(3) for line in lines(judge(judging, "faithfulness"))]
    assert len(said.materials) == 1
    assert set(reasons) == {"CriticalError: the key is refused"}


def test_a_part_that_one_measure_lacks_is_no_end_of_the_others() -> None:
    said = Said(PrerequisiteError("no torch"))
    judged = judge(said, "faithfulness", "answer_relevancy")
    assert judged.scores["faithfulness"].reason == "no torch"
    assert judged.scores["answer_relevancy"].value is not None


def test_a_judge_that_cannot_be_made_leaves_the_reason() -> None:
    def missing() -> Judge:
        raise PrerequisiteError("pip install 'pytest-rag-harness[local]'")

    judged = judge(RowJudge(missing, lambda *_: PAGES, 5), "faithfulness")
    assert lines(judged)[0].reason == "pip install 'pytest-rag-harness[local]'"
    assert judged.author.judge == "nobody"


def test_a_judge_of_somebodys_own_that_cannot_be_made_leaves_the_reason() -> None:
    def broken() -> Judge:
        raise ZeroDivisionError("division by zero")

    judged = judge(RowJudge(broken, lambda *_: PAGES, 5), "faithfulness")
    assert lines(judged)[0].reason == "ZeroDivisionError: division by zero"
    assert judged.author.judge == "nobody"


def test_a_judge_that_hangs_meets_the_deadline() -> None:
    (line,) = lines(judge(Said(waits=60), "faithfulness", seconds=0.05))
    assert line.value is None
    assert "deadline: not judged within 0.05 s" in line.reason


@pytest.mark.parametrize(("retrieves", "value"), [(None, 0.0), (True, 0.0), (False, None)])
def test_what_is_undefined_asks_nobody_and_is_final(retrieves: bool | None, value: float | None) -> None:
    """Without a context an experiment that retrieves has the worst value, and one that does not has none."""
    said = Said(AssertionError())
    (line,) = lines(judge(said, "faithfulness", row=make_row(retrieved_chunks=[], retrieves=retrieves)))
    assert (line.value, line.undefined, line.is_final) == (value, retrieves is False, True)
    assert said.asks in ([], [set()])


def test_a_measure_that_does_not_apply_to_the_case_has_no_line() -> None:
    case = replace(CASE, qrels={}, evidence=(), answerable=False)
    assert judge(Said(), "factuality", case=case).new == ()


def test_the_mock_judge_is_a_judge() -> None:
    assert judge(MockJudge(), "faithfulness").scores["faithfulness"].value is not None


def test_a_row_of_a_conversation_is_judged_with_what_was_said_and_again_when_that_has_changed() -> None:
    said = Said()
    told = {"conversation": "c1", "turn": 2, "history": [{"role": "user", "content": "Do you sell lamps?"}]}
    first = judge(said, "faithfulness", row=make_row(inputs=told))
    (material,) = said.materials
    assert said_before(material) == (Message("user", "Do you sell lamps?"),)
    assert material.contexts == tuple(chunk.text for chunk in make_row().retrieved_chunks)
    judge(said, "faithfulness", row=make_row(inputs=told), known=lines(first))
    assert len(said.materials) == 1
    other = {**told, "history": [{"role": "user", "content": "Do you sell chairs?"}]}
    judge(said, "faithfulness", row=make_row(inputs=other), known=lines(first))
    assert len(said.materials) == 2


def test_a_row_without_a_conversation_is_judged_as_ever() -> None:
    said = Said()
    judge(said, "faithfulness")
    assert type(said.materials[0]) is Material


class Computing(Said):
    """A judge that computes for as long as it is let, as the rules of the embedded one do."""

    deterministic = True

    def __init__(self) -> None:
        super().__init__()
        self.until, self.has_ended = threading.Event(), False

    def opinion(self, material: Material, asks: Collection[JudgeQuestion]) -> MockOpinion:
        self.until.wait(5)
        self.has_ended = True
        return super().opinion(material, asks)


def test_a_judge_that_computes_over_a_long_answer_does_not_outlast_the_deadline() -> None:
    said = Computing()
    judged = judge(said, "faithfulness", seconds=0.1, row=make_row(llm_answer="word " * 5_000))
    assert not said.has_ended
    said.until.set()
    assert judged.scores["faithfulness"].reason.startswith("deadline: not judged within 0.1 s")


def test_a_long_answer_is_judged_as_a_short_one_by_a_judge_that_computes() -> None:
    said = Computing()
    said.until.set()
    found = [judge(said, "faithfulness", row=make_row(llm_answer="word " * number)) for number in (10, 5_000)]
    assert found[0].scores["faithfulness"].value == found[1].scores["faithfulness"].value is not None


# Scores of earlier replays: which are found, which are worked out anew, and what a damaged or pruned cache costs.

MEASURES = ("faithfulness", "factuality", "answer_relevancy")


def judge_again(said: Any, folder: Path, *, row: Any = None, case: Case = CASE, measures: Any = None) -> JudgedRow:
    """Judge a row in a process of its own, as far as the cache can tell."""
    kept = KeptScores(folder)
    judging = RowJudge(lambda: said, lambda *_: PAGES, 5, kept=kept)
    judged = asyncio.run(judging.row(row or make_row(), case, measures or parts_of(MEASURES), lambda *_: None))
    kept.flush()
    return judged


def is_asked(folder: Path, said: Said | None = None, **changed: Any) -> bool:
    said = said or Said()
    judge_again(said, folder, **changed)
    return bool(said.materials)


def test_the_same_is_not_judged_again_and_its_lines_are_the_same(tmp_path: Path) -> None:
    first, again = judge_again(Said(), tmp_path), Said()
    second = judge_again(again, tmp_path)
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
    judge_again(Said(), tmp_path)
    assert not is_asked(tmp_path)
    assert is_asked(tmp_path, **CHANGED[what]), what


def test_other_contexts_are_judged_anew(tmp_path: Path) -> None:
    row = make_row()
    first = row.retrieved_chunks[0]
    other = row.model_copy(update={"retrieved_chunks": (replace(first, text=f"{first.text} Not."),)})
    judge_again(Said(), tmp_path, row=row)
    assert is_asked(tmp_path, row=other)


def test_other_pages_are_judged_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge_again(Said(), tmp_path)
    monkeypatch.setattr("tests.unit.runs.test_judging.PAGES", ["Return it within 31 days."])
    assert is_asked(tmp_path)


def test_a_measure_of_ones_own_is_judged_each_time(tmp_path: Path) -> None:
    class Own(Faithfulness):
        async def judge(self, material: Material, opinion: Opinion) -> Score:
            return await super().judge(material, opinion)

    Own.__module__ = "my_measures"
    judge_again(Said(), tmp_path, measures=[Own()])
    assert is_asked(tmp_path, measures=[Own()])


def test_a_failure_is_not_kept(tmp_path: Path) -> None:
    failed = judge_again(Said(ModelOutputError("no verdict")), tmp_path, measures=parts_of(["faithfulness"]))
    assert [score.value for score in failed.scores.values()] == [None]
    assert is_asked(tmp_path, measures=parts_of(["faithfulness"]))


@pytest.mark.parametrize("damage", [b"", b"not ours", b"\x00" * 900])
def test_a_torn_or_foreign_file_is_judged_anew(tmp_path: Path, damage: bytes) -> None:
    whole = judge_again(Said(), tmp_path)
    (file,) = tmp_path.iterdir()
    for content in (damage, file.read_bytes()[:-1]):
        file.write_bytes(content)
        said = Said()
        assert judge_again(said, tmp_path).scores == whole.scores
        assert said.materials


def test_pruning_during_a_run_loses_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    first = judge_again(Said(), folder)
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
    for number in range(3 * cache._FILES):
        judge_again(Said(), tmp_path, row=make_row(llm_answer=f"Within {number} days."))
    assert len(list(tmp_path.iterdir())) <= cache._FILES


def test_more_than_a_folder_takes_is_judged_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MOST_VALUES", 1)
    judge_again(Said(), tmp_path)
    assert is_asked(tmp_path)


def settings(tmp_path: Path, **given: Any) -> Settings:
    said = {"mode": "replay", "judge_model": "embedded/alignment", "cache_dir": str(tmp_path), "rootdir": str(tmp_path)}
    return Settings(**(said | given))


def folder_of(settings: Settings) -> Path:
    kept = kept_scores(settings)
    assert kept is not None
    return kept._values._folder


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
