"""Faults planted in answers that are right by their gold, or have none, after the rules of expectations were frozen.

What is right was written down for each before the rules were run on any of them. Of the 30 the frozen rules named 29 as
written; docs/how-to/attribution.md has the figure, and the one that was named otherwise. No rule was mended after it.
"""

from __future__ import annotations

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
from rag_harness.records.expectations import expectations_of
from tests.unit.rows import make_chunk, make_row
from tests.unit.suite_tables import write_run

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
