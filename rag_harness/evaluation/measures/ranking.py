"""Measures of a ranking against judged documents, as trec_eval defines them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rag_harness.core.errors import SettingsError
from rag_harness.evaluation.measures import measure_named
from rag_harness.evaluation.measures.measure import RankingMeasure
from rag_harness.evaluation.measures.ranking_arrays import Found, Qrels, Run, find_relevant

_Ints = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]


def divide(part: _Floats, whole: _Floats | _Ints) -> _Floats:
    """Return part / whole, 0 where the whole is 0."""
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)


class _AtK(RankingMeasure):
    """Has a cutoff."""

    @property
    def k(self) -> int:
        assert self.cutoff is not None
        return self.cutoff


class Recall(_AtK):
    """Relevant documents in the top k / R (trec_eval ``recall_k``)."""

    called = "recall"

    def batch(self, found: Found) -> _Floats:
        return divide(found.sums(found.rank <= self.k), found.total)


class Precision(_AtK):
    """Relevant documents in the top k / k, also where fewer than k were returned (trec_eval ``P_k``)."""

    called = "precision"

    def batch(self, found: Found) -> _Floats:
        return found.sums(found.rank <= self.k) / self.k


class HitRate(_AtK):
    """1 if a relevant document is in the top k, else 0 (trec_eval ``success_k``). Spelt ``hit@k``."""

    called = "hit"

    def batch(self, found: Found) -> _Floats:
        return found.sums((found.rank <= self.k) & (found.nth == 1))


class AllFound(Recall):
    """1 if every relevant document is in the top k, else 0: what a multi-hop answer needs. Spelt ``all@k``."""

    called = "all"

    def batch(self, found: Found) -> _Floats:
        whole: _Floats = (super().batch(found) == 1.0).astype(np.float64)
        return whole


class ReciprocalRank(_AtK):
    """1 / rank of the first relevant document in the top k, else 0 (TREC-8 QA, Voorhees 1999; MS MARCO's ``MRR@k``).

    For one query this is the reciprocal rank. The measure is named after its mean over queries, like ``map``.
    """

    called = "mrr"

    def batch(self, found: Found) -> _Floats:
        return found.sums((found.rank <= self.k) & (found.nth == 1), 1.0 / found.rank)


class AveragePrecision(_AtK):
    """Sum of the precision at each relevant document's rank in the top k / R (trec_eval ``map_cut_k``). ``map@k``."""

    called = "map"

    def batch(self, found: Found) -> _Floats:
        return divide(found.sums(found.rank <= self.k, found.nth / found.rank), found.total)


class NDCG(_AtK):
    """DCG@k / DCG@k of the best possible order of the judged documents (trec_eval ``ndcg_cut_k``).

    DCG@k = sum of relevance / log2(rank + 1), of Järvelin & Kekäläinen 2002 with trec_eval's linear gain and discount.
    """

    called = "ndcg"

    def batch(self, found: Found) -> _Floats:
        return divide(found.dcg(self.k), found.ideal.dcg(self.k))


class RPrecision(RankingMeasure):
    """Relevant documents in the top R / R (trec_eval ``Rprec``)."""

    called = "r_precision"
    takes_cutoff = False

    def batch(self, found: Found) -> _Floats:
        return divide(found.sums(found.rank <= found.total[found.query]), found.total)


def evaluate(run: Run, qrels: Qrels, measures: Sequence[str]) -> dict[str, dict[str, float]]:
    """Score every query of ``qrels`` on every ranking measure: {measure as written: {query: value}}.

    A query without results in the run scores 0. Queries that only the run has are left out.

    Raises:
        SettingsError: the measure does not exist, or is not about rankings.
    """
    wanted = dict(zip(measures, map(_ranking_measure, measures), strict=True))
    cutoffs = [measure.cutoff for measure in wanted.values()]
    depth = None if None in cutoffs else max((k for k in cutoffs if k is not None), default=0)
    found = find_relevant(run, qrels, depth)
    return {text: dict(zip(qrels, measure.batch(found).tolist(), strict=True)) for text, measure in wanted.items()}


def _ranking_measure(text: str) -> RankingMeasure:
    measure: object = measure_named(text)
    if not isinstance(measure, RankingMeasure):
        raise SettingsError(f"Measure {text!r} is not of a ranking.")
    return measure
