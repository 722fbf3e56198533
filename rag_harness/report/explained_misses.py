"""What ``rag-harness explain`` says of the golden suite: every miss, or one question whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rag_harness.measures.golden_run import RetrievalResult
from rag_harness.report.brief.looked_up import place_said
from rag_harness.report.misses import explain_miss, missed
from rag_harness.report.retrieved import read_retrievals
from rag_harness.report.wording import counted
from rag_harness.results.manifest import RunManifest
from rag_harness.types import GOLDEN, TrialId

_MOST = 40


def every_miss(output: Path, manifest: RunManifest) -> list[str]:
    """Return the misses of the golden suite, each with what was expected, at which rank it was, and what came instead.

    Empty where the suite did not run.

    Raises:
        DataError: the cases are missing or damaged.
    """
    if GOLDEN not in manifest.suites:
        return []
    where = place_said(int(manifest.settings.get("k") or 10))
    results = list(read_retrievals(output, manifest))
    misses, lost = [result for result in results if not result.found], manifest.suites[GOLDEN].lost
    lines = [f"golden: {len(misses):,} of {counted(len(results), 'question')} missed: no expected document {where}"]
    lines += [f"golden: {counted(len(lost), 'question')} left no result; the log says why"] if lost else []
    return [*lines, *(line for result in misses[:_MOST] for line in missed(result)), *_where_all(misses, output)]


def one_question(output: Path, manifest: RunManifest, trial: str) -> list[str]:
    """Return what was looked up for a question of the golden suite, by its id ``golden-q1``; empty if there is none.

    Raises:
        DataError: the cases are missing or damaged.
    """
    for result in read_retrievals(output, manifest) if trial.startswith(f"{GOLDEN}-") else ():
        if str(TrialId(GOLDEN, result.case_id)) == trial:
            return [
                *([f"{trial} is no miss: rank {result.rank}"] if result.found else []),
                *explain_miss(result).split("\n"),
            ]
    return []


def _where_all(misses: list[RetrievalResult], output: Path) -> Iterator[str]:
    if misses:
        more = f"{len(misses) - _MOST} more misses are not shown; " if len(misses) > _MOST else ""
        yield ""
        yield f"{more}a file of all misses: run again with --rag-misses=misses.jsonl"
        yield f"one whole: rag-harness explain {output} {TrialId(GOLDEN, misses[0].case_id)}"
