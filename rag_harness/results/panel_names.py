"""Names a panel of judges and its judges, as scores and runs have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


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
