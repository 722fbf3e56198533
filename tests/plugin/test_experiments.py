"""Experiments of a user's own: studies, files of values, and which tests are made of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import rag_harness
from tests.plugin.conftest import TEST as CONFTEST_TEST
from tests.plugin.conftest import Suite

# A study of one's own is a module in ``studies/``, its prompts beside it, and a line an experiment in the table.

PACKAGE = Path(rag_harness.__file__).parent
LEASES = """
from rag_harness.pipelines.parts import Generator
from rag_harness.pipelines.parts import RunParts
from rag_harness.core.protocols import Experiment
from rag_harness.studies.retail import StandardRag


def build(parts: RunParts, name: str = "l1", top_k: int = 2) -> Experiment:
    dense, generator = parts.retrieval().dense, Generator(parts.chat(), parts.prompts("l1"))
    return Experiment(name, StandardRag(dense, generator, top_k), retriever=dense)
"""
BEGIN = "EXPERIMENTS: Mapping[str, ShippedExperiment] = {\n"
LINES = """\
    "l1": ShippedExperiment("rag_harness.studies.leases:build", "l1_search"),
    "l1-wide": ShippedExperiment("rag_harness.studies.leases:build", "l1__wide", values={"top_k": 3}),
"""
TEST = """
import pytest

@pytest.mark.l1
def test_l1(rag_result):
    assert rag_result.ok, rag_result.why

@pytest.mark.rag_experiment("l1-wide")
def test_wide(rag_result):
    assert rag_result.ok, rag_result.why
"""


def _link(folder: Path, to: Path, *beside: str) -> None:
    """Make a folder whose files are those of another, compiled as they are: to compile a copy is half of a start."""
    to.mkdir(parents=True)
    for each in folder.iterdir():
        if each.name not in beside:
            (to / each.name).symlink_to(each)


@pytest.mark.long
@pytest.mark.usefixtures("cold_python")  # another package than the warm one has
def test_a_study_is_a_module_its_prompts_and_lines_of_the_table(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    clone = suite.path / "clone"
    shipped, studies = PACKAGE / "studies", clone / "rag_harness" / "studies"
    _link(PACKAGE, clone / "rag_harness", "studies")
    _link(shipped, studies, "experiments.py", "prompts", "__pycache__")
    _link(shipped / "prompts", studies / "prompts")
    table = (shipped / "experiments.py").read_text(encoding="utf-8")
    assert BEGIN in table
    (studies / "experiments.py").write_text(table.replace(BEGIN, BEGIN + LINES), encoding="utf-8")
    (studies / "leases.py").write_text(LEASES)
    prompts_of_it = studies / "prompts" / "leases"
    prompts_of_it.mkdir()
    (prompts_of_it / "l1.system.md").write_text("You read leases.\n")
    (prompts_of_it / "l1.user.md").write_text("{context}\n\n{question}\n")
    monkeypatch.setenv("PYTHONPATH", str(clone))
    suite.pytester.makepyfile(TEST)
    suite.run().assert_outcomes(passed=8)
    assert [len(suite.rows(name)) for name in ("l1_search", "l1__wide")] == [4, 4]
    prompts = "".join(file.read_text() for file in (suite.path / "output" / "prompts").glob("*.json"))
    assert "You read leases." in prompts


# ``--rag-config``: a file of values is an experiment like any other.

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
    'name = "queries"\n': "*'queries' is not a name for an experiment*",
    "[parameters]\ntop_kk = 3\n": "*Unknown parameter 'top_kk'. Did you mean 'top_k'?*",
    "[parameters\n": "*tuned.toml is not TOML*",
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


# Which tests are made: those that ``-m`` cannot select are not, but for one of each experiment.

_TWO = CONFTEST_TEST + CONFTEST_TEST.replace("pytest.mark.e3", "pytest.mark.e2").replace("test_answers", "test_others")


@pytest.mark.parametrize(
    ("expression", "passed", "left_out"),
    [
        pytest.param("e3", 4, 1, marks=pytest.mark.long),
        ("e2 or e3", 8, 0),
        ("e1 and (e2 or e3)", 0, 2),
        pytest.param("not e2", 4, 1, marks=pytest.mark.long),
        ("not (e2 or e1)", 4, 1),
    ],
)
def test_one_test_is_left_of_an_experiment_that_no_marker_selects(
    suite: Suite, expression: str, passed: int, left_out: int
) -> None:
    suite.pytester.makepyfile(test_two=_TWO)
    for file in suite.path.glob("test_*.py"):
        if file.name != "test_two.py":
            file.unlink()
    suite.run("-m", expression).assert_outcomes(passed=passed, deselected=left_out)


@pytest.mark.parametrize(
    "chosen",
    [("-k", "test_answers"), ("-m", "e3 or chosen"), pytest.param(("-m", "chosen"), marks=pytest.mark.long)],
)
def test_what_a_plugin_may_still_mark_or_a_keyword_name_is_made(suite: Suite, chosen: tuple[str, str]) -> None:
    suite.pytester.makeconftest(
        "import pytest\n"
        "def pytest_configure(config):\n"
        "    config.addinivalue_line('markers', 'chosen: by a plugin')\n"
        "@pytest.hookimpl(tryfirst=True)\n"
        "def pytest_collection_modifyitems(items):\n"
        "    for item in items:\n"
        "        if 'test_others' in item.nodeid and 'q_direct_003' in item.nodeid:\n"
        "            item.add_marker(pytest.mark.chosen)\n"
    )
    suite.pytester.makepyfile(test_two=_TWO)
    for file in suite.path.glob("test_*.py"):
        if file.name != "test_two.py":
            file.unlink()
    passed = {"test_answers": 4, "e3 or chosen": 5, "chosen": 1}[chosen[1]]
    suite.run(*chosen).assert_outcomes(passed=passed, deselected=8 - passed)
