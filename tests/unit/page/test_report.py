"""``rag-harness report``: its files, its table of decisions, and how a run came out in a word."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import pytest

from rag_harness.__main__ import CANNOT_RUN, main
from rag_harness.core.errors import DataError, SettingsError
from rag_harness.core.escaping import page_script
from rag_harness.page import check_place, format_of
from rag_harness.page.comment import comment_of
from rag_harness.page.content import Prose
from rag_harness.page.html import html_of
from rag_harness.page.payload import payload_of
from rag_harness.page.report import read_runs, write_report
from rag_harness.page.run import badge_of, intervals_beside, status_by_gates
from rag_harness.page.sections import sections_of
from rag_harness.page.sections.first_screen import decisions, first_screen
from rag_harness.records.manifest import MANIFEST
from rag_harness.runs.gates.evidence import interval_of_mean
from tests.unit.page.recount.page_tables import tables_in
from tests.unit.page.runs import amend, gate, prose_in, read, rows_of, summarise, table_in, write_study
from tests.unit.rows import failed_row, make_row
from tests.unit.suite_tables import case_of, write_run

# ``rag-harness report``: formats, names, and places that cannot be written.


@pytest.fixture
def output(tmp_path: Path) -> Path:
    write_run(tmp_path / "out", [make_row()])
    return tmp_path / "out"


@pytest.mark.parametrize("ending", ["html", "md", "csv", "HTML"])
def test_the_file_s_ending_says_the_format(
    output: Path, tmp_path: Path, ending: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / f"r.{ending}"
    assert main(["report", str(output), "-o", str(file)]) == 0
    start = {"html": "<!doctype html>", "md": "## ❔ NO VERDICT: ", "csv": "experiment,"}[ending.lower()]
    assert file.read_text().startswith(start)
    assert capsys.readouterr().out.startswith(f"{file}: ")


def test_a_format_that_is_asked_for_is_not_guessed(output: Path, tmp_path: Path) -> None:
    assert main(["report", str(output), "--format", "md", "-o", str(tmp_path / "comment.txt")]) == 0
    assert (tmp_path / "comment.txt").read_text().startswith("## ❔ NO VERDICT: ")


def test_without_names_it_is_the_report_of_output(
    output: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    output.rename("output")
    assert main(["report"]) == 0
    assert Path("report.html").is_file()


def test_the_same_run_gives_the_same_bytes(output: Path, tmp_path: Path) -> None:
    for name in ("a.html", "b.html"):
        write_report([output], tmp_path / name, "html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_an_ending_that_says_nothing_is_refused_with_those_that_do() -> None:
    with pytest.raises(SettingsError, match=r"r\.pdf: no format ends like that\. Use one of \.html, \.md"):
        format_of(Path("r.pdf"))


def test_a_folder_is_no_file(output: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(output), "--format", "html", "-o", str(tmp_path)]) == CANNOT_RUN
    assert f"{tmp_path} is a folder. Name a file in it: {tmp_path / 'report.html'}." in capsys.readouterr().err
    assert main(["report", str(output), "-o", str(tmp_path)]) == CANNOT_RUN
    assert f"{tmp_path} is a folder. Name a file in it" in capsys.readouterr().err
    (tmp_path / "x.html").mkdir()
    with pytest.raises(SettingsError, match="is a folder"):
        check_place(tmp_path / "x.html")


def test_a_place_that_cannot_be_written_is_said(output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(output), "-o", "/proc/report.html"]) == CANNOT_RUN
    assert "/proc/report.html cannot be written: " in capsys.readouterr().err


def test_a_folder_without_a_run_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path), "-o", str(tmp_path / "r.html")]) == CANNOT_RUN
    assert "does not describe a run: there is no such file. Run pytest" in capsys.readouterr().err
    assert not (tmp_path / "r.html").exists()


def test_a_file_is_no_folder_of_a_run(output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(output / "run.json"), "-o", str(output / "r.html")]) == CANNOT_RUN
    assert f"run.json is a file. Name the output folder of a run: {output}." in capsys.readouterr().err


def test_a_table_is_of_one_run(output: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="of one run, and 2 are named"):
        write_report([output, output], tmp_path / "r.csv", "csv")


def test_runs_are_named_by_as_much_of_their_path_as_tells_them_apart(tmp_path: Path) -> None:
    for name in ("monday/output", "tuesday/output", "other"):
        write_run(tmp_path / name, [make_row()])
    assert [run.name for run in read_runs([tmp_path / "other", tmp_path / "monday/output"])] == ["other", "output"]
    found = read_runs([tmp_path / "monday/output", tmp_path / "tuesday/output"])
    assert [run.name for run in found] == ["monday/output", "tuesday/output"]
    with pytest.raises(DataError, match="named twice"):
        read_runs([tmp_path / "other", tmp_path / "other"])


def test_a_lone_surrogate_is_written_as_the_character_that_says_so(tmp_path: Path) -> None:
    write_run(tmp_path, [make_row()])
    file = tmp_path / "cases" / "queries.jsonl"
    file.write_text(file.read_text().replace("30 days", "30 \\ud800 days"))
    for wanted in ("html", "md"):
        write_report([tmp_path], tmp_path / "r", wanted)
        assert (tmp_path / "r").read_bytes().decode("utf-8")


# The table of decisions: what was assumed, measured, and is to be done.

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


# How a run came out in a word: red wherever pytest is red, in the comment, the page, the badge and the status.

# How a run came out in a word: red wherever pytest is red, in the comment, the page, the badge and the status.

HERE = "e3: recall@5 >= 0.5"


def left(output: Path, errors: int = 0, failed: Sequence[str] | None = None, **more: object) -> Path:
    """Leave a run of eight questions with a passed gate; ``failed`` are the questions whose test failed."""
    rows = [failed_row(query_id=f"q{n:02}", query=f"Question {n}?") for n in range(errors)]
    write_run(output, [*rows, *rows_of("e3", 8, 8)[errors:]])
    summarise(output, gate(HERE), **more)
    manifest = json.loads((output / MANIFEST).read_text())
    manifest["suites"]["e3"]["failed"] = failed
    (output / MANIFEST).write_text(json.dumps(manifest))
    return output


def head(output: Path) -> str:
    """Return the first line of the comment, after a look at whether page, badge and status say the same."""
    (run,) = read(output)
    first = comment_of([run]).partition("\n")[0]
    word, _, said = first.removeprefix("## ").partition(": ")
    page = [each.text for each in first_screen([run]).blocks if isinstance(each, Prose)]
    assert (f"{word}: {said}." in page) == ("FAIL" in word or " on " in said)
    badge = json.loads(badge_of(run))
    assert (badge["message"], badge["color"]) == (said, {"❌ FAIL": "red", "✅ PASS": "brightgreen"}[word])
    assert status_by_gates(run, has_succeeded=True)[0] == {"❌ FAIL": "failure", "✅ PASS": "success"}[word]
    return first


def test_errors_are_red_though_every_gate_passed(tmp_path: Path) -> None:
    ids = ["q00", "q01", "q02"]
    assert head(left(tmp_path, 3, ids)) == "## ❌ FAIL: 3 of 8 questions failed; 1 gate passed"


def test_where_no_test_asked_errors_are_failures(tmp_path: Path) -> None:
    assert head(left(tmp_path, 3)) == "## ❌ FAIL: 3 of 8 questions failed; 1 gate passed"


def test_errors_that_the_suite_bears_are_no_failures(tmp_path: Path) -> None:
    assert head(left(tmp_path, 3, [])) == "## ✅ PASS: 1 of 1 gate passed, 0 failed"


def test_an_answer_that_failed_its_test_is_red(tmp_path: Path) -> None:
    assert head(left(tmp_path, 1, ["q00", "q07"])) == "## ❌ FAIL: 2 of 8 questions failed; 1 gate passed"


def test_a_question_without_a_result_is_red_and_counts_once(tmp_path: Path) -> None:
    output = left(tmp_path, failed=["q07"])
    lines = (output / "e3.jsonl").read_text().splitlines(keepends=True)
    (output / "e3.jsonl").write_text("".join(lines[:-2]))
    assert head(output) == "## ❌ FAIL: 2 of 8 questions failed; 1 gate passed"


def test_another_test_that_failed_is_red(tmp_path: Path) -> None:
    output = left(tmp_path, failed=[])
    amend(output, other_failures=2)
    assert head(output) == "## ❌ FAIL: 2 other tests failed; 1 gate passed"


@pytest.mark.parametrize(
    ("unchecked", "said"),
    [
        ({"not judged": 2}, "2 gates not judged, which fails this run (--rag-not-judged=fail)"),
        ({"undecided": 1}, "1 gate undecided, which fails this run (--rag-undecided=fail)"),
        ({"comparison": 1}, "the run could not be compared with the saved one"),
    ],
)
def test_what_an_option_makes_red_is_red(tmp_path: Path, unchecked: dict[str, int], said: str) -> None:
    assert head(left(tmp_path, failed=[], unchecked=unchecked)) == f"## ❌ FAIL: {said}; 1 gate passed"


@pytest.mark.parametrize(
    ("states", "unchecked", "said"),
    [
        (["not judged"] * 3, {"not judged": 3}, "3 gates not judged, which fails this run (--rag-not-judged=fail)"),
        (
            ["passed", *["not judged"] * 3],
            {"not judged": 2},
            "2 gates not judged, which fails this run (--rag-not-judged=fail); 1 gate passed, 1 not judged",
        ),
        (
            ["failed", "undecided"],
            {"undecided": 1},
            "1 of 2 gates failed; 1 gate undecided, which fails this run (--rag-undecided=fail)",
        ),
    ],
)
def test_gates_that_an_option_makes_red_are_said_once(
    tmp_path: Path, states: Sequence[str], unchecked: dict[str, int], said: str
) -> None:
    output = left(tmp_path, failed=[])
    gates = [gate(f"e3: recall@{n + 1} >= 0.5", state) for n, state in enumerate(states)]
    summarise(output, *gates, unchecked=unchecked)
    assert head(output) == f"## ❌ FAIL: {said}"


def test_failed_gates_come_first(tmp_path: Path) -> None:
    output = left(tmp_path, 3, ["q00", "q01", "q02"])
    summarise(output, gate(HERE), gate("e3: token_f1 >= 0.9", "failed"))
    said = "1 of 2 gates failed, 1 passed; 3 of 8 questions failed"
    assert head(output) == f"## ❌ FAIL: {said}"


def test_what_an_earlier_run_left_failed_is_not_of_this_one(tmp_path: Path) -> None:
    output = left(tmp_path, 3, ["q00"])
    manifest = json.loads((output / MANIFEST).read_text())
    manifest["suites"]["e3"]["made"] = "2026-01-01T00:00:00+00:00"
    (output / MANIFEST).write_text(json.dumps(manifest))
    assert head(output) == "## ✅ PASS: 1 of 1 gate passed, 0 failed"


def test_errors_stand_first_among_the_worst_then_failed_tests(tmp_path: Path) -> None:
    (run,) = read(left(tmp_path, 1, ["q00", "q05"]))
    text = comment_of([run])
    worst = [line for line in text.splitlines() if line.startswith("- `e3-")]
    assert [line.partition("`:")[0] for line in worst] == ["- `e3-q00", "- `e3-q05"]
    assert "**error**. generate: ModelCallError: 503" in worst[0]
    assert "**its test failed**" in worst[1]


def test_gates_on_a_part_of_the_questions_are_said_to_be(tmp_path: Path) -> None:
    rows = rows_of("e3", 8, 8)
    write_run(tmp_path, rows[:2], [case_of(row) for row in rows], {"e3": ["q00", "q01"]})
    summarise(tmp_path, gate(HERE))
    assert head(tmp_path) == "## ✅ PASS: 1 of 1 gate passed, 0 failed, on 2 of 8 questions"


def test_gates_on_parts_of_several_suites_count_trials(tmp_path: Path) -> None:
    rows = [*rows_of("e2", 8, 8), *rows_of("e3", 8, 8)]
    write_run(tmp_path, rows[:10], [case_of(row) for row in rows[:8]], {"e3": ["q00", "q01"]})
    summarise(tmp_path, gate("e3: recall@5 >= e2"))
    assert head(tmp_path) == "## ✅ PASS: 1 of 1 gate passed, 0 failed, on 10 of 16 trials"
    summarise(tmp_path, gate("e2: recall@5 >= 0.1"), gate(HERE, "not judged"))
    assert head(tmp_path) == "## ✅ PASS: 1 of 2 gates passed, 0 failed, 1 not judged"


# Intervals are worked out while trials are packed, and are those that would have been worked out later.

INTERVAL = "rag_harness.tables.suite_table.interval_of_mean"


def test_they_are_there_when_the_block_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs, other, asked = read(write_study(tmp_path)), threading.get_ident(), set[int]()
    later = {name: table.interval("recall@5") for name, table in read(tmp_path)[0].selected.items() if name != "e1"}

    def noted(values: Sequence[float], unit: str, clusters: object) -> tuple[float, float] | None:
        asked.add(threading.get_ident())
        assert clusters is None
        return interval_of_mean(values, unit)

    monkeypatch.setattr(INTERVAL, noted)
    with intervals_beside(runs):
        pass
    assert other not in asked
    asked.clear()
    assert {name: runs[0].selected[name].interval("recall@5") for name in later} == later
    assert not asked


def test_what_fails_there_is_raised_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(values: Sequence[float], unit: str, clusters: object) -> tuple[float, float]:
        raise ZeroDivisionError

    monkeypatch.setattr(INTERVAL, broken)
    with pytest.raises(ZeroDivisionError), intervals_beside(read(write_study(tmp_path))):
        pass
