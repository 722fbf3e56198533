"""What the signals of the reliability engine are worth on the retail study, on pages that nothing was fitted to.

    pytest -m "r1 or r2 or r3 or r4 or r5 or r6 or e3" --rag-output=OUTPUT
    python benchmarks/reliability.py OUTPUT
    python benchmarks/reliability.py OUTPUT --scales      # the constants of scales.py, from r2

Five folds by source page, five times with other folds: what is stated of an answer is the mean of what five models say
that saw no answer about its page. Intervals are percentile bootstrap over source pages. Labels come from gold alone
(``calibration.told.is_right``). Stale answers are those of the questions that ``rag-harness kb superseded`` marks.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

from rag_harness.authoring.kb.plan import mark_superseded
from rag_harness.core.types import Case, Chunk, Hit
from rag_harness.evaluation.judges.calibration.confidence import (
    SIGNALS,
    AnswerSignals,
    brier,
    calibrated,
    detail,
    expected_calibration_error,
    fit_models,
    has_quote,
    is_right,
    read_signals,
    signals_of_row,
    split,
)
from rag_harness.evaluation.measures.answers import StaleAnswer
from rag_harness.models.prompts import load_prompts
from rag_harness.models.reader import reader_answer
from rag_harness.records.cases import CaseFile
from rag_harness.records.manifest import read_manifest
from rag_harness.records.row import ExperimentResult, rows_in
from rag_harness.records.scores import SCORES, read_scores
from rag_harness.stats.agreement import auroc
from rag_harness.stats.inputs import Floats
from rag_harness.stats.means import Estimate, estimate
from rag_harness.stats.prediction import promise, risk_coverage
from rag_harness.studies.reliability_confidence import formula
from rag_harness.studies.reliability_verification import Checked

KB = Path(__file__).parents[1] / "data" / "kb"
FIT_HALF = 0
REPEATS = 5
SHUFFLES = 100
ABLATIONS = ("e3", "r1", "r1-original", "r2", "r3", "r4", "r5", "r6")
Scores = Mapping[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--scales", action="store_true")
    parser.add_argument("--simulate", type=int, default=0, metavar="N", help="splits to try the promise on")
    chosen = parser.parse_args()
    if chosen.scales:
        print_scales(chosen.output)
        return
    print_ablations(chosen.output)
    print_decisions(chosen.output)
    each = read_signals(chosen.output, "r1")
    print_fallbacks(chosen.output)
    print_label(chosen.output, each)
    print_worth("right, all questions", each, signal_scores(each))
    answered = [one for one in each if not one.declined]
    print_worth("right, answered questions alone", answered, signal_scores(answered))
    sufficient = [replace(one, right=found, declined=False) for one, found in with_sufficient(chosen.output, each)]
    print_worth("sufficient context (all quotes in it), all questions", sufficient, signal_scores(sufficient))
    print_reader(chosen.output)
    print_promise(each, chosen.simulate)


def print_scales(output: Path) -> None:
    rows = {row.query_id: row for row in rows_of(output, "r2")}
    half = split(read_signals(output, "r2"), [0.5, 0.5])[FIT_HALF]
    for signal in ("max_sim", "dense"):
        raws = [detail(rows[one.query_id], "quality").get(signal) for one in half]
        best, gap, spread = (
            [raw[name] for raw in raws if raw and raw[name] is not None] for name in ("best", "gap", "spread")
        )
        low, middle, high = np.quantile(best, [0.25, 0.5, 0.75])
        unit = (high - low) / 2 / math.log(3)
        print(
            f"{signal}: middle {middle:.3f}, spread {unit:.3f}, margin {np.quantile(gap, 0.9):.3f}, "
            f"dispersion {np.quantile(spread, 0.9):.3f}, of {len(best)} questions"
        )


def print_ablations(output: Path) -> None:
    """Print what each experiment answers, what of it is right, and what it costs."""
    faithful, superseded = faithfulness(output), superseded_facts()
    print(
        "experiment   given right  wrong  neg.declined ans.declined stale  faithful AUROC risk at 80 %  calls  ms p50"
    )
    for name in ABLATIONS:
        if name not in read_manifest(output).suites:
            continue
        both = pairs(output, name)
        given = [(case, row) for case, row in both if not row.abstained]
        right = sum(is_right(case, row) for case, row in given)
        negative = [row.abstained for case, row in both if not case.answerable]
        answerable = [row.abstained for case, row in both if case.answerable]
        stale = stale_answers(both, superseded)
        calls, milliseconds = [row.usage.calls for _, row in both], [row.total_time_ms for _, row in both]
        known = [faithful[name, row.query_id] for _, row in given if (name, row.query_id) in faithful]
        print(
            f"{name:<12} {len(given):>5} {right:>5} {len(given) - right:>6} {np.mean(negative):>13.2f} "
            f"{np.mean(answerable):>12.2f} {share(stale):>5} {np.mean(known):>9.3f} {sorts(name, both):>18} "
            f"{np.mean(calls):>6.2f} {np.median(milliseconds):>7.0f}"
        )
    print()


def print_decisions(output: Path) -> None:
    """Print what was decided of drafts that are right and wrong, and what retrieval quality tells."""
    enough = {row.query_id: float(sufficient(case, row)) for case, row in pairs(output, "r2")}
    for name in ("r1", "r1-original"):
        both = pairs(output, name)
        decided = Counter((outcome(row, "decision"), is_right(case, row)) for case, row in both)
        stopped = Counter(case.answerable for case, row in both if outcome(row, "gate") == "abstain")
        rated = [one.quality or 0.0 for one in (signals_of_row(case, row) for case, row in both)]
        print(f"{name}: passed {decided['pass', True]} right, {decided['pass', False]} wrong; ", end="")
        print(f"warned {decided['warn', True]} right, {decided['warn', False]} wrong; ", end="")
        print(f"gate stops {stopped[True]} with an answer, {stopped[False]} without; ", end="")
        print(f"RQ {min(rated):.2f} to {max(rated):.2f}, AUROC of sufficient context ", end="")
        print(f"{auroc([enough[row.query_id] for _, row in both], rated):.2f}, of an answer in the documents ", end="")
        print(f"{auroc([float(case.answerable) for case, _ in both], rated):.2f}")
    print()


def outcome(row: ExperimentResult, name: str) -> str:
    return next((one.outcome for one in row.decisions if one.name == name), "")


def faithfulness(output: Path) -> dict[tuple[str, str], float]:
    lines = (line for file in sorted((output / SCORES).glob("*.jsonl")) for line in read_scores(file))
    of_it = (line for line in lines if line.measure == "faithfulness")
    return {(line.experiment, line.query_id): line.value for line in of_it if line.value is not None}


def superseded_facts() -> dict[str, Any]:
    """Return the metadata of the questions whose answer a page that was replaced gives otherwise."""
    queries = map(json.loads, mark_superseded(KB).lines)
    return {one["query_id"]: one["metadata"] for one in queries if "superseded" in one.get("metadata", {})}


def stale_answers(both: Sequence[tuple[Case, ExperimentResult]], superseded: Mapping[str, Any]) -> list[float]:
    marked = [
        (case, row.model_copy(update={"metadata": superseded[row.query_id]}))
        for case, row in both
        if row.query_id in superseded
    ]
    scores = [StaleAnswer().score(case, row).value for case, row in marked]
    return [value for value in scores if value is not None]


def share(values: Sequence[float]) -> str:
    return f"{sum(values):.0f}/{len(values)}" if values else "-"


def sorts(name: str, both: Sequence[tuple[Case, ExperimentResult]]) -> str:
    """Return AUROC and the share of wrong ones among the surest 80 %, over drafts, of a confidence from other pages.

    None of E3, which states no signals.
    """
    each = [signals_of_row(case, row) for case, row in both]
    answered = [one for one in each if not one.declined]
    if name == "e3":
        return "-"
    stated = unseen(answered)
    scores, right = [stated[one.query_id] for one in answered], [float(one.right) for one in answered]
    return f"{auroc(right, scores):.2f} {risk_coverage(scores, [1 - one for one in right]).risk_at(0.8):>12.2f}"


def print_label(output: Path, each: Sequence[AnswerSignals]) -> None:
    answered = [one for one in each if not one.declined]
    right, declined = sum(one.right for one in answered), [one for one in each if one.declined]
    whole = sum(all_quotes(case, row) for case, row in pairs(output, "r1") if case.answerable)
    print(
        f"{len(each)} questions: {len(answered)} answered, {right} of them right (an evidence quote, a gold page cited)"
    )
    print(f"  {len(declined)} declined, {sum(one.right for one in declined)} of them rightly; all quotes: {whole}\n")


def print_worth(name: str, each: Sequence[AnswerSignals], scored: Mapping[str, Scores]) -> None:
    """Print AUROC, AURC and risk at 80 % coverage of each score, and how well the calibrated one is calibrated."""
    right = [float(one.right) for one in each]
    wrong, pages = [1 - value for value in right], [one.cluster for one in each]
    curve = risk_coverage([0.0] * len(each), wrong)
    print(f"{name}: n {len(each)}, right {np.mean(right):.2f}")
    print(f"  AURC in no order {curve.by_chance:.3f}, in the best {curve.best:.3f}")
    stated = unseen(each)
    shuffled = unseen([replace(one, right=label) for one, label in zip(each, mixed(right), strict=True)])
    rows = {"calibrated, held out": stated, **scored, "calibrated, labels shuffled": shuffled}
    print(f"  {'':<30} {'AUROC':<20} {'AURC':<22} risk at 80 %")
    for label, scores in rows.items():
        chosen = mixed(right) if "shuffled" in label else right
        line([scores[one.query_id] for one in each], [1 - float(value) for value in chosen], pages, label)
    values = [stated[one.query_id] for one in each]
    ece = estimate(expected_calibration_error, right, values, clusters=pages)
    print(f"  calibrated, held out: ECE {said(ece)}, Brier {brier(right, values):.3f}\n")


def unseen(each: Sequence[AnswerSignals]) -> Scores:
    """Return the probability of each answer from models that saw no answer about its page."""
    found = [held_out(each, seed=seed) for seed in range(REPEATS)]
    return {one.query_id: float(np.mean([stated[one.query_id] for stated in found])) for one in each}


def held_out(each: Sequence[AnswerSignals], folds: int = 5, seed: int = 0) -> dict[str, float]:
    """Return the probability of each answer by its query, from models that saw no answer about its page."""
    parts = split(each, [1.0] * folds, seed)
    found: dict[str, float] = {}
    for number, part in enumerate(parts):
        models = fit_models([one for other, rest in enumerate(parts) if other != number for one in rest])
        found |= {one.query_id: models.probability(one) for one in part}
    return found


def line(scores: Sequence[float], wrong: Sequence[float], pages: Sequence[str], label: str) -> None:
    right = [1 - value for value in wrong]
    statistics: list[Callable[..., float]] = [
        auroc,
        lambda a, b: risk_coverage(b, 1 - a).aurc,
        lambda a, b: risk_coverage(b, 1 - a).risk_at(0.8),
    ]
    found = [said(estimate(each, right, scores, clusters=pages, resamples=500)) for each in statistics]
    print(f"  {label:<30} {found[0]:<20} {found[1]:<22} {found[2]}")


def said(found: Estimate) -> str:
    if found.value is None:
        return f"- ({found.reason})"
    return f"{found.value:.3f}" + (f" [{found.interval.low:.2f}, {found.interval.high:.2f}]" if found.interval else "")


def signal_scores(each: Sequence[AnswerSignals]) -> dict[str, Scores]:
    """Return every signal by itself; what was not measured counts as its mean. What speaks for an answer speaks
    against declining, and contradiction against an answer."""
    found: dict[str, Scores] = {}
    for name in (*SIGNALS, "quality"):
        values = {one.query_id: one.quality if name == "quality" else one.signals[name] for one in each}
        known = [value for value in values.values() if value is not None]
        if known:
            middle, sign = float(np.mean(known)), -1.0 if name == "contradiction" else 1.0
            found[name] = {one.query_id: turned(one, sign * known_or(values[one.query_id], middle)) for one in each}
    return found | {"formula, as written": {one.query_id: by_formula(one) for one in each}}


def known_or(value: float | None, middle: float) -> float:
    return middle if value is None else value


def turned(one: AnswerSignals, value: float) -> float:
    return 1 - value if one.declined else value


def by_formula(one: AnswerSignals) -> float:
    checked = Checked(groundedness=one.signals["groundedness"], contradiction=one.signals["contradiction"])
    return formula(one.quality or 0.0, checked, one.declined)


def print_reader(output: Path) -> None:
    """Print what E3's reader makes of its own answers: the share of the question's weight that its sources cover."""
    prompts = load_prompts("e3")
    each, scores = list[AnswerSignals](), dict[str, float]()
    for case, row in pairs(output, "e3"):
        one = signals_of_row(case, row)
        hits = [Hit(Chunk(c.chunk_id, c.metadata.filename, c.text), 0.0, 1) for c in row.retrieved_chunks]
        messages = [{"role": said.role, "content": said.content} for said in prompts.messages(row.query, hits)]
        each.append(one)
        scores[one.query_id] = turned(one, reader_answer(messages).support)
    answered = [one for one in each if not one.declined]
    for name, some in (("all questions", each), ("answered", answered)):
        right = [float(one.right) for one in some]
        print(f"E3, {name}: n {len(some)}, right {np.mean(right):.2f}")
        line(
            [scores[one.query_id] for one in some], [1 - r for r in right], [one.cluster for one in some], "its support"
        )
    print()


def print_promise(each: Sequence[AnswerSignals], splits: int) -> None:
    answered = [one for one in each if not one.declined]
    stated = unseen(each)
    scores, wrong = [stated[one.query_id] for one in answered], [float(not one.right) for one in answered]
    found = promise(scores, wrong, 0.05)
    shuffled = [promise_of_shuffled(each, seed) for seed in range(SHUFFLES)]
    print(f"labels shuffled {SHUFFLES} times: a promise of 5 % made {sum(shuffled)} times")
    print(f"promise of 5 % at 95 %: {found.threshold if found.threshold is not None else 'none: ' + found.reason}")
    for risk in (0.05, 0.3) if splits else ():
        print(f"  {simulated(np.array(scores), risk, splits)}")


def promise_of_shuffled(each: Sequence[AnswerSignals], seed: int) -> bool:
    """Whether a promise is made where labels say nothing."""
    order = np.random.default_rng(seed).permutation(len(each))
    told = [replace(one, right=each[place].right) for one, place in zip(each, order, strict=True)]
    return calibrated("shuffled", told, 0.05, seed).promise.threshold is not None


def print_fallbacks(output: Path) -> None:
    """Print how often other words found no better, and which of E3's right answers are lost and gained."""
    rows = [row for _, row in pairs(output, "r1")]
    tried = Counter(one.outcome for row in rows for one in row.decisions if one.name == "fallback")
    right = {
        name: {row.query_id for case, row in pairs(output, name) if not row.abstained and is_right(case, row)}
        for name in ("e3", "r1")
    }
    print(f"fallbacks of r1: {dict(tried)}; ", end="")
    print(f"right answers of e3 lost {len(right['e3'] - right['r1'])}, gained {len(right['r1'] - right['e3'])}\n")


