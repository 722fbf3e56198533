"""``rag-harness judge sample`` and ``judge calibrate``: people label answers, and the labels calibrate a judge."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from rag_harness.errors import DataError
from rag_harness.shown.terminal import say

if TYPE_CHECKING:
    from rag_harness.judges.calibration.calibrate import CalibrationSubject, JudgeScores
    from rag_harness.judges.calibration.correct import CorrectedMean
    from rag_harness.judges.calibration.labels import AnswerLabel
    from rag_harness.judges.calibration.saved import Calibration
    from rag_harness.judges.calibration.scored_answers import ScoredAnswers
    from rag_harness.results.score import Author

_UNKNOWN = ("unknown", "", "")


def _common_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--output", type=Path, default=Path("output"), metavar="DIR", help="output folder of the run; default: output"
    )
    parser.add_argument("--measure", default="faithfulness", help="what was judged; default: faithfulness")
    parser.add_argument(
        "--judge", default="", metavar="NAME", help="judge, by its name or model, where several have judged"
    )


def calibrate_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``judge calibrate``."""
    labels = "JSON Lines or CSV: experiment and query_id, or id and score, and human: 0, 1 or a rating"
    parser.add_argument("labels", type=Path, nargs="+", metavar="LABELS", help=labels)
    _common_arguments(parser)
    parser.add_argument("--name", default="", help="name of the calibration; default: judge and measure")
    parser.add_argument(
        "--judges", type=Path, default=Path("judges"), metavar="DIR", help="folder for it; default: judges"
    )
    parser.add_argument(
        "--scale", default="0:1", metavar="LOW:HIGH", help="scale of the ratings, e.g. 1:5; default: 0:1"
    )
    parser.add_argument("--threshold", type=float, default=0.5, help="score from which a verdict is 1; default: 0.5")
    scores = "what rag-harness judge score said of answers that stand alone"
    parser.add_argument("--scores", type=Path, metavar="FILE", help=scores)
    parser.add_argument("--key", type=Path, metavar="FILE", help="key of a blind sheet; default: the one beside it")


def sample_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``judge sample``."""
    _common_arguments(parser)
    parser.add_argument("-n", type=int, default=50, metavar="N", help="answers to label; default: 50")
    parser.add_argument(
        "-o",
        dest="sheet",
        type=Path,
        default=Path("sheet"),
        metavar="NAME",
        help="files to write, without their endings; default: sheet",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the choice; default: 0")


def run_sample(chosen: argparse.Namespace) -> int:
    """Write the sheet and say how to fill it in."""
    from rag_harness.judges.calibration.sample import sample_of_answers, write_sheet
    from rag_harness.judges.calibration.scored_answers import read_scored

    scored = read_scored(chosen.output, chosen.measure, chosen.judge)
    items = sample_of_answers(scored, chosen.n, chosen.seed)
    table, lines, key = write_sheet(chosen.sheet, items, scored.rows)
    spread = "spread over the judge's scores" if scored.scores else "at random, for nothing is judged yet"
    several = len({experiment for experiment, _ in items})
    say(f"{len(items)} answers of {several} experiment{'s' * (several > 1)}, {spread}.")
    say(f"{table} and {lines} hold the same; fill in one: human is 1 where every claim of the answer is supported")
    say(f"by the contexts, 0 where one is not, or a rating. {key} says which answers they are: not for raters.")
    say("", f"Then: rag-harness judge calibrate {table} --measure {chosen.measure}")
    return 0


def run_calibrate(chosen: argparse.Namespace) -> int:
    """Calibrate, save, show, and say what to do next."""
    from rag_harness.judges.calibration.calibrate import calibrate
    from rag_harness.judges.calibration.calibration_text import calibration_lines, gate_lines
    from rag_harness.judges.calibration.judged_answers import with_scores
    from rag_harness.judges.calibration.labels import read_labels, scaled
    from rag_harness.judges.calibration.saved import save_calibration
    from rag_harness.judges.calibration.scored_answers import in_clusters

    found = read_labels(chosen.labels, chosen.key)
    labels = scaled(found.each, *_scale(chosen.scale))
    labels = with_scores(labels, chosen.scores, chosen.measure) if chosen.scores else labels
    scored = _scored(chosen, labels)
    labels = in_clusters(labels, scored.rows) if scored else labels
    subject, said = _subject(chosen, labels, scored)
    calibration = calibrate(subject, labels, said)
    file = save_calibration(chosen.judges, calibration)
    corrected, means = _corrected(calibration, scored)
    say(*calibration_lines(calibration, corrected, means))
    say(f"Saved as {file}: commit it." + (f" {found.unlabelled} lines had no label." if found.unlabelled else ""))
    say(*_next(gate_lines(calibration, corrected), calibration.measure))
    return 0


def _scale(text: str) -> tuple[float, float]:
    low, colon, high = text.partition(":")
    try:
        return float(low), float(high if colon else "nan")
    except ValueError:
        raise DataError(f"--scale {text!r} is no scale: write the lowest and the highest rating, e.g. 1:5.") from None


def _scored(chosen: argparse.Namespace, labels: Sequence[AnswerLabel]) -> ScoredAnswers | None:
    """Read the run if a label names one of its rows; else return None.

    Raises:
        DataError: a label names a row that the run does not have.
    """
    from rag_harness.judges.calibration.labels import at_most
    from rag_harness.judges.calibration.scored_answers import missing_rows, read_scored

    named = {label.item: label.where for label in labels if label.experiment}
    if not named:
        return None
    scored = read_scored(chosen.output, chosen.measure, chosen.judge)
    problems = missing_rows(named, scored.rows)
    if problems:
        raise DataError("\n".join(at_most(problems)))
    return scored


def _subject(
    chosen: argparse.Namespace, labels: Sequence[AnswerLabel], scored: ScoredAnswers | None
) -> tuple[CalibrationSubject, JudgeScores]:
    from rag_harness.judges.calibration.calibrate import CalibrationSubject, JudgeScores
    from rag_harness.judges.calibration.scored_answers import judged_measure
    from rag_harness.results.score import row_digest

    version = scored.version if scored else judged_measure(chosen.measure).version
    author = (scored.author if scored else None) or _author_of(labels)
    name = chosen.name or _name(chosen, author)
    date = datetime.now(timezone.utc).isoformat(timespec="seconds")
    own = {label.item: label.score for label in labels if label.score is not None}
    given = scored.scores if scored and scored.author else {}
    scores = {**{item: score for item, score in own.items() if not (item[0] and given)}, **given}
    lengths = {label.item: len(label.answer) for label in labels}
    rows = {label.item: scored.rows[label.item] for label in labels if scored and label.experiment}
    lengths |= {item: len(row.llm_answer) for item, row in rows.items()}
    digests = {item: row_digest(row) for item, row in rows.items()}
    subject = CalibrationSubject(name, chosen.measure, version, author, date, chosen.threshold)
    return subject, JudgeScores(scores, lengths, digests)


def _name(chosen: argparse.Namespace, author: Author) -> str:
    """Return the calibration's name: judge and measure, with the model where the run has two judges of one name."""
    from rag_harness.judges.calibration.scored_answers import judges_called

    model = re.sub(r"[^\w.]+", "-", author.model).strip("-") if judges_called(chosen.output, author.judge) > 1 else ""
    return "-".join(filter(None, (author.judge, model, chosen.measure)))


