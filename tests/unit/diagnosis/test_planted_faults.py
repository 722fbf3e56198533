"""Faults planted in a made-up study: nobody tells the diagnosis which, and it names each."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.protocols import Experiment
from rag_harness.core.settings import Settings
from rag_harness.core.types import Case, Chunk, Document, Evidence, Query
from rag_harness.data.datasets import Data
from rag_harness.diagnosis.explainer import Explainer
from rag_harness.diagnosis.reruns import RerunSupport
from rag_harness.evaluation.measures.correctness import rightness
from rag_harness.records.expectations import expectations_of
from rag_harness.records.row import ExperimentResult
from rag_harness.runs.trial import Trial, run_trial
from tests.unit.diagnosis.made_up import CASES, DONT_KNOW, Pipeline, chunks_of, experiment, explained, explainer, halved
from tests.unit.diagnosis.made_up import OLD as MADE_UP_OLD
from tests.unit.diagnosis.made_up import PAGES as MADE_UP_PAGES
from tests.unit.rows import make_chunk, make_row
from tests.unit.suite_tables import write_run

CHUNKS = chunks_of(MADE_UP_PAGES)


def rows_of(made: Experiment) -> list[ExperimentResult]:
    async def every() -> list[Any]:
        settings = Settings(profile="mock")
        return [(await run_trial(Trial("x1", case), made.pipeline, settings, "aaaa")).row for case in CASES]

    return asyncio.run(every())


def wrong(rows: list[ExperimentResult]) -> set[str]:
    found = zip(CASES, rows, strict=True)
    return {row.query_id for case, row in found if not rightness(case, row.llm_answer, row.abstained).right}


def causes(output: Path, pipeline: Pipeline) -> dict[str, tuple[str, str]]:
    """Return cause and detail of every trial that the fault touched."""
    made = experiment(pipeline)
    rows = rows_of(made)
    lines = explained(output, made, rows)
    assert {line.query_id for line in lines} == wrong(rows) != set()
    assert all(line.remedy and line.evidence and not line.observational for line in lines)
    return {line.query_id: (line.cause, line.detail) for line in lines}


def test_a_healthy_pipeline_gets_no_cause(tmp_path: Path) -> None:
    made = experiment(Pipeline(CHUNKS))
    rows = rows_of(made)
    assert not wrong(rows)
    assert explained(tmp_path, made, rows) == []


def test_a_page_that_was_deleted(tmp_path: Path) -> None:
    left = [chunk for chunk in CHUNKS if chunk.doc_id not in ("tent.md", "sofa.md")]
    found = causes(tmp_path, Pipeline(left))
    assert found == dict.fromkeys(["q2", "q4"], ("Retrieval Miss", "not in the index"))


def test_a_chunk_border_through_the_evidence(tmp_path: Path) -> None:
    cut = [piece for chunk in CHUNKS for piece in (halved(chunk) if "within" in chunk.text else [chunk])]
    found = causes(tmp_path, Pipeline(cut))
    assert found == dict.fromkeys([f"q{n}" for n in range(6)], ("Retrieval Miss", "cut by a chunk border"))


def test_evidence_that_is_ranked_below_the_context(tmp_path: Path) -> None:
    found = causes(tmp_path, Pipeline(CHUNKS, k=1, order=lambda chunk: "within" in chunk.text))
    assert set(found.values()) == {("Retrieval Miss", "found but ranked below k")}


def test_a_context_that_is_ignored(tmp_path: Path) -> None:
    found = causes(tmp_path, Pipeline(CHUNKS, says=lambda _: "That depends on your order."))
    assert found == dict.fromkeys([f"q{n}" for n in range(6)], ("Logic Failure", "the same answer to every question"))


def test_a_reader_that_refuses(tmp_path: Path) -> None:
    found = causes(tmp_path, Pipeline(CHUNKS, says=lambda _: DONT_KNOW))
    assert found == dict.fromkeys([f"q{n}" for n in range(6)], ("Logic Failure", "wrong refusal"))


def test_a_prompt_that_loses_its_last_chunk(tmp_path: Path) -> None:
    found = causes(tmp_path, Pipeline(CHUNKS, k=8, order=lambda chunk: "within" in chunk.text, loses=1))
    assert set(found.values()) == {("Logic Failure", "not read where it stood")}


def test_a_prompt_that_loses_its_only_chunk(tmp_path: Path) -> None:
    """Nothing can be put first there: it is given twice."""
    alone = [chunk for chunk in CHUNKS if "within" in chunk.text and chunk.doc_id != MADE_UP_OLD]
    found = causes(tmp_path, Pipeline(alone, loses=1))
    assert set(found.values()) == {("Logic Failure", "not read where it stood")}


def test_an_answer_that_stops_early(tmp_path: Path) -> None:
    found = causes(tmp_path, Pipeline(CHUNKS, says=lambda said: said[:20]))
    assert found == dict.fromkeys([f"q{n}" for n in range(6)], ("Logic Failure", "cut short"))


def test_chunks_that_a_service_cuts_short(tmp_path: Path) -> None:
    made = Pipeline(CHUNKS, sends=25)
    assert set(causes(tmp_path, made).values()) == {("Retrieval Miss", "the page came without the passage")}


def test_gold_with_a_wrong_figure_is_found_in_answers_that_nobody_called_failures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_harness.diagnosis.failures.WORST", 0)
    rows = rows_of(experiment(Pipeline(CHUNKS)))
    wrong_gold = [
        replace(case, ground_truth=case.ground_truth.replace(str(31 + n), "77")) for n, case in enumerate(CASES)
    ]
    told = [
        row.model_copy(update={"ground_truth": case.ground_truth}) for row, case in zip(rows, wrong_gold, strict=True)
    ]
    write_run(tmp_path, told, wrong_gold)
    lines = explainer(tmp_path, None).every()
    assert [(line.cause, line.detail) for line in lines] == [
        ("Gold Doubtful", "the answer has the figure of the evidence")
    ] * len(CASES)
    assert "31" in lines[0].evidence
    assert "77" in lines[0].evidence


def test_a_wrong_answer_that_is_not_among_the_worst_is_not_explained_for_its_figures(tmp_path: Path) -> None:
    rows = rows_of(experiment(Pipeline(CHUNKS, says=lambda _: "It takes 5 weeks.")))
    write_run(tmp_path, rows, CASES)
    assert [line.query_id for line in explainer(tmp_path, None, worst=2).every()] == ["q0", "q1"]


def test_an_outdated_page_that_is_ranked_first(tmp_path: Path) -> None:
    found = causes(tmp_path, Pipeline(CHUNKS, order=lambda chunk: chunk.doc_id != MADE_UP_OLD))
    assert found == {"q0": ("Outdated Info", "says what only an outdated page says")}


def test_noise(tmp_path: Path) -> None:
    rng = random.Random(3)
    found = causes(tmp_path, Pipeline(CHUNKS, says=lambda said: said if rng.random() >= 0.3 else "Ask us."))
    assert set(found.values()) == {("Noise", "right when asked again")}


@pytest.mark.parametrize("seed", [0, 1, pytest.param(2, marks=pytest.mark.long)])
def test_noise_is_found_in_nine_of_ten_trials(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    made = experiment(Pipeline(CHUNKS, says=lambda said: said if rng.random() >= 0.3 else "Ask us."))
    found: list[str] = []
    for turn in range(12):
        (tmp_path / str(turn)).mkdir()
        found += [line.cause for line in explained(tmp_path / str(turn), made, rows_of(made))]
    assert found.count("Noise") >= 0.9 * len(found) > 9


# Faults planted in answers that are right by their gold, or have none, after the rules of expectations were frozen.
#
# What is right was written down for each before the rules were run on any of them. Of the 30 the frozen rules named 29
# as
# written; docs/how-to/attribution.md has the figure, and the one that was named otherwise. No rule was mended after
# it.

POOL = """# Swimming pool

