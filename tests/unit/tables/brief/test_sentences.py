"""What is said first: who is best, ahead, equal, or not shown to be; and why, where nothing says why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rag_harness.records.manifest import RunManifest, SuiteRecord
from rag_harness.records.scores import CauseLine
from rag_harness.tables.brief import brief_of
from rag_harness.tables.brief_sentences import first_sentences, percent
from rag_harness.tables.suite_table import SuiteTable
from rag_harness.tables.wording import listed, short
from tests.unit.tables.standing_tables import kinds, table

N = 60
LABELS = kinds(any=N)
RNG = np.random.default_rng(4)
BASE = RNG.uniform(0.2, 0.6, N)


def shifted(by: float) -> list[float]:
    return [float(each) for each in np.clip(BASE + by + RNG.normal(0, 0.08, N), 0, 1)]


def found(evidence: float, f1: float) -> SuiteTable:
    return table(LABELS, evidence_recall=shifted(evidence), token_f1=shifted(f1))


def say(
    causes: list[CauseLine] | None = None,
    data: dict[str, str] | None = None,
    attribute: bool = True,
    **tables: SuiteTable,
) -> dict[str, str]:
    usual: dict[str, Any] = {"file": "", "fingerprints": [], "selected": "all", "total": N}
    suites = {name: SuiteRecord(data=(data or {}).get(name, "queries"), **usual) for name in tables}
    for each in tables.values():
        each.totals.rows = N
    manifest = RunManifest(date="2026-01-01", settings={"attribute": attribute}, suites=suites)
    said: dict[str, str] = {}
    for sentence in first_sentences(brief_of(tables, manifest, [], causes or [])):
        said[sentence.topic] = f"{said.get(sentence.topic, '')} {sentence.text}".strip()
    return said


def test_best_is_surely_ahead_in_both() -> None:
    said = say(e1=found(0, 0), e2=found(0.2, 0.2))
    assert said["best"].startswith("e2 is best. e2 answers best (token_f1 0.")
    assert said["sure"].count("Sure at 95 %: e2 - e1 in ") == 2
    assert said["sure"].endswith("p is corrected for 2 tests (Holm).")


def test_ahead_is_surely_ahead_in_one_and_not_behind_in_the_other() -> None:
    said = say(e1=found(0, 0), e2=found(0.2, 0))
    assert said["best"].startswith("e2 is ahead. e2 finds the most (")
    assert "It is open whether e" in said["best"]
    assert "Not sure: " in said["sure"]


def test_each_may_be_best_at_something_else() -> None:
    said = say(e1=found(0, 0.2), e2=found(0.2, 0))
    assert said["best"].startswith("Each is best at something else. e1 answers best (")
    assert "e2 finds the most (" in said["best"]


def test_no_one_is_shown_to_be_best_but_who_is_worse_is_named() -> None:
    high = [found(0.2, 0.2), found(0.2, 0.2)]
    said = say(e1=found(0, 0), e2=high[0], e3=high[1])
    assert said["best"].startswith("No experiment is shown to be best. It is open whether e")
    assert said["best"].count(" is surely better than e1.") == 2


def test_equal_ones_win_together_and_the_dearer_is_named() -> None:
    best = found(0.2, 0.2)
    twin = table(LABELS, **{name: [float(v) for v in each.values] for name, each in best.columns.items()})
    best.totals.prompt_tokens, twin.totals.prompt_tokens = 1000, 1435
    said = say(e1=found(0, 0), e2=best, e3=twin)["best"]
    assert said.startswith("e2 and e3 are best. e2 and e3 answer best (")
    assert said.endswith("e2 and e3 are equal on every measure and question; take e2, for e3 needs 44 % more tokens.")


@pytest.mark.parametrize(
    ("models", "is_said"),
    [
        (("embedded/extractive", "embedded/extractive"), True),
        (("embedded/extractive", "gpt-5"), False),
        (("gpt-5", "gpt-5"), False),
        (("", ""), False),
    ],
)
def test_equal_answers_of_who_does_not_reason_show_nothing_about_reasoning(
    models: tuple[str, str], is_said: bool
) -> None:
    plain, steps = (table(LABELS, token_f1=[float(each) for each in BASE]) for _ in models)
    plain.totals.prompt_tokens, steps.totals.prompt_tokens = 1000, 1435
    for each, model in zip((plain, steps), models, strict=True):
        each.totals.models[model] = N
    said = say(e3=plain, e4=steps)["best"]
    reason = "What reasoning adds needs a model: embedded/extractive does not reason."
    assert said.endswith(f"e4 needs 44 % more tokens.{' ' + reason if is_said else ''}")
    steps.totals.prompt_tokens = 1000
    assert say(e3=plain, e4=steps)["best"].endswith("e3 and e4 are equal on every measure and question.")


def test_experiments_of_two_data_are_two_sentences() -> None:
    said = say(data={"t1": "book"}, e1=found(0, 0), e2=found(0.2, 0.2), t1=found(0, 0))["best"]
    assert said.startswith("On queries: e2 is best.")
    assert "On book: Only t1 ran here." in said


def test_why_says_when_nobody_has_looked() -> None:
    assert "was not looked into" in say(attribute=False, e1=found(0, 0))["why"]
    assert say(e1=found(0, 0))["why"] == "No answer was found to be wrong."
    assert say(e1=table(LABELS))["why"].startswith("Nothing tells right answers from wrong ones")


@pytest.mark.parametrize("attribute", [False, True])
def test_where_pages_alone_are_known_no_answer_is_called_right(attribute: bool) -> None:
    said = say(attribute=attribute, e1=table(LABELS, **{"recall@5": [1.0] * N}))
    assert "nothing tells right answers from wrong ones" in said["why"]
    assert said["next"] == "Give the questions a ground truth and evidence, or name a judge."
    quoted = say(e1=table(LABELS, evidence_recall=[1.0] * N))
    assert quoted["why"] == "No answer was found to be wrong."


def test_the_main_cause_is_the_most_frequent_finer_one_and_its_remedy_is_next() -> None:
    def line(n: int, cause: str, detail: str, remedy: str) -> CauseLine:
        return CauseLine(experiment="e1", query_id=f"q{n}", cause=cause, detail=detail, remedy=remedy)

    causes = [
        *(
            line(n, "Logic Failure", detail, "a stronger model")
            for n, detail in enumerate(("misread", "cut short", ""))
        ),
        *(line(n, "Retrieval Miss", "not found", "hybrid retrieval") for n in (3, 4)),
    ]
    said = say(causes, e1=table(LABELS, token_f1=shifted(0), correct=[0.0] * 5 + [1.0] * (N - 5)))
    assert said["why"] == "e1: 5 of 60 answers are wrong; 2 of them (40 %): Retrieval Miss, not found."
    assert said["next"] == "Hybrid retrieval."


def test_names_and_shares() -> None:
    assert listed(["a"]) == "a"
    assert listed(["a", "b"]) == "a and b"
    assert listed(list("abcd")) == "a, b, c and d"
    assert listed(list("abcde")) == "a, b, c and 2 more"
    assert len(short("x" * 100)) == 40
    assert (percent(0.0), percent(0.001), percent(0.085), percent(1)) == ("0 %", "under 1 %", "9 %", "100 %")


def test_good_measures_say_nothing_about_what_was_not_looked_into() -> None:
    """Who answers what no page answers may have the best recall and keep all expectations."""
    best = table(LABELS, evidence_recall=[1.0] * N, expectations=[1.0] * N)
    said = say(attribute=False, e1=best)
    assert said["why"].startswith("Why answers are wrong was not looked into:")
    assert said["next"] == "Read the worst answers, or run again with --rag-attribute."
    best.totals.errors = 1
    assert say(attribute=False, e1=best)["next"] == "Read the first error, mend it, and run again."
