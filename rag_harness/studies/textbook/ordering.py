"""From candidates to the model's sources: the boost for selected text, the floor, the confidence.

The boost only changes the order. Floor, confidence and shown relevance use the raw cosine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from rag_harness.studies.textbook.selection import Selection, selected_text
from rag_harness.types import Decision, Hit

NEAR, FEWEST, MOST_KEPT = 0.75, 3, 8
"""Adaptive top-k: the share of the first score that a section needs, and the fewest and the most sections. They were
set before any score was seen: five sections are in the middle."""


def cosine_of(hit: Hit) -> float:
    """Return the raw cosine of a hit, however it was ranked; its score if the cosine is not known."""
    return hit.scores.get("dense", hit.score)


def boosted(hits: Sequence[Hit], selection: Selection, factor: float) -> tuple[list[Hit], int]:
    """Return ``hits`` ordered by boosted scores, and how many were boosted.

    The score of a chunk with the selection is multiplied by ``factor``, up to 1. Ties are ordered by raw cosine, then
    by the earlier rank. A score that is not positive stays, since multiplying would lower it.
    """
    holds = [selection.is_in(hit.chunk.text) for hit in hits]
    scored = [
        (min(1.0, max(hit.score, hit.score * factor)) if held else min(1.0, hit.score), hit)
        for hit, held in zip(hits, holds, strict=True)
    ]
    ordered = sorted(scored, key=lambda pair: (-pair[0], -cosine_of(pair[1]), pair[1].rank))
    ranked = [
        replace(hit, rank=rank, scores={**hit.scores, "boosted": score}) for rank, (score, hit) in enumerate(ordered, 1)
    ]
    return ranked, sum(holds)


def boost(hits: Sequence[Hit], inputs: Mapping[str, Any], factor: float) -> tuple[list[Hit], Decision]:
    """Return ``hits`` in boosted order, and the decision about it."""
    selection = selected_text(inputs)
    why_not = _why_not(inputs, selection, factor)
    if why_not or selection is None:
        return list(hits), Decision("boost", "none", reason=why_not)
    ranked, held = boosted(hits, selection, factor)
    outcome, reason = _said(held, len(hits), [hit.rank for hit in hits] != _ranks_before(hits, ranked))
    length = f"; the selection has {len(selection.text):,} characters"
    return ranked, Decision("boost", outcome, float(held), None, f"{reason}, x{factor:g}{length}")


def _why_not(inputs: Mapping[str, Any], selection: Selection | None, factor: float) -> str:
    if "selected_text" not in inputs:
        return "nothing is selected"
    if selection is None:
        return f"selected_text is {type(inputs['selected_text']).__name__}, not text"
    if not selection.text:
        return "the selection is white space"
    return "this experiment does not boost" if factor == 1 else ""


def _said(held: int, of: int, moved: bool) -> tuple[str, str]:
    if not held:
        return "none", f"none of the {of} candidates holds the selection"
    if held == of:
        return "boosted", f"all {of} candidates hold the selection, which tells none of them from the others"
    order = "and the order changed" if moved else "and the order stayed"
    return "boosted", f"{held} of {of} candidates hold the selection {order}"


def _ranks_before(hits: Sequence[Hit], ranked: Sequence[Hit]) -> list[int]:
    before = {hit.chunk.chunk_id: hit.rank for hit in hits}
    return [before[hit.chunk.chunk_id] for hit in ranked]


def above_floor(hits: Sequence[Hit], floor: float, keep: int) -> tuple[list[Hit], Decision]:
    """Return the first ``keep`` hits with a raw cosine of at least ``floor``, ranked anew, and the decision."""
    kept = [hit for hit in hits if cosine_of(hit) >= floor][:keep]
    best = max((cosine_of(hit) for hit in hits), default=None)
    if best is None:
        return [], Decision("floor", "nothing found", None, floor, "nothing was retrieved at all")
    passed = sum(cosine_of(hit) >= floor for hit in hits)
    reason = f"{passed} of {len(hits)} candidates reach the floor; value is the best cosine"
    decision = Decision("floor", "kept" if kept else "nothing found", best, floor, reason)
    return [replace(hit, rank=rank) for rank, hit in enumerate(kept, 1)], decision


def near_the_first(hits: Sequence[Hit]) -> tuple[list[Hit], Decision]:
    """Return the first hits whose score is near that of the first, and the decision: adaptive top-k.

    The scores are those of the order, boosted ones where there is a boost.
    """
    scores = [hit.scores.get("boosted", hit.score) for hit in hits]
    least = NEAR * scores[0] if scores else None
    near = next((place for place, score in enumerate(scores) if least is not None and score < least), len(hits))
    kept = min(max(near, FEWEST), MOST_KEPT, len(hits))
    reason = (
        f"{near} of {len(hits)} sections have {NEAR:.0%} of the first one's score; {FEWEST} to {MOST_KEPT} are kept"
    )
    return list(hits[:kept]), Decision("sources", "adaptive", float(kept), least, reason)


def confidence_of(hits: Sequence[Hit], keep: int) -> float:
    """Return the mean of the ``keep`` best raw cosines, in [0, 1], without boost and floor; 0 if there are no hits."""
    best = sorted(map(cosine_of, hits), reverse=True)[:keep]
    return min(1.0, max(0.0, fmean(best))) if best else 0.0
