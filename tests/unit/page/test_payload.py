"""What the page's script reads, of all trials or of those that are listed."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.types import Case, Evidence, Message, Query
from rag_harness.page import listed_trials
from rag_harness.page import payload as index
from rag_harness.page.content import Cell, More, Section, Table
from rag_harness.page.listed_trials import sample_of, sample_said
from rag_harness.page.payload import (
    BLOCK,
    Packing,
    Pool,
    Prompts,
    packed,
    payload_of,
    quotes_in,
    script_json,
    told_steps,
)
from rag_harness.page.report import write_report
from rag_harness.page.run import Run, read_run
from rag_harness.records.files import PromptFiles
from rag_harness.records.row import RowStage
from rag_harness.records.scores import Author, CauseLine, ScoreLine, row_digest, write_causes
from tests.browser.talks import FAILED, LAMP, Talks
from tests.unit.evaluation.measures.agents.trials import search, tool
from tests.unit.page.runs import read, write_study
from tests.unit.rows import failed_row, make_chunk, make_row
from tests.unit.suite_tables import case as suite_tables_case
from tests.unit.suite_tables import write_run

# What the page's script reads: nothing of the rows is lost, nothing is there twice, and it unpacks to what it was.

# What the page's script reads: nothing of the rows is lost, nothing is there twice, and it unpacks to what it was.

WHO = Author("embedded", "embedded/alignment", "1")
POLICY, OTHER = "You may return it\nwithin 30 days.", "Lamps are sold in pairs."


def score(row: Any, measure: str, value: float | None, **more: Any) -> ScoreLine:
    """Return a score of a row, by the judge whose scores count."""
    return ScoreLine(measure, 1, row.experiment, row.query_id, row_digest(row), "g", WHO, value, **more)


def case(query_id: str, *quotes: str) -> Case:
    """Return a case with evidence."""
    evidence = tuple(Evidence("returns.md", quote) for quote in quotes)
    return Case(Query(query_id, f"{query_id}?"), ground_truth="30 days", qrels={"returns.md": 1}, evidence=evidence)


def payload_in(output: Path, rows: list[Any], cases: list[Case] | None = None, **more: Any) -> dict[str, Any]:
    """Return the blocks of a run, as a browser reads them."""
    write_run(output, rows, cases or [], **more)
    return {name: json.loads(json.dumps(value)) for name, value in payload_of([read_run(output)]).blocks()}


def test_a_chunk_that_many_trials_have_is_there_once(tmp_path: Path) -> None:
    chunks = [make_chunk("returns.md#1", text=POLICY), make_chunk("lamps.md#1", text=OTHER)]
    rows = [
        make_row(query_id=f"q{n}", experiment=name, retrieved_chunks=chunks) for n in range(4) for name in ("a", "b")
    ]
    blocks = payload_in(tmp_path, rows)
    assert [chunk[1] for chunk in blocks["texts"]["chunks"]] == [POLICY, OTHER]
    assert [[kept[0] for kept in trial["context"]] for trial in blocks["trials-0"]] == [[0, 1]] * 8


def test_trials_stand_by_experiment_in_the_order_of_the_cases(tmp_path: Path) -> None:
    rows = [
        make_row(query_id=q, experiment=name, llm_answer=f"{name} {q}") for q in ("q2", "q1") for name in ("b", "a")
    ]
    index = payload_in(tmp_path, rows, [case("q1"), case("q2")])["index"]
    trials = index["trials"]
    experiments = [index["experiments"][n]["id"] for n in trials["experiment"]]
    cases = [index["cases"][n]["id"] for n in trials["case"]]
    assert list(zip(experiments, cases, strict=True)) == [("a", "q1"), ("a", "q2"), ("b", "q1"), ("b", "q2")]
    assert trials["answer"] == ["a q1", "a q2", "b q1", "b q2"]


def test_values_are_those_of_the_tables_and_null_where_there_is_none(tmp_path: Path) -> None:
    rows = [make_row(query_id="q1"), failed_row(query_id="q2"), make_row(query_id="q3")]
    scores = [score(rows[0], "faithfulness", 0.75)]
    index = payload_in(tmp_path, rows, scores=scores)["index"]
    assert index["trials"]["values"]["faithfulness"] == [0.75, 0.0, None]
    assert index["trials"]["values"]["error_rate"] == [0.0, 1.0, 0.0]
    assert "confidence" not in index["trials"]["values"]  # no trial states one
    assert [index["states"][state] for state in index["trials"]["state"]] == ["ok", "error", "ok"]


def test_a_lost_trial_has_a_line_and_no_details(tmp_path: Path) -> None:
    blocks = payload_in(tmp_path, [make_row(query_id="q1")], [case("q1"), case("q2")], selected={"e3": ["q1", "q2"]})
    assert [blocks["index"]["states"][n] for n in blocks["index"]["trials"]["state"]] == ["ok", "lost"]
    assert blocks["trials-0"][1] == {}


def test_a_case_that_was_not_selected_has_none(tmp_path: Path) -> None:
    blocks = payload_in(tmp_path, [make_row(query_id="q1")], [case("q1"), case("q2")], selected={"e3": ["q1"]})
    assert len(blocks["trials-0"]) == 1


def test_claims_of_the_judge_whose_scores_count_and_no_others(tmp_path: Path) -> None:
    row = make_row()
    claims = [
        {"text": "30 days", "value": 0.91234, "start": 0, "end": 7, "passage": 0},
        {"text": "said", "value": None},
    ]
    stranger: Any = {"author": Author("x", "y", "z"), "value": 0.1, "detail": {"claims": [{"text": "no", "value": 0}]}}
    other = replace(score(row, "faithfulness", 0.9), **stranger)
    scores = [score(row, "faithfulness", 0.9, detail={"claims": claims}), other]
    blocks = payload_in(tmp_path, [row], scores=scores)
    assert blocks["trials-0"][0]["claims"] == {"faithfulness": [[0.912, 0, 7, 0], [None, -1, -1, None, "said"]]}


def test_a_claim_has_the_sources_that_it_rests_on_and_their_words(tmp_path: Path) -> None:
    row = make_row()
    sources = [
        {"source": 1, "value": 0.0, "support": "none", "cited": True},
        {"source": 2, "value": 1.0, "support": "full", "cited": False, "quote": "within 30 days"},
        {"source": 9, "value": None, "support": None, "cited": True, "reason": "no verdict"},
    ]
    claims = [{"text": "30 days", "value": 0.0, "start": 0, "end": 7, "citations": [1, 9], "sources": sources}]
    scores = [score(row, "citation_support", 0.0, detail={"claims": claims})]
    (found,) = payload_in(tmp_path, [row], scores=scores)["trials-0"][0]["claims"]["citation_support"]
    assert found[6:] == [
        [1, 9],
        [[1, 0.0, 1, "", ""], [2, 1.0, 0, "within 30 days", ""], [9, None, 1, "", "no verdict"]],
    ]


def test_a_measure_says_whose_claims_it_has_and_what_may_support_them(tmp_path: Path) -> None:
    row = make_row()
    scores = [score(row, name, 0.9) for name in ("faithfulness", "factuality", "answer_relevancy")]
    measures = {measure["name"]: measure for measure in payload_in(tmp_path, [row], scores=scores)["index"]["measures"]}
    assert measures["faithfulness"]["claims"] == ["answer", "contexts"]
    assert measures["factuality"]["claims"] == ["answer", "gold_pages"]
    assert "claims" not in measures["answer_relevancy"]


def test_a_claim_with_two_verdicts_has_none_to_mark_it_by(tmp_path: Path) -> None:
    row = make_row()
    claims = [{"text": "30 days", "ground_truth": 1.0, "contexts": 0.0, "start": 0, "end": 7}]
    scores = [score(row, "noise_sensitivity", 0.0, detail={"claims": claims})]
    assert "claims" not in payload_in(tmp_path, [row], scores=scores)["trials-0"][0]


def test_a_document_of_no_relevance_is_not_gold(tmp_path: Path) -> None:
    judged = replace(case("q1"), qrels={"returns.md": 1, "lamps.md": 0})
    assert payload_in(tmp_path, [make_row(query_id="q1")], [judged])["index"]["cases"][0]["gold"] == ["returns.md"]


def test_why_a_value_is_missing_is_said(tmp_path: Path) -> None:
    row = make_row()
    blocks = payload_in(tmp_path, [row], scores=[score(row, "faithfulness", None, reason="unreadable twice")])
    (gaps,) = [trial["gaps"] for trial in blocks["trials-0"]]
    assert blocks["texts"]["names"][gaps["faithfulness"]] == "no verdict: unreadable twice"


def test_causes_are_of_the_rows_of_this_run(tmp_path: Path) -> None:
    rows = [make_row(query_id="q1"), make_row(query_id="q2")]
    lines = [
        CauseLine(experiment="e3", query_id="q1", cause="Retrieval Miss", remedy="rerank", fingerprint="aaaa"),
        CauseLine(experiment="e3", query_id="q2", cause="Logic Failure", fingerprint="of another run"),
    ]
    write_run(tmp_path, rows)
    write_causes(tmp_path, lines)
    payload = payload_of([read_run(tmp_path)])
    assert payload.index["trials"]["cause"] == [0, -1]
    assert payload.index["causes"] == ["Retrieval Miss"]
    assert payload.trials[0][0]["cause"]["remedy"] == "rerank"


def test_details_come_in_blocks(tmp_path: Path) -> None:
    blocks = payload_in(tmp_path, [make_row(query_id=f"q{n:03}") for n in range(BLOCK + 1)])
    assert [len(blocks["trials-0"]), len(blocks["trials-1"])] == [BLOCK, 1]


def test_rows_of_another_run_and_torn_lines_are_passed_over(tmp_path: Path) -> None:
    row = make_row()
    write_run(tmp_path, [row])
    old = make_row(query_id="q1", fingerprint="old", llm_answer="old")
    (tmp_path / "e3.jsonl").write_text(old.line() + row.line() + row.line()[:40])
    payload = payload_of([read_run(tmp_path)])
    assert payload.index["trials"]["answer"] == [row.llm_answer]


def test_two_runs_over_the_same_data_share_their_cases(tmp_path: Path) -> None:
    for name in ("before", "after"):
        write_run(tmp_path / name, [make_row()])
        text = (tmp_path / name / "run.json").read_text()
        (tmp_path / name / "run.json").write_text(text.replace('"digests": {}', '"digests": {"queries": "1"}'))
    index = payload_of([read_run(tmp_path / name, name) for name in ("after", "before")]).index
    assert [run["name"] for run in index["runs"]] == ["after", "before"]
    assert index["experiments"] == [{"id": "e3", "run": 0}, {"id": "e3", "run": 1}]
    assert len(index["cases"]) == 1


# A prompt, cut at the chunks that are kept anyway.

TEXTS = st.text(alphabet="ab \n", max_size=12)


@given(TEXTS, st.lists(st.text(alphabet="ab \n", min_size=1, max_size=4), max_size=4))
def test_the_pieces_of_a_prompt_are_the_prompt(text: str, bodies: list[str]) -> None:
    texts: Pool[str] = Pool()
    pieces = Prompts(Path(), texts)._cut(text, dict(enumerate(bodies)))
    assert "".join(texts.values[n] if n >= 0 else bodies[-n - 1] for n in pieces) == text


def test_a_prompt_keeps_chunks_as_numbers(tmp_path: Path) -> None:
    digest = PromptFiles(tmp_path).keep([Message("user", f"Context: {POLICY}\nQuestion: why?")])
    texts: Pool[str] = Pool()
    assert Prompts(tmp_path, texts).pieces(digest, {7: POLICY}) == [["user", 0, -8, 1]]
    assert texts.values == ["Context: ", "\nQuestion: why?"]


@pytest.mark.parametrize("content", [None, "no json", '{"role": 1}', "[1]"])
def test_a_prompt_that_is_gone_is_none(tmp_path: Path, content: str | None) -> None:
    (tmp_path / "prompts").mkdir()
    if content is not None:
        (tmp_path / "prompts" / "d.json").write_text(content)
    assert Prompts(tmp_path, Pool()).pieces("d", {}) is None


# Evidence, where it stands.


def test_a_quote_is_found_as_the_measure_finds_it() -> None:
    assert quotes_in(POLICY, ["return it within  30 days.", "not there", ""]) == [[0, 8, 33]]
    assert POLICY[8:33] == "return it\nwithin 30 days."


@given(st.lists(st.text(alphabet="a.*[ \n", min_size=1, max_size=5), min_size=1, max_size=5))
def test_a_quote_of_any_characters_is_found_in_itself(words: list[str]) -> None:
    text = " ".join(words)
    (found,) = quotes_in(f"x {text} y", [text]) or [[0, 0, 0]]
    assert " ".join(f"x {text} y"[found[1] : found[2]].split()) == " ".join(text.split())


# Packing.

HOSTILE = '</script><script>alert(1)</script><!-- ]]> \u202e \ud800 \x00 é & "'


def test_packed_unpacks_to_the_same_and_is_the_same_each_time() -> None:
    text = packed({"a": [HOSTILE]})
    assert json.loads(gzip.decompress(base64.b64decode(text))) == {"a": [HOSTILE]}
    assert text == packed({"a": [HOSTILE]})


def test_plain_cannot_end_its_element() -> None:
    text = script_json([HOSTILE])
    assert not set("<>&") & set(text)
    assert json.loads(text) == [HOSTILE]


def test_not_a_number_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        packed([float("nan")])


# Conversations in the payload: what was said stands once, and a run without turns has nothing of them.


def blocks_of(output: Path) -> dict[str, Any]:
    return {name: json.loads(json.dumps(value)) for name, value in payload_of(read(output)).blocks()}


def trial(blocks: dict[str, Any], experiment: str, turn: int) -> dict[str, Any]:
    """Return the details of a turn of the first conversation."""
    index = blocks["index"]
    (suite,) = [n for n, each in enumerate(index["experiments"]) if each["id"] == experiment]
    (place,) = [
        n
        for n, case in enumerate(index["trials"]["case"])
        if index["trials"]["experiment"][n] == suite and index["cases"][case]["id"] == f"{LAMP}#{turn}"
    ]
    found: dict[str, Any] = blocks["trials-0"][place]
    return found


def said(blocks: dict[str, Any], experiment: str, turn: int) -> list[tuple[Any, ...]]:
    texts = blocks["texts"]["strings"]
    return [(who, texts[n], *failed) for who, n, *failed in trial(blocks, experiment, turn).get("history", [])]


def test_a_turn_has_what_its_pipeline_was_told_and_texts_stand_once(tmp_path: Path) -> None:
    blocks = blocks_of(Talks().write(tmp_path))
    assert said(blocks, "c1", 2) == [("user", "How long may I return a lamp?"), ("assistant", "Reference 1.")]
    assert said(blocks, "c1-own", 2)[1] == ("assistant", "Reply to lamp#1. [Source 1]")
    assert said(blocks, "c1-own", 1) == []
    assert FAILED == ("c2-own", "lamp#2")
    assert said(blocks, "c2-own", 3)[3] == ("assistant", "Sorry, something went wrong. Please ask again.", 1)
    assert len(blocks["texts"]["strings"]) == len(set(blocks["texts"]["strings"]))


def test_inputs_do_not_repeat_the_conversation(tmp_path: Path) -> None:
    blocks = blocks_of(Talks().write(tmp_path))
    assert all("inputs" not in each for each in blocks["trials-0"])
    assert [each.get("history") for each in blocks["index"]["experiments"]] == ["gold", "own", "own"]


def test_a_run_without_turns_says_nothing_of_them(tmp_path: Path) -> None:
    blocks = blocks_of(write_study(tmp_path))
    assert not any("history" in each for each in [*blocks["index"]["experiments"], *blocks["trials-0"]])


# What the page reads of steps: hits that no search before has found are told apart, and flat traces tell nothing.


def told(*steps: dict[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
    names: Pool[str] = Pool()
    found = list(told_steps([RowStage.model_validate(each) for each in steps], names))
    return found, list(names.values)


def test_a_hit_is_new_where_no_search_before_has_found_it() -> None:
    found, names = told(search("a", "x.md#0", "y.md#0"), tool("page", {"n": 1}), search("b", "y.md#0", "z.md#0"))
    assert names == ["x.md#0", "y.md#0", "z.md#0"]
    assert [each.get("hits") for each in found] == [[[0, 1], [1, 1]], None, [[1, 0], [2, 1]]]
    assert found[1] == {"kind": "tool", "input": {"n": 1}}


def test_reranking_finds_nothing_new_and_makes_nothing_old() -> None:
    ranked = {**search("a", "z.md#0"), "kind": "rerank"}
    found, _ = told(search("a", "x.md#0"), ranked, search("b", "z.md#0"))
    assert found[2]["hits"] == [[1, 1]]


def test_a_search_without_hits_found_nothing_only_where_others_tell_theirs() -> None:
    assert told(search("a", "x.md#0"), search("b"))[0][1] == {"kind": "retrieve", "input": "b", "hits": []}
    assert told(search("a"), search("b"))[0][1] == {"kind": "retrieve", "input": "b"}


def test_a_flat_trace_tells_nothing() -> None:
    assert told({"name": "retrieve", "ms": 1.0}, {"name": "generate", "ms": 1.0})[0] == [{}, {}]


def test_a_chunk_whose_id_names_no_document_has_it_before_it() -> None:
    hit = {"chunk_id": "c7", "filename": "x.md"}
    _, names = told({"name": "s", "kind": "retrieve", "ms": 1.0, "hits": [hit, {"chunk_id": "c8", "filename": ""}]})
    assert names == ["x.md#c7", "c8"]


# Blocks of data that are packed while later ones are made are those of the finished payload.


@pytest.fixture
def blocks_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "BLOCK", 2)


@pytest.mark.usefixtures("blocks_of_two")
@pytest.mark.parametrize(("is_plain", "pack"), [(False, packed), (True, script_json)])
def test_early_and_late_blocks_are_packed_alike(tmp_path: Path, is_plain: bool, pack: Any) -> None:
    begun: dict[str, str] = {}
    write_run(tmp_path, [make_row(query_id=f"q{n}") for n in range(5)])
    runs = read(tmp_path)
    with Packing(is_plain) as packing:

        def begin(name: str, value: Any) -> None:
            begun[name] = json.dumps(value)
            packing.begin(name, value)

        payload = payload_of(runs, finished=begin)
        found = list(packing.of(payload))
    assert [*begun] == ["trials-0", "trials-1"]  # the third block is not full
    assert found == [(name, pack(value)) for name, value in payload_of(runs).blocks()]
    assert begun == {name: json.dumps(value) for name, value in payload.blocks() if name in begun}
    assert [len(block) for block in payload.trials] == [2, 2, 1]


# Which trials a page lists that cannot hold all of them.

CASES, MOST = 60, 24
QUOTA = MOST // 2
"""Trials of each of two experiments."""
TYPES = ["direct"] * 40 + ["negative"] * 20


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listed_trials, "MOST_TRIALS_LISTED", MOST)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Write two experiments; of e3 every 20th trial raises, and two answers share no word with the truth."""
    rows = [
        failed_row(query_id=f"q{n}", experiment=name)
        if n % 20 == 19 and name == "e3"
        else make_row(query_id=f"q{n}", experiment=name, llm_answer="none" if n in (7, 8) else "30 days")
        for name in ("e2", "e3")
        for n in range(CASES)
    ]
    cases = [
        suite_tables_case(f"q{n}", ["returns.md"], query_type=TYPES[n], ground_truth="30 days") for n in range(CASES)
    ]
    write_run(tmp_path, rows, cases)
    return read_run(tmp_path)


