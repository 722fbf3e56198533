"""Method: formulas, statistics, the limits of this run and no others, and how to have it again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from rag_harness.data.datasets import asked_digest
from rag_harness.evaluation.measures import known_measures, measure_named
from rag_harness.evaluation.measures.answers import ErrorRate
from rag_harness.evaluation.measures.judged import CATEGORIES, MEANINGS
from rag_harness.evaluation.measures.measure import formula_of
from rag_harness.page.content import Code, Table
from rag_harness.page.run import Run
from rag_harness.page.sections import sections_of
from rag_harness.page.sections.comparison import diff, differences
from rag_harness.page.sections.failures import failures
from rag_harness.page.sections.first_screen import first_screen
from rag_harness.page.sections.method import SYNTHETIC, about_run, limits, method, terms
from rag_harness.page.sections.scorecard import scorecard
from rag_harness.records.manifest import SuiteRecord
from rag_harness.records.scores import CauseLine, write_causes
from tests.unit.page.runs import (
    amend,
    blocks_in,
    cell_in,
    facts_in,
    gate,
    prose_in,
    read,
    rows_of,
    said,
    summarise,
    table_in,
    write_study,
)
from tests.unit.suite_tables import write_run

ROOT = Path(__file__).parents[3]


def code_in(output: Path) -> list[str]:
    (block,) = [block for block in blocks_in(method(read(output)).blocks) if isinstance(block, Code)]
    return list(block.lines)


def test_every_measure_of_the_scorecard_has_its_formula(tmp_path: Path) -> None:
    write_study(tmp_path)
    section, run = method(read(tmp_path)), scorecard(read(tmp_path))
    formulas = {row[0].text: row[-1].text for row in table_in(section, "measures").rows}
    shown = [
        row[0].text.rstrip(" ↑↓") for name in ("scorecard", "scorecard-others") for row in table_in(run, name).rows
    ]
    assert set(formulas) == {name for name in shown if not name.endswith(", p95")}
    assert formulas["recall@5"] == "Relevant documents in the top k / R (trec_eval recall_k)."
    assert formulas["hri"].startswith("(1 − F) · AR")


def test_every_measure_says_its_formula() -> None:
    with_cutoff = ("recall", "precision", "hit", "all", "mrr", "map", "ndcg", "recall_by_step")
    names = [f"{name}@5" if name in with_cutoff else name for name in known_measures()]
    said = {name: formula_of(measure_named(name)) for name in names}
    assert {name: text for name, text in said.items() if not text.endswith((".", ".)"))} == {}
    assert {name: text for name, text in said.items() if "Derive from it" in text} == {}


def test_a_measure_of_somebody_s_own_says_its_own_docstring() -> None:
    class Brevity:
        """Words of
        the answer.

        More of it.
        """

    class Silent(ErrorRate):
        called = "silent"

    @dataclass
    class Plain:
        name: str = "plain"

    assert formula_of(Brevity()) == "Words of the answer."
    assert formula_of(Silent()) == ""
    assert formula_of(Plain()) == ""


def test_every_kind_of_answer_has_a_meaning() -> None:
    assert tuple(MEANINGS) == CATEGORIES


def test_statistics_are_those_that_the_report_uses(tmp_path: Path) -> None:
    write_run(tmp_path / "one", rows_of("e3", 3, 3))
    alone = " ".join(prose_in(method(read(tmp_path / "one"))))
    assert "Clopper" in alone
    assert "Holm" not in alone
    write_study(tmp_path / "study", n=40)
    several = " ".join(prose_in(method(read(tmp_path / "study"))))
    assert "Holm's step-down method" in several
    assert "Runs are compared" not in several
    both = " ".join(prose_in(method(read(tmp_path / "study", tmp_path / "one"))))
    assert "Runs are compared case by case too" in both


def test_the_data_that_ship_are_known_to_be_synthetic() -> None:
    assert asked_digest(ROOT / "data" / "kb" / "queries.jsonl") in SYNTHETIC


def test_limits_are_those_of_this_run(tmp_path: Path) -> None:
    write_study(tmp_path)
    amend(tmp_path, digests={"queries": next(iter(SYNTHETIC))}, settings={"chunk_size": 512, "chunk_overlap": 128})
    said = " ".join(limits(read(tmp_path)[0]))
    assert "synthetic" in said
    assert "sections, at most 512 tokens, 128 of them repeated" in said
    assert "embedded/extractive, which answered, is not an LLM: it is a baseline reader" in said
    assert "The judge embedded/alignment is not an LLM" in said
    assert "answered once" in said
    assert "Only some" not in said
    assert "replayed" not in said


def test_limits_of_other_runs_are_not_said(tmp_path: Path) -> None:
    rows = rows_of("e3", 3, 3, model="openai/gpt-4o", timings_recorded=True)
    write_run(tmp_path, rows, selected={"e3": ["q00", "q01"]})
    amend(tmp_path, digests={"queries": "mine"}, settings={"repeats": 3})
    said = " ".join(limits(read(tmp_path)[0]))
    for other in ("synthetic", "no LLM", "answered once", "labels", "Judged scores"):
        assert other not in said
    assert "Only some of the cases were selected of e3" in said
    assert "Answers were replayed" in said


def test_an_llm_that_judges_is_said_to_be_one(tmp_path: Path) -> None:
    write_study(tmp_path)
    record = read(tmp_path)[0].suites["e2"]
    amend(tmp_path, suites={"e2": _judged_by(record, "openai/gpt-4o")})
    said = " ".join(limits(read(tmp_path)[0]))
    assert "it has tastes" in said
    assert "The judge" not in said


def _judged_by(record: SuiteRecord, model: str) -> dict[str, object]:
    return record.model_dump() | {"authors": [("fused", model, "1")]}


def test_the_commands_that_give_it_again(tmp_path: Path) -> None:
    write_study(tmp_path)
    settings = {"profile": "embedded", "chat_model": "embedded/extractive", "top_k": 7, "attribute": True, "seed": 7}
    more = {"measures": ["faithfulness, hri"], "output": "/somewhere", "gate": ["e3: recall@5 >= 0"]}
    more["report"] = "/somewhere/report.html"
    amend(tmp_path, commit="c0ffee", settings={**settings, **more, "openai_api_key": "set", "kb_dir": "my docs"})
    assert code_in(tmp_path) == [
        "git checkout c0ffee",
        "pytest -m 'e1 or e2 or e3' --rag-kb-dir='my docs' --rag-top-k=7 --rag-cluster=none "
        "--rag-measures='faithfulness, hri' --rag-attribute",
        "rag-harness report output -o report.html",
    ]


def test_without_a_commit_there_is_none_to_check_out(tmp_path: Path) -> None:
    write_run(tmp_path, rows_of("e3-plain", 2, 2))
    assert code_in(tmp_path)[0] == "pytest --rag-profile=mock --rag-cluster=none"
    assert "The commit that the run was at is not known: its folder was not a git repository." in prose_in(
        method(read(tmp_path))
    )


def test_versions_and_digests(tmp_path: Path) -> None:
    write_study(tmp_path)
    amend(tmp_path, packages={"numpy": "2.4", "b": "1"}, digests={"queries": "abc"})
    facts = facts_in(method(read(tmp_path)))
    assert (facts["versions"], facts["data"]) == ("b 1, numpy 2.4", "queries abc")
    assert (facts["fingerprint of e2"], facts["judge"]) == ("aaaa", "embedded, embedded/alignment, revision rev1")


def test_a_run_of_nothing_still_says_how_to_run(tmp_path: Path) -> None:
    write_run(tmp_path, [], [], selected={})
    assert code_in(tmp_path)[0].startswith("pytest")


# All that the sections say of one small study, as people read it.

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
