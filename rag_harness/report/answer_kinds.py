"""The categories of many answers at once, by the rules of ``measures.judged.categories``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rag_harness.measures.judged.categories import (
    ANSWERED_UNANSWERABLE,
    CATEGORIES,
    CORRECT_ABSTENTION,
    RULES,
    UNCLASSIFIED,
    UNMEASURED,
    WRONG_ABSTENTION,
)
from rag_harness.report.blocks.block import Mask, MeasureArrays


def answer_kinds(parts: Sequence[MeasureArrays], abstained: Mask, answerable: Mask) -> list[str]:
    """Return the category of each answer. Where two rules hold, the first one counts.

    Args:
        parts: the scores of ``PARTS``, in their order.
        abstained: which answers decline.
        answerable: which questions the documents can answer.
    """
    lacks = np.logical_or.reduce([part.absent != 0 for part in parts])
    values = [part.values for part in parts]
    holds = {WRONG_ABSTENTION: abstained & answerable, CORRECT_ABSTENTION: abstained}
    holds |= {ANSWERED_UNANSWERABLE: ~answerable, UNMEASURED: lacks}
    holds |= {name: rule(*values) for name, rule in RULES.items()}
    numbers = np.select(
        list(holds.values()), [CATEGORIES.index(name) for name in holds], CATEGORIES.index(UNCLASSIFIED)
    )
    return [CATEGORIES[number] for number in numbers.tolist()]
