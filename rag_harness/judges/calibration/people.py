"""Combines several people's labels of the same answers: one value an answer, and the agreement between people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_harness.judges.calibration.labels import AnswerLabel
from rag_harness.stats.agreement import accuracy, spearman
from rag_harness.stats.alpha import krippendorff_alpha
from rag_harness.stats.estimate import Estimate, estimate
from rag_harness.stats.inputs import Floats


@dataclass(frozen=True, slots=True)
class RatedAnswer:
    """An answer with its people's labels."""

    item: tuple[str, str]
    said: tuple[float, ...]
    own_cluster: str

    @property
    def human(self) -> float:
        """The mean of the labels."""
        return sum(self.said) / len(self.said)

    @property
    def is_verdict(self) -> bool:
        """Whether all labels are 0 or 1."""
        return set(self.said) <= {0.0, 1.0}

    @property
    def verdict(self) -> float | None:
        """The majority of the labels; None for a tie."""
        return None if self.human == 0.5 else float(self.human > 0.5)

    @property
    def is_clustered(self) -> bool:
        """Whether its labels name a cluster."""
        return bool(self.own_cluster)

    @property
    def cluster(self) -> str:
        """The cluster of the answer. Where labels name none, all experiments' answers to one question are one."""
        return f"cluster {self.own_cluster}" if self.own_cluster else f"query {self.item[1]}"


def item_labels(labels: Sequence[AnswerLabel]) -> list[RatedAnswer]:
    """Return each labelled item once, in the order of the labels."""
    found: dict[tuple[str, str], list[AnswerLabel]] = {}
    for label in labels:
        found.setdefault(label.item, []).append(label)
    return [
        RatedAnswer(item, tuple(label.human for label in each), next((one.cluster for one in each if one.cluster), ""))
        for item, each in found.items()
    ]


def between_people(items: Sequence[RatedAnswer]) -> dict[str, Estimate]:
    """Return the agreement between people, over answers with two or more labels; empty where there are none.

    ``alpha`` is Krippendorff's: nominal where all labels are 0 or 1, else interval. ``one_against_others`` is the best
    that a judge can reach: each label against the mean of the others' labels, as accuracy or Spearman correlation.
    """
    several = [item for item in items if len(item.said) > 1]
    if not several:
        return {}
    verdicts = all(item.is_verdict for item in several)
    return {"alpha": _alpha(several, verdicts), "one_against_others": _one_against_others(several, verdicts)}


def _alpha(items: Sequence[RatedAnswer], verdicts: bool) -> Estimate:
    values = [item.said for item in items]

    def of(places: Floats) -> float:
        return krippendorff_alpha([values[int(place)] for place in places], "nominal" if verdicts else "interval")

    return estimate(of, list(range(len(items))), clusters=[item.cluster for item in items])


def _one_against_others(items: Sequence[RatedAnswer], verdicts: bool) -> Estimate:
    pairs = [(one, (sum(item.said) - one) / (len(item.said) - 1), item.cluster) for item in items for one in item.said]
    if verdicts:
        pairs = [(one, float(others > 0.5), cluster) for one, others, cluster in pairs if others != 0.5]
    if not pairs:
        return Estimate(None, reason="the others are even on every answer")
    ones, others, clusters = zip(*pairs, strict=True)
    return estimate(accuracy if verdicts else spearman, ones, others, clusters=clusters)
