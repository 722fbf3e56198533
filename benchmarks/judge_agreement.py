"""How far the embedded judge agrees with people, on answers that nothing of it was fitted to or chosen by.

    python benchmarks/judge_agreement.py ../shared/data/mtrag_human --cache /tmp/agreement

The folder holds MTRAG's human evaluations (IBM, Apache-2.0): 159 tasks, each answered by two models and a person, each
answer rated for faithfulness from 1 to 4 by several people. Spearman's rank correlation with the mean rating;
intervals are percentile bootstrap over conversations. Beside it the precision of the answer's pairs of words in its
context, which needs no model.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata, spearmanr
from side_by_side import show

from rag_harness.core.settings.loading import load_settings
from rag_harness.core.text.comparison import compared_words
from rag_harness.evaluation.judges.embedded.judge import create
from rag_harness.evaluation.measures.opinion import Material, Verdicts
from rag_harness.pipelines.parts import RunParts

FILE = "reference_subset_with_human_evaluations.json"
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Rated:
    """An answer with the mean of its ratings."""

    conversation: str
    material: Material
    rating: float


def rated(folder: Path) -> list[Rated]:
    """Return the rated answers in ``folder``."""
    said = json.loads((folder / FILE).read_text(encoding="utf-8"))
    texts = {document["document_id"]: document["text"] for document in said["documents"]}
    tasks = {task["task_id"]: task for task in said["tasks"]}
    return [answer(row, tasks[row["task_id"]], texts) for row in said["evaluations"]]


def answer(row: Any, task: Any, texts: dict[str, str]) -> Rated:
    question = [turn["text"] for turn in task["input"] if turn["speaker"] == "user"][-1]
    contexts = tuple(texts[context["document_id"]] for context in task["contexts"])
    ratings = [float(rating["value"]) for rating in row["annotations"]["faithfulness"].values()]
    material = Material(question.strip(), row["model_response"], contexts)
    return Rated(row["task_id"].partition("<::>")[0], material, fmean(ratings))


def pair_precision(material: Material) -> float:
    known = {pair for context in material.contexts for pair in pairwise(compared_words(context))}
    said = list(pairwise(compared_words(material.answer)))
    return sum(pair in known for pair in said) / len(said) if said else 0.0


async def verdicts(answers: Sequence[Rated], cache: Path) -> list[Verdicts]:
    parts = RunParts(load_settings({"mode": "auto", "cache_dir": str(cache)}, rootdir=cache))
    judge = create(parts)
    found = [await judge.opinion(each.material, ()).supported("answer", "contexts") for each in answers]
    parts.flush()
    return found


def mean_verdict(found: Verdicts) -> float:
    values = [verdict.value for verdict in found.each if verdict.value is not None]
    return fmean(values) if values else 0.0


def interval(scores: Doubles, ratings: Doubles, conversations: Sequence[str]) -> tuple[float, float]:
    random = np.random.default_rng(0)
    names = np.array(conversations)
    members = [np.flatnonzero(names == name) for name in np.unique(names)]
    draws = []
    for _ in range(2000):
        chosen = np.concatenate([members[place] for place in random.integers(0, len(members), len(members))])
        draws.append(spearmanr(scores[chosen], ratings[chosen])[0])
    low, high = np.quantile(draws, [0.025, 0.975])
    return float(low), float(high)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help=f"of MTRAG's human evaluations: {FILE}")
    parser.add_argument("--cache", type=Path, required=True, help="keeps judgements between runs")
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    answers = rated(options.folder)
    found = asyncio.run(verdicts(answers, options.cache))
    ratings = np.array([each.rating for each in answers])
    words = np.array([pair_precision(each.material) for each in answers])
    shares = np.array([said.share or 0.0 for said in found])
    estimates = {
        "pairs of words in the context": words,
        "mean of the judge's verdicts": np.array([mean_verdict(said) for said in found]),
        "not hallucinated, 1 - p": np.array([1 - said.detail.get("p_hallucinated", 1.0) for said in found]),
        "faithfulness: the judge's share": shares,
        "length of the answer in words": np.array([float(len(each.material.answer.split())) for each in answers]),
    }
    conversations = [each.conversation for each in answers]
    rows = []
    for name, scores in estimates.items():
        low, high = interval(scores, ratings, conversations)
        rows.append([name, f"{spearmanr(scores, ratings)[0]:.3f}", f"{low:.3f} to {high:.3f}"])
    show(f"{len(answers)} answers, Spearman with people's faithfulness", ["estimate", "Spearman", "95 %"], rows)
    print(f"error of the share, in ranks, with the answer's length: {length_bias(shares, ratings, estimates):+.3f}")


def length_bias(shares: Doubles, ratings: Doubles, estimates: dict[str, Doubles]) -> float:
    """Return Spearman's correlation of what the judge ranks too high with the length of the answer."""
    return float(spearmanr(rankdata(shares) - rankdata(ratings), estimates["length of the answer in words"])[0])


if __name__ == "__main__":
    main()
