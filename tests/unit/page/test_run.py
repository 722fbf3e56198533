"""How a run came out in a word: red wherever pytest is red, in the comment, the page, the badge and the status."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from rag_harness.page.comment import comment_of
from rag_harness.page.content import Prose
from rag_harness.page.run import badge_of, intervals_beside, status_by_gates
from rag_harness.page.sections.first_screen import first_screen
from rag_harness.records.manifest import MANIFEST
from rag_harness.runs.gates.evidence import interval_of_mean
from tests.unit.page.runs import amend, gate, read, rows_of, summarise, write_study
from tests.unit.rows import failed_row
from tests.unit.suite_tables import case_of, write_run

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
