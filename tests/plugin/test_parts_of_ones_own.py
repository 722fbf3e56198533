"""What docs/reference/parts.md says one touches to add a part: one file and a registration, from outside the package.

They import from ``rag_harness`` alone, as the page about what is public says that they can.
"""

from __future__ import annotations

import json
import re
from textwrap import dedent
from typing import Any

import pytest

from tests.plugin.conftest import Suite

PARTS = {
    "paragraphs": """
        from rag_harness import Chunk

        def chunk_document(document, tokenizer, settings):
            found, start = [], 0
            for number, text in enumerate(document.text.split("\\n\\n")):
                name = f"{document.doc_id}#paragraph_{number}"
                found.append(Chunk(name, document.doc_id, text, start, start + len(text), index=number))
                start += len(text) + 2
            return found
        """,
    "notes": """
        from rag_harness import Document

        def load(file, doc_id):
            return Document(doc_id, file.read_text(encoding="utf-8"), file.stem, {"version": "9"})
        """,
    "brevity": """
        from rag_harness import RowMeasure, Score

        class Brevity(RowMeasure):
            called, unit, worst = "brevity", "score", None

            def score(self, case, row):
                return Score(1 / max(1, len(row.llm_answer.split())))
        """,
    "backwards": """
        class Backwards:
            model, revision = "shop/backwards", "1"

            def rerank(self, query, hits):
                return [hit.reranked(float(n), n) for n, hit in enumerate(reversed(hits), 1)]

        def create(parts):
            return Backwards()
        """,
    "section": """
        def lines(tables):
            return [f"{name}: {table.selected_of({})} cases" for name, table in tables.items()]
        """,
    "short": """
        from dataclasses import replace

        from rag_harness import Experiment, Generator, Trace, spec_of

        class Short:
            def __init__(self, retriever, reranker, generator, kept):
                self.retriever, self.reranker, self.generator, self.kept = retriever, reranker, generator, kept

            async def answer(self, query):
                trace = Trace()
                await trace.retrieve(self.retriever, query.text, 3)
                await trace.rerank(self.reranker, query.text, self.kept)
                return await self.generator.answer(query, trace)

        def build(parts):
            retrieval = parts.retrieval(replace(spec_of(parts.settings), chunker="paragraphs"))
            reranker, prompts = retrieval.reranker("backwards:x"), parts.prompts("e3")
            kept = parts.settings.own["kept"]
            return Experiment(
                "short",
                Short(retrieval.dense, reranker, Generator(parts.chat(), prompts), kept),
                retriever=retrieval.dense,
                prepare=parts.prepared(retrieval),
            )
        """,
}
ENTRY_POINTS = """
[rag_harness.chunkers]
paragraphs = shop.paragraphs:chunk_document
[rag_harness.loaders]
note = shop.notes:load
[rag_harness.measures]
brevity = shop.brevity:Brevity
[rag_harness.rerankers]
backwards = shop.backwards:create
[rag_harness.sections]
counts = shop.section:lines
[rag_harness.pipelines]
short = shop.short:build
"""
PYPROJECT = """
[tool.rag_harness.options.kept]
default = 1
affects = "reranking"
help = "chunks that short keeps"
"""
TEST = """
import pytest

@pytest.mark.rag_experiment("short")
def test_short(rag_result):
    assert rag_result.ok, rag_result.why
"""


@pytest.fixture
def shop(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """Install somebody else's distribution, as pip would leave it."""
    installed = suite.path / "site"
    (installed / "shop").mkdir(parents=True)
    (installed / "shop" / "__init__.py").write_text("")
    for name, source in PARTS.items():
        (installed / "shop" / f"{name}.py").write_text(dedent(source))
    about = installed / "shop-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: shop\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.setenv("PYTHONPATH", str(installed))
    (suite.path / "pyproject.toml").write_text(PYPROJECT)
    (suite.path / "kb" / "opening.note").write_text("Opening hours\n\nThe shop in Tarn opens at nine.")
    asked: dict[str, object] = {
        "query_id": "q_note",
        "query": "Tarn opens at nine",
        "context_reference": ["opening.note"],
    }
    suite.write_queries([asked, {"query_id": "q_lamp", "query": "return a lamp within 45 days"}])
    for file in suite.path.glob("test_*.py"):
        file.write_text(TEST)
    return suite


def test_parts_of_ones_own_work_together(shop: Suite) -> None:
    gate = "--rag-gate=short: brevity >= 0.01"
    result = shop.run(gate, "--rag-gate=short: p95(total_ms) <= 60000", "--rag-save=first")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*= rag counts =*", "short: 2 cases"])
    result.stdout.fnmatch_lines(["passed *short: brevity >= 0.01 *n=2*"])
    rows: dict[str, Any] = {str(row["query_id"]): row for row in shop.rows("short")}
    (kept,) = rows["q_note"]["retrieved_chunks"]
    assert "#paragraph_" in kept["chunk_id"]
    assert kept["scores"]["rerank"] == 1.0
    candidates = [hit["chunk_id"] for hit in rows["q_note"]["candidates"]]
    assert candidates[-1] == kept["chunk_id"]
    assert "opening.note#paragraph_1" in candidates
    note = next(hit for row in rows.values() for hit in row["candidates"] if "note" in hit["chunk_id"])
    assert note["scores"]["dense"] > 0
    summary = json.loads((shop.path / "output" / "summary.json").read_text())
    assert 0 < summary["short"]["brevity"] <= 1
    compared = shop.run("--rag-compare=first", "--rag-overwrite")
    assert re.search(r"measures are the same in both:[^:]* brevity,", compared.stdout.str())


def test_an_option_of_ones_own_changes_results_and_the_fingerprint(shop: Suite) -> None:
    shop.run()
    before: list[Any] = shop.rows("short")
    shop.run("--rag-define=kept=2").assert_outcomes(passed=2)
    after: list[Any] = shop.rows("short")
    assert {len(row["retrieved_chunks"]) for row in before} == {1}
    assert {len(row["retrieved_chunks"]) for row in after} == {2}
    assert {row["fingerprint"] for row in before}.isdisjoint({row["fingerprint"] for row in after})


def test_a_section_that_fails_says_so_and_fails_nothing(shop: Suite) -> None:
    (shop.path / "site" / "shop" / "section.py").write_text("def lines(tables): return [1 / 0]\n")
    result = shop.run()
    assert result.ret == 0
    result.stdout.fnmatch_lines(["it failed: ZeroDivisionError: division by zero"])