The pool is open from 6:30 to 21:00 on weekdays. Lanes can be booked two days ahead in the app.

Children under 8 years swim with an adult. A locker needs a coin of 2 euros, which comes back.

Anyone who cancels a course up to 14 days before it begins gets the whole fee back; after that half of it."""
SAUNA = """# Sauna

Towels are lent for 4.50 euros at the desk. Mobile phones stay in the locker.

The sauna is closed on 24 December and for two weeks in August 2026. Swimwear is not worn in the sauna."""
PRICES = """# Prices 2026

A day ticket costs 12,50 euros, a ticket of ten 110 euros. Pupils and students pay 9 euros.

Refunds are paid to the card that was used, within 5 working days."""
PRICES_OLD = """# Prices 2024

A day ticket costs 10,50 euros, a ticket of ten 95 euros. Pupils and students pay 8 euros."""
KURSE = """# Kurse

Der Anfängerkurs dauert acht Wochen und kostet 140 Euro. Mitzubringen sind Badekleidung und ein Schloss."""
PAGES = [
    Document("pool.md", POOL, "Pool", {"id": "pool", "status": "current"}),
    Document("sauna.md", SAUNA, "Sauna", {"id": "sauna", "status": "current"}),
    Document("prices-2026.md", PRICES, "Prices", {"id": "p26", "supersedes": "p24", "status": "current"}),
    Document("prices-2024.md", PRICES_OLD, "Prices", {"id": "p24", "status": "outdated"}),
    Document("kurse.md", KURSE, "Kurse", {"id": "kurse", "status": "current"}),
    Document(
        "reopening.md",
        "# Reopening\n\nThe pool reopens on the 2nd of November 2026 with 1,400 lockers.",
        "Reopening",
        {},
    ),
    Document(
        "parking.md", "# Parking\n\nThe car park is free for three hours with a stamp from the desk.", "Parking", {}
    ),
]


def chunks() -> dict[str, Chunk]:
    """Return the index: a paragraph a chunk. The page on parking was forgotten."""
    found = {}
    for page in PAGES[:-1]:
        place = 0
        for n, text in enumerate(page.text.split("\n\n")):
            place = page.text.index(text, place)
            one = Chunk(
                f"{page.doc_id}#{n}", page.doc_id, text, place, place + len(text), index=n, metadata=page.metadata
            )
            found[one.chunk_id] = one
    return found


INDEX = chunks()


@dataclass
class Plant:
    """A trial, and what is right to say of it: the cause, and one of the details."""

    name: str
    expect: list[Any]
    answer: str
    prompt: list[str]
    cause: str
    details: tuple[str, ...]
    query: str = "What is to be known?"
    truth: str = ""
    quote: tuple[str, str] = ("", "")
    candidates: list[str] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)
    known: bool = True


MISS, LOGIC, BROKEN, GOLD, OLD = (
    "Retrieval Miss",
    "Logic Failure",
    "Expectation Broken",
    "Gold Doubtful",
    "Outdated Info",
)
PLANTS = [
    Plant(
        "the reranker threw the page away",
        [{"retrieves": "pool.md"}],
        "From 6:30 to 21:00.",
        ["sauna.md#1", "kurse.md#1"],
        MISS,
        ("lost in reranking",),
        truth="From 6:30 to 21:00.",
        candidates=["pool.md#1", "sauna.md#1", "kurse.md#1"],
    ),
    Plant(
        "k is too small",
        [{"cites": "pool.md"}],
        "From 6:30 to 21:00 [Source 1].",
        ["sauna.md#1"],
        MISS,
        ("found but ranked below k",),
        truth="From 6:30 to 21:00.",
        candidates=["sauna.md#1", "kurse.md#1", "pool.md#1"],
    ),
    Plant(
        "a page forgotten when the index was made",
        [{"contains": "three hours"}],
        "Parking is free.",
        ["pool.md#1"],
        MISS,
        ("not in the index",),
    ),
    Plant(
        "the embedder does not find it",
        [{"contains_all": ["coin", "2 euros"]}],
        "Lockers can be locked.",
        ["sauna.md#1"],
        MISS,
        ("not found",),
    ),
    Plant(
        "half of it is in the prompt, half not found",
        [{"contains_all": ["4.50 euros", "6:30"]}],
        "Towels cost 4.50 euros.",
        ["sauna.md#1"],
        MISS,
        ("not found",),
    ),
    Plant(
        "the model leaves a condition out",
        [{"contains": "with an adult"}],
        "Children may swim.",
        ["pool.md#2"],
        LOGIC,
        ("found and not said",),
    ),
    Plant(
        "a price in the source, none in the answer",
        [{"number": 12.5, "unit": "euros"}],
        "A day ticket is not dear.",
        ["prices-2026.md#1"],
        LOGIC,
        ("found and not said",),
    ),
    # Written down as a Logic Failure: found and not said. But the page states day and month without a year, so that
    # even an answer in its very words would not keep the expectation, and it is the expectation that has to be read.
    Plant(
        "a date in the source without its year, none in the answer",
        [{"date": "2026-12-24"}],
        "The sauna closes at times.",
        ["sauna.md#2"],
        GOLD,
        ("no page has what is expected",),
    ),
    # Added after the rules had been run, and not among the 30: dates and numbers in another form count as found.
    Plant(
        "a date in words in the source, none in the answer",
        [{"date": "2026-11-02"}],
        "It reopens in autumn.",
        ["reopening.md#1"],
        LOGIC,
        ("found and not said",),
    ),
    Plant(
        "a number in another form in the source, none in the answer",
        [{"number": 1400, "unit": "lockers"}],
        "There are new lockers.",
        ["reopening.md#1"],
        LOGIC,
        ("found and not said",),
    ),
    Plant(
        "the old price",
        [{"number": 12.5}],
        "A day ticket costs 10,50 euros [Source 2].",
        ["prices-2026.md#1", "prices-2024.md#1"],
        OLD,
        ("says what only an outdated page says",),
    ),
    Plant(
        "the old price, and the new page was not found",
        [{"contains": "12,50"}],
        "A day ticket costs 10,50 euros [Source 1].",
        ["prices-2024.md#1"],
        OLD,
        ("says what only an outdated page says",),
    ),
    Plant(
        "cites the old page",
        [{"not": {"cites": "prices-2024.md"}}],
        "It costs 12,50 euros [Source 2].",
        ["prices-2026.md#1", "prices-2024.md#1"],
        OLD,
        ("cites an outdated page",),
        more={"citations": [2]},
    ),
    Plant(
        "cites the neighbour",
        [{"cites_only": ["pool.md"]}],
        "From 6:30 to 21:00 [Source 2].",
        ["pool.md#1", "sauna.md#1"],
        LOGIC,
        ("cites another source",),
        truth="From 6:30 to 21:00.",
        more={"citations": [2]},
    ),
    Plant(
        "a model that never cites",
        [{"cites_any": ["pool.md", "sauna.md"]}, {"cited": True}],
        "From 6:30 to 21:00.",
        ["pool.md#1"],
        LOGIC,
        ("cites nothing",),
        truth="From 6:30 to 21:00.",
        more={"citations": []},
    ),
    Plant(
        "source 9 of two",
        [{"valid_citations": True}],
        "From 6:30 [Source 9].",
        ["pool.md#1", "sauna.md#1"],
        LOGIC,
        ("cites a source that is not there",),
        more={"citations": [], "invalid_citations": [9]},
    ),
    Plant(
        "promises a full refund that no page promises",
        [{"not": {"regex": "refunded in full"}}],
        "The fee is refunded in full at any time.",
        ["prices-2026.md#2"],
        LOGIC,
        ("says what it must not",),
    ),
    Plant(
        "repeats what the source says and must not be said",
        [{"not": {"contains": "half of it"}}],
        "After that half of it is paid back.",
        ["pool.md#3"],
        LOGIC,
        ("says what it must not",),
    ),
    Plant(
        "a German answer was expected",
        [{"language": "de"}],
        "The course for beginners takes eight weeks and costs 140 euros, and you have to bring swimwear and a padlock.",
        ["kurse.md#1"],
        BROKEN,
        ("form of the answer",),
    ),
    Plant(
        "prose around the JSON",
        [{"is_json": True}],
        'Here it is: {"price": 12.5}',
        ["prices-2026.md#1"],
        BROKEN,
        ("form of the answer",),
    ),
    Plant(
        "JSON cut off at the limit",
        [{"is_json": True}],
        '{"price": 12.5, "reduced": ',
        ["prices-2026.md#1"],
        LOGIC,
        ("cut short",),
        more={"stages": "length"},
    ),
    Plant(
        "twice as long as allowed",
        [{"max_sentences": 2}],
        "One. Two is here. Three is here. Four is here.",
        ["pool.md#1"],
        BROKEN,
        ("form of the answer",),
    ),
    Plant("too dear", [{"max_tokens": 60}], "From 6:30 to 21:00.", ["pool.md#1"], BROKEN, ("cost too much",)),
    Plant(
        "a greeting that no page has",
        [{"contains": "Best regards"}],
        "From 6:30 to 21:00.",
        ["pool.md#1"],
        BROKEN,
        ("wording",),
    ),
    Plant(
        "a figure that no page has",
        [{"number": 77}],
        "From 6:30 to 21:00.",
        ["pool.md#1"],
        GOLD,
        ("no page has what is expected",),
    ),
    Plant(
        "refuses in German although it was there",
        [{"contains": "140 Euro"}],
        "Das kann ich leider nicht beantworten.",
        ["kurse.md#1"],
        LOGIC,
        ("wrong refusal",),
        more={"abstained": True},
    ),
    Plant(
        "answers what it should decline, without gold",
        [{"declines": True}],
        "A trainer costs 30 euros.",
        ["pool.md#1"],
        LOGIC,
        ("answered what is not in the documents",),
    ),
    Plant(
        "the passage runs over a chunk border",
        [{"contains": "needs a coin of 2 euros"}],
        "Lockers are there.",
        ["sauna.md#1"],
        MISS,
        ("cut by a chunk border",),
    ),
    Plant(
        "a service without a known index",
        [{"context_contains": "6:30"}],
        "From early to late.",
        ["sauna.md#1"],
        MISS,
        ("not in the context",),
        known=False,
    ),
    Plant(
        "chunks sent short",
        [{"contains": "in the app"}],
        "The pool is open.",
        ["pool.md#1"],
        MISS,
        ("the page came without the passage",),
        more={"sends": 40},
    ),
    Plant("an empty answer", [{"contains": "6:30"}], "", ["pool.md#1"], LOGIC, ("cut short", "found and not said")),
    Plant(
        "in another order of words",
        [{"rouge_l": "Children under 8 years swim with an adult", "at_least": 0.8}],
        "An adult is needed.",
        ["pool.md#2"],
        LOGIC,
        ("found and not said",),
    ),
]


class Sources(Data):
    """The pages of the pool."""

    def __init__(self) -> None:
        super().__init__(Settings())
        self.__dict__["documents"] = PAGES


class NeverAsked:
    """A pipeline that only has an index."""

    def answer(self, query: Query) -> str:
        raise AssertionError(query)


def named(output: Path, plant: Plant) -> tuple[str, str]:
    """Return cause and detail of a plant; empty where it is called no failure."""
    index = dict(INDEX)
    if " border" in plant.name:
        whole = index.pop("pool.md#2")
        middle = whole.text.index("coin")
        index["pool.md#2a"] = replace(whole, chunk_id="pool.md#2a", text=whole.text[:middle], end=whole.start + middle)
        index["pool.md#2b"] = replace(
            whole, chunk_id="pool.md#2b", text=whole.text[middle:], start=whole.start + middle
        )
    more = dict(plant.more)
    sends = more.pop("sends", None)
    if "stages" in more:
        call = {"role": "generate", "model": "m", "finish_reason": more.pop("stages"), "prompt_tokens": 1}
        more["stages"] = [{"name": "generate", "ms": 1.0, "calls": [call | {"completion_tokens": 1, "ms": 1.0}]}]
    given = [make_chunk(name, text=INDEX[name].text[:sends]) for name in plant.prompt]
    expect, problems = expectations_of(plant.expect)
    assert not problems
    page, quote = plant.quote
    evidence = (Evidence(page, quote),) if quote else ()
    case = Case(Query("q1", plant.query), ground_truth=plant.truth, evidence=evidence, expect=expect)
    usual: dict[str, Any] = {
        "experiment": "x1",
        "query_id": "q1",
        "query": plant.query,
        "llm_answer": plant.answer,
        "citations": [],
    }
    usual |= {"ground_truth": plant.truth, "context_reference": [], "retrieved_chunks": given}
    usual["candidates"] = [{"chunk_id": name, "score": 0.5} for name in plant.candidates or plant.prompt]
    write_run(output, [make_row(**(usual | more))], [case])
    made = Experiment("x1", NeverAsked(), chunks=lambda: list(index.values())) if plant.known else None
    lines = Explainer(output, RerunSupport(lambda _: made, lambda _: "aaaa", lambda _: Sources())).every()
    return (lines[0].cause, lines[0].detail) if lines else ("", "")


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_the_cause_of_a_plant_is_named(tmp_path: Path, plant: Plant) -> None:
    cause, detail = named(tmp_path, plant)
    assert (cause, detail) in [(plant.cause, each) for each in plant.details]
