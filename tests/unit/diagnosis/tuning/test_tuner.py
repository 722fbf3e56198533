"""Whole races over a small shop: what is asked, what is claimed, and what stops them before anything is asked."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rag_harness.__main__ import main
from rag_harness.core.errors import CriticalError, PrerequisiteError
from rag_harness.diagnosis.tuning.outcome import read_outcome
from rag_harness.diagnosis.tuning.tuner import Tuned
from rag_harness.evaluation.measures import Score
from rag_harness.records.scores import Author
from rag_harness.runs.judging import JudgedRow, RowJudge
from tests.unit.diagnosis.tuning.shop import SPACE as SHOP_SPACE
from tests.unit.diagnosis.tuning.shop import THINGS, Watched, questions, tuned, write_questions, write_shop

ANSWERS = SHOP_SPACE.replace('"evidence_recall"', '"token_f1"')


class Raced(NamedTuple):
    """A race of answers, where it was run, and what was asked."""

    shop: Path
    asked: list[tuple[str, str]]
    came: Tuned


@pytest.fixture(scope="module")
def raced(tmp_path_factory: pytest.TempPathFactory) -> Raced:
    with pytest.MonkeyPatch.context() as patched:
        shop, watched = write_shop(tmp_path_factory.mktemp("whole"), patched, ANSWERS), Watched()
        return Raced(shop, watched.asked, tuned(shop, watched))


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return write_shop(tmp_path, monkeypatch)


def test_a_ranking_is_made_once_for_all_top_k(shop: Path) -> None:
    watched = Watched()
    outcome = tuned(shop, watched).outcome
    assert max(Counter(watched.asked).values()) == 1
    assert len({name for name, _ in watched.asked}) == 4  # of three retrievers, and today's with its reranker
    assert len(outcome.entries) == 10
    assert not outcome.asks_answers


def test_the_race_never_asks_a_question_that_is_held_out(raced: Raced) -> None:
    came = raced.came
    by_question: dict[str, set[str]] = {}
    for name, question in raced.asked:
        by_question.setdefault(question, set()).add(name)
    finalists = {came.winner.name, came.outcome.today}
    kept = {question for question, names in by_question.items() if names <= finalists}
    assert len(kept) == came.outcome.questions[1] > 0
    # Both questions of a page are on the same side.
    assert {thing for thing in THINGS if f"{thing}_care" in kept} == {
        thing for thing in THINGS if f"{thing}_return" in kept
    }


def test_the_order_of_values_changes_nothing_that_is_claimed(shop: Path) -> None:
    first = asdict(tuned(shop).outcome)
    (shop / "space.toml").write_text(
        'objective = "evidence_recall"\n[parameters]\nretriever = ["hybrid", "dense", "bm25"]\n'
        "top_k = [3, 1, 2]\nrerank = false\n"
    )
    again = asdict(tuned(shop, overwrite=True).outcome)
    assert again | {"began": 0} == first | {"began": 0}


def test_a_race_that_was_broken_off_asks_nothing_twice_and_comes_to_the_same(shop: Path, raced: Raced) -> None:
    expected = raced.came.outcome
    (shop / "space.toml").write_text(ANSWERS)
    broken_off = Watched(100)
    with pytest.raises(KeyboardInterrupt):
        tuned(shop, broken_off)
    going_on = Watched()
    outcome = tuned(shop, going_on).outcome
    lost = set(broken_off.asked) & set(going_on.asked)
    # Those of the batch in flight may be lost; what had come back is not asked again.
    assert len(lost) < 100
    assert set(broken_off.asked) | set(going_on.asked) == set(raced.asked)
    assert [entry.name for entry in outcome.entries] == [entry.name for entry in expected.entries]
    assert outcome.held_out == expected.held_out
    again = Watched()
    assert tuned(shop, again).outcome == outcome
    assert again.asked == []


def test_changed_questions_do_not_go_on(shop: Path) -> None:
    tuned(shop)
    write_questions(shop, questions()[:-1])
    watched = Watched()
    with pytest.raises(PrerequisiteError, match=r"The questions, or what decides how they are divided .* have changed"):
        tuned(shop, watched)
    assert not watched.asked
    tuned(shop, overwrite=True)


def test_another_part_of_the_questions_does_not_go_on(shop: Path) -> None:
    tuned(shop, limit=20)
    with pytest.raises(PrerequisiteError, match="some of those that are held out now were seen then"):
        tuned(shop)


def test_the_outcome_is_read_as_it_was_written(shop: Path, raced: Raced) -> None:
    assert read_outcome(shop / "output") is None
    assert read_outcome(raced.shop / "output") == raced.came.outcome


@pytest.mark.parametrize("text", ["[]", '"a"', "{", "3", '{"entries": [{"figures": null}]}'])
def test_an_outcome_of_another_version_is_a_named_error(shop: Path, text: str) -> None:
    (shop / "output").mkdir()
    (shop / "output" / "tune.json").write_text(text)
    with pytest.raises(PrerequisiteError, match=r"not an outcome of a race of this version.*Remove it, and tune again"):
        tuned(shop)


def test_nothing_is_claimed_where_the_budget_reaches_no_question(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (shop / "space.toml").write_text(ANSWERS)
    _spend(monkeypatch, after=0)
    with pytest.raises(PrerequisiteError, match="spent before the first look, so nothing can be said"):
        tuned(shop, budget=1.0)
    assert not (shop / "output" / "tune.json").exists()


def test_a_question_that_the_budget_did_not_reach_is_no_wrong_answer(
    shop: Path, raced: Raced, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = len({question for name, question in raced.asked if name == raced.came.winner.name})
    assert held == 24
    of_answers = [name for name, _ in raced.asked if "ranking" not in name]
    (shop / "space.toml").write_text(ANSWERS)
    _spend(monkeypatch, after=len(of_answers) - 3)
    outcome = tuned(shop).outcome
    assert outcome.held_out is None


def _spend(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Have every answer fail for want of money, but the first ``after``."""
    from rag_harness.core.errors import BudgetError
    from rag_harness.pipelines.configuration import ConfiguredRag
    from rag_harness.pipelines.parts import Generator

    answer, counted = ConfiguredRag.answer, Counter[str]()

    async def poor(self: ConfiguredRag, query: Any) -> Any:
        if isinstance(self.generator, Generator):
            counted["asked"] += 1
            if counted["asked"] > after:
                raise BudgetError("no money")
        return await answer(self, query)

    monkeypatch.setattr(ConfiguredRag, "answer", poor)


