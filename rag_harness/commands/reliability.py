"""``rag-harness reliability calibrate``: fits the confidence of an experiment to gold."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rag_harness.errors import DataError
from rag_harness.shown.terminal import say

if TYPE_CHECKING:
    from rag_harness.judges.calibration.confidence_file import SavedConfidence, SavedPromise
    from rag_harness.judges.calibration.labels_needed import LabelsNeeded
    from rag_harness.judges.calibration.logistic import Logistic


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
    from rag_harness.judges.calibration.confidence import TOO_FEW_TO_TEST, calibrated
    from rag_harness.judges.calibration.confidence_file import save_confidence
    from rag_harness.judges.calibration.labels_needed import labels_needed
    from rag_harness.judges.calibration.told import read_labels

    if not 0 < chosen.risk < 1:
        raise DataError(f"--risk {chosen.risk:g} is no share between 0 and 1, e.g. 0.05.")
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
        from rag_harness.judges.calibration.confidence import FEWEST_OF_A_MODEL

        return f"  {what}: too few in the fit, so there is no model of them ({FEWEST_OF_A_MODEL} at least)"
    told = ", ".join(f"{name} {value:+.2f}" for name, value in model.coefficients.items()) or "no signal tells"
    return f"  {what}: {model.positive} of {model.n} right in the fit; per standard deviation: {told}"
