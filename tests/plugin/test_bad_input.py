"""What a person sees when the input is wrong: file, line and remedy, never a traceback of ours."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.plugin.conftest import Suite


def _assert_clean(result: pytest.RunResult) -> None:
    text = result.stdout.str() + result.stderr.str()
    assert "Traceback" not in text
    assert "rag_harness/frontends/pytest_plugin" not in text


def test_queries_with_problems(suite: Suite) -> None:
    """All of them are told at once."""
    lines = ['{"query_id": "a", "query": "x"}', "{not json", '{"query_id": "a", "query": "y"}', '{"query_id": "b"}']
    lines.append('{"query_id": "c", "query": "x", "context_reference": ["../../etc/passwd"]}')
    lines.append('{"query_id": "d", "query": " "}')
    (suite.path / "kb" / "queries.jsonl").write_text("\n".join(lines))
    result = suite.run()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(
        [
            "*queries.jsonl:2: *",
            "*queries.jsonl:3: query_id 'a' stands already on line 1.",
            "*queries.jsonl:4: query: *",
            "*queries.jsonl:5: c: context_reference '../../etc/passwd' is no *",
            "*queries.jsonl:6: query: *",
        ]
    )
    _assert_clean(result)


def test_missing_knowledge_base(suite: Suite) -> None:
    result = suite.run("--rag-kb=nowhere")
    result.stdout.fnmatch_lines(["*No folder *nowhere. Name your own with --rag-kb DIR*"])
    _assert_clean(result)


@pytest.mark.parametrize("args", [("-n2",), pytest.param((), marks=pytest.mark.long)], ids=["n2", "plain"])
def test_empty_knowledge_base(suite: Suite, args: tuple[str, ...]) -> None:
    suite.write_queries([{"query_id": "a", "query": "x"}])
    for page in (suite.path / "kb").glob("*.md"):
        page.unlink()
    result = suite.run(*args)
    result.stdout.fnmatch_lines(
        ["No page with text in *kb: a knowledge base is one or more files of *.md, .pdf, *.txt, *.yml."]
    )
    assert result.ret == pytest.ExitCode.INTERRUPTED
    _assert_clean(result)


def test_page_that_is_not_utf8(suite: Suite) -> None:
    (suite.path / "kb" / "returns.md").write_bytes(b"caf\xe9")
    result = suite.run()
    result.stdout.fnmatch_lines(["*kb/returns.md: not UTF-8 at byte 3. Save the file as UTF-8."])
    _assert_clean(result)


def test_page_of_only_front_matter(suite: Suite) -> None:
    (suite.path / "kb" / "returns.md").write_text("---\ntitle: nothing\n---\n")
    suite.run().assert_outcomes(passed=4)


def test_unknown_profile(suite: Suite) -> None:
    result = suite.run("--rag-profile=mokc")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: Unknown profile 'mokc'. Did you mean 'mock'? Known: *"])
    _assert_clean(result)


def test_unknown_marker(suite: Suite) -> None:
    result = suite.run("-m", "e33")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: -m: Unknown marker 'e33'. Did you mean 'e3'? Known: *"])
    _assert_clean(result)


def test_test_without_experiment(suite: Suite) -> None:
    suite.pytester.makepyfile("def test_answers(rag_result): pass")
    result = suite.run()
    result.stdout.fnmatch_lines(["*uses rag_result but names no experiment. Mark it: @pytest.mark.e3*"])
    _assert_clean(result)


def test_key_is_missing(suite: Suite) -> None:
    result = suite.run("--rag-profile=openrouter", "--rag-mode=live")
    result.stderr.fnmatch_lines(["ERROR: OPENROUTER_API_KEY is not set: mode live of profile 'openrouter' calls *"])
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    _assert_clean(result)


def test_the_client_of_a_named_server_is_missing(suite: Suite) -> None:
    suite.pytester.makeconftest("import sys\nsys.modules['qdrant_client'] = None\n")
    result = suite.run("--rag-qdrant-url=http://127.0.0.1:6333")
    result.stderr.fnmatch_lines(["ERROR: *Qdrant server http*:6333*pip install 'pytest-rag-harness[[]qdrant]'"])
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    _assert_clean(result)


@pytest.mark.parametrize(
    ("profile", "tokens"), [("mock", 3000), pytest.param("embedded", 3002, marks=pytest.mark.long)]
)
def test_long_query_is_a_row(suite: Suite, profile: str, tokens: int) -> None:
    # Not importorskip: pytester takes out again what a test imports, and torch does not bear being imported twice.
    if profile == "embedded" and find_spec("sentence_transformers") is None:
        pytest.skip("needs the extra local")
    suite.pytester.makeconftest("from rag_harness.models.dry_run import MockEmbedder\nMockEmbedder.max_tokens = 512\n")
    suite.write_queries([{"query_id": "long", "query": "return " * 3000}, {"query_id": "short", "query": "lamp"}])
    result = suite.run(f"--rag-profile={profile}")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines([f"*retrieve: QueryTooLongError: The query 'return return*has {tokens} tokens*"])
    _assert_clean(result)
    assert {row["query_id"]: row["status"] for row in suite.rows()} == {"long": "error", "short": "ok"}


@pytest.mark.parametrize("parts", [1000, pytest.param(5000, marks=pytest.mark.long)])
def test_very_long_page(suite: Suite, parts: int) -> None:
    page = "# Big\n\n" + "\n\n".join(f"## Part {n}\n\n" + "Some words about nothing. " * 40 for n in range(parts))
    assert len(page) > 1000 * parts
    (suite.path / "kb" / "big.md").write_text(page)
    suite.run().assert_outcomes(passed=4)


@pytest.mark.parametrize("ini", ["[pytest]\nrag_kb_dir = kb\nrag_gates =\n    e3: recall@5 >= 2\n"])
def test_a_misspelt_key_of_the_ini_file_stops_the_run(suite: Suite, ini: str) -> None:
    """As a gate it would stop nothing."""
    suite.pytester.makeini(ini)
    result = suite.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*tox.ini: rag_gates is no option. Did you mean 'rag_gate'? *"])
    suite.pytester.makefile(".ini", ci=ini)
    (suite.path / "tox.ini").unlink()
    assert suite.run("-c", "ci.ini").ret == pytest.ExitCode.USAGE_ERROR


def test_a_key_that_somebody_else_declares_is_none_of_ours(suite: Suite) -> None:
    suite.pytester.makeconftest("def pytest_addoption(parser):\n    parser.addini('rag_colour', 'theirs')\n")
    suite.pytester.makeini("[pytest]\nrag_kb_dir = kb\nrag_profile = mock\nrag_colour = red\n")
    suite.run().assert_outcomes(passed=4)
