"""One trial as its row has it, for a person who wants to see it whole: without an answer, or with one that is right."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from rag_harness.derived.attribution.causes_text import label_lines
from rag_harness.expectations import Kept, needs_model
from rag_harness.measures.correct import describe_disagreement
from rag_harness.measures.expectation_measures import found_in
from rag_harness.measures.judged.judged_expectations import EXPECTATIONS
from rag_harness.measures.judged.rubric_measure import PREFIX as RUBRIC
from rag_harness.measures.judged.rubric_measure import kept_of_rubrics
from rag_harness.measures.judged.turn_criteria import OF_TURNS
from rag_harness.pipelines.history_names import is_played_name, without_history
from rag_harness.report.wording import counted
from rag_harness.results.cases import CaseFile
from rag_harness.results.chat import chat_before, searched_for, turns_before
from rag_harness.results.manifest import RunManifest, of_run
from rag_harness.results.row import ExperimentResult, rows_in
from rag_harness.results.score import SCORES, Author, read_scores, row_digest
from rag_harness.types import GOLDEN, Case

_MOST_LINES = 12
_MOST_TURNS, _LINES_OF_MESSAGE = 6, 2
_LARGEST = 64 << 20
"""Bytes of rows that are read to say of one trial what it does not keep to."""


def row_of_trial(output: Path, manifest: RunManifest, trial: str) -> ExperimentResult | None:
    """Return the row of a trial of the run, by the id that pytest shows; None if there is none."""
    for name, record in manifest.suites.items():
        if name != GOLDEN and trial.startswith(f"{name}-"):
            is_of_run, row = of_run(record), None
            for each in rows_in(output / record.file):
                row = each if each.trial_id == trial and is_of_run(each) else row
            if row is not None:
                return row
    return None


def first_broken(output: Path, manifest: RunManifest, trial: str, measure: str) -> str:
    """Return the first expectation, or criterion of a rubric, that a trial does not keep, with what stands there.

    Empty without one, and where the file of rows is too large to be read for one trial.

    Args:
        output: folder of the run.
        manifest: the run.
        trial: the trial's id.
        measure: what the gate is on: of that of a rubric, its criteria are looked at, of any other the expectations.
    """
    files = {output / record.file for record in manifest.suites.values()}
    if sum(file.stat().st_size for file in files if file.is_file()) > _LARGEST:
        return ""
    row = row_of_trial(output, manifest, trial)
    if row is None or not row.ok:
        return ""
    of_rubric = RUBRIC in measure or measure in OF_TURNS
    found = _of_rubrics(_details(output, manifest, row), measure) if of_rubric else _expected(output, manifest, row)
    broken = [each for each in found if each.kept is False]
    first = next((each for each in broken if each.expectation.must), next(iter(broken), None))
    return f"{first.expectation}: {first.said}" if first else ""


def _of_rubrics(details: Mapping[str, Mapping[str, Any]], measure: str = "") -> list[Kept]:
    return kept_of_rubrics({name: said for name, said in details.items() if not measure or name in measure})


def _case_of(output: Path, manifest: RunManifest, row: ExperimentResult) -> Case | None:
    with closing(CaseFile(output, manifest.suites[row.experiment].cases)) as cases:
        position = cases.position.get(row.query_id)
        return None if position is None else cases[position].case


def _expected(output: Path, manifest: RunManifest, row: ExperimentResult) -> list[Kept]:
    case = _case_of(output, manifest, row)
    if case is None:
        return []
    asks = any(map(needs_model, case.expect))
    return found_in(case, row, judged=_details(output, manifest, row).get(EXPECTATIONS) if asks else None)


def _details(output: Path, manifest: RunManifest, row: ExperimentResult) -> dict[str, Mapping[str, Any]]:
    """Return the details of what a judge of the run said of a trial's expectations and by rubrics, by measure."""
    record, digest = manifest.suites[row.experiment], row_digest(row)
    authors = {Author(*author) for author in record.authors}
    return {
        line.measure: line.detail
        for line in read_scores(output / SCORES / record.file)
        if line.query_id == row.query_id and line.row == digest and not line.repeat and line.author in authors
        if line.measure == EXPECTATIONS or record.rubrics.get(line.measure) == line.version
    }


