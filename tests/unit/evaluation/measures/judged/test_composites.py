"""The study's composites, and which judged measures a list of names needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import SettingsError
from rag_harness.core.registry import resolve
from rag_harness.core.types import Case, Query
from rag_harness.evaluation.measures import Score, measure_named, parts_of
from rag_harness.evaluation.measures.measure import CompositeMeasure

SHARE, COSINE = st.floats(0, 1), st.floats(-1, 1)


def scores(cp: float | None, f: float | None, ar: float | None) -> dict[str, Score]:
    values = {"context_precision": cp, "faithfulness": f, "factuality": f, "answer_relevancy": ar}
    return {name: Score(value, "" if value is not None else "cut off") for name, value in values.items()}


def composite(name: str) -> CompositeMeasure:
    measure: object = measure_named(name)
    assert isinstance(measure, CompositeMeasure)
    return measure


def value(name: str, parts: Mapping[str, Score]) -> float | None:
    return composite(name).score(parts).value


def test_values_worked_by_hand() -> None:
    parts = scores(0.8, 0.5, 0.625)
    assert value("g_mean", parts) == pytest.approx(0.25 ** (1 / 3))
    assert value("g_mean", scores(1, 1, 1)) == 1.0
    assert value("hri", parts) == pytest.approx(0.3125)
    assert value("hri_gold", parts) == pytest.approx(0.3125)
    assert value("hri_gold", {**parts, "factuality": Score(0.9)}) == pytest.approx(0.0625)


def test_a_negative_relevancy_is_0_in_composites() -> None:
    assert [value(name, scores(0.9, 0.2, -0.4)) for name in ("g_mean", "hri", "hri_gold")] == [0, 0, 0]


@given(SHARE, SHARE, COSINE)
def test_composites_are_shares(cp: float, f: float, ar: float) -> None:
    for name in ("g_mean", "hri", "hri_gold"):
        found = value(name, scores(cp, f, ar))
        assert isinstance(found, float)
        assert 0 <= found <= 1


@given(SHARE, SHARE, SHARE, SHARE)
def test_more_faithful_is_never_riskier_and_never_a_lower_mean(cp: float, ar: float, one: float, two: float) -> None:
    low, high = (scores(cp, f, ar) for f in sorted((one, two)))
    less, more = value("g_mean", low), value("g_mean", high)
    riskier, safer = value("hri", low), value("hri", high)
    assert None not in (less, more, riskier, safer)
    assert less <= more  # type: ignore[operator]
    assert safer <= riskier  # type: ignore[operator]


def test_a_part_that_is_missing_gives_its_reason() -> None:
    found = composite("g_mean").score(scores(0.8, None, 0.5))
    assert (found.value, found.reason, found.undefined) == (None, "faithfulness: cut off", False)
    parts = {**scores(0.8, 0.5, 0.5), "faithfulness": Score(None, "no context", undefined=True)}
    assert composite("hri").score(parts) == Score(None, "faithfulness: no context", undefined=True)


def test_a_composite_does_not_apply_where_a_part_does_not() -> None:
    case = Case(Query("q", "?"), "direct", "", {"a.md": 1})
    assert composite("g_mean").applies(case) == "no ground truth"
    assert composite("hri_gold").applies(case) == composite("hri").applies(case) == ""


def test_a_missing_answer_counts_the_worst() -> None:
    for name in ("hri", "hri_gold"):
        assert (composite(name).better, composite(name).worst) == ("lower", 1.0)
    assert (composite("g_mean").better, composite("g_mean").worst) == ("higher", 0.0)


def test_the_parts_of_a_composite_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def resolved(group: str, name: str) -> Any:
        made.append(name)
        return resolve(group, name)

    monkeypatch.setattr("rag_harness.evaluation.measures.measure.resolve", resolved)
    measure = composite("g_mean")
    answered, unanswered = Case(Query("q1", "?"), ground_truth="30 days"), Case(Query("q2", "?"))
    assert [measure.applies(case) for case in (answered, unanswered)] == ["", "no ground truth"]
    assert made == list(measure.parts)


def test_names_need_their_parts_once() -> None:
    assert [part.name for part in parts_of(["hri", "recall@5", "g_mean", "faithfulness"])] == [
        "faithfulness", "answer_relevancy", "context_precision"
    ]  # fmt: skip
    assert parts_of([]) == []
    with pytest.raises(SettingsError, match="Did you mean 'g_mean'"):
        parts_of(["gmean"])
    with pytest.raises(SettingsError, match="takes none"):
        parts_of(["hri@5"])
