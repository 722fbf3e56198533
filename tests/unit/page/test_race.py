"""The race of configurations on the page and in Markdown: what is said, what is drawn, and where it appears."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rag_harness.__main__ import CANNOT_RUN, main
from rag_harness.diagnosis.tuning.outcome import Entry, HeldOut, RaceFigure, RaceOutcome
from rag_harness.page.sections.comparison import kind_in_race, race, race_course, race_front, race_section
from tests.unit.page.runs import cell_in, prose_in, read, table_in, write_study

FOUND = RaceFigure(0.5, 0.4, 0.6, 40)


def _entry(title: str, value: float = 0.5, **changes: object) -> Entry:
    figure = RaceFigure(value, value - 0.1, value + 0.1, 40)
    entry = Entry(f"tune+{title}", title, {"top_k": 3}, {"evidence_recall": figure}, 1000 * value)
    return replace(entry, **changes)  # type: ignore[arg-type]


ENTRIES = (
    _entry("best", 0.7),
    _entry("near", 0.6),
    _entry("aside", 0.5, aside_after=8),
    _entry("dear", 0.8, why="cost_usd is 0.01, not <= 0.002"),
    _entry("<b>bad</b>", 0.3, left_after=24, better="best", measure="evidence_recall"),
    _entry("today", 0.4, left_after=16, better="best", measure="evidence_recall"),
)
OUTCOME = RaceOutcome(
    space="space.toml", objective=("evidence_recall",), better="higher", began={"questions": "1"}, by="source_page",
    questions=(40, 40), groups=(20, 20), asks_answers=True, ended="all questions were asked", asked=40, calls=100,
    grid=240, margin=0.0, confidence=0.95, entries=ENTRIES, winner="tune+best", today="tune+today",
    held_out=HeldOut(FOUND, FOUND, RaceFigure(0.0, -0.1, 0.1, 40)), looks=((8, 6), (16, 4), (24, 3), (40, 3)),
    needed=0, seen=0.05, left_out={},
)  # fmt: skip


def test_a_page_without_a_race_says_nothing_of_one(tmp_path: Path) -> None:
    assert race(read(write_study(tmp_path / "out"))) is None


def test_the_section_says_the_answer_first_and_has_every_configuration(tmp_path: Path) -> None:
    output = write_study(tmp_path / "out")
    OUTCOME.write(output)
    section = race(read(output))
    first, *_ = prose_in(section)
    assert first == "best: evidence_recall 0.500 [0.40, 0.60] on 40 questions that it was not chosen by."
    table = table_in(section, "race")
    assert [row[0].text for row in table.rows] == [each.title for each in ENTRIES]
    assert cell_in(table, "best", "in the race").text == "chosen"
    assert cell_in(table, "near", "evidence_recall").text == "0.600 [0.50, 0.70]"
    assert cell_in(table, "today", "in the race").text == "left after 16: best is better"
    assert cell_in(table, "aside", "characters of context").text == "500"


def test_kinds_of_configurations_are_told_apart_by_shape() -> None:
    kinds = [kind_in_race(OUTCOME, each) for each in ENTRIES]
    assert kinds == ["chosen", "not told apart", "set aside", "breaks a constraint", "left", "today"]
    (drawn,) = race_front(OUTCOME).drawings
    marks = [part for part in drawn.split("<g class=")[1:] if "<title>" in part]
    shapes = {kind: _shape(next(part for part in marks if f"<title>{title}: " in part)) for kind, title in zip(
        kinds, ("best", "near", "aside", "dear", "&lt;b&gt;bad&lt;/b&gt;", "today"), strict=True
    )}  # fmt: skip
    assert len(set(shapes.values())) == len(kinds)
    assert all(f">{kind}</text>" in drawn for kind in kinds)
    assert "<b>" not in drawn
    assert "evidence_recall 0.70 [0.60, 0.80]" in drawn


def _shape(group: str) -> tuple[tuple[float, float], ...]:
    """Return the corners of a mark, from its first one; none of a circle."""
    mark = group[: group.index("<title>")].rpartition("<")[2]
    places = [tuple(map(float, each.split(","))) for each in mark.partition('points="')[2].partition('"')[0].split()]
    return tuple((round(x - places[0][0], 1), round(y - places[0][1], 1)) for x, y in places)


def test_the_second_measure_is_the_other_axis() -> None:
    other = {"cost_usd": RaceFigure(0.001, 0.0005, 0.002, 40)}
    entries = tuple(replace(each, figures={**each.figures, **other}) for each in ENTRIES[:-1]) + ENTRIES[-1:]
    figure = race_front(replace(OUTCOME, objective=("evidence_recall", "cost_usd"), entries=entries))
    assert figure.title == "evidence_recall against cost_usd"
    assert "cost_usd (lower is better" in figure.drawings[0]
    assert figure.notes[-1] == "1 without both figures are not drawn."


@pytest.mark.parametrize(("screened", "begun"), [(None, "6"), (("evidence_recall", 2), "6")])
def test_the_course_begins_with_those_whose_answers_were_asked_for(
    screened: tuple[str, int] | None, begun: str
) -> None:
    table = race_course(replace(OUTCOME, screened=screened)).table
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["0", begun], ["16", "4"], ["24", "3"], ["40", "3"]
    ]  # fmt: skip


def test_without_a_held_out_figure_the_answer_is_not_good_news() -> None:
    blocks = race_section(replace(OUTCOME, held_out=None)).blocks
    assert blocks[0].tone == "unsure"  # type: ignore[union-attr]


def test_a_folder_that_only_a_race_has_written_has_a_report(tmp_path: Path) -> None:
    OUTCOME.write(tmp_path / "out")
    for ending in ("html", "md"):
        assert main(["report", str(tmp_path / "out"), "-o", str(tmp_path / f"r.{ending}")]) == 0
    page = (tmp_path / "r.html").read_text()
    assert 'id="table-race"' in page
    assert "<script" not in page
    assert "Every trial" not in page
    comment = (tmp_path / "r.md").read_text()
    assert comment.startswith("## The race of configurations\n\n- best: evidence\\_recall 0.500")
    assert comment.count("\n| ") == 1 + 1 + len(ENTRIES)
    assert "<b>" not in comment
    assert main(["report", str(tmp_path / "out"), "-o", str(tmp_path / "r.csv")]) == CANNOT_RUN


def test_the_comment_on_a_run_has_the_race_folded(tmp_path: Path) -> None:
    output = write_study(tmp_path / "out")
    OUTCOME.write(output)
    assert main(["report", str(output), "-o", str(tmp_path / "r.md")]) == 0
    comment = (tmp_path / "r.md").read_text()
    assert "<summary>The race of configurations: best: evidence\\_recall 0.500" in comment
    assert len(comment.splitlines()) <= 60


def test_a_damaged_race_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    OUTCOME.write(tmp_path)
    (tmp_path / "tune.json").write_text("{}")
    assert main(["report", str(tmp_path), "-o", str(tmp_path / "r.html")]) == CANNOT_RUN
    assert "tune.json is no outcome of a race" in capsys.readouterr().err
