"""Citation marks are no claims: they come off before an answer is judged and come back as citations."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.settings import Settings
from rag_harness.evaluation.judges.citations import CitationsOff, placed_claims, unmarked_answer
from rag_harness.evaluation.judges.factory import create_judge, judged
from rag_harness.evaluation.judges.mock import MockJudge
from rag_harness.evaluation.measures.judged import AnswerRelevancy, Faithfulness
from rag_harness.evaluation.measures.opinion import Claim, Judge, JudgeQuestion, Material, Opinion, Verdict, Verdicts

CONTEXTS = ("Returns are free.", "Refunds take 7 days.")


@pytest.mark.parametrize(
    ("answer", "plain"),
    [
        ("Returns are free [Source 1].", "Returns are free."),
        ("Returns are free. [Source 1] Refunds take 7 days. [Sources 1, 2]", "Returns are free. Refunds take 7 days."),
        ("Free.[1]Refunds take [2](https://example.com/a) 7 days[1], [2].", "Free. Refunds take 7 days."),
        ("[Source 2] Refunds take 7 days.", " Refunds take 7 days."),
        ("Free\n[Source 1]\nor not", "Free\n\nor not"),
        ("no marks", "no marks"),
    ],
)
def test_marks_are_taken_off(answer: str, plain: str) -> None:
    assert unmarked_answer(answer, 2).text == plain


@pytest.mark.parametrize(
    "answer", ["The list [3] and [1, 9].", "Call `row[1]`.", "```\nrow[1] = 2\n```", "see [figure 1]", "[x] done"]
)
def test_brackets_that_name_no_context_stay(answer: str) -> None:
    assert unmarked_answer(answer, 2).text == answer


def claims(answer: str, contexts: Sequence[str] = CONTEXTS) -> list[Claim]:
    material = Material("?", answer, tuple(contexts))
    said = asyncio.run(CitationsOff(MockJudge()).opinion(material, ()).supported("answer", "contexts"))
    return [verdict.claim for verdict in said.each]


@pytest.mark.parametrize(
    ("answer", "cited"),
    [
        ("Returns are free [Source 1]. Refunds take 7 days [2].", [(1,), (2,)]),
        ("Returns are free. [Source 1] [Source 2] Refunds take 7 days.", [(1, 2), ()]),
        ("[Source 2] Returns are free.\n[Source 1] Refunds take 7 days.", [(2,), (1,)]),
        ("Returns are free.\n\n[Source 1]\n[Source 2]", [(1, 2)]),
    ],
)
def test_a_mark_is_a_citation_of_the_claim_before_it_or_of_the_line_that_it_begins(
    answer: str, cited: list[tuple[int, ...]]
) -> None:
    assert [claim.citations for claim in claims(answer)] == cited


def test_claims_stand_where_they_stand_in_the_answer_with_its_marks() -> None:
    answer = "[Source 1] Returns are [1] free [Source 1]. \n Refunds take 7 days [Source 2]."
    found = claims(answer)
    assert [answer[claim.start : claim.end] for claim in found] == [
        "Returns are [1] free [Source 1].",
        "Refunds take 7 days [Source 2].",
    ]
    assert [claim.text for claim in found] == ["Returns are free.", "Refunds take 7 days."]


class Listening:
    """A judge that notes what it is shown, and puts its claim into words of its own."""

    name = model = revision = "listening"

    def __init__(self) -> None:
        self.shown: list[Material] = []

    def opinion(self, material: Material, asks: Collection[JudgeQuestion]) -> Opinion:
        self.shown.append(material)
        return cast("Opinion", self)

    async def supported(self, claims: Any, source: Any) -> Verdicts:
        return Verdicts((Verdict(Claim("in other words"), 1.0),))


def test_a_claim_without_a_place_keeps_none_and_cites_nothing() -> None:
    judge = Listening()
    opinion = CitationsOff(cast("Judge", judge)).opinion(Material("?", "Free [Source 1].", CONTEXTS), ())
    said = asyncio.run(opinion.supported("answer", "contexts"))
    assert judge.shown[0].answer == "Free."
    assert said.each[0].claim == Claim("in other words")


def test_an_answer_of_marks_alone_claims_nothing() -> None:
    material = Material("When do refunds arrive?", "[Source 1] [Sources 1, 2]", CONTEXTS)
    measures = [Faithfulness(), AnswerRelevancy()]
    scores = asyncio.run(judged(material, measures, CitationsOff(MockJudge())))
    assert (scores["faithfulness"].value, scores["faithfulness"].reason) == (None, "no claim in the answer")
    assert scores["answer_relevancy"].value == 0


def test_citations_are_in_the_detail_of_a_score() -> None:
    material = Material("?", "Returns are free [Source 1]. Refunds take 7 days.", CONTEXTS)
    score = asyncio.run(judged(material, [Faithfulness()], CitationsOff(MockJudge())))["faithfulness"]
    first, second = score.detail["claims"]
    assert first["citations"] == [1]
    assert "citations" not in second
    assert score.value == 1


def test_every_judge_of_a_run_is_shown_no_marks_and_says_so_in_its_revision() -> None:
    class Parts:
        settings = Settings(judge="mock")
        embedder = None

    judge = create_judge(cast("Any", Parts()))
    material = Material("?", "Returns are free. [Source 1]", CONTEXTS)
    marked = asyncio.run(judge.opinion(material, ()).supported("answer", "contexts"))
    plain = replace(material, answer="Returns are free.")
    assert [verdict.value for verdict in marked.each] == [
        verdict.value for verdict in asyncio.run(judge.opinion(plain, ()).supported("answer", "contexts")).each
    ]
    assert len(marked.each) == 1
    assert judge.revision != MockJudge.revision


@pytest.mark.parametrize("line", ["[1][2]", "Free [1]. ", "`a`[1] ", "[Source 1]\n", "a[1]b\n"])
def test_marks_and_claims_are_matched_in_a_time_that_grows_with_the_answer(line: str) -> None:
    answer = line * (200_000 // len(line))
    begin = time.thread_time()
    plain = unmarked_answer(answer, 2)
    claims = [Claim("x", start, start + 1) for start in range(0, len(plain.text) - 1, 7)]
    placed_claims(plain, claims)
    assert time.thread_time() - begin < 4  # the pairs of marks and claims took 13 s and more


@given(
    st.lists(st.sampled_from(["[1]", "[2] ", "\n", "a", "b. ", " and ", "`", "[Source 1]", ", "]), max_size=14).map(
        "".join
    ),
    st.lists(st.integers(0, 20), max_size=5),
)
def test_a_mark_has_the_owner_that_looking_at_each_claim_finds(answer: str, places: list[int]) -> None:
    plain = unmarked_answer(answer, 2)
    claims = [Claim("x", start, start + 1) for start in sorted({each for each in places if each < len(plain.text)})]
    placed = plain.placed(claims)
    wanted: dict[int, list[int]] = {}
    for mark in plain.marks:
        line = answer.rfind("\n", 0, mark.start) + 1
        ends = answer.find("\n", mark.end)
        before = [claim.start for claim in placed if claim.start < mark.start]
        behind = [claim.start for claim in placed if mark.end <= claim.start and (ends < 0 or claim.start < ends)]
        owner = before[-1] if before and (before[-1] >= line or not behind) else next(iter(behind), None)
        if owner is not None:
            wanted.setdefault(owner, []).extend(mark.sources)
    assert [list(claim.citations) for claim in placed] == [
        list(dict.fromkeys(wanted.get(claim.start, []))) for claim in placed
    ]
