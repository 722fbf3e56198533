"""Time our ranking measures against pytrec_eval and ranx, in one run and from the same input.

    python benchmarks/ranking.py [queries] [results per query]

All three start from ranked lists of document ids and dicts of relevances. The time to turn them into what a library
reads is counted and shown; ranx compiles its functions before the clock starts.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from rag_harness.evaluation.measures.ranking import evaluate

Run = dict[str, list[str]]
Qrels = dict[str, dict[str, int]]
Times = tuple[float, float]
"""Seconds for the conversion of the input, seconds for the measures."""
Contender = Callable[[Run, Qrels], Times]

OURS = ["recall@10", "recall@100", "precision@10", "hit@10", "mrr@100", "map@100", "ndcg@10", "r_precision"]
TREC = ["recall.10,100", "P.10", "success.10", "recip_rank", "map_cut.100", "ndcg_cut.10", "Rprec"]
RANX = ["recall@10", "recall@100", "precision@10", "hit_rate@10", "mrr@100", "map@100", "ndcg@10", "r-precision"]


def corpus(queries: int, results: int, seed: int = 0) -> tuple[Run, Qrels]:
    """Make up rankings over 200,000 documents and ten graded judgements per query, half of them retrieved."""
    rng = random.Random(seed)
    docs = [f"doc{number}" for number in range(200_000)]
    run = {f"q{number}": rng.sample(docs, results) for number in range(queries)}
    judged = {q: rng.sample(ranked, min(5, results)) + rng.sample(docs, 5) for q, ranked in run.items()}
    return run, {q: {doc: rng.randint(0, 3) for doc in sorted(ids)} for q, ids in judged.items()}


def ours(run: Run, qrels: Qrels) -> Times:
    start = perf_counter()
    evaluate(run, qrels, OURS)
    return 0.0, perf_counter() - start


def with_scores(run: Run) -> dict[str, dict[str, float]]:
    # Strictly decreasing whole numbers: trec_eval breaks ties by document id.
    scores = [float(score) for score in range(max(map(len, run.values())), 0, -1)]
    return {q: dict(zip(ranked, scores, strict=False)) for q, ranked in run.items()}


def pytrec_eval(run: Run, qrels: Qrels) -> Times:
    library: Any = import_module("pytrec_eval")
    start = perf_counter()
    scored = with_scores(run)
    converted = perf_counter()
    library.RelevanceEvaluator(qrels, TREC).evaluate(scored)
    return converted - start, perf_counter() - converted


def ranx(run: Run, qrels: Qrels) -> Times:
    library: Any = import_module("ranx")
    start = perf_counter()
    judged = library.Qrels({q: {d: r for d, r in docs.items() if r > 0} or {"": 1} for q, docs in qrels.items()})
    scored = library.Run(with_scores(run))
    converted = perf_counter()
    library.evaluate(judged, scored, RANX, return_mean=False)
    return converted - start, perf_counter() - converted


def name(contender: Contender) -> str:
    return getattr(contender, "__name__", "?")


def available(contender: Contender) -> bool:
    """Run on a small input, which compiles what a library compiles; say so where it is not installed."""
    try:
        contender(*corpus(50, 10))
    except ModuleNotFoundError as error:
        print(f"{name(contender):12} skipped: {error}")
        return False
    return True


def show(contender: Contender, times: Times, reference: Times) -> None:
    seconds = f"{sum(times):6.2f} s = {times[0]:5.2f} s conversion + {times[1]:5.2f} s measures"
    print(f"{name(contender):12} {seconds}   {sum(times) / sum(reference):5.1f} x ours")


def main() -> None:
    parser = argparse.ArgumentParser(description="Ranking measures: ours, pytrec_eval, ranx.")
    parser.add_argument("queries", nargs="?", type=int, default=100_000)
    parser.add_argument("results", nargs="?", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3, help="the fastest counts")
    args = parser.parse_args()
    contenders = [contender for contender in (ours, pytrec_eval, ranx) if available(contender)]
    run, qrels = corpus(args.queries, args.results)
    print(f"{args.queries} queries x {args.results} results, {len(OURS)} measures, best of {args.repeats}")
    # In turns, so that a machine that is busy for a while is busy for all of them.
    rounds = [[contender(run, qrels) for contender in contenders] for _ in range(args.repeats)]
    fastest = [min(times, key=sum) for times in zip(*rounds, strict=True)]
    for contender, times in zip(contenders, fastest, strict=True):
        show(contender, times, reference=fastest[0])


if __name__ == "__main__":
    main()
