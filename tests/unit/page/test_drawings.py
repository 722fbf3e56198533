"""The report's figures: their tables say what was measured, and nothing is drawn of nothing."""

from __future__ import annotations

import re
from math import nan
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from rag_harness.evaluation.measures.judged import CATEGORIES
from rag_harness.page import charts as page_charts
from rag_harness.page.content import Figure, Section
from rag_harness.page.drawings import (
    _MOST_MEASURES,
    _MOST_TURNS,
    FIGURES,
    FigureOf,
    quality_for_money,
    quality_for_time,
    ranks,
    reliability,
    risk,
    risk_coverage,
    slices,
    taxonomy,
    turns,
)
from rag_harness.page.drawings import figure as compared
from rag_harness.page.estimates import gate_bar, kind_class, kind_fill
from rag_harness.page.run import Run
from rag_harness.page.sections import charts
from rag_harness.page.sections.first_screen import first_screen
from rag_harness.runs.gates import parse_gate
from tests.browser.runs import Study
from tests.browser.talks import LAMP, Talks, long_talk
from tests.unit.page.charts.shapes import shapes, texts
from tests.unit.page.runs import amend, gate, read, rows_of, write_study
from tests.unit.rows import make_chunk
from tests.unit.suite_tables import write_run

_LOW = {"interval": [0.2, 0.4]}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return read(write_study(tmp_path / "out"))[0]