BAD = {
    'objective = "evidence_recall"\nconstraints = ["recall@3 >= 1.1"]\n[parameters]\ntop_k = [1, 2]\n': (
        "no configuration keeps to recall@3 >= 1.1"
    ),
    'objective = "carried_faithfulness"\n[parameters]\ntop_k = [1, 2]\n': (
        "objective carried_faithfulness is defined for none of the 24 questions: no earlier turn"
    ),
    'objective = "expectations"\n[parameters]\ntop_k = [1, 2]\n': (
        "objective expectations is defined for none of the 24 questions"
    ),
    'objective = "evidence_recall"\nconstraints = ["expectations >= 0.5"]\n[parameters]\ntop_k = [1, 2]\n': (
        "constraint expectations is defined for none of the 24 questions"
    ),
    'objective = "evidence_recall"\n[parameters]\ntop_k = 2\n': "only the configuration of today is left",
    'objective = "evidence_recall"\nexperiment = "e33"\n[parameters]\ntop_k = [1, 2]\n': "Unknown experiment 'e33'",
    'objective = "evidence_recall"\nexperiment = "e3"\n[parameters]\nbody.x = [1, 2]\n': "e3 is not a service",
    'objective = "evidence_recall"\n[parameters]\nchunker = ["setions"]\n': "setions",
    'objective = "evidence_recall"\n[parameters]\nindex = ["qdrnt"]\n': "qdrnt",
    'objective = "evidence_recall"\n[parameters]\nprompt = ["e33"]\n': "e33",
    'objective = "evidence_recall"\n[[start]]\nname = "mine"\nchunk_size = 20\nchunk_overlap = 30\n': (
        "mine: chunk_overlap 30 is not less than chunk_size 20"
    ),
}


@pytest.mark.parametrize("space", BAD, ids=BAD.values())
def test_what_cannot_race_says_why(shop: Path, space: str) -> None:
    (shop / "space.toml").write_text(space)
    watched = Watched()
    with pytest.raises(PrerequisiteError, match=BAD[space]):
        tuned(shop, watched)
    assert not any("ranking" not in name for name, _ in watched.asked)


def test_an_objective_that_is_about_some_questions_races_on_these(shop: Path) -> None:
    asked = questions()
    for each in asked[::2]:
        del each["evidence"]
    write_questions(shop, asked)
    assert sum(tuned(shop).outcome.questions) == 12


def test_too_few_pages_are_said(shop: Path) -> None:
    write_questions(shop, questions()[:10])
    with pytest.raises(PrerequisiteError, match="10 questions of 5 pages are too few to divide"):
        tuned(shop)


def test_a_cluster_that_no_question_has_is_said(shop: Path) -> None:
    with pytest.raises(PrerequisiteError, match="--rag-cluster=nobody: no case of the race has it"):
        tuned(shop, cluster="nobody")


def test_figures_are_those_of_the_rows(shop: Path) -> None:
    (shop / "space.toml").write_text(
        ANSWERS.replace("token_f1", "evidence_recall").replace(
            "[parameters]", 'constraints = ["total_ms <= 60000"]\n[parameters]'
        )
    )
    outcome = tuned(shop).outcome
    assert outcome.asks_answers
    answered = 0
    for entry in outcome.entries:
        file = shop / "output" / "derived" / f"{entry.name}.jsonl"
        rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        answered += len(rows)
    # What was found first, for all of them, is no call.
    finalists = len({outcome.winner, outcome.today})
    assert outcome.calls == answered - finalists * outcome.questions[1] <= outcome.grid


