"""Says why trials of a run were not asked: the budget was spent, a turn failed, their tests were skipped."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rag_harness.results.manifest import SuiteRecord

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


def skipped_said(whys: Mapping[str, str]) -> str:
    """Return by whom cases were skipped, and why; the first reason where there are several."""
    reasons = [*dict.fromkeys(whys.values())]
    more = f" (and {len(reasons) - 1} more reason{'s' * (len(reasons) > 2)})" if len(reasons) > 1 else ""
    return f"skipped by {'its test' if len(whys) == 1 else 'their tests'}: {reasons[0]}{more}"


def skipped_lines(suites: Mapping[str, SuiteRecord]) -> Iterator[str]:
    """Yield how many trials of this run were skipped, and why, for each experiment that has some."""
    for name, record in sorted(suites.items()):
        if record.skipped and not record.made:
            n = len(record.skipped)
            yield f"{_trials(n)} of {name} {'was' if n == 1 else 'were'} {skipped_said(record.skipped)}"


def _trials(n: int) -> str:
    return f"{n} trial" if n == 1 else f"{n} trials"
