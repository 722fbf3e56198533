"""Contradicting passages, and the signals of retrieval."""

from __future__ import annotations

import asyncio
import importlib
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import pstdev
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import ModelCallError, RecordingMissError
from rag_harness.core.types import Answer, Completion, Hit, Message, Usage
from rag_harness.evaluation.judges.calibration.confidence import Logistic
from rag_harness.evaluation.measures.opinion import Claim, Verdict, Verdicts
from rag_harness.pipelines.trace import Trace
from rag_harness.retrieval.retrievers import Rarity
from rag_harness.studies.reliability_retrieval import (
    COSINE,
    LOGIT,
    SCALES,
    Scale,
    Signals,
    coverage,
    original_quality,
    quality,
    raw_quality,
    scale_of,
    signals,
)
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
        ("none", 'by rules: the reply of the model of role judge is not JSON with a list "contradictions"'),
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


# Signals of retrieval: absolute scores, a margin that a copy does not hide, coverage by rarity, dispersion.

# Signals of retrieval: absolute scores, a margin that a copy does not hide, coverage by rarity, dispersion.

SCALE = Scale("max_sim", middle=0.5, spread=0.1, margin=0.2, dispersion=0.1)
WINDOW = "Lamps can be returned within 45 days of delivery with the receipt."
COPY = "Lamps can be returned within 30 days of delivery with the receipt."
RELIABILITY_RETRIEVAL_OTHER = "Express parcels leave the warehouse before noon on working days."
FOUND = [
    hit(WINDOW, number=0, max_sim=0.7),
    hit(COPY, "returns-2024.md", 1, max_sim=0.69),
    hit(RELIABILITY_RETRIEVAL_OTHER, "express.md", 2, max_sim=0.4),
]
RARITY = Rarity(one.chunk for one in FOUND)


def test_each_signal_by_hand() -> None:
    found = signals("return a lamp", FOUND, FOUND[:1], RARITY, SCALE)
    assert found.relevance == pytest.approx(1 / (1 + math.exp(-2)))
    assert found.margin == 1.0  # 0.3 to the other page, not 0.01 to the copy
    assert found.coverage == 1.0
    assert found.dispersion == pytest.approx(min(1, pstdev([0.7, 0.69, 0.4]) / 0.1))


def test_the_margin_passes_over_a_near_duplicate() -> None:
    assert raw_quality(FOUND, "max_sim").gap == pytest.approx(0.3)  # type: ignore[union-attr]
    assert raw_quality([FOUND[0], FOUND[2], FOUND[1]], "max_sim") == raw_quality(FOUND, "max_sim")


def test_where_all_say_the_same_there_is_no_margin() -> None:
    assert signals("return a lamp", FOUND[:2], FOUND[:1], RARITY, SCALE).margin is None


def test_coverage_weighs_rare_words() -> None:
    only_frequent = coverage("lamps warranty", [hit("Lamps and more lamps.")], RARITY)
    only_rare = coverage("lamps warranty", [hit("The warranty.")], RARITY)
    assert only_frequent is not None
    assert only_rare is not None
    assert 0 < only_frequent < 0.5 < only_rare < 1
    assert coverage("warranty", [], RARITY) == 0


def test_a_question_without_content_words_says_nothing_of_its_sources() -> None:
    assert coverage("What is it?", FOUND, RARITY) is None
    nothing = signals("What is it?", [], [], RARITY, SCALE)
    assert (nothing.coverage, quality(nothing)) == (None, 0)
    assert {one.name: one.reason for one in nothing.decisions()}["signal: coverage"] == (
        "the question has no content words"
    )
    found = signals("What is it?", FOUND, FOUND, RARITY, SCALE)
    assert dict(found.reasons) == {"coverage": "the question has no content words"}


def test_one_hit_has_no_dispersion() -> None:
    found = signals("return a lamp", FOUND[:1], FOUND[:1], RARITY, SCALE)
    assert found.dispersion is None
    assert dict(found.reasons)["dispersion"] == "one hit only"
    assert quality(found) == quality(replace(found, dispersion=None, margin=None))


