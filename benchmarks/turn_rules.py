"""How often can a judge without a chat model tell what is asked of turns, and which text stands best for a follow-up?

    python benchmarks/turn_rules.py [fit|report]

The answers are the reference replies of data/kb/conversations.jsonl, and answers that are wrong on purpose. Relevancy:
how often the right reply is nearer to the question than one of another conversation, and than another one of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rag_harness.core.settings.loading import load_settings
from rag_harness.core.text.refusals import declines
from rag_harness.core.types import Message
from rag_harness.evaluation.judges.conversations import OWN_WORDS
from rag_harness.evaluation.judges.factory import create_judge, judged
from rag_harness.evaluation.measures import parts_of
from rag_harness.evaluation.measures.opinion import Judge, Material, also_asking_of_turns, kinds_named, turn_material
from rag_harness.pipelines.parts import RunParts

DATA = Path(__file__).parents[1] / "data" / "kb" / "conversations.jsonl"
MEASURES = ("retention", "correction", "asks_back")
_FIGURE = re.compile(r"\d+")


class Turn(NamedTuple):
    """A turn with the turns before it."""

    conversation: str
    said: list[Any]
    turn: Any

    @property
    def history(self) -> list[Message]:
        """What was said before it."""
        pairs = ((Message("user", t["query"]), Message("assistant", t["ground_truth"])) for t in self.said)
        return [each for pair in pairs for each in pair]


def turns_of(part: str) -> list[Turn]:
    """Return the turns of the conversations of a part."""
    read = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
    kept = [each for each in read if each["metadata"]["part"] == part]
    return [Turn(c["conversation"], c["turns"][:n], turn) for c in kept for n, turn in enumerate(c["turns"])]


def answers(turn: Turn) -> Iterator[tuple[str, str]]:
    """Yield answers with what they are."""
    yield "the reference reply", turn.turn["ground_truth"]
    yield "yes", "Yes, that is right."
    yield "which", "Which one do you mean?"
    if turn.said:
        before = turn.said[-1]["ground_truth"]
        yield "the reply before", before
        if figure := _FIGURE.search(before):
            changed = f"{before[: figure.start()]}{int(figure[0]) + 7}{before[figure.end() :]}"
            yield "the reply before, a figure changed", changed


async def told(judge: Judge, turn: Turn, answer: str) -> dict[str, str]:
    """Return what the judge says of an answer by measure: 1, 0 or null."""
    of, measures = turn.turn, parts_of(MEASURES)
    plain = Material(of["query"], answer, (), of["ground_truth"], abstained=declines(answer))
    material = turn_material(plain, turn.history, kinds_named(of["metadata"]["turn_kind"]))
    scores = await judged(also_asking_of_turns(material, measures), measures, judge)
    defined = {name: score.value for name, score in scores.items() if not score.undefined}
    return {name: "null" if value is None else str(int(value >= 0.5)) for name, value in defined.items()}


async def rules(judge: Judge, turns: list[Turn]) -> None:
    """Print how often each is said."""
    found: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for turn in turns:
        for what, answer in answers(turn):
            for name, said in (await told(judge, turn, answer)).items():
                found[name, what][said] += 1
    for (name, what), counts in sorted(found.items()):
        print(f"{name:10} {what:36} 1: {counts['1']:3}  0: {counts['0']:3}  null: {counts['null']:3}")


Text = Callable[[Turn], str]
TEXTS: dict[str, Text] = {
    "its own words": lambda turn: str(turn.turn["query"]),
    "the user's turn before": lambda turn: " ".join([*(t["query"] for t in turn.said[-1:]), turn.turn["query"]]),
    "all that was asked": lambda turn: " ".join([*(t["query"] for t in turn.said), turn.turn["query"]]),
    "the turn before with its reply": lambda turn: " ".join(
        [*(t[key] for t in turn.said[-1:] for key in ("query", "ground_truth")), turn.turn["query"]]
    ),
}


def relevancy(parts: RunParts, turns: list[Turn]) -> None:
    """Print how often the right reply is the nearer one."""
    embedder = parts.embedder()
    replies = _unit(embedder.embed_documents([str(turn.turn["ground_truth"]) for turn in turns]))
    near = {
        name: _unit(embedder.embed_queries([text(turn) for turn in turns])) @ replies.T for name, text in TEXTS.items()
    }
    near["weighed"] = OWN_WORDS * near["its own words"] + (1 - OWN_WORDS) * near["all that was asked"]
    for name, cosines in near.items():
        others, same = [], []
        for n, turn in enumerate(turns):
            if turn.said:
                beaten = cosines[n, n] > cosines[n]
                is_same = np.array([each.conversation == turn.conversation for each in turns])
                others.append(beaten[~is_same].mean())
                is_same[n] = False
                same.append(beaten[is_same].mean())
        print(f"{name:32} another conversation {np.mean(others):.1%}  the same {np.mean(same):.1%}")


def _unit(vectors: Any) -> Any:
    array = np.asarray(vectors, np.float64)
    return array / np.linalg.norm(array, axis=1, keepdims=True)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", default="report", choices=["fit", "report"])
    turns = turns_of(parser.parse_args().part)
    parts = RunParts(load_settings({"profile": "embedded", "mode": "live"}))
    asyncio.run(rules(create_judge(parts), turns))
    relevancy(parts, turns)


if __name__ == "__main__":
    main()
