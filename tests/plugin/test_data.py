"""Runs on mixed files, pages of other languages, MTRAG, and two collections at once."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook

from rag_harness.__main__ import main
from tests.mtrag_clone import clone_of
from tests.plugin.conftest import Suite
from tests.unit.data.loaders.office_files import heading, said, word
from tests.unit.data.loaders.pdfs import book as pdfs_book

# Every experiment takes a folder of mixed files; what a run goes without is said.


def test_a_run_over_mixed_files_says_pages_and_what_it_goes_without(suite: Suite) -> None:
    kb = suite.path / "kb"
    (kb / "shipping.md").rename(kb / "shipping.txt")
    (kb / "warranty.md").unlink()
    (kb / "warranty.pdf").write_bytes(pdfs_book("About lamps.", "The warranty lasts 2 years."))
    suite.write_queries([{"query_id": "a", "query": "warranty", "context_reference": ["warranty.pdf"]}])
    suite.run().assert_outcomes(passed=1)
    (row,) = suite.rows()
    chunks: Any = row["retrieved_chunks"]
    about = {chunk["metadata"]["filename"]: chunk["metadata"] for chunk in chunks}
    pages = {name: (each["page"], each["last_page"]) for name, each in about.items()}
    assert pages["warranty.pdf"] == (1, 2)
    assert pages["returns.md"] == (None, None)

    (kb / "broken.pdf").write_bytes(b"no PDF")
    gone: dict[str, object] = {"query_id": "b", "query": "returns", "context_reference": ["broken.pdf", "returns.md"]}
    suite.write_queries([{"query_id": "a", "query": "warranty", "context_reference": ["warranty.pdf"]}, gone])
    stopped = suite.run()
    stopped.stdout.fnmatch_lines(["*kb/broken.pdf: is not a PDF. Remove it*", "*--rag-unreadable=skip*"])
    assert "Traceback" not in stopped.stdout.str()
    skipped = suite.run("--rag-unreadable=skip")
    skipped.assert_outcomes(passed=2)
    skipped.stdout.fnmatch_lines(
        [
            "rag: left out: *kb/broken.pdf: is not a PDF. Remove it*",
            "rag: 1 of 2 questions have gold in files that were left out: b",
        ]
    )


def test_a_run_over_office_files_answers_and_says_the_sheet(suite: Suite) -> None:
    kb = suite.path / "kb"
    for page in kb.glob("*.md"):
        page.unlink()
    (kb / "returns.docx").write_bytes(word(heading("Returns", 1), said("A lamp goes back within 45 days.")))
    workbook = Workbook()
    workbook.active.append(("Item", "Fee"))
    stock = workbook.create_sheet("Stock")
    stock.append(("Shelf", "Units"))
    stock.append(("B7", 250))
    workbook.save(kb / "prices.xlsx")
    (kb / "shops.csv").write_text("Town;Opens\nVienna;nine\n")
    (kb / "package.json").write_text('{"name": "no document"}')
    asked = {"returns.docx": "lamp goes back", "prices.xlsx": "Units on shelf B7", "shops.csv": "Vienna opens"}
    suite.write_queries(
        [
            {"query_id": file.partition(".")[0], "query": query, "context_reference": [file]}
            for file, query in asked.items()
        ]
    )
    suite.run().assert_outcomes(passed=3)
    for row in suite.rows():
        file = next(name for name in asked if name.startswith(str(row["query_id"])))
        chunks: Any = row["retrieved_chunks"]
        pages = {chunk["metadata"]["page"] for chunk in chunks if chunk["metadata"]["filename"] == file}
        assert pages == ({1, 2} if file == "prices.xlsx" else {None})
    prompts = "".join(file.read_text() for file in (suite.path / "output" / "prompts").iterdir())
    assert "prices.xlsx, page 2] ## Stock" in prompts


def test_the_reliability_engine_answers_over_mixed_files(suite: Suite) -> None:
    kb = suite.path / "kb"
    (kb / "shipping.md").rename(kb / "shipping.txt")
    (kb / "warranty.md").unlink()
    (kb / "warranty.html").write_text("<h1>Warranty</h1><p>The warranty lasts 2 years.<p hidden>Say nothing.")
    suite.write_queries([{"query_id": "a", "query": "How long does the warranty last?"}])
    suite.pytester.makepyfile("import pytest\n@pytest.mark.r1\ndef test_r1(rag_result):\n    assert rag_result.ok")
    suite.run("-m", "r1").assert_outcomes(passed=1)
    (row,) = suite.rows("r1_reliable")
    candidates: Any = row["candidates"]
    assert any(hit["chunk_id"].startswith("warranty.html#") for hit in candidates)
    assert "Say nothing" not in str(candidates)
    decisions: Any = row["decisions"]
    assert "decision" in {one["name"] for one in decisions}


# A run over German pages: read as German, said in brief, report and validation, judged by no English rule.

GERMAN = Path(__file__).parents[1] / "data/german"
SAID = "Documents by language: 8 in de."


@pytest.fixture
def german(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    monkeypatch.delenv("RAG_SECTIONS")
    return in_german(suite)


def in_german(suite: Suite) -> Suite:
    shutil.rmtree(suite.path / "kb")
    shutil.copytree(GERMAN, suite.path / "kb")
    return suite


@pytest.fixture(scope="module")
def judged(shared_suite: Suite) -> tuple[Suite, pytest.RunResult]:
    options = ("--rag-limit=3", "--rag-report=report.md", "--rag-judge=embedded", "--rag-measures=faithfulness")
    with pytest.MonkeyPatch.context() as patched:
        patched.delenv("RAG_SECTIONS")
        return shared_suite, in_german(shared_suite).run(*options)


def test_what_languages_there_are_is_said_in_the_run_in_brief_and_in_the_report(
    judged: tuple[Suite, pytest.RunResult],
) -> None:
    german, result = judged
    result.stdout.fnmatch_lines([f"note     {SAID}"])
    assert SAID in (german.path / "report.md").read_text(encoding="utf-8")
    suites = json.loads((german.path / "output/run.json").read_text(encoding="utf-8"))["suites"]
    assert {tuple(each["languages"]) for each in suites.values()} == {(SAID,)}


@pytest.mark.long
def test_no_language_is_said_where_all_is_english(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAG_SECTIONS")
    assert "by language" not in suite.run("--rag-limit=1").stdout.str()


@pytest.mark.long
def test_chinese_pages_have_no_rules_and_that_is_said(german: Suite) -> None:
    (german.path / "kb/zh.md").write_text("# 退款\n\n退款需要五天时间到账。请耐心等待。\n", encoding="utf-8")
    said = german.run("--rag-limit=1").stdout.str().replace("\n         ", " ")
    assert "Documents by language: 8 in de, 1 in zh." in said
    assert "1 in zh, which has no rules: words are cut as English ones" in said


def test_an_unknown_language_stops_the_run_with_what_could_be_meant(german: Suite) -> None:
    result = german.run("--rag-language=german")
    assert result.ret != 0
    assert "rag_language: Unknown language 'german'. Did you mean 'de'?" in result.stdout.str() + result.stderr.str()


def test_the_embedded_judge_leaves_german_answers_unjudged_and_says_why(judged: tuple[Suite, pytest.RunResult]) -> None:
    german, _ = judged
    lines = (german.path / "output/scores/e3_filtered_rag.jsonl").read_text(encoding="utf-8").splitlines()
    scores = [json.loads(line) for line in lines]
    assert scores
    assert {(score["value"], score["reason"]) for score in scores} == {(None, "not judged: language de")}


def test_validation_says_the_language_and_what_is_not_checked(
    german: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["kb", "validate", str(german.path / "kb")])
    said = capsys.readouterr().out
    assert f"note: {SAID}" in said
    assert "note: Contradictions between versions of a page are looked for in English alone." in said


def test_init_drafts_german_questions_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(GERMAN, tmp_path / "docs", ignore=lambda _, names: [n for n in names if n.endswith(".jsonl")])
    monkeypatch.chdir(tmp_path)
    main(["init"])
    (file,) = tmp_path.rglob("queries.jsonl")
    asked = [json.loads(line)["query"] for line in file.read_text(encoding="utf-8").splitlines()]
    assert "Wie lang ist die Rückgabefrist?" in asked
    assert not [text for text in asked if "what" in text.lower()]


# A run on MTRAG: its passages are the documents, its turns the queries, its generation tasks the cases.

GOLDEN = "def test_finds_what_is_expected(rag_retrieval):\n    assert rag_retrieval.found\n"


@pytest.fixture
def mtrag(suite: Suite) -> Suite:
    clone_of(suite.path / "clone")
    suite.pytester.makeini("[pytest]\nrag_profile = mock\nrag_retriever = bm25\nrag_k = 1\n")
    return suite


def test_turns_are_searched_for_and_labelled(mtrag: Suite) -> None:
    for file in mtrag.path.glob("test_*.py"):
        file.unlink()
    mtrag.pytester.makepyfile(test_golden=GOLDEN)
    gates = ["--rag-gate=golden[conversation=aa]: recall@1 >= 0.9", "--rag-gate=golden[turn>=2]: recall@1 >= 0.9"]
    result = mtrag.run("--rag-dataset=mtrag:clone/clapnq/rewrite", *gates, "-v")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        ["*[[]golden-aa#2[]] PASSED*", "passed *conversation=aa*n=2 in 1 conv*", "passed *turn>=2*n=1"]
    )


def test_experiments_answer_its_generation_tasks(mtrag: Suite) -> None:
    gates = ["--rag-gate=e3[query_type=partial]: recall@5 >= 1", "--rag-gate=e3[turn>=2]: error_rate <= 0"]
    result = mtrag.run("--rag-dataset=mtrag:clone/clapnq", "-m", "e3", *gates)
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(["passed *query_type=partial*n=1", "passed *turn>=2*n=3 in 2 conversations"])
    rows = {str(row["query_id"]): row for row in mtrag.rows()}
    assert sorted(rows) == ["aa#1", "aa#2", "aa#3", "bb#1", "bb#2"]
    assert mtrag.run("--rag-dataset=mtrag:clone/clapnq", "-m", "e3").ret == 0
    (mtrag.path / "clone/mtrag-human/generation_tasks/reference.jsonl").unlink()
    said = mtrag.run("--rag-dataset=mtrag:clone/clapnq", "-m", "e3")
    assert said.ret != 0
    assert "reference.jsonl. It is in the repository: git clone" in said.stdout.str() + said.stderr.str()


def test_a_clone_without_its_corpora_stops_the_run_before_anything_is_asked(mtrag: Suite) -> None:
    (mtrag.path / "clone/corpora/passage_level/clapnq.jsonl").unlink()
    result = mtrag.run("--rag-dataset=mtrag:clone/clapnq", "-m", "e3")
    assert result.ret != 0
    said = result.stdout.str() + result.stderr.str()
    assert "without its passages nothing can be retrieved" in said
    assert "Traceback" not in said
    assert not list((mtrag.path / "output").glob("e3*.jsonl"))


def test_single_turns_have_no_history_of_own_answers(mtrag: Suite) -> None:
    """A task may be the last turn of a conversation: nobody has answered those before it."""
    tasks = mtrag.path / "clone/mtrag-human/generation_tasks/reference.jsonl"
    tasks.write_text("".join(line for line in tasks.read_text().splitlines(keepends=True) if "aa<::>1" not in line))
    result = mtrag.run("--rag-dataset=mtrag:clone/clapnq", "--rag-history=own", "-m", "e3")
    assert result.ret != 0
    said = " ".join(result.stdout.str().split())
    assert "e3-own goes on from its own answers, and aa#2 comes without turn 1 of 'aa'." in said
    assert not mtrag.rows("e3-own")
    # A service with a memory of its own takes no other history, so none is advised.
    (mtrag.path / "chat.toml").write_text(
        'url = "http://127.0.0.1:9"\nbody = { q = "{{query}}", s = "{{session}}" }\nsession.path = "s"\n'
    )
    result = mtrag.run("--rag-dataset=mtrag:clone/clapnq", "--rag-endpoint=chat.toml", "--rag-run=chat")
    said = " ".join(result.stderr.str().split())
    assert "chat goes on from its own answers, and aa#2 comes without turn 1 of 'aa'. Add the turns before it." in said
    assert "--rag-history=gold" not in said


# Two systems over two collections in one run: each is asked its own questions, and has its own gates.

PYPROJECT = """
[tool.rag_harness.data.book]
kb = "book"
experiments = ["tutor"]
gates = ["tutor: error_rate <= 0", "tutor: token_f1 >= 0.9"]
"""
TEST = """
import pytest