def broken_lines(output: Path, manifest: RunManifest, row: ExperimentResult) -> list[str]:
    """Return what is expected of a trial and not kept, with what stands there; and what could not be checked."""
    if not row.ok:
        return []
    return [
        line
        for each in (*_expected(output, manifest, row), *_by_rubrics(output, manifest, row))
        if not each.kept
        for line in label_lines(
            "expected" if each.kept is False else "unchecked", f"{each.expectation}: {each.said}", _MOST_LINES
        )
    ]


def disagreement_lines(output: Path, manifest: RunManifest, row: ExperimentResult) -> list[str]:
    """Return that expectations and ground truth of a trial contradict each other; nothing where they do not."""
    case = _case_of(output, manifest, row) if row.ok else None
    said = describe_disagreement(case, row) if case is not None else ""
    return label_lines("note", said) if said else []


def _by_rubrics(output: Path, manifest: RunManifest, row: ExperimentResult) -> list[Kept]:
    is_there = bool(manifest.suites[row.experiment].rubrics)
    return _of_rubrics(_details(output, manifest, row)) if is_there else []


def trial_named(manifest: RunManifest, said: str) -> str:
    """Return the id of a trial as its file has it: ``c1-sim-sim_001#2`` for ``c1-sim_001#2``, if nothing else is meant.

    A name that is known, or not clear, stays as it is.
    """
    if any(said.startswith(f"{name}-") for name in manifest.suites if is_played_name(name)):
        return said
    meant = [
        f"{name}-{said[len(plain) + 1 :]}"
        for name, record in manifest.suites.items()
        if record.history == "played" and said.startswith(f"{(plain := without_history(name))}-") and "#" in said
    ]
    return meant[0] if len(meant) == 1 else said


def ended_said(manifest: RunManifest, trial: str) -> str:
    """Say where and why a simulated user ended the conversation before a turn; empty if it did not."""
    for name, record in manifest.suites.items():
        if trial.startswith(f"{name}-") and (why := record.ended.get(trial[len(name) + 1 :])):
            return f"{trial} was not asked: its conversation ended {why}."
    return ""


def chat_lines(row: ExperimentResult, manifest: RunManifest) -> list[str]:
    """Return who simulates the user, what was said before a turn, and what was searched for, as far as there is any."""
    user = label_lines("user", f"simulated by {row.user.detail.get('by', '')}") if row.user else []
    turns = turns_before(chat_before(row.asked))
    older = max(0, len(turns) - _MOST_TURNS)
    is_gold = manifest.suites[row.experiment].history == "gold"
    lines = [*label_lines("before", f"{counted(older, 'turn')} that are not shown here")] if older else []
    for number, turn in enumerate(turns[older:], older + 1):
        for place, each in enumerate(turn):
            who = {"assistant": "reference reply" if is_gold else "reply"}.get(each.role, each.role)
            text = f"{who}{', which failed' if each.failed else ''}: {each.text}"
            lines += label_lines("" if place else f"turn {number}", text, _LINES_OF_MESSAGE)
    searched = searched_for(row)
    return [*user, *lines, *(label_lines("searched", searched) if searched else ())]


def trial_lines(row: ExperimentResult) -> list[str]:
    """Return what was asked, expected, found and answered."""
    said = {
        "trial": row.trial_id,
        "query": row.query,
        "gold": row.ground_truth,
        "gold in": ", ".join(row.context_reference),
        "found": ", ".join(dict.fromkeys(chunk.metadata.filename for chunk in row.retrieved_chunks)),
        "answer": row.llm_answer,
        "error": row.error_text,
        "do": "" if row.ok else "read the log of the run: it has the traceback",
    }
    return [line for label, text in said.items() if text for line in label_lines(label, text, _MOST_LINES)]
