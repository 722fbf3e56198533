"""What the reliability engine's signals of retrieval are worth on data that nothing of it has seen.

    pytest -m r2 --rag-output=OUTPUT
    python benchmarks/reliability_transfer.py ../shared/data/mtragun --study OUTPUT

The folder holds the human tasks of MTRAG-UN with their passages (IBM, Apache-2.0), told apart by people: answerable,
partial, underspecified, unanswerable. Score: AUROC of answerable against underspecified and partial, among the tasks
that have passages; those without are told apart by counting, and stand in a row of their own. Intervals are percentile
bootstrap over conversations, which are those that begin with the same question.

The passages are the hits, and the context. The question is the last turn, or all turns of the user. Rarity of words is
that of the passages of the task's collection. Scales and calibration are the shipped ones; "logistic" is fitted to the
study's rows of r2, whose label is that all evidence quotes are in the context. Nothing is fitted to the folder.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from side_by_side import show

from rag_harness.core.settings.configurations import NORMAL
from rag_harness.core.types import Chunk, Hit
from rag_harness.evaluation.judges.calibration.confidence import (
    FROM_RETRIEVAL,
    SPEAKS,
    AnswerSignals,
    Logistic,
    fitted,
    read_confidence,
    signals_of_row,
)
from rag_harness.models.array_store import ArrayStore, CachedEmbedder
from rag_harness.models.embedders import SentenceTransformersEmbedder
from rag_harness.models.rerankers import MODEL, LateInteractionReranker
from rag_harness.retrieval.retrievers import Rarity
from rag_harness.stats.agreement import auroc
from rag_harness.stats.inputs import Floats
from rag_harness.stats.means import Estimate, estimate
from rag_harness.studies.reliability_retrieval import COSINE, SCALES, Scale, Signals, quality, signals
from reliability import pairs, said, sufficient, unseen

FILE = "reference.jsonl"
CALIBRATION = Path(__file__).parents[1] / "reliability/r1.json"
ANSWERABLE, UNDERSPECIFIED, PARTIAL = "ANSWERABLE", "UNDERSPECIFIED", "PARTIAL"
FORMS: Mapping[str, Callable[[Sequence[str]], str]] = {"last turn": lambda turns: turns[-1], "turns joined": "\n".join}
Scorer = Callable[["Measured"], float | None]


@dataclass(frozen=True)
class Task:
    """A question as a person asked it, in its turns, and what people found for it."""

    kind: str
    collection: str
    turns: tuple[str, ...]
    passages: tuple[Chunk, ...]

    @property
    def conversation(self) -> str:
        return self.turns[0].strip()


@dataclass(frozen=True)
class Measured:
    """A task with the signals of one form of its question, by MaxSim and by the cosine."""

    task: Task
    by_max_sim: Signals
    by_cosine: Signals


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help=f"of MTRAG-UN: {FILE}")
    parser.add_argument("--study", type=Path, default=Path("output"), help="a run that has r2")
    chosen = parser.parse_args()
    tasks = read_tasks(chosen.folder / FILE)
    print_tasks(tasks)
    study = study_of(chosen.study)
    models = models_of(study)
    print_study(study)
    by_form = measured_all([task for task in tasks if task.kind in (ANSWERABLE, UNDERSPECIFIED, PARTIAL)])
    print_signals(by_form, scorers(models))
    print_parts(by_form, {"RQ": scorers(models)["RQ"], "logistic": scorers(models)["logistic of the four"]})
    print_gate(by_form)


def read_tasks(file: Path) -> list[Task]:
    """Return the tasks of the file, in its order."""
    return [task_of(json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines()]


def task_of(row: Mapping[str, Any]) -> Task:
    turns = tuple(turn["text"].strip() for turn in row["input"] if turn["speaker"] == "user")
    found = [(each["document_id"], each["text"].strip()) for each in row["contexts"]]
    passages = tuple(Chunk(f"{name}#{number}", name, text, 0, len(text)) for number, (name, text) in enumerate(found))
    return Task(row["answerability"][0], row["Collection"], turns, passages)


def print_tasks(tasks: Sequence[Task]) -> None:
    rows = []
    for kind in sorted({task.kind for task in tasks}):
        counts = [len(task.passages) for task in tasks if task.kind == kind]
        known = [count for count in counts if count]
        numbers = [len(counts), counts.count(0), counts.count(1), int(np.median(known)) if known else 0, max(counts)]
        rows.append([kind.lower(), *map(str, numbers)])
    show(f"{len(tasks)} tasks", ["", "n", "no passage", "one", "median of others", "most"], rows)


def study_of(output: Path) -> list[AnswerSignals]:
    """Return the questions of our study: their signals of retrieval, right where all evidence is in the context."""
    both = [(signals_of_row(case, row), sufficient(case, row)) for case, row in pairs(output, "r2")]
    return [replace(one, signals=of_retrieval(one), declined=False, right=found) for one, found in both]


def of_retrieval(one: AnswerSignals) -> dict[str, float | None]:
    return {name: one.signals[name] for name in FROM_RETRIEVAL}


def models_of(study: Sequence[AnswerSignals]) -> dict[str, Logistic]:
    """Return what was fitted before: to our study here, and the shipped calibration with what retrieval tells."""
    signs = {name: SPEAKS[name] for name in FROM_RETRIEVAL}
    found = {"logistic of the four": fitted([one.signals for one in study], [one.right for one in study], signs)}
    shipped = read_confidence(CALIBRATION)
    return found | ({"shipped calibration, the four": shipped.answered} if shipped and shipped.answered else {})


def print_study(study: Sequence[AnswerSignals]) -> None:
    """Print what the same scores are worth where they come from."""
    right, pages = [float(one.right) for one in study], [one.cluster for one in study]
    columns: dict[str, list[float | None]] = {name: [one.signals[name] for one in study] for name in FROM_RETRIEVAL} | {
        "RQ": [one.quality for one in study]
    }
    held = unseen(study)
    columns["logistic of the four, held out"] = [held[one.query_id] for one in study]
    rows = [[name, said(estimate(auroc, right, filled(values), clusters=pages))] for name, values in columns.items()]
    show(f"our study, all evidence in the context: {sum(right):.0f} of {len(right)}", ["", "AUROC"], rows)


def measured_all(tasks: Sequence[Task]) -> dict[str, list[Measured]]:
    """Return the tasks measured, by the form of the question."""
    embedder = CachedEmbedder(SentenceTransformersEmbedder(), ArrayStore([]), ArrayStore([]), may_cut=True)
    unused: Any = None  # BM25 has no part in MaxSim.
    reranker = LateInteractionReranker(embedder, unused, ArrayStore([]))
    texts = list(dict.fromkeys(passage.text for task in tasks for passage in task.passages))
    embedder.token_vectors(texts, "document")  # All at once: batches of like lengths.
    rarities = rarity_by_collection(tasks)
    return {
        form: [measured(task, made(task.turns), embedder, reranker, rarities[task.collection]) for task in tasks]
        for form, made in FORMS.items()
    }


def measured(
    task: Task, question: str, embedder: CachedEmbedder, reranker: LateInteractionReranker, rarity: Rarity
) -> Measured:
    hits: list[Hit] = []
    if task.passages:
        cosines = (
            embedder.embed_documents([each.text for each in task.passages]) @ embedder.embed_queries([question])[0]
        )
        hits = [Hit(each, float(cosine), 1) for each, cosine in zip(task.passages, cosines, strict=True)]
        sims = reranker.absolute(question, hits)
        hits = [replace(hit, scores={**hit.scores, "max_sim": sim}) for hit, sim in zip(hits, sims, strict=True)]

    def by(scale: Scale) -> Signals:
        return signals(question, hits, hits, rarity, scale)

    return Measured(task, by(SCALES[MODEL]), by(COSINE))


def rarity_by_collection(tasks: Sequence[Task]) -> dict[str, Rarity]:
    """Return the rarity of words in each collection, of which every passage counts once."""
    passages: dict[str, dict[str, Chunk]] = defaultdict(dict)
    for task in tasks:
        passages[task.collection] |= {each.text: each for each in task.passages}
    return {name: Rarity(each.values()) for name, each in passages.items()}


def scorers(models: Mapping[str, Logistic]) -> dict[str, Scorer]:
    """Return by name what may tell an answerable task from others: more of it should speak for an answer."""
    found: dict[str, Scorer] = {name: signal_scorer(name) for name in FROM_RETRIEVAL}
    found["RQ"] = lambda one: quality(one.by_max_sim)
    found |= {name: model_scorer(model) for name, model in models.items()}
    found["relevance by cosine"] = lambda one: one.by_cosine.relevance
    found["RQ by cosine"] = lambda one: quality(one.by_cosine)
    found["no signal: fewer passages"] = lambda one: -float(len(one.task.passages))
    found["no signal: later turn"] = lambda one: float(len(one.task.turns))
    return found


def signal_scorer(name: str) -> Scorer:
    return lambda one: one.by_max_sim.items()[name]


def model_scorer(model: Logistic) -> Scorer:
    return lambda one: model.probability(one.by_max_sim.items())


def print_signals(by_form: Mapping[str, Sequence[Measured]], scored: Mapping[str, Scorer]) -> None:
    kept = {form: with_passages(each) for form, each in by_form.items()}
    rows = [[name, *(worth(each, scorer) for each in kept.values())] for name, scorer in scored.items()]
    show(f"AUROC, {sizes(kept)}", ["", *kept], rows)


def print_parts(by_form: Mapping[str, Sequence[Measured]], scored: Mapping[str, Scorer]) -> None:
    """Print what the scores are worth in parts of the tasks, and where those without passages count as the lowest."""
    for form, each in by_form.items():
        kept = with_passages(each)
        parts = {
            "underspecified": only(kept, UNDERSPECIFIED),
            "partial": only(kept, PARTIAL),
            "two passages or more": [one for one in kept if len(one.task.passages) > 1],
            "those without a passage, too": list(each),
        }
        rows = [[f"{n}: {sizes({n: some})}", *(worth(some, by) for by in scored.values())] for n, some in parts.items()]
        rows.append(["pairs of one collection", *(worth(kept, by, within=True) for by in scored.values())])
        show(f"AUROC in parts, {form}", ["", *scored], rows)


def print_gate(by_form: Mapping[str, Sequence[Measured]]) -> None:
    """Print where the gate of r1 would send the tasks that have passages."""
    rows = []
    for form, each in by_form.items():
        for kind in (ANSWERABLE, PARTIAL, UNDERSPECIFIED):
            ways = Counter(way(quality(one.by_max_sim)) for one in with_passages(each) if one.task.kind == kind)
            shares = [f"{ways[name] / ways.total():.0%}" for name in ("go on", "fallback", "abstain")]
            rows.append([f"{kind.lower()}, {form}", *shares])
    show("the gate", ["", "go on", "fallback", "abstain"], rows)


def way(found: float) -> str:
    if found > NORMAL.go_on:
        return "go on"
    return "fallback" if found >= NORMAL.fallback else "abstain"


def with_passages(each: Sequence[Measured]) -> list[Measured]:
    return [one for one in each if one.task.passages]


def only(each: Sequence[Measured], kind: str) -> list[Measured]:
    return [one for one in each if one.task.kind in (ANSWERABLE, kind)]


def sizes(by_name: Mapping[str, Sequence[Measured]]) -> str:
    kinds = [one.task.kind == ANSWERABLE for one in next(iter(by_name.values()))]
    return f"{sum(kinds)} against {len(kinds) - sum(kinds)}"


def worth(each: Sequence[Measured], scorer: Scorer, within: bool = False) -> str:
    """Return AUROC with its interval; ``within`` compares tasks of one collection alone."""
    return said(estimated(each, scorer, within))


def estimated(each: Sequence[Measured], scorer: Scorer, within: bool = False) -> Estimate:
    answerable = [float(one.task.kind == ANSWERABLE) for one in each]
    names = sorted({one.task.collection for one in each})
    strata = [float(names.index(one.task.collection)) if within else 0.0 for one in each]
    conversations = [one.task.conversation for one in each]
    return estimate(stratified, answerable, scores_of(each, scorer), strata, clusters=conversations)


def scores_of(each: Sequence[Measured], scorer: Scorer) -> list[float]:
    """Return a score of each task: the mean where one was not measured, the lowest of all where it has no passage."""
    scores = filled([scorer(one) if one.task.passages else None for one in each])
    lowest = min(scores) - 1
    return [score if one.task.passages else lowest for one, score in zip(each, scores, strict=True)]


def filled(values: Sequence[float | None]) -> list[float]:
    """Return the values, with the mean of the others for what was not measured."""
    middle = float(np.mean([value for value in values if value is not None]))
    return [middle if value is None else value for value in values]


def stratified(truth: Floats, scores: Floats, strata: Floats) -> float:
    """Return AUROC over the pairs of one stratum; every pair counts the same."""
    pairs_won, pairs_all = 0.0, 0.0
    for stratum in np.unique(strata):
        mine = strata == stratum
        count = float(truth[mine].sum() * (1 - truth[mine]).sum())
        if count:
            pairs_won, pairs_all = pairs_won + count * auroc(truth[mine], scores[mine]), pairs_all + count
    return pairs_won / pairs_all if pairs_all else auroc(truth, scores)


if __name__ == "__main__":
    main()
