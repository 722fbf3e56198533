"""What each kind of expectation finds in an answer, and what it says of it."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.text.comparison import without_emphasis
from rag_harness.records.expectations import (
    AnswerSeen,
    ExpectationResult,
    Source,
    expectations_of,
    kind_of,
    known_kinds,
    looked_at,
)

SOURCES = (Source("returns.md", "You can return a lamp within 45 days."), Source("fees/post.md", "It costs €4.90."))
LAMP = AnswerSeen("You can return a lamp within 45 days [Source 1].", sources=SOURCES, cited=(1,))
NOT_TOLD = AnswerSeen("I don't know.", declined=True, sources=None)


def look(demand: dict[str, Any], answer: AnswerSeen | str = LAMP) -> ExpectationResult:
    expected, problems = expectations_of([demand])
    assert problems == []
    (found,) = looked_at(expected, AnswerSeen(answer) if isinstance(answer, str) else answer)
    return found


KEPT: list[tuple[dict[str, Any], AnswerSeen | str]] = [
    ({"contains": "45 days"}, LAMP),
    ({"contains": "45  DAYS"}, "Within 45\ndays."),
    ({"contains": "4"}, "4, and 5"),
    ({"contains": "refund"}, "Refunds take 5 days."),
    ({"contains": "45 days."}, "within 45 days [Source 1] ."),
    ({"contains_any": ["60 days", "45 days"]}, LAMP),
    ({"contains_all": ["lamp", "45 days"]}, LAMP),
    ({"equals": "45 days"}, " 45  Days [Source 1]"),
    ({"one_of": ["45 days", "six weeks"]}, "Six weeks"),
    ({"starts_with": "you can"}, LAMP),
    ({"ends_with": "45 days"}, "It is 45 days [Source 1]"),
    ({"regex": r"\b\d+ days\b"}, LAMP),
    ({"rouge_l": "You can return lamps within 45 days", "at_least": 0.8}, LAMP),
    ({"max_words": 8}, LAMP),
    ({"min_words": 8}, "You can return a lamp within 45 days [Source 1]"),
    ({"max_chars": 7}, "45 days [Source 1]"),
    ({"min_chars": 7}, "45 days"),
    ({"max_sentences": 2}, "It is 45 days. Refunds take five."),
    ({"links": True}, "See https://shop.example/returns."),
    ({"language": "de"}, "Sie können die Lampe innerhalb von 45 Tagen zurückgeben, und das ist kostenlos."),
    ({"is_json": True}, '```json\n{"days": 45}\n```'),
    ({"json": {"type": "object", "required": ["days"]}}, '{"days": 45}'),
    ({"number": 45}, LAMP),
    ({"number": 1400}, "It costs 1,400 in all"),
    ({"number": 1400.5, "unit": "€"}, "It costs €1.400,50."),
    ({"number": 4.9, "unit": "€"}, "4.90 €"),
    ({"number": 45, "within": 1}, "about 44.5 days"),
    ({"number": 1400}, "It costs 1 400.0 in all"),
    ({"number": 45}, "Since 2024 45 days"),
    ({"number": 5}, "5 10 15"),
    ({"number": -3}, "It was −3 degrees"),
    ({"date": "2024-03-01"}, "Since 1 March 2024 it costs more."),
    ({"date": "2024-03-01"}, "Since March 1st, 2024."),
    ({"date": "2024-03-01"}, "Seit 1.3.2024"),
    ({"cites": "returns.md"}, LAMP),
    ({"cites": "ret*.md"}, LAMP),
    ({"cites_any": ["other.md", "returns.md"]}, LAMP),
    ({"cites_all": ["returns.md"]}, LAMP),
    ({"cites_only": ["returns.md"]}, LAMP),
    ({"cited": True}, LAMP),
    ({"valid_citations": True}, LAMP),
    ({"retrieves": "fees/post.md"}, LAMP),
    ({"context_contains": "costs €4.90"}, LAMP),
    ({"declines": True}, NOT_TOLD),
    ({"answers": True}, LAMP),
    ({"decides": "warn"}, AnswerSeen("45 days", decision="warn")),
    ({"min_confidence": 0.8}, AnswerSeen("45 days", confidence=0.8)),
    ({"max_ms": 90}, AnswerSeen("45 days", ms=90)),
    ({"max_usd": 0.01}, AnswerSeen("45 days", usd=0.0)),
    ({"max_tokens": 9}, AnswerSeen("45 days", tokens=9)),
    ({"finishes": "stop"}, AnswerSeen("45 days", finish_reason="stop")),
]

BROKEN: list[tuple[dict[str, Any], AnswerSeen | str, str]] = [
    ({"contains": "54 days"}, LAMP, "the nearest is “45 days”"),
    ({"contains": "45 Days", "case": True}, LAMP, "the nearest is “45 days”"),
    ({"contains": "45 days"}, "", "the answer is empty"),
    ({"contains": "5 days"}, LAMP, "the nearest is “45 days”"),
    ({"contains": "4.90"}, "14.90", "the nearest is “14.90”"),
    ({"contains": "€4"}, "€4.90", "it says “€4.90”"),
    ({"contains_all": ["lamp", "chair"]}, LAMP, "“chair” is missing: it says “You can return a lamp within 45 days.”"),
    ({"equals": "45 days"}, LAMP, "it says “You can return a lamp within 45 days.”"),
    ({"starts_with": "lamp"}, LAMP, "it begins with “You can return a lamp within 45 days”"),
    ({"ends_with": "lamp"}, LAMP, "it ends with “can return a lamp within 45 days.”"),
    ({"regex": r"\d+ weeks"}, LAMP, "it says “You can return a lamp within 45 days.”"),
    ({"rouge_l": "It costs €4.90", "at_least": 0.1}, LAMP, "it is 0.00"),
    ({"max_words": 7}, LAMP, "it has 8 words"),
    ({"max_sentences": 1}, "It is 45 days. Refunds take five.", "it has 2 sentences"),
    ({"language": "de"}, "You can return the lamp within 45 days, and that is free of charge.", "it is in en"),
    ({"is_json": True}, LAMP, "it is no JSON: Expecting value: line 1 column 1 (char 0)"),
    ({"json": {"properties": {"a": {"maximum": 40}}}}, '{"a": 45}', "$.a: 45 is greater than the maximum of 40"),
    ({"number": 54}, LAMP, "its numbers are 45"),
    ({"number": 45, "unit": "€"}, LAMP, "it has no numbers with € beside them"),
    ({"number": 145}, "1,450 or 14.5", "its numbers are 1,450, 14.5"),
    ({"number": 100}, "It costs 1 100", "its numbers are 1 100"),
    ({"date": "2024-03-01"}, "Since 3 January 2024.", "its dates are 3 January 2024"),
    ({"cites": "fees/post.md"}, LAMP, "it cites returns.md"),
    ({"cites_only": ["fees/post.md"]}, LAMP, "it cites returns.md"),
    ({"cites_only": ["returns.md"]}, AnswerSeen("45 days", sources=SOURCES), "it cites nothing"),
    ({"valid_citations": True}, AnswerSeen("45 days", sources=SOURCES, cited_wrongly=(7,)), "of 2 sources it cites 7"),
    ({"retrieves": "other.md"}, LAMP, "its prompt had returns.md, fees/post.md"),
    ({"context_contains": "60 days"}, LAMP, "none of its 2 sources has it"),
    ({"declines": True}, LAMP, "it says “You can return a lamp within 45 days [Source 1].”"),
    ({"answers": True}, NOT_TOLD, "it declines"),
    ({"decides": "pass"}, AnswerSeen("45 days", decision="abstain"), "it decided abstain"),
    ({"min_confidence": 0.8}, AnswerSeen("45 days", confidence=0.7), "its confidence is 0.70"),
    ({"max_ms": 90}, AnswerSeen("45 days", ms=1_234), "it took 1,234 ms"),
    ({"max_usd": 0.01}, AnswerSeen("45 days", usd=0.02), "it cost $0.020000"),
    ({"max_tokens": 9}, AnswerSeen("45 days", tokens=10), "it used 10 tokens"),
    ({"finishes": "stop"}, AnswerSeen("45 days", finish_reason="length"), "it stopped for the reason 'length'"),
]

UNCHECKED: list[tuple[dict[str, Any], AnswerSeen | str]] = [
    ({"cites": "a.md"}, NOT_TOLD),
    *(({kind: ["a.md"]}, NOT_TOLD) for kind in ("cites_any", "cites_all", "cites_only")),
    ({"cited": True}, NOT_TOLD),
    ({"retrieves": "a.md"}, NOT_TOLD),
    ({"context_contains": "a"}, NOT_TOLD),
    ({"language": "de"}, "45"),
    ({"decides": "pass"}, LAMP),
    ({"min_confidence": 0.8}, LAMP),
    ({"max_usd": 1}, LAMP),
    ({"max_tokens": 9}, LAMP),
    ({"finishes": "stop"}, LAMP),
    ({"contains": "a"}, "a" * 200_001),
]


def test_every_kind_is_tried_here() -> None:
    in_a_file_of_its_own = {"snapshot"}
    assert {next(iter(demand)) for demand, _ in KEPT} == {
        kind for kind in known_kinds() if kind_of(kind).asks == "nothing"
    } - in_a_file_of_its_own
    assert len(known_kinds()) >= 25


@pytest.mark.parametrize(("demand", "answer"), KEPT, ids=str)
def test_what_is_kept(demand: dict[str, Any], answer: AnswerSeen | str) -> None:
    assert look(demand, answer).kept is True
    assert look({"not": demand}, answer).kept is False


@pytest.mark.parametrize(("demand", "answer", "said"), BROKEN, ids=str)
def test_what_is_not_kept_and_what_stands_there(demand: dict[str, Any], answer: AnswerSeen | str, said: str) -> None:
    found = look(demand, answer)
    assert (found.kept, found.said) == (False, said)
    assert look({"not": demand}, answer).kept is True


@pytest.mark.parametrize(("demand", "answer"), UNCHECKED, ids=lambda each: str(each)[:60])
def test_what_cannot_be_checked_is_kept_in_neither_direction(demand: dict[str, Any], answer: AnswerSeen | str) -> None:
    for asked in (demand, {"not": demand}):
        found = look(asked, answer)
        assert found.kept is None
        assert found.said


@given(st.text(max_size=60), st.text(alphabet="ab \n", min_size=1, max_size=5).filter(str.strip), st.text(max_size=60))
def test_a_text_that_stands_in_an_answer_is_found_where_it_is(before: str, wanted: str, behind: str) -> None:
    found = look({"contains": wanted}, f"{before}{wanted}{behind}")
    assert found.kept
    place = f"{before}{wanted}{behind}"[found.start : found.end]
    assert without_emphasis(place).casefold().split() == wanted.split() or "[" in before + behind


@given(st.from_regex(r"[a-c]{0,30}x?[a-c]{0,30}", fullmatch=True))
def test_a_pattern_is_found_where_python_finds_one(text: str) -> None:
    found = look({"regex": "ax?b"}, text)
    assert found.kept is ("axb" in text or "ab" in text)
    assert not found.kept or text[found.start : found.end] in ("axb", "ab")


def test_a_dear_pattern_and_a_dear_schema_take_no_time() -> None:
    start = time.perf_counter()
    assert look({"regex": r"(a+)+$"}, "a" * 50_000 + "b").kept is False
    schema = {"properties": {"a": {"pattern": r"^(a+)+$"}}}
    assert look({"json": schema}, '{"a": "' + "a" * 5_000 + 'b"}').kept is False
    assert time.perf_counter() - start < 5


def test_deep_json_is_no_crash() -> None:
    assert look({"is_json": True}, "[" * 100_000).kept is False
