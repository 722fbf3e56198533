"""A test whose pipeline is nowhere: the message says what to write, and what it prints to paste works."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import Suite

TEST = """
import pytest

@pytest.mark.rag_experiment("{name}")
def test_answers(rag_result):
    assert rag_result.ok, rag_result.why
"""


@pytest.fixture
def mine(suite: Suite) -> Suite:
    (only,) = suite.path.glob("test_*.py")
    only.rename(suite.path / "test_m.py").write_text(TEST.format(name="mine"))
    return suite


def test_what_is_printed_works_when_it_is_pasted(mine: Suite) -> None:
    result = mine.run()
    result.assert_outcomes(errors=1)
    printed = str(result.stdout)
    assert printed.count("No pipeline answers for 'mine'") == 2  # and in the line that says why the run ends
    assert "e3-tuned" not in printed
    pasted = printed.partition("conftest.py:\n")[2].partition("\n=====")[0]
    assert 8 <= pasted.strip().count("\n") + 1 <= 12
    assert printed.count("def rag_pipeline():") == 1
    (mine.path / "conftest.py").write_text(pasted)
    mine.run().assert_outcomes(passed=4)
    assert {row["llm_answer"] for row in mine.rows("mine")} != {""}
    assert mine.rows("mine")[0]["retrieved_chunks"]


def test_a_name_that_is_near_one_of_ours_is_a_slip(mine: Suite) -> None:
    (mine.path / "test_m.py").write_text(TEST.format(name="e33"))
    mine.run().stdout.fnmatch_lines(["*No pipeline answers for 'e33'. Did you mean 'e3'?*"])


def test_rag_run_says_how_a_pipeline_of_ones_own_is_asked(suite: Suite) -> None:
    result = suite.run("--rag-run=chatbot")
    result.stderr.fnmatch_lines(["ERROR: --rag-run: Unknown experiment 'chatbot'.*"])
    assert '@pytest.mark.rag_experiment("chatbot")' in str(result.stderr)
    assert "rag_pipeline" in str(result.stderr)