def _author_of(labels: Sequence[AnswerLabel]) -> Author:
    from rag_harness.judges.calibration.scored_answers import whole_name
    from rag_harness.results.score import Author

    authors = {label.author for label in labels if label.author}
    if len(authors) > 1:
        named = "; ".join(sorted(map(whole_name, authors)))
        raise DataError(
            f"The labels have scores of {len(authors)} judges: {named}. Calibrate each in a file of its own."
        )
    return authors.pop() if authors else Author(*_UNKNOWN)


def _corrected(
    calibration: Calibration, scored: ScoredAnswers | None
) -> tuple[dict[str, CorrectedMean | str], dict[str, float]]:
    """Return the corrected mean of each experiment with scores, or why there is none, and the judge's own means."""
    from rag_harness.judges.calibration.correct import ExperimentScores, corrected_mean
    from rag_harness.results.score import row_digest

    corrected: dict[str, CorrectedMean | str] = {}
    means: dict[str, float] = {}
    if scored is None or scored.author is None:
        return corrected, means
    for name in sorted({experiment for experiment, _ in scored.scores}):
        values = _of(scored.scores, name)
        digests = {query_id: row_digest(scored.rows[name, query_id]) for query_id in values}
        scores = ExperimentScores(name, calibration.measure, calibration.version, scored.author, values, digests)
        means[name] = sum(values.values()) / len(values)
        try:
            corrected[name] = corrected_mean(scores, [calibration])
        except DataError as why:
            corrected[name] = str(why)
    return corrected, means


def _of(scores: Mapping[tuple[str, str], float], name: str) -> dict[str, float]:
    return {query_id: value for (experiment, query_id), value in scores.items() if experiment == name}


def _next(gates: Sequence[str], measure: str) -> list[str]:
    if not gates:
        return [f"Next: gate the corrected value of what this judge scores, e.g. e3: {measure}~calibrated >= 0.8"]
    head = ["Next: gate the corrected value. What holds today, by the lower bound:", "", "    rag_gate ="]
    return [*head, *(f"        {gate}" for gate in gates)]