def listed(run: Run, name: str = "e3", sections: list[Section] | None = None) -> list[str]:
    places = sample_of([run], sections or []).places[run.name, name]
    return [run.tables[name].ids[place] for place in places.tolist()]


@pytest.mark.usefixtures("few")
def test_where_all_fit_all_are_listed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listed_trials, "MOST_TRIALS_LISTED", 2 * CASES)
    assert len(listed(run)) == CASES
    assert sample_of([run]).said == sample_said([run]) == ""


@pytest.mark.usefixtures("few")
def test_the_worst_are_listed_whatever_is_drawn(run: Run) -> None:
    found = listed(run)
    assert len(found) == QUOTA
    assert {"q19", "q39", "q59", "q7", "q8"} <= {*found}


@pytest.mark.usefixtures("few")
def test_the_others_are_drawn_by_type_and_the_same_each_time(run: Run) -> None:
    found = [TYPES[int(name[1:])] for name in listed(run, "e2")]
    # Six worst, of which equal ones in their order; of the six others two thirds are direct, as of all that are left.
    assert found.count("direct") == 6 + 4
    assert listed(run, "e2") == listed(read_run(run.output), "e2")
    assert listed(run, "e2") != [f"q{n}" for n in range(QUOTA)]


@pytest.mark.usefixtures("few")
def test_what_the_page_links_to_is_listed(run: Run) -> None:
    absent, also, *_ = [f"q{n}" for n in range(CASES) if f"q{n}" not in listed(run)]
    table = Table("moved", ("query",), [[Cell("", trial=f"e3-{absent}", beside=f"e3-{also}")]])
    assert {absent, also} <= {*listed(run, sections=[Section("moved", "Moved", [More("all", [table])])])}


@pytest.mark.usefixtures("few")
def test_payload_has_the_sample_and_nothing_else(run: Run) -> None:
    payload = payload_of([run])
    shown = payload.index["trials"]
    names = [payload.index["cases"][number]["id"] for number in shown["case"]]
    assert names == [*listed(run, "e2"), *listed(run, "e3")]
    assert sum(map(len, payload.trials)) == MOST
    assert all(details.get("context") for block in payload.trials[:1] for details in block[:QUOTA])


@pytest.mark.usefixtures("few")
def test_the_report_says_so_and_its_figures_are_of_all(run: Run) -> None:
    file = run.output / "report.html"
    write_report([run.output], file, "html")
    text = file.read_text()
    assert "Of 120 trials the page lists a sample. Of each experiment: the 6 worst" in text
    assert np.isclose(run.tables["e3"].aggregate(["error_rate"])["error_rate"] or 0, 3 / 60)
    assert "0.05" in text


@pytest.mark.usefixtures("few")
def test_the_comment_is_about_all_trials(run: Run) -> None:
    file = run.output / "report.md"
    write_report([run.output], file, "md")
    assert "| 57 of 60 |" in file.read_text()
