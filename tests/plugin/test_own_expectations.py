"""What the answers of one experiment owe: by a mark of its test, by its own description, by an endpoint's table."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from runpy import run_path
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import pytest

from rag_harness.__main__ import main
from rag_harness.core.errors import SettingsError
from rag_harness.core.settings import Settings
from rag_harness.core.types import Case, Query
from rag_harness.frontends.pytest_plugin.items import ExpectMarks
from rag_harness.records.expectations import expectations_of
from rag_harness.tables.requested_measures import WantedMeasures
from rag_harness.tables.trials import read_trials
from tests.plugin.conftest import Suite
from tests.unit.server import as_json, serving

PIPELINE = """
import pytest
from pathlib import Path
from rag_harness import Answer

class Fixed:
    fingerprint = "1"

    def answer(self, query):
        with Path("asked.txt").open("a") as file:
            file.write(query.query_id + "\\n")
        return "You can return a lamp within 45 days."

@pytest.fixture(scope="session")
def rag_pipeline():
    return Fixed()
"""
TESTS = """
import pytest

@pytest.mark.rag_expect({"contains": "45 days"}, {"max_words": 3, "weight": 3})
@pytest.mark.rag_experiment("mine")
def test_mine(rag_result):
    assert rag_result.ok

@pytest.mark.rag_experiment("other")
def test_other(rag_result):
    assert rag_result.ok
