"""Makes a claim with its sources of what the fused judge said of it."""

from __future__ import annotations

from collections.abc import Sequence

from rag_harness.judges.llm.cited_replies import PassageSupport
from rag_harness.judges.llm.judge_replies import PassageVerdict
from rag_harness.measures.judged import CitedClaim, Claim, SourceVerdict


def cited_claim(claim: Claim, said: PassageVerdict, places: Sequence[int], count: int) -> CitedClaim:
    """Return a claim with a verdict for each of the ``count`` sources of its prompt.

    ``places`` are those of the passages that were asked about. The others have no text, and support nothing.
    """
    by = said.by if isinstance(said, PassageSupport) else None
    if by is None:
        why = said.missing.value if said.missing else "the judge did not say"
        return CitedClaim(claim, tuple(SourceVerdict(number, None, reason=why) for number in range(1, count + 1)))
    found = {places[number - 1]: each for number, each in by.items()}
    sources = (SourceVerdict(place + 1, *found.get(place, (0.0, "", ""))) for place in range(count))
    assert isinstance(said, PassageSupport)
    return CitedClaim(claim, tuple(sources), said.needs, said.value)
