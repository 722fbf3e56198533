"""Every writer of foreign text is run with the whole corpus, and no text of it is active in the output."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from rag_harness.__main__ import main
from rag_harness.core import progress
from rag_harness.core.errors import DataError
from rag_harness.core.log import close_log, log, open_log
from rag_harness.core.types import Case, Evidence, Query
from rag_harness.diagnosis.cause_lines import review
from rag_harness.evaluation.judges.calibration.labels import write_sheet
from rag_harness.frontends.cli import ingest
from rag_harness.frontends.pytest_plugin.progress import WorkLines
from rag_harness.page.content import (
    Block,
    Cell,
    Code,
    Facts,
    FailedTrial,
    Failures,
    Figure,
    More,
    Prose,
    Section,
    Table,
    word_cells,
)
from rag_harness.page.html import html_of
from rag_harness.page.payload import payload_of
from rag_harness.records.scores import CauseLine, write_causes
from rag_harness.service.monitoring import logging_to
from tests.hostile import CORPUS, WHOLE
from tests.unit.core.escaping.active import in_csv, in_markdown, on_terminal, read_html, unseen
from tests.unit.rows import make_chunk, make_row
from tests.unit.server import Reply, as_json, serving
from tests.unit.suite_tables import write_run

Said = pytest.CaptureFixture[str]


def write_texts(folder: Path, texts: Sequence[str]) -> Path:
    """Write a run whose questions, answers, gold, labels, models, errors and pages are these texts."""
    rows, cases = [], []
    for number, text in enumerate(texts):
        chunk = make_chunk("page.md#1", text=text)
        error = None if number % 7 else {"stage": "generate", "type": text[:40], "message": text}
        named = {"query_id": f"q{number}", "query": text, "llm_answer": text, "raw_output": text, "model": text}
        about = {"ground_truth": text, "metadata": {"topic": text}, "reasoning_steps": [text]}
        failed = {"status": "error", "error": error} if error else {}
        rows.append(make_row(**named, **about, **failed, retrieved_chunks=[chunk], context_reference=["gold.md"]))
        query = Query(f"q{number}", text)
        gold = (Evidence("gold.md", text),)
        cases.append(
            Case(query, ground_truth=f"gold {text}", qrels={"gold.md": 1}, evidence=gold, metadata={"topic": text})
        )
    write_run(folder, rows, cases)
    return folder


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run of the whole corpus."""
    return write_texts(tmp_path_factory.mktemp("run") / "output", WHOLE)


def test_causes_of_a_run(output: Path, capsys: Said) -> None:
    assert main(["explain", str(output), "--rows-only"]) == 0
    said = capsys.readouterr().out
    assert "the worst" in said
    assert on_terminal(said) == []


def test_one_cause_whole(tmp_path: Path, capsys: Said) -> None:
    texts = WHOLE[::9]
    output, faults = write_texts(tmp_path / "output", texts), []
    for number, text in enumerate(texts):
        assert main(["explain", str(output), f"e3-q{number}", "--rows-only"]) in (0, 2), "2 of one without an answer"
        faults += [f"{text!r}: {fault}" for fault in on_terminal("".join(capsys.readouterr()))]
    assert not faults, "\n".join(faults)


def cause(number: int, text: str) -> CauseLine:
    about = {
        "cause": "Logic Failure",
        "detail": text,
        "evidence": text,
        "remedy": text,
        "limits": text,
        "category": text,
    }
    tried = {text: {"right": False, "answer": text}, f"{text} 2": {"why": text}}
    return CauseLine(
        experiment="e3", query_id=f"q{number}", query=text, answers=tried, repaired_by=text, observational=True, **about
    )


def test_a_review_of_causes(tmp_path: Path, capsys: Said) -> None:
    write_causes(tmp_path, [cause(number, text) for number, text in enumerate(WHOLE)])
    assert review(tmp_path, "me", lambda _: "s") == 0
    said = capsys.readouterr().out
    assert said.count("query ") >= len(WHOLE)
    assert on_terminal(said) == []


def test_a_report_in_markdown_of_a_run(output: Path, tmp_path: Path) -> None:
    assert main(["report", str(output), "--format", "md", "-o", str(tmp_path / "r.md")]) == 0
    assert in_markdown((tmp_path / "r.md").read_text(encoding="utf-8")) == []