"""


@pytest.fixture
def fixed(suite: Suite) -> Suite:
    suite.pytester.makeconftest(PIPELINE)
    write_tests(suite, TESTS)
    suite.write_queries(
        [{"query_id": "q1", "query": "lamp?"}, {"query_id": "q2", "query": "x?", "expect": [{"links": True}]}]
    )
    return suite


# In workers marks are read, and elsewhere they are judged. That both are in one process is in most of the other tests.
WORKERS = pytest.mark.parametrize("workers", [pytest.param("0", marks=pytest.mark.long), "2"])


def write_tests(suite: Suite, code: str) -> None:
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    (suite.path / "test_it.py").write_text(dedent(code))


def asked(suite: Suite) -> int:
    file = suite.path / "asked.txt"
    return len(file.read_text().splitlines()) if file.exists() else 0


def gate_line(said: pytest.RunResult, condition: str) -> str:
    """Return what stands of a gate among the others, in one line."""
    text = said.stdout.str().rpartition("rag gates")[2]
    found = re.search(rf"^(?:passed|failed|not judged) +{re.escape(condition)}\s(?:.|\n +)*", text, re.MULTILINE)
    assert found, text
    return " ".join(found[0].split())


@WORKERS
def test_a_mark_is_scored_for_the_experiment_of_its_test_and_for_no_other(
    fixed: Suite, capsys: pytest.CaptureFixture[str], workers: str
) -> None:
    gates = ("--rag-gate=mine: expectations >= 0.5", "--rag-gate=mine: expect_contains >= 1")
    said = fixed.run(*gates, "--rag-gate=other: expectations <= 0", "-n", workers)
    # 1 of 4 where the question demands nothing, 1 of 5 where it demands a link.
    assert gate_line(said, "mine: expectations >= 0.5").startswith("failed mine: expectations >= 0.5 0.225 ")
    assert gate_line(said, "mine: expect_contains >= 1").startswith("passed mine: expect_contains >= 1 1.000 ")
    assert gate_line(said, "other: expectations <= 0").startswith("passed other: expectations <= 0 0.000 ")
    assert "n=1" in gate_line(said, "other: expectations <= 0")
    assert main(["explain", "output", "mine-q1", "--rows-only"]) == 0
    assert "max_words 3: it has 8 words" in capsys.readouterr().out
    main(["explain", "output", "other-q2", "--rows-only"])
    said_of_other = capsys.readouterr().out
    assert "links: " in said_of_other
    assert "max_words" not in said_of_other


def test_a_changed_mark_is_scored_anew_and_asks_nothing(fixed: Suite) -> None:
    fixed.run("--rag-save=before")
    assert asked(fixed) == 4
    write_tests(fixed, TESTS.replace('"max_words": 3', '"max_words": 19'))
    said = fixed.run(
        "--rag-gate=mine: expectations >= 0.8", "--rag-gate=mine: expectations >= baseline", "--rag-compare=before"
    )
    assert asked(fixed) == 4
    assert "passed mine: expectations >= 0.8 0.900" in gate_line(said, "mine: expectations >= 0.8")
    assert "failed mine: expectations >= baseline the answers owed other things in the baseline" in gate_line(
        said, "mine: expectations >= baseline"
    )
    text = " ".join(said.stdout.str().split())
    assert "What answers of mine owe has changed: expectations cannot be compared." in text
    assert "mine: no sure change; 1 of 4 measures differ" in text


def test_a_mark_beside_the_pipeline_in_one_file_and_a_line_of_a_question_change_no_answer(fixed: Suite) -> None:
    fixed.pytester.makeconftest("")
    for most in (1, 22):
        write_tests(fixed, PIPELINE + TESTS.replace('"max_words": 3', f'"max_words": {most}'))
        owed = [{"max_chars": most}] if most > 1 else []
        fixed.write_queries([{"query_id": "q1", "query": "lamp?", "expect": owed}, {"query_id": "q2", "query": "x?"}])
        fixed.run()
    assert asked(fixed) == 4


def test_experiments_that_owe_different_things_are_not_compared_on_them(fixed: Suite) -> None:
    gates = ("--rag-gate=mine: expectations <= other", "--rag-gate=mine: expect_links >= other")
    said = fixed.run(*gates, "--rag-report=report.html", "--rag-slices=query_type: expectations", "-v")
    assert "answers of mine and other owe different things" in gate_line(said, "mine: expectations <= other")
    assert gate_line(said, "mine: expect_links >= other").startswith("passed")
    assert "their answers owe different things" in (fixed.path / "report.html").read_text(encoding="utf-8")


def test_tests_of_one_experiment_add_up_and_those_left_out_or_skipped_demand_nothing(fixed: Suite) -> None:
    write_tests(
        fixed,
        """
        import pytest

        pytestmark = pytest.mark.rag_experiment("mine")

        @pytest.mark.rag_expect({"contains": "45 days"})
        class TestIt:
            def test_a(self, rag_result):
                assert rag_result.ok

            @pytest.mark.rag_expect({"max_words": 3})
            def test_b(self, rag_result, rag_scores):
                assert rag_scores["expectations"].value < 1

            @pytest.mark.skip
            @pytest.mark.rag_expect({"contains": "of a test that asks nothing"})
            def test_c(self, rag_result): ...
        """,
    )
    both = fixed.run("--rag-gate=mine: expect_max_words >= 1", "--rag-gate=mine: expectations >= 1")
    assert "0.000" in gate_line(both, "mine: expect_max_words >= 1")
    # The class demands its text once, though two of its tests ask: 1 of 2, and of 3 where the question wants a link.
    assert " 0.417 " in gate_line(both, "mine: expectations >= 1")
    one = fixed.run("-k", "test_a", "--rag-gate=mine: expect_contains >= 1", "--rag-gate=mine: expect_max_words >= 1")
    assert gate_line(one, "mine: expect_contains >= 1").startswith("passed")
    assert not gate_line(one, "mine: expect_max_words >= 1").startswith("passed")
    assert asked(fixed) == 2


@WORKERS
def test_a_mark_that_code_gives_to_one_case_holds_for_that_case(fixed: Suite, workers: str) -> None:
    hook = """
    def pytest_collection_modifyitems(items):
        for item in items:
            if item.name == "test_other[other-q1]":
                item.add_marker(pytest.mark.rag_expect({"contains": "54 days"}))
    """
    fixed.pytester.makeconftest(PIPELINE + dedent(hook))
    said = fixed.run("--rag-gate=other: expect_contains >= 1", "-n", workers)
    assert "0.000" in gate_line(said, "other: expect_contains >= 1")
    assert "n=1" in gate_line(said, "other: expect_contains >= 1")


def test_a_gate_is_settled_early_by_what_a_mark_demands(fixed: Suite) -> None:
    fixed.write_queries([{"query_id": f"q{n}", "query": f"lamp {n}?"} for n in range(30)])
    said = fixed.run("--rag-stop-early", "-k", "test_mine", "--rag-gate=mine: expect_contains >= 0.5 @95%")
    assert gate_line(said, "mine: expect_contains >= 0.5 @95%").startswith("passed")
    assert said.parseoutcomes()["skipped"] > 0


@WORKERS
def test_a_criterion_of_a_mark_is_judged(fixed: Suite, workers: str) -> None:
    fact = '{"rubric": "says that you can return a lamp within 45 days"}'
    write_tests(fixed, TESTS.replace('{"contains": "45 days"}', fact))
    gate = "mine: expect_rubric >= 1"
    said = fixed.run(f"--rag-gate={gate}", "--rag-judge=mock", "-n", workers)
    assert gate_line(said, gate).startswith("passed mine: expect_rubric >= 1 1.000 ")
    record = json.loads((fixed.path / "output" / "run.json").read_text())["suites"]
    assert sorted(record["mine"]["judged"]) == ["expect_rubric", "expectations"]
    assert record["other"]["judged"] == []


def test_measures_are_looked_for_again_when_cases_demand_more() -> None:
    cases = [Case(Query("q1", "lamp?"))]
    wanted = WantedMeasures(Settings, lambda _: cases)
    assert wanted.judged_names("mine") == ()
    cases[0] = replace(cases[0], expect=expectations_of([{"rubric": "says why"}])[0])
    wanted.forget()
    assert sorted(wanted.judged_names("mine")) == ["expect_rubric", "expectations"]
    assert len(wanted.judged_measures("mine")) == 2


def test_an_earlier_experiment_owes_what_its_data_demand_now(fixed: Suite) -> None:
    write_tests(fixed, TESTS.replace("@pytest.mark.rag_expect", "# "))
    fixed.run()
    fixed.run("-k", "test_other", '--rag-expect={"max_chars": 5}')
    record = json.loads((fixed.path / "output" / "run.json").read_text())["suites"]
    assert record["mine"]["made"]
    assert record["mine"]["demands"] == record["other"]["demands"] != {}
    table = {f"{each['experiment']}-{each['query_id']}": each for each in read_trials(fixed.path / "output")}
    assert table["mine-q1"]["expectations"] == table["other-q1"]["expectations"] == 0


WRONG = [
    ('{"contain": "45 days"}', "rag_expect: 0: Unknown kind of expectation 'contain'. Did you mean 'contains'?"),
    ('{"contains": "x", "weight": -1}', "rag_expect: 0: weight is -1. Write a number above 0"),
    ('{"contains": "x", "cas": True}', "rag_expect: 0: contains: Unknown option 'cas'. Did you mean 'case'?"),
    ('[{"max_words": 3}]', "rag_expect takes objects, and has a list. Write them one by one"),
    ("max_words=3", "rag_expect takes objects, and has max_words=…. Write @pytest.mark.rag_expect({"),
    ("", "rag_expect takes objects, and has none."),
    ('{"contains": {1, 2}}', "rag_expect takes what JSON can hold: "),
    ('"45 days"', "rag_expect: 0: an object was expected"),
    ('{"links": True}, {"not": {"links": True}}', "rag_expect: links is demanded and forbidden at once"),
]


@pytest.mark.parametrize(("mark", "problem"), WRONG)
def test_what_is_wrong_with_a_mark_is_named_with_its_line(tmp_path: Path, mark: str, problem: str) -> None:
    file = tmp_path / "test_it.py"
    file.write_text(TESTS.replace('{"contains": "45 days"}, {"max_words": 3, "weight": 3}', mark))
    test = run_path(str(file))["test_mine"]
    config = SimpleNamespace(inipath=None, invocation_params=SimpleNamespace(dir=tmp_path))
    node: Any = SimpleNamespace(path=file, config=config, obj=test)
    node.iter_markers_with_node = lambda name: [(node, each) for each in test.pytestmark if each.name == name]
    with pytest.raises(SettingsError, match=re.escape(f"test_it.py:4: {problem}")):
        ExpectMarks().of(node)


# All of it is found in one place: a run that says one problem says any.
@pytest.mark.parametrize(
    ("mark", "problem"), [WRONG[0], *(pytest.param(*each, marks=pytest.mark.long) for each in WRONG[1:])]
)
def test_what_is_wrong_with_a_mark_is_named_with_its_line_before_anything_is_asked(
    fixed: Suite, mark: str, problem: str
) -> None:
    name_what_is_wrong(fixed, mark, problem, "0")


@pytest.mark.parametrize(("mark", "problem"), [pytest.param(*WRONG[0], marks=pytest.mark.long), WRONG[-1]])
def test_workers_name_what_is_wrong_with_a_mark(fixed: Suite, mark: str, problem: str) -> None:
    """One that cannot be read, and two that cannot both be kept: what a worker says does not depend on the mark."""
    name_what_is_wrong(fixed, mark, problem, "2")


def name_what_is_wrong(fixed: Suite, mark: str, problem: str, workers: str) -> None:
    write_tests(fixed, TESTS.replace('{"contains": "45 days"}, {"max_words": 3, "weight": 3}', mark))
    said = fixed.run("-n", workers).stdout.str()
    assert f"test_it.py:4: {problem}" in said
    assert asked(fixed) == 0


@WORKERS
def test_a_mark_and_a_question_that_cannot_both_be_kept_are_named(fixed: Suite, workers: str) -> None:
    fixed.write_queries([{"query_id": "q1", "query": "lamp?", "expect": [{"min_words": 10}]}])
    head, marked, plain = re.split(r"(?=\n@pytest.mark.rag_exp(?:ect|eriment\(.other))", TESTS)
    write_tests(fixed, head + plain + marked)
    found = fixed.run("-n", workers)
    said = " ".join((found.stdout.str() + found.stderr.str()).split())
    assert "test_it.py:8, and q1 in " in said
    assert "queries.jsonl, cannot all be kept: max_words 3 is less than min_words 10." in said
    assert asked(fixed) == 0
    assert found.ret != 0


def test_a_mark_at_a_test_without_an_answer_is_refused(fixed: Suite) -> None:
    write_tests(fixed, '\nimport pytest\n\n@pytest.mark.rag_expect({"max_words": 3})\ndef test_it():\n    pass\n')
    said = fixed.run().stdout.str()
    assert "test_it.py:4: rag_expect is about answers, and test_it does not use rag_result." in said


def test_an_endpoint_states_its_own(suite: Suite) -> None:
    write_tests(
        suite,
        """
        import pytest

        @pytest.mark.rag_experiment("shop")
        def test_it(rag_result):
            assert rag_result.ok
        """,
    )
    with serving(as_json({"answer": "within 45 days"})) as server:

        def described(expect: str) -> None:
            (suite.path / "pyproject.toml").write_text(
                f'[tool.rag_harness.endpoints.shop]\nurl = "{server.url}/q"\nexpect = {expect}\n'
            )

        described('[{contains = "45 days"}, {max_words = 2}]')
        gates = ("--rag-gate=shop: expectations >= 0.6", "--rag-mode=record")
        said = suite.run(*gates)
        assert "0.500" in gate_line(said, "shop: expectations >= 0.6")
        described('[{contains = "45 days"}, {max_words = 3}]')
        said = suite.run(*gates)
        assert "1.000" in gate_line(said, "shop: expectations >= 0.6")
        assert "4 replayed" in str(said.stdout)
        described("{max_words = 3}")
        assert "expected a list of tables" in suite.run(*gates).stderr.str()
        described("[{max_word = 3}]")
        wrong = suite.run(*gates).stderr.str()
    assert "[tool.rag_harness.endpoints.shop]: expect: 0: Unknown kind of expectation 'max_word'. Did you mean" in wrong


BUILD = """
from rag_harness import Experiment

