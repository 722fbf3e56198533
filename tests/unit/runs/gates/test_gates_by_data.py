"""Gates of an ini file are about the data that it names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.settings import Settings
from rag_harness.runs.gates.configuration import gates_by_data

E3, GOLDEN = "e3: recall@5 >= 0.5", "recall@k >= 0.5"
INI = {"kb_dir": "data/kb", "golden": "golden.json", "gate": [E3, GOLDEN]}


def elsewhere(ini: dict[str, Any], **changes: Any) -> dict[str, str]:
    settings = replace(Settings(), rootdir="/repo", gate=tuple(ini.get("gate", ())), **changes)
    ours, others = gates_by_data(settings, ini)
    assert sorted([*ours, *(text for text, _ in others)]) == sorted(settings.gate)
    return dict(others)


@pytest.mark.parametrize(
    "changes",
    [{}, {"kb_dir": "/repo/data/kb"}, {"kb_dir": "/repo/../repo/data/kb/"}, {"queries": "/repo/data/kb/queries.jsonl"}],
)
def test_the_same_place_by_another_name_is_the_same_data(changes: dict[str, str]) -> None:
    assert elsewhere(INI, **changes) == {}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"kb_dir": "docs"}, dict.fromkeys([E3, GOLDEN], "set for data/kb, this run is on docs")),
        ({"kb_dir": "/mine"}, dict.fromkeys([E3, GOLDEN], f"set for data/kb, this run is on {Path('/mine')}")),
        ({"queries": "q.jsonl"}, {E3: "set for data/kb/queries.jsonl, this run is on q.jsonl"}),
        ({"golden": "other.csv"}, {GOLDEN: "set for golden.json, this run is on other.csv"}),
        (
            {"dataset": "beir:nf"},
            {E3: "set for data/kb, this run is on beir:nf", GOLDEN: "set for golden.json, this run is on beir:nf"},
        ),
    ],
)
def test_other_data_are_named(changes: dict[str, str], expected: dict[str, str]) -> None:
    assert elsewhere(INI, **changes) == expected


def test_an_ini_file_that_names_no_data_claims_none() -> None:
    assert elsewhere({"gate": [E3, GOLDEN]}, kb_dir="docs", golden="other.csv") == {}


def test_a_collection_of_the_ini_file_is_its_data() -> None:
    ini = {"dataset": "beir:nf", "gate": [GOLDEN]}
    assert elsewhere(ini, dataset="beir:/repo/nf") == {}
    assert elsewhere(ini, dataset="beir:/repo/other") == {GOLDEN: "set for beir:nf, this run is on beir:/repo/other"}


def test_a_collection_with_questions_is_the_data_of_experiments_too() -> None:
    assert elsewhere({**INI, "gate": [E3]}, dataset="mtrag:mt/fiqa") == {
        E3: "set for data/kb, this run is on mtrag:mt/fiqa"
    }
    ini = {"kb_dir": "data/kb", "dataset": "mtrag:mt/fiqa", "gate": [E3]}
    assert elsewhere(ini, kb_dir="data/kb", dataset="mtrag:/repo/mt/fiqa") == {}
    assert elsewhere(ini, dataset="mtrag:mt/govt") == {E3: "set for mtrag:mt/fiqa, this run is on mtrag:mt/govt"}


def test_gates_of_the_environment_replace_those_of_the_file_and_are_judged() -> None:
    settings = replace(Settings(), gate=(E3,), kb_dir="docs")
    assert gates_by_data(settings, INI) == ((E3,), ())
