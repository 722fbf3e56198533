"""The ids of tests -> the trials that they are about."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from rag_harness.types import TrialId


def read_trial_ids(
    texts: Iterable[str], experiments: Collection[str], ids_of: Callable[[str], Collection[str] | None]
) -> Iterator[TrialId]:
    """Yield the trial of each text that is one, e.g. ``mine-own-q1``: experiment ``mine-own``, query ``q1``.

    ``ids_of`` gives the cases of an experiment, None where nobody knows them. Both names may hold hyphens: the text is
    cut where both sides are known, and the longest experiment wins.
    """
    for text in texts:
        cuts = ((text[:n], text[n + 1 :]) for n in range(len(text) - 1, 0, -1) if text[n] == "-")
        for name, case_id in cuts:
            if name in experiments and ((known := ids_of(name)) is None or case_id in known):
                yield TrialId(name, case_id)
                break