def test_a_scale_that_was_fitted_to_nothing_says_so_beside_the_signal() -> None:
    reasons = {one.name: one.reason for one in signals("lamp", [hit(WINDOW, logit=2.0)], [], RARITY, LOGIT).decisions()}
    assert reasons["signal: relevance"] == "scale not fitted"
    reasons = {one.name: one.reason for one in signals("lamp", FOUND, [], RARITY, SCALE).decisions()}
    assert reasons["signal: relevance"] == ""


def test_what_has_no_absolute_score_is_not_measured() -> None:
    found = signals("return a lamp", [hit(WINDOW, bm25=3.0)], [hit(WINDOW)], RARITY, SCALE)
    assert (found.relevance, found.margin, found.dispersion) == (None, None, None)
    assert found.coverage == 1.0
    decisions = {one.name: one for one in found.decisions()}
    assert decisions["signal: relevance"].outcome == "not measured"
    assert "max_sim" in decisions["signal: relevance"].reason


def test_quality_is_the_weighted_mean_of_what_was_measured() -> None:
    whole = Signals(1.0, 0.5, 0.25, 0.0)
    assert quality(whole) == pytest.approx(0.4 * 1 + 0.2 * 0.5 + 0.2 * 0.25)
    assert quality(replace(whole, margin=None, dispersion=None)) == pytest.approx((0.4 + 0.05) / 0.6)
    assert quality(Signals()) == 0


def test_the_first_design_calls_any_sum_of_z_scores_relevant() -> None:
    reranked = [
        hit(text, f"{n}.md", n, rerank=score)
        for n, (text, score) in enumerate([(RELIABILITY_RETRIEVAL_OTHER, 3.1), (COPY, 2.9)])
    ]
    found = original_quality(reranked)
    assert found.relevance == pytest.approx(1 / (1 + math.exp(-3.1)))
    assert found.margin == pytest.approx(0.2)
    assert found.coverage == 2 / 5
    assert found.dispersion == pytest.approx(0.9)
    assert original_quality([hit(RELIABILITY_RETRIEVAL_OTHER)]).relevance is None


def test_scale_of_a_reranker() -> None:
    assert scale_of("embedded/late-interaction", True) is SCALES["embedded/late-interaction"]
    assert scale_of("cross-encoder/some", True) is LOGIT
    assert scale_of("mock/word-overlap", False) is COSINE


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=8))
def test_signals_lie_between_0_and_1(scores: list[float]) -> None:
    hits: list[Hit] = [hit(f"page {n} word{n}", f"{n}.md", n, max_sim=score) for n, score in enumerate(scores)]
    found = signals("lamp", hits, hits, RARITY, SCALE).items()
    assert [name for name, value in found.items() if value is None] == ["margin", "dispersion"] * (len(scores) == 1)
    assert all(0 <= value <= 1 for value in found.values() if value is not None)


# The script that tries the signals of retrieval on other data, on tasks that are made up here.

ROOT = Path(__file__).parents[4]
MTRAGUN = ROOT.parent / "shared/data/mtragun/reference.jsonl"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    if not (ROOT / "benchmarks").is_dir():
        pytest.skip("benchmarks are no part of an installed package")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("reliability_transfer")


def _row(kind: str, passages: int, *turns: str, collection: str = "shop") -> dict[str, Any]:
    said = [{"speaker": "user", "text": turn} for turn in turns]
    spoken = [each for turn in said for each in (turn, {"speaker": "agent", "text": "Yes."})][:-1]
    contexts = [{"document_id": f"page{number}", "text": f"\nword{number} tents"} for number in range(passages)]
    return {"answerability": [kind], "Collection": collection, "input": spoken, "contexts": contexts}


def _measured(script: ModuleType, kind: str, passages: int, relevance: float | None, collection: str = "shop") -> Any:
    task = script.task_of(_row(kind, passages, f"{kind} {relevance}", collection=collection))
    found = Signals(relevance=relevance, coverage=relevance)
    return script.Measured(task, found, found)


