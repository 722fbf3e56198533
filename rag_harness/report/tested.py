"""Which measures of two runs are tested: those that gates are on, else one of what is found and one of answers.

Each further test makes p of all others larger, so measures that nobody asked for are shown and not tested.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

RETRIEVAL = ("recall@5", "evidence_recall", "recall@10", "recall@3", "recall@1", "context_precision", "mrr@10")
ANSWERS = (
    "correct", "answer_correctness", "nugget_recall", "expectations", "g_mean", "factuality", "faithfulness",
    "token_f1", "answer_relevancy",
)  # fmt: skip
"""Measures of what is found and of what is answered, the most telling first."""


def tested_measures(known: Sequence[str], asked: Collection[str], gated: Collection[str]) -> set[str]:
    """Return which of the measures that both runs have are tested.

    Args:
        known: the measures that both runs have values of.
        asked: those that somebody has named for this comparison.
        gated: those that the gates of the later run are on.
    """
    for wanted in (asked, gated):
        if found := set(known) & set(wanted):
            return found
    usual = [next((name for name in order if name in known), "") for order in (RETRIEVAL, ANSWERS)]
    return set(filter(None, usual)) or set(known)
