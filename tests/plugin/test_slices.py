"""Which experiment wins on which slice, in a run: asked for, printed, kept, reported; refused where it cannot be."""

from __future__ import annotations

import json

import pytest

from rag_harness.page.sections.scorecard import slices
from tests.plugin.conftest import Suite
from tests.unit.page.runs import read, said

PIPELINES = """
import pytest

class Says:
    def __init__(self, wrong):
        self.wrong = wrong

    async def answer(self, query):
        return "no idea" if int(query.query_id[-2:]) % self.wrong == 0 else "45 days"

@pytest.fixture(scope="session")
def rag_pipeline():
    return Says({wrong})

@pytest.mark.rag_experiment("{name}")
def test_{name}(rag_result):
    assert rag_result.ok
"""


@pytest.fixture
def two(suite: Suite) -> Suite:
    """Careful is right on all but two of 24 questions, hasty on every second one."""
    queries: list[dict[str, object]] = [
        {
            "query_id": f"q_{n:02}",
            "query": f"How long may I keep lamp {n}?",
            "query_type": "direct" if n <= 20 else "multi_hop",
            "context_reference": ["returns.md"],
            "ground_truth": "45 days",
            "metadata": {"topic": "lamps"},
        }
        for n in range(1, 25)
    ]
    suite.write_queries(queries)
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    for name, wrong in (("careful", 10), ("hasty", 2)):
        (suite.path / f"test_{name}.py").write_text(PIPELINES.format(name=name, wrong=wrong))
    return suite


@pytest.mark.parametrize("workers", ["-n0", pytest.param("-n2", marks=pytest.mark.long)])
def test_the_winner_of_each_slice_is_printed_and_kept(two: Suite, workers: str) -> None:
    result = two.run("--rag-cluster=none", workers, "--rag-slices=query_type", "--rag-report=report.html")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "*= rag slices =*",
            "*are by Holm over 2 tests: all pairs on all slices",
            "token_f1*cases  best",
            "query_type=direct*20  careful 0.900 [[]*",
            "  careful wins: +0.400 [[]*",
            "query_type=multi_hop * 4  careful 1.000 [[]*",
            "  only 4 cases, no winner: no sure difference from hasty,",
            "  +0.500 [[]-0.451, +0.935] (p 0.500)",
        ]
    )
    kept = json.loads((two.path / "output" / "summary.json").read_text())["slices"]
    assert [(each["slice"], each["winner"]) for each in kept] == [
        ({"query_type": "direct"}, "careful"),
        ({"query_type": "multi_hop"}, None),
    ]
    assert "Which wins where" in (two.path / "report.html").read_text()


def test_it_stands_in_the_ini_file_with_what_it_names_measured_and_judged(two: Suite) -> None:
    asked = "rag_slices =\n    query_type: error_rate\n    topic: recall@3, factuality, total_ms\n"
    two.pytester.makeini(f"[pytest]\naddopts = -p no:cacheprovider\nrag_kb_dir = kb\nrag_profile = mock\n{asked}")
    result = two.run("--rag-cluster=none", "-p", "no:xdist")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "error_rate ↓ *cases  best",
            "query_type=direct *20  all 0.000 [[]*",
            "factuality *cases  best",
            "topic=lamps *24 *",
            "total_ms ↓ *cases  best",
            "topic=lamps *24 * ms [[]*",
            "careful, hasty: no recall@3 (24 of 24 have no retrieval)",
        ]
    )
    lines = said(slices(read(two.path / "output"))).splitlines()
    for measure in ("total_ms", "factuality"):
        assert any("topic=lamps" in line and measure in line for line in lines)


def test_nothing_is_said_without_the_option_or_of_one_experiment(two: Suite) -> None:
    for args in ([], ["--rag-slices=query_type", "-k", "careful"]):
        result = two.run("--rag-cluster=none", *args)
        assert result.ret == 0
        result.stdout.no_fnmatch_line("*rag slices*")
        assert "slices" not in json.loads((two.path / "output" / "summary.json").read_text())


UNKNOWN_KEY = ("topc", "*-slices: Unknown slice key 'topc'. Did you mean 'topic'? Known: query_type, topic.")
UNKNOWN_MEASURE = ("topic: recal@5", "*-slices=topic: recal@5: Unknown measure 'recal'. Did you mean 'recall'*")
EMPTY_NAME = ("topic,", "*-slices=topic,: a name is empty in 'topic,'. Example: 'query_type, topic: recall@5'.")


@pytest.mark.parametrize(
    ("workers", "option", "said"),
    [
        ("-n0", *UNKNOWN_KEY),
        ("-n0", *UNKNOWN_MEASURE),
        ("-n0", *EMPTY_NAME),
        ("-n2", *UNKNOWN_KEY),
        pytest.param("-n2", *UNKNOWN_MEASURE, marks=pytest.mark.long),
        pytest.param("-n2", *EMPTY_NAME, marks=pytest.mark.long),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(two: Suite, workers: str, option: str, said: str) -> None:
    result = two.run("--rag-cluster=none", workers, f"--rag-slices={option}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([said])
    assert two.rows("careful") == []


def test_a_key_of_other_named_data_is_no_mistake(two: Suite) -> None:
    (two.path / "book").mkdir()
    asked = {"query_id": "b1", "query": "What pulls?", "ground_truth": "Gravity.", "metadata": {"chapter": "1"}}
    (two.path / "book" / "queries.jsonl").write_text(json.dumps(asked))
    (two.path / "pyproject.toml").write_text('[tool.rag_harness.data.book]\nkb = "book"\nexperiments = ["tutor"]\n')
    result = two.run("--rag-cluster=none", "--rag-slices=query_type, chapter")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["query_type=direct*careful 0.900 *"])
    result.stdout.no_fnmatch_line("*chapter*")
