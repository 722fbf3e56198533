"""Three checks of an answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rag_harness.core.errors import ModelCallError, RecordingMissError
from rag_harness.core.types import Answer, Hit
from rag_harness.evaluation.measures.opinion import Claim, Verdict, Verdicts
from rag_harness.pipelines.trace import Trace
from rag_harness.studies.reliability_verification import claims_agreement, conflicts, grounded, outdated, varied
from tests.unit.studies.reliability.hits import hit

NEW = hit("Most items can be returned within 45 days.", "returns.md", 0)
OLD = hit("Most items can be returned within 30 days.", "returns-2024.md", 1)
OTHER = hit("Express parcels leave the warehouse before noon.", "express.md", 2)


class JudgeSays:
    """A judge that says what it was made with."""

    name, model, revision = "test", "test/judge", "1"

    def __init__(self, says: Verdicts | Exception) -> None:
        self.says, self.seen = says, list[Any]()

    def opinion(self, material: Any, asks: Any) -> JudgeSays:
        self.seen.append(material)
        return self

    async def supported(self, claims: str, source: str) -> Verdicts:
        assert (claims, source) == ("answer", "contexts")
        if isinstance(self.says, Exception):
            raise self.says
        return self.says


def check(says: Verdicts | Exception) -> Any:
    judge = JudgeSays(says)
    return asyncio.run(grounded(judge, "q?", Answer("A. B.", citations=(1,)), [NEW], Trace()))  # type: ignore[arg-type]


def test_the_judges_share_is_the_groundedness() -> None:
    found = check(Verdicts((Verdict(Claim("A."), 1.0), Verdict(Claim("B."), 0.25))))
    assert found.share == pytest.approx(0.625)
    assert found.claims == (("A.", 1.0), ("B.", 0.25))


def test_a_judge_that_cannot_say_is_a_reason() -> None:
    found = check(ModelCallError("503"))
    assert found.share is None
    assert "503" in found.reason
    assert check(Verdicts((Verdict(Claim("A."), None, reason="too long"),))).share is None


def test_a_missing_recording_is_no_reason_but_an_error() -> None:
    with pytest.raises(RecordingMissError):
        check(RecordingMissError("not recorded", []))


def test_sources_in_conflict_where_the_answer_cites_one_of_them() -> None:
    found = conflicts(Answer("Within 45 days [Source 1].", citations=(1,)), [NEW, OLD, OTHER])
    assert found.conflicting == (("returns.md", "returns-2024.md"),)
    assert found.against == ()
    # Two pairs with the cited source, and the answer against it.
    assert found.contradiction == pytest.approx(1 / 3)
    assert [one["kind"] for one in found.differences] == ["number"]


def test_a_conflict_that_the_answer_does_not_touch_is_none() -> None:
    found = conflicts(Answer("Before noon [Source 3].", citations=(3,)), [NEW, OLD, OTHER])
    assert (found.conflicting, found.contradiction) == ((), 0.0)


def test_an_answer_against_its_source() -> None:
    found = conflicts(Answer("Most items can be returned within 60 days [Source 1].", citations=(1,)), [NEW, OTHER])
    assert found.against == ("returns.md",)
    assert found.contradiction == pytest.approx(1 / 2)


def test_a_page_that_another_has_replaced_is_outdated() -> None:
    def with_metadata(one: Hit, **metadata: str) -> Hit:
        chunk = one.chunk
        return hit(chunk.text, chunk.doc_id, **{}) if not metadata else _with(one, metadata)

    replaced = with_metadata(OLD, id="returns-2024")
    newer = with_metadata(NEW, supersedes="returns-2024")
    assert outdated(Answer("x", citations=(2,)), [newer, replaced]) == ("returns-2024.md",)
    assert outdated(Answer("x", citations=(1,)), [newer, replaced]) == ()
    assert outdated(Answer("x", citations=(1,)), [with_metadata(OLD, status="outdated")]) == ("returns-2024.md",)


def _with(one: Hit, metadata: dict[str, str]) -> Hit:
    from dataclasses import replace

    return replace(one, chunk=replace(one.chunk, metadata=metadata))


def test_other_sources_are_the_same_without_the_last_that_is_not_cited() -> None:
    assert varied([NEW, OLD, OTHER], Answer("x", citations=(1,))) == [OLD, NEW]
    assert varied([NEW, OLD], Answer("x", citations=(1, 2))) == [OLD, NEW]
    assert varied([NEW], Answer("x", citations=())) == [NEW]


@pytest.mark.parametrize(
    ("one", "other", "wanted"),
    [
        ("Returns take 45 days [Source 1].", "Returns take 45 days [Source 3].", 1.0),
        ("Returns take 45 days.", "Returns take 30 days.", 0.0),
        ("Returns take 45 days. Express costs €9.", "Express costs €9.", 2 / 3),
        ("Returns take 45 days.", "The kettle is blue.", 0.0),
        ("", "", 1.0),
        ("Returns take 45 days.", "", 0.0),
    ],
)
def test_agreement(one: str, other: str, wanted: float) -> None:
    assert claims_agreement(one, other) == pytest.approx(wanted)
    assert claims_agreement(other, one) == pytest.approx(wanted)


def test_german_sources_have_no_contradiction_and_the_reason_is_said() -> None:
    old = hit("Die Lieferung kostet in der Schweiz 5 € und sie kommt nicht mit der Post.", "alt.md", 0)
    new = hit("Die Lieferung kostet in der Schweiz 9 € und sie kommt nicht mit der Post.", "neu.md", 1)
    found = conflicts(Answer("9 €.", citations=(2,)), [old, new])
    assert found.contradiction is None
    assert found.reasons == (("contradiction", "no rules for de: contradictions are looked for in English"),)
