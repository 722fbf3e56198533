"""The message of a failed trial: what was asked, what was found, why it failed, and what shows the whole trial."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from rag_harness.measures.golden_run import RetrievalResult
from rag_harness.report.misses import cut, where_found
from rag_harness.results.row import ExperimentResult

WIDTH = 80
_LABEL = 9
_MOST_LINES = 6
"""Of an error: its last words often say what to do."""
_MOST_NAMED = 3


def trial_failed(row: ExperimentResult, why: Sequence[str], output: str) -> str:
    """Return the message of a trial whose test failed.

    Args:
        row: the trial's result.
        why: lines that the test says; empty if it says no more than that there is no answer.
        output: folder of the run, as the user names it.
    """
    found = row.llm_answer if row.ok else "no answer"
    lines = [*(() if row.ok else _wrapped(row.error_text)), *why]
    return _message(row.query, found, lines, f"rag-harness explain {output} {row.trial}")


def entry_failed(result: RetrievalResult, command: str) -> str:
    """Return the message of an entry of the golden set that failed."""
    found = ", ".join(dict.fromkeys(hit.document for hit in result.top)) or "nothing"
    expected = f"{', '.join(result.expected)}: {where_found(result)}"
    return _message(result.query, found, _wrapped(result.error or expected), command)


def others_alike(trials: Sequence[str]) -> str:
    """Return the line that says which other trials failed for the same reason."""
    named = ", ".join([*trials[:_MOST_NAMED], *(["…"] if len(trials) > _MOST_NAMED else [])])
    return f"{'alike':{_LABEL}}{len(trials):,} more: {named}"


def _message(asked: str, found: str, why: Sequence[str], command: str) -> str:
    said = [("asked", cut(asked, WIDTH - _LABEL)), ("found", cut(found, WIDTH - _LABEL))]
    reasons = [("" if number else "why", line) for number, line in enumerate(why)]
    return "\n".join(f"{label:{_LABEL}}{text}" for label, text in [*said, *reasons, ("command", command)])


def _wrapped(text: str) -> list[str]:
    flat = " ".join(text.split())
    return textwrap.wrap(flat, WIDTH - _LABEL, break_on_hyphens=False, max_lines=_MOST_LINES, placeholder=" …")