def everywhere(text: str, ident: str) -> Section:
    rows = [word_cells(text, text), [Cell(text, "good"), Cell(text, is_best=True)]]
    table = Table(f"t-{ident}", [text, "b"], rows, text, [text])
    failure = FailedTrial(text, text, text, text, text, text)
    blocks: list[Block] = [table, Prose(text), Prose(text, "bad"), Facts([(text, text)]), Failures(text, [failure], 9)]
    more: list[Block] = [
        Figure(text, ["<svg/>"], table, notes=[text]),
        More(text, [table, Prose(text)]),
        Code([text, "pytest"]),
    ]
    return Section(ident, text, [*blocks, *more])


def page_with(texts: Sequence[str]) -> str:
    """Return a page that has a section of each text, and all of them in its title."""
    return html_of(" ".join(texts), [everywhere(text, f"s{n}") for n, text in enumerate(texts)], payload_of([]))


def made_of(page: str) -> tuple[list[str], set[str]]:
    """Return the elements of a page, and the names of their attributes."""
    seen = read_html(page)
    names = {each.partition("=")[0] for each in seen.attributes}
    return [tag for tag in seen.tags if tag not in ("bdi", "br")], names | {"class"}


def turning(texts: Sequence[str]) -> list[str]:
    """Return the texts that make a page another one: where a page is, its halves are looked at."""
    page = page_with(texts)
    (elements, names), usual = made_of(page), made_of(page_with(["usual"] * len(texts)))
    if elements == usual[0] and names <= usual[1] and unseen(page.replace("\r", "")) == []:
        return []
    if len(texts) == 1:
        return [*texts]
    half = len(texts) // 2
    return [*turning(texts[:half]), *turning(texts[half:])] or [*texts]


def test_every_block_of_a_page_and_its_title() -> None:
    assert turning(WHOLE[::4]) == []


def test_a_page_of_a_run(output: Path, tmp_path: Path) -> None:
    for plain in ((), ("--plain",)):
        file = tmp_path / "r.html"
        assert main(["report", str(output), "-o", str(file), *plain]) == 0
        page = read_html(file.read_text(encoding="utf-8"))
        assert not {"img", "iframe", "a:javascript"} & set(page.tags)
        assert not [each for each in page.attributes if each.lower().startswith(("on", "href=javascript", "src="))]


def test_csv_of_a_run(output: Path, tmp_path: Path) -> None:
    assert main(["report", str(output), "--format", "csv", "-o", str(tmp_path / "r.csv")]) == 0
    assert in_csv((tmp_path / "r.csv").read_bytes().decode()) == []


def test_a_sheet_of_answers_to_label(tmp_path: Path) -> None:
    rows = {("e3", f"q{n}"): make_row(query_id=f"q{n}", query=text, llm_answer=text) for n, text in enumerate(WHOLE)}
    sheet, lines, _ = write_sheet(tmp_path / "sheet", [*rows], rows)
    assert in_csv(sheet.read_bytes().decode("utf-8-sig")) == []
    assert len(lines.read_text(encoding="utf-8").split("\n")) == len(WHOLE) + 1


def test_rows_of_a_run_are_a_line_each_and_hold_what_was_said(output: Path) -> None:
    lines = (output / "e3.jsonl").read_bytes().split(b"\n")[:-1]
    assert [json.loads(line)["query"] for line in lines] == [*WHOLE]
    assert not [line for line in lines if any(byte < 32 for byte in line)]


def test_a_comparison_and_power(output: Path, capsys: Said) -> None:
    for command in (["compare", str(output), str(output)], ["power", str(output)]):
        main(command)
        assert on_terminal("".join(capsys.readouterr())) == []


def test_damaged_results(tmp_path: Path, capsys: Said) -> None:
    (tmp_path / "e3.jsonl").write_text("".join(f"{json.dumps({'query_id': text})}\n" for text in WHOLE))
    main(["results", "validate", str(tmp_path)])
    said = "".join(capsys.readouterr())
    assert said.count("\n") > len(WHOLE) / 2
    assert on_terminal(said) == []


