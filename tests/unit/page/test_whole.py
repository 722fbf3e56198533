"""All that the sections say of one small study, as people read it."""

from __future__ import annotations

from pathlib import Path

from syrupy.assertion import SnapshotAssertion

from rag_harness.page.content import Table
from rag_harness.page.run import Run
from rag_harness.page.sections import sections_of
from rag_harness.page.sections.diff import diff
from rag_harness.page.sections.differences import differences
from rag_harness.page.sections.failures import failures
from rag_harness.page.sections.method import method
from rag_harness.page.sections.scorecard import scorecard
from rag_harness.page.sections.verdict import verdict
from rag_harness.results.causes import CauseLine, write_causes
from tests.unit.page.runs import amend, blocks_in, gate, read, said, summarise, write_study

SECTIONS = (verdict, scorecard, diff, differences, failures, method)


def study(output: Path) -> list[Run]:
    write_study(output)
    amend(output, commit="c0ffee", digests={"queries": "abc"}, settings={"chunk_size": 512, "chunk_overlap": 128})
    summarise(
        output,
        gate("e3: recall@5 >= 0.7", value=1.0, interval=[0.758, 1.0]),
        gate("e3: hri <= 0.01", "failed", value=0.042, threshold=0.01, interval=[0.033, 0.237]),
    )
    line = {"experiment": "e2", "query_id": "q07", "query": "Question 7?", "cause": "Retrieval Miss", "detail": "cut"}
    write_causes(output, [CauseLine.model_validate({**line, "fingerprint": "aaaa", "remedy": "longer chunks"})])
    return read(output)


def test_what_the_words_of_a_small_study_are(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    runs = study(tmp_path)
    found = [section for of in SECTIONS if (section := of(runs)) is not None]
    assert "\n\n".join(map(said, found)) == snapshot


def test_names_of_tables_are_unique_on_the_page(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        study(tmp_path / name)
    sections = sections_of(read(*(tmp_path / name for name in ("a", "b", "c"))))
    names = [block.name for section in sections for block in blocks_in(section.blocks) if isinstance(block, Table)]
    assert len(names) == len(set(names))
    idents = [section.ident for section in sections]
    assert len(idents) == len(set(idents))


def test_no_row_is_longer_than_its_head(tmp_path: Path) -> None:
    for section in sections_of(study(tmp_path)):
        for block in blocks_in(section.blocks):
            if isinstance(block, Table):
                assert {len(row) for row in block.rows} <= {len(block.head)}, block.name