# ``rag-harness tune --dataset``: a public collection brings documents and questions.

COLLECTION_SPACE = """
objective = "ndcg@5"
[parameters]
retriever = ["dense", "bm25"]
rerank = [false]
"""
DOCUMENTS = 12


def test_a_collection_is_raced_on_by_its_own_questions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "beir" / "qrels").mkdir(parents=True)
    numbers = range(DOCUMENTS)
    docs = [{"_id": f"d{n}", "title": f"t{n}", "text": f"word{n} " * 3} for n in numbers]
    asked = [{"_id": f"q{n}", "text": f"word{n}"} for n in numbers]
    for name, lines in (("corpus", docs), ("queries", asked)):
        (tmp_path / "beir" / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    judged = "".join(f"q{n}\td{n}\t1\n" for n in numbers)
    (tmp_path / "beir" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
    (tmp_path / "space.toml").write_text(COLLECTION_SPACE)
    assert main(["tune", "space.toml", "--dataset", "beir:beir", "--profile", "mock"]) == 0
    assert "6 questions to race on, 6 held out; no model answers" in capsys.readouterr().out
    outcome = json.loads((tmp_path / "output" / "tune.json").read_text())
    words = next(entry for entry in outcome["entries"] if entry["title"].startswith("bm25"))
    assert words["figures"]["ndcg@5"]["value"] == 1.0


# Races about what a judge says: each answer is judged once, and a judge that fails says nothing about a pipeline.

SPACE = """
objective = "faithfulness"
[parameters]
retriever = ["dense", "bm25"]
top_k = [1, 2]
rerank = false
"""
AUTHOR = Author("counting", "none", "1")


@pytest.fixture
def judged_shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return write_shop(tmp_path, monkeypatch, SPACE)


def judging(monkeypatch: pytest.MonkeyPatch, score: Score) -> list[tuple[str, str]]:
    """Let every answer have this score; return what is judged."""
    asked: list[tuple[str, str]] = []

    async def row(self: RowJudge, row: Any, case: Any, measures: Any, find: Any, repeats: int = 0) -> JudgedRow:
        asked.append((row.experiment, row.query_id))
        better = row.experiment < "tune+8"
        value = score if score.value is None else Score(score.value + 0.5 * better)
        return JudgedRow(AUTHOR, {measure.name: value for measure in measures})

    monkeypatch.setattr(RowJudge, "row", row)
    return asked


def test_the_figures_are_those_of_the_judge(judged_shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = judging(monkeypatch, Score(0.25))
    outcome = tuned(judged_shop).outcome
    assert len(asked) == len(set(asked)), "an answer is judged once"
    for entry in outcome.entries:
        if "faithfulness" in entry.figures:
            assert entry.figures["faithfulness"].value == pytest.approx(0.75 if entry.name < "tune+8" else 0.25)
    assert outcome.held_out is not None
    assert outcome.held_out.winner.value in (0.25, 0.75)
    assert outcome.asks_answers


def test_an_answer_with_nothing_to_judge_counts_as_the_worst(
    judged_shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judging(monkeypatch, Score(None, "no claims", undefined=True))
    outcome = tuned(judged_shop).outcome
    assert {entry.figures["faithfulness"].value for entry in outcome.entries if entry.figures} == {0.0}


def test_a_judge_that_fails_ends_the_race_and_calls_nobody_worse(
    judged_shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judging(monkeypatch, Score(None, "it timed out"))
    with pytest.raises(CriticalError, match=r"faithfulness of tune.* was not judged: it timed out"):
        tuned(judged_shop)
    assert not (judged_shop / "output" / "tune.json").exists()


def test_a_budget_that_the_judge_has_spent_ends_the_race(judged_shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judging(monkeypatch, Score(None, "not judged: budget: the next call may cost up to 1 USD"))
    with pytest.raises(Exception, match="was spent before the first look"):
        tuned(judged_shop)


def test_scores_are_kept_and_judged_no_second_time(judged_shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = tuned(judged_shop).outcome
    assert list((judged_shop / "output" / "derived" / "scores").glob("tune+*.jsonl"))
    calls: list[str] = []
    whole = RowJudge._turn

    async def turn(self: RowJudge, row: Any, author: Any, material: Any, wanted: Any, find: Any, turn: int) -> Any:
        known = {one.measure.name for one in wanted if find(row.experiment, _key(one, row, author)) is not None}
        calls.extend(one.measure.name for one in wanted if one.measure.name not in known)
        return await whole(self, row, author, material, wanted, find, turn)

    monkeypatch.setattr(RowJudge, "_turn", turn)
    again = tuned(judged_shop).outcome
    assert again.entries == first.entries
    assert calls == []


def _key(one: Any, row: Any, author: Author) -> tuple[str, ...]:
    return tuple(one.line(row, author, Score(0.0)).key)
