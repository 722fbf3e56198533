"""Does a promised error rate hold, where the truth about every answer is known?

    pytest -m r2 --rag-output=output            # replayed; its searches and sources are used
    python benchmarks/promised_error.py output

Answers are those of the simulated model with known faults, to the study's 200 questions and the sources that r2 found
for each; another seed makes other faults. Signals are the engine's: four of retrieval, from the rows; contradiction and
self-consistency of the answers (a second seed gives the second answer); groundedness by words, in place of the judge,
which takes too long for thousands of answers. Whether an answer is right is what the model itself says of it.

All answers of all seeds are the population, so how many of them are wrong above a threshold is known exactly. Labels
are drawn from it at random, with replacement. `calibrated` fits, chooses and promises, as `rag-harness reliability
calibrate` does. A promise holds where at most the promised share of the population's answers from its threshold up are
wrong.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from rag_harness.core.text.terms import figures, terms
from rag_harness.core.types import Case, Chunk, Hit
from rag_harness.evaluation.judges.calibration.confidence import (
    FROM_RETRIEVAL,
    SIGNAL,
    SIGNALS,
    AnswerSignals,
    Logistic,
    calibrated,
    cluster,
    labels_needed,
)
from rag_harness.models.simulated_model import SimulatedModel
from rag_harness.pipelines.parts import read_answer
from rag_harness.records.cases import CaseFile
from rag_harness.records.manifest import read_manifest
from rag_harness.records.row import ExperimentResult, rows_in
from rag_harness.stats.inputs import Floats
from rag_harness.studies.reliability_verification import claims_agreement, conflicts

EXPERIMENT = "r2"
_ASKED = 20
"""Splits that are asked how many labels they need, which takes longer than the promise."""
_MARK = re.compile(r"\[Source (\d+)\]")
QUERIES = Path(__file__).parents[1] / "data" / "kb" / "queries.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--labels", type=int, nargs="+", default=[200, 1000, 4000])
    parser.add_argument("--risks", type=float, nargs="+", default=[0.05, 0.1, 0.2, 0.3])
    parser.add_argument("--splits", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=20)
    chosen = parser.parse_args()
    population = simulated(chosen.output, chosen.seeds)
    given = [one for one in population if not one.declined]
    wrong = np.mean([not one.right for one in given])
    print(f"population: {len(population):,} answers, {len(given):,} given, {wrong:.0%} of these wrong")
    for risk in chosen.risks:
        for labels in chosen.labels:
            print(tried(population, labels, risk, chosen.splits), flush=True)


def simulated(output: Path, seeds: int) -> list[AnswerSignals]:
    """Return the answers of ``seeds`` simulated models to all questions, with the engine's signals and the truth."""
    suite, model = read_manifest(output).suites[EXPERIMENT], SimulatedModel.reading(QUERIES)
    cases = CaseFile(output, suite.data)
    rows = [row for row in rows_in(output / suite.file) if row.ok]
    found = [one for row in rows for one in answers(model, cases[cases.position[row.query_id]].case, row, seeds)]
    cases.close()
    return found


def answers(model: SimulatedModel, case: Case, row: ExperimentResult, seeds: int) -> list[AnswerSignals]:
    hits = [Hit(Chunk(c.chunk_id, c.metadata.filename, c.text), 0.0, 1) for c in row.retrieved_chunks]
    sources = [(hit.chunk.doc_id, hit.chunk.text) for hit in hits]
    values = {decision.name: decision.value for decision in row.decisions}
    retrieval = {name: values.get(f"{SIGNAL}{name}") for name in FROM_RETRIEVAL}
    said = [model.answer(row.query, sources, seed=seed) for seed in range(seeds + 1)]
    rate: dict[str, float | None] = {}
    found = []
    for seed, (one, second) in enumerate(pairwise(said)):
        declined = one.outcome == "declined"
        answer = read_answer(json.dumps({"answer": one.text}), len(hits), reasoning=False)
        if one.text not in rate:
            rate[one.text] = None if declined else conflicts(answer, hits).contradiction
        checked = {
            "groundedness": None if declined else grounded_by_words(one.text, hits),
            "contradiction": rate[one.text],
            "self_consistency": None if declined else claims_agreement(one.text, second.text),
        }
        right = not case.answerable if declined else one.outcome == "right"
        found.append(
            AnswerSignals(
                f"{row.query_id}/{seed}",
                {**retrieval, **checked},
                declined,
                right,
                cluster(case, row),
                quality=values.get("retrieval quality"),
            )
        )
    return found


def grounded_by_words(answer: str, hits: Sequence[Hit]) -> float:
    """Return the share of the words of the answer that the source has which it cites for them; figures count thrice.

    A text without a mark is cited from nowhere. The judge of the evaluation takes too long for thousands of answers.
    """
    parts = _MARK.split(answer)
    total = held = 0
    for text, source in zip(parts[::2], [*parts[1::2], ""], strict=False):
        words = [*terms(text), *figures(text), *figures(text)]
        there = terms(hits[int(source) - 1].chunk.text) if source and int(source) <= len(hits) else frozenset()
        total += len(words)
        held += sum(word in there for word in words)
    return held / total if total else 0.0


def stated(model: Logistic, columns: Mapping[str, Floats]) -> Floats:
    """Return the model's probabilities of many answers at once; a signal that was not measured counts as its mean."""
    total = np.full(len(next(iter(columns.values()))), model.intercept)
    for name, coefficient in model.coefficients.items():
        standard = (columns[name] - model.means[name]) / model.spreads[name]
        total += coefficient * np.nan_to_num(standard)
    chances: Floats = 1 / (1 + np.exp(-total))
    return chances


def tried(population: Sequence[AnswerSignals], labels: int, risk: float, splits: int) -> str:
    """Draw labels again and again, and say how often there was a promise, and how often it held."""
    given = [one for one in population if not one.declined]
    wrong = np.array([not one.right for one in given])
    columns = {name: np.array([one.signals[name] for one in given], float) for name in SIGNALS}
    promised, held, answered, needed = 0, 0, list[float](), list[int]()
    for seed in range(splits):
        rng = np.random.default_rng(seed)
        drawn = [population[place] for place in rng.choice(len(population), labels)]
        saved = calibrated("simulated", drawn, risk, seed)
        threshold = saved.promise.threshold
        if threshold is None or saved.answered is None:
            held += 1
            more = labels_needed(drawn, risk, seed) if seed < _ASKED else None
            needed += [more.labels] if more else []
            continue
        promised += 1
        reaching = stated(saved.answered, columns) >= threshold
        held += float(wrong[reaching].mean()) <= risk
        answered.append(float(reaching.mean()))
    instead = f"; the others would need {np.median(needed):,.0f} labels (median)" if needed else ""
    share = f", for {np.mean(answered):.0%} of the answers" if answered else ""
    return (
        f"risk {risk:.0%}, {labels:,} labels: promised in {promised} of {splits}{share}; held, or nothing promised, in "
        f"{held} ({held / splits:.1%}){instead}"
    )


if __name__ == "__main__":
    main()