@pytest.fixture(scope="module")
def drawn_study(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of three experiments: the first retrieves nothing, and the last alone states a confidence."""
    return read(Study(cases=24).write(tmp_path_factory.mktemp("study")))[0]


def cells(figure: Figure | None) -> dict[str, dict[str, str]]:
    """Return the figure's table: row -> column -> text."""
    assert figure is not None
    head = figure.table.head
    return {row[0].text: dict(zip(head, (cell.text for cell in row), strict=True)) for row in figure.table.rows}


def run_of(output: Path, *experiments: list) -> Run:  # type: ignore[type-arg]
    """Return a run of these rows."""
    write_run(output, [row for rows in experiments for row in rows])
    return read(output)[0]


def drawn_in(run: Run) -> Section:
    """Return the blocks of the first screen and of the charts."""
    below = charts([run])
    assert below is not None
    return Section("charts", "Charts", [*first_screen([run]).blocks, *below.blocks])


def test_every_drawing_of_a_study_is_whole_and_its_ids_are_its_own(run: Run) -> None:
    section = drawn_in(run)
    drawings = [svg for figure in section.blocks if isinstance(figure, Figure) for svg in figure.drawings]
    idents = [node.get("id") for svg in drawings for node in ElementTree.fromstring(svg).iter() if node.get("id")]
    assert len(drawings) >= 8
    assert len(idents) == len(set(idents))
    tables = [figure.table.name for figure in section.blocks if isinstance(figure, Figure)]
    assert len(tables) == len(set(tables))


def test_means_are_those_of_the_tables_with_their_intervals(run: Run) -> None:
    found = cells(compared(run))
    assert (found["e1"]["recall@5 ↑"], found["e2"]["recall@5 ↑"][:5], found["e3"]["recall@5 ↑"][:5]) == (
        "–",
        "0.500",
        "1.000",
    )
    low, high = run.tables["e2"].interval("recall@5") or (nan, nan)
    assert found["e2"]["recall@5 ↑"] == f"0.500 [{low:.3f}, {high:.3f}]"


def test_the_comparison_stands_first_and_has_a_panel_for_each_measure(run: Run) -> None:
    figure = compared(run)
    assert figure is not None
    assert figure in drawn_in(run).blocks
    assert len(figure.drawings) == len(figure.names) == len(figure.table.head) - 1
    assert [*figure.names] == [*figure.table.head[1:]]
    for svg in figure.drawings:
        assert [text for text in texts(svg) if text in run.experiments] == ["e1", "e2", "e3"]


def test_declines_are_right_or_wrong_by_what_the_documents_answer(tmp_path: Path) -> None:
    rows = [
        row.model_copy(update={"abstained": place in (0, 4, 5), "answerable": place < 4})
        for place, row in enumerate(rows_of("e3", 6, 3))
    ]
    found = cells(compared(run_of(tmp_path, rows)))["e3"]
    assert (found["right declines ↑"][:5], found["wrong declines ↓"][:5]) == ("1.000", "0.250")


def test_experiments_that_are_equal_in_everything_are_drawn_once_with_both_names(tmp_path: Path) -> None:
    write_run(tmp_path, [*rows_of("a", 6, 2), *rows_of("b", 6, 3), *rows_of("c", 6, 2, total_time_ms=99.0)])
    amend(tmp_path, settings={"gate": ["a: total_ms <= 300", "c: total_ms <= 300"]})
    run = read(tmp_path)[0]
    assert "total_ms" in run.tables["c"].columns, "their times differ"
    figure = compared(run)
    assert figure is not None
    assert [text for text in texts(figure.drawings[0]) if text.strip("abc= ") == ""] == ["a = c", "b"]
    assert [row[0].text for row in figure.table.rows] == ["a", "b", "c"]
    assert "a and c have the same value of every measure on every case, and are drawn once." in figure.notes


def test_kinds_are_counted(run: Run) -> None:
    counts = {name: sum(int(row[name]) for row in cells(taxonomy(run)).values()) for name in ("e2", "e3")}
    assert counts == {"e2": 12, "e3": 12}  # one of e3 has no faithfulness: it is unmeasured, and counted as that
    assert cells(taxonomy(run))["Unmeasured"]["e3"] == "1"
    figure = taxonomy(run)
    assert figure is not None
    assert list(figure.names) == ["", "e2", "e3"], "bars of both, and a pie of each"
    assert [svg.count('class="chart pie"') for svg in figure.drawings] == [0, 1, 1]


def test_kinds_that_need_no_context_are_counted_where_there_is_none(drawn_study: Run) -> None:
    found = {name: row["e1"] for name, row in cells(taxonomy(drawn_study)).items() if row["e1"] != "0"}
    table = drawn_study.experiments["e1"]
    declined = sum(table.values("abstention_rate", {}).values())
    assert {*found} <= {"Correct Abstention", "Wrong Abstention", "Answered Unanswerable", "Unmeasured"}
    assert int(found.get("Correct Abstention", 0)) + int(found.get("Wrong Abstention", 0)) == declined > 0
    assert table.shares()["Unmeasured"] < 1
    figure = taxonomy(drawn_study)
    assert figure is not None
    assert any("e1 has no context" in note for note in figure.notes)


def test_quality_is_the_measure_that_most_experiments_have(drawn_study: Run) -> None:
    """The first experiment has no context: what is measured without one stands for the quality of all."""
    figure = quality_for_time(drawn_study)
    assert figure is not None
    assert figure.table.head[-1] == "factuality"
    assert [*cells(figure)] == ["e1", "e2", "e3"]


def test_times_of_replayed_answers_are_no_latency(tmp_path: Path) -> None:
    replayed = {"timings_recorded": True, "total_time_ms": 900.0}
    rows = [rows_of(name, 5, right, total_time_ms=time) for name, right, time in (("a", 4, 8.0), ("b", 2, 100.0))]
    third = rows_of("c", 5, 3, **replayed)
    figure = quality_for_time(run_of(tmp_path / "one", *rows, third))
    assert [*cells(figure)] == ["a", "b"]
    assert figure is not None
    assert "Not drawn, because their times are of recorded calls: c." in figure.notes
    mixed = [*rows[0][:4], rows_of("a", 5, 4, **replayed)[4]]
    assert cells(quality_for_time(run_of(tmp_path / "mixed", mixed, rows[1])))["a"][
        "median time of a trial, ms"
    ].startswith("8 ms")
    all_replayed = [rows_of(name, 5, 3, **replayed) for name in "ab"]
    assert quality_for_time(run_of(tmp_path / "all", *all_replayed)) is None


def test_time_is_the_median_of_the_trials(tmp_path: Path) -> None:
    run = run_of(tmp_path, rows_of("a", 5, 4), rows_of("b", 5, 2, total_time_ms=100.0))
    found = cells(quality_for_time(run))
    assert found["a"]["median time of a trial, ms"].startswith("8 ms")
    assert found["b"]["median time of a trial, ms"].startswith("100 ms")


def test_money_is_drawn_where_there_is_a_price(tmp_path: Path) -> None:
    assert quality_for_money(run_of(tmp_path / "free", rows_of("a", 3, 2), rows_of("b", 3, 2))) is None
    run = run_of(tmp_path / "paid", rows_of("a", 4, 2, cost_usd=0.002), rows_of("b", 4, 3, cost_usd=0.004))
    assert cells(quality_for_money(run))["b"]["cost of a trial, USD"] == "$0.0040"


def test_the_risk_has_its_quantiles(run: Run) -> None:
    values = sorted(run.tables["e2"].values("hri", {}).values())
    row = cells(risk(run))["e2"]
    assert (row["answers"], row["mean"]) == ("12", f"{np.mean(values):.3f}")
    assert row["largest"] == f"{max(values):.3f}"
    assert row["median"].startswith(f"{values[5]:.3f}")  # nearest rank


def test_the_rank_of_the_first_relevant_document(tmp_path: Path) -> None:
    pages = [["returns"], ["x", "returns"], ["x", "y", "z", "returns"], ["x"]]
    rows = rows_of("e3", 4, 4)
    found = [
        row.model_copy(update={"retrieved_chunks": (), "ranking": tuple(f"{page}.md" for page in ranked)})
        for row, ranked in zip(rows, pages, strict=True)
    ]
    row = cells(ranks(run_of(tmp_path, found)))["e3"]
    assert [row[f"k = {k}"][:5] for k in (1, 2, 3, 5, 10)] == ["0.250", "0.500", "0.500", "0.750", "0.750"]
    assert row["n"] == "4"


def test_an_experiment_has_one_colour_in_all_figures(drawn_study: Run) -> None:
    def colours(drawn: FigureOf) -> list[int]:
        figure = drawn(drawn_study)
        assert figure is not None
        classes = (name for svg in figure.drawings for shape in shapes(svg) for name in shape.classes)
        return sorted({int(name[-1]) for name in classes if re.fullmatch(r"(fill|stroke)-\d", name)})

    assert colours(compared) == [0, 1, 2]
    assert colours(quality_for_time) == [0, 1, 2], "of a measure that all have"
    assert colours(ranks) == colours(risk) == [1, 2]
    assert colours(risk_coverage) == colours(reliability) == [2]


def test_bars_and_pie_have_the_colours_of_kinds(drawn_study: Run) -> None:
    figure = taxonomy(drawn_study)
    assert figure is not None
    drawn = [shape for svg in figure.drawings for shape in shapes(svg, "area") if shape.title]
    found = {(shape.title.partition(":")[0].split(", ")[-1], shape.classes[-1]) for shape in drawn}
    assert found == {(kind, f"stroke-{kind_fill(kind) % 8}") for kind, _ in found}
    assert len(found) > 4


def test_more_than_sixteen_experiments_have_one_colour_and_small_charts_of_sixteen(tmp_path: Path) -> None:
    names = [f"variant-{n:02}" for n in range(17)]
    rows = [rows_of(name, 8, n % 8, confidence=0.1 * (n % 10)) for n, name in enumerate(names)]
    for place, each in enumerate(rows):  # no two are equal
        each[0] = each[0].model_copy(update={"llm_answer": "30 days " + "and more " * place})
    run = run_of(tmp_path, *rows)
    section = drawn_in(run)
    figures = {block.table.name: block for block in section.blocks if isinstance(block, Figure)}
    assert {name: (len(each.drawings), each.layout) for name, each in figures.items() if each.layout == "small"} == {
        "figure-ranks": (16, "small"),
        "figure-risk-coverage": (16, "small"),
        "figure-reliability": (16, "small"),
    }
    shown = [text for text in texts(figures["figure-compared"].drawings[0]) if text in names]
    assert shown == names[:16], "the best are drawn, whose answers say little more than is right"
    told = "Drawn are the 16 of 17 experiments with the highest token_f1. The table below has all of them."
    assert told in figures["figure-compared"].notes
    assert len(figures["figure-compared"].table.rows) == 17
    drawings = [svg for each in figures.values() for svg in each.drawings]
    assert {name for svg in drawings for name in re.findall(r"\bfill-\d", svg)} == {"fill-0"}
    idents = [node.get("id") for svg in drawings for node in ElementTree.fromstring(svg).iter() if node.get("id")]
    assert len(idents) == len(set(idents))


def test_confidence_against_being_right(tmp_path: Path) -> None:
    answers = ["30 days", "30 days", "31 days", "30 days", "31 days", "31 days"]
    sure = [0.95, 0.9, 0.85, 0.45, 0.4, 0.1]
    rows = [
        row.model_copy(update={"llm_answer": answer, "confidence": confidence})
        for row, answer, confidence in zip(rows_of("e3", 6, 6), answers, sure, strict=True)
    ]
    run = run_of(tmp_path, rows)
    assert cells(risk_coverage(run))["e3"]["wrong in the surest 50%"] == "33.3%"
    figure = reliability(run)
    assert figure is not None
    shown = [[*(cell.text for cell in row[1:4]), row[5].text] for row in figure.table.rows]
    assert shown == [
        ["0.1 to 0.2", "0.100", "0.000", "1"],
        ["0.4 to 0.5", "0.425", "0.500", "2"],
        ["0.8 to 0.9", "0.850", "0.000", "1"],
        ["0.9 to 1.0", "0.925", "1.000", "2"],
    ]


def test_no_confidence_no_curve(run: Run) -> None:
    assert risk_coverage(run) is None
    assert reliability(run) is None


def test_measures_by_slice(tmp_path: Path) -> None:
    rows = [row.model_copy(update={"metadata": {"topic": "ab"[n % 2]}}) for n, row in enumerate(rows_of("e3", 6, 3))]
    figure = slices(run_of(tmp_path, rows))
    assert figure is not None
    shown = {
        row[1].text: (row[2].text, row[list(figure.table.head).index("recall@5")].text) for row in figure.table.rows
    }
    assert shown["topic: a"] == ("3", "0.667")  # q00 and q02 of q00, q02, q04 found it
    assert shown["topic: b"] == ("3", "0.333")


def test_slices_have_one_scale_for_all_experiments(tmp_path: Path) -> None:
    topics = [{"metadata": {"topic": "ab"[n % 2]}} for n in range(6)]
    low, high = (
        [row.model_copy(update=topic) for row, topic in zip(rows_of(name, 6, found), topics, strict=True)]
        for name, found in (("e2", 1), ("e3", 6))
    )
    figure = slices(run_of(tmp_path, low, high))
    assert figure is not None
    keys = [
        [element.text for element in ElementTree.fromstring(svg).iter() if element.get("class") == "axis-label"]
        for svg in figure.drawings
    ]
    assert keys[0] == keys[1]
    assert len(keys[0]) == 2


def test_nothing_is_drawn_of_no_trial(tmp_path: Path) -> None:
    write_run(tmp_path, [], cases=[], selected={})
    runs = read(tmp_path)
    assert [drawn(runs[0]) for drawn in FIGURES] == [None] * len(FIGURES)
    assert charts(runs) is None


def test_names_of_experiments_that_look_alike_in_ids_stay_apart(tmp_path: Path) -> None:
    names = ["mine a", "mine-a", "mine_a", "m<i>ne"]
    run = run_of(tmp_path, *(rows_of(name, 4, 2, retrieved_chunks=[make_chunk("returns.md#0")]) for name in names))
    section = drawn_in(run)
    drawings = [svg for figure in section.blocks if isinstance(figure, Figure) for svg in figure.drawings]
    assert not any("<i>" in svg for svg in drawings)
    idents = [node.get("id") for svg in drawings for node in ElementTree.fromstring(svg).iter() if node.get("id")]
    assert len(idents) == len(set(idents))


@pytest.mark.parametrize(
    ("text", "fields", "said"),
    [
        ("e3: recall@5 >= 0.7", {}, "0.75 [0.70, 0.80]; needed: at least 0.70."),
        ("e3: hri <= 0.1", {"value": 0.2, "threshold": 0.1, "interval": [0.15, 0.3]}, "needed: at most 0.10."),
        ("e3: recall@5 >= e2", {"threshold": 0.7, "interval": [-0.1, 0.2]}, "0.05 [−0.10, 0.20]; needed: at least 0"),
        (
            "e3: recall@5 >= e2 + 0.1",
            {"threshold": 0.8, "interval": [-0.1, 0.2]},
            ">0.05 [−0.10, 0.20]; needed: at least 0.1",
        ),
        ("e3: total_ms <= 30", {"value": 80.0, "threshold": 30, "interval": [70, None], "unit": "ms"}, "at most 30"),
    ],
)
def test_a_gate_as_a_bar(text: str, fields: dict[str, Any], said: str) -> None:
    svg = gate_bar(gate(text, **fields), parse_gate(text, 10), "good", "gate-0")
    assert said in svg


@pytest.mark.parametrize(
    ("text", "fields", "scale"),
    [
        ("e3: recall@5 >= 0.7", {}, ["0.0", "0.5", "1.0"]),
        (
            "e3: answer_relevancy >= 0.3",
            {"value": 0.3, "threshold": 0.3, "unit": "score", **_LOW},
            ["0.0", "0.5", "1.0"],
        ),
        (
            "e3: recall@5 >= e2",
            {"threshold": 0.7, "interval": [-0.1, 0.15]},
            ["−0.2", "0.0", "+0.2", "difference to e2"],
        ),
        ("e3: total_ms <= 30", {"value": 80.0, "interval": [70, None], "unit": "ms"}, ["0", "50", "100", "ms"]),
    ],
)
def test_the_bar_of_a_gate_has_a_scale_and_that_of_a_difference_another(
    text: str, fields: dict[str, Any], scale: list[str]
) -> None:
    assert texts(gate_bar(gate(text, **fields), parse_gate(text, 10), "good", "gate-0")) == scale


def test_a_gate_without_an_interval_has_no_bar() -> None:
    parsed = parse_gate("e3: recall@5 >= 0.7", 10)
    for missing in ("interval", "value", "threshold"):
        said = {**gate("e3: recall@5 >= 0.7"), missing: None}
        assert gate_bar(said, parsed, "good", "gate-0") == ""


# The figure of measures by turn: what it draws stands in its table, and only where cases are turns.


@pytest.fixture(scope="module")
def conversation_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return read(Talks(worse=[f"{LAMP}#3"]).write(tmp_path_factory.mktemp("talks")))[0]


def turns_of(conversation_run: Run) -> Figure:
    found = turns(conversation_run)
    assert found is not None
    return found


def row(figure: Figure, experiment: str, measure: str) -> list[str]:
    (found,) = [cells for cells in figure.table.rows if [cell.text for cell in cells[:2]] == [experiment, measure]]
    return [cell.text for cell in found[2:]]


def test_means_by_turn_and_drift_stand_in_the_table(conversation_run: Run) -> None:
    *means, drift = row(turns_of(conversation_run), "c1", "faithfulness")
    # Of two conversations: 0.95 less a tenth a turn; one of three turns, whose third is 0.65, one whose third is 0.
    assert [mean.split(" ")[0] for mean in means] == ["0.850", "0.750", "0.325", "0.550"]
    assert "[" in means[0]
    # Σ(t - t̄)(y - ȳ) / Σ(t - t̄)²: (-0.2 - 0.825) / (2 + 5).
    assert drift.startswith("-0.146 [")


def test_a_line_an_experiment_and_its_drift_beside_it(conversation_run: Run) -> None:
    figure = turns_of(conversation_run)
    assert figure.layout == "pairs"
    assert [*figure.names][-4:-2] == ["faithfulness ↑ by turn", "drift of faithfulness, a turn"]
    line, dot = figure.drawings[-4:-2]
    assert [text for text in texts(line) if text.startswith("c")] == ["c1 = c1-own", "c2-own"]
    assert len([each for each in shapes(line, "series-0", "circle") if each.title]) == 4
    assert [text for text in texts(dot) if text.startswith("c")] == ["c1 = c1-own", "c2-own"]
    assert "c1 and c1-own have the same value of every measure on every case, and are drawn once." in figure.notes


def test_of_many_turns_the_later_ones_share_a_place(tmp_path: Path) -> None:
    figure = turns_of(read(Talks(("c1",), long_talk(12)).write(tmp_path))[0])
    assert [*figure.table.head][2:] == [*(f"turn {turn}" for turn in range(1, 8)), "turn 8+", "drift, a turn"]
    assert "8+ is turn 8 and all later ones." in figure.notes
    assert row(figure, "c1", "faithfulness")[7].startswith("0.110")  # 0.15, then 0.1 four times


def test_the_page_about_the_report_says_how_much_is_drawn() -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "report.md").read_text(encoding="utf-8")
    assert f"at most {_MOST_MEASURES} measures, and of more than {_MOST_TURNS} turns the eighth and all later" in page


