"""A run whose texts try to be more than texts: in queries, answers, chunks, labels, claims, causes, prompts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.browser.runs import CLAIM_REASON, REMEDY, SYSTEM, Study
from tests.unit.rows import make_chunk

SCRIPT = "</script><script>alert(1)</script>"
IMAGE = "<img src=x onerror=alert(1)>"
LINK = '[click](javascript:alert(1)) <a href="javascript:alert(1)">here</a> javascript:alert(1)'
COMMENT = "<!--<script>alert(1)"
CLOSED = "]]></style></title></textarea>{{ 7 * 7 }}${alert(1)}"
QUOTES = "\"' onmouseover=alert(1) x='"
TURNED = "turned \u202eto the end of its element"
NUL = "before\x00after \x1b[31m\x7f"
ALL = f"{SCRIPT} {IMAGE} {LINK} {COMMENT} {CLOSED} {QUOTES} {NUL} {TURNED}"
LONG_ENDS = "the last word of a million"
LONG = "long words. " * 90_000 + LONG_ENDS
UNBROKEN = "W" * 20_000
LONE, HALF = "LONE-SURROGATE", r"\ud800"
_ESCAPED = json.dumps(ALL)[1:-1]


@dataclass
class Hostile(Study):
    """A study in which trial q000 of e3 is hostile everywhere, q001 long, q002 unbroken, and q003 cut in a letter."""

    def __post_init__(self) -> None:
        self.cases = 5
        self.queries = {"q000": ALL, "q001": f"{TURNED} and then", "q002": UNBROKEN}
        self.labels = {"q000": {"topic": ALL, IMAGE: SCRIPT}}
        self.truths = {"q000": ALL}
        self.texts = {
            ("e3", "q000"): _everywhere(ALL),
            ("e2", "q000"): _everywhere(f"{ALL} of e2"),
            ("e2", "q001"): {"abstained": False, "llm_answer": "You may return it. Ask the desk. [Source 1]"},
            ("e3", "q001"): {"abstained": False, "llm_answer": LONG, "raw_output": LONG},
            ("e3", "q002"): {"abstained": False, "llm_answer": UNBROKEN},
            ("e3", "q003"): {"llm_answer": f"a letter that was cut: {LONE}"},
        }

    def write(self, output: Path) -> Path:
        """Write the folder, then what other programs may have written: half a letter, and what a judge may say."""
        super().write(output)
        for file in [*output.glob("*.jsonl"), *output.glob("*/*.json*")]:
            text = file.read_text().replace(REMEDY, _ESCAPED).replace(LONE, HALF)
            for said in (CLAIM_REASON, SYSTEM):
                text = text.replace(said, f"{_ESCAPED} {HALF}")
            file.write_text(text)
        return output


def _everywhere(text: str) -> Mapping[str, Any]:
    chunk = make_chunk(f"{IMAGE}.md#chunk_0", text=f"{text} within 30 days of delivery {text}")
    chunk["metadata"] = {"filename": f"{IMAGE}.md", "section": text, "version": text, "date": text}
    return {
        "retrieved_chunks": [chunk],
        "candidates": [{"chunk_id": f"{IMAGE}.md#chunk_0", "score": 0.5, "scores": {IMAGE: 0.5}}],
        "llm_answer": f"{text} [Source 1] [Source 7]",
        "raw_output": text,
        "citations": [1],
        "invalid_citations": [7],
        "abstained": False,
        "reasoning_steps": [text],
        "inputs": {IMAGE: text},
        "ground_truth": text,
        "model": text,
        "stages": [{"name": text, "ms": 1.0, "calls": [{"role": text, "model": text}], "detail": {text: text}}],
        "decisions": [{"name": text, "outcome": text, "reason": text}],
    }
