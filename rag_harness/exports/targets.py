"""The tools that scores are exported to, by their names."""

from __future__ import annotations

from collections.abc import Mapping

from rag_harness.exports.destination import Target
from rag_harness.exports.langfuse_traces import to_langfuse
from rag_harness.exports.mlflow_runs import to_mlflow
from rag_harness.exports.otlp_trials import to_otlp
from rag_harness.exports.phoenix_annotations import to_phoenix
from rag_harness.exports.table_files import to_csv, to_parquet

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
