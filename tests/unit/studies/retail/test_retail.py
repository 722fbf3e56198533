"""Searches of the retail study are planned by a model; its conversations are what they say they are."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import ModelCallError
from rag_harness.core.text.comparison import words_of
from rag_harness.core.types import Completion, Usage
from rag_harness.data.documents import page_files
from rag_harness.data.queries import QueryLine
from rag_harness.pipelines.trace import Trace
from rag_harness.records.expectations import AnswerSeen, expectations_of, looked_at, tells_by_words
from rag_harness.studies.retail import MOST_SEARCHES, VERSION_QUESTION, planned, searches_in, subquestions
from tests.effort import bounded

# Searches are planned by the model of role ``rewrite``; what it says is used only where it can be.

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
        ("I would look at the policy.", 'not JSON with a list "searches"'),
        ("", 'not JSON with a list "searches"'),
        ('{"searches": ["a"', 'not JSON with a list "searches"'),
        (["a", "b"], 'not JSON with a list "searches"'),
        ({"queries": ["a"]}, 'not JSON with a list "searches"'),
        ({"searches": "a"}, 'not JSON with a list "searches"'),
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


# The conversations over the retail study's pages: their gold is there, and they are what data/README.md says.

KB = Path(__file__).parents[4] / "data" / "kb"
FILE = KB / "conversations.jsonl"
FROZEN = "0ad3cf03d1f03231570dc17fc6ecdb61223e58b7ecb0af28b96c29b580a1266a"
"""Data that is mended after scores were seen measures nothing. Whoever has to mend it says so in data/README.md."""
KINDS = {
    "first": 30,
    "follow_up": 50,
    "compare": 12,
    "correction": 12,
    "subject_change": 14,
    "underspecified": 8,
    "unanswerable": 10,
    "back": 6,
}
CONVERSATIONS: list[dict[str, Any]] = [json.loads(line) for line in FILE.read_text("utf-8").splitlines()]
TURNS = [(f"{one['conversation']}_{n}", turn) for one in CONVERSATIONS for n, turn in enumerate(one["turns"], 1)]


def kind(turn: dict[str, Any]) -> str:
    return str(turn["metadata"]["turn_kind"])


def test_the_data_is_frozen() -> None:
    assert hashlib.sha256(FILE.read_bytes()).hexdigest() == FROZEN


def test_conversations_are_numbered_and_no_file_of_the_knowledge_base() -> None:
    assert [one["conversation"] for one in CONVERSATIONS] == [f"conv_{n:03}" for n in range(1, 31)]
    assert FILE not in [*page_files(KB)]


def test_a_conversation_has_three_to_six_turns_and_begins_with_its_only_first_one() -> None:
    for one in CONVERSATIONS:
        assert one.keys() == {"conversation", "turns", "metadata"}, one["conversation"]
        assert one["metadata"].keys() == {"category", "part"}, one["conversation"]
    begun = [[kind(turn) == "first" for turn in one["turns"]] for one in CONVERSATIONS]
    faults = [
        one["conversation"]
        for one, first in zip(CONVERSATIONS, begun, strict=True)
        if not 3 <= len(first) <= 6 or first != [True] + [False] * (len(first) - 1)
    ]
    assert faults == []


def test_a_conversation_goes_back_only_after_a_change() -> None:
    kinds = {one["conversation"]: [kind(turn) for turn in one["turns"]] for one in CONVERSATIONS}
    back = {name: each for name, each in kinds.items() if "back" in each}
    assert [name for name, each in back.items() if "subject_change" not in each[: each.index("back")]] == []


def test_a_turn_is_a_question_as_queries_have_them_and_its_quotes_stand_in_their_pages() -> None:
    lines = {name: QueryLine.model_validate({"query_id": "q1", **turn}) for name, turn in TURNS}
    assert [name for name, line in lines.items() if not line.ground_truth] == []
    quoted = {name: sorted({each.filename for each in line.evidence}) for name, line in lines.items()}
    assert [name for name, line in lines.items() if sorted(line.context_reference) != quoted[name]] == []
    texts = {page: (KB / page).read_text("utf-8") for pages in quoted.values() for page in pages}
    evidence = [(name, each) for name, line in lines.items() for each in line.evidence]
    faults = [
        f"{name}: {each.filename} has no {each.quote!r}"
        for name, each in evidence
        if each.quote not in texts[each.filename]
    ]
    assert not faults, "\n".join(faults)


def test_a_turn_has_gold_unless_it_is_unanswerable() -> None:
    faults = [f"{name}: {turn['query']}" for name, turn in TURNS if not _has_gold_or_needs_none(turn)]
    assert not faults, "\n".join(faults)


def _has_gold_or_needs_none(turn: dict[str, Any]) -> bool:
    pages = turn["context_reference"]
    if kind(turn) == "unanswerable":
        return (turn["query_type"], pages) == ("negative", []) and (KB / turn["metadata"]["nearest_page"]).is_file()
    is_of_its_type = turn["query_type"] == ("multi_hop" if len(pages) > 1 else "direct")
    return is_of_its_type and bool(pages) and not any("-2024" in page for page in pages)


def test_the_ground_truth_keeps_what_is_expected() -> None:
    faults = [f"{name}: {turn['query']}: {why}" for name, turn in TURNS for why in _broken(turn)]
    assert not faults, "\n".join(faults)


def _broken(turn: dict[str, Any]) -> list[str]:
    """Return what is wrong with the expectations of a turn, and those that its own ground truth does not keep."""
    found, problems = expectations_of(turn.get("expect", []))
    of_words = [each for each in found if tells_by_words(each)]
    seen = looked_at(of_words, AnswerSeen(turn["ground_truth"]))
    return [*map(str, problems), *(str(each) for each in seen if not each.kept)]


def test_both_parts_have_the_same_kinds() -> None:
    parts = [
        Counter(kind(turn) for one in CONVERSATIONS if one["metadata"]["part"] == part for turn in one["turns"])
        for part in ("fit", "report")
    ]
    assert parts[0] == parts[1]
    assert parts[0] + parts[1] == KINDS
    assert [one["metadata"]["part"] for one in CONVERSATIONS] == ["fit"] * 15 + ["report"] * 15


def test_every_kind_stands_in_six_conversations() -> None:
    spread = Counter(each for one in CONVERSATIONS for each in {kind(turn) for turn in one["turns"]})
    assert min(spread[each] for each in KINDS) >= 6


def test_conversations_are_spread_over_the_pages() -> None:
    assert len({page for _, turn in TURNS for page in turn["context_reference"]}) == 58
    begun = Counter(page for one in CONVERSATIONS for page in one["turns"][0]["context_reference"])
    assert max(begun.values()) <= 3
    assert sum("expect" in turn for _, turn in TURNS) == 56


def test_no_turn_is_nearly_a_question_of_the_study() -> None:
    lines = (KB / "queries.jsonl").read_text("utf-8").splitlines()
    known = [set(words_of(json.loads(line)["query"])) for line in lines]
    for name, turn in TURNS:
        words = set(words_of(turn["query"]))
        nearest = max(len(words & each) / len(words | each) for each in known)
        assert nearest < 0.4, name


def test_no_turn_is_asked_twice() -> None:
    assert len({turn["query"].lower() for _, turn in TURNS}) == len(TURNS) == 142
