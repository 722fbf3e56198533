"""A run as a results file of promptfoo (version 3), which ``promptfoo import FILE`` takes: a result a trial.

A trial passes where it has an answer that keeps all that is expected of it. Each measure is a named score. Experiments
are prompts; their verdicts stand in the description.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from rag_harness.errors import DataError
from rag_harness.exports.destination import Destination
from rag_harness.exports.scored_run import ScoredRun
from rag_harness.exports.scored_traces import ScoredTrace, scored_traces
from rag_harness.files.atomic import write_atomically

_FILE = "promptfoo.json"
_NO_FAILURE, _BY_ASSERTION, _BY_ERROR = 0, 1, 2
"""promptfoo's reasons of failures."""
_EXPECTED = "expectations"
_UNMEASURED = "what is expected of it was not measured"
Body = dict[str, Any]


def to_promptfoo(run: ScoredRun, destination: Destination) -> Sequence[str]:
    """Write the file, into a folder or as the file that is named.

    Raises:
        DataError: the place is a folder that is a file, or it cannot be written.
    """
    place = destination.place
    file = place if place.suffix == ".json" else place / _FILE
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        results = _results(run, destination)
        content = _file(run, results)
        write_atomically(file, (json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n").encode())
    except OSError as error:
        raise DataError(
            f"{file} cannot be written: {error.strerror or error}. Name another place: -o FILE.json"
        ) from None
    return [f"{file}: {len(results):,} results. To see them: promptfoo import {file}"]


def _results(run: ScoredRun, destination: Destination) -> list[Body]:
    number_of = {name: number for number, name in enumerate(run.trials.experiments)}
    asked: dict[str, int] = {}
    found = []
    for trace in scored_traces(run, destination.output):
        if trace.query_id:
            test = asked.setdefault(trace.query_id, len(asked))
            found.append(_result(trace, number_of[trace.experiment], test))
    return found


def _result(trace: ScoredTrace, prompt: int, test: int) -> Body:
    scores = {each.name: each.value for each in trace.scores if each.value is not None}
    is_unmeasured = trace.owes and _EXPECTED not in scores
    score = 0.0 if trace.error or is_unmeasured else scores.get(_EXPECTED, 1.0)
    passed = score == 1.0
    why = trace.error or (_UNMEASURED if is_unmeasured else "" if passed else f"keeps {score:.0%} of what is expected")
    variables = {"query": trace.asked}
    return {
        "promptIdx": prompt,
        "testIdx": test,
        "promptId": trace.experiment,
        "provider": {"id": trace.experiment, "label": trace.experiment},
        "prompt": {"raw": trace.asked, "label": trace.experiment},
        "vars": variables,
        "testCase": {"vars": variables, "description": trace.query_id, "metadata": dict(trace.labels)},
        "response": {"output": trace.answer},
        **({"error": trace.error} if trace.error else {}),
        "success": passed,
        "failureReason": _NO_FAILURE if passed else _BY_ERROR if trace.error else _BY_ASSERTION,
        "score": score,
        "namedScores": scores,
        "gradingResult": {"pass": passed, "score": score, "reason": why, "namedScores": scores},
        "latencyMs": round((trace.end - trace.start).total_seconds() * 1000),
        "cost": scores.get("cost_usd", 0.0),
        "metadata": dict(trace.labels),
    }


def _file(run: ScoredRun, results: Sequence[Body]) -> Body:
    time = datetime.fromisoformat(run.manifest.date).isoformat()
    verdicts = [f"{gate['state']}: {gate['gate']}" for gate in run.gates]
    return {
        "evalId": f"eval-{run.identity[:3]}-{time[:19]}",
        "results": {
            "version": 3,
            "timestamp": time,
            "prompts": [_prompt(name, results) for name in run.trials.experiments],
            "results": list(results),
            "stats": _counts(results),
        },
        "config": {"description": "; ".join([f"rag-harness {time}", *verdicts])},
        "shareableUrl": None,
    }


def _prompt(name: str, results: Sequence[Body]) -> Body:
    own = [each for each in results if each["promptId"] == name]
    counts = _counts(own)
    sums: dict[str, float] = {}
    for each in own:
        for measure, value in each["namedScores"].items():
            sums[measure] = sums.get(measure, 0.0) + value
    metrics = {
        "score": sum(each["score"] for each in own),
        "testPassCount": counts["successes"],
        "testFailCount": counts["failures"],
        "testErrorCount": counts["errors"],
        "assertPassCount": counts["successes"],
        "assertFailCount": counts["failures"],
        "totalLatencyMs": sum(each["latencyMs"] for each in own),
        "tokenUsage": counts["tokenUsage"],
        "namedScores": sums,
        "namedScoresCount": {measure: sum(measure in each["namedScores"] for each in own) for measure in sums},
        "cost": sum(each["cost"] for each in own),
    }
    return {"id": name, "raw": name, "label": name, "provider": name, "metrics": metrics}


def _counts(results: Sequence[Mapping[str, Any]]) -> Body:
    errors = sum("error" in each for each in results)
    successes = sum(bool(each["success"]) for each in results)
    return {
        "successes": successes,
        "failures": len(results) - successes - errors,
        "errors": errors,
        "tokenUsage": {"total": 0, "prompt": 0, "completion": 0, "cached": 0, "numRequests": 0},
    }
