"""What the answers of the shipped study owe, and what of it the docs say that they keep."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_harness.core.types import Case
from rag_harness.data.queries import read_queries
from rag_harness.evaluation.measures.expectations import Expectations, found_in
from rag_harness.records.row import ExperimentResult
from tests.plugin.study import ROOT

QUESTIONS = {case.query.query_id: case for case in read_queries(ROOT / "data" / "kb" / "queries.jsonl")}
OWED = {name: case for name, case in QUESTIONS.items() if case.expect}


def rows(study: Path, experiment: str) -> Iterator[tuple[Case, ExperimentResult]]:
    (file,) = (study / "out").glob(f"{experiment}_*.jsonl")
    found = map(ExperimentResult.model_validate_json, file.read_text().splitlines())
    return ((OWED[row.query_id], row) for row in found if row.query_id in OWED)


def tables() -> tuple[list[list[str]], list[list[str]]]:
    """The two tables of the docs: by experiment, and by kind."""
    page = (ROOT / "docs" / "dev" / "results" / "study.md").read_text()
    section = page.partition("## What answers owe")[2].partition("\n## ")[0]
    found = [re.findall(r"^\| (.*) \|$", each, re.M) for each in section.split("\n\n") if each.startswith("|")]
    first, second = ([[cell.strip() for cell in line.split(" | ")] for line in lines[1:]] for lines in found)
    return first, second


def test_a_fifth_of_each_type_says_what_its_answers_owe() -> None:
    types = [case.query_type for case in OWED.values()]
    assert {kind: types.count(kind) for kind in types} == {"direct": 24, "multi_hop": 8, "negative": 8}
    assert list(OWED) == [name for name in QUESTIONS if int(name[-3:]) % 5 == 0]
    every = [each for case in OWED.values() for each in case.expect]
    assert (len(every), len({each.kind for each in every})) == (136, 18)
    assert {each.must for each in every} == {each.negated for each in every} == {False, True}
    assert {each.weight for each in every} == {1.0, 2.0}


@pytest.mark.parametrize("experiment", ["e1", "e2", "e3", "e4"])
def test_the_docs_say_what_share_is_kept(study: Path, experiment: str) -> None:
    lines = [line for line in tables()[0] if experiment.upper() in line[0]]
    found = [(case.query_type, Expectations().score(case, row).value) for case, row in rows(study, experiment)]
    assert len(lines) == 4
    for _, kind, judged, whole, none, mean in lines:
        values = [value for of, value in found if value is not None and kind in ("all", of)]
        assert [judged, whole, none, mean] == [
            f"{len(values)}",
            f"{sum(value == 1 for value in values)}",
            f"{sum(value == 0 for value in values)}",
            f"{sum(values) / len(values):.3f}" if values else "-",
        ]


def test_the_docs_say_how_many_of_each_kind_are_kept(study: Path) -> None:
    kept: dict[str, list[str]] = {}
    for experiment in ("e1", "e2", "e3"):
        counted: dict[str, list[bool | None]] = {}
        for case, row in rows(study, experiment):
            for each in found_in(case, row):
                name = f"{'not ' * each.expectation.negated}{each.expectation.kind}"
                counted.setdefault(name, []).append(each.kept)
        for name, values in counted.items():
            known = [value for value in values if value is not None]
            kept.setdefault(name, []).append(f"{sum(known)} of {len(known)}" if known else "-")
    assert tables()[1] == [[f"`{name}`", *kept[name]] for name in sorted(kept)]
