"""A suite that does not use the plugin does not notice it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.plugin.conftest import Suite, files_below

HEAVY = [
    "bm25s", "fastapi", "jinja2", "mammoth", "markdown_it", "numpy", "openai", "openpyxl", "opentelemetry", "pandas",
    "polars", "pyarrow", "pydantic", "pypdf", "qdrant_client", "qdrant_edge", "rich",
    "safetensors", "sentence_transformers", "tiktoken", "tokenizers", "torch", "transformers", "vcr",
]  # fmt: skip
PLUGIN = "frontends.pytest_plugin"
LIGHT = [
    *("core", "core.errors"),
    *("core.settings", "core.settings.removed", "core.settings.table", "frontends", PLUGIN),
    *(f"{PLUGIN}.{name}" for name in ("activation", "byte_code", "fixtures", "hookspecs", "options", "stash")),
    *("pipelines", "pipelines.experiments", "studies", "studies.experiments"),
]
"""All that is imported of ours where nothing is asked: it declares options, markers and fixtures."""
COLD = pytest.mark.usefixtures("cold_python")
# Other people's plugins, installed beside ours, import some of these themselves.
ALONE = ["-p", "no:anyio", "-p", "no:_hypothesis_pytestplugin", "-p", "no:hypothesispytest", "-p", "no:syrupy"]


@COLD
def test_imports_nothing_heavy(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        f"""
        import sys
        def test_one():
            assert "rag_harness.frontends.pytest_plugin" in sys.modules
            assert [name for name in {HEAVY!r} if name in sys.modules] == []
        """
    )
    result = pytester.runpytest_subprocess(*ALONE)
    result.assert_outcomes(passed=1)


@COLD
def test_own_modules_come_from_their_byte_code_and_a_suites_asserts_are_rewritten(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        f"""
        import importlib
        def test_one():
            rewritten = type(__loader__)
            for name in ("core.settings", "{PLUGIN}.options", "{PLUGIN}.session"):
                module = importlib.import_module("rag_harness." + name)
                assert not isinstance(module.__loader__, rewritten), name
            assert rewritten.__name__ == "AssertionRewritingHook"
        """
    )
    pytester.runpytest_subprocess(*ALONE).assert_outcomes(passed=1)


@COLD
def test_imports_little_of_ours(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import sys

        def pytest_unconfigure():
            ours = {name.removeprefix("rag_harness.") for name in sys.modules if name.startswith("rag_harness.")}
            print("ours:", *sorted(ours))
        """
    )
    pytester.makepyfile("import pytest\n@pytest.mark.parametrize('a', [1, 2])\ndef test_one(a, tmp_path): assert a < 2")
    said = pytester.runpytest_subprocess(*ALONE, "-s")
    said.assert_outcomes(passed=1, failed=1)
    found = next(line for line in said.outlines if line.startswith("ours:")).removeprefix("ours: ").split()
    assert found == LIGHT, "a suite that does not use the plugin waits for what is imported here"


