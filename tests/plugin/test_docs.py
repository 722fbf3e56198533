"""The pages for newcomers do what they say: their code is taken from the page and run."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import textwrap
from pathlib import Path
from typing import Any

import pytest

from rag_harness.tables.trials import write_csv
from tests.plugin.conftest import Suite
from tests.unit.models.recording.answering import answering
from tests.unit.tables.trial_run import ANSWERS, write_output

ROOT = Path(__file__).parents[2]
QUOTING = """
import pytest
from rag_harness import Answer, Chunk, Hit, PipelineOutput

class Quoting:
    def answer(self, query):
        text = "You can return a lamp within 45 days."
        hit = Hit(Chunk("returns.md#1", "returns.md", text, 0, len(text)), 1.0, 1)
        return PipelineOutput(Answer(text), context=(hit,))

@pytest.fixture(scope="session")
def rag_pipeline():
    return Quoting()
"""
OWN_PACKAGE = "docs/how-to/experiment-in-your-package.md"
_BLOCK = re.compile(r"```(?:python|json)\n(.*?)```", re.DOTALL)


def _blocks(page: str) -> list[str]:
    return _BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))


def test_bring_your_own_pipeline(pytester: pytest.Pytester) -> None:
    conftest, test, query = _blocks("docs/how-to/bring-your-own-pipeline.md")
    pytester.makeconftest(conftest)
    pytester.makepyfile(test_my_rag=test)
    pytester.mkdir("kb")
    (pytester.path / "kb" / "queries.jsonl").write_text(query)
    result = pytester.runpytest_subprocess("--rag-kb=kb", "--rag-queries=kb/queries.jsonl")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["mine * 1 * 0 *"])


@pytest.mark.parametrize(("said", "status"), [("You have 45 days.", 0), ("I know.", 1)])
def test_readme_pipeline(suite: Suite, said: str, status: int) -> None:
    """It runs as it is copied, in a folder that has no more than the README names, and a wrong answer stops it."""
    (code,) = _blocks("README.md")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^    pytest (--rag-kb=\S+ --rag-gate .*)$", readme, re.MULTILINE)
    (question,) = re.findall(r"^    (\{\"query_id.*\})$", readme, re.MULTILINE)
    for file in (*suite.path.glob("test_*.py"), *suite.path.glob("*.ini")):
        file.unlink()
    suite.pytester.makepyfile(f"class my_service:\n    async def ask(text): return {said!r}\n\n{code}")
    suite.pytester.mkdir("my_docs")
    (suite.path / "my_docs" / "queries.jsonl").write_text(question)
    (suite.path / "my_docs" / "returns.md").write_text("# Returns\n\nA lamp goes back within 45 days.\n")
    result = suite.run(*shlex.split(command))
    result.assert_outcomes(passed=1 - status, failed=2 * status)  # the test and the gate
    assert result.ret == status


def test_scores_in_a_test_of_ones_own(suite: Suite) -> None:
    (code,) = _blocks("docs/how-to/judge-answers.md")
    suite.pytester.makepyfile("import pytest\npytestmark = pytest.mark.e3\n\n" + code)
    # The placeholder that the mock profile answers stands in no source.
    suite.run().assert_outcomes(failed=4)
    suite.pytester.makeconftest(QUOTING)
    suite.pytester.makepyfile('import pytest\npytestmark = pytest.mark.rag_experiment("mine")\n\n' + code)
    suite.run("--rag-output=quoted").assert_outcomes(passed=4)


def _table_line(page: str) -> str:
    """Return the line of the table of experiments that a page adds."""
    (line,) = re.findall(
        r'^    ("\w+": ShippedExperiment\(.*\),)$', (ROOT / "docs/how-to" / f"{page}.md").read_text(), re.MULTILINE
    )
    return f"    {line}\n"


@pytest.mark.usefixtures("cold_python")  # another package than the warm one has
def test_an_experiment_and_one_more_of_the_textbook_are_a_function_and_a_line_each(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, test = _blocks("docs/how-to/add-an-experiment.md")
    (of_the_textbook,) = _blocks("docs/how-to/add-to-a-family.md")
    # A copy of the package stands before the installed one, as if the files had been added to a clone.
    package, clone = ROOT / "rag_harness", suite.path / "clone"
    just_written = shutil.ignore_patterns("*.pyc.*")  # by others that run now
    studies = shutil.copytree(package, clone / "rag_harness", ignore=just_written) / "studies"
    for study, function in {"retail": pipeline, "textbook": of_the_textbook}.items():
        with (studies / f"{study}.py").open("a") as module:
            module.write(f"\n\n{function}")
    table, lines = studies / "experiments.py", [_table_line("add-an-experiment"), _table_line("add-to-a-family")]
    table.write_text(table.read_text().replace("] = {\n", "] = {\n" + "".join(lines), 1))
    monkeypatch.setenv("PYTHONPATH", str(clone))
    textbook = "import pytest\n@pytest.mark.t6\ndef test_t6(rag_result):\n    assert rag_result.ok"
    suite.pytester.makepyfile(test_e5_short_context=test, test_t6=textbook)
    suite.run("-m", "e5 or t6").assert_outcomes(passed=8, deselected=1)
    assert len(suite.rows("e5_short_context")) == len(suite.rows("t6_short_sections")) == 4


@pytest.mark.parametrize("is_rewritten", [False, True])
def test_an_experiment_outside_of_the_package(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, is_rewritten: bool
) -> None:
    (writer,), (pipeline, test) = map(_blocks, ("docs/how-to/search-by-other-texts.md", OWN_PACKAGE))
    if is_rewritten:
        searched = "Short(parts.rewritten(retrieval, FirstLines()).dense,"
        pipeline = f"{pipeline.replace('Short(retrieval.dense,', searched)}\n\n{writer}"
        assert searched in pipeline
    page = (ROOT / OWN_PACKAGE).read_text(encoding="utf-8")
    name, place = re.findall(r'^(short) = "(my_package\.short:build)"$', page, re.MULTILINE)[0]
    package, about = suite.path / "site" / "my_package", suite.path / "site" / "my_package-1.0.dist-info"
    package.mkdir(parents=True)
    (package / "short.py").write_text(pipeline)
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my_package\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[rag_harness.pipelines]\n{name} = {place}\n")
    monkeypatch.setenv("PYTHONPATH", str(suite.path / "site"), prepend=os.pathsep)
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    suite.pytester.makepyfile(test)
    suite.run().assert_outcomes(passed=4)
    rows: list[Any] = suite.rows("short")
    assert {len(row["retrieved_chunks"]) for row in rows} == {2}
    lines = [chunk["text"].count("\n") for row in rows for chunk in row["retrieved_chunks"]]
    assert any(lines) is not is_rewritten


def test_recording_of_own_calls(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    (test,), (conftest,) = map(_blocks, ("docs/how-to/record-own-calls.md", "docs/how-to/private-recordings.md"))
    pipeline = """
        def answer(client, question):
            asked = [{"role": "user", "content": question + " asks Ada Lovelace"}]
            return client.chat.completions.create(model="some/model", messages=asked).choices[0].message.content
        """
    suite.pytester.makeconftest(conftest)
    suite.pytester.makepyfile(my_rag=pipeline)
    (only,) = suite.path.glob("test_*.py")
    only.write_text(test)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789")
    with answering("Within 45 days,", " Ada Lovelace.") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        suite.run("--rag-mode=record").assert_outcomes(passed=1)
    suite.run("--rag-mode=replay").assert_outcomes(passed=1)
    (file,) = (suite.path / "cassettes" / "own" / "some--model").iterdir()
    kept = file.read_text()
    assert kept.count("<NAME>") == 2
    assert not [each for each in ("Ada", "planted") if each in kept]


def test_evaluating_in_a_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/how-to/notebooks.md").read_text(encoding="utf-8")
    shown = textwrap.dedent(page.partition("\nresult\n```\n\n")[2].partition("\n\nA notebook")[0])
    found: dict[str, Any] = {"__name__": "__main__"}
    evaluated, looked_at, with_version = _blocks("docs/how-to/notebooks.md")
    (awaited,) = _blocks("docs/how-to/notebooks-async.md")
    exec(evaluated, found)
    assert repr(found["result"]).splitlines()[:5] == shown.splitlines()
    exec(looked_at + with_version, found)
    assert found["result"].figures["token_f1"].n == 2
    exec("async def cell():\n" + textwrap.indent(f"{awaited}return result\n", "    "), found)
    assert asyncio.run(found["cell"]()).figures == found["result"].figures


def test_notebooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_output(tmp_path / "output")
    write_csv(tmp_path / "output", tmp_path / "trials.csv")
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {}
    load, pandas, polars, from_csv = _blocks("docs/how-to/results-as-a-table.md")
    exec(load + pandas, found)
    assert found["by_type"].loc["direct", "golden"] == found["paired"].loc["g1", "golden"] == 1.0
    assert set(found["lost"]["query_id"]) == {"failed", "lost"}
    exec(polars, found)
    assert found["by_type"].height == 2
    exec(from_csv, found)
    kept = [text.replace("\ud83d", "\ufffd").replace("\u202e", r"\u202e") for text in ANSWERS[:7]]
    assert found["trials"]["answer"][:7].to_list() == kept
