"""The tools that scores are exported to, by their names, and an experiment as a run of MLflow."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from rag_harness.core.errors import DataError, PrerequisiteError
from rag_harness.core.registry import missing_package
from rag_harness.page.exports.otlp import to_otlp
from rag_harness.page.exports.scored_run import (
    Destination,
    MeanScore,
    ScoredRun,
    Target,
    to_csv,
    to_parquet,
    write_tables,
)
from rag_harness.page.exports.traces import to_langfuse, to_phoenix

# An experiment as a run of MLflow; the only file that knows MLflow.
#
# MLflow takes no ``@`` in names: ``recall@5`` is ``recall/5``, with ``recall/5.low`` and ``recall/5.high`` beside it.

_REFUSED = re.compile(r"[^A-Za-z0-9_\-. :/]")
_IDENTITY, _WHOLE = "rag_harness.export", "rag_harness.whole"
_METRICS, _PARAMS = 1_000, 100
"""The most of them in a request."""
_LONGEST = 500
_KEPT = ("profile", "mode", "k", "seed", "chat_model", "embedding_model", "judge")
"""Settings that are parameters of a run."""


def to_mlflow(run: ScoredRun, destination: Destination) -> Sequence[str]:
    """Make a run of MLflow for each experiment, with metrics, verdicts and the tables as artifacts.

    A run that is there already is left as it is; one that was cut off is completed.

    Raises:
        PrerequisiteError: MLflow is not installed, or its server does not answer.
        DataError: two measures have one name in MLflow.
    """
    client, refusal = _client(destination.url)
    try:
        found = client.get_experiment_by_name(destination.project)
        kept_in = found.experiment_id if found else client.create_experiment(destination.project)
        return [_export(client, kept_in, run, name) for name in run.trials.experiments]
    except refusal as error:
        raise PrerequisiteError(f"MLflow did not take the scores: {error}") from error


def _client(url: str) -> tuple[Any, type[Exception]]:
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    try:
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException
    except ImportError as error:
        raise PrerequisiteError(missing_package("export to MLflow", error)) from error
    return MlflowClient(tracking_uri=url or None), MlflowException


def _export(client: Any, kept_in: str, run: ScoredRun, name: str) -> str:
    identity = f"{run.identity}-{name}"
    found = client.search_runs([kept_in], f"tags.`{_IDENTITY}` = '{identity}'")
    made = found[0] if found else None
    if made and made.data.tags.get(_WHOLE):
        return f"{name}: there already, as run {made.info.run_id}"
    time = int(datetime.fromisoformat(run.manifest.date).timestamp() * 1000)
    if made is None:
        tags = {_IDENTITY: identity, "rag_harness.commit": run.manifest.commit, **dict(_verdicts(run, name))}
        made = client.create_run(kept_in, start_time=time, tags=tags, run_name=f"{name} {run.manifest.date}")
    metrics = _metrics([each for each in run.scores if each.experiment == name], time)
    for start in range(0, len(metrics), _METRICS):
        client.log_batch(made.info.run_id, metrics=metrics[start : start + _METRICS])
    client.log_batch(made.info.run_id, params=_params(run)[:_PARAMS])
    with tempfile.TemporaryDirectory() as folder:
        write_tables(run, Path(folder), "csv")
        client.log_artifacts(made.info.run_id, folder)
    client.set_tag(made.info.run_id, _WHOLE, "yes")
    client.set_terminated(made.info.run_id, "FINISHED", time)
    return f"{name}: run {made.info.run_id}, {len(metrics):,} metrics, {len(run.gates_of(name)):,} verdicts"


def _verdicts(run: ScoredRun, name: str) -> Iterator[tuple[str, str]]:
    """Yield a tag a gate, and one that says whether all of them passed."""
    gates = run.gates_of(name)
    for number, gate in enumerate(gates, 1):
        yield f"gate.{number:02}", f"{gate['state']}: {gate['gate']}"[:_LONGEST]
    if gates:
        states = {str(gate["state"]) for gate in gates}
        yield "gates", "passed" if states == {"passed"} else ", ".join(sorted(states))


def _metrics(scores: Sequence[MeanScore], time: int) -> list[Any]:
    from mlflow.entities import Metric

    named: dict[str, str] = {}
    found = []
    for each in scores:
        said = f"{each.measure} {each.slice}".strip()
        name = metric_name(said)
        if named.setdefault(name, said) != said:
            raise DataError(f"{named[name]!r} and {said!r} are both {name!r} in MLflow. Rename one measure.")
        low, high = each.interval or (None, None)
        values = {name: each.value, f"{name}.low": low, f"{name}.high": high, f"{name}.n": float(each.n)}
        found += [Metric(key, value, time, 0) for key, value in values.items() if value is not None]
    return found


def metric_name(said: str) -> str:
    """Return a name as MLflow takes it: ``recall/5`` for ``recall@5``, ``_`` for what else it refuses."""
    return _REFUSED.sub("_", said.replace("@", "/").replace("query_type=", ""))[:200]


def _params(run: ScoredRun) -> list[Any]:
    from mlflow.entities import Param

    known = run.manifest.settings
    return [Param(name, str(known[name])[:_LONGEST]) for name in _KEPT if known.get(name) not in (None, "")]


TARGETS: Mapping[str, Target] = {
    "csv": to_csv,
    "parquet": to_parquet,
    "mlflow": to_mlflow,
    "langfuse": to_langfuse,
    "phoenix": to_phoenix,
    "otlp": to_otlp,
}
"""How a run is exported, by the tool's name."""

REMOVED: Mapping[str, str] = {
    "promptfoo": "There is no export to promptfoo; use --to csv, or rag-harness report for a page of all trials.",
    "wandb": "There is no export to Weights & Biases; use --to csv, whose scores.csv its client logs as a table.",
}
"""What is used in place of a target that was removed."""
