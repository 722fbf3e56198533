"""What a person sees of questions: those that are named, cannot be used, or stand in a table."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import Any

import pytest

from tests.plugin.conftest import QUERIES, Suite
from tests.plugin.test_golden import ENTRIES, TEST, write_golden

# What a person sees when the input is wrong: file, line and remedy, never a traceback of ours.


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
            "*queries.jsonl:5: c: context_reference '../../etc/passwd' is not a page *",
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
    result.stderr.fnmatch_lines(["*tox.ini: rag_gates is not an option. Did you mean 'rag_gate'? *"])
    suite.pytester.makefile(".ini", ci=ini)
    (suite.path / "tox.ini").unlink()
    assert suite.run("-c", "ci.ini").ret == pytest.ExitCode.USAGE_ERROR


def test_a_key_that_somebody_else_declares_is_none_of_ours(suite: Suite) -> None:
    suite.pytester.makeconftest("def pytest_addoption(parser):\n    parser.addini('rag_colour', 'theirs')\n")
    suite.pytester.makeini("[pytest]\nrag_kb_dir = kb\nrag_profile = mock\nrag_colour = red\n")
    suite.run().assert_outcomes(passed=4)


# What is said of questions that cannot be used: a run stops and names them, or goes on without them and says so.

BAD: list[dict[str, object]] = [
    {"query_id": "bad_1", "query": "live birds", "query_type": "negtive"},
    {"query_id": "bad_2", "query": "two pages", "context_reference": ["gone.md"]},
    {"query_id": "q_direct_001", "query": "again"},
]
GATE = ("--rag-gate", "e3: error_rate <= 0.05")


def test_a_misspelt_type_stops_a_run_before_anything_is_asked(suite: Suite) -> None:
    suite.write_queries([*QUERIES, BAD[0]])
    stopped = suite.run()
    stopped.stdout.fnmatch_lines(["*queries.jsonl:5: bad_1: query_type 'negtive' is not known. *'negative'?*"])
    assert not suite.rows()
    named = suite.run("-o", "rag_query_types=negtive")
    named.assert_outcomes(passed=5)
    assert {row["query_type"] for row in suite.rows()} == {"direct", "negative", "negtive"}


@pytest.mark.parametrize("workers", [pytest.param("0", marks=pytest.mark.long), "2"])
def test_bad_lines_stop_a_run_or_are_skipped_and_counted(suite: Suite, workers: str) -> None:
    suite.write_queries([*QUERIES, *BAD])
    stopped = suite.run(*GATE)
    stopped.stdout.fnmatch_lines(["*queries.jsonl:5: *", "*queries.jsonl:6: bad_2: context_reference 'gone.md'*"])
    assert stopped.ret != 0

    went_on = suite.run("--rag-bad-queries=skip", "--rag-report=report.md", *GATE, "-n", workers)
    went_on.assert_outcomes(passed=4)
    text = went_on.stdout.str()
    assert "passed      e3: error_rate <= 0.05" in text
    assert text.index("3 lines of queries.jsonl were skipped: no figure") < text.index("passed      e3: error_rate")
    verdict = text[text.index("passed      e3: error_rate") :]
    assert "3 lines of queries.jsonl were skipped" in " ".join(verdict.split())
    found = _left_behind(suite)
    assert (found["count"], len(found["first"])) == (3, 3)
    assert "queries.jsonl:7: query_id 'q_direct_001' stands already on line 1." in found["first"][2]
    assert "3 lines of queries.jsonl were skipped" in (suite.path / "report.md").read_text()
    log = (suite.path / "logs" / "e2_to_e4.log").read_text()
    skipped = [line for line in log.splitlines() if " main INFO Skipped: " in line]
    assert len(skipped) == len(BAD), "once a run, and not once a process"
    assert "bad_2: context_reference 'gone.md'" in skipped[1]


def _left_behind(suite: Suite) -> dict[str, Any]:
    output = suite.path / "output"
    summary, manifest = (json.loads((output / name).read_text()) for name in ("summary.json", "run.json"))
    assert summary["skipped"] == manifest["skipped"]
    found: dict[str, Any] = manifest["skipped"]["queries"]
    return found


def test_the_start_of_a_run_names_the_first_of_them(suite: Suite) -> None:
    empty: list[dict[str, object]] = [{"query_id": f"b{n}", "query": " "} for n in range(7)]
    suite.write_queries([*QUERIES, *empty])
    said = suite.run("--rag-bad-queries=skip").stdout
    said.fnmatch_lines(["rag: skipped: *queries.jsonl:5: query: *", "rag: skipped: and 2 more, in the log"])


# Questions that the command line or the environment names are asked; else the run says that they are not, or stops.

INI = "[pytest]\nrag_kb_dir = kb\nrag_profile = mock\nrag_k = 1\nrag_queries = asked.jsonl\nrag_golden = {}\n"
# With workers, what tests ask is known to the workers, and what the run says is said by another process.
IN_WORKERS = pytest.mark.parametrize("workers", [pytest.param("-n0", marks=pytest.mark.long), "-n2"])
IN_ONE_PROCESS = pytest.mark.parametrize("workers", ["-n0", pytest.param("-n2", marks=pytest.mark.long)])


@pytest.fixture
def golden(suite: Suite) -> Suite:
    """Return a suite of the golden tests alone, as ``rag-harness init`` writes it."""
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    suite.pytester.makepyfile(test_golden=TEST)
    for name, queries in (("asked.jsonl", QUERIES), ("others.jsonl", QUERIES[:1])):
        (suite.path / name).write_text("".join(json.dumps(query) + "\n" for query in queries))
    write_golden(suite, ENTRIES)
    suite.pytester.makeini(INI.format("asked.jsonl"))
    return suite


@IN_ONE_PROCESS
def test_a_file_that_is_not_there_stops_the_run(golden: Suite, workers: str) -> None:
    result = golden.run(workers, "--rag-queries", "aksed.jsonl")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*No file *aksed.jsonl. Did you mean 'asked.jsonl'? Name your questions with *"])
    assert "passed" not in result.stdout.str()


def test_so_does_one_that_the_environment_names(golden: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAG_QUERIES", "xyz.jsonl")
    result = golden.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*No file *xyz.jsonl. Name your questions with *"])


@IN_WORKERS
def test_the_golden_suite_asks_them_where_it_asks_the_file_of_questions(golden: Suite, workers: str) -> None:
    result = golden.run(workers, "--rag-queries=others.jsonl", "--rag-gate=recall@k >= 0.1")
    result.assert_outcomes(passed=1)
    assert "no test of this run asks" not in result.stdout.str()
    assert {row["query_id"] for row in golden.rows("golden")} == {"q_direct_001"}


@IN_WORKERS
def test_a_question_that_names_no_page_is_told_where_golden_looks_nothing_up_for_it(
    golden: Suite, workers: str
) -> None:
    bare = [{"query_id": "bare", "query": "skis?"}, {"query_id": "no", "query": "boats?", "query_type": "negative"}]
    rows = "".join(json.dumps(each) + "\n" for each in [*QUERIES[:2], *bare])
    (golden.path / "asked.jsonl").write_text(rows)
    golden.pytester.makeini(INI.format("asked.jsonl"))
    result = golden.run(workers)
    result.assert_outcomes(passed=2)
    said = "1 question of asked.jsonl names no page in context_reference, so the golden suite does not ask it: bare"
    result.stdout.fnmatch_lines([said])
    assert "note     1 question of asked.jsonl names no page" in result.stdout.str()
    (golden.path / "asked.jsonl").write_text(json.dumps(QUERIES[0]) + "\n")
    assert "names no page" not in golden.run().stdout.str()


def test_a_golden_set_that_is_named_counts_more(golden: Suite) -> None:
    golden.run("--rag-queries=others.jsonl", "--rag-golden=asked.jsonl").assert_outcomes(passed=3)


@IN_WORKERS
def test_the_run_says_where_no_test_asks_them(golden: Suite, workers: str) -> None:
    golden.pytester.makeini(INI.format("golden.json"))
    said = (
        "rag: no test of this run asks others.jsonl (--rag-queries, RAG_QUERIES): the golden suite asks golden.json.*"
    )
    golden.run(workers, "--rag-queries=others.jsonl").stdout.fnmatch_lines([said])
    assert "no test of this run asks" not in golden.run().stdout.str()


def test_a_misspelt_option_is_told_with_what_was_meant(golden: Suite) -> None:
    result = golden.run("--rag-kbb=kb")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*unrecognized arguments: --rag-kbb=kb", "*did you mean: --rag-kb"])
    result = golden.run("--rag-kb=kb", "--unknown-of-others")
    assert "did you mean" not in result.stderr.str()


def test_an_option_that_was_renamed_is_told_with_its_name(golden: Suite) -> None:
    result = golden.run("--rag-inconclusive=fail")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.stderr.str().strip() == "ERROR: --rag-inconclusive is not an option any more: it is called undecided."
    golden.pytester.makeini("[pytest]\nrag_kb_dir = kb\nrag_inconclusive = fail\n")
    golden.run().stderr.fnmatch_lines(["*tox.ini: rag_inconclusive is not an option any more: it is called undecided."])


PIPELINE = """
import pytest
from rag_harness import Answer, Chunk, Hit, PipelineOutput

