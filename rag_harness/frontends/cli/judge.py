"""The commands that judge and calibrate.

Rag-harness judge score, sample and calibrate, traces score, reliability calibrate.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from rag_harness.core.errors import DataError
from rag_harness.core.escaping import say
from rag_harness.evaluation.judges import UNSEEN
from rag_harness.frontends.cli import FOUND
from rag_harness.frontends.cli.options import Scoring, add_scoring

if TYPE_CHECKING:
    from rag_harness.evaluation.judges.calibration.agreement import Calibration, CalibrationSubject, JudgeScores
    from rag_harness.evaluation.judges.calibration.confidence import (
        LabelsNeeded,
        Logistic,
        SavedConfidence,
        SavedPromise,
    )
    from rag_harness.evaluation.judges.calibration.corrections import CorrectedMean
    from rag_harness.evaluation.judges.calibration.labels import AnswerLabel, ScoredAnswers
    from rag_harness.records.scores import Author
    from rag_harness.runs.trace_rows import TracedRows


# ``rag-harness judge score``: judges answers of any system, without a run.


def score_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``judge score``."""
    lines = "a line an answer: id, question, contexts, answer; ground_truth, gold_pages, quotes where there are any"
    parser.add_argument("answers", type=Path, metavar="ANSWERS.jsonl", help=lines)
    add_scoring(parser)
    parser.epilog = f"The embedded judge, default of the embedded profile, is not an LLM: {UNSEEN}"


def run_score(chosen: argparse.Namespace) -> int:
    """Judge the answers, and print the scores."""
    return 0 if Scoring(chosen, "rag-harness judge score").judged(chosen.answers) else FOUND


# ``rag-harness judge sample`` and ``judge calibrate``: people label answers, and the labels calibrate a judge.

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
    from rag_harness.evaluation.judges.calibration.labels import read_scored, sample_of_answers, write_sheet

    scored = read_scored(chosen.output, chosen.measure, chosen.judge)
    items = sample_of_answers(scored, chosen.n, chosen.seed)
    table, lines, key = write_sheet(chosen.sheet, items, scored.rows)
    spread = "spread over the judge's scores" if scored.scores else "at random, because nothing is judged yet"
    several = len({experiment for experiment, _ in items})
    say(f"{len(items)} answers of {several} experiment{'s' * (several > 1)}, {spread}.")
    say(f"{table} and {lines} hold the same; fill in one: human is 1 where every claim of the answer is supported")
    say(f"by the contexts, 0 where one is not, or a rating. {key} says which answers they are: not for raters.")
    say("", f"Then: rag-harness judge calibrate {table} --measure {chosen.measure}")
    return 0


def run_calibrate(chosen: argparse.Namespace) -> int:
    """Calibrate, save, show, and say what to do next."""
    from rag_harness.evaluation.judges.calibration.agreement import calibrate, save_calibration
    from rag_harness.evaluation.judges.calibration.corrections import calibration_lines, gate_lines
    from rag_harness.evaluation.judges.calibration.labels import in_clusters, read_labels, scaled, with_scores

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
        raise DataError(
            f"--scale {text!r} is not a scale: write the lowest and the highest rating, e.g. 1:5."
        ) from None


def _scored(chosen: argparse.Namespace, labels: Sequence[AnswerLabel]) -> ScoredAnswers | None:
    """Read the run if a label names one of its rows; else return None.

    Raises:
        DataError: a label names a row that the run does not have.
    """
    from rag_harness.evaluation.judges.calibration.labels import at_most, missing_rows, read_scored

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
    from rag_harness.evaluation.judges.calibration.agreement import CalibrationSubject, JudgeScores
    from rag_harness.evaluation.judges.calibration.labels import judged_measure
    from rag_harness.records.scores import row_digest

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
    from rag_harness.evaluation.judges.calibration.labels import judges_called

    model = re.sub(r"[^\w.]+", "-", author.model).strip("-") if judges_called(chosen.output, author.judge) > 1 else ""
    return "-".join(filter(None, (author.judge, model, chosen.measure)))


def _author_of(labels: Sequence[AnswerLabel]) -> Author:
    from rag_harness.evaluation.judges.calibration.labels import whole_name
    from rag_harness.records.scores import Author

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
    from rag_harness.evaluation.judges.calibration.corrections import ExperimentScores, corrected_mean
    from rag_harness.records.scores import row_digest

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


# ``rag-harness reliability calibrate``: fits the confidence of an experiment to gold.


