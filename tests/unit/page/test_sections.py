"""Sections of the page: comparisons, slices, races and failures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from rag_harness.__main__ import CANNOT_RUN, main
from rag_harness.core.errors import DataError
from rag_harness.diagnosis.tuning.outcome import Entry, HeldOut, RaceFigure, RaceOutcome
from rag_harness.page.content import Failures, More, Section
from rag_harness.page.html import html_of
from rag_harness.page.payload import payload_of
from rag_harness.page.report import write_report
from rag_harness.page.sections.comparison import differences, kind_in_race, race, race_course, race_front, race_section
from rag_harness.page.sections.failures import failures
from rag_harness.page.sections.method import statistics
from rag_harness.page.sections.scorecard import slices
from rag_harness.records.scores import CAUSES, CauseLine, write_causes
from rag_harness.stats import difference_interval, holm, holm_counts, permutation_test
from tests.browser.runs import Study
from tests.unit.page.runs import AR, CP, F, amend, cell_in, prose_in, read, rows_of, scored, table_in, write_study
from tests.unit.suite_tables import write_run

# Which is better: pairs, tests, and the queries that moved.

N = 40


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A run whose judged values vary as those of people do."""
    rng, rows, scores = np.random.default_rng(1), [], []
    for shift, name in ((0.0, "e1"), (0.02, "e2"), (0.2, "e3")):
        mine = rows_of(name, N, N)
        values = {m: np.clip(rng.normal(0.5 + shift, 0.15, N), 0.01, 0.99).tolist() for m in (CP, F, AR)}
        rows += mine
        scores += scored(mine, values)
    write_run(tmp_path / "out", rows, scores=scores)
    return tmp_path / "out"


def of(*outputs: Path) -> Section:
    section = differences(read(*outputs))
    assert section is not None
    return section


def test_the_study_s_pairs_are_what_scipy_says(study: Path) -> None:
    table = table_in(of(study), "pairwise-study")
    tables = read(study)[0].tables
    tested = [row for row in table.rows if row[6].text != "-"]
    expected = []
    for row in tested:
        first, second = row[0].text.split(" - ")
        measure = "g_mean" if row[1].text == "G_mean" else "hri"
        a, b = (list(tables[name].values(measure, {}).values()) for name in (first, second))
        assert row[3].text == f"{np.mean(a) - np.mean(b):+.3f}"
        expected.append((scipy.stats.ttest_rel(a, b).pvalue, permutation_test(a, b), np.subtract(a, b)))
    assert len(tested) == 6
    by_t, by_chance, apart = zip(*expected, strict=True)
    among = map(max, holm_counts(by_t), holm_counts(by_chance))
    for row, p, differences_of, count in zip(tested, holm(by_t), apart, among, strict=True):
        assert row[6].text == ("<0.001" if p < 0.001 else f"{p:.3f}")
        low, high = difference_interval(differences_of, (-1, 1), 1 - 0.05 / count)
        assert row[4].text == f"[{low:+.3f}, {high:+.3f}]"


def test_in_words_whether_chance_explains_a_difference(study: Path) -> None:
    rows = {(row[0].text, row[1].text): row[-1] for row in table_in(of(study), "pairwise-study").rows}
    assert (rows["e3 - e2", "G_mean"].text, rows["e3 - e2", "G_mean"].tone) == ("e3 is better", "good")
    assert (rows["e2 - e1", "G_mean"].text, rows["e2 - e1", "G_mean"].tone) == (
        "not sure, it may be chance: p > 0.05",
        "unsure",
    )
    assert rows["e2 - e1", "HRI, p95 ↓"].text == "not sure, it may be chance: the interval holds 0"


def test_lower_is_better_of_a_risk(tmp_path: Path) -> None:
    rows = {(row[0].text, row[1].text): row[-1] for row in table_in(of(write_study(tmp_path)), "pairwise-study").rows}
    assert rows["e3 - e2", "HRI ↓"].text == "e3 is better"
    assert rows["e3 - e2", "HRI ↓"].tone == "good"
    assert rows["e3 - e2", "G_mean"].text == "not tested: all differences are equal"


def test_other_measures_are_a_matrix_of_the_pairs(study: Path) -> None:
    table = table_in(of(study), "pairwise-others")
    assert list(table.head) == ["pair", "CP", "F", "AR"]
    tables = read(study)[0].tables
    a, b = (list(tables[name].values(CP, {}).values()) for name in ("e3", "e1"))
    (pair,) = (each for each in read(study)[0].pairwise if (each.pair, each.measure) == ("e3 - e1", CP))
    assert pair.among > 1
    low, high = difference_interval(np.subtract(a, b), (-1, 1), pair.confidence)
    oracle = scipy.stats.ttest_rel(a, b).confidence_interval(1 - 0.05 / pair.among)
    assert (low, high) == pytest.approx(tuple(oracle), abs=0.01)
    cell = cell_in(table, "e3 - e1", "CP")
    assert cell.text == f"{np.mean(a) - np.mean(b):+.3f}> ±{(high - low) / 2:.3f}"
    assert cell.hint.startswith(f"n = {N}; interval [{low:+.3f}, ")


