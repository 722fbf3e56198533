"""What a person reads, word for word. ``pytest tests --snapshot-update`` after a wanted change, then read the diff."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from rag_harness.core.errors import DataError
from rag_harness.core.types import GOLDEN as GOLDEN_SUITE
from rag_harness.records.golden_result import FoundHit, RetrievalResult
from rag_harness.records.row import ExperimentResult
from rag_harness.runs.gates import Verdict, parse_gate, verdict_lines
from rag_harness.tables.comparison import compare
from rag_harness.tables.comparison_lines import comparison_lines
from rag_harness.tables.golden_suite import golden_lines
from rag_harness.tables.reader import SavedCase, SavedRun, SavedSuite
from rag_harness.tables.suite_table import SuiteTable
from rag_harness.tables.summary import speed_lines, stage_lines, summarise, summary_lines
from rag_harness.tables.wording import explain_miss, miss_line, missed
from tests.plugin.conftest import Suite
from tests.unit.rows import make_row
from tests.unit.suite_tables import case, golden_row, table_of, tables_of

WIDTH = 100
_QUESTION = "How long can I return a lamp that I bought in the outlet, and who pays for the parcel? "

GOLDEN_TEST = "def test_finds_what_is_expected(rag_retrieval):\n    assert rag_retrieval.found\n"
GOLDEN = [
    {"query": "return a lamp", "expected_document_id": "returns.md", "justification": "j", "query_type": "plain"},
    {"query": "express costs", "expected_document_id": "shipping.md", "justification": "j", "query_type": "table"},
    {"query": "warranty lasts", "expected_document_id": "shipping.md", "justification": "wrong", "query_type": "plain"},
]


def narrow(text: str) -> str:
    """Return ``text`` if every line of it fits."""
    wide = [line for line in text.split("\n") if len(line) > WIDTH]
    assert not wide, f"wider than {WIDTH} columns: {wide}"
    return text


def made_result(**changes: Any) -> RetrievalResult:
    """Return a result of g001, found at rank 7 of the top 3, with ``changes``."""
    filled: dict[str, Any] = {
        "case_id": "g001",
        "query": "How long can I return a lamp?",
        "retriever": "dense",
        "k": 3,
        "expected": ("returns.md#return-window",),
        "justification": "The window stands in this section; exchanges.md has another one.",
        "passage": "Most items can be returned\nwithin 45 days.",
        "slices": {"query_type": "plain"},
        "relevant": {"returns.md#return-window": 1},
        "ranked": (*(f"p{n}.md" for n in range(1, 7)), "returns.md#return-window", "p8.md"),
        "top": made_hits(3),
        "rank": 7,
        "time_ms": 1.5,
    }
    return RetrievalResult(**(filled | changes))


def made_hits(n: int) -> tuple[FoundHit, ...]:
    """Return ``n`` hits with documents, sections and texts of several lengths."""
    documents = ("exchanges.md", "warranty-vs-protection-plan.md", "shop/stores/in-store-returns-and-exchanges-2024.md")
    sections = ("Exchanges > Time limit", "", "Stores > Returns > What to bring when you have no receipt at hand")
    texts = ("You have 30 days to exchange an item.", "No.", "Bring the item, the card you paid with and " * 3)
    return tuple(
        FoundHit(
            rank=rank + 1,
            chunk_id=f"{documents[rank % 3]}#chunk_{rank}",
            document=documents[rank % 3],
            section=sections[rank % 3],
            score=0.912 - rank / 20,
            snippet=texts[rank % 3],
        )
        for rank in range(n)
    )


MISSES = {
    "found low": made_result(),
    "ten hits": made_result(k=10, top=made_hits(10), rank=12, ranked=tuple(f"p{n}.md" for n in range(100))),
    "not found": made_result(rank=None, ranked=tuple(f"p{n}.md" for n in range(100))),
    "nothing returned": made_result(rank=None, ranked=(), top=()),
    "error": made_result(
        rank=None, ranked=(), top=(), error="ConnectionError: http://qdrant:6333 refused\nthe connection"
    ),
    "long": made_result(
        query=_QUESTION * 3, passage=_QUESTION * 2, expected=tuple(f"a-page-with-a-long-name-{n}.md" for n in range(4))
    ),
    "no blanks": made_result(query="x" * 250, expected=("y" * 120 + ".md",)),
    "not ASCII": made_result(
        query="Wie lange kann ich die Küchenmaschine (€279) zurückgeben – ungeöffnet?",
        expected=("rückgabe.md#rückgabefrist",),
        passage="Die meisten Artikel können innerhalb von 45 Tagen zurückgegeben werden.",
        top=(
            FoundHit(
                rank=1,
                chunk_id="größe.md#chunk_0",
                document="größe.md",
                section="Größen > Übersicht",
                score=-0.05,
                snippet="„Größe“ – ½ Nummer größer wählen…",
            ),
        ),
    ),
    "no gold text": made_result(justification="", passage=""),
}


@pytest.mark.parametrize("name", MISSES)
def test_failure_text(name: str, snapshot: SnapshotAssertion) -> None:
    assert narrow(explain_miss(MISSES[name])) == snapshot


def test_misses_of_the_summary(snapshot: SnapshotAssertion) -> None:
    said = ["\n".join(missed(each)) for each in MISSES.values()]
    assert narrow("\n".join(said)) == snapshot
    asked = "Whether " + "and if so when " * 40 + "it ends?"
    assert " ".join(asked.split()) in " ".join(" ".join(missed(made_result(query=asked))).split())


def test_miss_lines(snapshot: SnapshotAssertion) -> None:
    assert "\n".join(map(miss_line, MISSES.values())) == snapshot


def _table_and_results(n: int) -> tuple[SuiteTable, list[RetrievalResult]]:
    """Return ``n`` entries of three types; every fourth is at rank 12, every ninth is not found."""
    types = ("near_duplicate", "plain", "version")
    cases, rows, results = [], [], []
    for number in range(1, n + 1):
        rank = 12 if number % 4 == 0 else None if number % 9 == 0 else 1 + number % 3
        name, slices = f"g{number:03}", {"query_type": types[number % 3]}
        ranked = tuple("a.md" if place == rank else f"p{place}.md" for place in range(1, 21))
        cases.append(case(name, ["a.md"], **slices))
        rows.append(golden_row(name, ranked))
        result = made_result(
            case_id=name, query=f"{_QUESTION}{number}", k=10, expected=("a.md",), relevant={"a.md": 1},
            ranked=ranked, rank=rank, slices=slices,
        )  # fmt: skip
        results.append(result)
    return table_of(rows, cases, selected={GOLDEN_SUITE: []}), results


@pytest.mark.parametrize("n", [0, 3, 12, 40])
def test_golden_lines(n: int, snapshot: SnapshotAssertion) -> None:
    lines = golden_lines(*_table_and_results(n))
    figures = [line for line in lines if not line.startswith(("miss", " "))]
    assert len(figures) < 20
    assert len([line for line in lines if line.startswith("miss")]) <= 5
    assert "\n".join(lines) == snapshot


@pytest.mark.parametrize("n", [0, 3, 12, 40])
def test_golden_lines_fit(n: int) -> None:
    narrow("\n".join(golden_lines(*_table_and_results(n))))


def _verdicts() -> list[Verdict]:
    gate = {
        text: parse_gate(text, k=10)
        for text in (
            "recall@k >= 0.95",
            "golden: mrr@10 >= 0.8",
            "e3[query_type=multi_hop]: all@5 >= 0.7",
            "e4: error_rate <= 0.05",
            "e2: recall@5 >= e1",
            "e1: recall@5 > 0.5",
        )
    }
    recall, mrr, slice_, errors, other, absent = gate.values()
    return [
        Verdict(recall, "passed", 0.9625, 0.95, 80, (0.9, 0.99)),
        Verdict(mrr, "failed", 0.79996, 0.8, 80, (0.72, 0.86)),
        Verdict(slice_, "not judged", reason="12 of 40 cases selected"),
        Verdict(errors, "failed", 0.04, 0.05, 50, (0.01, 0.13), "2 cases lost to a crash, so it cannot pass"),
        Verdict(other, "not judged", reason="e1 is not in this run"),
        Verdict(absent, "not judged", reason="e1 is not in this run"),
    ]


def test_verdict_lines(snapshot: SnapshotAssertion) -> None:
    assert narrow("\n".join(verdict_lines(_verdicts()))) == snapshot


@pytest.mark.parametrize("which", [[0, 1, 2, 4], [0, 1], [0, 3], [2, 0, 3]])
def test_verdict_lines_fit(which: list[int]) -> None:
    verdicts = _verdicts()
    narrow("\n".join(verdict_lines([verdicts[each] for each in which])))


def test_verdict_lines_of_comparisons(snapshot: SnapshotAssertion) -> None:
    baseline, other = parse_gate("recall@k >= baseline - 0.02", k=10), parse_gate("e3: recall@5 >= e2", k=10)
    verdicts = [
        Verdict(baseline, "passed", 0.95, 0.9425, 80, (-0.04, 0.03)),
        Verdict(other, "failed", 0.91, 0.93, 160, (-0.06, 0.02)),
    ]
    assert "\n".join(verdict_lines(verdicts)) == snapshot


def test_verdict_lines_of_a_comparison_by_slice_fit() -> None:
    gate = parse_gate("e3[query_type=multi_hop]: recall@5 >= baseline - 0.02", k=10)
    narrow("\n".join(verdict_lines([Verdict(gate, "passed", 0.95, 0.9425, 40, (-0.04, 0.03))])))


def _run(retriever: str, shift: int, date: str, commit: str = "", **data: str) -> SavedRun:
    cases = {
        f"g{n:03}": SavedCase(
            slices={"query_type": "plain"},
            values={"mrr@10": 1.0 if (n + shift) % 3 else 0.5, "recall@10": float((n * 7 + shift) % 10 > 0)},
        )
        for n in range(1, 41)
    }
    return SavedRun(
        date=date,
        commit=commit,
        packages={"numpy": "2.4.6", "rag-harness": "0.1.0"},
        fingerprint={"data": {"golden": "aaaa", **data}, "models": {"retriever": retriever}, "settings": {"k": 10}},
        suites={"golden": SavedSuite(cases=cases)},
    )


def test_comparison_lines(snapshot: SnapshotAssertion) -> None:
    before = _run("dense", 0, "2026-06-01T09:00:00+00:00", "0123456789abcdef0123456789abcdef01234567")
    now = _run("hybrid", 1, "2026-06-02T09:00:00+00:00", "fedcba9876543210fedcba9876543210fedcba98")
    assert narrow("\n".join(comparison_lines(compare(now, before)))) == snapshot


def test_comparison_of_different_data(snapshot: SnapshotAssertion) -> None:
    before, now = (_run("dense", 0, f"2026-06-0{n}T09:00:00+00:00", documents=f"digest-{n}") for n in (1, 2))
    with pytest.raises(DataError, match="not about the same data") as refused:
        compare(now, before)
    assert str(refused.value) == snapshot


def _experiment(name: str, n: int, **changes: Any) -> list[ExperimentResult]:
    """Return ``n`` rows, one a tenth of a second, the first of them resumed."""
    ends = (f"2026-06-01T09:00:{10 + each // 10}.{each % 10}00+00:00" for each in range(n))
    times = [{"llm_time_ms": 300.0 + 7 * each, "total_time_ms": 320.0 + 7 * each} for each in range(n)]
    return [
        make_row(experiment=name, query_id=f"q{each}", finished_at=end, **(times[each] | changes))
        for each, end in enumerate(ends)
    ]


def test_lines_of_a_run_with_a_paid_model(snapshot: SnapshotAssertion) -> None:
    no_context: dict[str, Any] = {"retrieved_chunks": [], "candidates": [], "retrieval_time_ms": None}
    rows = [
        *_experiment("e1", 20, rerank_time_ms=None, cost_usd=0.0004, ttft_ms=110.4, **no_context),
        *_experiment("e3", 200, rerank_time_ms=184.2, cost_usd=0.0123, ttft_ms=112.0, retries=1, waited_ms=60),
        *_experiment("a_pipeline_of_mine", 20, llm_time_ms=None, rerank_time_ms=None),
    ]
    ids = {
        name: [row.query_id for row in rows if row.experiment == name] for name in ("e1", "e3", "a_pipeline_of_mine")
    }
    tables = tables_of(rows, selected=ids, resumed={name: ["q0"] for name in ids})
    lines = [*summary_lines(summarise(tables)), *stage_lines(tables), *speed_lines(tables, 16)]
    assert narrow("\n".join(lines)) == snapshot


def _sections(result: pytest.RunResult) -> str:
    """Return the output from the first section of ours on, as of a run that took no time."""
    ours = result.stdout.str().partition("\n=")[2]
    ours = ours[re.search(r"(?m)^=+ rag( golden)? =+$", ours).start() :]  # type: ignore[union-attr]
    # pytest's own repetition of failures, cut as CI and terminal have it.
    ours = re.sub(r"(?ms)^=+ short test summary info =+$.*?^(?==)", "", ours)
    # Columns of milliseconds are as wide as their numbers.
    ours = re.sub(r"(?m)^(e\d)(?: +[\d.]+s?/[\d.]+s?/[\d.]+s?)+$", r"\1  T/T/T", ours)
    ours = re.sub(r"(?m)^p50/p95/p99 ms +(.*)$", lambda stages: "  ".join(stages[0].split()), ours)
    ours = re.sub(r"(\d+ trials) in [\d.]+ s, [\d.]+ a second", r"\1 in TIME, N a second", ours)
    ours = re.sub(r"\d{4}-\d\d-\d\dT[\d:+]+|\d+ \w{3} \d{4} \d\d:\d\d UTC", "DATE", ours)
    lines = re.sub(r"in \d+\.\d+s", "in TIME", ours).split("\n")
    # pytest draws its rules as wide as the terminal.
    return narrow("\n".join(re.sub(r"={3,}", "===", line).rstrip() for line in lines).strip())


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("PY_COLORS", "0")


@pytest.fixture
def golden(suite: Suite) -> Suite:
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    suite.pytester.makepyfile(test_golden=GOLDEN_TEST)
    (suite.path / "golden.json").write_text(json.dumps(GOLDEN))
    suite.pytester.makeini(
        "[pytest]\nrag_kb_dir = kb\nrag_profile = mock\nrag_k = 1\n"
        "rag_gate =\n    recall@k >= 0.6\n    mrr@10 >= 0.99\n"
    )
    return suite


def test_terminal_of_a_golden_run(golden: Suite, snapshot: SnapshotAssertion) -> None:
    assert _sections(golden.run()) == snapshot


def test_terminal_of_a_part(golden: Suite, snapshot: SnapshotAssertion) -> None:
    assert _sections(golden.run("-k", "g001")) == snapshot


def test_terminal_of_a_comparison(golden: Suite, snapshot: SnapshotAssertion) -> None:
    golden.run("--rag-save=main")
    assert _sections(golden.run("--rag-compare=main", "--rag-retriever=bm25")) == snapshot


def test_terminal_of_experiments(suite: Suite, snapshot: SnapshotAssertion) -> None:
    gates = ["--rag-gate=e3: recall@5 >= 0.9", "--rag-gate=e3[query_type=negative]: abstention_rate >= 0.9"]
    assert _sections(suite.run(*gates)) == snapshot
    summary = json.loads((suite.path / "output" / "summary.json").read_text())["e3"]
    assert list(summary["stages_ms"]) == ["total", "retrieve", "rerank"]
    assert list(summary["stages_ms"]["rerank"]) == ["p50", "p95", "p99"]
    assert "cost_usd" in summary
