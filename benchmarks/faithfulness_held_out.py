"""How well the embedded judge ranks answers whose source its coefficients never saw, with controls beside it.

    python benchmarks/faithfulness_held_out.py ../shared/data/ragtruth_dev --cache /tmp/faithfulness

The shipped coefficients are fitted to all of these data, so they cannot be asked. In each of five folds, grouped by
source, everything that is fitted is fitted to the other four: both models, each threshold. The printed score ranks as
1 - p_hallucinated does. The rules are
fitted to nothing, but their authors have seen the data. AUROC of "people marked something as hallucinated"; F1 at the
threshold that the other folds chose. Intervals by bootstrap over sources, of a difference too.

The controls are known without a model: the share of the answer's words that its context has, the longest common
subsequence of words with it by the answer's length, and how short the answer is.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import numpy.typing as npt
from faithfulness_training import (
    TASKS,
    Doubles,
    Ints,
    Response,
    TwoModels,
    cached,
    f1,
    folds,
    missed,
    responses,
    smoothed_threshold,
    table,
)
from side_by_side import show
from sklearn.metrics import roc_auc_score

from rag_harness.core.package import package_digest
from rag_harness.evaluation.judges.embedded.alignment import passage_of
from rag_harness.models.embedders import SentenceTransformersEmbedder

DRAWS = 1000
JUDGE, CONTROL = "faithfulness, as printed", "words in the context"
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Scored:
    """Scores of all responses, the higher the more is supported, and what is called hallucinated by them."""

    scores: Doubles
    said: Mask


def judged(model: TwoModels, groups: Ints, wrong: Ints) -> dict[str, Scored]:
    """Return what the judge says of each response, by models that have not seen its source."""
    p, verdicts, said = np.zeros(len(wrong)), np.zeros(len(wrong)), np.zeros(len(wrong), bool)
    for training, test in folds(groups, wrong):
        within, beyond = model(training, test)
        sentences = np.where(model.sentences.of(training), model.out_of_fold(training), unseen(model, training))
        p[test] = beyond[test]
        verdicts[test] = 1 - mean_by_response(sentences, model)[test]
        said[test] = beyond[test] >= smoothed_threshold(within[training], wrong[training])
    return {JUDGE: Scored(1 - p, said), "mean of the models' verdicts": by_folds(verdicts, groups, wrong)}


def unseen(model: TwoModels, training: Mask) -> Doubles:
    """Return P(unsupported) of every sentence by a model of the training responses."""
    return model.sentence(training).probabilities(model.sentences.rows)


def mean_by_response(p: Doubles, model: TwoModels) -> Doubles:
    order = model.sentences.response
    return np.asarray(
        np.bincount(order, p, len(model.wrong)) / np.maximum(np.bincount(order, minlength=len(model.wrong)), 1)
    )


def by_folds(scores: Doubles, groups: Ints, wrong: Ints) -> Scored:
    """Return scores that nothing is fitted to, with what is called hallucinated at the other folds' threshold."""
    said = np.zeros(len(wrong), bool)
    ranks = 1 - (scores - scores.min()) / (scores.max() - scores.min())
    for training, test in folds(groups, wrong):
        said[test] = ranks[test] >= smoothed_threshold(ranks[training], wrong[training])
    return Scored(scores, said)


def controls(found: Sequence[Response]) -> dict[str, Doubles]:
    """Return what can be said of each response by counting words."""
    rows = [
        (words(passage_of(each.text).text), [w for one in each.passages for w in words(passage_of(one).text)])
        for each in found
    ]
    return {
        CONTROL: np.array([known(*row) for row in rows]),
        "longest common subsequence": np.array([common(*row) / max(len(row[0]), 1) for row in rows]),
        "shortness": np.array([-float(len(said)) for said, _ in rows]),
    }


def known(said: Sequence[str], source: Sequence[str]) -> float:
    there = set(source)
    return sum(word in there for word in said) / len(said) if said else 1.0


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def common(said: Sequence[str], source: Sequence[str]) -> int:
    """Return the length of the longest common subsequence, a bit a word (Hyyrö 2004)."""
    places: dict[str, int] = {}
    for at, word in enumerate(said):
        places[word] = places.get(word, 0) | 1 << at
    full = (1 << len(said)) - 1
    row = full
    for word in source:
        match = row & places.get(word, 0)
        row = ((row + match) | (row - match)) & full
    return len(said) - row.bit_count()


def interval(groups: Ints, measure: Callable[[Ints], float]) -> str:
    """Bound a measure of the responses at some places: percentile bootstrap over sources."""
    random = np.random.default_rng(0)
    members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    picked = (random.integers(0, len(members), len(members)) for _ in range(DRAWS))
    draws = [measure(np.concatenate([members[place] for place in places])) for places in picked]
    low, high = np.nanquantile(draws, [0.025, 0.975])
    return f"[{low:.3f}, {high:.3f}]"


def area(scores: Doubles, wrong: Ints) -> float:
    return float(roc_auc_score(wrong, -scores)) if 0 < wrong.sum() < len(wrong) else float("nan")


def tell(task: str, scored: dict[str, Scored], groups: Ints, wrong: Ints, here: Ints) -> None:
    """Print the table of a task; differences are the judge's printed score less each other one."""
    rows = []
    judge = scored[JUDGE].scores
    for name, each in scored.items():

        def gain(at: Ints, other: Doubles = each.scores) -> float:
            return area(judge[here][at], wrong[here][at]) - area(other[here][at], wrong[here][at])

        def own(at: Ints, own: Doubles = each.scores) -> float:
            return area(own[here][at], wrong[here][at])

        everything = np.arange(len(here))
        difference = "" if name == JUDGE else f"{gain(everything):+.3f} {interval(groups[here], gain)}"
        rows.append(
            [
                name,
                f"{own(everything):.3f} {interval(groups[here], own)}",
                f"{f1(each.said[here], wrong[here]):.3f}",
                difference,
            ]
        )
    rows.append(["everything hallucinated", "", f"{f1(np.ones(len(here), bool), wrong[here]):.3f}", ""])
    title = f"{task}: {len(here)} answers, {wrong[here].sum()} hallucinated"
    show(title, ["estimate", "AUROC [95 %]", "F1", "as printed, less it"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="of RAGTruth: qa.jsonl, summary.jsonl, data2txt.jsonl")
    parser.add_argument("--cache", type=Path, required=True, help="keeps hidden states and features between runs")
    options = parser.parse_args()
    found = list(responses(options.folder))
    wrong = np.array([int(bool(response.marked)) for response in found])
    groups = np.array([response.source for response in found])
    tasks = np.array([response.task for response in found])
    pieces_of = cached(SentenceTransformersEmbedder().pieces, options.cache / "pieces")
    sentences = table(found, pieces_of, options.cache / f"{package_digest()}.npz")
    model = TwoModels(sentences, wrong, groups, missed(found))
    scored = judged(model, groups, wrong)
    scored |= {name: by_folds(scores, groups, wrong) for name, scores in controls(found).items()}
    for task in ("all", *TASKS):
        tell(task, scored, groups, wrong, np.flatnonzero((tasks == task) | (task == "all")))


if __name__ == "__main__":
    main()
