"""A run on MTRAG: its passages are the documents, its turns the queries, its generation tasks the cases."""

from __future__ import annotations

import pytest

from tests.mtrag_clone import clone_of
from tests.plugin.conftest import Suite

GOLDEN = "def test_finds_what_is_expected(rag_retrieval):\n    assert rag_retrieval.found\n"


@pytest.fixture
def mtrag(suite: Suite) -> Suite:
    clone_of(suite.path / "clone")
    suite.pytester.makeini("[pytest]\nrag_profile = mock\nrag_retriever = bm25\nrag_k = 1\n")
    return suite


def test_turns_are_searched_for_and_labelled(mtrag: Suite) -> None:
    for file in mtrag.path.glob("test_*.py"):
        file.unlink()
    mtrag.pytester.makepyfile(test_golden=GOLDEN)
    gates = ["--rag-gate=golden[conversation=aa]: recall@1 >= 0.9", "--rag-gate=golden[turn>=2]: recall@1 >= 0.9"]
    result = mtrag.run("--rag-dataset=mtrag:clone/clapnq/rewrite", *gates, "-v")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        ["*[[]golden-aa#2[]] PASSED*", "passed *conversation=aa*n=2 in 1 conv*", "passed *turn>=2*n=1"]
    )


def test_experiments_answer_its_generation_tasks(mtrag: Suite) -> None:
    gates = ["--rag-gate=e3[query_type=partial]: recall@5 >= 1", "--rag-gate=e3[turn>=2]: error_rate <= 0"]
    result = mtrag.run("--rag-dataset=mtrag:clone/clapnq", "-m", "e3", *gates)
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(["passed *query_type=partial*n=1", "passed *turn>=2*n=3 in 2 conversations"])
    rows = {str(row["query_id"]): row for row in mtrag.rows()}
    assert sorted(rows) == ["aa#1", "aa#2", "aa#3", "bb#1", "bb#2"]
    assert mtrag.run("--rag-dataset=mtrag:clone/clapnq", "-m", "e3").ret == 0
    (mtrag.path / "clone/mtrag-human/generation_tasks/reference.jsonl").unlink()
    said = mtrag.run("--rag-dataset=mtrag:clone/clapnq", "-m", "e3")
    assert said.ret != 0
    assert "reference.jsonl. It is in the repository: git clone" in said.stdout.str() + said.stderr.str()


def test_a_clone_without_its_corpora_stops_the_run_before_anything_is_asked(mtrag: Suite) -> None:
    (mtrag.path / "clone/corpora/passage_level/clapnq.jsonl").unlink()
    result = mtrag.run("--rag-dataset=mtrag:clone/clapnq", "-m", "e3")
    assert result.ret != 0
    said = result.stdout.str() + result.stderr.str()
    assert "without its passages nothing can be retrieved" in said
    assert "Traceback" not in said
    assert not list((mtrag.path / "output").glob("e3*.jsonl"))


def test_single_turns_have_no_history_of_own_answers(mtrag: Suite) -> None:
    """A task may be the last turn of a conversation: nobody has answered those before it."""
    tasks = mtrag.path / "clone/mtrag-human/generation_tasks/reference.jsonl"
    tasks.write_text("".join(line for line in tasks.read_text().splitlines(keepends=True) if "aa<::>1" not in line))
    result = mtrag.run("--rag-dataset=mtrag:clone/clapnq", "--rag-history=own", "-m", "e3")
    assert result.ret != 0
    said = " ".join(result.stdout.str().split())
    assert "e3-own goes on from its own answers, and aa#2 comes without turn 1 of 'aa'." in said
    assert not mtrag.rows("e3-own")
    # A service with a memory of its own takes no other history, so none is advised.
    (mtrag.path / "chat.toml").write_text(
        'url = "http://127.0.0.1:9"\nbody = { q = "{{query}}", s = "{{session}}" }\nsession.path = "s"\n'
    )
    result = mtrag.run("--rag-dataset=mtrag:clone/clapnq", "--rag-endpoint=chat.toml", "--rag-run=chat")
    said = " ".join(result.stderr.str().split())
    assert "chat goes on from its own answers, and aa#2 comes without turn 1 of 'aa'. Add the turns before it." in said
    assert "--rag-history=gold" not in said