def test_a_task_has_the_turns_of_the_user_alone_and_its_passages(script: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "reference.jsonl"
    file.write_text(json.dumps(_row("PARTIAL", 2, "Do you sell tents?", "How much?")) + "\n", encoding="utf-8")
    [task] = script.read_tasks(file)
    assert (task.kind, task.collection, task.conversation) == ("PARTIAL", "shop", "Do you sell tents?")
    assert [each.text for each in task.passages] == ["word0 tents", "word1 tents"]
    forms = {name: made(task.turns) for name, made in script.FORMS.items()}
    assert forms == {"last turn": "How much?", "turns joined": "Do you sell tents?\nHow much?"}


def test_scores_stand_for_answerable_and_the_unmeasured_is_in_the_middle(script: ModuleType) -> None:
    each = [
        _measured(script, "ANSWERABLE", 2, 0.9),
        _measured(script, "ANSWERABLE", 1, None),
        _measured(script, "PARTIAL", 2, 0.1),
        _measured(script, "UNDERSPECIFIED", 0, None),
    ]
    scorer = script.scorers({})["relevance"]
    assert script.scores_of(each, scorer) == pytest.approx([0.9, 0.5, 0.1, -0.9])
    assert script.estimated(each, scorer).value == 1.0
    assert script.sizes({"all": each}) == "2 against 2"
    assert len(script.with_passages(each)) == 3
    assert [one.task.kind for one in script.only(each, "PARTIAL")] == ["ANSWERABLE", "ANSWERABLE", "PARTIAL"]


def test_a_model_is_asked_with_what_retrieval_tells(script: ModuleType) -> None:
    against = Logistic(
        n=9,
        positive=4,
        intercept=0.0,
        means={"relevance": 0.5},
        spreads={"relevance": 0.1},
        coefficients={"relevance": -1},
    )
    scored = script.scorers({"against": against})
    one, other = _measured(script, "ANSWERABLE", 2, 0.9), _measured(script, "PARTIAL", 1, 0.1)
    assert scored["against"](one) < 0.5 < scored["against"](other)
    assert scored["RQ"](one) > scored["RQ"](other)
    assert scored["no signal: fewer passages"](one) < scored["no signal: fewer passages"](other)


def test_within_collections_no_pair_of_two_of_them_counts(script: ModuleType) -> None:
    each = [
        _measured(script, "ANSWERABLE", 1, 0.9),
        _measured(script, "PARTIAL", 1, 0.8),
        _measured(script, "ANSWERABLE", 1, 0.3, collection="bank"),
        _measured(script, "PARTIAL", 1, 0.2, collection="bank"),
    ]
    scorer = script.scorers({})["relevance"]
    assert script.estimated(each, scorer).value == 0.75
    assert script.estimated(each, scorer, within=True).value == 1.0


def test_words_are_as_rare_as_the_passages_of_their_collection_have_them(script: ModuleType) -> None:
    tasks = [script.task_of(_row("PARTIAL", count, "Which?", collection=name)) for name, count in (("a", 3), ("b", 1))]
    rarities = script.rarity_by_collection([*tasks, tasks[0]])
    assert rarities["a"].of("word2") > rarities["a"].of("tent")
    assert rarities["b"].of("word2") > rarities["b"].of("word0")


def test_the_gate_is_that_of_the_thresholds(script: ModuleType) -> None:
    assert [script.way(found) for found in (0.56, 0.55, 0.35, 0.34)] == ["go on", "fallback", "fallback", "abstain"]


@pytest.mark.skipif(not MTRAGUN.exists(), reason=f"needs {MTRAGUN}")
def test_the_tasks_are_those_that_the_documentation_counts(script: ModuleType) -> None:
    tasks = script.read_tasks(MTRAGUN)
    kept = [task.kind for task in tasks if task.passages]
    assert [kept.count(kind) for kind in ("ANSWERABLE", "PARTIAL", "UNDERSPECIFIED", "UNANSWERABLE")] == [
        285,
        47,
        45,
        0,
    ]
    assert len(tasks) == 507
