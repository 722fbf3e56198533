"""Which page each direct question is about: a seeded weighted draw over the current pages.

A page weighs as many tickets as it has sections, and is drawn at most three times. The current page of each version
pair is drawn three times beforehand, so that at least fifteen questions ask about facts on which versions disagree.

    python data/draw_pages.py        prints one line a question: query_id and filename
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from pathlib import Path

KB = Path(__file__).parent / "kb"
QUESTIONS, MOST, SEED = 120, 3, 20260601


def draw() -> list[str]:
    """Return the filename of each direct question, in the order of their ids."""
    plan = json.loads((KB / "structure.json").read_text(encoding="utf-8"))
    current = {page["id"]: page["filename"] for page in plan["pages"] if page["status"] == "current"}
    drawn = [current[pair["current"]] for pair in plan["version_pairs"] for _ in range(MOST)]
    weights = {name: _sections(KB / name) for name in current.values()}
    chance = random.Random(SEED)
    while len(drawn) < QUESTIONS:
        count = Counter(drawn)
        open_pages = [name for name in weights if count[name] < MOST]
        drawn += chance.choices(open_pages, [weights[name] for name in open_pages])
    return sorted(drawn)


def _sections(file: Path) -> int:
    return len(re.findall(r"^##+ ", file.read_text(encoding="utf-8"), re.MULTILINE))


if __name__ == "__main__":
    for number, name in enumerate(draw(), 1):
        print(f"q_direct_{number:03}  {name}")
