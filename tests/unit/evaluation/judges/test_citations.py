"""Citation marks are no claims: they come off before an answer is judged and come back as citations."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.settings import Settings
from rag_harness.evaluation.judges import fused, ragas
from rag_harness.evaluation.judges.citation_marks import placed_claims, unmarked_answer
from rag_harness.evaluation.judges.factory import create_judge, judged
from rag_harness.evaluation.judges.mock import MockJudge
from rag_harness.evaluation.measures import Score
from rag_harness.evaluation.measures.judged import AnswerRelevancy, Faithfulness
from rag_harness.evaluation.measures.opinion import (
    CITATIONS,
    CitedClaim,
    Claim,
    Judge,
    JudgeQuestion,
    Material,
    Opinion,
    OpinionOfCitations,
    Verdict,
    Verdicts,
)
from tests.unit.evaluation.judges.rows import CP_F_AR, FAITHFULNESS, OPENING, REFUNDS, RETURNS, ROW
from tests.unit.evaluation.judges.scripted import Chat, Parts, as_parts, run_judge
from tests.unit.evaluation.judges.test_fused import judge_rows, judging
from tests.unit.evaluation.measures.judged.opinions import judged_measure

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
    said = asyncio.run(run_judge(MockJudge()).opinion(material, ()).supported("answer", "contexts"))
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
    opinion = run_judge(cast("Judge", judge)).opinion(Material("?", "Free [Source 1].", CONTEXTS), ())
    said = asyncio.run(opinion.supported("answer", "contexts"))
    assert judge.shown[0].answer == "Free."
    assert said.each[0].claim == Claim("in other words")


def test_an_answer_of_marks_alone_claims_nothing() -> None:
    material = Material("When do refunds arrive?", "[Source 1] [Sources 1, 2]", CONTEXTS)
    measures = [Faithfulness(), AnswerRelevancy()]
    scores = asyncio.run(judged(material, measures, run_judge(MockJudge())))
    assert (scores["faithfulness"].value, scores["faithfulness"].reason) == (None, "no claim in the answer")
    assert scores["answer_relevancy"].value == 0


def test_citations_are_in_the_detail_of_a_score() -> None:
    material = Material("?", "Returns are free [Source 1]. Refunds take 7 days.", CONTEXTS)
    score = asyncio.run(judged(material, [Faithfulness()], run_judge(MockJudge())))["faithfulness"]
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


# Which sources support each claim: the call of the fused judge, and other judges asked about one source at a time.

CITED = replace(ROW, answer=f"{RETURNS} [Source 1] {REFUNDS} [Source 1] Hello there.")
MEASURES = ("citation_support", "citation_coverage", "misattributed", "citation_coverage_alce")


def claims_of(judge: Judge, material: Material, *more: JudgeQuestion) -> Sequence[CitedClaim]:
    opinion = run_judge(judge).opinion(material, [CITATIONS, *more])
    assert isinstance(opinion, OpinionOfCitations)
    return asyncio.run(opinion.citations())


def scores(judge: Judge, material: Material, *names: str) -> dict[str, Score]:
    measures = [judged_measure(name) for name in names or MEASURES]
    return asyncio.run(judged(material, measures, run_judge(judge)))


def of(chat: Chat) -> Judge:
    return fused.create(as_parts(Parts(chat)))


def test_the_fused_judge_says_it_of_every_source_without_knowing_what_was_cited() -> None:
    chat = Chat()
    first, second, hello = claims_of(of(chat), CITED)
    assert chat.kinds == ["claims", "supported"]
    assert not any("[Source" in asked.user for asked in chat.asked)
    assert [claim.claim.citations for claim in (first, second, hello)] == [(1,), (1,), ()]
    assert [each.value for each in first.sources] == [1.0, 0.0, 0.0]
    assert (second.verdict(3).value, second.verdict(3).quote) == (1.0, REFUNDS)
    assert CITED.answer[second.claim.start : second.claim.end] == REFUNDS
    assert [claim.needs for claim in (first, second, hello)] == [True, True, False]


def test_the_scores_of_an_answer() -> None:
    found = scores(of(Chat()), CITED)
    assert {name: score.value for name, score in found.items()} == {
        "citation_support": 0.5,
        "citation_coverage": 0.5,
        "misattributed": 0.5,
        "citation_coverage_alce": pytest.approx(1 / 3),
    }
    wrong = found["misattributed"].detail["claims"][1]
    assert wrong["reason"] == "another source than the cited one supports it"
    assert [(each["source"], each["cited"], each["support"]) for each in wrong["sources"]] == [
        (1, True, "none"),
        (3, False, "full"),
    ]


def test_they_share_the_call_of_faithfulness_three_for_all_and_four_at_most() -> None:
    names = ("context_precision", "faithfulness", "answer_relevancy", *MEASURES)
    chat = Chat()
    scores(of(chat), CITED, *names)
    assert sorted(chat.kinds) == ["claims+questions", "supported", "useful"]
    failing = Chat(supported=["no JSON"], useful=["no JSON"], claims_and_questions=[{}])
    scores(of(failing), CITED, *names)
    assert len(failing.asked) <= 4


def test_who_does_not_ask_for_citations_is_asked_what_was_always_asked() -> None:
    with_citations, without = Chat(), Chat()
    scores(of(with_citations), CITED, "faithfulness", "citation_support")
    scores(of(without), CITED, "faithfulness")
    assert all("needs_source" not in asked.system for asked in without.asked)
    assert [asked.user for asked in without.asked] == [asked.user for asked in with_citations.asked]


def test_five_chunks_with_citations_stay_below_6000_tokens() -> None:
    words = "The customer may return what was bought within thirty days, with the receipt and in its box. "
    material = replace(ROW, answer=(words * 10)[:700], contexts=tuple(f"{n} {words * 8}"[:720] for n in range(5)))
    chat = Chat()
    scores(of(chat), material, "context_precision", "faithfulness", "answer_relevancy", *MEASURES)
    characters = [len(asked.system) + len(asked.user) for asked in chat.asked]
    assert (sum(characters) + max(characters)) / 4 < 6000


_VERDICT = {"index": 1, "needs_source": True, "support": [], "verdict": "supported", "passage": 1}


def _by(**changes: Any) -> dict[str, Any]:
    each = {"passage": 1, "quote": RETURNS, "degree": "full", **changes}
    return {"verdicts": [{**_VERDICT, "support": [each]}]}


ONE = replace(ROW, answer=f"{RETURNS} [Source 1]")


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (_by(degree="mostly"), "a verdict that it was not offered"),
        (_by(passage=4), "named a passage that is not there"),
        (_by(passage=0), "named a passage that is not there"),
        ({"verdicts": [{**_VERDICT, "support": _by()["verdicts"][0]["support"] * 2}]}, "two verdicts"),
        ({"verdicts": [{**_VERDICT, "support": "all"}]}, "not the JSON"),
        ({"verdicts": [{**_VERDICT, "needs_source": "yes"}]}, "a verdict that it was not offered"),
        ({"verdicts": []}, "gave no verdict"),
        ("no JSON", "not the JSON"),
    ],
)
def test_what_cannot_be_read_is_asked_once_more_and_then_has_no_score(reply: Any, reason: str) -> None:
    chat = Chat(supported=[reply, reply])
    found = scores(of(chat), ONE, "citation_support", "faithfulness")
    assert chat.kinds == ["claims", "supported", "supported"]
    assert found["citation_support"].value is None
    assert reason in found["citation_support"].reason
    keeps = isinstance(reply, dict) and bool(reply["verdicts"])
    assert found["faithfulness"].value == (1.0 if keeps else None), "the verdict itself could be read"
    once = scores(of(Chat(supported=[reply])), ONE, "citation_support")
    assert once["citation_support"].value == 1.0


def test_a_quote_that_is_not_in_the_source_is_said_and_not_shown() -> None:
    chat = Chat(supported=[_by(quote="Returns cost nothing.")])
    source = scores(of(chat), ONE, "citation_support")["citation_support"].detail["claims"][0]["sources"][0]
    assert "quote" not in source
    assert source["reason"] == "the words that the judge quoted are not in the source"
    folded = Chat(supported=[_by(quote="free  for\nthirty days")])
    source = scores(of(folded), ONE, "citation_support")["citation_support"].detail["claims"][0]["sources"][0]
    assert source["quote"] == "free for thirty days"


def test_a_source_without_text_supports_nothing_and_keeps_its_number() -> None:
    row = replace(ONE, contexts=(" ", RETURNS))
    (claim,) = claims_of(of(Chat()), row)
    assert [(each.source, each.value) for each in claim.sources] == [(1, 0.0), (2, 1.0)]


def test_what_was_recorded_with_citations_replays_with_and_without_them(tmp_path: Path) -> None:
    row = replace(ROW, contexts=(RETURNS, OPENING, REFUNDS))
    asks: list[JudgeQuestion] = [*CP_F_AR, CITATIONS]
    with judging() as server:
        recorded = judge_rows(tmp_path, "record", server.url, [row], asks)
        assert len(server.requests) == 3
    assert len(recorded[0][CITATIONS]) == 2  # type: ignore[index]
    assert judge_rows(tmp_path, "replay", server.url, [row], asks) == recorded
    alone = judge_rows(tmp_path, "replay", server.url, [row], [FAITHFULNESS])[0]
    assert alone[str(FAITHFULNESS)] == recorded[0][str(FAITHFULNESS)]


def test_ragas_says_that_it_cannot() -> None:
    chat = Chat()
    found = scores(ragas.create(as_parts(Parts(chat))), CITED, "citation_support")["citation_support"]
    assert found.value is None
    assert found.reason.startswith("cannot be measured: RAGAS defines no measure of citations")
    assert not chat.asked


def test_another_judge_is_asked_about_one_source_at_a_time() -> None:
    material = replace(ROW, answer=f"{RETURNS} [1] {REFUNDS} [1, 2]")
    first, second = claims_of(MockJudge(), material)
    assert [each.value for each in first.sources] == [1.0, 0.0, 0.0]
    assert [each.value for each in second.sources] == [0.0, 0.0, 1.0]
    assert (second.claim.citations, second.verdict(3).quote, second.needs) == ((1, 2), REFUNDS, True)
    assert first.verdict(2).quote == ""


class Several:
    """A judge that finds other claims in each source."""

    name = model = revision = "several"

    def opinion(self, material: Material, asks: Collection[JudgeQuestion]) -> Opinion:
        self.text = material.contexts[0]
        return cast("Opinion", self)

    async def supported(self, claims: Any, source: Any) -> Verdicts:
        return Verdicts((Verdict(Claim(self.text), 1.0),))


def test_a_judge_that_finds_other_claims_each_time_has_no_score() -> None:
    found = scores(cast("Judge", Several()), CITED, "citation_support")["citation_support"]
    assert found.reason == "the judge found other claims in the answer when it was given another source"


def test_a_judge_of_a_run_is_the_one_that_it_was_where_nobody_asks_for_citations() -> None:
    judge = Listening()
    asyncio.run(run_judge(cast("Judge", judge)).opinion(CITED, [FAITHFULNESS]).supported(*FAITHFULNESS))
    assert [each.contexts for each in judge.shown] == [CITED.contexts]


@pytest.mark.parametrize(
    ("answer", "claims", "cited"),
    [
        ("A is free and B takes 7 days [2].", ["A is free", "B takes 7 days"], [(2,), (2,)]),
        ("A is free [1] and B takes 7 days [2].", ["A is free", "B takes 7 days"], [(1,), (2,)]),
        ("A is free [1] and B takes 7 days.", ["A is free", "B takes 7 days"], [(1,), ()]),
        ("A is free. B takes 7 days [2].", ["A is free", "B takes 7 days"], [(), (2,)]),
    ],
)
def test_a_mark_at_the_end_of_a_sentence_is_of_all_its_claims_without_one(
    answer: str, claims: list[str], cited: list[tuple[int, ...]]
) -> None:
    plain = unmarked_answer(answer, 2)
    found = placed_claims(
        plain, [Claim(each, plain.text.find(each), plain.text.find(each) + len(each)) for each in claims]
    )
    assert [claim.citations for claim in found] == cited


def test_a_claim_in_words_of_its_own_is_put_where_its_words_stand() -> None:
    answer = "A is free [1]. Refunds take 7 days [2]."
    claims = [Claim("A is free.", 0, 10), Claim("The refunds need 7 days")]
    _, found = placed_claims(unmarked_answer(answer, 2), claims)
    assert (answer[found.start : found.end], found.citations) == ("Refunds take 7 days [2].", (2,))
    (nowhere,) = placed_claims(unmarked_answer(answer, 2), [Claim("Xyz")])
    assert (nowhere.start, nowhere.citations) == (-1, ())
