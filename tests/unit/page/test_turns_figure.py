"""The figure of measures by turn: what it draws stands in its table, and only where cases are turns."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_harness.page.content import Figure
from rag_harness.page.drawings import _MOST_MEASURES, _MOST_TURNS, turns
from rag_harness.page.run import Run
from tests.browser.talks import LAMP, Talks, long_talk
from tests.unit.page.charts.shapes import shapes, texts
from tests.unit.page.runs import read, write_study


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return read(Talks(worse=[f"{LAMP}#3"]).write(tmp_path_factory.mktemp("talks")))[0]


def of(run: Run) -> Figure:
    found = turns(run)
    assert found is not None
    return found


def row(figure: Figure, experiment: str, measure: str) -> list[str]:
    (found,) = [cells for cells in figure.table.rows if [cell.text for cell in cells[:2]] == [experiment, measure]]
    return [cell.text for cell in found[2:]]


def test_means_by_turn_and_drift_stand_in_the_table(run: Run) -> None:
    *means, drift = row(of(run), "c1", "faithfulness")
    # Of two conversations: 0.95 less a tenth a turn; one of three turns, whose third is 0.65, one whose third is 0.
    assert [mean.split(" ")[0] for mean in means] == ["0.850", "0.750", "0.325", "0.550"]
    assert "[" in means[0]
    # Σ(t - t̄)(y - ȳ) / Σ(t - t̄)²: (-0.2 - 0.825) / (2 + 5).
    assert drift.startswith("-0.146 [")


def test_a_line_an_experiment_and_its_drift_beside_it(run: Run) -> None:
    figure = of(run)
    assert figure.layout == "pairs"
    assert [*figure.names][-4:-2] == ["faithfulness ↑ by turn", "drift of faithfulness, a turn"]
    line, dot = figure.drawings[-4:-2]
    assert [text for text in texts(line) if text.startswith("c")] == ["c1 = c1-own", "c2-own"]
    assert len([each for each in shapes(line, "series-0", "circle") if each.title]) == 4
    assert [text for text in texts(dot) if text.startswith("c")] == ["c1 = c1-own", "c2-own"]
    assert "c1 and c1-own have the same value of every measure on every case, and are drawn once." in figure.notes


def test_of_many_turns_the_later_ones_share_a_place(tmp_path: Path) -> None:
    figure = of(read(Talks(("c1",), long_talk(12)).write(tmp_path))[0])
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
