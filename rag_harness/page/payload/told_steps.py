"""Makes what the page shows of the steps of an agent: what went in and came out, and the chunks of each search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rag_harness.page.payload.pool import Pool
from rag_harness.results.row_parts import RowStage, StepHit
from rag_harness.retrieval.documents import document_of


def told_steps(stages: Sequence[RowStage], names: Pool[str]) -> Iterator[dict[str, Any]]:
    """Yield what each step tells beside its name, its time and its calls; nothing for a stage of a flat trace.

    Args:
        stages: steps of a trial.
        names: ids of chunks. A hit is the number of its id, and 1 where no search before has found it.
    """
    seen: set[str] = set()
    tells_hits = any(stage.hits for stage in stages)
    for stage in stages:
        is_told = stage.kind or stage.input is not None or stage.output is not None or stage.hits
        searches = stage.does == "retrieve"
        hits = [[names.number(_named(hit)), int(hit.chunk_id not in seen)] for hit in stage.hits]
        if searches:
            seen |= {hit.chunk_id for hit in stage.hits}
        said = {"kind": stage.does, "input": stage.input, "output": stage.output}
        found = {"hits": hits} if hits or (searches and tells_hits) else {}
        yield {**{key: value for key, value in said.items() if value not in (None, "")}, **found} if is_told else {}


def _named(hit: StepHit) -> str:
    """Return the id of a chunk, with its document before it where the id does not begin with that."""
    is_within = not hit.filename or document_of(hit.chunk_id) == hit.filename
    return hit.chunk_id if is_within else f"{hit.filename}#{hit.chunk_id}"
