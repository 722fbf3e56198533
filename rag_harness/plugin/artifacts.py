"""What a run leaves behind beside its rows: aggregates for machines, misses, TREC files, a baseline."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from datetime import datetime, timezone
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from rag_harness.errors import SettingsError
from rag_harness.files.atomic import write_atomically
from rag_harness.files.sources import file_digest
from rag_harness.measures.answers import ANSWER_MEASURES
from rag_harness.report.baseline import SavedRun, saved_suite
from rag_harness.report.speed import stage_quantiles
from rag_harness.report.summary import total_cost

if TYPE_CHECKING:
    from pathlib import Path

    from rag_harness.gates import Verdict
    from rag_harness.golden.run import RetrievalResult
    from rag_harness.plugin.session import RagSession
    from rag_harness.report.scores import SuiteTable
    from rag_harness.results.row import ExperimentResult
    from rag_harness.settings import Settings

RANKING_MEASURES = (
    "recall@1", "recall@3", "recall@5", "recall@10", "precision@5", "hit@5", "all@5", "mrr@10", "map@10", "ndcg@10",
    "r_precision",
)  # fmt: skip


def measures_of(suite: str, k: int) -> list[str]:
    """Return the measures that are kept of a suite."""
    cutoff = [f"recall@{k}", f"mrr@{k}", f"ndcg@{k}"]
    ranking = list(dict.fromkeys([*RANKING_MEASURES, *(cutoff if suite == "golden" else ())]))
    return ranking if suite == "golden" else [*ranking, *ANSWER_MEASURES]


def write_summary_file(settings: Settings, tables: Mapping[str, SuiteTable], verdicts: list[Verdict]) -> Path:
    """Write ``summary.json``: every aggregate of this run, by experiment and for ``golden``."""
    suites = {name: _aggregates(name, table, settings.k) for name, table in tables.items() if table.cases}
    gates = [_verdict(each) for each in verdicts]
    file = settings.path(settings.output) / "summary.json"
    content: dict[str, Any] = {**suites, "gates": gates, "profile": settings.profile, "mode": settings.mode}
    write_atomically(file, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())
    return file


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "gate": str(verdict.gate),
        "state": verdict.state,
        "value": verdict.value,
        "threshold": verdict.threshold,
        "interval": list(verdict.interval) if verdict.interval else None,
        "n": verdict.n,
        "reason": verdict.reason,
    }


def _aggregates(name: str, table: SuiteTable, k: int) -> dict[str, Any]:
    measures = measures_of(name, k)
    measured = {measure: value for measure, value in table.aggregate(measures).items() if value is not None}
    by_type = {
        key: {"n": table.selected_of({"query_type": key}), **{m: v for m, v in values.items() if v is not None}}
        for key, values in table.by("query_type", measures).items()
    }
    return {
        "n": table.selected_of({}),
        "total": table.total_of({}),
        "lost": table.lost_of({}),
        **measured,
        "by_query_type": by_type,
        **_times_and_cost([case.row for case in table.cases.values() if case.row]),
    }


def _times_and_cost(rows: list[ExperimentResult]) -> dict[str, Any]:
    """Return what only the rows of an experiment know; nothing of the golden suite."""
    return {"stages_ms": stage_quantiles(rows), "cost_usd": total_cost(rows)} if rows else {}


def write_misses(settings: Settings, results: Mapping[str, RetrievalResult]) -> None:
    """Write the misses as JSONL, where --rag-misses names a file."""
    if settings.misses:
        misses = [result for result in results.values() if not result.found]
        lines = "".join(result.model_dump_json() + "\n" for result in misses)
        write_atomically(settings.path(settings.misses), lines.encode())


def export_trec(settings: Settings, results: Mapping[str, RetrievalResult]) -> None:
    """Write run and qrels for trec_eval, where --rag-export names a folder.

    Raises:
        SettingsError: the export is not of the form ``trec:DIR``.
    """
    if not settings.export:
        return
    from rag_harness.dataset.trec import write_qrels, write_run

    kind, _, folder = settings.export.partition(":")
    if kind != "trec" or not folder:
        raise SettingsError(f"rag_export is {settings.export!r}. Name a folder: trec:DIR")
    where = settings.path(folder)
    # A place that no document takes (a second hit of one) is a name that no judgement has.
    run = {each: [name.replace("\0", "").replace(" ", "_") for name in r.ranked] for each, r in results.items()}
    qrels = {each: {name.replace(" ", "_"): gain for name, gain in r.relevant.items()} for each, r in results.items()}
    write_run(where / "run.trec", run, settings.retriever)
    write_qrels(where / "qrels.trec", qrels)


def saved_run(session: RagSession, tables: Mapping[str, SuiteTable]) -> SavedRun:
    """Return this run as a baseline: values of every case, and what the run was made of."""
    settings = session.settings
    suites = {name: saved_suite(table, measures_of(name, settings.k)) for name, table in tables.items() if table.cases}
    return SavedRun(
        date=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        commit=_commit(settings.path(".")),
        packages={name: version(name) for name in _PACKAGES},
        fingerprint={
            "data": _data(session, suites),
            "models": _only(settings, _MODELS),
            "settings": _only(settings, _OTHER),
        },
        suites=suites,
    )


def on_common_data(now: SavedRun, before: SavedRun) -> tuple[SavedRun, SavedRun]:
    """Leave out the data of suites that only one of the runs has: what is not compared need not be the same."""
    shared = set(now.suites) & set(before.suites)
    kept = {"documents", *({"golden"} & shared), *(["queries"] if shared - {"golden"} else [])}

    def reduced(run: SavedRun) -> SavedRun:
        data = {key: value for key, value in run.fingerprint.get("data", {}).items() if key in kept}
        return run.model_copy(update={"fingerprint": {**run.fingerprint, "data": data}})

    return reduced(now), reduced(before)


_PACKAGES = ("rag-harness", "numpy", "qdrant-client", "openai", "PyStemmer")
_MODELS = ("profile", "mode", "chat_model", "embed_model", "rerank_model", "retriever")
_OTHER = ("top_k", "candidates", "chunk_size", "chunk_overlap", "temperature", "seed", "embed_max_tokens", "k")


def _only(settings: Settings, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in names}


def _data(session: RagSession, suites: Mapping[str, Any]) -> dict[str, str]:
    """Return the digests of what two runs must share to be comparable, of the suites that ran."""
    settings, data = session.settings, {}
    if set(suites) - {"golden"}:
        data["queries"] = file_digest(settings.queries_path)
    if "golden" in suites:
        golden = settings.path(settings.golden)
        data["golden"] = settings.dataset or file_digest(golden)
    data["documents"] = session.parts.data().digest
    return data


def _commit(folder: Path) -> str:
    try:
        found = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, timeout=5, check=False
        )
    except OSError:
        return ""
    return found.stdout.strip() if found.returncode == 0 else ""