def test_what_no_judge_gives_is_compared_without_one(tmp_path: Path) -> None:
    write_run(tmp_path, [*rows_of("e2", 20, 5), *rows_of("e3", 20, 20)])
    section = of(tmp_path)
    cell = cell_in(table_in(section, "pairwise-unjudged"), "e3 - e2", "recall@5")
    assert cell.text.startswith("+0.750> ±")
    p = scipy.stats.ttest_rel([1.0] * 20, [1.0] * 5 + [0.0] * 15).pvalue
    assert f"p (t) {'<0.001' if p < 0.001 else f'{p:.3f}'}" in cell.hint
    # Nothing was judged: recall@5 says which queries moved.
    up = table_in(section, "moved-e3-e2-up")
    assert up.caption == "15 queries went up: recall@5 ↑"
    assert [cell.trial for cell in up.rows[0]] == ["e3-q05", "e2-q05", "e3-q05", ""]
    assert [cell.text for cell in up.rows[0]] == ["q05", "0.000", "1.000", "Question 5?"]


def test_queries_that_moved_most_stand_first_and_the_others_are_counted(study: Path) -> None:
    tables = read(study)[0].tables
    new, old = (tables[name].values("g_mean", {}) for name in ("e3", "e2"))
    moves = {case: new[case] - old[case] for case in new}
    up, down = (table_in(of(study), f"moved-e3-e2-{way}") for way in ("up", "down"))
    risen = sorted((case for case in moves if moves[case] > 0), key=lambda case: -moves[case])
    fallen = sorted((case for case in moves if moves[case] < 0), key=lambda case: moves[case])
    assert [row[0].text for row in up.rows] == risen[:20]
    assert [row[0].text for row in down.rows] == fallen[:20]
    assert up.notes == ([f"and {len(risen) - 20} more"] if len(risen) > 20 else [])
    assert {row[2].tone for row in up.rows} == {"good"}
    assert {row[2].tone for row in down.rows} == {"bad"}


def test_where_no_query_moved_that_is_said(tmp_path: Path) -> None:
    section = of(write_study(tmp_path))
    assert "None: every query has the same value in both." in prose_in(section)
    assert any(isinstance(block, More) and block.title.startswith("e3 - e2: ") for block in section.blocks)


def test_one_experiment_is_compared_with_nothing(tmp_path: Path) -> None:
    write_run(tmp_path, rows_of("e3", 3, 3))
    assert differences(read(tmp_path)) is None


def test_experiments_on_different_data_are_not_compared(tmp_path: Path) -> None:
    write_study(tmp_path)
    cases = tmp_path / "cases"
    suites = {}
    for name, record in read(tmp_path)[0].suites.items():
        (cases / f"{name}.jsonl").write_bytes((cases / "queries.jsonl").read_bytes())
        suites[name] = record.model_dump() | {"data": name}
    amend(tmp_path, suites=suites)
    (said,) = prose_in(of(tmp_path))
    assert said.startswith("No two experiments can be compared. They are not on the same data")


# Which wins where: the section in both formats, and its numbers by the second program.

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


def slices_of(output: Path) -> Section:
    section = slices(read(output))
    assert section is not None
    return section


def test_the_winner_of_a_slice_is_marked_and_beats_all_others(clear: Path) -> None:
    table = table_in(slices_of(clear), "slices")
    best = cell_in(table, "query_type=direct", "best")
    assert (best.text, best.is_best) == ("e3", True)
    assert cell_in(table, "query_type=direct", "beats").text == "e1, e2"
    assert cell_in(table, "query_type=direct", "mean").text.startswith("0.938 [")
    level = cell_in(table, "query_type=hard", "best")
    assert (level.text, level.is_best) == ("all", False)
    assert cell_in(table, "query_type=hard", "the same on every case").text == "e2, e3"
    assert "p and the intervals of differences are adjusted by Holm for 2 tests" in " ".join(table.notes)


def test_each_difference_of_the_best_is_below_it(clear: Path) -> None:
    (more,) = [block for block in slices_of(clear).blocks if isinstance(block, More)]
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
    said = prose_in(slices_of(output))
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


# The race of configurations on the page and in Markdown: what is said, what is drawn, and where it appears.

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
    assert "tune.json is not an outcome of a race" in capsys.readouterr().err


# Failures: causes counted, the worst of each experiment, and what is said where nobody looked.


def cause(place: int, name: str = "Retrieval Miss", **fields: object) -> CauseLine:
    usual = {"query": f"Question {place}?", "cause": name, "detail": "cut", "fingerprint": "aaaa", "evidence": "seen"}
    return CauseLine.model_validate(
        {"experiment": "e2", "query_id": f"q{place:02}", "remedy": "longer chunks", **usual, **fields}
    )


def failures_of(*outputs: Path) -> Section:
    section = failures(read(*outputs))
    assert section is not None
    return section


