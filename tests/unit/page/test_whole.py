"""All that the sections say of one small study, as people read it."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from rag_harness.page.content import Table
from rag_harness.page.run import Run
from rag_harness.page.sections import sections_of
from rag_harness.page.sections.comparison import diff, differences
from rag_harness.page.sections.failures import failures
from rag_harness.page.sections.first_screen import first_screen
from rag_harness.page.sections.method import about_run, method, terms
from rag_harness.page.sections.scorecard import scorecard
from rag_harness.records.causes import CauseLine, write_causes
from tests.unit.page.runs import (
    amend,
    blocks_in,
    cell_in,
    facts_in,
    gate,
    prose_in,
    read,
    said,
    summarise,
    table_in,
    write_study,
)
from tests.unit.tables import write_run

SECTIONS = (first_screen, diff, differences, failures, scorecard, about_run, method, terms)


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


def test_scores_of_rows_that_are_gone_are_of_lost_trials(tmp_path: Path) -> None:
    write_study(tmp_path)
    for name in ("e1", "e2", "e3"):
        (tmp_path / f"{name}.jsonl").unlink()
    sections = {section.ident: section for section in sections_of(read(tmp_path))}
    assert facts_in(sections["run"])["answers"] == "by nobody: no trial has one"
    assert cell_in(table_in(sections["run"], "trials"), "e2", "lost").text == "12"
    # A lost trial counts the worst, and has cost nothing that is known.
    assert cell_in(table_in(sections["scorecard"], "scorecard"), "error_rate ↓", "e2").text.startswith("1.000 ")
    assert cell_in(table_in(sections["scorecard"], "costs"), "cost a trial", "e2").text == "–"


@pytest.mark.parametrize("file", ["e2.jsonl", "scores/e2.jsonl"])
def test_a_torn_last_line_costs_its_trial_only(tmp_path: Path, file: str) -> None:
    write_study(tmp_path)
    whole = (tmp_path / file).read_bytes()
    (tmp_path / file).write_bytes(whole[:-20])
    sections = {section.ident: section for section in sections_of(read(tmp_path))}
    lost = cell_in(table_in(sections["run"], "trials"), "e2", "lost").text
    gaps = [row[1].text for row in table_in(sections["run"], "unmeasured").rows if row[0].text == "e2"]
    assert (lost, "answer_relevancy (AR)" in gaps) == (("1", False) if file == "e2.jsonl" else ("0", True))


def test_a_run_of_nothing_is_a_page_that_says_so(tmp_path: Path) -> None:
    write_run(tmp_path, [], [], selected={})
    found = {section.ident: prose_in(section) for section in sections_of(read(tmp_path))}
    assert found["first"][0] == "No gates were judged: no trial was selected in this run."
    assert found["scorecard"] == ["No trial was selected: there is nothing to score."]
    assert not {"differences", "failures", "diff"} & set(found)
