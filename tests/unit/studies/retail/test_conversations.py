"""The conversations over the retail study's pages: their gold is there, and they are what data/README.md says."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

from rag_harness.core.text.comparison import words_of
from rag_harness.data.documents import page_files
from rag_harness.data.queries import QueryLine
from rag_harness.records.expectations import AnswerSeen, expectations_of, looked_at, tells_by_words

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