def test_first_turns_alone_are_no_conversation(tmp_path: Path) -> None:
    alone = Talks(questions={"one": ["How long?"], "other": ["And then?"]})
    assert turns(read(alone.write(tmp_path))[0]) is None


def test_a_run_of_single_questions_has_no_such_figure(tmp_path: Path) -> None:
    assert turns(read(write_study(tmp_path))[0]) is None


# A kind of answer has one colour and one pattern, in charts, in tables and in the list of trials.

_STYLES = dict(re.findall(r"\.(kind-[\w-]+) \{([^}]*)\}", page_charts.stylesheet()))
_SCRIPT = Path(page_charts.__file__).parents[1] / "assets" / "page.js"
_TURNS = {"M-1,8": "135deg", "M-1,-1": "45deg", "M0,3.5": "0deg", "M3.5,0": "90deg"}
"""The begin of a hatch's path -> the direction across its lines."""


def drawn(kind: str) -> str:
    """Return a bar of this kind alone."""
    bar = page_charts.StackedBar("e1", (1,))
    return page_charts.stacked(
        page_charts.Stacked(ident="a", title="", parts=(kind,), rows=(bar,), colours=(kind_fill(kind),))
    )


@pytest.mark.parametrize("kind", CATEGORIES)
def test_a_swatch_beside_a_text_has_the_colour_and_the_pattern_of_the_charts(kind: str) -> None:
    style, svg = _STYLES[kind_class(kind)], drawn(kind)
    (piece,) = (shape for shape in shapes(svg, "area", "rect") if shape.title)
    (colour,) = (name.removeprefix("stroke-") for name in piece.classes if name.startswith("stroke-"))
    assert re.findall(r"color: var\(--c(\d)\)", style) == [colour]
    hatches = [turn for begin, turn in _TURNS.items() if f'd="{begin}' in svg]
    assert sorted(re.findall(r"\d+deg", style)) == sorted(hatches)


def test_no_two_kinds_look_alike_and_the_script_names_them_as_the_page_does() -> None:
    assert len({kind_fill(kind) for kind in CATEGORIES}) == len({*map(kind_class, CATEGORIES)}) == len(CATEGORIES)
    assert len({kind_fill(kind) % 8 for kind in CATEGORIES}) <= 8
    assert 'el("i.kind.kind-" + kind.toLowerCase().replaceAll(" ", "-"))' in _SCRIPT.read_text()
    assert (kind_class("Clean Pass"), kind_class("of a user's own")) == ("kind-clean-pass", "")
