"""``--rag-config``: a file of values is an experiment like any other."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import Suite

CONFIG = "--rag-config=tuned.toml"
RUN = (CONFIG, "--rag-run=tuned")


def write_config(suite: Suite, more: str = "", name: str = "tuned.toml") -> None:
    (suite.path / name).write_text(f'[parameters]\nretriever = "bm25"\nrerank = false\ntop_k = 2\n{more}')


def fingerprints(suite: Suite) -> set[object]:
    return {row["fingerprint"] for row in suite.rows("tuned")}


def test_it_is_asked_resumes_and_changes_with_its_values(suite: Suite) -> None:
    write_config(suite)
    suite.run(*RUN, "-n", "2").assert_outcomes(passed=4)
    first = fingerprints(suite)
    assert len(first) == 1
    assert {len(row["retrieved_chunks"]) for row in suite.rows("tuned")} <= {0, 1, 2}  # type: ignore[arg-type]
    suite.run(*RUN).assert_outcomes(passed=4)
    assert len(suite.rows("tuned")) == 4
    write_config(suite, "chunk_size = 64\nchunk_overlap = 8\n")
    suite.run(*RUN, "--rag-overwrite").assert_outcomes(passed=4)
    changed = fingerprints(suite)
    assert len(changed) == 1
    assert changed != first
    # What the file does not name is as the options say.
    suite.set_table("profiles.mock.answer", temperature=0.7)
    suite.run(*RUN, "--rag-overwrite").assert_outcomes(passed=4)
    assert fingerprints(suite) != changed


def test_it_has_prompts_of_ones_own(suite: Suite) -> None:
    write_config(suite)
    suite.run(*RUN).assert_outcomes(passed=4)
    first = fingerprints(suite)
    (suite.path / "prompts").mkdir()
    (suite.path / "prompts" / "e3.system.md").write_text("Answer in one word.")
    suite.run(*RUN, "--rag-overwrite")
    assert fingerprints(suite) != first


BAD = {
    'name = "e3"\n': "*'e3' is the name of an experiment that there is*",
    'experiment = "tuned"\n': "*experiment is 'tuned', which is a configuration itself*",
    'name = "queries"\n': "*'queries' is no name for an experiment*",
    "[parameters]\ntop_kk = 3\n": "*Unknown parameter 'top_kk'. Did you mean 'top_k'?*",
    "[parameters\n": "*tuned.toml is no TOML*",
    "top_k = 3\n": "*top_k*",
}


@pytest.mark.parametrize("text", BAD, ids=[f"{n}" for n in range(len(BAD))])
def test_a_file_that_cannot_be_used_stops_the_run(suite: Suite, text: str) -> None:
    (suite.path / "tuned.toml").write_text(text)
    result = suite.run(*RUN)
    assert result.ret not in (0, pytest.ExitCode.NO_TESTS_COLLECTED)
    result.stderr.fnmatch_lines([BAD[text]])


def test_two_of_one_name_and_a_missing_file_stop_the_run(suite: Suite) -> None:
    write_config(suite)
    (suite.path / "other.toml").write_text('name = "tuned"\n')
    result = suite.run(*RUN, "--rag-config=other.toml")
    result.stderr.fnmatch_lines(["*Two configurations are called 'tuned'*"])
    result = suite.run("--rag-config=gone.toml", "--rag-run=gone")
    result.stderr.fnmatch_lines(["*gone.toml cannot be read: No such file*"])
