"""The command line: what it prints, and its exit status."""

from __future__ import annotations

import argparse
import json
from importlib import import_module
from pathlib import Path

import pytest

from rag_harness.__main__ import ALONE, COMMANDS, Command, main
from tests.unit.data.kb_builder import Kb, query


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
