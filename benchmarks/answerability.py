"""How well can "do these passages answer this question?" be told without an LLM, by words, MiniLM and rules?

    git clone https://github.com/chrischute/squad
    python benchmarks/answerability.py squad/data/dev-v2.0.json --mtragun ../shared/data/mtragun --cache /tmp/answers

The first file is SQuAD 2.0's development set or a part of it (Rajpurkar et al. 2018, CC BY-SA 4.0): each paragraph has
questions that it answers, and questions that people wrote so that it does not, with the same words: another name, a
negation, an antonym, a condition that nothing meets. The part that was measured has 16 articles, 646 paragraphs and
6,078 questions, 2,910 of them answerable. Nothing of it is kept here.

Method: the features of ``answerability_features.py`` and logistic regression, fitted to some articles and asked about
others. Features and rules were chosen on eight articles (``CHOSEN_ON``) alone, by cross-validation within them, and
were frozen in a commit before the first look at the other eight. Score: AUROC of "the paragraph answers it"; intervals
by bootstrap over articles. Beside it: the cosine, the prototype's features, a control that never reads the paragraph,
and what the reliability engine's gate sees. The last part asks the model that was fitted to all articles about
MTRAG-UN's human tasks with passages (IBM, Apache-2.0): answerable against underspecified and partly answerable.

Found on 27 November 2026. On the eight articles that nothing was chosen on: 0.768 [0.717, 0.815]; 0.693 [0.650, 0.741]
without the negations, which who wrote these questions put into them; the cosine 0.625, r1's signals 0.597. On MTRAG-UN
by the last turn: 0.619 [0.562, 0.680], the cosine 0.657 [0.600, 0.713], r1's retrieval quality 0.625 [0.564, 0.685]; by
all turns 0.557, 0.669 and 0.646. The goal was 0.80 and is missed, and what is gained on SQuAD is gained on SQuAD alone:
no measure was made of it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import numpy.typing as npt
from answerability_features import Asked, features, prototype, question_only
from reliability_transfer import ANSWERABLE, FORMS, PARTIAL, UNDERSPECIFIED, read_tasks
from side_by_side import show
from sklearn.linear_model import LogisticRegression

from rag_harness.core.types import Chunk, Hit
from rag_harness.evaluation.judges.embedded.alignment import Encoded, EncodedSource, encode, passage_of
from rag_harness.evaluation.judges.embedded.judgement import standardised
from rag_harness.models.array_store import ArrayStore, CachedEmbedder
from rag_harness.models.embedders import SentenceTransformersEmbedder
from rag_harness.models.rerankers import MODEL, LateInteractionReranker
from rag_harness.retrieval.retrievers import Rarity
from rag_harness.stats.agreement import auroc
from rag_harness.stats.means import estimate
from rag_harness.studies.reliability_retrieval import SCALES, quality, signals

Doubles = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Measure = Callable[[Asked], Mapping[str, float]]

CHOSEN_ON = frozenset(
    ("European_Union_law", "Packet_switching", "Force", "Normans", "1973_oil_crisis", "French_and_Indian_War",
     "Immune_system", "Harvard_University")
)  # fmt: skip
"""The articles that features and rules were chosen on: the first half in a random order with seed 0."""
C = 0.01
SPLITS = 10
OURS = "all features, logistic"
NEGATIONS = ("negates", "denies", "prefix")


@dataclass(frozen=True)
class Question:
    """A question about a context, and whether that answers it."""

    group: str
    text: str
    passages: tuple[str, ...]
    answerable: bool
    kind: str = ""


@dataclass(frozen=True)
class Table:
    """All questions with their features, by recipe."""

    questions: Sequence[Question]
    rows: Mapping[str, Doubles]

    @property
    def truth(self) -> Doubles:
        return np.array([each.answerable for each in self.questions], np.float64)

    @property
    def groups(self) -> npt.NDArray[np.str_]:
        return np.array([each.group for each in self.questions])


def squad(file: Path) -> Iterator[Question]:
    """Yield the questions of a file in SQuAD 2.0's format."""
    for article in json.loads(file.read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            for each in paragraph["qas"]:
                context = (paragraph["context"],)
                yield Question(article["title"], each["question"].strip(), context, not each["is_impossible"])


def mtragun(folder: Path, form: Callable[[Sequence[str]], str]) -> Iterator[Question]:
    """Yield the tasks that have passages; ``form`` makes the question of the user's turns."""
    for task in read_tasks(folder / "reference.jsonl"):
        if task.passages and task.kind in (ANSWERABLE, PARTIAL, UNDERSPECIFIED):
            passages = tuple(each.text for each in task.passages)
            yield Question(task.conversation, form(task.turns), passages, task.kind == ANSWERABLE, task.kind)


class Reading:
    """Reads questions and passages, each text once; vectors of whole texts are made together, in batches."""

    def __init__(self, questions: Sequence[Question]) -> None:
        self._embedder = SentenceTransformersEmbedder()
        passages = dict.fromkeys(text for each in questions for text in each.passages)
        self._passages = {text: encode(passage_of(text), self._embedder.pieces) for text in passages}
        sentences = (sentence for each in self._passages.values() for sentence in sentences_of(each))
        texts = list(dict.fromkeys([*(each.text for each in questions), *passages, *sentences]))
        self._vectors = dict(zip(texts, self._embedder.embed_documents(texts), strict=True))

    def asked(self, question: Question) -> Asked:
        read = [self._passages[text] for text in question.passages]
        return Asked(
            encode(passage_of(question.text), self._embedder.pieces),
            EncodedSource(tuple(read)),
            self._vectors[question.text],
            np.array([self._vectors[sentence] for each in read for sentence in sentences_of(each)]),
            np.array([self._vectors[text] for text in question.passages]),
        )


def sentences_of(passage: Encoded) -> list[str]:
    return [passage.text.text[start:end] for start, end in passage.text.sentences]


RECIPES: Mapping[str, Measure] = {
    OURS: features,
    "without negations": lambda of: {
        name: value for name, value in features(of).items() if not any(word in name for word in NEGATIONS)
    },
    "the prototype's features, logistic": prototype,
    "control: the question alone": question_only,
}


def table(questions: Sequence[Question], kept: Path) -> Table:
    """Return the questions with the features of each recipe, the cosine, and what the gate sees; kept in a file."""
    if kept.is_file():
        with np.load(kept) as file:
            return Table(questions, {name: file[name] for name in file.files})
    rows = measured(questions) | what_the_gate_sees(questions)
    np.savez(kept, allow_pickle=False, **rows)
    return Table(questions, rows)


def measured(questions: Sequence[Question]) -> dict[str, Doubles]:
    reading = Reading(questions)
    rows: dict[str, list[list[float]]] = {name: [] for name in RECIPES}
    for question in questions:
        of = reading.asked(question)
        for name, measure in RECIPES.items():
            rows[name].append([*measure(of).values()])
    found = {name: np.array(values, np.float64) for name, values in rows.items()}
    return {**found, "cosine": found[OURS][:, :1]}


def what_the_gate_sees(questions: Sequence[Question]) -> dict[str, Doubles]:
    """Return r1's signals of retrieval, if the passages are what was found: the four (NaN: not measured), and RQ."""
    embedder = CachedEmbedder(SentenceTransformersEmbedder(), ArrayStore([]), ArrayStore([]), may_cut=True)
    unused: Any = None  # BM25 has no part in MaxSim.
    reranker = LateInteractionReranker(embedder, unused, ArrayStore([]))
    chunks = {text: Chunk(text, text, text, 0, len(text)) for each in questions for text in each.passages}
    embedder.token_vectors([*chunks], "document")  # All at once: batches of like lengths.
    embedder.token_vectors([*dict.fromkeys(each.text for each in questions)], "query")
    in_group: dict[str, dict[str, Chunk]] = {}
    for each in questions:
        in_group.setdefault(each.group, {}).update({text: chunks[text] for text in each.passages})
    rarity = {group: Rarity(each.values()) for group, each in in_group.items()}
    rows = []
    for each in questions:
        hits = [Hit(chunks[text], 0.0, 1) for text in each.passages]
        sims = reranker.absolute(each.text, hits)
        hits = [replace(hit, scores={"max_sim": sim}) for hit, sim in zip(hits, sims, strict=True)]
        found = signals(each.text, hits, hits, rarity[each.group], SCALES[MODEL])
        rows.append([np.nan if value is None else value for value in found.items().values()] + [quality(found)])
    every = np.array(rows, np.float64)
    return {"r1's signals, logistic": every[:, :-1], "r1's retrieval quality": every[:, -1:]}


def scored(of: Table, name: str, training: Mask, asked: Doubles | None = None) -> Doubles:
    """Return the scores by the model of the training questions; a single column is the score."""
    rows = of.rows[name]
    wanted = rows if asked is None else asked
    if rows.shape[1] == 1:
        return wanted[:, 0]
    known = rows[training]
    there = np.isfinite(known)
    mean = np.where(there, known, 0).sum(axis=0) / np.maximum(there.sum(axis=0), 1)
    scale = np.sqrt(np.where(there, (known - mean) ** 2, 0).sum(axis=0) / np.maximum(there.sum(axis=0), 1))
    scale[scale == 0] = 1
    model = LogisticRegression(C=C, max_iter=1000).fit(standardised(known, mean, scale), of.truth[training])
    found: Doubles = model.decision_function(standardised(wanted, mean, scale))
    return found


def once(of: Table) -> None:
    """Print what each recipe is worth on the articles that nothing was chosen on."""
    chosen_on = np.isin(of.groups, [*CHOSEN_ON])
    if not 0 < chosen_on.sum() < len(chosen_on):
        print("These are other articles than those measured here: no half that something was chosen on.")
        return
    rows = []
    for name in of.rows:
        unseen = scored(of, name, chosen_on)[~chosen_on]
        back = scored(of, name, ~chosen_on)[chosen_on]
        held = np.concatenate([unseen_article(of, name, article) for article in np.unique(of.groups)])
        order = np.concatenate([np.flatnonzero(of.groups == article) for article in np.unique(of.groups)])
        rows.append(
            [
                name,
                said(of.truth[~chosen_on], unseen, of.groups[~chosen_on]),
                said(of.truth[chosen_on], back, of.groups[chosen_on]),
                said(of.truth[order], held, of.groups[order]),
            ]
        )
    header = ["AUROC", "unseen half", "the half chosen on", "each article, of the 15 others"]
    show(f"{len(of.questions)} questions, {of.truth.sum():.0f} answerable", header, rows)


def unseen_article(of: Table, name: str, article: str) -> Doubles:
    is_asked = np.asarray(of.groups == article)
    found: Doubles = scored(of, name, ~is_asked)[is_asked]
    return found


def splits(of: Table) -> None:
    """Print what each recipe is worth on random halves; the rules have seen part of them."""
    articles = np.unique(of.groups)
    found: dict[str, list[float]] = {name: [] for name in of.rows}
    for seed in range(SPLITS):
        chosen = np.random.default_rng(100 + seed).permutation(articles)[: len(articles) // 2]
        training = np.isin(of.groups, chosen)
        for name, values in found.items():
            values.append(auroc(of.truth[~training], scored(of, name, training)[~training]))
    rows = [[n, f"{np.mean(v):.3f}", f"{min(v):.3f}", f"{max(v):.3f}"] for n, v in found.items()]
    show(f"{SPLITS} random halves of the articles", ["AUROC", "mean", "least", "most"], rows)


def transfer(of: Table, tasks: Table, form: str) -> None:
    """Print what the model of all articles is worth on the tasks of MTRAG-UN."""
    kinds = np.array([each.kind for each in tasks.questions])
    rows = []
    for name in of.rows:
        found = scored(of, name, np.ones(len(of.questions), bool), tasks.rows[name])
        parts = [
            np.isin(kinds, [ANSWERABLE, *others]) for others in ([UNDERSPECIFIED, PARTIAL], [UNDERSPECIFIED], [PARTIAL])
        ]
        rows.append([name, *(said(tasks.truth[part], found[part], tasks.groups[part]) for part in parts)])
    counts = [int((kinds == kind).sum()) for kind in (ANSWERABLE, UNDERSPECIFIED, PARTIAL)]
    title = "MTRAG-UN, {}: {} answerable, {} underspecified, {} partly answerable; AUROC of answerable"
    show(title.format(form, *counts), ["against", "both", "underspecified", "partly answerable"], rows)


def said(truth: Doubles, scores: Doubles, groups: Sequence[str] | npt.NDArray[np.str_]) -> str:
    found = estimate(auroc, truth.tolist(), scores.tolist(), clusters=[str(each) for each in groups])
    interval = f" [{found.interval.low:.3f}, {found.interval.high:.3f}]" if found.interval else ""
    return f"{found.value:.3f}{interval}" if found.value is not None else found.reason


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("squad", type=Path, help="SQuAD 2.0's development set or a part of it, JSON")
    parser.add_argument("--mtragun", type=Path, help="a folder with MTRAG-UN's reference.jsonl")
    parser.add_argument(
        "--cache", type=Path, required=True, help="keeps features between runs; new code needs a new one"
    )
    chosen = parser.parse_args()
    chosen.cache.mkdir(parents=True, exist_ok=True)
    of = table(list(squad(chosen.squad)), chosen.cache / "squad.npz")
    once(of)
    splits(of)
    if chosen.mtragun:
        for form, made in FORMS.items():
            kept = chosen.cache / f"mtragun-{form.replace(' ', '-')}.npz"
            transfer(of, table(list(mtragun(chosen.mtragun, made)), kept), form)


if __name__ == "__main__":
    main()