def reliability_calibrate_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``reliability calibrate``."""
    output = "folder of a run of the experiment; several: over questions of a file, and over reviewed ones of users"
    parser.add_argument("output", type=Path, nargs="+", metavar="OUTPUT", help=output)
    parser.add_argument(
        "--experiment", default="r1", metavar="NAME", help="experiment whose confidence is fitted; default: r1"
    )
    parser.add_argument("--risk", type=float, default=0.05, help="share of wrong answers to promise; default: 0.05")
    file = "file to write; default: reliability/<experiment>.json"
    parser.add_argument("-o", dest="file", type=Path, default=None, metavar="FILE", help=file)


def run_reliability_calibrate(chosen: argparse.Namespace) -> int:
    """Fit, save, and show the result."""
    from rag_harness.evaluation.judges.calibration.confidence import (
        TOO_FEW_TO_TEST,
        calibrated,
        labels_needed,
        read_labels,
        save_confidence,
    )

    if not 0 < chosen.risk < 1:
        raise DataError(f"--risk {chosen.risk:g} is not a share between 0 and 1, e.g. 0.05.")
    told = read_labels(chosen.output, chosen.experiment)
    found = calibrated(chosen.experiment, told, chosen.risk)
    file = chosen.file or Path("reliability") / f"{chosen.experiment}.json"
    save_confidence(file, found)
    say(*_lines(found))
    is_testable = found.answered is not None and found.promise.reason != TOO_FEW_TO_TEST
    if found.promise.threshold is None and is_testable:
        say(f"  {_more(labels_needed(told, chosen.risk), chosen.risk)}")
    say(f"Saved as {file}: commit it. {chosen.experiment} reads it from reliability/.")
    return 0


def _lines(found: SavedConfidence) -> Iterator[str]:
    yield f"{found.experiment}: {found.n} answers that gold calls right or not"
    yield _model("answers", found.answered)
    yield _model("declining", found.declined)
    if found.weights:
        yield "  as weights of the formula: " + ", ".join(
            f"{name} {value:.2f}" for name, value in found.weights.items()
        )
    yield f"  {_promised(found.promise)}"
    test = found.tested
    if test.ece is not None and test.brier is not None:
        yield f"  on {test.n} answers about other pages: ECE {test.ece:.3f}, Brier {test.brier:.3f}"


def _promised(kept: SavedPromise) -> str:
    if kept.threshold is None:
        return f"at most {kept.risk:.0%} wrong at 95 %: not promised. {kept.reason}"
    tested = f"{kept.wrong} of {kept.tested} tested"
    return f"at confidence >= {kept.threshold:.3g} at most {kept.risk:.0%} are wrong, at 95 %: {tested}"


def _more(needed: LabelsNeeded | None, risk: float) -> str:
    if needed is None:
        return (
            f"no number of labels would give it: at every confidence almost {risk:.0%} or more of the answers were "
            "wrong. A larger --risk may be promised, or a pipeline that is wrong less often."
        )
    found = f"{needed.wrong} of {needed.accepted} were wrong there"
    where = f"at confidence >= {needed.threshold:.3g}"
    if not needed.more:
        return f"there are labels enough for it {where} ({found}), but the half that tests did not bear it out"
    return (
        f"about {needed.more:,} labelled answers more, {needed.labels:,} in all, would give it {where}, if they are as "
        f"right as these few: {found}, and {needed.tested:,} are needed in the half that tests"
    )


def _model(what: str, model: Logistic | None) -> str:
    if model is None:
        from rag_harness.evaluation.judges.calibration.confidence import FEWEST_OF_A_MODEL

        return f"  {what}: too few in the fit, so there is no model of them ({FEWEST_OF_A_MODEL} at least)"
    told = ", ".join(f"{name} {value:+.2f}" for name, value in model.coefficients.items()) or "no signal tells"
    return f"  {what}: {model.positive} of {model.n} right in the fit; per standard deviation: {told}"


# ``rag-harness traces score``: judges what a pipeline said in production, by the spans that were kept of it.

_SETTINGS = ("kb_dir",)
_SHOWN = 5


def traces_score_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``traces score``."""
    formats = "OTLP/JSON, or an export of Phoenix or Langfuse"
    parser.add_argument("traces", type=Path, metavar="FILE.jsonl", help=formats)
    parser.add_argument("--rows", type=Path, metavar="ROWS.jsonl", help="write each trace as a row, with its steps")
    add_scoring(parser, _SETTINGS)


def run_traces_score(chosen: argparse.Namespace) -> int:
    """Judge the answers, and print the scores. Traces that could not be read are named, and the status says so."""
    from tempfile import TemporaryDirectory

    from rag_harness.runs.trace_rows import TracedRows

    scoring = Scoring(chosen, "rag-harness traces score", _SETTINGS)
    with TemporaryDirectory() as folder:
        answers = Path(folder) / "answers.jsonl"
        rows = TracedRows(chosen.traces, scoring.parts)
        rows.write(answers, chosen.rows)
        say(*_read(rows, chosen.traces))
        if not rows.answered:
            return FOUND
        is_measured = scoring.judged(answers)
    return 0 if is_measured and not rows.unread else FOUND


def _read(rows: TracedRows, file: Path) -> list[str]:
    lines = [
        f"{file}: {rows.total} traces, {rows.answered} answered, {rows.failed} failed, {len(rows.unread)} not read"
    ]
    lines += [f"  not read: {trace_id}: {reason}" for trace_id, reason in rows.unread[:_SHOWN]]
    more = len(rows.unread) - _SHOWN
    return [*lines, f"  {more} more were not read"] if more > 0 else lines
