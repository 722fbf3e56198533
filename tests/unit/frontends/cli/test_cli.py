"""The command line: parser, help, exit status, and folders that commands find."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from rag_harness.__main__ import ALONE, CANNOT_RUN, COMMANDS, Command, main, parser_of
from rag_harness.core.settings import help_sentence, options
from rag_harness.frontends.cli.options import documents_of
from rag_harness.frontends.pytest_plugin.options import GROUPS
from tests.unit.authoring.questions.review.drafts import row, write
from tests.unit.authoring.questions.shop import folder
from tests.unit.data.kb_builder import Kb, query

# The command line: what it prints, and its exit status.


@pytest.fixture
def kb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kb:
    monkeypatch.setenv("RAG_MERMAID_MODULES", "/nowhere")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    kb = Kb(tmp_path / "data" / "kb")
    kb.write()
    return kb


def test_a_sound_knowledge_base_ends_with_0(kb: Kb, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "validate"]) == 0
    assert capsys.readouterr().out.rstrip().split("\n")[-1].startswith("data/kb: valid (0 failed, ")


def test_a_finding_ends_with_1_and_questions_are_found_where_they_lie(
    kb: Kb, capsys: pytest.CaptureFixture[str]
) -> None:
    (kb.folder / "queries.jsonl").write_text(json.dumps(query(context_reference=["gone.md"])))
    golden = kb.folder.parents[1] / "test_retrieval_golden" / "golden.json"
    golden.parent.mkdir()
    golden.write_text('[{"query": "q", "expected_document_id": "gone.md", "justification": "j"}]')
    assert main(["kb", "validate", str(kb.folder), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    failed = [check["name"] for check in told["checks"] if check["state"] == "failed"]
    assert failed == ["references", "golden"]


def test_what_cannot_run_ends_with_2_and_no_traceback(kb: Kb, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "validate", "nowhere"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "No folder nowhere: name the one that holds your Markdown pages, or set KB_DIR.\n"
    assert main(["kb", "validate", "--queries", "gone.jsonl"]) == 2
    assert capsys.readouterr().err == "No file gone.jsonl. Name one that exists with --queries FILE.\n"


def test_the_folder_is_that_of_the_environment(kb: Kb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KB_DIR", "nowhere")
    assert main(["kb", "graph"]) == 2
    assert main(["kb", "graph", str(kb.folder)]) == 0


def test_the_graph_is_printed_alone(kb: Kb, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "graph"]) == 0
    assert capsys.readouterr().out.startswith("flowchart LR\n")


def test_an_unknown_command_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["kb", "nonsense"])
    assert "invalid choice: 'nonsense'" in capsys.readouterr().err


def test_a_place_that_cannot_be_used_is_named(
    kb: Kb, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "reviewed.jsonl")

    monkeypatch.setattr("rag_harness.authoring.kb.validation.graph", refused)
    assert main(["kb", "graph", str(kb.folder)]) == 2
    assert capsys.readouterr().err == (
        "reviewed.jsonl: Permission denied. Name another place, or make this one usable.\n"
    )


def test_a_fault_of_ours_keeps_its_traceback(kb: Kb, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise OSError("no file is in it")

    monkeypatch.setattr("rag_harness.authoring.kb.validation.graph", broken)
    with pytest.raises(OSError, match="no file is in it"):
        main(["kb", "graph", str(kb.folder)])


@pytest.mark.parametrize(
    "where", ["rag_harness.authoring.kb.validation.graph", "rag_harness.frontends.cli.kb.graph_arguments"]
)
def test_ctrl_c_ends_with_130_and_one_line(
    kb: Kb, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], where: str
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(where, stop)
    assert main(["kb", "graph", str(kb.folder)]) == 130
    assert capsys.readouterr() == ("", "stopped\n")


def table() -> dict[str, Command]:
    grouped = ((f"{group} {name}", each) for group, (_, those) in COMMANDS.items() for name, each in those.items())
    return {**ALONE, **dict(grouped)}


def test_each_command_has_its_functions_and_says_what_is_left_when_stopped() -> None:
    faults = [f"{name}: {why}" for name, command in table().items() if (why := _fault(command))]
    assert not faults, "\n".join(faults)


def _fault(command: Command) -> str:
    place, _, function = command.place.partition(":")
    parser, module = argparse.ArgumentParser(), import_module(f"rag_harness.frontends.cli.{place}")
    missing = [
        each for each in (f"{function}_arguments", f"run_{function}") if not callable(getattr(module, each, None))
    ]
    if missing:
        return f"{place} has no {', '.join(missing)}"
    getattr(module, f"{function}_arguments")(parser)
    try:
        said = command.stopped.format_map({action.dest: "THERE" for action in parser._actions})
    except KeyError as unknown:
        return f"what is left names {unknown}, which is none of its arguments"
    return "what is left ends with a full stop" if said.endswith(".") else ""


# A misspelt command, option or choice is told with what was meant, and with the usage of the command it is for.


@pytest.mark.parametrize(
    ("command", "usage", "said"),
    [
        (["raport"], "rag-harness [-h]", "Did you mean 'report'?"),
        (["queries", "reviwe", "x"], "rag-harness queries [-h]", "Did you mean 'review'?"),
        (["init", "--exmaple"], "rag-harness init [-h]", "arguments: --exmaple. Did you mean '--example'?"),
        (["report", "x", "--formt=md"], "rag-harness report [-h]", "--formt=md. Did you mean '--format'?"),
        (["kb", "graph", "x", "y", "--zzz"], "rag-harness kb graph [-h]", "unrecognized arguments: y --zzz."),
        (["report", "--format", "htlm"], "rag-harness report [-h]", "Did you mean 'html'?"),
    ],
)
def test_what_was_meant_is_said(command: list[str], usage: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(command)
    told = capsys.readouterr().err.strip()
    assert ended.value.code == CANNOT_RUN
    assert told.startswith(f"usage: {usage}")
    assert told.endswith(said)


# What ``--help`` says of each option, of the plugin and of each command: a sentence, with unit and default.

MOST_OPTIONS = 85
FIRST_STEPS = 10
BEGIN = re.compile(r"[A-Z0-9{-]|[\w.-]+[._-]\w+")
"""A sentence begins with a capital letter, a figure, a placeholder, or a name in which a dot or a line stands."""
UNITS = re.compile(
    r"(?i)\b(number|seconds?|tokens|characters|chunks|hits|times|answers|trials|queries|questions|calls|USD|MiB|share|"
    r"confidence|processes|GPUs|days|requests|cases|port|score|difference|seed|passages|part)\b"
)
WORDS = [[name] for name in ALONE] + [[group, name] for group, (_, commands) in COMMANDS.items() for name in commands]


def at(parser: argparse.ArgumentParser, words: list[str]) -> argparse.ArgumentParser:
    for word in words:
        (choices,) = (each.choices for each in parser._actions if isinstance(each, argparse._SubParsersAction))
        parser = choices[word]
    return parser


def helped() -> Iterator[tuple[str, str, object]]:
    """Yield the name of each option and argument, its help, and its default."""
    for each in options():
        yield f"--rag-{each.name}", help_sentence(each), each.default
    for words in WORDS:
        parser = at(parser_of(words), words)
        for action in (each for each in parser._actions if each.help != argparse.SUPPRESS):
            name = f"{' '.join(words)} {(action.option_strings or [action.dest])[-1]}"
            default = False if action.nargs == 0 else action.default
            yield name, parser._get_formatter()._expand_help(action) if action.help else "", default


def faults(text: str, default: object) -> Iterator[str]:
    if not BEGIN.match(text) or not text.endswith((".", "…")) or len(text.split()) < 3:
        yield "is no sentence"
    has_default = default is not False and default not in (None, (), [], "", argparse.SUPPRESS)
    if has_default and "default" not in text:
        yield f"has no default: {default!r}"
    if isinstance(default, (int, float)) and not isinstance(default, bool) and not UNITS.search(text):
        yield "has no unit"


def test_each_help_is_a_sentence_with_unit_and_default() -> None:
    found = [f"{name} {fault}: {text}" for name, text, default in helped() for fault in faults(text, default)]
    assert not found, "\n".join(found)


def test_each_option_is_in_one_group_and_there_are_few() -> None:
    named = [name for names in GROUPS.values() for name in names]
    assert sorted(named) == sorted(each.name for each in options())
    assert list(GROUPS) == ["first steps", "answers", "gates", "judging", "recording", "scale"]
    assert len(GROUPS["first steps"]) == FIRST_STEPS
    assert len(named) <= MOST_OPTIONS


@pytest.mark.parametrize(
    ("words", "named"), [([], "kb"), *(([group], next(iter(each[1]))) for group, each in COMMANDS.items())]
)
def test_a_group_without_a_command_prints_its_commands(
    words: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == CANNOT_RUN
    said = capsys.readouterr()
    assert said.out == ""
    assert re.search(rf"^    {named}\b", said.err, re.MULTILINE)


# ``rag-harness init`` and a folder of documents that is not there.


@pytest.fixture
def documents_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_docs").mkdir()
    (tmp_path / "my_docs" / "trailers.md").write_text("# Trailers\n\nTrailers are lent for 2 days.\n")
    return tmp_path


@pytest.mark.usefixtures("documents_here")
def test_a_folder_that_is_not_there_is_said_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--kb", "mydocs"]) == CANNOT_RUN
    assert capsys.readouterr().err.startswith("No folder mydocs. Did you mean 'my_docs'? Name the folder of your ")


def test_a_file_is_no_folder(documents_here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (documents_here / "notes.md").write_text("# Notes\n")
    assert main(["init", "--kb", "notes.md"]) == CANNOT_RUN
    assert capsys.readouterr().err.startswith("notes.md is a file, and no folder of documents. Name the folder of your")


def test_the_folder_of_the_tutorial_is_found_by_its_name(
    documents_here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init"]) == 0
    assert "found  1 document in my_docs" in capsys.readouterr().out
    assert "rag_kb_dir = my_docs" in (documents_here / "pytest.ini").read_text()


# Commands about documents take their folder, and the file of questions, from the settings of the suite in a folder.

REVIEW = ["queries", "review", "asked.jsonl", "--by", "Ada", "--page"]


@pytest.fixture
def suite_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a suite whose questions are not beside its documents, as ``init`` writes it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KB_DIR", raising=False)
    documents = folder(tmp_path)
    write(tmp_path / "asked.jsonl", row(1))
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nrag_kb_dir = {documents.name}\nrag_queries = asked.jsonl\n")
    return documents


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["queries", "check"], "1 questions with 1 quotes"),
        (["kb", "validate"], "my_docs: valid"),
        (["kb", "graph"], "flowchart"),
        (["kb", "queries", "--direct", "1"], "wrote asked.jsonl"),
    ],
)
def test_a_command_without_a_folder_takes_that_of_the_suite(
    command: list[str], said: str, suite_here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command) == 0
    assert said.replace("my_docs", suite_here.name) in capsys.readouterr().out


@pytest.mark.usefixtures("suite_here")
def test_a_page_beside_the_documents_is_written(tmp_path: Path) -> None:
    assert main([*REVIEW, "review.html"]) == 0
    assert (tmp_path / "review.html").is_file()


def test_a_page_among_the_documents_is_refused(suite_here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*REVIEW, f"{suite_here.name}/review.html"]) == CANNOT_RUN
    assert f"Name a place outside of {suite_here.name}" in capsys.readouterr().err


@pytest.mark.usefixtures("suite_here")
def test_the_variable_counts_more_than_the_ini_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KB_DIR", "elsewhere")
    assert documents_of(tmp_path / "asked.jsonl", ["delivery.md"]) == Path("elsewhere")


def test_questions_beside_documents_of_their_own_are_about_those(tmp_path: Path, suite_here: Path) -> None:
    others = tmp_path / "others"
    others.mkdir()
    (others / "of_theirs.md").write_text("# Theirs\n\nA page of theirs.")
    assert documents_of(others / "queries.jsonl", ["of_theirs.md#theirs"]) == others
    assert documents_of(others / "queries.jsonl", ["delivery.md"]) == Path(suite_here.name)
    assert documents_of(others / "queries.jsonl", []) == others
