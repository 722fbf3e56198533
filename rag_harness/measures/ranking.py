"""Measures of a ranking against judged documents, as trec_eval defines them.

``ranked`` is what the retriever returned, best first. The order of the list is the ranking: there are no scores and so
no ties. The first hit per document counts; later ones are dropped and take no rank. ``relevant`` maps a document to
its relevance, a whole number: above 0 is relevant, 0 or less or not judged is not. R is the number of relevant
documents. Every measure lies in [0, 1] and is 0 where R is 0, as in trec_eval. k is 1 or more.

The functions for one query are the definitions; ``evaluate`` computes the same for many queries, with the arrays of
``ranking_arrays``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import log2
from typing import NamedTuple

from rag_harness.errors import SettingsError, unknown
from rag_harness.measures.ranking_arrays import BATCH, Qrels, Ranked, Relevant, Run, find, first_hits, head

__all__ = [
    "KNOWN_MEASURES",
    "Measure",
    "all_found",
    "average_precision",
    "evaluate",
    "first_hits",
    "first_relevant_ranks",
    "hit",
    "mrr",
    "ndcg",
    "parse_measure",
    "precision",
    "r_precision",
    "recall",
    "trec_scores",
]

NO_CUTOFF = frozenset({"r_precision"})
KNOWN_MEASURES = ("recall", "precision", "hit", "all", "mrr", "map", "ndcg", "r_precision")
"""Every name that ``parse_measure`` reads; all but those of ``NO_CUTOFF`` carry a cutoff, e.g. ``recall@5``."""


class Measure(NamedTuple):
    """A measure's name and cutoff; ``k`` is None for a measure that has none."""

    name: str
    k: int | None

    def __str__(self) -> str:
        return self.name if self.k is None else f"{self.name}@{self.k}"


def parse_measure(text: str) -> Measure:
    """Read ``recall@5`` or ``r_precision``; SettingsError on an unknown name or a cutoff that cannot be."""
    name, at, cutoff = text.strip().partition("@")
    if name not in KNOWN_MEASURES:
        raise SettingsError(unknown("measure", name, KNOWN_MEASURES))
    if name in NO_CUTOFF:
        if at:
            raise SettingsError(f"Measure {text!r} has a cutoff, but {name} takes none. Write {name!r}.")
        return Measure(name, None)
    if not (cutoff.isascii() and cutoff.isdigit() and int(cutoff) > 0):
        raise SettingsError(f"Measure {text!r} needs a cutoff of 1 or more, e.g. '{name}@10'; found {cutoff!r}.")
    return Measure(name, int(cutoff))


def trec_scores(n: int) -> list[float]:
    """Return ``n`` scores for a TREC run file, strictly decreasing: n, n-1, …, 1.

    trec_eval reads scores as float32 and breaks ties by document id, which would overrule the retriever's order.
    Whole numbers up to 2**24 are exact in float32; ValueError above.
    """
    if not 0 <= n <= 2**24:
        raise ValueError(f"trec_scores needs n from 0 to {2**24}, the whole numbers that float32 holds; got {n}.")
    return [float(score) for score in range(n, 0, -1)]


def recall(ranked: Ranked, relevant: Relevant, k: int) -> float:
    """Relevant documents in the top k / R (trec_eval ``recall_k``)."""
    return _ratio(len(_gains(ranked, relevant, k)), _count(relevant))


def precision(ranked: Ranked, relevant: Relevant, k: int) -> float:
    """Relevant documents in the top k / k, also where fewer than k were returned (trec_eval ``P_k``)."""
    return len(_gains(ranked, relevant, k)) / k


def hit(ranked: Ranked, relevant: Relevant, k: int) -> float:
    """1 if a relevant document is in the top k, else 0 (trec_eval ``success_k``)."""
    return float(bool(_gains(ranked, relevant, k)))


def all_found(ranked: Ranked, relevant: Relevant, k: int) -> float:
    """1 if every relevant document is in the top k, else 0: what a multi-hop answer needs. Spelt ``all@k``."""
    return float(recall(ranked, relevant, k) == 1.0)


def mrr(ranked: Ranked, relevant: Relevant, k: int) -> float:
    """1 / rank of the first relevant document in the top k, else 0 (TREC-8 QA, Voorhees 1999; MS MARCO's ``MRR@k``).

    Of one query it is the reciprocal rank; the mean over queries gives the measure its name, as with ``map``.
    """
    return next((1.0 / rank for rank, _ in _gains(ranked, relevant, k)), 0.0)


def average_precision(ranked: Ranked, relevant: Relevant, k: int) -> float:
    """Sum of the precision at each relevant document's rank in the top k / R (trec_eval ``map_cut_k``). ``map@k``."""
    found = enumerate(_gains(ranked, relevant, k), start=1)
    return _ratio(sum(nth / rank for nth, (rank, _) in found), _count(relevant))


def ndcg(ranked: Ranked, relevant: Relevant, k: int) -> float:
    """DCG@k / DCG@k of the best possible order of the judged documents (trec_eval ``ndcg_cut_k``).

    DCG@k = sum of relevance / log2(rank + 1), of Järvelin & Kekäläinen 2002 with trec_eval's linear gain and discount.
    """
    ideal = sorted((gain for gain in relevant.values() if gain > 0), reverse=True)[:k]
    return _ratio(_dcg(_gains(ranked, relevant, k)), _dcg(enumerate(ideal, start=1)))


def r_precision(ranked: Ranked, relevant: Relevant) -> float:
    """Relevant documents in the top R / R (trec_eval ``Rprec``)."""
    total = _count(relevant)
    return _ratio(len(_gains(ranked, relevant, total)), total)


def first_relevant_ranks(run: Run, qrels: Qrels) -> dict[int | None, int]:
    """Count the queries of ``qrels`` by the rank of their first relevant document, best rank first.

    None, last, counts the queries that found none, so the counts add up to the number of queries.
    """
    firsts = Counter(next((rank for rank, _ in _gains(run.get(q, ()), qrels[q], None)), None) for q in qrels)
    return dict(sorted(firsts.items(), key=lambda item: (item[0] is None, item[0] or 0)))


def evaluate(run: Run, qrels: Qrels, measures: Sequence[str]) -> dict[str, dict[str, float]]:
    """Score every query of ``qrels`` on every measure: {measure as written: {query: value}}.

    A query that the run did not answer scores 0; queries that only the run has are left out.
    """
    parsed = {text: parse_measure(text) for text in measures}
    cutoffs = [measure.k for measure in parsed.values()]
    depth = None if None in cutoffs else max((k for k in cutoffs if k is not None), default=0)
    found = find(run, qrels, depth)
    return {
        text: dict(zip(qrels, BATCH[name](found, k or 0).tolist(), strict=True)) for text, (name, k) in parsed.items()
    }


def _gains(ranked: Ranked, relevant: Relevant, k: int | None) -> list[tuple[int, int]]:
    """Return (rank, relevance) of the relevant documents in the top k."""
    ranks = enumerate(head(ranked, k), start=1)
    return [(rank, relevant[doc_id]) for rank, doc_id in ranks if relevant.get(doc_id, 0) > 0]


def _count(relevant: Relevant) -> int:
    return sum(gain > 0 for gain in relevant.values())


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _dcg(gains: Iterable[tuple[int, int]]) -> float:
    return sum(gain / log2(rank + 1) for rank, gain in gains)
