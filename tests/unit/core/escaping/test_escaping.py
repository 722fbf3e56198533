"""Foreign text acts in no medium: each escaping by itself, every writer, and no way around them."""

from __future__ import annotations

import ast
import csv
import io
import json
import logging
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib.resources import files
from io import BytesIO, TextIOWrapper
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from markdown_it import MarkdownIt

import rag_harness
from rag_harness.__main__ import main
from rag_harness.core import escaping, log, progress
from rag_harness.core.errors import DataError
from rag_harness.core.escaping import escaped, page_policy, page_script, page_style, say
from rag_harness.core.log import close_log, open_log
from rag_harness.core.log import log as log_log
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
from tests.effort import spent
from tests.hostile import CORPUS, ORDINARY, WHOLE
from tests.unit.core.escaping.active import in_csv, in_markdown, on_terminal, read_html, unseen
from tests.unit.rows import make_chunk, make_row
from tests.unit.server import Reply, as_json, serving
from tests.unit.suite_tables import write_run

# Each medium by itself: nothing of the corpus acts in it, and ordinary texts look the same.

# Each medium by itself: nothing of the corpus acts in it, and ordinary texts look the same.


def none(faults: Iterable[str]) -> None:
    """Fail with each fault, where there is one."""
    found = [*faults]
    assert not found, "\n".join(found)


def test_a_terminal_and_a_ci_job_obey_nothing() -> None:
    none(fault for text in CORPUS for fault in on_terminal(escaping.terminal_line(text), kept="\t"))
    none(fault for text in CORPUS for fault in on_terminal(escaping.terminal_block(text)))
    none(
        repr(text)
        for text in CORPUS
        if escaping.terminal_line(escaping.terminal_line(text)) != escaping.terminal_line(text)
    )


def test_json_on_a_terminal_obeys_nothing_and_means_the_same() -> None:
    for form in ({"ensure_ascii": False, "indent": 1}, dict[str, Any]()):
        safe = {text: escaping.json_block(json.dumps([text], **form)) for text in CORPUS}
        none(fault for shown in safe.values() for fault in on_terminal(shown))
        none(f"{text!r}: {shown!r}" for text, shown in safe.items() if json.loads(shown) != [text])


def test_a_pull_request_links_fetches_runs_and_notifies_nothing() -> None:
    none(fault for text in CORPUS for page in pages_with(text) for fault in in_markdown(page))
    paragraph, table = MarkdownIt(), MarkdownIt().enable("table")
    for text in CORPUS:
        plain, fenced = escaping.markdown_text(text), "\n".join(escaping.markdown_code_block([text, text]))
        assert paragraph.render(plain).count("<") == 2, f"more than a paragraph: {text!r}"
        assert table.render(f"| a |\n| - |\n| {plain} |").count("<td") == 1, f"more than a cell: {text!r}"
        assert paragraph.render(fenced).count("<pre>") == 1, f"more than a block of code: {text!r}"


def pages_with(text: str) -> Iterator[str]:
    plain, code, fenced = (
        escaping.markdown_text(text),
        escaping.markdown_code(text),
        "\n".join(escaping.markdown_code_block([text, text])),
    )
    yield plain
    yield f"# {plain}"
    yield f"- {plain}  \n  **{plain}**. {plain}"
    yield f"| {plain} | b |\n| --- | --- |\n| {plain} | b |\n\n<sub>{plain}</sub>"
    yield f"- {code} after"
    yield f"{fenced}\n\nafter"


def test_a_spreadsheet_runs_nothing() -> None:
    for text in CORPUS:
        file = io.StringIO(newline="")
        csv.writer(file, lineterminator="\r\n").writerows([["a", escaping.csv_cell(text), "b"]] * 2)
        none(in_csv(file.getvalue()))
        rows = [*csv.reader(io.StringIO(file.getvalue(), newline=""))]
        assert [len(row) for row in rows] == [3, 3], f"{text!r}: {rows}"


