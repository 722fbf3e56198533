"""What several people say of the same answers: one value an answer, and how far they agree with each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_harness.judges.calibration.labels import Label
from rag_harness.stats.agreement import accuracy, spearman
from rag_harness.stats.alpha import krippendorff_alpha
from rag_harness.stats.estimate import Estimate, estimate
from rag_harness.stats.inputs import Floats


@dataclass(frozen=True, slots=True)
class Judged:
    """An answer with what its people say."""

    item: tuple[str, str]
    said: tuple[float, ...]
    own_cluster: str

    @property
    def human(self) -> float:
        """The mean of its people."""
        return sum(self.said) / len(self.said)

    @property
    def is_verdict(self) -> bool:
        """Whether they all said 0 or 1."""
        return set(self.said) <= {0.0, 1.0}

    @property
    def verdict(self) -> float | None:
        """What most of them say; None where they are even."""
        return None if self.human == 0.5 else float(self.human > 0.5)

    @property
    def is_clustered(self) -> bool:
        """Whether its labels name a cluster."""
        return bool(self.own_cluster)

    @property
    def cluster(self) -> str:
        """What it is drawn together with: without a cluster, the answers of other experiments to the same question."""
        return f"cluster {self.own_cluster}" if self.own_cluster else f"query {self.item[1]}"


def item_labels(labels: Sequence[Label]) -> list[Judged]:
    """Return each labelled item once, in the order of the labels."""
    found: dict[tuple[str, str], list[Label]] = {}
    for label in labels:
        found.setdefault(label.item, []).append(label)
    return [
        Judged(item, tuple(label.human for label in each), next((one.cluster for one in each if one.cluster), ""))
        for item, each in found.items()
    ]


def between_people(items: Sequence[Judged]) -> dict[str, Estimate]:
    """Return how far people agree, over the answers that two or more of them labelled; nothing where there is none.

    ``alpha`` is Krippendorff's, of names where all say 0 or 1, else of distances. ``one_against_others`` is what a
    judge may hope for: each label against the mean of the others' of its answer, as accuracy or Spearman.
    """
    several = [item for item in items if len(item.said) > 1]
    if not several:
        return {}
    verdicts = all(item.is_verdict for item in several)
    return {"alpha": _alpha(several, verdicts), "one_against_others": _one_against_others(several, verdicts)}


def _alpha(items: Sequence[Judged], verdicts: bool) -> Estimate:
    values = [item.said for item in items]

    def of(places: Floats) -> float:
        return krippendorff_alpha([values[int(place)] for place in places], "nominal" if verdicts else "interval")

    return estimate(of, list(range(len(items))), clusters=[item.cluster for item in items])


def _one_against_others(items: Sequence[Judged], verdicts: bool) -> Estimate:
    pairs = [(one, (sum(item.said) - one) / (len(item.said) - 1), item.cluster) for item in items for one in item.said]
    if verdicts:
        pairs = [(one, float(others > 0.5), cluster) for one, others, cluster in pairs if others != 0.5]
    if not pairs:
        return Estimate(None, reason="the others are even on every answer")
    ones, others, clusters = zip(*pairs, strict=True)
    return estimate(accuracy if verdicts else spearman, ones, others, clusters=clusters)