def shown(section: Section) -> dict[str, Failures]:
    return {block.experiment: block for block in section.blocks if isinstance(block, Failures)}


def test_causes_are_counted_by_experiment(tmp_path: Path) -> None:
    write_study(tmp_path)
    others = [cause(0, experiment="e3"), cause(1, "Own Cause", experiment="e3")]
    write_causes(tmp_path, [cause(0), cause(1), cause(2, "Logic Failure"), *others])
    table = table_in(failures_of(tmp_path), "causes")
    assert [row[0].text for row in table.rows] == ["Retrieval Miss", "Logic Failure", "Own Cause", "explained"]
    assert cell_in(table, "Retrieval Miss", "e2").text == "2 (67%)"
    assert [cell.text for cell in table.rows[-1]] == ["explained", "3 of 12", "2 of 12"]


def test_the_worst_stand_with_cause_evidence_and_remedy(tmp_path: Path) -> None:
    write_study(tmp_path)
    first = cause(3, hri=0.456, repaired_by="+gold_context", reviewed_cause="Noise", reviewed_by="Ada")
    write_causes(tmp_path, [first, *(cause(place) for place in range(4, 12)), cause(0), cause(1), cause(2)])
    found = shown(failures_of(tmp_path))["e2"]
    assert (len(found.shown), found.total) == (10, 12)
    worst = found.shown[0]
    assert (worst.trial, worst.query, worst.figures) == ("e2-q03", "Question 3?", "hallucination risk 0.46")
    assert worst.cause == "Retrieval Miss: cut; repaired by +gold_context; Ada says: Noise"
    assert (worst.evidence, worst.remedy) == ("seen", "longer chunks")


def test_a_category_does_not_stand_beside_a_cause(tmp_path: Path) -> None:
    write_study(tmp_path)
    write_causes(tmp_path, [cause(0, "Logic Failure", category="Retrieval Failure")])
    page = html_of("title", [failures_of(tmp_path)], payload_of(read(tmp_path)))
    assert "<strong>Logic Failure: cut</strong></p>" in page
    assert "Retrieval Failure" not in page.partition("<script")[0]


def test_causes_from_rows_alone_are_said_to_be_that(tmp_path: Path) -> None:
    write_study(tmp_path)
    write_causes(tmp_path, [cause(0, observational=True, limits="no model"), cause(1)])
    section = failures_of(tmp_path)
    assert prose_in(section) == ["e2: 1 of 2 causes rest on rows and gold alone (observational): no model."]
    assert shown(section)["e2"].shown[0].cause == "Retrieval Miss: cut (observational)"


def test_causes_of_other_rows_are_not_of_this_run(tmp_path: Path) -> None:
    write_study(tmp_path)
    write_causes(tmp_path, [cause(0, fingerprint="old")])
    assert "was not looked into in this run" in prose_in(failures_of(tmp_path))[0]


def test_without_causes_the_worst_by_risk_and_how_to_get_causes(tmp_path: Path) -> None:
    write_study(tmp_path)
    section = failures_of(tmp_path)
    assert "--rag-attribute" in prose_in(section)[0]
    risk = read(tmp_path)[0].tables["e2"].values("hri", {})
    found = shown(section)["e2"]
    assert [risk[failure.trial.removeprefix("e2-")] for failure in found.shown] == sorted(risk.values())[::-1][:10]
    assert found.total == 12
    assert found.shown[0].query.startswith("Question ")
    # Its words are those of the ground truth, and nobody judged it.
    assert "e1" not in shown(section)


def test_without_causes_and_judge_the_worst_by_words(tmp_path: Path) -> None:
    rows = rows_of("e3", 4, 4)
    rows[2] = rows[2].model_copy(update={"llm_answer": "Never.", "citations": ()})
    write_run(tmp_path, rows)
    (found,) = shown(failures_of(tmp_path)).values()
    assert [(failure.trial, failure.evidence) for failure in found.shown] == [("e3-q02", "token_f1 0.000")]
    assert found.total == 1


def test_where_all_was_explained_and_nothing_failed(tmp_path: Path) -> None:
    write_study(tmp_path)
    write_causes(tmp_path, [])
    amend(tmp_path, settings={"attribute": True})
    assert prose_in(failures_of(tmp_path)) == ["No trial failed: there is nothing to explain."]
    assert not shown(failures_of(tmp_path))


def test_trials_of_one_of_several_runs_say_which(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_causes(write_study(tmp_path / name), [cause(0)])
    assert shown(failures_of(tmp_path / "a", tmp_path / "b"))["e2"].shown[0].trial == "a/e2-q00"


def test_a_damaged_file_is_named_with_its_line(tmp_path: Path) -> None:
    write_study(tmp_path)
    (tmp_path / CAUSES).write_text("{}\n")
    with pytest.raises(DataError, match=r"causes\.jsonl:1: "):
        failures_of(tmp_path)


def test_no_rows_no_section(tmp_path: Path) -> None:
    write_run(tmp_path, [], [], selected={})
    assert failures(read(tmp_path)) is None
