"""Two attempts to make the reliability engine surer, which it does not use: what they reached.

    pytest -m "r1 or r2 or e3" --rag-output=OUTPUT
    python benchmarks/reliability_attempts.py OUTPUT                                # is an answer right?
    python benchmarks/reliability_attempts.py OUTPUT --tasks ../shared/data/mtragun  # is there enough to answer?

**Is an answer right?** Three features of ranks and words beside the seven signals: the share of the question's words
in the answer, one over the rank of the first source that it cites, and what the embedded reader makes of its own
answer. One model, fitted to one half of the source pages, orders the answers about the other half; mean over 100 ways
to halve them. Figures of several models are not pooled: the level of each model has a chance part in it.

**Is there enough to answer?** Five features of the sentences of the context in place of the four signals: cosine of the
best sentence to the question, mean of the best three, share of the question's words (by rarity) in one of the best
thirty and in the best three together, and the product of cosine and share of the three. Fitted to the study's rows of
``r2``, measured on MTRAG-UN as ``reliability_transfer.py`` measures the signals.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from reliability_transfer import ANSWERABLE, FILE, FORMS, Task, rarity_by_collection, read_tasks
from side_by_side import show

from rag_harness.core.text.sentences import sentence_texts
from rag_harness.core.text.terms import terms
from rag_harness.core.types import Chunk, Hit
from rag_harness.evaluation.judges.calibration.confidence import (
    SPEAKS,
    AnswerSignals,
    Features,
    fitted,
    signals_of_row,
    split,
)
from rag_harness.models.embedders import SentenceTransformersEmbedder
from rag_harness.models.prompts import load_prompts
from rag_harness.models.reader import reader_answer
from rag_harness.records.row import ExperimentResult
from rag_harness.retrieval.retrievers import Rarity
from rag_harness.stats.agreement import auroc
from rag_harness.stats.inputs import Floats
from rag_harness.stats.means import estimate
from rag_harness.stats.prediction import risk_coverage
from reliability import pairs, said, sufficient

HALVES = 100
LOOKED_AT = 30
LONGEST = 600
"""Characters of a sentence that are embedded: a longer one is a table."""
FURTHER = ("answer_words", "cited_rank", "support")
SENTENCES = ("best", "best three", "words of one", "words of three", "both")
Model = Callable[[AnswerSignals], float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--tasks", type=Path, help=f"the folder of MTRAG-UN: {FILE}")
    chosen = parser.parse_args()
    print_halves(chosen.output)
    if chosen.tasks:
        print_sentences(chosen.output, read_tasks(chosen.tasks / FILE))


def print_halves(output: Path) -> None:
    answers = [with_further(signals_of_row(case, row), row) for case, row in pairs(output, "r1")]
    answered = [one for one in answers if not one.declined]
    further = {**SPEAKS, **dict.fromkeys(FURTHER, 1)}
    ways: dict[str, Callable[[Sequence[AnswerSignals]], Model]] = {
        "relevance alone": lambda _: lambda one: one.signals["relevance"] or 0.0,
        "the seven signals": lambda fit: model_of(fit, SPEAKS, 1.0),
        "the seven, ridge 10": lambda fit: model_of(fit, SPEAKS, 10.0),
        "with the three features": lambda fit: model_of(fit, further, 1.0),
        "with the three, ridge 10": lambda fit: model_of(fit, further, 10.0),
    }
    rows = [[name, *(f"{figure:.3f}" for figure in over_halves(answered, way))] for name, way in ways.items()]
    show(f"is an answer right? {len(answered)} answers, the half that was not fitted", ["", "AURC", "AUROC"], rows)


def with_further(one: AnswerSignals, row: ExperimentResult) -> AnswerSignals:
    asked = terms(row.query)
    cited = [number for number in row.citations if 1 <= number <= len(row.retrieved_chunks)]
    hits = [Hit(Chunk(c.chunk_id, c.metadata.filename, c.text), 0.0, 1) for c in row.retrieved_chunks]
    said_to_it = [{"role": each.role, "content": each.content} for each in load_prompts("e3").messages(row.query, hits)]
    further: dict[str, float | None] = {
        "answer_words": len(asked & terms(row.llm_answer)) / max(1, len(asked)),
        "cited_rank": 1 / min(cited) if cited else None,
        "support": reader_answer(said_to_it).support if hits else None,
    }
    return replace(one, signals={**one.signals, **further})


def model_of(fit: Sequence[AnswerSignals], signs: Mapping[str, int], l2: float) -> Model:
    model = fitted([one.signals for one in fit], [one.right for one in fit], signs, l2)
    return lambda one: model.probability(one.signals)


def over_halves(each: Sequence[AnswerSignals], way: Callable[[Sequence[AnswerSignals]], Model]) -> tuple[float, float]:
    """Return the mean AURC and AUROC on the half that was not fitted."""
    areas, orders = list[float](), list[float]()
    for seed in range(HALVES):
        fit, rest = split(each, [0.5, 0.5], seed)
        stated = list(map(way(fit), rest))
        right = [float(one.right) for one in rest]
        areas.append(risk_coverage(stated, [1 - value for value in right]).aurc)
        orders.append(auroc(right, stated))
    return float(np.mean(areas)), float(np.mean(orders))


def print_sentences(output: Path, tasks: Sequence[Task]) -> None:
    ours = [(row.query, [c.text for c in row.retrieved_chunks], sufficient(c, row)) for c, row in pairs(output, "r2")]
    ours = [one for one in ours if one[1]]
    theirs = [task for task in tasks if task.passages and task.kind != "UNANSWERABLE"]
    asked = {form: [made(task.turns) for task in theirs] for form, made in FORMS.items()}
    contexts = [[passage.text for passage in task.passages] for task in theirs]
    vectors = embedded([question for question, *_ in ours], [context for _, context, _ in ours])
    vectors |= embedded([question for some in asked.values() for question in some], contexts)
    rarity = Rarity([Chunk(text, text, text) for text in {text for _, context, _ in ours for text in context}])
    model = fitted(
        [of_sentences(question, context, rarity, vectors) for question, context, _ in ours],
        [enough for *_, enough in ours],
        dict.fromkeys(SENTENCES, 1),
    )
    answerable = [float(task.kind == ANSWERABLE) for task in theirs]
    rarities, conversations = rarity_by_collection(theirs), [task.conversation for task in theirs]
    rows = []
    for form, questions in asked.items():
        stated = [
            model.probability(of_sentences(question, context, rarities[task.collection], vectors))
            for question, context, task in zip(questions, contexts, theirs, strict=True)
        ]
        rows.append([form, said(estimate(auroc, answerable, stated, clusters=conversations))])
    show(f"is there enough to answer? {sum(answerable):.0f} of {len(answerable)} tasks", ["", "AUROC"], rows)


def sentences_of(texts: Sequence[str]) -> list[str]:
    return [piece.strip()[:LONGEST] for text in texts for piece in sentence_texts(text) if len(piece.strip()) > 3]


def embedded(questions: Sequence[str], contexts: Sequence[Sequence[str]]) -> dict[str, Floats]:
    texts = sorted({*questions, *(piece for context in contexts for piece in sentences_of(context))}, key=len)
    return dict(zip(texts, SentenceTransformersEmbedder().embed_documents(texts), strict=True))


def of_sentences(question: str, context: Sequence[str], rarity: Rarity, vectors: Mapping[str, Floats]) -> Features:
    pieces = sentences_of(context)
    cosines = np.stack([vectors[piece] for piece in pieces]) @ vectors[question]
    order = [int(place) for place in np.argsort(-cosines)]
    wanted = terms(question)
    weight = sum(map(rarity.of, sorted(wanted))) or 1.0

    def share(places: Sequence[int]) -> float:
        held = frozenset[str]().union(*(terms(pieces[place]) for place in places))
        return sum(rarity.of(word) for word in sorted(wanted & held)) / weight

    three = float(np.mean(cosines[order[:3]]))
    of_three = share(order[:3])
    of_one = max(share([place]) for place in order[:LOOKED_AT])
    best = float(cosines[order[0]])
    return dict(zip(SENTENCES, (best, three, of_one, of_three, three * of_three), strict=True))


if __name__ == "__main__":
    main()
