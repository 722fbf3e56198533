"""Names of experiments whose conversations go on from their own answers: ``c1-own``, beside ``c1``.

Asked with the reference replies as history, or with its own answers, a pipeline is asked other questions. So these are
two experiments, with rows, files and gates of their own.
"""

from __future__ import annotations

OWN_HISTORY = {"history": "own"}
"""The ingredient of such an experiment."""
_OWN = "-own"


def own_name(experiment: str) -> str:
    """Return the name of an experiment where its own answers are the history."""
    return experiment if is_own_name(experiment) else f"{experiment}{_OWN}"


def is_own_name(experiment: str) -> bool:
    """Return whether the name says that the history is the experiment's own answers."""
    return experiment.endswith(_OWN)


def without_history(experiment: str) -> str:
    """Return the name without what it says of the history: whose pipeline answers."""
    return experiment.removesuffix(_OWN)
