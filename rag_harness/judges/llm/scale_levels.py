"""Reads how far up a scale an answer is from the probabilities of the levels' numbers (G-Eval, 2303.16634)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp

from rag_harness.expectations.rubrics import Criterion
from rag_harness.judges.llm.judge_chat import JudgeChat, prompt
from rag_harness.judges.llm.marked_texts import numbered
from rag_harness.measures.judged.criteria import LevelReached

_ENOUGH = 0.5
"""Probability that the numbers of levels must have together. Below it, the model was about to say something else."""


async def ask_level(asking: JudgeChat, question: str, answer: str, scale: Criterion) -> LevelReached | None:
    """Return how far up the scale an answer is, from one call; None where the model states no probabilities."""
    sections = [
        ("question", question),
        ("answer", answer),
        ("scale", scale.text),
        *numbered("level", scale.levels),
    ]
    return level_of(await asking.first_token(prompt("fused_scale"), sections), scale.levels)


def level_of(logprobs: Mapping[str, float], levels: Sequence[str]) -> LevelReached | None:
    """Return the mean level by the probabilities of their numbers; None where these are not most of what was likely.

    Args:
        logprobs: natural logarithm of the probability of each first token of the reply.
        levels: names of the levels, the worst first.
    """
    found = [0.0] * len(levels)
    for token, logprob in logprobs.items():
        number = token.strip()
        if number.isascii() and number.isdigit() and 1 <= int(number) <= len(levels):
            found[int(number) - 1] += exp(logprob)
    total = sum(found)
    if total < _ENOUGH:
        return None
    value = sum(place * p for place, p in enumerate(found)) / (total * (len(levels) - 1))
    likely = max(range(len(levels)), key=lambda place: found[place])
    return LevelReached(value, f"{levels[likely]} (p = {found[likely] / total:.2f})")
