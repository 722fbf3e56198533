"""How a run came out, in a word and a sentence: the head of a comment, of a page, of a badge, of a commit's status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rag_harness.page.run import Run
from rag_harness.report.brief import Brief, GatesState
from rag_harness.report.brief.gates_state import BAD, STATE_WORDS
from rag_harness.report.left_nothing import REST, left_nothing_lines
from rag_harness.report.wording import counted

SIGNS = {"FAIL": "❌", "UNDECIDED": "❔", "PASS": "✅", "NO VERDICT": "❔"}
"""Stands before each word."""


def run_outcome(brief: Brief, run: Run) -> tuple[str, str]:
    """Return how the run came out as a word, FAIL, UNDECIDED, PASS or NO VERDICT, and what failed and passed.

    What fails the run for pytest fails it here: a gate, a question, another test, a check that could not be made.
    """
    if run.begun is not None:
        return "NO VERDICT", f"the last run left no results; what follows is {REST}, and of this one"
    state, failed = brief.gates, brief.failures.said
    others = _others(state, brief.failures.unchecked)
    gates = _counted(state, others) if state.total else _why_none(run)
    if not failed:
        return state.verdict or "NO VERDICT", gates
    if state.failed:
        return "FAIL", "; ".join([gates, *failed])
    gates = ", ".join([*_none_failed(others), *_part(state)]) if state.total else gates
    return "FAIL", "; ".join(filter(None, [*failed, gates]))


def last_run_lines(run: Run) -> list[str]:
    """Return why the last run into the folder left no results, where it left none; it is said before all else."""
    return left_nothing_lines(run.begun, run.manifest.date) if run.begun is not None else []


def _others(state: GatesState, unchecked: Mapping[str, int]) -> list[tuple[int, str]]:
    """Return the number of gates of each verdict but failed. Those that fail the run by an option are said apart."""
    left = [(state.counts.get(name, 0) - unchecked.get(name, 0), word) for name, word in STATE_WORDS.items()]
    return [(n, word) for n, word in left if n > 0]


def _counted(state: GatesState, others: Sequence[tuple[int, str]]) -> str:
    """Return the number of gates of each verdict, that of the verdict of all first."""
    bad = sum(state.counts.get(name, 0) for name in BAD)
    said = [*([f"{bad:,} failed"] if state.verdict else []), *(f"{n:,} {word}" for n, word in others)]
    first = {"FAIL": "failed", "UNDECIDED": "undecided", "PASS": "passed", "": "not judged"}[state.verdict]
    ordered = sorted(said, key=lambda each: not each.endswith(f" {first}"))
    n, _, word = ordered[0].partition(" ")
    return ", ".join([f"{n} of {counted(state.total, 'gate')} {word}", *ordered[1:], *_part(state)])


def _none_failed(others: Sequence[tuple[int, str]]) -> list[str]:
    """Return the number of gates of each verdict, where none failed: ``1 gate passed, 2 undecided``."""
    found = sorted(others, key=lambda each: each[1] != "passed")
    return [f"{n:,} {word}" if place else f"{counted(n, 'gate')} {word}" for place, (n, word) in enumerate(found)]


def _part(state: GatesState) -> list[str]:
    return [state.part] if state.part else []


def _why_none(run: Run) -> str:
    if not run.summary:
        return "this folder has no summary.json of the run, which keeps the verdicts"
    return "no gate is set (`--rag-gate`, or `rag_gate` in the ini file)"
