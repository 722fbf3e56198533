"""Failures: causes counted, the worst of each experiment, and what is said where nobody looked."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_harness.core.errors import DataError
from rag_harness.page.content import Failures, Section
from rag_harness.page.html import html_of
from rag_harness.page.payload import payload_of
from rag_harness.page.sections.failures import failures
from rag_harness.records.scores import CAUSES, CauseLine, write_causes
from tests.unit.page.runs import amend, cell_in, prose_in, read, rows_of, table_in, write_study
from tests.unit.suite_tables import write_run


def cause(place: int, name: str = "Retrieval Miss", **fields: object) -> CauseLine:
    usual = {"query": f"Question {place}?", "cause": name, "detail": "cut", "fingerprint": "aaaa", "evidence": "seen"}
    return CauseLine.model_validate(
        {"experiment": "e2", "query_id": f"q{place:02}", "remedy": "longer chunks", **usual, **fields}
    )


def of(*outputs: Path) -> Section:
    section = failures(read(*outputs))
    assert section is not None
    return section


def shown(section: Section) -> dict[str, Failures]:
    return {block.experiment: block for block in section.blocks if isinstance(block, Failures)}


def test_causes_are_counted_by_experiment(tmp_path: Path) -> None:
    write_study(tmp_path)
    others = [cause(0, experiment="e3"), cause(1, "Own Cause", experiment="e3")]
    write_causes(tmp_path, [cause(0), cause(1), cause(2, "Logic Failure"), *others])
    table = table_in(of(tmp_path), "causes")
    assert [row[0].text for row in table.rows] == ["Retrieval Miss", "Logic Failure", "Own Cause", "explained"]
    assert cell_in(table, "Retrieval Miss", "e2").text == "2 (67%)"
    assert [cell.text for cell in table.rows[-1]] == ["explained", "3 of 12", "2 of 12"]


def test_the_worst_stand_with_cause_evidence_and_remedy(tmp_path: Path) -> None:
    write_study(tmp_path)
    first = cause(3, hri=0.456, repaired_by="+gold_context", reviewed_cause="Noise", reviewed_by="Ada")
    write_causes(tmp_path, [first, *(cause(place) for place in range(4, 12)), cause(0), cause(1), cause(2)])
    found = shown(of(tmp_path))["e2"]
    assert (len(found.shown), found.total) == (10, 12)
    worst = found.shown[0]
    assert (worst.trial, worst.query, worst.figures) == ("e2-q03", "Question 3?", "hallucination risk 0.46")
    assert worst.cause == "Retrieval Miss: cut; repaired by +gold_context; Ada says: Noise"
    assert (worst.evidence, worst.remedy) == ("seen", "longer chunks")


def test_a_category_does_not_stand_beside_a_cause(tmp_path: Path) -> None:
    write_study(tmp_path)
    write_causes(tmp_path, [cause(0, "Logic Failure", category="Retrieval Failure")])
    page = html_of("title", [of(tmp_path)], payload_of(read(tmp_path)))
    assert "<strong>Logic Failure: cut</strong></p>" in page
    assert "Retrieval Failure" not in page.partition("<script")[0]


def test_causes_from_rows_alone_are_said_to_be_that(tmp_path: Path) -> None:
    write_study(tmp_path)
    write_causes(tmp_path, [cause(0, observational=True, limits="no model"), cause(1)])
    section = of(tmp_path)
    assert prose_in(section) == ["e2: 1 of 2 causes rest on rows and gold alone (observational): no model."]
    assert shown(section)["e2"].shown[0].cause == "Retrieval Miss: cut (observational)"


def test_causes_of_other_rows_are_not_of_this_run(tmp_path: Path) -> None:
    write_study(tmp_path)
    write_causes(tmp_path, [cause(0, fingerprint="old")])
    assert "was not looked into in this run" in prose_in(of(tmp_path))[0]


def test_without_causes_the_worst_by_risk_and_how_to_get_causes(tmp_path: Path) -> None:
    write_study(tmp_path)
    section = of(tmp_path)
    assert "--rag-attribute" in prose_in(section)[0]
    risk = read(tmp_path)[0].tables["e2"].values("hri", {})
    found = shown(section)["e2"]
    assert [risk[failure.trial.removeprefix("e2-")] for failure in found.shown] == sorted(risk.values())[::-1][:10]
    assert found.total == 12
    assert found.shown[0].query.startswith("Question ")
    # Its words are those of the ground truth, and nobody judged it.
    assert "e1" not in shown(section)


def test_without_causes_and_judge_the_worst_by_words(tmp_path: Path) -> None:
    rows = rows_of("e3", 4, 4)
    rows[2] = rows[2].model_copy(update={"llm_answer": "Never.", "citations": ()})
    write_run(tmp_path, rows)
    (found,) = shown(of(tmp_path)).values()
    assert [(failure.trial, failure.evidence) for failure in found.shown] == [("e3-q02", "token_f1 0.000")]
    assert found.total == 1


def test_where_all_was_explained_and_nothing_failed(tmp_path: Path) -> None:
    write_study(tmp_path)
    write_causes(tmp_path, [])
    amend(tmp_path, settings={"attribute": True})
    assert prose_in(of(tmp_path)) == ["No trial failed: there is nothing to explain."]
    assert not shown(of(tmp_path))


def test_trials_of_one_of_several_runs_say_which(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_causes(write_study(tmp_path / name), [cause(0)])
    assert shown(of(tmp_path / "a", tmp_path / "b"))["e2"].shown[0].trial == "a/e2-q00"


def test_a_damaged_file_is_named_with_its_line(tmp_path: Path) -> None:
    write_study(tmp_path)
    (tmp_path / CAUSES).write_text("{}\n")
    with pytest.raises(DataError, match=r"causes\.jsonl:1: "):
        of(tmp_path)


def test_no_rows_no_section(tmp_path: Path) -> None:
    write_run(tmp_path, [], [], selected={})
    assert failures(read(tmp_path)) is None