class Mine:
    async def answer(self, query):
        hit = Hit(Chunk("returns.md#0", "returns.md", "Lamps: 45 days."), score=1.0, rank=1)
        return PipelineOutput(Answer("45 days"), retrieved=(hit,), context=(hit,))

@pytest.fixture(scope="session")
def rag_pipeline():
    return Mine()

@pytest.mark.rag_experiment("mine")
def test_answers(rag_result):
    assert rag_result.ok, rag_result.why
"""


@IN_ONE_PROCESS
def test_a_pipeline_that_has_the_documents_needs_no_folder_of_them(suite: Suite, workers: str) -> None:
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    suite.pytester.makepyfile(test_mine=PIPELINE)
    suite.pytester.makeini("[pytest]\n")
    pages = [["returns.md"], ["delivery.md"]]
    rows = [{"query_id": f"q{n}", "query": "How long?", "context_reference": page} for n, page in enumerate(pages)]
    (suite.path / "asked.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = suite.run(workers, "--rag-queries=asked.jsonl", "--rag-gate=mine: recall@1 >= 0.5")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        ["note     no folder data/kb: pages in context_reference are taken as written, and", "*0.500*"]
    )
    stopped = suite.run(workers, "--rag-queries=asked.jsonl", "--rag-kb=kb")
    assert "context_reference 'delivery.md' is not a page of" in stopped.stdout.str() + stopped.stderr.str()
    nothing = suite.run(workers)
    assert "name the questions alone: --rag-queries FILE" in nothing.stdout.str() + nothing.stderr.str()


# A table of questions is asked as it is; columns of other names are named by an option.

HEADER = "\ufeffnummer;frage;seite;antwort\r\n"
TABLE = f"{HEADER}a1;return a lamp;returns.md;45 days\r\na2;express delivery costs;shipping.md;\r\n"
MAPPED = "--rag-map=id=nummer,question=frage,document=seite,reference=antwort"


def test_a_csv_file_is_asked(suite: Suite) -> None:
    (suite.path / "questions.csv").write_text(TABLE, encoding="utf-8")
    suite.run("--rag-queries=questions.csv", MAPPED).assert_outcomes(passed=2)
    assert [row["query_id"] for row in suite.rows()] == ["a1", "a2"]


def test_a_map_for_lines_is_refused(suite: Suite) -> None:
    refused = suite.run(MAPPED)
    refused.stdout.fnmatch_lines(["*rag_map names columns of a table*queries.jsonl is none*"])


def test_an_unknown_field_of_a_map_is_refused(suite: Suite) -> None:
    (suite.path / "questions.csv").write_text(TABLE, encoding="utf-8")
    refused = suite.run("--rag-queries=questions.csv", "--rag-map=qestion=frage")
    refused.stdout.fnmatch_lines(["*rag_map 'qestion=frage': Unknown field 'qestion'*"])
