"""Which trials a page lists that cannot hold all of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rag_harness.page import listed_trials
from rag_harness.page.content import Cell, More, Section, Table
from rag_harness.page.listed_trials import sample_of, sample_said
from rag_harness.page.payload import payload_of
from rag_harness.page.report import write_report
from rag_harness.page.run import Run, read_run
from tests.unit.rows import failed_row, make_row
from tests.unit.suite_tables import case, write_run

CASES, MOST = 60, 24
QUOTA = MOST // 2
"""Trials of each of two experiments."""
TYPES = ["direct"] * 40 + ["negative"] * 20


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listed_trials, "MOST_TRIALS_LISTED", MOST)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Write two experiments; of e3 every 20th trial raises, and two answers share no word with the truth."""
    rows = [
        failed_row(query_id=f"q{n}", experiment=name)
        if n % 20 == 19 and name == "e3"
        else make_row(query_id=f"q{n}", experiment=name, llm_answer="none" if n in (7, 8) else "30 days")
        for name in ("e2", "e3")
        for n in range(CASES)
    ]
    cases = [case(f"q{n}", ["returns.md"], query_type=TYPES[n], ground_truth="30 days") for n in range(CASES)]
    write_run(tmp_path, rows, cases)
    return read_run(tmp_path)


def listed(run: Run, name: str = "e3", sections: list[Section] | None = None) -> list[str]:
    places = sample_of([run], sections or []).places[run.name, name]
    return [run.tables[name].ids[place] for place in places.tolist()]


def test_where_all_fit_all_are_listed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listed_trials, "MOST_TRIALS_LISTED", 2 * CASES)
    assert len(listed(run)) == CASES
    assert sample_of([run]).said == sample_said([run]) == ""


def test_the_worst_are_listed_whatever_is_drawn(run: Run) -> None:
    found = listed(run)
    assert len(found) == QUOTA
    assert {"q19", "q39", "q59", "q7", "q8"} <= {*found}


def test_the_others_are_drawn_by_type_and_the_same_each_time(run: Run) -> None:
    found = [TYPES[int(name[1:])] for name in listed(run, "e2")]
    # Six worst, of which equal ones in their order; of the six others two thirds are direct, as of all that are left.
    assert found.count("direct") == 6 + 4
    assert listed(run, "e2") == listed(read_run(run.output), "e2")
    assert listed(run, "e2") != [f"q{n}" for n in range(QUOTA)]


def test_what_the_page_links_to_is_listed(run: Run) -> None:
    absent, also, *_ = [f"q{n}" for n in range(CASES) if f"q{n}" not in listed(run)]
    table = Table("moved", ("query",), [[Cell("", trial=f"e3-{absent}", beside=f"e3-{also}")]])
    assert {absent, also} <= {*listed(run, sections=[Section("moved", "Moved", [More("all", [table])])])}


def test_payload_has_the_sample_and_nothing_else(run: Run) -> None:
    payload = payload_of([run])
    shown = payload.index["trials"]
    names = [payload.index["cases"][number]["id"] for number in shown["case"]]
    assert names == [*listed(run, "e2"), *listed(run, "e3")]
    assert sum(map(len, payload.trials)) == MOST
    assert all(details.get("context") for block in payload.trials[:1] for details in block[:QUOTA])


def test_the_report_says_so_and_its_figures_are_of_all(run: Run) -> None:
    file = run.output / "report.html"
    write_report([run.output], file, "html")
    text = file.read_text()
    assert "Of 120 trials the page lists a sample. Of each experiment: the 6 worst" in text
    assert np.isclose(run.tables["e3"].aggregate(["error_rate"])["error_rate"] or 0, 3 / 60)
    assert "0.05" in text


def test_the_comment_is_about_all_trials(run: Run) -> None:
    file = run.output / "report.md"
    write_report([run.output], file, "md")
    assert "| 57 of 60 |" in file.read_text()
