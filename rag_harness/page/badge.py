"""How a run came out, in a few words: a badge, and the status of a commit."""

from __future__ import annotations

import json

from rag_harness.page.outcome import run_outcome
from rag_harness.page.run import Run
from rag_harness.report.summary import made_up

_COLORS = {"FAIL": "red", "UNDECIDED": "yellow", "PASS": "brightgreen", "NO VERDICT": "lightgrey"}


def badge_of(run: Run) -> str:
    """Return JSON of a badge, by shields.io's schema of endpoints (https://shields.io/badges/endpoint-badge).

    It counts gates and failed questions, and shows no figure of a measure, so that it is true at every number of
    cases. What is simulated or a placeholder is called so.
    """
    word, said = _verdict(run)
    shown = "no verdict" if word == "NO VERDICT" else said
    badge = {"schemaVersion": 1, "label": "RAG gates", "message": shown, "color": _COLORS[word]}
    return json.dumps(badge, ensure_ascii=False, indent=1) + "\n"


def status_by_gates(run: Run, has_succeeded: bool) -> tuple[str, str]:
    """Return state and description of the commit's status.

    Args:
        run: the run.
        has_succeeded: whether the suite ended with status 0. A verdict of the gates says nothing of its other tests,
            and whether an undecided gate stops a release is an option of the suite (``--rag-undecided``).
    """
    word, said = _verdict(run)
    if word == "NO VERDICT":
        return "error", f"{word}: {said}"
    if word == "FAIL" or has_succeeded:
        return "failure" if word == "FAIL" else "success", f"{word}: {said}"
    return "failure", f"The suite failed. {word}: {said}"


def _verdict(run: Run) -> tuple[str, str]:
    word, said = run_outcome(run.brief, run)
    words = dict.fromkeys(filter(None, map(made_up, run.brief.answered.authors)))
    return word, said.replace("`", "") + "".join(f" ({each})" for each in words)
