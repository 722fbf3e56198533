"""`rag-harness judge score`: exit status, and what the terminal says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rag_harness.__main__ import main
from rag_harness.core.errors import PrerequisiteError
from rag_harness.core.settings import Settings
from rag_harness.evaluation.judges.answers import AnswerLine
from rag_harness.models.endpoints import Endpoints
from rag_harness.pipelines.parts import RunParts
from tests.unit.evaluation.judges.answers import line, written

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "judged-scores.md"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAG_PROFILE", "mock")
    return tmp_path


def test_scores_and_a_summary(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(
        folder,
        line("a", answer="It is so."),
        line("b", answer="Never seen anywhere."),
        line("c", answer="I don't know."),
    )
    assert (
        main(["judge", "score", "answers.jsonl", "-o", "scores.jsonl", "--measures", "faithfulness, answer_relevancy"])
        == 0
    )
    assert capsys.readouterr().out.split("\n") == [
        "faithfulness: 0.500 (n = 2)",
        "  1 undefined: an abstention, which claims nothing",
        "answer_relevancy: 0.000 (n = 3)",
        "judged by mock/word-overlap (words and vectors compared, no LLM)",
        "scores: scores.jsonl",
        "",
    ]
    assert [json.loads(one)["id"] for one in (folder / "scores.jsonl").read_text().splitlines()] == ["a", "b", "c"]


def test_where_nothing_could_be_measured_it_ends_with_1(folder: Path) -> None:
    written(folder, line(contexts=[]))
    assert main(["judge", "score", "answers.jsonl", "-o", "scores.jsonl", "--measures", "faithfulness"]) == 1
    assert json.loads((folder / "scores.jsonl").read_text())["scores"] == {"faithfulness": None}


def test_the_example_on_the_page(folder: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    (example,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    (command,) = re.findall(r"^    rag-harness (.*)", page, re.MULTILINE)
    (folder / "answers.jsonl").write_text(example)
    assert main(command.split()) == 0
    said = json.loads((folder / "scores.jsonl").read_text())
    fields = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", page, re.MULTILINE))))
    assert list(said["scores"]) == command.split()[-1].split(",")
    assert set(AnswerLine.model_fields) <= fields
    assert all(f"`{name}`" in page for name in said)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--measures", "recall@5"], "no judged measure"),
        (["--judge", "embeded"], "Unknown judge 'embeded'"),
        (["--mode", "nonsense"], "mode is 'nonsense'"),
    ],
)
def test_what_cannot_run_ends_with_2_and_writes_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    written(folder, line())
    assert main(["judge", "score", "answers.jsonl", "-o", "scores.jsonl", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not (folder / "scores.jsonl").exists()


def test_a_judge_that_cannot_be_asked_is_named_before_anything_is_read(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(settings: Settings) -> None:
        raise PrerequisiteError(f"no key for {settings.judge_model} at {settings.judge_base_url}")

    monkeypatch.setattr("rag_harness.evaluation.judges.traits.check_judge", refuse)
    named = ["--judge-model", "gpt-5", "--judge-base-url", "https://judge.example"]
    assert main(["judge", "score", "gone.jsonl", "-o", "scores.jsonl", *named]) == 2
    assert capsys.readouterr().err == "no key for gpt-5 at https://judge.example\n"


@pytest.mark.parametrize("contexts", [["It is so."], None])
def test_what_was_opened_is_closed_and_what_waits_is_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, contexts: list[str] | None
) -> None:
    ended: list[str] = []

    async def close(_: Endpoints) -> None:
        ended.append("closed")

    monkeypatch.setattr(Endpoints, "aclose", close)
    monkeypatch.setattr(RunParts, "flush", lambda _: ended.append("written"))
    written(folder, line(contexts=contexts))
    assert main(["judge", "score", "answers.jsonl", "-o", "scores.jsonl"]) == (0 if contexts else 2)
    assert ended == ["closed", "written"]


def test_malformed_answers_leave_older_scores_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "scores.jsonl").write_text("older")
    written(folder, {"id": 1})
    assert main(["judge", "score", "answers.jsonl", "-o", "scores.jsonl"]) == 2
    assert capsys.readouterr().err.startswith("answers.jsonl:1: question: Field required\n")
    assert (folder / "scores.jsonl").read_text() == "older"


def test_an_answer_in_a_conversation_is_judged_in_it(folder: Path) -> None:
    history = [{"role": "user", "content": "Do you sell lamps?"}, {"role": "assistant", "content": "Yes."}]
    told: Any = {"history": history, "turn_kind": "underspecified", "earlier_contexts": [["Lamps cost five euros."]]}
    written(folder, line(answer="Lamps cost five euros. Moons consist of cheese.", contexts=["Nothing."], **told))
    names = "retention,asks_back,carried_faithfulness"
    assert main(["judge", "score", "answers.jsonl", "-o", "scores.jsonl", "--measures", names]) == 0
    said = json.loads((folder / "scores.jsonl").read_text())
    assert said["scores"] == {"retention": 1.0, "asks_back": None, "carried_faithfulness": 0.5}
    assert "words do not tell" in said["reasons"]["asks_back"]


def test_an_answer_that_stands_alone_has_none_of_the_measures_of_turns(folder: Path) -> None:
    written(folder, line())
    assert main(["judge", "score", "answers.jsonl", "-o", "scores.jsonl", "--measures", "carried_faithfulness"]) == 1
    assert json.loads((folder / "scores.jsonl").read_text())["undefined"] == ["carried_faithfulness"]


def test_a_history_that_cannot_be_read_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(folder, line(history=[{"role": "system", "content": "x"}]))
    assert main(["judge", "score", "answers.jsonl", "-o", "scores.jsonl"]) == 2
    assert "answers.jsonl:1: history.0.role" in capsys.readouterr().err
