"""An experiment as a run of Weights & Biases; the only file that knows its client.

Its names have letters, digits and ``_`` only: ``recall@5`` is ``recall_5``, with ``recall_5_low`` and
``recall_5_high`` beside it. A run has an id made of scores and verdicts, so a second export writes the same run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from rag_harness.errors import DataError, PrerequisiteError
from rag_harness.exports.destination import Destination
from rag_harness.exports.scored_run import ScoredRun
from rag_harness.registry import missing_package

_REFUSED = re.compile(r"[^A-Za-z0-9_]")
_ID = re.compile(r"[^A-Za-z0-9_\-]")


def to_wandb(run: ScoredRun, destination: Destination) -> Sequence[str]:
    """Make a run for each experiment, with means, intervals and verdicts as its summary.

    Raises:
        PrerequisiteError: the client is not installed, has no key, or its server does not answer.
        DataError: two measures have one name there.
    """
    try:
        import wandb
    except ImportError as error:
        raise PrerequisiteError(missing_package("export to Weights & Biases", error)) from error
    settings = wandb.Settings(console="off", silent=True, **({"base_url": destination.url} if destination.url else {}))
    try:
        return [_export(wandb, settings, run, destination.project, name) for name in run.trials.experiments]
    except wandb.errors.Error as error:
        raise PrerequisiteError(f"Weights & Biases did not take the scores: {error}") from error


def _export(client: Any, settings: Any, run: ScoredRun, project: str, name: str) -> str:
    summary = _summary(run, name)
    own = {
        "id": _ID.sub("-", f"{run.identity}-{name}"),
        "name": f"{name} {run.manifest.date}",
        "config": {"experiment": name, "commit": run.manifest.commit, "date": run.manifest.date},
    }
    made = client.init(project=project, resume="allow", settings=settings, **own)
    made.summary.update(summary)
    made.finish()
    return f"{name}: run {own['id']}, {len(summary):,} values"


def _summary(run: ScoredRun, name: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in run.scores:
        if each.experiment == name:
            key = summary_name(f"{each.measure} {each.slice}".strip())
            if key in found:
                raise DataError(f"{each.measure!r} has the name {key!r} in Weights & Biases, as another measure has.")
            low, high = each.interval or (None, None)
            values = {key: each.value, f"{key}_low": low, f"{key}_high": high, f"{key}_n": each.n}
            found |= {name: value for name, value in values.items() if value is not None}
    gates = run.gates_of(name)
    found |= {f"gate_{number:02}": f"{gate['state']}: {gate['gate']}" for number, gate in enumerate(gates, 1)}
    if gates:
        states = {str(gate["state"]) for gate in gates}
        found["gates"] = "passed" if states == {"passed"} else ", ".join(sorted(states))
    return found


def summary_name(said: str) -> str:
    """Return a name as Weights & Biases takes it: ``recall_5`` for ``recall@5``."""
    name = _REFUSED.sub("_", said.replace("query_type=", ""))
    return name if name[:1].isalpha() or name[:1] == "_" else f"_{name}"
