"""The table of decisions: what was assumed, measured, and is to be done."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

from rag_harness.core.escaping import page_script
from rag_harness.page.html import html_of
from rag_harness.page.payload import payload_of
from rag_harness.page.sections import sections_of
from rag_harness.page.sections.first_screen import decisions
from tests.unit.page.recount.page_tables import tables_in
from tests.unit.page.runs import gate, prose_in, read, summarise, table_in, write_study

# The table of decisions: what was assumed, measured, and is to be done.

OPEN = "0.500 to 0.900 for cases like these; about 26 more would settle it"
HEAD = ["assumption", "measured", "95 % interval", "n", "verdict", "what to do"]


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return write_study(tmp_path / "out")


def rows(output: Path) -> list[list[str]]:
    table = table_in(decisions(read(output)), "decisions")
    assert list(table.head) == HEAD
    return [[cell.text for cell in row] for row in table.rows]


def test_a_line_a_gate_that_says_what_to_do_in_the_order_in_which_they_were_set(study: Path) -> None:
    summarise(
        study,
        gate("e3: recall@5 >= 0.7", otherwise="switch to e2"),
        gate("e3: mrr@10 >= 0.5"),
        gate(
            "e3: hri <= 0.1",
            "failed",
            value=0.3,
            threshold=0.1,
            interval=[0.2, None],
            otherwise="a larger model",
            due=True,
        ),
        gate("e3: recall@5 >= 0.8 @95%", "undecided", threshold=0.8, reason=OPEN, otherwise="cut by headings"),
        gate("e3: recall@3 >= 0.8", "silent", otherwise="nothing"),
    )
    assert rows(study) == [
        ["e3: recall@5 >= 0.7", "0.750", "[0.700, 0.800]", "12", "passed", "keep"],
        ["e3: hri <= 0.1", "0.300", "[0.200, …]", "12", "failed", "a larger model"],
        [
            *("e3: recall@5 >= 0.8 @95%", "0.750", "[0.700, 0.800]", "12", "undecided"),
            f"undecided: {OPEN}; if it does not hold: cut by headings",
        ],
    ]
    verdicts = [row[4].tone for row in table_in(decisions(read(study)), "decisions").rows]
    assert verdicts == ["good", "bad", "unsure"]


def test_what_was_not_judged_says_why(study: Path) -> None:
    why = "61 of 80 cases selected"
    nothing = {"value": None, "threshold": None, "interval": None, "n": 0}
    summarise(study, gate("e3: recall@5 >= 0.7", "not judged", reason=why, otherwise="switch to e2", **nothing))
    assert rows(study) == [["e3: recall@5 >= 0.7", "–", "–", "0", "not judged", why]]


def test_a_gate_that_failed_for_want_of_values_decides_nothing(study: Path) -> None:
    nothing = {"value": None, "threshold": None, "interval": None, "n": 0}
    lost, none = "1 case lost to a crash, so it cannot pass", "no case has a value of hri"
    summarise(
        study,
        gate("e3: hri <= 0.1", "failed", reason=none, otherwise="a larger model", **nothing),
        gate("e3: recall@5 >= 0.7", "failed", reason=lost, otherwise="switch to e2"),
    )
    assert [row[-1] for row in rows(study)] == [
        f"undecided: {none}; if it does not hold: a larger model",
        f"undecided: {lost}; if it does not hold: switch to e2",
    ]


def test_of_two_experiments_both_are_shown_with_their_difference(study: Path) -> None:
    compared = gate("e3: recall@5 >= e2 + 0.1", "failed", value=0.75, threshold=0.8, interval=[-0.1, 0.3])
    summarise(study, {**compared, "otherwise": "keep e2", "due": True})
    assert rows(study)[0][1:3] == ["0.750 against 0.800 (e2 0.700 + 0.1)", "difference [-0.100, +0.300]"]
    assert rows(study)[0][-1] == "keep e2"


def test_units_are_those_of_the_measure_and_a_near_miss_shows_that_it_is_one(study: Path) -> None:
    summarise(
        study,
        gate("e3: p95(total_ms) <= 30", "failed", value=31.4, threshold=30, unit="ms", otherwise="a smaller model"),
        gate("e3: recall@5 >= 0.75", "failed", value=0.74996, threshold=0.75, otherwise="switch to e2"),
    )
    assert [row[1] for row in rows(study)] == ["31 ms", "0.74996"]


def test_a_gate_as_another_version_writes_it_is_shown_as_it_is(study: Path) -> None:
    summarise(study, gate("e3: what another version writes", "failed", otherwise="switch to e2", due=True))
    assert rows(study)[0][-1] == "switch to e2"


@pytest.mark.parametrize("gates", [[], [gate("e3: recall@5 >= 0.7")]], ids=["none", "no else"])
def test_it_is_absent_where_no_gate_says_what_to_do(study: Path, gates: list[dict[str, object]]) -> None:
    summarise(study, *gates)
    assert decisions(read(study)) is None
    assert "decisions" not in [section.ident for section in sections_of(read(study))]


def test_the_page_has_it_below_the_verdict(study: Path) -> None:
    hostile = "ask <b>@everyone</b> | and wait"
    summarise(study, gate("e3: recall@5 >= 0.8", "failed", threshold=0.8, otherwise=hostile, due=True))
    runs = read(study)
    sections = sections_of(runs)
    assert [section.ident for section in sections][:3] == ["first", "decisions", "differences"]
    page = html_of("title", sections, payload_of(runs))
    shown = tables_in(page)["table-decisions"]
    assert shown.head == HEAD
    assert [cell.text for cell in shown.rows[0]][-1] == hostile
    assert '<a href="#decisions">Decisions</a>' in page
    assert "<b>@everyone" not in page


def test_the_newest_of_several_runs_decides(study: Path, tmp_path: Path) -> None:
    other = write_study(tmp_path / "other")
    summarise(other, gate("e3: recall@5 >= 0.7", otherwise="switch to e2"))
    assert decisions(read(study, other)) is None
    section = decisions(read(other, study))
    assert prose_in(section) == []
    assert len(table_in(section, "decisions").rows) == 1


# The page's script: small, and without what only its readers need.

MOST = 43_500
"""Bytes. One in ten is of conversations, which a page without any has, too: two scripts would be two pages to test."""


def script() -> str:
    page = html_of("title", [], payload_of([]))
    return page.rsplit("<script>", 1)[1].split("</script>", 1)[0]


def test_it_is_small_and_says_nothing_to_readers() -> None:
    lines = script().splitlines()
    assert len(script().encode()) < MOST
    assert not [line for line in lines if line.startswith(("//", "/**", "\t")) or not line]


def test_the_page_about_the_report_says_how_much_of_a_chat_is_in_sight() -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "read-a-report.md").read_text(encoding="utf-8")
    most, last = (re.findall(rf"\b{name} = (\d+)", script()) for name in ("MOST_TURNS", "LAST_TURNS"))
    assert f"more than {most[0]} earlier turns, the last {last[0]} are shown" in page


def test_no_text_of_it_spans_lines() -> None:
    """A text over several lines would lose its indentation."""
    assets = files("rag_harness.page").joinpath("assets")
    source = page_script(
        "".join(
            assets.joinpath(name).read_text(encoding="utf-8") for name in ("conversation.js", "steps.js", "page.js")
        )
    )
    assert [line for line in source.splitlines() if line.count("`") % 2] == []
