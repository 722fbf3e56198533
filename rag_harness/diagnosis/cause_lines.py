"""Causes and whole trials as lines for the terminal, and the review of causes by a person."""

from __future__ import annotations

import getpass
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from textwrap import wrap
from typing import Any

from rag_harness.core.errors import DataError
from rag_harness.core.escaping import ask as ask_line
from rag_harness.core.escaping import say
from rag_harness.core.types import GOLDEN, Case
from rag_harness.diagnosis.failures import RETRIEVAL_MISS, TOP_LEVEL
from rag_harness.evaluation.measures.correctness import describe_disagreement
from rag_harness.evaluation.measures.expectations import EXPECTATIONS, found_in, kept_of_rubrics
from rag_harness.evaluation.measures.expectations import RUBRIC_PREFIX as RUBRIC
from rag_harness.evaluation.measures.opinion import OF_TURNS
from rag_harness.records.cases import CaseFile, chat_before, searched_for, turns_before
from rag_harness.records.expectations import ExpectationResult, needs_model
from rag_harness.records.manifest import RunManifest, is_played_name, of_run, without_history
from rag_harness.records.row import ExperimentResult, rows_in
from rag_harness.records.scores import (
    CAUSES,
    SCORES,
    Author,
    CauseLine,
    read_causes,
    read_scores,
    row_digest,
    write_causes,
)
from rag_harness.stats.agreement import accuracy, cohen_kappa
from rag_harness.stats.inputs import UndefinedError
from rag_harness.tables.summary import table
from rag_harness.tables.wording import counted, cut

# Writes causes for people: a table, the worst failures of each experiment, one trial in full. At most 100 columns.

TERMINAL_WIDTH = 100
SHOWN_CAUSES = 10
"""Most printed failures of each experiment, where there are few experiments."""
_MOST = 40
"""Most printed failures of all experiments."""
NOTHING_TO_EXPLAIN = "no failed trial: nothing to explain"
_INDENT, _LABEL = "    ", 13


