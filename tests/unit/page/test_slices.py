"""Which wins where: the section in both formats, and its numbers by the second program."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_harness.page.content import More, Section
from rag_harness.page.report import write_report
from rag_harness.page.sections.method import statistics
from rag_harness.page.sections.scorecard import slices
from rag_harness.stats import difference_interval
from tests.browser.runs import Study
from tests.unit.page.runs import amend, cell_in, prose_in, read, rows_of, table_in
from tests.unit.suite_tables import write_run

ASKED = ["query_type", "topic: factuality, hri"]


def asked(output: Path, *texts: str) -> Path:
    amend(output, settings={"slices": list(texts)})
    return output


@pytest.fixture
def clear(tmp_path: Path) -> Path:
    """e3 finds the page on every direct question, e1 and e2 on one of four; of the others nobody does."""
    n = 24
    rows = [
        row.model_copy(update={"query_type": "direct" if place < 16 else "hard"})
        for name, found in (("e1", 4), ("e2", 4), ("e3", 15))
        for place, row in enumerate(rows_of(name, n, found))
    ]
    write_run(tmp_path / "out", rows)
    return asked(tmp_path / "out", "query_type")


def of(output: Path) -> Section:
    section = slices(read(output))
    assert section is not None
    return section


def test_the_winner_of_a_slice_is_marked_and_beats_all_others(clear: Path) -> None:
    table = table_in(of(clear), "slices")
    best = cell_in(table, "query_type=direct", "best")
    assert (best.text, best.is_best) == ("e3", True)
    assert cell_in(table, "query_type=direct", "beats").text == "e1, e2"
    assert cell_in(table, "query_type=direct", "mean").text.startswith("0.938 [")
    level = cell_in(table, "query_type=hard", "best")
    assert (level.text, level.is_best) == ("all", False)
    assert cell_in(table, "query_type=hard", "the same on every case").text == "e2, e3"
    assert "p and the intervals of differences are adjusted by Holm for 2 tests" in " ".join(table.notes)


def test_each_difference_of_the_best_is_below_it(clear: Path) -> None:
    (more,) = [block for block in of(clear).blocks if isinstance(block, More)]
    table = table_in(Section("", "", [more]), "slices-pairs")
    rows = [[cell.text for cell in row] for row in table.rows]
    assert [row[:5] for row in rows] == [
        ["query_type=direct", "recall@5", "e3 - e1", "16", "+0.688"],
        ["query_type=direct", "recall@5", "e3 - e2", "16", "+0.688"],
        ["query_type=hard", "recall@5", "e1 - e2", "8", "+0.000"],
        ["query_type=hard", "recall@5", "e1 - e3", "8", "+0.000"],
    ]
    assert [row[4].tone for row in table.rows] == ["good", "good", "unsure", "unsure"]
    low, high = difference_interval([0.0] * 8, (-1, 1))
    assert rows[2][5:] == [f"[{low:+.3f}, {high:+.3f}]", "-", "-"]


def test_it_is_there_only_where_it_was_asked_for_and_somebody_has_a_rival(tmp_path: Path) -> None:
    write_run(tmp_path, [*rows_of("e2", 8, 5), *rows_of("e3", 8, 8)])
    assert slices(read(tmp_path)) is None
    assert slices(read(asked(tmp_path, "query_type"))) is not None
    write_run(tmp_path / "one", rows_of("e3", 8, 8))
    assert slices(read(asked(tmp_path / "one", "query_type"))) is None


def test_what_there_is_none_of_is_said(tmp_path: Path) -> None:
    output = asked(Study(cases=24).write(tmp_path / "out"), "query_type")
    said = prose_in(of(output))
    assert "e1: no recall@5 (24 of 24 have no retrieval)." in said
    assert any(text.startswith("query_type=negative: nobody has recall@5 (") for text in said)


def test_the_page_has_it_below_the_scorecard_and_before_what_the_run_is_made_of(clear: Path) -> None:
    write_report([clear], clear / "page.html", "html")
    page = (clear / "page.html").read_text()
    assert page.index('id="scorecard"') < page.index('id="slices"') < page.index('id="method"')


def test_the_statistics_say_what_the_family_is(clear: Path) -> None:
    (run,) = read(clear)
    assert any("every pair of experiments on every slice" in text for text in statistics(run, [run]))
    (run,) = read(asked(clear))
    assert not any("on every slice" in text for text in statistics(run, [run]))


def test_a_measure_that_is_not_known_here_takes_no_section_down(clear: Path) -> None:
    assert slices(read(asked(clear, "query_type: of_somebody_else"))) is None
    assert slices(read(asked(clear, "no_such_key"))) is None


def test_every_number_is_what_the_second_program_finds(tmp_path: Path) -> None:
    pytest.importorskip("scipy", reason="the second program needs scipy")
    from tests.unit.page.recount.page_tables import tables_in
    from tests.unit.page.recount.recounted import problems, table_problems
    from tests.unit.page.recount.rows import read_files
    from tests.unit.page.test_recount import numbers_of, wrong

    output = asked(Study(cases=30, seed=5).write(tmp_path / "out"), *ASKED)
    write_report([output], tmp_path / "page.html", "html")
    html = (tmp_path / "page.html").read_text()
    files, tables = read_files(output), tables_in(html)
    names = ["table-slices", "table-slices-pairs"]
    assert [what for name in names for what in problems(html, output, only=name)] == []
    for name in names:
        part = html[html.index(f'<table id="{name}"') :].partition("</table>")[0] + "</table>"
        for start, end in [*numbers_of(part, name)][:6]:
            broken = tables | tables_in(wrong(part, start, end))
            assert any(table_problems(files, name, broken)), part[start - 60 : end]
    for column, text in ((3, "e2"), (5, "e1"), (6, "–")):
        tables = tables_in(html)
        shown = next(row[column] for row in tables["table-slices"].rows if row[column].text != text)
        shown.text = text
        assert any(table_problems(files, "table-slices", tables)), column
