"""Names of experiments whose conversations go on from their own answers, beside ``c1``: ``c1-own`` and ``c1-sim``.

Asked with the reference replies as history, or with its own answers, a pipeline is asked other questions. So these are
two experiments, with rows, files and gates of their own. So is the one that a simulated user asks: what is said in
``c1-sim`` depends on the answers, and no figure mixes it with questions that people wrote.
"""

from __future__ import annotations

OWN_HISTORY = {"history": "own"}
"""The ingredient of such an experiment."""
_OWN, _PLAYED = "-own", "-sim"


def own_name(experiment: str) -> str:
    """Return the name of an experiment where its own answers are the history."""
    return experiment if is_own_name(experiment) else f"{experiment}{_OWN}"


def is_own_name(experiment: str) -> bool:
    """Return whether the name says that the history is the experiment's own answers."""
    return experiment.endswith(_OWN)


def played_name(experiment: str) -> str:
    """Return the name of an experiment where a simulated user asks."""
    return experiment if is_played_name(experiment) else f"{experiment}{_PLAYED}"


def is_played_name(experiment: str) -> bool:
    """Return whether the name says that a simulated user asks."""
    return experiment.endswith(_PLAYED)


def without_history(experiment: str) -> str:
    """Return the name without what it says of the history: whose pipeline answers."""
    return experiment.removesuffix(_OWN).removesuffix(_PLAYED)
