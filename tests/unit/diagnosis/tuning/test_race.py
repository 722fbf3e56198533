"""Races of made-up configurations: who leaves by what, and who does not."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.errors import DataError
from rag_harness.core.settings import Settings
from rag_harness.core.settings.configurations import ConfigurationSpec
from rag_harness.core.types import Case, Query
from rag_harness.diagnosis.tuning.race import Course, RaceResult, race, race_of_found
from rag_harness.diagnosis.tuning.space import Space, read_space
from rag_harness.diagnosis.tuning.trials import Contender, broken, field_of, ranking_of
from rag_harness.pipelines.experiments import experiment_of
from rag_harness.records.row import ExperimentResult
from rag_harness.runs.gates.grammar import Gate, parse_gate
from tests.unit.diagnosis.tuning.shop import write_shop
from tests.unit.pipelines.mock_parts import parts_of
from tests.unit.rows import make_chunk, make_row

CASES = [Case(Query(f"q{n}", "?"), ground_truth="yes", qrels={"a.md": 1}) for n in range(96)]
GROUPS = [(case,) for case in CASES]


class Answers:
    """Answers with the share of right answers, the milliseconds and the characters of text of each configuration."""

    def __init__(self, right: Mapping[str, float], ms: Mapping[str, float] | None = None, text: int = 10) -> None:
        self.right, self.ms, self.text = right, ms or {}, dict.fromkeys(right, text)
        self.asked: Counter[tuple[str, str]] = Counter()

    def __call__(
        self, candidates: Sequence[Contender], cases: Sequence[Case]
    ) -> dict[str, dict[str, ExperimentResult | str]]:
        return {each.name: {case.query.query_id: self.row(each.name, case) for case in cases} for each in candidates}

    def row(self, name: str, case: Case) -> ExperimentResult:
        self.asked[name, case.query.query_id] += 1
        number = int(case.query.query_id[1:])
        is_right = (number * 7919) % 96 < 96 * self.right[name]
        found = make_chunk("a.md#0" if is_right else "b.md#0", text="x" * self.text[name])
        return make_row(
            query_id=case.query.query_id,
            llm_answer="yes" if is_right else "no",
            retrieved_chunks=[found],
            total_time_ms=self.ms.get(name, 1.0),
        )


def contenders(*names: str) -> list[Contender]:
    return [Contender(ConfigurationSpec(name), {"top_k": 1}, name) for name in names]


def space(*constraints: str, objective: str = "token_f1") -> Space:
    return Space((), (objective,), tuple(map(constraint, constraints)))


def constraint(text: str) -> Gate:
    return parse_gate(f"x: {text}", 10)


def raced(answers: Answers, of: Space) -> RaceResult:
    measures = [*of.objective, *(each.measure for each in of.constraints)]
    field = contenders(*answers.right)
    return race(of, field, Course(GROUPS, measures), answers, lambda: False, lambda _: None)


def test_the_worse_leave_and_the_calls_are_counted() -> None:
    answers = Answers({"good": 0.9, "bad": 0.1})
    came = raced(answers, space())
    assert {name: gone.better for name, gone in came.left.items()} == {"bad": "good"}
    assert came.answered == sum(answers.asked.values()) < 2 * len(CASES)
    assert max(answers.asked.values()) == 1


def test_two_that_are_close_are_asked_everything() -> None:
    came = raced(Answers({"good": 0.6, "fair": 0.55}), space())
    assert (came.ended, came.asked, came.aside) == ("all questions were asked", len(CASES), {})


def test_half_of_many_are_set_aside_and_nothing_is_claimed_of_them() -> None:
    came = raced(Answers({f"a{n}": 0.5 + n / 100 for n in range(8)}), space())
    assert (len(came.aside), came.left) == (6, {})


def test_nobody_is_gone_because_of_one_that_breaks_a_constraint() -> None:
    answers = Answers({"slow": 1.0, "quick": 0.3, "quicker": 0.2}, ms={"slow": 5000.0})
    came = raced(answers, space("total_ms <= 3000"))
    assert "quick" not in came.left
    assert broken(space("total_ms <= 3000").constraints, came.values["slow"]) == "total_ms is 5000, not <= 3000"
    # It was out while the slow one was in: what it was not asked has no value.
    assert sum(name == "quick" for name, _ in answers.asked) == len(came.values["quick"].of["token_f1"])


def test_what_one_missed_that_came_back_is_asked_before_the_last_look() -> None:
    """Two slow ones take the others out first. What these were not asked would count as wrong answers."""
    slow = {"slow": 5000.0, "slower": 5000.0}
    answers = Answers({"slow": 1.0, "slower": 1.0, "quick": 0.2, "quicker": 0.2}, ms=slow)
    came = raced(answers, space("total_ms <= 3000"))
    assert {name: gone.why for name, gone in came.left.items()} == dict.fromkeys(slow, "total_ms is 5000, not <= 3000")
    assert came.ended == "all questions were asked"
    assert len(came.values["quick"].of["token_f1"]) == len(came.values["quicker"].of["token_f1"]) == len(CASES)
    assert max(answers.asked.values()) == 1


def test_a_constraint_without_a_value_stops_the_race_at_once() -> None:
    answers = Answers({"a": 0.9, "b": 0.1})
    with pytest.raises(DataError, match="cost_usd <= 1: no answer so far has a value of cost_usd"):
        raced(answers, space("cost_usd <= 1"))
    assert len(answers.asked) == 16


def test_one_that_gives_more_text_takes_nobody_out_before_answers() -> None:
    answers = Answers({"deep": 0.95, "short": 0.4, "worse": 0.05})
    answers.text = {"deep": 400, "short": 100, "worse": 100}
    of, field = space(objective="recall@5"), contenders("deep", "short", "worse")
    course = Course(GROUPS, ["recall@5"])
    came = race_of_found(of, field, course, answers, lambda _: None, in_no_more_text=True)
    assert {name: gone.better for name, gone in came.left.items()} == {"worse": "short"}
    came = race_of_found(of, field, course, answers, lambda _: None)
    assert {name: gone.better for name, gone in came.left.items()} == {"worse": "deep", "short": "deep"}


def test_what_is_found_is_held_against_those_alone_that_keep_to_the_constraints() -> None:
    answers = Answers({"slow": 0.95, "quick": 0.4, "worse": 0.05}, ms={"slow": 9000.0})
    of = space("total_ms <= 3000", objective="recall@5")
    course = Course(GROUPS, ["recall@5", "total_ms"])
    came = race_of_found(of, contenders(*answers.right), course, answers, lambda _: None)
    assert {name: gone.better for name, gone in came.left.items()} == {"worse": "quick"}


def test_a_race_whose_budget_is_gone_claims_nothing_of_what_was_not_asked() -> None:
    answers = Answers({"a": 0.9, "b": 0.1})
    of, field = space(), contenders("a", "b")
    came = race(of, field, Course(GROUPS, ["token_f1"]), answers, lambda: True, lambda _: None)
    assert (came.ended, came.left, came.answered, came.asked) == ("the budget is spent", {}, 0, 0)
    assert not came.values["a"].of


# A ranking that is cut to ``top_k`` has what the configuration itself finds.

SHAPES: list[dict[str, Any]] = [
    {"retriever": "dense", "rerank": False},
    {"retriever": "bm25", "rerank": False},
    {"retriever": "hybrid", "dense_weight": 0.3, "rerank": False},
    {"retriever": "dense", "rerank": True, "candidates": 10},
    {"retriever": "bm25", "rerank": True, "candidates": 10},
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape['retriever']}-{shape['rerank']}")
def test_what_is_cut_is_what_the_configuration_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: dict[str, Any]
) -> None:
    parts = parts_of(write_shop(tmp_path, monkeypatch), cache_dir=str(tmp_path / "cache"))

    def built(top_k: int) -> Any:
        return experiment_of(ConfigurationSpec("x", tuple({**shape, "top_k": top_k}.items())), parts)

    deepest = ranking_of(built(8), "ranking", 8)
    for case in parts.data().cases[:6]:
        if deepest.prepare:
            deepest.prepare([case.query])
        ranked = asyncio.run(deepest.pipeline.answer(case.query))
        assert len(ranked.context) == 8
        for top_k in (1, 3, 8):
            own = asyncio.run(built(top_k).pipeline.answer(case.query))
            assert [hit.chunk.chunk_id for hit in own.context] == [hit.chunk.chunk_id for hit in ranked.context[:top_k]]


def test_contenders_that_differ_after_the_ranking_share_it() -> None:
    def ranking(**values: Any) -> str:
        return Contender(ConfigurationSpec("x"), {"retriever": "dense", "top_k": 1, **values}, "t").ranking

    assert ranking(top_k=5, temperature=1.0, prompt="e2", chat_model="m", max_output_tokens=9) == ranking()
    assert ranking(retriever="bm25") != ranking() != ranking(chunk_size=5)


@pytest.mark.parametrize(
    ("space", "by_words"),
    [('retriever = "bm25"\nrerank = false', True), ('retriever = ["bm25", "dense"]\nrerank = false', False),
     ('retriever = "bm25"', False)],
)  # fmt: skip
def test_a_race_by_words_alone_has_a_today_without_vectors(tmp_path: Path, space: str, by_words: bool) -> None:
    file = tmp_path / "space.toml"
    file.write_text(f'objective = "recall@5"\n[parameters]\n{space}\nchunk_size = [256, 384]\n', encoding="utf-8")
    today = field_of(read_space(file), Settings()).today
    assert (today.values["retriever"] == "bm25" and not today.values["rerank"]) is by_words
