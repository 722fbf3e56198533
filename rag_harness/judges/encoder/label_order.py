"""Which of a classifier's labels means that a claim is supported. The model says it; nobody guesses."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag_harness.errors import PrerequisiteError

SUPPORTING = ("entailment", "entails", "supported", "supports", "support", "grounded", "consistent", "factual", "yes")
OPPOSING = ("hallucinated", "hallucination", "unsupported", "not_supported", "ungrounded", "inconsistent", "no")
_UNNAMED = re.compile(r"label_?\d+|\d+", re.I)


def supporting_label(model: str, named: Sequence[str], published: Sequence[str]) -> int:
    """Return the place of the label that means support.

    Args:
        model: name of the model, for messages.
        named: the labels of its config, in their order.
        published: the labels by its authors' code. They count where the config has no names.

    Raises:
        PrerequisiteError: no label has a name, or none of them, or several, are known to mean support.
    """
    if all(_UNNAMED.fullmatch(label) for label in named):
        if len(published) != len(named):
            raise PrerequisiteError(
                f"The labels of {model!r} have no names ({', '.join(named) or 'none at all'}): nobody can tell which "
                f"one means that a claim is supported. If you know it, write it into its config.json, for example "
                f'"id2label": {{"0": "unsupported", "1": "supported"}}, and give that folder.'
            )
        named = published
    folded = [re.sub(r"[\s-]+", "_", label.strip().lower()) for label in named]
    found = [place for place, label in enumerate(folded) if label in SUPPORTING]
    if not found and len(folded) == 2:
        found = [place for place, label in enumerate(folded) if label not in OPPOSING]
    if len(found) != 1 or len(folded) < 2:
        raise PrerequisiteError(
            f"The labels of {model!r} are {', '.join(named)}: one of several must mean that a claim is supported, and "
            f"be called {', '.join(SUPPORTING[:-1])} or {SUPPORTING[-1]}."
        )
    return found[0]
