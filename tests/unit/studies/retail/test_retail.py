"""Searches are planned by the model of role ``rewrite``; what it says is used only where it can be."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import ModelCallError
from rag_harness.core.types import Completion, Usage
from rag_harness.pipelines.trace import Trace
from rag_harness.studies.retail import MOST_SEARCHES, VERSION_QUESTION, planned, searches_in, subquestions
from tests.effort import bounded

# Searches are planned by the model of role ``rewrite``; what it says is used only where it can be.

ASKED = "How long do I have and what does it cost?"
BY_RULES = [ASKED, "How long do I have", "what does it cost?"]


class Rewriter:
    """Says what it was made with, and keeps what it was asked."""

    model = "test/rewriter"

    def __init__(self, says: str | Exception) -> None:
        self.says, self.asked = says, list[Any]()

    async def complete(self, messages: Any, response_format: Any = None) -> Completion:
        self.asked.append((messages, response_format))
        if isinstance(self.says, Exception):
            raise self.says
        return Completion(self.says, self.model, Usage(5, 3, 1), 12.0)


def plan(says: Any, question: str = ASKED) -> tuple[list[str], Trace]:
    trace = Trace()
    rewriter = None if says is None else Rewriter(says if isinstance(says, (str, Exception)) else json.dumps(says))
    return asyncio.run(planned(question, rewriter, trace)), trace


def test_without_a_model_the_rules_plan() -> None:
    searches, trace = plan(None)
    assert searches == BY_RULES
    assert trace.calls == {}
    assert trace.details["plan"] == {"searches": BY_RULES}
    (decision,) = trace.decisions
    assert (decision.name, decision.outcome, decision.value, decision.threshold) == ("plan", "by rules", 3.0, 3)
    assert decision.reason == "3 searches; no model of role rewrite is configured"


def test_by_a_model() -> None:
    searches, trace = plan({"searches": [" return  window ", "price of a return"]})
    assert searches == [ASKED, "return window", "price of a return"]
    assert [(one.name, one.outcome, one.value) for one in trace.decisions] == [("plan", "by model", 3.0)]
    assert [call.role for call in trace.calls["plan"]] == ["rewrite"]


def test_a_model_is_asked_once_with_the_question_and_a_form() -> None:
    rewriter = Rewriter('{"searches": ["x"]}')
    asyncio.run(planned(ASKED, rewriter, Trace()))
    ((messages, form),) = rewriter.asked
    assert messages[-1].content == f"Question: {ASKED}"
    assert form["json_schema"]["name"] == "plan"


def test_a_model_that_finds_nothing_to_plan_gives_the_question_back() -> None:
    searches, trace = plan({"searches": [ASKED.upper()]})
    assert searches == [ASKED]
    assert trace.decisions[0].outcome == "by model"
    assert trace.decisions[0].reason == "the question is searched as it is"


@pytest.mark.parametrize(
    ("says", "why"),
    [
        ("I would look at the policy.", 'no JSON with a list "searches"'),
        ("", 'no JSON with a list "searches"'),
        ('{"searches": ["a"', 'no JSON with a list "searches"'),
        (["a", "b"], 'no JSON with a list "searches"'),
        ({"queries": ["a"]}, 'no JSON with a list "searches"'),
        ({"searches": "a"}, 'no JSON with a list "searches"'),
        ({"searches": []}, "it names no search"),
        ({"searches": ["a", " "]}, "a search is empty or no text"),
        ({"searches": ["a", 7]}, "a search is empty or no text"),
        ({"searches": [f"search {n}" for n in range(50)]}, "it names 50 searches, and 2 were asked for"),
        ({"searches": ["returns", "Returns "]}, "it names a search twice"),
        ({"searches": ["a" * 501]}, "a search has more than 500 characters"),
    ],
)
def test_what_cannot_be_used_leaves_it_to_the_rules_and_says_so(says: Any, why: str) -> None:
    searches, trace = plan(says)
    assert searches == BY_RULES
    (decision,) = trace.decisions
    assert decision.outcome == "by rules"
    assert "the reply of the model of role rewrite cannot be used: " in decision.reason
    assert decision.reason.endswith(why)
    assert len(trace.calls["plan"]) == 1, "the call was made, and is counted"


def test_prose_and_a_fence_around_the_plan_do_no_harm() -> None:
    assert searches_in('Sure:\n```json\n{"searches": ["a", "b"]}\n```') == (["a", "b"], "")


def test_a_call_that_fails_fails_the_stage() -> None:
    with pytest.raises(ModelCallError) as failed:
        plan(ModelCallError("503"))
    assert failed.value.rag_trace.failed_stage == "plan"  # type: ignore[attr-defined]


def test_a_german_question_stays_whole_and_the_plan_says_why() -> None:
    asked = "Wie lange dauert der Versand und was kostet er?"
    searches, trace = plan(None, asked)
    assert searches == [asked]
    assert trace.decisions[0].reason.endswith("no rules for de: a question is split in English alone")


# Questions are parted by rules: the one that was asked first, at most three, nothing empty, nothing twice.

PIECES = st.sampled_from(
    [
        "How long do I have", "and what does it cost", ", or can I swap it", "between Grove and Plus", "?", ". ", "! ",
        "I am away", "compared with", "in 2024", ", how", " and ", "versus", "which policy", "\n", "é", "12.50", "",
    ]
)  # fmt: skip


@given(st.text(max_size=200) | st.lists(PIECES, max_size=12).map(" ".join))
def test_whatever_is_asked(text: str) -> None:
    found = subquestions(text)
    assert found[0] == text
    assert len(found) <= MOST_SEARCHES == 3
    assert all(part.strip() for part in found[1:])
    assert len({part.casefold() for part in found}) == len(found)
    assert subquestions(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "?!",
        "How long may I return a lamp?",
        "Can I return it or exchange it?",
        "lamp return window",
        "What do I pay to send it to my brother, who lives in Zone 2?",
        "When I sign up today, will that purchase show up?",
        "My aunt gave me a kettle and I don't want it. What would I get?",
        "Is it a chair or a stool?",
        "How, and why?",
    ],
)
def test_what_has_no_parts_stays_whole(text: str) -> None:
    assert subquestions(text) == [text]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "How many days does merging take and which number stays?",
            ["How many days does merging take", "which number stays?"],
        ),
        (
            "I cancelled the sofa. How much do you keep, and how long does the rest take?",
            ["I cancelled the sofa. How much do you keep", "I cancelled the sofa. how long does the rest take?"],
        ),
        (
            "Am I too late to swap it and do I have to pay on top?",
            ["Am I too late to swap it", "do I have to pay on top?"],
        ),
        (
            "It is broken. Can you mend it? And what does that cost?",
            ["It is broken. Can you mend it?", "It is broken. And what does that cost?"],
        ),
        (
            "am i doing sth wrong or do i have to push harder",
            ["am i doing sth wrong", "do i have to push harder"],
        ),
        (
            "What is the difference between Grove and Grove Plus?",
            ["What is the difference Grove?", "What is the difference Grove Plus?"],
        ),
        ("Express compared with standard delivery?", ["Express", "standard delivery?"]),
        ("Express vs. standard?", ["Express", "standard?"]),
        (
            "What does it cost, how long does it take and who brings it to me?",
            ["What does it cost", "how long does it take and who brings it to me?"],
        ),
        ("Who may call them and from when is it staffed?", ["Who may call them", "from when is it staffed?"]),
    ],
)
def test_parts(text: str, parts: list[str]) -> None:
    assert subquestions(text) == [text, *parts]


@pytest.mark.parametrize("text", ["Was delivery free in 2024?", "Is this the current policy?", "Which is outdated?"])
def test_which_version_is_current_is_asked_where_versions_matter(text: str) -> None:
    assert subquestions(text) == [text, f"{text} {VERSION_QUESTION}"]


def test_parts_go_before_versions() -> None:
    assert VERSION_QUESTION not in " ".join(subquestions("What did it cost in 2024 and what does it cost now?"))


@pytest.mark.parametrize(
    "text", ["between " * 2_000, " " * 10_000 + "?", ", how" * 2_000, "." * 10_000, "is it? " * 1_500]
)
def test_a_long_text_takes_no_time(text: str) -> None:
    with bounded(5):
        subquestions(text)