def cause_lines(
    causes: Sequence[CauseLine],
    where: str,
    shown: int = SHOWN_CAUSES,
    answers: Mapping[str, int] | None = None,
    wrong: Mapping[str, Collection[str]] | None = None,
) -> list[str]:
    """Return the lines of the section.

    Args:
        causes: causes of the failures, the worst of each experiment first.
        where: the folder that has all of them.
        shown: most printed failures of an experiment.
        answers: number of each experiment's answers, failed or not.
        wrong: the wrong ones of these, as the run in brief counts them.
    """
    if not causes:
        return [NOTHING_TO_EXPLAIN]
    by_experiment: dict[str, list[CauseLine]] = {}
    for line in causes:
        by_experiment.setdefault(line.experiment, []).append(line)
    lines = [*_counts(by_experiment, answers or {}, wrong or {}), *_limits(by_experiment)]
    each = min(shown, max(1, _MOST // len(by_experiment)))
    for name, found in by_experiment.items():
        lines += _worst(name, found, each)
    first = causes[0].trial
    return [*lines, "", f"all {len(causes)}: {where}/{CAUSES}", f"one whole: rag-harness explain {where} {first}"]


def explained(causes: int, answers: int) -> str:
    """Say how many of an experiment's answers have a cause: there may be few failures, or few were looked at."""
    return f"{causes:,} of {answers:,}" if answers else f"{causes:,}"


def _counts(
    by_experiment: Mapping[str, Sequence[CauseLine]], answers: Mapping[str, int], wrong: Mapping[str, Collection[str]]
) -> list[str]:
    counted = {name: Counter(line.cause for line in found) for name, found in by_experiment.items()}
    causes = [cause for cause in TOP_LEVEL if any(count[cause] for count in counted.values())]
    rows = [[cause, *(str(count[cause]) for count in counted.values())] for cause in causes]
    total = ["explained", *(explained(count.total(), answers.get(name, 0)) for name, count in counted.items())]
    explained_wrong = {
        name: sum(line.query_id in wrong.get(name, ()) for line in by_experiment[name]) for name in counted
    }
    of_wrong = ["of wrong ones", *(explained(n, len(wrong.get(name, ()))) for name, n in explained_wrong.items())]
    return table([["why they failed", *counted], *rows, total, *([of_wrong] if any(wrong.values()) else [])])


def gold_alone(by_experiment: Mapping[str, Sequence[CauseLine]]) -> Iterator[tuple[str, str, str]]:
    """Yield of which experiments causes are known from rows and gold alone: name, how many of how many, why."""
    for name, found in by_experiment.items():
        alone = Counter(line.limits for line in found if line.observational and line.limits)
        if alone:
            why, _ = alone.most_common(1)[0]
            yield name, f"{alone.total()} of {len(found)}", why


def _limits(by_experiment: Mapping[str, Sequence[CauseLine]]) -> Iterator[str]:
    for name, some, why in gold_alone(by_experiment):
        said = f"{name}: {some} causes are from rows and gold alone (observational): {why}"
        yield from wrap(cut(said, 3 * TERMINAL_WIDTH), TERMINAL_WIDTH, subsequent_indent="  ")


def _worst(name: str, found: Sequence[CauseLine], shown: int) -> Iterator[str]:
    yield ""
    order = (
        "by hallucination risk (HRI)"
        if any(line.hri is not None for line in found)
        else "by words of the ground truth that the answer lacks"
    )
    if len(found) > 1 and len({(line.cause, line.detail, line.evidence, line.remedy) for line in found}) == 1:
        yield f"{name}: all {len(found)} for one cause; the worst, {order}: {found[0].trial}"
        yield from _of(found[0])
        return
    yield f"{name}: the worst {min(shown, len(found))} of {len(found)}: wrong ones first, then {order}"
    for line in found[:shown]:
        hri = f"  HRI {line.hri:.2f}" if line.hri is not None else ""
        yield f"  {cut(f'{line.trial}{hri}  {line.query}', TERMINAL_WIDTH - 2)}"
        yield from _of(line)


def _of(line: CauseLine) -> Iterator[str]:
    """Yield cause, evidence and remedy of a failure."""
    yield f"{_INDENT}{cut(f'{line.cause}: {line.detail}{_repaired(line)}', TERMINAL_WIDTH - len(_INDENT))}"
    yield f"{_INDENT}{cut(line.evidence, TERMINAL_WIDTH - len(_INDENT))}"
    yield f"{_INDENT}-> {cut(line.remedy, TERMINAL_WIDTH - len(_INDENT) - 3)}"


def _repaired(line: CauseLine) -> str:
    """Say what repairs a failure; for missing evidence, also what the evidence alone would not repair."""
    from rag_harness.diagnosis.interventions import GOLD_CONTEXT  # reports read lines, and run nothing again

    if line.repaired_by:
        return f"; {line.repaired_by} repairs it"
    in_vain = line.cause == RETRIEVAL_MISS and line.answers.get(GOLD_CONTEXT, {}).get("right") is False
    return f"; {GOLD_CONTEXT} does not repair it" if in_vain else ""


def cause_in_full(line: CauseLine) -> list[str]:
    """Return all that is known of one failure, with the results of the interventions."""
    cause = f"{line.cause}: {line.detail}"
    lines = [
        *label_lines("trial", str(line.trial)),
        *label_lines("query", line.query),
        *label_lines("cause", cause + (" (observational)" if line.observational else "")),
        *label_lines("evidence", line.evidence),
        *(label_lines("repaired by", line.repaired_by) if line.repaired_by else ()),
        *label_lines("what to do", line.remedy),
        *(label_lines("limits", line.limits) if line.limits else ()),
        *(label_lines("reviewed", f"{line.reviewed_cause}, by {line.reviewed_by}") if line.reviewed_cause else ()),
    ]
    return [*lines, *(text for name, said in line.answers.items() for text in _tried(name, said))]


def _tried(name: str, said: Mapping[str, object]) -> list[str]:
    if "right" not in said:
        return label_lines("tried", f"{name}: {said.get('why', '')}", 2)
    return label_lines("tried", f"{name}: {'correct' if said['right'] else 'not correct'}: {said.get('answer', '')}", 3)


def label_lines(label: str, text: str, most: int = 4) -> list[str]:
    """Return a text with its label before it, in at most so many lines."""
    body = wrap(
        " ".join(text.split()), TERMINAL_WIDTH - _LABEL, break_on_hyphens=False, max_lines=most, placeholder=" …"
    )
    return [f"{(label if n == 0 else '').ljust(_LABEL)}{line}" for n, line in enumerate(body or [""])]


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
    """Return the first expectation, or criterion of a rubric, that a trial does not meet, with what the answer has.

    Empty without one, and where the file of rows is too large for reading it for one trial.

    Args:
        output: folder of the run.
        manifest: the run.
        trial: the trial's id.
        measure: the gate's measure. With the measure of a rubric, the criteria are looked at, with any other the
            expectations.
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


def _of_rubrics(details: Mapping[str, Mapping[str, Any]], measure: str = "") -> list[ExpectationResult]:
    return kept_of_rubrics({name: said for name, said in details.items() if not measure or name in measure})


def _case_of(output: Path, manifest: RunManifest, row: ExperimentResult) -> Case | None:
    with closing(CaseFile(output, manifest.suites[row.experiment].cases)) as cases:
        position = cases.position.get(row.query_id)
        return None if position is None else cases[position].case


def _expected(output: Path, manifest: RunManifest, row: ExperimentResult) -> list[ExpectationResult]:
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
    """Return the unmet expectations of a trial, each with what the answer has, and those that could not be checked."""
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


def _by_rubrics(output: Path, manifest: RunManifest, row: ExperimentResult) -> list[ExpectationResult]:
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


_ASK = "right? enter: yes; 1-{last}: another cause; s: skip; q: stop  "


def review(output: Path, by: str = "", ask: Callable[[str], str] = ask_line) -> int:
    """Ask about each unreviewed cause, save every reply at once, and print κ; return the exit status.

    Raises:
        DataError: there is nothing to review.
    """
    lines = read_causes(output)
    if not lines:
        raise DataError(f"No causes in {output / CAUSES}. Find them first: rag-harness explain {output}")
    who = by or getpass.getuser()
    menu = ", ".join(f"{n} {cause}" for n, cause in enumerate(TOP_LEVEL, 1))
    for place, line in enumerate(lines):
        if line.reviewed_cause:
            continue
        say("", *cause_in_full(line), menu)
        said = _answer(line, ask)
        if said is None:
            break
        if said:
            lines[place] = line.model_copy(update={"reviewed_cause": said, "reviewed_by": who})
            write_causes(output, lines)
    say("", *review_agreement(lines))
    return 0


def _answer(line: CauseLine, ask: Callable[[str], str]) -> str | None:
    """Return the cause that a person names; empty where they skip it, None where they stop."""
    while True:
        try:
            said = ask(_ASK.format(last=len(TOP_LEVEL))).strip().lower()
        except EOFError:
            return None
        if said in ("", "y", "yes"):
            return line.cause
        if said in ("s", "q"):
            return "" if said == "s" else None
        if said.isdecimal() and 1 <= int(said) <= len(TOP_LEVEL):
            return TOP_LEVEL[int(said) - 1]
        say(f"{said!r} is none of these.")


def review_agreement(lines: Sequence[CauseLine]) -> list[str]:
    """Return the agreement of machine and people on the reviewed causes, and the most frequent corrections."""
    seen = [line for line in lines if line.reviewed_cause]
    if not seen:
        return ["nothing reviewed yet"]
    numbers = {cause: n for n, cause in enumerate(dict.fromkeys(name for line in seen for name in _both(line)))}
    people, machine = ([float(numbers[_both(line)[whose]]) for line in seen] for whose in (1, 0))
    try:
        kappa = f"Cohen's κ {cohen_kappa(people, machine):.2f}"
    except UndefinedError:
        kappa = "Cohen's κ is not defined: both name one cause only"
    changed = Counter(_both(line) for line in seen if line.cause != line.reviewed_cause)
    first = f"{len(seen)} reviewed: {accuracy(people, machine):.0%} agree, {kappa}"
    return [first, *(f"  {n} × {was} -> {now}" for (was, now), n in changed.most_common())]


def _both(line: CauseLine) -> tuple[str, str]:
    return line.cause, line.reviewed_cause
