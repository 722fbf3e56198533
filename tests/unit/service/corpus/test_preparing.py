from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.types import Chunk
from rag_harness.service.corpus.intake import without_half_characters
from rag_harness.service.corpus.preparation import coverage

SPANS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=6)


@given(st.text(alphabet="ab \n", max_size=20), SPANS)
def test_coverage_counts_every_character_once(text: str, spans: list[tuple[int, int]]) -> None:
    chunks = [Chunk("c", "d", "", start, end) for start, end in spans if start <= end]
    solid = [place for place, each in enumerate(text) if not each.isspace()]
    covered = [place for place in solid if any(chunk.start <= place < chunk.end for chunk in chunks)]
    assert coverage(text, chunks) == (len(covered) / len(solid) if solid else None)


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=20))
def test_text_is_such_that_a_database_keeps_it_and_offsets_stay(text: str) -> None:
    kept = without_half_characters(text)
    assert len(kept) == len(text)
    assert all(other in (one, "�") for one, other in zip(text, kept, strict=True))
    kept.encode()