def simulated(chances: Floats, risk: float, splits: int, n: int = 2_000) -> str:
    """Say how often a promise holds where the chance of each answer to be right is known: that which was stated."""
    rng, kept, promised = np.random.default_rng(0), 0, 0
    for seed in range(splits):
        drawn = rng.choice(chances, n)
        found = promise(drawn, (rng.random(n) > drawn).astype(float), risk, seed=seed)
        promised += found.threshold is not None
        kept += found.threshold is None or float(np.mean(1 - chances[chances >= found.threshold])) <= risk
    return f"risk {risk:.0%}, {n} answers drawn {splits} times: promised {promised}, true or nothing promised {kept}"


def with_sufficient(output: Path, each: Sequence[AnswerSignals]) -> list[tuple[AnswerSignals, bool]]:
    found = {row.query_id: sufficient(case, row) for case, row in pairs(output, "r2")}
    return [(one, found[one.query_id]) for one in each if one.query_id in found]


def sufficient(case: Case, row: ExperimentResult) -> bool:
    texts = [chunk.text for chunk in row.retrieved_chunks]
    return bool(case.evidence) and all(any(is_in(each.quote, text) for text in texts) for each in case.evidence)


def is_in(quote: str, text: str) -> bool:
    return " ".join(quote.split()) in " ".join(text.split())


def all_quotes(case: Case, row: ExperimentResult) -> bool:
    text = detail(row, "decide").get("withheld", row.llm_answer)
    return all(has_quote(text, each.quote) for each in case.evidence)


def pairs(output: Path, experiment: str) -> list[tuple[Case, ExperimentResult]]:
    cases = CaseFile(output, read_manifest(output).suites[experiment].data)
    return [(cases[cases.position[row.query_id]].case, row) for row in rows_of(output, experiment)]


def rows_of(output: Path, experiment: str) -> list[ExperimentResult]:
    return [row for row in rows_in(output / read_manifest(output).suites[experiment].file) if row.ok]


def mixed(right: Sequence[float]) -> list[bool]:
    return [bool(right[place]) for place in np.random.default_rng(1).permutation(len(right))]


if __name__ == "__main__":
    main()
