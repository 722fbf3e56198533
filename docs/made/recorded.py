"""What drawings show of recorded runs: `recorded.json`, which `python -m docs.made.screenshots` writes.

Tests replay the runs, and compare.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from rag_harness.page.run import read_run

FILE = Path(__file__).with_name("recorded.json")
RECORDED: Mapping[str, Any] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
SPACE = "rag_harness/studies/tuning.toml"
CONVERSATION = "conv_001"
TRIAL = "q_direct_105"
"""The case whose trial of ``e3`` is pictured."""
QUESTION = "How many working days does merging two accounts take and which CU- number stays?"
"""What the pictured service is asked."""
_MEASURES = ("recall@5", "evidence_recall", "token_f1", "faithfulness")


def race_of(output: Path) -> dict[str, Any]:
    """Return what a drawing shows of the race in an output folder. Figures are value, low, high."""
    said = json.loads((output / "tune.json").read_text(encoding="utf-8"))
    entries = [
        {
            "title": each["title"],
            "figure": _figure(each["figures"][said["objective"][0]]),
            "state": "chosen" if each["name"] == said["winner"] else "left" if each["left_after"] else "",
            "is_chosen": each["name"] == said["winner"],
        }
        for each in said["entries"]
    ]
    held = {"chosen": "winner", "today": "today", "difference": "difference"}
    return {
        "objective": said["objective"][0],
        "questions": said["questions"],
        "entries": entries,
        "held_out": {name: _figure(said["held_out"][key]) for name, key in held.items()},
    }


def _figure(said: Mapping[str, float]) -> list[float]:
    return [round(said[name], 3) for name in ("value", "low", "high")]


def chat_of(output: Path) -> dict[str, Any]:
    """Return what a drawing shows of the turns of a conversation that experiment ``c1`` answered."""
    run = read_run(output)
    table = run.tables["c1"]
    rows = [json.loads(line) for line in (output / run.suites["c1"].file).read_text(encoding="utf-8").splitlines()]
    causes = {each.query_id: each for each in run.causes.values()}
    turns = []
    for row in sorted(rows, key=lambda each: each["inputs"]["turn"]):
        searched = next(each["detail"] for each in row["stages"] if each["name"] == "rewrite")
        cause = causes.get(row["query_id"])  # none where nothing tells whether the answer is right
        place = table.ids.index(row["query_id"])
        figures = {name: table.columns[name].values[place] for name in _MEASURES}
        turns.append(
            {
                "turn": row["inputs"]["turn"],
                "query": row["query"],
                "reference": row["ground_truth"],
                "searched": searched["searched"],
                "is_rewritten": searched["searched"] != searched["asked"],
                "pages": [each["metadata"]["filename"] for each in row["retrieved_chunks"]],
                "gold": row["context_reference"],
                "answer": row["llm_answer"],
                "measures": {name: f"{value:.3f}" if isfinite(value) else "–" for name, value in figures.items()},
                "cause": cause.cause if cause else "not checked",
                "detail": cause.detail if cause else "no rule can compare the answer with its ground truth",
            }
        )
    return {"conversation": CONVERSATION, "turns": turns}