def test_a_log_has_as_many_lines_as_records() -> None:
    for text in CORPUS:
        stream = io.StringIO()
        handler = logging.StreamHandler(stream)
        handler.setFormatter(log.OneLine("%(levelname)s %(message)s"))
        logger = logging.Logger("own")
        logger.addHandler(handler)
        logger.error("said %s", text)
        try:
            raise ValueError(text)
        except ValueError:
            logger.error(text, exc_info=sys.exc_info())
        said = stream.getvalue()
        none(on_terminal(said))
        begins = [line.startswith("ERROR ") for line in said.splitlines() if not line.startswith("    ")]
        assert begins == [True, True], said


def test_text_of_a_page_turns_nothing() -> None:
    none(fault for text in CORPUS for fault in unseen(escaping.html_text(text), "\t\n\r"))


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_texts_look_the_same_everywhere(text: str) -> None:
    assert (
        escaping.terminal_line(text)
        == escaping.terminal_block(text)
        == escaping.html_text(text)
        == escaping.csv_cell(text)
        == text
    )
    rendered = MarkdownIt().render(escaping.markdown_text(text))
    assert read_html(rendered).texts[0].replace("\u2060", "") == text
    assert escaping.markdown_code(text) == f"`{text}`"


def test_line_breaks_are_kept_where_they_are_ours() -> None:
    assert escaping.terminal_line("a\nb") == r"a\nb"
    assert escaping.terminal_block("a\r\nb\n::error::c") == "a\nb\n\\::error::c"


def test_a_formula_that_has_an_apostrophe_gets_another() -> None:
    assert [escaping.csv_cell(text) for text in ("=1", "'=1", "'tis", "- a\n- b", "x;=1")] == [
        "'=1", "''=1", "''tis", "'- a\n- b", "x;'=1"
    ]  # fmt: skip


def test_what_is_said_goes_where_it_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    escaping.say("a\x1b", "b\nc")
    escaping.say(to=sys.stderr)
    escaping.say_block("d\ne\x07", to=sys.stderr)
    escaping.say_json('{"a": "\x9b"}')
    escaping.redraw("f\x1b", sys.stderr)
    assert capsys.readouterr() == ('a\\x1b\nb\\nc\n{"a": "\\u009b"}\n', "d\ne\\x07\n\r\x1b[Kf\\x1b")


UNITS = (*"\n\t \r;#:@-=`|\\'\x1b\u200d\U0001f3f4", "a:", "##a", "-a;", "\n ", ";\t", "deadbeef", "GHSA-")


