"""The simulated model: the faults that it makes, how often, and what it says then."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import httpx2
import pytest

from rag_harness.core.errors import DataError
from rag_harness.core.text.terms import cited_sources
from rag_harness.models.prompts import load_prompts
from rag_harness.models.simulated_model import (
    DECLINED,
    FAULTS,
    GUESSED,
    IGNORED,
    INVENTED,
    MIXED,
    MODEL,
    WRONG_MEMORY,
    SimulatedAnswer,
    SimulatedApp,
    SimulatedModel,
    changed,
    fault_rate,
    names_in,
    nearest_sentence,
)
from rag_harness.pipelines.parts import response_format
from tests.unit.hits import hits_of

# The simulated model: the faults that it makes, how often, and what it says then.

RETURNS = ("returns.md", "# Returns\n\nA lamp can be returned within **45 days**.\n")
SHIPPING = ("shipping.md", "# Shipping\n\nA lamp is shipped to the Harbour within 3 working days.\n")
ASKED, UNASKABLE = "How long can I return a lamp?", "Is the lamp green?"
GOLD = "A lamp can be returned for 45 days."
SEEDS = range(2000)


@pytest.fixture
def model(tmp_path: Path) -> SimulatedModel:
    rows = [
        {
            "query": ASKED,
            "ground_truth": GOLD,
            "context_reference": ["returns.md"],
            "evidence": [{"filename": "returns.md", "quote": "returned  within **45 days**"}],
        },
        {"query": "How is it shipped?", "ground_truth": "It is shipped in 3 days.", "context_reference": "shipping.md"},
        {"query": UNASKABLE, "ground_truth": "Nobody says.", "context_reference": []},
    ]
    file = tmp_path / "queries.jsonl"
    file.write_text("\n".join([*map(json.dumps, rows), "no JSON", "[]", "{}"]), encoding="utf-8")
    return SimulatedModel.reading(file)


def _found(
    model: SimulatedModel, question: str, *context: tuple[str, str], fault: str, reasons: bool = False
) -> SimulatedAnswer:
    """Return the first answer with a fault, over seeds."""
    answers = (model.answer(question, context, seed=seed, reasons=reasons) for seed in SEEDS)
    return next(answer for answer in answers if answer.fault == fault)


@pytest.mark.parametrize("reasons", [False, True])
@pytest.mark.parametrize(
    ("fault", "question", "context", "before"),
    [
        (WRONG_MEMORY, ASKED, (), ()),
        (INVENTED, UNASKABLE, (), ()),
        (IGNORED, ASKED, (RETURNS, SHIPPING), ()),
        (DECLINED, ASKED, (RETURNS, SHIPPING), (IGNORED,)),
        (MIXED, ASKED, (RETURNS, SHIPPING), (IGNORED, DECLINED)),
        (GUESSED, ASKED, (SHIPPING,), (IGNORED,)),
        (GUESSED, UNASKABLE, (RETURNS,), (IGNORED,)),
    ],
)
def test_a_fault_is_made_as_often_as_is_stated(
    model: SimulatedModel,
    fault: str,
    question: str,
    context: tuple[tuple[str, str], ...],
    before: tuple[str, ...],
    reasons: bool,
) -> None:
    found = Counter(model.answer(question, context, seed=seed, reasons=reasons).fault for seed in SEEDS)
    possible = len(SEEDS) - sum(found[other] for other in before)
    assert found[fault] / possible == pytest.approx(fault_rate(fault, reasons), abs=0.04)


def test_reasoning_leaves_faults_out_and_adds_none(model: SimulatedModel) -> None:
    """An answer without one fault may have the next one."""
    order = [IGNORED, DECLINED, MIXED, ""]
    for seed in SEEDS:
        plain = model.answer(ASKED, (RETURNS, SHIPPING), seed=seed)
        reasoned = model.answer(ASKED, (RETURNS, SHIPPING), seed=seed, reasons=True)
        assert order.index(reasoned.fault) >= order.index(plain.fault)


def test_without_a_fault_it_cites_its_evidence_or_declines(model: SimulatedModel) -> None:
    read = _found(model, ASKED, SHIPPING, RETURNS, fault="")
    assert (read.text, read.outcome) == (f"{GOLD} [Source 2]", "right")
    assert _found(model, ASKED, SHIPPING, fault="").outcome == "declined"
    assert _found(model, UNASKABLE, RETURNS, fault="").text == "I don't know."


def test_a_question_without_quotes_has_its_evidence_on_its_pages(model: SimulatedModel) -> None:
    assert _found(model, "how is it  SHIPPED?", SHIPPING, fault="").text == "It is shipped in 3 days. [Source 1]"


def test_what_each_fault_says(model: SimulatedModel) -> None:
    memory = _found(model, ASKED, fault=WRONG_MEMORY)
    assert memory.outcome == "wrong"
    assert GOLD not in memory.text
    mixed = _found(model, ASKED, RETURNS, SHIPPING, fault=MIXED)
    assert mixed.text == f"{GOLD} [Source 1] {SHIPPING[1].splitlines()[-1]} [Source 1]"
    guessed = _found(model, ASKED, SHIPPING, fault=GUESSED)
    assert cited_sources(guessed.text) == [1]
    assert SHIPPING[1].splitlines()[-1] not in guessed.text
    assert _found(model, ASKED, RETURNS, fault=DECLINED).outcome == "declined"


def test_memory_is_the_same_with_a_context_that_is_ignored(model: SimulatedModel) -> None:
    for seed in SEEDS[:200]:
        ignoring = model.answer(ASKED, (RETURNS,), seed=seed)
        if ignoring.fault == IGNORED:
            assert ignoring.text == model.answer(ASKED, seed=seed).text


def test_a_fault_does_not_depend_on_what_else_is_in_the_context(model: SimulatedModel) -> None:
    """So that two experiments differ only in what they retrieve, and one that is run again finds the same fault."""
    for seed in SEEDS[:200]:
        one, other = (model.answer(ASKED, context, seed=seed) for context in [(RETURNS,), (RETURNS, RETURNS)])
        assert one.fault == other.fault


def test_no_step_names_a_fault(model: SimulatedModel) -> None:
    said = {step for seed in SEEDS for step in model.answer(ASKED, (RETURNS, SHIPPING), seed=seed).steps}
    assert all("imulated" in step for step in said)
    assert not [step for step in said for fault in FAULTS if fault in step]


def test_a_strange_question_is_declined(model: SimulatedModel) -> None:
    assert model.answer("Who are you?", (RETURNS,)).outcome == "declined"
    assert model.answer("Who are you?").fault == ""


def test_the_same_answer_on_every_machine() -> None:
    """With another Python, and with the lines in another order, each seed gives the same answer."""
    model = SimulatedModel.reading(Path(__file__).parents[4] / "data/kb/queries.jsonl")
    asked = "Until when does your contract with Corrigan Freight run?"
    assert [model.answer(asked, seed=seed).text for seed in range(3)] == [
        "Oskerry's contract with Corrigan Freight runs until 31 December 2027.",
        "Oskerry's contract with Refill runs until 31 December 2027.",
        "Every doorway must be at least 5 cm wider than the carton.",
    ]


def test_questions_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"The simulated model knows the questions of .*none\.jsonl"):
        SimulatedModel.reading(tmp_path / "none.jsonl")


# Statements with one thing changed.

NAMES = ["Harbour", "Lindmoor Mills"]


def _ways(text: str) -> set[str]:
    return {changed(text, NAMES, seed) for seed in range(50)}


@pytest.mark.parametrize(
    ("text", "ways"),
    [
        ("It costs €1,000 a year.", {"It costs €2,000 a year.", "It costs €3,000 a year.", "It costs €1,500 a year."}),
        ("It began in 2024.", {"It began in 2023.", "It began in 2025.", "It began in 2026."}),
        ("It costs 0 euros.", {"It costs 1 euros."}),
        ("Form AF-1 at 07:30.", {"Form AF-1 at 07:30."}),
        ("Go to the Harbour first.", {"Go to the Lindmoor Mills first."}),
        ("Yes, always.", {"No, always."}),
        ("No, never.", {"Yes, never."}),
        ("It cannot be sent.", {"It can be sent."}),
        ("It is not sent.", {"It is sent."}),
        ("It can be sent.", {"It can not be sent."}),
    ],
)
def test_one_thing_is_changed(text: str, ways: set[str]) -> None:
    assert _ways(text) == ways


def test_a_time_a_code_and_a_part_of_a_number_stay() -> None:
    assert _ways("At 07:30 HK-2210 costs 4.90.") == {"At 07:30 HK-2210 costs 4.90."}


def test_several_ways_are_all_taken() -> None:
    text = "Yes, it costs 3 euros at the Harbour."
    assert {way[0] for way in _ways(text)} == {"Y", "N"}
    assert len(_ways(text)) == 5


def test_names_are_words_inside_of_a_sentence() -> None:
    assert names_in(["The shop at Calder Bay is open.", "Ask Mary."]) == ["Calder Bay", "Mary"]


def test_the_nearest_sentence_is_running_text() -> None:
    strange = "# A lamp and a warranty\n\n| lamp | warranty |\n\nIs the lamp under warranty?\n\n"
    text = f"{strange}- A **lamp** has a warranty.\n"
    other = "Shipping takes three days, as always. A lamp is bright enough."
    context = [("a.md", other), ("b.md", text)]
    assert nearest_sentence("Has a lamp a warranty?", context) == ("A lamp has a warranty.", 2)
    assert nearest_sentence("Has a lamp a warranty?", [("a.md", "# Lamp")]) == ("", 0)


# The simulated model behind the interface of OpenAI's chat completions.

SIMULATED_APP_ASKED = "How long can I return a lamp?"


@pytest.fixture
def app(tmp_path: Path) -> SimulatedApp:
    file = tmp_path / "queries.jsonl"
    row = {"query": SIMULATED_APP_ASKED, "ground_truth": "For 45 days.", "context_reference": ["page.md"]}
    file.write_text(json.dumps(row), encoding="utf-8")
    return SimulatedApp(SimulatedModel.reading(file))


def _asked(app: SimulatedApp, method: str, path: str, body: Any = None) -> httpx2.Response:
    async def ask() -> httpx2.Response:
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://embedded/v1") as client:
            return await client.request(method, path, json=body)

    return asyncio.run(ask())


def _body(reasons: bool = False, **more: Any) -> dict[str, Any]:
    prompts = load_prompts("e4" if reasons else "e3")
    said = prompts.messages(SIMULATED_APP_ASKED, hits_of(["A lamp can be returned within 45 days."]))
    messages = [{"role": message.role, "content": message.content} for message in said]
    return {"model": MODEL, "messages": messages, "seed": 2, "response_format": response_format(reasons), **more}


def _said(app: SimulatedApp, body: dict[str, Any]) -> str:
    response = _asked(app, "POST", "/chat/completions", body)
    assert response.status_code == 200, response.text
    text: str = response.json()["choices"][0]["message"]["content"]
    return text


def test_the_studys_prompts_are_read(app: SimulatedApp) -> None:
    assert json.loads(_said(app, _body())) == {"answer": "For 45 days. [Source 1]"}
    reasoned = json.loads(_said(app, _body(reasons=True)))
    assert reasoned["reasoning_steps"][-1] == "Simulated step: sources used: 1."


def test_the_seed_decides(app: SimulatedApp) -> None:
    assert len({_said(app, _body(seed=seed)) for seed in range(30)}) > 1


def test_a_stream_has_one_event_with_the_answer(app: SimulatedApp) -> None:
    response = _asked(app, "POST", "/chat/completions", _body(stream=True))
    event, done = response.text.split("\n\n")[:2]
    assert done == "data: [DONE]"
    chunk = json.loads(event.removeprefix("data: "))
    assert json.loads(chunk["choices"][0]["delta"]["content"]) == {"answer": "For 45 days. [Source 1]"}
    assert chunk["usage"]["total_tokens"] > 0


def test_without_a_schema_the_answer_is_plain_text(app: SimulatedApp) -> None:
    assert _said(app, _body(response_format=None)) == "For 45 days. [Source 1]"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (_body(model="gpt"), 404),
        (_body(messages=[]), 400),
        (_body(messages=["hello"]), 400),
        ([], 400),
        (_body(response_format={"json_schema": {"schema": {"properties": {"searches": {}}}}}), 400),
    ],
)
def test_requests_that_cannot_be_answered(app: SimulatedApp, body: Any, status: int) -> None:
    response = _asked(app, "POST", "/chat/completions", body)
    assert response.status_code == status
    assert response.json()["error"]["message"]


def test_other_paths_are_unknown(app: SimulatedApp) -> None:
    assert _asked(app, "GET", "/models").status_code == 404