class Told:
    fingerprint = "1"

    def answer(self, query):
        return "within 45 days"

def build(parts):
    return Experiment("told", Told(), expect=[{"contains": "45 days"}, {"max_words": 2}])
"""


@pytest.fixture
def told(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """Install an experiment of somebody's own, as pip would leave it."""
    about = suite.path / "site" / "shop-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: shop\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[rag_harness.pipelines]\ntold = told_of:build\n")
    (suite.path / "site" / "told_of.py").write_text(BUILD)
    monkeypatch.setenv("PYTHONPATH", str(suite.path / "site"))
    write_tests(suite, TESTS.partition('@pytest.mark.rag_experiment("other")')[0].replace("mine", "told"))
    return suite


def test_an_experiment_states_its_own_and_no_answer_depends_on_it(told: Suite) -> None:
    write_tests(told, (told.path / "test_it.py").read_text().replace("@pytest.mark.rag_expect", "# "))
    gates = ("--rag-gate=told: expectations >= 0.6",)
    assert "0.500" in gate_line(told.run(*gates), "told: expectations >= 0.6")
    before = told.rows("told")
    # Of another length: within a second, Python takes a file of the same length for the one that it has compiled.
    (told.path / "site" / "told_of.py").write_text(BUILD.replace('"max_words": 2', '"max_words": 13'))
    assert "1.000" in gate_line(told.run(*gates), "told: expectations >= 0.6")
    assert told.rows("told") == before


def test_what_an_experiment_states_wrongly_is_named_before_anything_is_asked(told: Suite) -> None:
    (told.path / "site" / "told_of.py").write_text(BUILD.replace("max_words", "max_word"))
    said = told.run().stderr.str()
    assert "told: expect, in its Experiment(…): 1: Unknown kind of expectation 'max_word'. Did you mean" in said
    assert told.rows("told") == []


def test_a_part_of_a_run_leaves_the_cases_of_the_other_experiments(fixed: Suite) -> None:
    fixed.run()
    fixed.run("-k", "test_other", '--rag-expect={"max_chars": 5}')
    table = {f"{record['experiment']}-{record['query_id']}": record for record in read_trials(fixed.path / "output")}
    assert table["mine-q1"]["expectations"] == pytest.approx(1 / 4)
    assert table["other-q1"]["expectations"] == 0
    cases = [
        json.loads(line) for line in (fixed.path / "output" / "cases" / "queries+mine.jsonl").read_text().splitlines()
    ]
    assert cases[0]["expect"] == [{"contains": "45 days"}, {"max_words": 3, "weight": 3.0}]
    assert Path(fixed.path / "output" / "cases" / "queries.jsonl").exists()
