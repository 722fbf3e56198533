"""A model is asked once which passages contradict each other; where none says it, rules look."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from rag_harness.core.errors import ModelCallError, RecordingMissError
from rag_harness.core.types import Answer, Completion, Hit, Message, Usage
from rag_harness.evaluation.measures.opinion import Claim, Verdict, Verdicts
from rag_harness.pipelines.trace import Trace
from rag_harness.studies.reliability_verification import (
    BY_RULES,
    Checked,
    ContradictionModel,
    ModelPairs,
    claims_agreement,
    conflicts,
    grounded,
    outdated,
    varied,
)
from tests.unit.studies.reliability.hits import hit

# A model is asked once which passages contradict each other; where none says it, rules look.

LAMPS = [
    hit("A lamp may be returned within 30 days.", "c.md", 0),
    hit("You have six weeks to send a lamp back.", "d.md", 1),
    hit("Shipping to the islands takes three working days.", "a.md", 2),
]
NAMED = {"first": 1, "first_says": "within 30 days", "second": 2, "second_says": "six weeks to send a lamp back"}
ANSWER = Answer("A lamp may be returned within 30 days [Source 1].", citations=(1,))


class Replies:
    """A chat model with one reply, which keeps what it was asked."""

    model = "test/chat"

    def __init__(self, reply: Any) -> None:
        self.reply, self.asked = reply, list[Sequence[Message]]()

    async def complete(self, messages: Sequence[Message], response_format: Any = None) -> Completion:
        self.asked.append(messages)
        if isinstance(self.reply, Exception):
            raise self.reply
        text = self.reply if isinstance(self.reply, str) else json.dumps({"contradictions": self.reply})
        return Completion(text, self.model, Usage(9, 3, 1), 10.0)


def told(reply: Any, context: Sequence[Hit] = LAMPS) -> tuple[ModelPairs, Replies, Trace]:
    chat, trace = Replies(reply), Trace()
    return asyncio.run(ContradictionModel(chat, "judge").asked(context, trace)), chat, trace


def checked(reply: Any, answer: Answer = ANSWER, context: Sequence[Hit] = LAMPS) -> Checked:
    return conflicts(answer, context, told(reply, context)[0])


def test_other_words_are_no_contradiction_by_rules_and_are_one_by_a_model() -> None:
    assert conflicts(ANSWER, LAMPS).conflicting == ()
    found = checked([NAMED])
    assert found.conflicting == (("c.md", "d.md"),)
    assert found.contradiction == pytest.approx(1 / 3), "two pairs with the cited source, and the answer against it"
    assert found.differences == (
        {"kind": "said by a model", "differs": ["within 30 days", "six weeks to send a lamp back"]},
    )
    assert dict(found.reasons) == {"contradiction": "by the model of role judge"}


def test_it_is_asked_once_for_all_pairs_and_the_call_is_in_the_row() -> None:
    _, chat, trace = told([NAMED])
    ((_, user),) = chat.asked
    assert all(one.chunk.text in user.content for one in LAMPS)
    (call,) = trace.output(ANSWER).stages[0].calls
    assert (call.role, call.model, call.usage.calls) == ("judge", "test/chat", 1)


def test_a_pair_that_the_answer_does_not_touch_is_none() -> None:
    found = checked([NAMED], Answer("Three days [Source 3].", citations=(3,)))
    assert (found.conflicting, found.contradiction) == ((), 0.0)


def test_what_the_rules_would_find_is_not_added_to_what_a_model_says() -> None:
    old = hit("A lamp may be returned within 60 days.", "old.md", 3)
    assert conflicts(ANSWER, [LAMPS[0], old]).conflicting == (("c.md", "old.md"),)
    assert checked([], context=[LAMPS[0], old]).conflicting == ()


@pytest.mark.parametrize(
    "named",
    [
        {**NAMED, "second_says": "You must pay for the postage yourself"},
        {**NAMED, "second": 1},
        {**NAMED, "second": 4},
        {**NAMED, "first": 0},
        {**NAMED, "first": True},
        {**NAMED, "first": "1"},
        {**NAMED, "first_says": ""},
        "c.md and d.md",
        {},
    ],
)
def test_what_is_not_quoted_from_two_passages_is_left_out_and_counted(named: Any) -> None:
    found, *_ = told([named, NAMED])
    assert found.pairs is not None
    assert [(each.first, each.second) for each in found.pairs] == [(0, 1)]
    said = "; 1 that it names without a quote from both passages are left out"
    assert found.why == f"by the model of role judge{said}"


def test_the_order_of_a_pair_does_not_matter() -> None:
    turned = {"first": 2, "first_says": NAMED["second_says"], "second": 1, "second_says": NAMED["first_says"]}
    assert told([turned, NAMED])[0].pairs == told([NAMED])[0].pairs


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (ModelCallError("503"), "by rules: the model of role judge cannot be asked: 503"),
        ("none", 'by rules: the reply of the model of role judge is no JSON with a list "contradictions"'),
        ('{"contradictions": "none"}', "by rules: the reply of *"),
    ],
)
def test_where_a_model_cannot_say_rules_look_and_the_reason_is_said(reply: Any, why: str) -> None:
    found, _, trace = told(reply)
    assert found.pairs is None
    assert found.why == why or (why.endswith("*") and found.why.startswith(why[:-1]))
    assert trace.failed_stage == ""
    old = hit("A lamp may be returned within 60 days.", "old.md", 3)
    assert checked(reply, context=[LAMPS[0], old]).conflicting == (("c.md", "old.md"),)


def test_a_missing_recording_is_an_error() -> None:
    with pytest.raises(RecordingMissError):
        told(RecordingMissError("not recorded", []))


def test_one_passage_is_not_asked_about() -> None:
    found, chat, _ = told([NAMED], LAMPS[:1])
    assert (found.pairs, found.why, chat.asked) == ((), "one passage only", [])


def test_without_a_model_the_rules_say_that_they_looked() -> None:
    assert asyncio.run(ContradictionModel().asked(LAMPS, Trace())) is BY_RULES
    ((name, why),) = conflicts(ANSWER, LAMPS).reasons
    assert name == "contradiction"
    assert why.startswith("by rules, ")
    assert why.endswith("no model is configured to be asked")


def test_a_model_reads_what_the_rules_do_not() -> None:
    old = hit("Die Lieferung kostet in der Schweiz 5 € und sie kommt nicht mit der Post.", "alt.md", 0)
    new = hit("In die Schweiz liefern wir für neun Euro, und das dauert nicht lange.", "neu.md", 1)
    named = {"first": 1, "first_says": "kostet in der Schweiz 5 €", "second": 2, "second_says": "für neun Euro"}
    found = checked([named], Answer("Sie kostet 9 €.", citations=(2,)), [old, new])
    assert (found.conflicting, found.contradiction) == ((("alt.md", "neu.md"),), 1.0)
    alone = checked([], Answer("Sie kostet 9 €, und das ist nicht viel.", citations=(1,)), [new])
    assert alone.contradiction is None, "neither a model nor a rule has compared anything"


# Three checks of an answer.

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
