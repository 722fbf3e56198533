"""Names of measures: what there is, what it is called with, and what is said of a slip."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest

from rag_harness.core.errors import SettingsError
from rag_harness.core.registry import registered
from rag_harness.core.types import Case, Query
from rag_harness.evaluation.measures import (
    RankingMeasure,
    RowMeasure,
    Score,
    default_measures,
    known_measures,
    measure_named,
    names,
)
from rag_harness.evaluation.measures.judged import JudgedMeasure
from rag_harness.evaluation.measures.measure import CompositeMeasure
from rag_harness.evaluation.measures.metamorphic import MetamorphicMeasure
from rag_harness.evaluation.measures.names import ANSWERS
from tests.unit.rows import make_row

CASE = Case(Query("q1", "?"))


@pytest.mark.parametrize("text", ["recall@5", "mrr@10", "ndcg@10", "all@3", "r_precision", "token_f1", "total_ms"])
def test_a_name_is_that_of_its_measure(text: str) -> None:
    assert measure_named(text).name == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ndgc@10", "Unknown measure 'ndgc'. Did you mean 'ndcg'"),
        ("recal@5", "Did you mean 'recall'"),
        ("token_f2", "Did you mean 'token_f1'"),
        ("", "Unknown measure"),
        ("recall", "needs a cutoff"),
        ("recall@", "needs a cutoff"),
        ("recall@0", "1 or more"),
        ("recall@-1", "1 or more"),
        ("recall@1.5", "1 or more"),
        ("recall@²", "1 or more"),
        ("r_precision@5", "takes none"),
        ("token_f1@5", "takes none. Write 'token_f1'"),
        ("faithfulness@5", "takes none. Write 'faithfulness'"),
        ("hri@5", "takes none. Write 'hri'"),
        ("metamorphic_case@5", "takes none. Write 'metamorphic_case'"),
    ],
)
def test_a_slip_is_explained(text: str, message: str) -> None:
    with pytest.raises(SettingsError) as refused:
        measure_named(text)
    assert message in str(refused.value)


def test_built_ins_come_in_by_the_common_door() -> None:
    assert set(known_measures()) == set(registered("measures"))
    for name in known_measures():
        made = registered("measures")[name].load()
        assert issubclass(made, (RowMeasure, JudgedMeasure, CompositeMeasure, MetamorphicMeasure))
        cut = issubclass(made, RowMeasure) and made.takes_cutoff
        measure = made(3 if cut else None)
        assert measure.name == (f"{name}@3" if cut else name)
        assert measure.version >= 1
        assert (measure.better, measure.worst) in {
            ("higher", 0.0), ("lower", 1.0), ("lower", None), ("higher", None)
        }  # fmt: skip
        # What can be as large as it likes has no worst value.
        if issubclass(made, RowMeasure):
            assert (measure.worst is None) == (measure.unit != "share")
        elif issubclass(made, MetamorphicMeasure):
            assert measure.worst is None  # a share of sampled answers, and an error is none
        else:
            assert measure.worst is not None


def test_what_is_kept_of_every_run() -> None:
    golden, experiment = ([measure.name for measure in default_measures(kind, 7)] for kind in (True, False))
    assert {"recall@7", "mrr@7", "ndcg@7"} <= set(golden)
    assert not {"token_f1", "total_ms"} & set(golden)
    assert set(ANSWERS) <= set(experiment)
    assert not {"recall@7", "total_ms"} & set(experiment)


def test_a_measure_of_ones_own_that_takes_a_cutoff_is_kept_at_5_and_10(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "_own", lambda: ["precision"])
    assert [measure.name for measure in default_measures(True, 7)][-2:] == ["precision@5", "precision@10"]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_score_is_never_nan(value: float) -> None:
    with pytest.raises(ValueError, match="a score is a number or None"):
        Score(value)


def test_what_a_trial_took_is_read_off_its_row() -> None:
    usage = {"prompt_tokens": 107, "completion_tokens": 10, "calls": 1}
    row = make_row(cost_usd=0.002, ttft_ms=3.0, usage=usage)
    expected = {
        "total_ms": (8.0, "ms"),
        "retrieval_ms": (2.0, "ms"),
        "rerank_ms": (1.0, "ms"),
        "llm_ms": (5.0, "ms"),
        "ttft_ms": (3.0, "ms"),
        "cost_usd": (0.002, "usd"),
        "prompt_tokens": (107, "tokens"),
        "completion_tokens": (10, "tokens"),
        "tokens": (117, "tokens"),
    }
    for name, (value, unit) in expected.items():
        measure = measure_named(name)
        assert isinstance(measure, RowMeasure)
        assert (measure.score(CASE, row), measure.unit, measure.better) == (Score(value), unit, "lower")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("cost_usd", "no known price"),
        ("tokens", "no counted tokens"),
        ("ttft_ms", "no streamed answer"),
        ("rerank_ms", "no time of a reranker"),
    ],
)
def test_what_a_row_does_not_say_was_not_measured(name: str, reason: str) -> None:
    measure = measure_named(name)
    assert isinstance(measure, RowMeasure)
    assert measure.score(CASE, make_row(cost_usd=None, usage={}, rerank_time_ms=None)) == Score(None, reason)


def test_naming_a_measure_is_cheap() -> None:
    code = "import sys, rag_harness; rag_harness.Score; print([m for m in ('numpy', 'pydantic') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
    assert issubclass(RankingMeasure, RowMeasure)