def test_writes_no_file_and_no_line(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import pytest\n@pytest.mark.parametrize('a', ['e3-x', 'golden-1', 2])\ndef test_one(a): pass")
    with_plugin = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    without = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:rag_harness")
    assert _comparable(with_plugin) == _comparable(without)
    left = {name for name in files_below(pytester.path) if not name.startswith(("runpytest-", "std"))}
    assert left == {"test_writes_no_file_and_no_line.py"}


@COLD
def test_can_be_switched_off(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import sys\ndef test_one(): assert 'rag_harness' not in sys.modules")
    pytester.runpytest_subprocess("-p", "no:rag_harness").assert_outcomes(passed=1)


def test_does_not_change_how_xdist_distributes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import pytest\n@pytest.mark.parametrize('n', range(4))\ndef test_one(n): pass")
    pytester.makeconftest(
        """
        import pytest
        @pytest.hookimpl(trylast=True)
        def pytest_sessionfinish(session):
            dsession = session.config.pluginmanager.getplugin("dsession")
            if dsession:
                print("scheduler:", type(dsession.sched).__name__)
        """
    )
    result = pytester.runpytest_subprocess("-n", "1", "-s")
    result.stdout.fnmatch_lines(["*scheduler: LoadScheduling*"])


@COLD
def test_a_run_imports_no_judge_and_no_service_that_it_does_not_ask(suite: Suite) -> None:
    suite.pytester.makeconftest(
        """
        import sys

        def pytest_unconfigure():
            judges = {name for name in sys.modules if name.startswith("rag_harness.evaluation.judges.")}
            services = {name for name in sys.modules if ".endpoint." in name or "jsonpath" in name}
            # What any run asks of judges and of answers stands beside those of judges and of services.
            of_all = {"rag_harness.evaluation.judges.traits", "rag_harness.pipelines.endpoint.answer"}
            print("imported", judges - of_all, services - of_all)
        """
    )
    result = suite.run("-s")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["*imported set() set()"])
    result.stdout.no_fnmatch_line("*scorecard*")
    assert not (suite.path / "output" / "scores").exists()


def _comparable(result: pytest.RunResult) -> list[str]:
    lines = [re.sub(r"in \d+\.\d+s", "in Ns", line) for line in result.outlines if not line.startswith("plugins:")]
    return [*lines, str(result.ret), *result.errlines]


def test_a_stranger_with_the_same_command_is_named_at_the_start_of_a_suite_that_uses_it(
    suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "rag_harness-0.2.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rag-harness\nVersion: 0.2.1\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    said = suite.run("-m", "e3", "--collect-only")
    said.stdout.fnmatch_lines(["rag: WARNING: rag-harness 0.2.1 brings the package *: pip uninstall rag-harness;*"])
    suite.pytester.makeini("[pytest]\n")
    suite.pytester.makepyfile("def test_one(): pass")
    suite.run().stdout.no_fnmatch_line("*WARNING*")


ASKED = "*rag: RAG_RUN=e2 (*) asks for experiments, but nothing here uses the plugin, so none was asked. Add *"


@pytest.mark.parametrize("where", ["environment", ".env"])
@pytest.mark.parametrize("workers", [(), pytest.param(("-n1",), marks=pytest.mark.long)])
def test_a_run_that_only_a_variable_asks_for_says_what_to_add(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, where: str, workers: tuple[str, ...]
) -> None:
    monkeypatch.delenv("RAG_RUN", raising=False)
    if where == ".env":
        pytester.path.joinpath(".env").write_text(
            "RAG_PROFILE=mock\nexport RAG_RUN='e2'  # ours\n", encoding="utf-8-sig"
        )
    else:
        monkeypatch.setenv("RAG_RUN", "e2")
    pytester.makeini("[pytest]\n")
    pytester.makepyfile("def test_one(): pass")
    result = pytester.runpytest_subprocess("-q", *workers)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines([f"{ASKED}rag_run = e2 to tox.ini, or run pytest --rag-run=e2"])
    assert str(result.stdout).count("RAG_RUN") == 1


@COLD
def test_a_variable_that_asks_for_a_run_wakes_nothing(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAG_RUN", "e2")
    pytester.makeconftest(f"import sys\ndef pytest_unconfigure(): print([m for m in {HEAVY!r} if m in sys.modules])")
    result = pytester.runpytest_subprocess("-s", *ALONE)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines([f"{ASKED}rag_run = e2 below [[]pytest[]] to a pytest.ini, or *", "[[][]]"])


@pytest.mark.parametrize("content", ["# RAG_RUN=e2\nRAG_RUN=\nKB_DIR=kb\n", "MY_RAG_RUN=e2\n"])
def test_a_variable_that_is_not_set_is_not_spoken_of(pytester: pytest.Pytester, content: str) -> None:
    pytester.path.joinpath(".env").write_text(content)
    pytester.makepyfile("def test_one(): pass")
    pytester.runpytest_subprocess().stdout.no_fnmatch_line("*RAG_RUN*")


def test_a_variable_of_a_suite_that_uses_the_plugin_is_read(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAG_RUN", "e2")
    suite.run().stdout.no_fnmatch_line("*RAG_RUN*")
