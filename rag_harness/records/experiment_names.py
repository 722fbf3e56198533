"""Names of experiments that derive from others: own history, simulated users, repeats and panels of judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rag_harness.core.files import json_digest

# Names of experiments whose conversations go on from their own answers, beside ``c1``: ``c1-own`` and ``c1-sim``.
#
# Asked with the reference replies as history, or with its own answers, a pipeline is asked other questions. So these
# are two experiments, with rows, files and gates of their own. The one that a simulated user asks is a third: the
# messages in ``c1-sim`` depend on the answers, and no figure mixes them with questions that people wrote.

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
    """Return the name without its suffix about the history: the name of the pipeline that answers."""
    return experiment.removesuffix(_OWN).removesuffix(_PLAYED)


# Names and fingerprints of repeats, and of simulated users. Tables import this module without the engine.


def repeat_name(experiment: str, repeat: int) -> str:
    """Return the name of the derived experiment whose rows are the repeat of this number, from 2."""
    return f"{experiment}+repeat{repeat}"


def repeat_fingerprint(fingerprint: str, repeat: int) -> str:
    """Return the fingerprint of a repeat's rows, from the fingerprint of the experiment."""
    return json_digest([fingerprint, f"+repeat{repeat}"])


def user_name(experiment: str) -> str:
    """Return the name of the derived experiment whose rows are the messages of this one's simulated user."""
    return f"{experiment}+user"


def user_fingerprint(fingerprint: str) -> str:
    """Return the fingerprint of the simulated user's messages, from the experiment's fingerprint."""
    return json_digest([fingerprint, "+user"])


def judge_label(judge: str, model: str) -> str:
    """Return the name of a judge within a panel: ``fused gpt-x``; a judge of this package without an LLM needs no
    model."""
    return judge if not model or model.partition("/")[0] == judge else f"{judge} {model}"


def panel_label(rule: str, judges: Sequence[tuple[str, str]]) -> str:
    """Return the name of a panel: ``panel of 2 (mean): embedded, fused gpt-x``. ``judges`` are names and models."""
    return f"panel of {len(judges)} ({rule}): {', '.join(judge_label(*each) for each in judges)}"


def silent_reason(silent: Mapping[str, str], judges: int) -> str:
    """Return why a panel has no value: which judges are silent, and why the first of them is."""
    (first, why), more = next(iter(silent.items())), len(silent) - 1
    others = f" (and {', '.join(list(silent)[1:])})" if more else ""
    are = "are" if more else "is"
    return f"{len(silent)} of the {judges} judges of the panel {are} silent: {first}{others}: {why or 'no verdict'}"