def test_a_long_text_takes_no_longer_a_letter_than_a_short_one() -> None:
    """The longest answer has 200 kilobytes. A pattern that looks at each letter twice takes 4 s for 40."""
    shows: tuple[Callable[[str], object], ...] = (
        escaping.terminal_line,
        escaping.terminal_block,
        escaping.json_block,
        escaping.markdown_text,
        escaping.markdown_code,
        lambda text: [*escaping.markdown_code_block([text])],
        escaping.csv_cell,
        escaping.html_text,
    )
    took = {unit: sum(spent(partial(show, unit * (40_000 // len(unit)))) for show in shows) for unit in UNITS}
    none(f"{unit!r}: {each:.1f} s" for unit, each in took.items() if each >= 2)


# Characters that nobody sees are written out, and no others are touched.

_SEEN = {0x600, 0x601, 0x602, 0x603, 0x604, 0x605, 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
_EGYPTIAN = range(0x13430, 0x13440)
"""Numbers and ends of verses of Arabic, and joints of hieroglyphs: of category Cf, and seen."""


def test_the_corpus_is_large() -> None:
    assert len(CORPUS) >= 400


def test_every_character_that_steers_is_written_out() -> None:
    left = [
        hex(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        and code not in _SEEN
        and code not in _EGYPTIAN
        and chr(code) in escaped(f"a{chr(code)}b")
    ]
    assert left == []


def test_letters_signs_and_marks_are_left_alone() -> None:
    touched = [
        hex(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code))[0] in "LMNPS"
        and code not in (0x115F, 0x1160, 0x3164, 0xFFA0)
        and code not in range(0xE0100, 0xE01F0)
        and escaped(chr(code)) != chr(code)
    ]
    assert touched == []


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_texts_look_the_same(text: str) -> None:
    assert escaped(text) == text


def test_escapes_are_those_of_python() -> None:
    assert escaped("a\x1b[2J\x9b\u202e\U000e0041\n\ud800") == r"a\x1b[2J\x9b\u202e\U000e0041\n\ud800"
    assert escaped("a\nb\tc", kept="\n\t") == "a\nb\tc"


def test_a_joiner_is_kept_between_what_it_joins_alone() -> None:
    assert escaped("👩\u200d👧") == "👩\u200d👧"
    assert escaped("pay\u200dpal") == r"pay\u200dpal"
    assert escaped("👩\u200d\u200d👧") == r"👩\u200d\u200d👧"
    assert escaped("a\U000e0067\U000e007f") == r"a\U000e0067\U000e007f"


def test_what_was_written_out_stays_as_it_is() -> None:
    again = [text for text in CORPUS if escaped(escaped(text)) != escaped(text)]
    assert again == []
    assert [fault for text in CORPUS for fault in unseen(escaped(text))] == []


# What all pages begin with: one file of styles and one of script functions.

_STYLES = {
    "rag_harness.page": ("assets/page.css", "assets/trials.css"),
    "rag_harness.authoring.questions.review": ("assets/review.css",),
    "rag_harness.service": ("page/page.css",),
}
_SCRIPTS = {
    "rag_harness.page": "assets/page.js",
    "rag_harness.authoring.questions.review": "assets/review.js",
    "rag_harness.service": "page/page.js",
}
packages = pytest.mark.parametrize("package", _STYLES)


def text_of(package: str, *names: str) -> str:
    return "".join(files(package).joinpath(name).read_text(encoding="utf-8") for name in names)


@packages
def test_a_page_has_the_colours_of_all_pages_and_none_of_its_own(package: str) -> None:
    assert len(re.findall(r":root \{.*?--bg: ", page_style(""), re.S)) == 2
    assert not re.search(
        r"--(?:bg|fg|panel|muted|accent|text|mono): ", text_of(package, *_STYLES[package]).split("@media print")[0]
    )


@packages
def test_a_page_makes_its_elements_by_the_function_of_all_pages(package: str) -> None:
    script = text_of(package, _SCRIPTS[package])
    assert "createElement(" not in script
    assert re.search(r"^const el = elements\(.+\);$", script, re.M)


def test_the_script_of_a_page_is_strict_from_its_first_line() -> None:
    assert page_script("go();").startswith('"use strict";\n')
    assert page_script("go();").endswith("\ngo();")


def test_what_all_pages_share_overrides_what_stands_before_it() -> None:
    assert page_style("b {}", before="a {}").startswith("a {}")
    assert page_style("b {}", before="a {}").endswith("b {}")


def test_a_policy_lets_in_what_has_these_digests() -> None:
    said = page_policy("", "x")
    assert "style-src 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='" in said
    assert "script-src 'sha256-LXEWQrcmsEQBYnyp+6wy9chTD7GQPMTbAiWHF5IaSIE='" in said


# A terminal or a pipe whose charset lacks a letter gets an escape, and no error.


@pytest.mark.parametrize(
    ("charset", "shown"),
    [("utf-8", "★ ≥ 0.8, für"), ("cp1252", r"\u2605 \u2265 0.8, für"), ("ascii", r"\u2605 \u2265 0.8, f\xfcr")],
)
def test_a_letter_that_the_charset_lacks_is_an_escape(charset: str, shown: str) -> None:
    with TextIOWrapper(BytesIO(), encoding=charset) as pipe:
        say("★ ≥ 0.8, für", to=pipe)
        pipe.seek(0)
        assert pipe.read() == f"{shown}\n"


# Every writer of foreign text is run with the whole corpus, and no text of it is active in the output.

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
            log_log.error("%s: failed", text, exc_info=error)
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


# No module shows a text in a way of its own: a new writer that would goes red here, or in ruff (T20: no print).

_PACKAGE = Path(rag_harness.__file__).parent
_TERMINALS = {"terminal", "terminalreporter", "reporter", "tw"}
_WRITES = {"line", "write", "write_line", "write_sep", "section", "sep", "rewrite"}
_LOOKED_AT = {*_WRITES, *"print input writelines writer UsageError fail exit Exception".split()}  # noqa: SIM905
_CALLED = re.compile(rf"\b(?:{'|'.join(sorted(_LOOKED_AT))})\s*\(|\bshould(?:stop|fail)\b")
"""What a file without has no way in it: to parse all files takes seconds."""
_MEANT = {
    "core/escaping.py": "prints",
    "frontends/pytest_plugin/terminal.py": "hands pytest what it prints",
    "frontends/pytest_plugin/injected_tests.py": "is a test: its report is made inert",
    "frontends/pytest_plugin/progress.py": "draws with rich, the words made inert",
}
"""Modules that may, with what they do."""


def test_no_module_goes_another_way() -> None:
    files = {file.relative_to(_PACKAGE).as_posix(): file for file in sorted(_PACKAGE.rglob("*.py"))}
    found = {name: [*_ways(file.read_text(encoding="utf-8"))] for name, file in files.items()}
    around = [f"{name}:{way}" for name, ways in found.items() if name not in _MEANT for way in ways]
    assert around == [], "use core.escaping, or pytest_plugin.terminal for what pytest prints"
    assert set(_MEANT) <= set(files)
    assert len(files) > 300


@pytest.mark.parametrize(
    "source",
    [
        "print(x)",
        "import sys\nsys.stdout.write(x)",
        "import sys\nsys.stderr.write(x)",
        "import sys\nstream = sys.stdout\nsys.stdout.writelines(x)",
        "input(x)",
        "terminalreporter.write_line(x)",
        "terminal.section(x, sep='=')",
        "self._terminal.line(x)",
        "session.shouldstop = f'{x}'",
        "raise pytest.UsageError(str(x))",
        "raise pytest.fail.Exception(x)",
        "pytest.fail(x)",
        "pytest.exit(x)",
        "Console().print(x)",
        "import csv\ncsv.writer(file).writerow(x)",
    ],
)
def test_each_way_around_is_seen(source: str) -> None:
    assert [*_ways(source)]


@pytest.mark.parametrize(
    "source",
    [
        "say(x)",
        "raise pytest.UsageError('Give one.')",
        "verdict.line()",
        "row.line()",
        "file.write(x)",
        "sys.stdout.flush()",
    ],
)
def test_what_prints_nothing_of_others_is_not(source: str) -> None:
    assert [*_ways(source)] == []


def _ways(source: str) -> Iterator[str]:
    if not _CALLED.search(source):
        return
    tree = ast.parse(source)
    escapes = "csv_cell" in source
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (way := _called(node, escapes)):
            yield f"{node.lineno} {way}"
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Attribute) and target.attr in ("shouldstop", "shouldfail"):
                    yield f"{node.lineno} {target.attr} ="


def _called(node: ast.Call, escapes: bool) -> str:
    if getattr(node.func, "attr", getattr(node.func, "id", "")) not in _LOOKED_AT:
        return ""
    name = ast.unparse(node.func)
    first, _, last = name.rpartition(".")
    receiver = first.rpartition(".")[2].strip("_")
    constant = all(isinstance(each, ast.Constant) for each in node.args)
    if name in ("print", "input") or (first in ("sys.stdout", "sys.stderr") and last.startswith("write")):
        return name
    if last in _WRITES and receiver in {each.strip("_") for each in _TERMINALS} and first != "file" and node.args:
        return name
    if name in ("pytest.UsageError", "pytest.fail", "pytest.exit", "pytest.fail.Exception") and not constant:
        return name
    if last == "print" and "onsole" in first:
        return name
    return name if name == "csv.writer" and not escapes else ""
