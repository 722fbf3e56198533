"""``rag-harness tune --dataset``: a public collection brings documents and questions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rag_harness.__main__ import main

SPACE = """
objective = "ndcg@5"
[parameters]
retriever = ["dense", "bm25"]
rerank = [false]
"""
DOCUMENTS = 12


def test_a_collection_is_raced_on_by_its_own_questions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "beir" / "qrels").mkdir(parents=True)
    numbers = range(DOCUMENTS)
    docs = [{"_id": f"d{n}", "title": f"t{n}", "text": f"word{n} " * 3} for n in numbers]
    asked = [{"_id": f"q{n}", "text": f"word{n}"} for n in numbers]
    for name, lines in (("corpus", docs), ("queries", asked)):
        (tmp_path / "beir" / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    judged = "".join(f"q{n}\td{n}\t1\n" for n in numbers)
    (tmp_path / "beir" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
    (tmp_path / "space.toml").write_text(SPACE)
    assert main(["tune", "space.toml", "--dataset", "beir:beir", "--profile", "mock"]) == 0
    assert "6 questions to race on, 6 held out; no model answers" in capsys.readouterr().out
    outcome = json.loads((tmp_path / "output" / "tune.json").read_text())
    words = next(entry for entry in outcome["entries"] if entry["title"].startswith("bm25"))
    assert words["figures"]["ndcg@5"]["value"] == 1.0