class Tutor:
    async def answer(self, query):
        return "Gravity pulls." if query.query_id == "b1" else "no idea"

@pytest.fixture(scope="session")
def rag_pipeline():
    return Tutor()

@pytest.mark.rag_experiment("tutor")
def test_tutor(rag_result):
    assert rag_result.ok
"""


@pytest.fixture
def book(suite: Suite) -> Suite:
    folder = suite.path / "book"
    folder.mkdir()
    (folder / "one.md").write_text("# One\n\nGravity pulls.")
    asked = {"query_id": "b1", "query": "What pulls?", "ground_truth": "Gravity pulls."}
    (folder / "queries.jsonl").write_text(json.dumps(asked))
    (suite.path / "pyproject.toml").write_text(PYPROJECT)
    suite.pytester.makepyfile(test_tutor=TEST)
    return suite


@pytest.mark.parametrize("workers", [pytest.param("-n0", marks=pytest.mark.long), "-n2"])
def test_each_experiment_is_asked_about_its_own_data_and_judged_by_its_own_gates(book: Suite, workers: str) -> None:
    result = book.run(workers, "--rag-gate=e3: recall@5 >= 0.1")
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines_random(
        [
            "passed *tutor: error_rate <= 0 *n=1*",
            "passed *tutor: token_f1 >= 0.9 *1.000*n=1*",
            "passed *e3: recall@5 >= 0.1 *n=3*",
        ]
    )
    assert [row["query_id"] for row in book.rows("tutor")] == ["b1"]
    suites = json.loads((book.path / "output" / "run.json").read_text())["suites"]
    assert {name: (suite["data"], suite["total"]) for name, suite in suites.items()} == {
        "e3": ("queries", 4),
        "tutor": ("book", 1),
    }
    assert (book.path / "output" / "cases" / "book.jsonl").is_file()


def test_questions_of_its_golden_set_are_a_slice(book: Suite) -> None:
    entry = {"id": "b1", "query": "What pulls?", "expected_document_id": "one.md", "justification": "Gravity."}
    (book.path / "book" / "pilot.json").write_text(json.dumps([entry]))
    more = {"query_id": "b2", "query": "What pushes?", "ground_truth": "Nothing."}
    with (book.path / "book" / "queries.jsonl").open("a") as file:
        file.write("\n" + json.dumps(more))
    gates = 'gates = ["tutor[golden=yes]: token_f1 >= 0.9", "tutor[golden=no]: token_f1 <= 0.1"]'
    head = PYPROJECT.partition("gates =")[0]
    (book.path / "pyproject.toml").write_text(f'{head}golden = "book/pilot.json"\n{gates}\n')
    result = book.run("-m", "not e3")
    result.stdout.fnmatch_lines_random(
        ["passed *tutor[[]golden=yes]: token_f1 >= 0.9 *n=1*", "passed *tutor[[]golden=no]: token_f1 <= 0.1 *n=1*"]
    )


def test_its_gates_say_what_to_do_too(book: Suite) -> None:
    said = PYPROJECT.replace("tutor: error_rate <= 0", "tutor: error_rate >= 1 else ask two tutors")
    (book.path / "pyproject.toml").write_text(said)
    result = book.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["failed *tutor: error_rate >= 1 *n=1*", " *what to do: ask two tutors"])
    result = book.run("--rag-kb=kb")
    result.stdout.fnmatch_lines(["not judged *set for book, this run is on kb", " *tutor: error_rate >= 1; *"])
    assert "two tutors" not in result.stdout.str()


def test_its_gates_are_not_judged_on_another_knowledge_base(book: Suite) -> None:
    result = book.run("--rag-kb=kb")
    result.stdout.fnmatch_lines(["not judged *set for book, this run is on kb", " *tutor: error_rate <= 0; *"])
    assert len(book.rows("tutor")) == 4


def test_a_gate_about_an_experiment_of_other_data_is_refused(book: Suite) -> None:
    (book.path / "pyproject.toml").write_text(PYPROJECT.replace("tutor: error_rate", "e3: error_rate"))
    result = book.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*is in *data.book*, but e3 is asked about the run's own data*"])
