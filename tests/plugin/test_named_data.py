"""Two systems over two collections in one run: each is asked its own questions, and has its own gates."""

from __future__ import annotations

import json

import pytest

from tests.plugin.conftest import Suite

PYPROJECT = """
[tool.rag_harness.data.book]
kb = "book"
experiments = ["tutor"]
gates = ["tutor: error_rate <= 0", "tutor: token_f1 >= 0.9"]
"""
TEST = """
import pytest

class Tutor:
    async def answer(self, query):
        return "Gravity pulls." if query.query_id == "b1" else "no idea"

@pytest.fixture(scope="session")
def rag_pipeline():
    return Tutor()

@pytest.mark.rag_experiment("tutor")
def test_tutor(rag_result):
    assert rag_result.ok
"""


@pytest.fixture
def book(suite: Suite) -> Suite:
    folder = suite.path / "book"
    folder.mkdir()
    (folder / "one.md").write_text("# One\n\nGravity pulls.")
    asked = {"query_id": "b1", "query": "What pulls?", "ground_truth": "Gravity pulls."}
    (folder / "queries.jsonl").write_text(json.dumps(asked))
    (suite.path / "pyproject.toml").write_text(PYPROJECT)
    suite.pytester.makepyfile(test_tutor=TEST)
    return suite


@pytest.mark.parametrize("workers", [pytest.param("-n0", marks=pytest.mark.long), "-n2"])
def test_each_experiment_is_asked_about_its_own_data_and_judged_by_its_own_gates(book: Suite, workers: str) -> None:
    result = book.run(workers, "--rag-gate=e3: recall@5 >= 0.1")
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines_random(
        [
            "passed *tutor: error_rate <= 0 *n=1*",
            "passed *tutor: token_f1 >= 0.9 *1.000*n=1*",
            "passed *e3: recall@5 >= 0.1 *n=3*",
        ]
    )
    assert [row["query_id"] for row in book.rows("tutor")] == ["b1"]
    suites = json.loads((book.path / "output" / "run.json").read_text())["suites"]
    assert {name: (suite["data"], suite["total"]) for name, suite in suites.items()} == {
        "e3": ("queries", 4),
        "tutor": ("book", 1),
    }
    assert (book.path / "output" / "cases" / "book.jsonl").is_file()


def test_questions_of_its_golden_set_are_a_slice(book: Suite) -> None:
    entry = {"id": "b1", "query": "What pulls?", "expected_document_id": "one.md", "justification": "Gravity."}
    (book.path / "book" / "pilot.json").write_text(json.dumps([entry]))
    more = {"query_id": "b2", "query": "What pushes?", "ground_truth": "Nothing."}
    with (book.path / "book" / "queries.jsonl").open("a") as file:
        file.write("\n" + json.dumps(more))
    gates = 'gates = ["tutor[golden=yes]: token_f1 >= 0.9", "tutor[golden=no]: token_f1 <= 0.1"]'
    head = PYPROJECT.partition("gates =")[0]
    (book.path / "pyproject.toml").write_text(f'{head}golden = "book/pilot.json"\n{gates}\n')
    result = book.run("-m", "not e3")
    result.stdout.fnmatch_lines_random(
        ["passed *tutor[[]golden=yes]: token_f1 >= 0.9 *n=1*", "passed *tutor[[]golden=no]: token_f1 <= 0.1 *n=1*"]
    )


def test_its_gates_say_what_to_do_too(book: Suite) -> None:
    said = PYPROJECT.replace("tutor: error_rate <= 0", "tutor: error_rate >= 1 else ask two tutors")
    (book.path / "pyproject.toml").write_text(said)
    result = book.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["failed *tutor: error_rate >= 1 *n=1*", " *what to do: ask two tutors"])
    result = book.run("--rag-kb=kb")
    result.stdout.fnmatch_lines(["not judged *set for book, this run is on kb", " *tutor: error_rate >= 1; *"])
    assert "two tutors" not in result.stdout.str()


def test_its_gates_are_not_judged_on_another_knowledge_base(book: Suite) -> None:
    result = book.run("--rag-kb=kb")
    result.stdout.fnmatch_lines(["not judged *set for book, this run is on kb", " *tutor: error_rate <= 0; *"])
    assert len(book.rows("tutor")) == 4


def test_a_gate_about_an_experiment_of_other_data_is_refused(book: Suite) -> None:
    (book.path / "pyproject.toml").write_text(PYPROJECT.replace("tutor: error_rate", "e3: error_rate"))
    result = book.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*stands in *data.book*, but e3 is asked about the run's own data*"])
