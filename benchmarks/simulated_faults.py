"""Compares the faults that the simulated model planted with what was found, for ``docs/dev/results/simulated.md``.

    pytest -m "e1 or e2 or e3 or e4" --rag-profile=simulated --rag-mode=replay --rag-output=OUTPUT
    python benchmarks/simulated_faults.py OUTPUT

The truth of each answer is worked out again from its row: the question, the chunks of its prompt, and whether steps of
reasoning were asked for. An answer that the simulated model would not give stops the script. Intervals are 95 %,
Clopper-Pearson. The expected shares are of the stated rates, for the contexts that there were.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import rag_harness
from rag_harness.models.simulated_model import (
    DECLINED,
    FAULTS,
    GUESSED,
    IGNORED,
    INVENTED,
    MIXED,
    WRONG_MEMORY,
    KnownQuestion,
    SimulatedModel,
    fault_rate,
    nearest_sentence,
    question_key,
    read_questions,
)
from rag_harness.stats.distributions import clopper_pearson

ROOT = Path(__file__).parents[1]
NONE = "none"
"""What the tables call an answer without a fault."""
LOW = 0.5
"""A judged score below it says that an answer is wrong."""
JUDGED = ("factuality", "faithfulness")
WRONG_KINDS = ("Hallucination", "Retrieval Failure", "Irrelevant", "Total Failure", "Answered Unanswerable")
EXPECTED_CAUSES: Mapping[str, Callable[[Truth], str]] = {
    WRONG_MEMORY: lambda _: "Retrieval Miss: no retriever",
    INVENTED: lambda _: "Logic Failure: answered what is not in the documents",
    IGNORED: lambda truth: "Logic Failure" if truth.has_evidence or not truth.known.pages else "Retrieval Miss",
    MIXED: lambda _: "Logic Failure: distracted",
    GUESSED: lambda truth: (
        "Retrieval Miss" if truth.known.pages else "Logic Failure: answered what is not in the documents"
    ),
    DECLINED: lambda _: "Logic Failure: wrong refusal",
}
"""The cause that follows from a fault, by the rules of docs/reference/causes.md; without a detail, any detail does."""
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Truth:
    """One answer with what was planted in it, and what was found of it."""

    experiment: str
    known: KnownQuestion
    fault: str
    outcome: str
    has_context: bool
    has_evidence: bool
    has_sentence: bool
    reasons: bool
    found: Mapping[str, Any]

    @property
    def is_bad(self) -> bool:
        """Whether the answer is wrong, or declines what it had the evidence for."""
        return self.outcome == "wrong" or self.fault == DECLINED

    @property
    def cause(self) -> str:
        """The cause that was found, with its detail; empty for none."""
        return ": ".join(filter(None, (self.found.get("cause"), self.found.get("cause_detail"))))

    def chances(self) -> dict[str, float]:
        """Return the probability of each fault, as stated, and under ``wrong`` that of a wrong answer."""
        rates = {fault: fault_rate(fault, self.reasons) for fault in FAULTS}
        memory = WRONG_MEMORY if self.known.pages else INVENTED
        if not self.has_context:
            return {memory: rates[memory], "wrong": rates[memory]}
        left, chances = 1 - rates[IGNORED], {IGNORED: rates[IGNORED]}
        if self.has_evidence:
            chances[DECLINED] = left * rates[DECLINED]
            chances[MIXED] = left * (1 - rates[DECLINED]) * rates[MIXED] * self.has_sentence
        else:
            chances[GUESSED] = left * rates[GUESSED] * self.has_sentence
        wrong = rates[IGNORED] * rates[memory] + chances.get(MIXED, 0.0) + chances.get(GUESSED, 0.0)
        return {**chances, "wrong": wrong}


def truths(output: Path, queries: Path) -> list[Truth]:
    """Return the truth of each answer of a run.

    Raises:
        SystemExit: an answer is not the simulated model's, or not of its present code.
    """
    model, known = SimulatedModel.reading(queries), read_questions(queries)
    found = {(line["experiment"], line["query_id"]): line for line in rag_harness.load_results(output, frame="records")}
    return [_truth(row, model, known, found[row["experiment"], row["query_id"]]) for row in _rows(output)]


def _rows(output: Path) -> Iterator[Row]:
    for file in sorted(output.glob("e*.jsonl")):
        yield from map(json.loads, file.read_text(encoding="utf-8").splitlines())


def _truth(row: Row, model: SimulatedModel, questions: Mapping[str, KnownQuestion], found: Row) -> Truth:
    context = [(hit["metadata"]["filename"], hit["text"]) for hit in row["retrieved_chunks"]]
    reasons, known = row["reasoning_steps"] is not None, questions[question_key(row["query"])]
    answer = model.answer(row["query"], context, reasons=reasons)
    if answer.text != row["llm_answer"]:
        sys.exit(f"{row['experiment']}-{row['query_id']} is no answer of the simulated model. Run pytest again.")
    holding = known.evidence_in(context)
    pages = {context[n - 1][0] for n in holding}
    others = [(file, "" if file in pages else text) for file, text in context]
    return Truth(
        row["experiment"],
        known,
        answer.fault,
        answer.outcome,
        bool(context),
        bool(holding),
        bool(nearest_sentence(known.text, others)[0]),
        reasons,
        found,
    )


def funnel(found: Sequence[Truth]) -> Iterator[list[str]]:
    """Yield how many answers of each experiment are wrong: stated, planted, and found by the judge."""
    yield ["", "answers", "right", "declined", "wrong", "wrong, 95 %", "stated", "factuality", "factuality < 0.5"]
    for name in experiments(found):
        of = [each for each in found if each.experiment == name]
        outcomes = Counter(each.outcome for each in of)
        scores = [each.found["factuality"] for each in of if each.found.get("factuality") is not None]
        low = sum(score < LOW for score in scores)
        yield [
            name,
            f"{len(of)}",
            *(f"{outcomes[outcome]}" for outcome in ("right", "declined", "wrong")),
            _share(outcomes["wrong"], len(of)),
            f"{sum(each.chances()['wrong'] for each in of) / len(of):.1%}",
            f"{sum(scores) / len(scores):.3f}" if scores else "-",
            f"{low} of {len(scores)}",
        ]


def rates(found: Sequence[Truth]) -> Iterator[list[str]]:
    """Yield how often each fault was made, and how often it is by the stated rates."""
    yield ["", *(f"{name} {what}" for name in experiments(found) for what in ("made", "expected"))]
    for fault in FAULTS:
        cells = []
        for name in experiments(found):
            of = [each for each in found if each.experiment == name]
            made, expected = sum(each.fault == fault for each in of), sum(each.chances().get(fault, 0.0) for each in of)
            cells += [f"{made}", f"{expected:.1f}"] if expected else ["", ""]
        yield [fault, *cells]


def against(found: Sequence[Truth], of: Callable[[Truth], str]) -> Iterator[list[str]]:
    """Yield a row for each planted fault, a column for each thing found."""
    counts = Counter((planted_as(each), of(each) or "-") for each in found)
    columns = sorted({column for _, column in counts}, key=lambda each: (each == "-", each))
    yield ["", *columns]
    for fault in [*FAULTS, NONE]:
        for outcome in ("right", "wrong", "declined"):
            row = f"{fault}, {outcome}"
            if any(planted == row for planted, _ in counts):
                yield [row, *(f"{counts[row, column] or ''}" for column in columns)]


def planted_as(truth: Truth) -> str:
    """Return the row of a truth in ``against``."""
    return f"{truth.fault or NONE}, {truth.outcome}"


def detectors(found: Sequence[Truth]) -> Iterator[list[str]]:
    """Yield recall and precision of what says that an answer is wrong, against the answers that are wrong."""
    yield ["", "experiments", "wrong", "said to be wrong", "recall", "precision"]
    for name, says, among in _DETECTORS:
        looked = [each for each in found if each.outcome != "declined" and among(each) and says(each) is not None]
        wrong = [each for each in looked if each.outcome == "wrong"]
        said = [each for each in looked if says(each)]
        hits = sum(bool(says(each)) for each in wrong)
        names = sorted({each.experiment for each in looked}) or ["-"]
        yield [name, f"{names[0]} to {names[-1]}", f"{len(wrong)}", f"{len(said)}", _of(hits, wrong), _of(hits, said)]


def _is_low(measure: str) -> Callable[[Truth], bool | None]:
    def says(truth: Truth) -> bool | None:
        score = truth.found.get(measure)
        return None if score is None else bool(score < LOW)

    return says


_DETECTORS: Sequence[tuple[str, Callable[[Truth], bool | None], Callable[[Truth], bool]]] = (
    *((f"{measure} < {LOW}", _is_low(measure), lambda _: True) for measure in JUDGED),
    ("kind of answer", lambda truth: truth.found.get("category") in WRONG_KINDS, lambda truth: truth.has_context),
    ("a cause was found", lambda truth: bool(truth.found.get("cause")), lambda _: True),
)


def by_fault(found: Sequence[Truth]) -> Iterator[list[str]]:
    """Yield, for each fault, how many bad answers were noticed, and how many have the cause that follows from it."""
    yield ["", "bad answers", *(f"{measure} < {LOW}" for measure in JUDGED), "a cause", "the cause that follows"]
    for fault, expected in EXPECTED_CAUSES.items():
        bad = [each for each in found if each.fault == fault and each.is_bad]
        named = [each for each in bad if each.cause]
        right = [each for each in named if each.cause.startswith(expected(each))]
        low = [[each for each in bad if _is_low(measure)(each)] for measure in JUDGED]
        judged = [[each for each in bad if _is_low(measure)(each) is not None] for measure in JUDGED]
        cells = [_of(len(some), among) for some, among in zip(low, judged, strict=True)]
        yield [fault, f"{len(bad)}", *cells, _of(len(named), bad), _of(len(right), bad)]


def by_cause(found: Sequence[Truth]) -> Iterator[list[str]]:
    """Yield, for each cause, how often it was named and is true, and how many of the trials that have it were found.

    Without a fault, a question that the documents answer is declined for want of evidence. What is right has no cause,
    unless the judge is wrong about it.
    """
    yield ["", "named", "true of these", "trials that have it", "found of these"]
    for cause in ("Retrieval Miss", "Logic Failure", "Judge Doubtful"):
        named = [each for each in found if each.cause.startswith(cause)]
        true = [each for each in named if _true_cause(each) == cause]
        have = [each for each in found if _true_cause(each) == cause]
        found_of = ["-", "-"] if cause == "Judge Doubtful" else [f"{len(have)}", _of(len(true), have)]
        yield [cause, f"{len(named)}", _of(len(true), named), *found_of]


def _true_cause(truth: Truth) -> str:
    if truth.outcome == "right":
        return "Judge Doubtful"
    if truth.fault and truth.is_bad:
        return EXPECTED_CAUSES[truth.fault](truth).partition(":")[0]
    return "Retrieval Miss" if truth.known.pages else ""


def experiments(found: Sequence[Truth]) -> list[str]:
    """Return the experiments of a run."""
    return sorted({each.experiment for each in found})


def _of(hits: int, among: Sequence[object]) -> str:
    return f"{hits} of {len(among)} ({hits / len(among):.0%})" if among else "-"


def _share(hits: int, n: int) -> str:
    low, high = clopper_pearson(hits, n)
    return f"{hits / n:.1%} [{low:.1%}, {high:.1%}]"


def table(rows: Iterator[list[str]]) -> Iterator[str]:
    """Yield a table as Markdown."""
    for n, row in enumerate(rows):
        yield f"| {' | '.join(row)} |"
        if not n:
            yield f"|{'---|' * len(row)}"


def report(output: Path, queries: Path) -> Iterator[str]:
    """Yield the lines of the report."""
    found = truths(output, queries)
    retrieving = [each for each in found if each.has_context]
    parts = {
        "The funnel": funnel(found),
        "Faults by experiment": rates(found),
        "Is the answer wrong? What says so": detectors(found),
        "By fault": by_fault(found),
        "By cause": by_cause(found),
        "Kinds of answers, E2 to E4": against(retrieving, lambda each: str(each.found.get("category") or "")),
        "Causes, all experiments": against(found, lambda each: each.cause),
    }
    for title, rows in parts.items():
        yield from (f"## {title}", "", *table(rows), "")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path, help="folder of the run's results")
    parser.add_argument("--queries", type=Path, default=ROOT / "data/kb/queries.jsonl")
    given = parser.parse_args()
    print("\n".join(report(given.output, given.queries)).strip())
