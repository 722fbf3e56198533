"""``rag-harness kb plan``."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from rag_harness.__main__ import CANNOT_RUN, main
from rag_harness.authoring.kb.plan import read_plan


def run(file: Path, *options: str) -> int:
    return main(["kb", "plan", "--domain", "Retail-Support", "-o", str(file), *options])


def test_it_writes_a_plan_and_says_what_is_in_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "structure.json"
    assert run(file, "--pages", "20") == 0
    plan, problems = read_plan(file)
    assert problems == []
    assert plan is not None
    assert (plan.domain, plan.planned_by, plan.seed) == ("retail support", "embedded", 0)
    facts = sum(len(page.facts or ()) for page in plan.pages)
    kinds = Counter(page.kind for page in plan.pages)
    told = ", ".join(f"{kinds[kind]} {kind}" for kind in ("tabular", "logical", "mixed"))
    assert capsys.readouterr().out == f"wrote {file}: 20 pages ({told}), {facts} facts, 1 version pair\n"


def test_it_says_where_rot_is_no_whole_number_of_pairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path / "plan.json", "--pages", "10")
    assert "rot is 0.2: 0.1 of 10 pages is no whole number of pairs" in capsys.readouterr().out


def test_a_plan_that_is_there_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "plan.json"
    file.write_text("mine")
    assert run(file, "--pages", "10") == CANNOT_RUN
    assert "--force" in capsys.readouterr().err
    assert file.read_text() == "mine"
    assert run(file, "--pages", "10", "--force") == 0
    assert json.loads(file.read_text())["num_pages"] == 10


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--pages", "3"), "3 pages are asked for"),
        (("--rot", "7"), "rot is 7"),
        (("--kinds", "mixed"), "--kinds is 'mixed'. Write it as"),
        (("--kinds", "mixed=0.4,logical=0.4"), "sum to 0.8"),
        (("--domain", "fishing"), "--writer llm"),
        (("-o", "."), "is a folder"),
        (("-o", "nowhere/plan.json"), "No folder nowhere"),
        (("-o", "x" * 300), "cannot be written: File name too long. Make room there, or name another place"),
    ],
)
def test_what_cannot_be_done_is_told_with_the_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, str], told: str
) -> None:
    assert run(tmp_path / "plan.json", *options) == CANNOT_RUN
    assert told in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