@pytest.fixture
def kb(tmp_path: Path) -> Path:
    (tmp_path / "kb").mkdir()
    for number, text in enumerate(WHOLE[::8]):
        (tmp_path / "kb" / f"p{number}.md").write_text(f"# {text}\n\n{text} lasts {number} days.\n", encoding="utf-8")
    asked = [
        {
            "query_id": f"q{number}",
            "query": text,
            "ground_truth": text,
            "context_reference": ["p0.md"],
            "evidence": [{"filename": "p0.md", "quote": text}],
        }
        for number, text in enumerate(WHOLE[::2])
    ]
    (tmp_path / "kb" / "queries.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in asked))
    return tmp_path / "kb"


@pytest.mark.parametrize(
    "command",
    [
        ["queries", "check"],
        ["queries", "check", "--json"],
        ["kb", "validate"],
        ["kb", "validate", "--json"],
        ["kb", "graph"],
        ["kb", "queries", "--force", "-n", "20"],
    ],
    ids=" ".join,
)
def test_what_is_said_of_documents_and_questions(command: list[str], kb: Path, capsys: Said) -> None:
    main([*command[:2], str(kb), *command[2:]])
    said = "".join(capsys.readouterr())
    assert said
    assert on_terminal(said) == []
    if "--json" in command:
        json.loads(said)


def test_an_error_on_its_way_out(monkeypatch: pytest.MonkeyPatch, capsys: Said) -> None:
    def broken(_: object) -> int:
        raise DataError("\n".join(f"cannot read {text}\n{text}" for text in CORPUS))

    monkeypatch.setattr("rag_harness.frontends.cli.results.run_validate", broken)
    assert main(["results", "validate"]) == 2
    assert on_terminal(capsys.readouterr().err) == []


def test_what_a_service_answers_to_a_try(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said) -> None:
    monkeypatch.chdir(tmp_path)
    asked = 'body = { query = "{{query}}" }\n[read]\nanswer = "reply"\ncontexts = "contexts"\n'
    for text in WHOLE[::60]:
        said = as_json({"reply": text, "contexts": [{"text": text, "id": text}]})
        with serving(said, Reply(500, text.encode())) as server:
            (tmp_path / "a.toml").write_text(f'url = "{server.url}"\n{asked}')
            assert [main(["endpoint", "try", "a.toml", text]) for _ in server.replies] == [0, 2]
    assert on_terminal("".join(capsys.readouterr())) == []


def test_work_that_is_named_by_a_file(capsys: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    for text in CORPUS:
        with ingest._progress():
            progress.report(text, 1, 2, text)
    drawn = "".join(capsys.readouterr()).replace("\r\x1b[K", "")
    assert drawn
    assert on_terminal(drawn) == []


def test_lines_of_work_in_a_run(tmp_path: Path) -> None:
    file = tmp_path / "said"
    with file.open("w") as stream:
        lines = WorkLines(SimpleNamespace(_file=stream, width_of_current_line=0), lambda: "")
        with lines:
            for text in CORPUS:
                lines._write(text)
    said = file.read_text()
    assert said.count("rag: ") >= len(CORPUS)
    assert on_terminal(said) == []


def test_the_log_of_a_run(tmp_path: Path) -> None:
    open_log(tmp_path, "mine")
    for text in CORPUS:
        try:
            raise ValueError(text)
        except ValueError as error:
            log.error("%s: failed", text, exc_info=error)
    close_log()
    said = (tmp_path / "mine.log").read_text(encoding="utf-8")
    assert on_terminal(said) == []
    assert sum(not line.startswith("    ") for line in said.splitlines()) == len(CORPUS)


@pytest.mark.parametrize("shape", ["text", "json"])
def test_the_log_of_a_service(shape: str) -> None:
    stream = io.StringIO()
    with logging_to(stream, "info", shape):  # type: ignore[arg-type]
        for text in CORPUS:
            try:
                raise ValueError(text)
            except ValueError as error:
                logging.getLogger("own").error("said %s", text, exc_info=error, extra={"about": text})
    lines = stream.getvalue().splitlines()
    assert on_terminal(stream.getvalue()) == [] if shape == "text" else [json.loads(line) for line in lines]
    assert sum(not line.startswith("    ") for line in lines) == len(CORPUS)
