"""Go on, fall back, abstain; and the words of a fallback."""

from __future__ import annotations

from dataclasses import fields

import pytest

from rag_harness.core.settings.reliability import NORMAL, STRICT
from rag_harness.retrieval.retrievers import Rarity
from rag_harness.studies.reliability import MOST_FALLBACKS, choose_way, way_decision
from rag_harness.studies.reliability_retrieval import WORDS, expanded
from tests.unit.studies.reliability.hits import hit


@pytest.mark.parametrize(
    ("found", "tried", "wanted"),
    [
        (0.56, 0, "go on"),
        (0.55, 0, "fallback"),
        (0.35, 0, "fallback"),
        (0.349, 0, "abstain"),
        (0.4, MOST_FALLBACKS, "go on"),
        (0.2, MOST_FALLBACKS, "abstain"),
    ],
)
def test_way(found: float, tried: int, wanted: str) -> None:
    assert choose_way(found, NORMAL, tried) == wanted


def test_the_row_says_what_it_was_set_against() -> None:
    stopped, gone_on = way_decision(0.3, NORMAL, 0), way_decision(0.5, NORMAL, 2)
    assert (stopped.outcome, stopped.value, stopped.threshold) == ("abstain", 0.3, NORMAL.fallback)
    assert (gone_on.outcome, gone_on.threshold, gone_on.reason) == ("go on", NORMAL.go_on, "after 2 fallbacks")


def test_strict_raises_every_threshold() -> None:
    for field in fields(NORMAL):
        assert getattr(STRICT, field.name) > getattr(NORMAL, field.name)


def test_words_of_the_best_hits_are_added() -> None:
    hits = [
        hit("The warranty of a kettle lasts 24 months.", number=0),
        hit("Kettles: the warranty covers descaling.", number=1),
        hit("Express delivery.", number=2),
        hit("Carrier strikes.", number=3),
    ]
    rarity = Rarity(one.chunk for one in hits)
    found = expanded("does the kettle break?", hits, rarity)
    added = found.removeprefix("does the kettle break? ").split()
    assert added[0] == "warranty"  # in two of the three
    assert len(added) == WORDS
    assert not {"24", "kettle", "kettles", "carrier"} & set(added)
    assert expanded("kettle", [], rarity) == "kettle"
