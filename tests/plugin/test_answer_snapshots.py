"""Answers beside those that were kept: ``{"snapshot": true}``, ``--snapshot-update``, the files, the end of a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rag_harness.__main__ import main
from tests.plugin.conftest import Suite
from tests.plugin.test_own_expectations import gate_line, write_tests

PIPELINE = """
import pytest
from pathlib import Path
from rag_harness import Answer

class Told:
    fingerprint = "1"

    def answer(self, query):
        with Path("asked.txt").open("a") as file:
            file.write(query.query_id + "\\n")
        text = Path(f"{query.query_id}.txt").read_text()
        if text == "raise":
            raise RuntimeError("no")
        return text

@pytest.fixture(scope="session")
def rag_pipeline():
    return Told()
"""
TEST = """
import pytest

@pytest.mark.rag_experiment("mine")
def test_it(rag_result):
    pass
"""
LAMP = "You can return a lamp within 45 days."
GATE = "--rag-gate=mine: expect_snapshot >= 1"
ANEW = "--rag-overwrite"


@pytest.fixture
def told(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest")
    suite.pytester.makeconftest(PIPELINE)
    write_tests(suite, TEST)
    suite.write_queries([{"query_id": f"q{n}", "query": "lamp?", "expect": [{"snapshot": True}]} for n in (1, 2)])
    say(suite, LAMP, "It costs 9.90.")
    return suite


def say(suite: Suite, *answers: str) -> None:
    for number, text in enumerate(answers, 1):
        (suite.path / f"q{number}.txt").write_text(text)


def file(suite: Suite, experiment: str = "mine") -> Path:
    return suite.path / "snapshots" / f"{experiment}.ambr"


def section(said: pytest.RunResult) -> list[str]:
    """Return the lines of the section about snapshots."""
    text = said.stdout.str()
    if "rag snapshots" not in text:
        return []
    return text.partition("rag snapshots")[2].partition("\n")[2].partition("\n===")[0].splitlines()


@pytest.mark.parametrize("workers", [pytest.param("0", marks=pytest.mark.long), "2"])
def test_answers_are_kept_held_against_what_comes_and_kept_anew(told: Suite, workers: str) -> None:
    missing = told.run(GATE, "-n", workers)
    assert "no snapshot yet: pytest --snapshot-update" in gate_line(missing, "mine: expect_snapshot >= 1")
    assert gate_line(missing, "mine: expect_snapshot >= 1").startswith("failed")
    assert section(missing)[0] == "mine: 2 answers without a snapshot yet: mine-q1, mine-q2"
    assert not file(told).exists()

    kept = told.run(GATE, "--snapshot-update", "-n", workers)
    assert "1.000" in gate_line(kept, "mine: expect_snapshot >= 1")
    assert section(kept) == ["snapshots/mine.ambr: 2 new"]
    assert file(told).read_text() == (
        f"# serializer version: 1\n# name: mine-q1\n  {LAMP}\n# ---\n# name: mine-q2\n  It costs 9.90.\n# ---\n"
    )
    asked = (told.path / "asked.txt").read_text().splitlines()
    assert len(asked) == 2, "answers that are there are not asked for again"
    same = told.run(GATE, "-n", workers)
    assert same.ret == 0
    assert section(same) == []

    say(told, "you can return a LAMP\nwithin 45 days [Source 3].", "It costs 8.90.")
    changed = told.run(GATE, ANEW, "-n", workers)
    assert "0.500" in gate_line(changed, "mine: expect_snapshot >= 1")
    assert section(changed)[0] == "mine: 1 answer not as kept: mine-q2"
    assert "mine-q2: snapshot: “It costs 9.90.” became “It costs 8.90.”" in changed.stdout.str()

    renewed = told.run(GATE, "--snapshot-update", "-n", workers)
    assert section(renewed) == ["snapshots/mine.ambr: 1 changed"]
    assert "1.000" in gate_line(renewed, "mine: expect_snapshot >= 1")
    # What says the same stays as it was: only what has changed is in the difference.
    assert LAMP in file(told).read_text()
    assert "8.90" in file(told).read_text()


def test_explain_and_report_read_what_was_demanded_from_the_output_alone(
    told: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    told.run("--snapshot-update")
    say(told, LAMP.replace("45", "30"))
    told.run(ANEW)
    file(told).unlink()
    assert main(["explain", "output", "mine-q1", "--rows-only"]) == 0
    said = capsys.readouterr().out
    assert "snapshot: “…lamp within 45 days.” became “…lamp within 30 days.”" in said
    assert "Expectation Broken: says something else than before" in said
    assert main(["report", "output", "-o", "report.html"]) == 0
    cases = [json.loads(line) for line in (told.path / "output/cases/queries+mine.jsonl").read_text().splitlines()]
    assert cases[0]["expect"] == [{"snapshot": True, "was": LAMP}]


def test_each_experiment_has_its_own(told: Suite) -> None:
    write_tests(told, TEST.replace('"mine"', '"mine", "other"'))
    told.run("--snapshot-update")
    assert "# name: other-q1" in file(told, "other").read_text()
    assert "mine" not in file(told, "other").read_text()
    file(told, "other").write_text(file(told, "other").read_text().replace("45 days", "30 days"))
    gates = (GATE, "--rag-gate=other: expect_snapshot >= 1", "--rag-gate=mine: expect_snapshot > other")
    said = told.run(*gates)
    assert "1.000" in gate_line(said, "mine: expect_snapshot >= 1")
    assert "0.500" in gate_line(said, "other: expect_snapshot >= 1")
    # Both owe the same, that nothing has changed, so they are compared.
    assert gate_line(said, "mine: expect_snapshot > other").startswith("passed")


def test_an_answer_that_raised_and_an_empty_one_leave_their_snapshots(told: Suite) -> None:
    told.write_queries([{"query_id": f"q{n}", "query": "lamp?", "expect": [{"snapshot": True}]} for n in (1, 2, 3)])
    say(told, LAMP, LAMP, LAMP)
    told.run("--snapshot-update")
    before = file(told).read_text()
    say(told, "raise", " ")
    said = told.run("--snapshot-update", ANEW, GATE)
    assert file(told).read_text() == before
    assert "0.333" in gate_line(said, "mine: expect_snapshot >= 1")
    assert section(said) == []
    file(told).unlink()
    said = told.run("--snapshot-update", GATE)
    assert file(told).read_text().count("# name") == 1
    assert section(said) == ["snapshots/mine.ambr: 1 new"]


def test_only_new_ones_are_kept_where_that_is_asked_for(told: Suite) -> None:
    told.run("--snapshot-update", "-k", "q1")
    assert "mine-q2" not in file(told).read_text()
    say(told, "Something else.", "New.")
    said = told.run("--snapshot-update-new-only", ANEW, GATE)
    assert "0.500" in gate_line(said, "mine: expect_snapshot >= 1")
    assert section(said) == ["snapshots/mine.ambr: 1 new", "mine: 1 answer not as kept: mine-q1"]
    assert LAMP in file(told).read_text()


def test_what_no_question_demands_any_more_is_said_and_taken_out_by_a_whole_run(told: Suite) -> None:
    told.write_queries([{"query_id": f"q{n}", "query": "lamp?", "expect": [{"snapshot": True}]} for n in range(1, 6)])
    say(told, *[LAMP] * 5)
    told.run("--snapshot-update")
    told.write_queries([{"query_id": "q1", "query": "lamp?", "expect": [{"snapshot": True}]}])
    unused = "snapshots/mine.ambr: 4 that no question demands: mine-q2, mine-q3, mine-q4 and 1 more"
    assert section(told.run()) == [unused]
    told.run("--snapshot-update", "-k", "q1")
    told.run("--snapshot-update", "--snapshot-no-cleanup")
    assert "mine-q2" in file(told).read_text(), "another test, or another run, may demand it"
    assert section(told.run("--snapshot-update")) == ["snapshots/mine.ambr: 4 taken out"]
    assert "mine-q2" not in file(told).read_text()


def test_a_file_of_other_questions_is_left_alone(told: Suite) -> None:
    told.run("--snapshot-update")
    told.write_queries([{"query_id": "q3", "query": "lamp?", "expect": [{"snapshot": True}]}])
    say(told, "", "", "Another.")
    told.run("--snapshot-update")
    assert "mine-q1" in file(told).read_text()
    assert "mine-q3" in file(told).read_text()


def test_a_mark_demands_it_and_a_test_of_ones_own_sees_it(told: Suite) -> None:
    told.write_queries([{"query_id": "q1", "query": "lamp?"}])
    write_tests(
        told,
        """
        import pytest

        @pytest.mark.rag_expect({"snapshot": True, "case": True})
        @pytest.mark.rag_experiment("mine")
        def test_it(rag_result, rag_scores):
            assert rag_scores["expect_snapshot"].value == 1, rag_scores["expect_snapshot"].reason
        """,
    )
    said = told.run()
    said.assert_outcomes(failed=1)
    said.stdout.fnmatch_lines(["*no snapshot yet: pytest --snapshot-update*"])
    told.run("--snapshot-update").assert_outcomes(passed=1)
    told.run("-n", "2").assert_outcomes(passed=1)
    say(told, LAMP.lower())
    told.run(ANEW).assert_outcomes(failed=1)


def test_a_judged_expectation_beside_it_is_judged_with_what_the_run_keeps(told: Suite) -> None:
    both = [{"snapshot": True}, {"rubric": "says that you can return a lamp within 45 days"}]
    told.write_queries([{"query_id": "q1", "query": "lamp?", "expect": both}])
    gate = "mine: expectations >= 1"
    said = told.run(f"--rag-gate={gate}", "--snapshot-update", "--rag-judge=mock")
    assert "1.000" in gate_line(said, gate), said.stdout.str()
    scores = (told.path / "output" / "scores" / "mine.jsonl").read_text()
    again = told.run(f"--rag-gate={gate}", "--rag-judge=mock")
    assert "1.000" in gate_line(again, gate)
    assert (told.path / "output" / "scores" / "mine.jsonl").read_text() == scores, "nothing was judged anew"


def test_syrupy_and_its_own_folder_are_told_apart(told: Suite) -> None:
    write_tests(told, TEST + "\ndef test_other(snapshot):\n    assert 3 == snapshot\n")
    said = told.run("--snapshot-update")
    assert "1 snapshot generated." in said.stdout.str()
    assert {each.name for each in told.path.rglob("*.ambr")} == {"mine.ambr", "test_it.ambr"}
    assert told.run().ret == 0
    refused = told.run("--snapshot-dirname=snapshots")
    text = " ".join((refused.stdout.str() + refused.stderr.str()).split())
    assert "--snapshot-dirname is snapshots, where answers are kept: syrupy deletes in its own folder what no" in text
    assert told.run("--rag-project=kept", "--snapshot-update").ret == 0
    assert (told.path / "kept" / "snapshots" / "mine.ambr").exists()


@pytest.mark.parametrize("workers", [pytest.param("0", marks=pytest.mark.long), "2"])
def test_a_file_that_cannot_be_read_is_named_before_anything_is_asked(told: Suite, workers: str) -> None:
    (told.path / "snapshots").mkdir()
    file(told).write_text("<<<<<<< ours\n")
    said = told.run("-n", workers)
    assert said.ret != 0
    assert "mine.ambr is not a file of snapshots that the installed syrupy reads" in said.stdout.str()
    assert not (told.path / "asked.txt").exists()


# A Python that has started may have imported it.
WITHOUT_SYRUPY = """
import sys

for name in [each for each in sys.modules if each.partition(".")[0] == "syrupy"]:
    del sys.modules[name]
"""


def test_without_syrupy_the_extra_is_named(told: Suite) -> None:
    told.pytester.makeconftest(PIPELINE + WITHOUT_SYRUPY)
    (told.path / "syrupy.py").write_text("raise ImportError('No module named syrupy', name='syrupy')\n")
    said = told.run("-p", "no:syrupy", "-p", "no:cacheprovider", "--import-mode=prepend")
    assert "pip install 'pytest-rag-harness[snapshots]'" in said.stdout.str() + said.stderr.str()
    assert not (told.path / "asked.txt").exists()


def test_repeats_are_held_against_the_same_snapshot(told: Suite) -> None:
    told.run("--snapshot-update")
    said = told.run("--rag-repeats=2", "--rag-gate=mine: pass^2(expectations) >= 1")
    assert "1.000" in gate_line(said, "mine: pass^2(expectations) >= 1")
