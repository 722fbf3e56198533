"""Says why trials of a run were not asked: the budget was spent, or a turn before them failed."""

from __future__ import annotations

from collections.abc import Collection

_BUDGET = "budget: "


def not_run_said(reasons: Collection[str]) -> str:
    """Return how many trials were not asked, and why."""
    others = [why for why in reasons if not why.startswith(_BUDGET)]
    spent = len(reasons) - len(others)
    said = [f"not run for lack of budget: {_trials(spent)}"] if spent else []
    said += [f"not run: {_trials(len(others))}, the first because {others[0]}"] if others else []
    return "; ".join(said)


def not_run_lines(reasons: Collection[str]) -> list[str]:
    """Return the same for the terminal, with what to do."""
    others = [why for why in reasons if not why.startswith(_BUDGET)]
    spent = len(reasons) - len(others)
    lines = []
    if spent:
        lines += [f"not run: budget: {_trials(spent)}. What is done is kept: raise --rag-budget and run again."]
    if others:
        lines += [f"not run: {_trials(len(others))} behind turns without an answer; the first because {others[0]}"]
    return lines


def _trials(n: int) -> str:
    return f"{n} trial" if n == 1 else f"{n} trials"
