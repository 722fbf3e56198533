"""A user's own pipeline declares nothing, and the harness reads none of its other attributes."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import Suite

TEST = """
import pytest

class Anything:
    '''Any access but to what is documented says so.'''
    def __getattr__(self, name):
        raise RuntimeError(f"asked for {name}")

class Mine:
    retriever = Anything()
    reranker = Anything()
    generator = Anything()
    prepare = Anything()
    ingredients = Anything()
    def answer(self, query):
        return f"about {query.text}"

@pytest.fixture(scope="session")
def rag_pipeline():
    return Mine()

@pytest.mark.rag_experiment("mine")
def test_answers(rag_result):
    assert rag_result.llm_answer.startswith("about"), rag_result.why
"""


@pytest.mark.parametrize("workers", ["-n0", pytest.param("-n2", marks=pytest.mark.long)])
def test_parts_that_a_stranger_has_are_none_of_ours(suite: Suite, workers: str) -> None:
    for file in [*suite.path.glob("test_*.py"), *suite.path.glob("kb/*")]:
        file.unlink()
    (suite.path / "kb").rmdir()
    suite.pytester.makepyfile(test_mine=TEST)
    (suite.path / "queries.jsonl").write_text("".join(f'{{"query_id": "q{n}", "query": "{n}"}}\n' for n in range(4)))
    result = suite.run(workers, "--rag-queries=queries.jsonl")
    result.assert_outcomes(passed=4)
    assert len(suite.rows("mine")) == 4


def test_not_run_is_said_of_the_experiment_that_it_is_true_of(suite: Suite) -> None:
    suite.pytester.makepyfile(
        test_two="""
        import pytest
        from rag_harness.core.errors import BudgetError

        class Mine:
            def answer(self, query):
                return "45 days"

        class Own:
            def answer(self, query):
                raise BudgetError("spent")

        @pytest.fixture
        def rag_pipeline(rag_trial):
            return Mine() if rag_trial.experiment == "mine" else Own()

        @pytest.mark.rag_experiment("mine")
        def test_mine(rag_result):
            assert rag_result.ok

        @pytest.mark.rag_experiment("mine-own")
        def test_own(rag_result):
            assert rag_result.ok
        """
    )
    gates = ["--rag-gate=mine: token_f1 >= 0", "--rag-gate=mine-own: token_f1 >= 0"]
    result = suite.run("test_two.py", *gates)
    result.stdout.fnmatch_lines(["passed *mine: token_f1 >= 0 *", "failed *mine-own: token_f1 >= 0 *not run*4 trials*"])
