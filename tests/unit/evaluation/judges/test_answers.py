"""Answers -> scores: by ``rag-harness judge score``, in their order, each verdict asked for once."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag_harness.__main__ import main
from rag_harness.core.errors import DataError, ModelCallError, PrerequisiteError, SettingsError
from rag_harness.core.settings import Settings
from rag_harness.evaluation.judges.answers import (
    AnswerLine,
    AskedMeasures,
    GivenAnswer,
    JudgedAnswer,
    MeasureTally,
    check_answers,
    judge_answers,
    read_answers,
    score_file,
)
from rag_harness.evaluation.judges.fused import FusedJudge, create
from rag_harness.evaluation.measures import Score
from rag_harness.evaluation.measures.opinion import Material, Usefulness
from rag_harness.models.array_store import ArrayStore
from rag_harness.models.endpoints import Endpoints
from rag_harness.pipelines.parts import RunParts
from tests.unit import virtual_time
from tests.unit.evaluation.judges.answers import Obeying, line, written
from tests.unit.evaluation.judges.rows import OPENING, REFUNDS, RETURNS, ROW
from tests.unit.evaluation.judges.scripted import Chat, Parts, as_parts

# Answers -> scores: in their order, bounded in flight; whatever a judge does is a line with a reason.

# Answers -> scores: in their order, bounded in flight; whatever a judge does is a line with a reason.


def given(*answers: str) -> Iterator[GivenAnswer]:
    return (GivenAnswer(place, Material("?", answer, ("c",))) for place, answer in enumerate(answers))


def judged(
    answers: Iterator[GivenAnswer], judge: Obeying, in_flight: int = 4, seconds: float = 9
) -> list[JudgedAnswer]:
    async def collected() -> list[JudgedAnswer]:
        found = judge_answers(answers, AskedMeasures(["faithfulness"]), judge, in_flight, seconds)
        return [answer async for answer in found]

    return asyncio.run(collected())


def reasons(*answers: str, **limits: Any) -> list[str]:
    return [answer.scores["faithfulness"].reason for answer in judged(given(*answers), Obeying(), **limits)]


def test_the_order_is_that_of_the_answers() -> None:
    answers = ("slow", "supported", "made up") * 4
    found = judged(given(*answers), Obeying(), in_flight=2)
    assert [answer.given.id for answer in found] == list(range(12))
    assert [answer.scores["faithfulness"].value for answer in found] == [1, 1, 0] * 4


def test_no_more_are_judged_at_once_than_may_be_and_no_more_are_read_than_can_wait() -> None:
    read: list[int] = []

    def reading() -> Iterator[GivenAnswer]:
        for answer in given(*["slow"] * 20):
            read.append(len(read))
            yield answer

    async def first() -> int:
        found = judge_answers(reading(), AskedMeasures(["faithfulness"]), judge, 3, 9)
        await anext(found)
        await found.aclose()
        return judge.most

    judge = Obeying()
    assert asyncio.run(first()) == 3
    assert len(read) == 13


def test_what_a_judge_fails_at_is_a_reason() -> None:
    assert reasons("unreadable", "supported", "no opinion") == [
        "half a JSON",
        "",
        "OSError: the disk is gone",
    ]


def test_a_judge_that_never_ends_is_left() -> None:
    assert reasons("never", "supported", seconds=0.05) == ["deadline: not judged within 0.05 s", ""]


def test_where_no_judgement_can_succeed_no_more_are_asked_for() -> None:
    judge = Obeying()
    found = judged(given("supported", "rejected", "supported", "supported"), judge, in_flight=1)
    assert [answer.scores["faithfulness"].reason for answer in found] == ["", *["the key was rejected"] * 3]
    assert judge.asked == ["supported", "rejected"]


def test_what_is_asked_for_is_judged() -> None:
    assert [part.name for part in AskedMeasures(["hri", "faithfulness"]).parts] == ["faithfulness", "answer_relevancy"]
    for names, message in (
        (["recall@5"], "'recall@5' is not a judged measure. Judged are: answer_correctness, "),
        (["gmean"], "Did you mean 'g_mean'"),
        ([], "No measure is named. Judged are: answer_correctness, "),
    ):
        with pytest.raises(SettingsError) as refused:
            AskedMeasures(names)
        assert message in str(refused.value)


def score(folder: Path, names: list[str], *lines: dict[str, Any]) -> tuple[list[dict[str, Any]], MeasureTally]:
    scores = folder / "deep" / "scores.jsonl"
    work = score_file(
        written(folder, *lines), scores, AskedMeasures(names), Obeying(), Settings(), lambda answer: answer == "no"
    )
    tally = asyncio.run(work)
    return [json.loads(one) for one in scores.read_text(encoding="utf-8").splitlines()], tally


def test_a_line_of_scores(tmp_path: Path) -> None:
    names = ["faithfulness", "context_precision", "hri"]
    (first, second), _ = score(tmp_path, names, line(1, ground_truth="So."), line("b", contexts=[], answer="made up"))
    assert first == {
        "id": 1,
        "judge": "obeying",
        "model": "mock/obeying",
        "revision": "1",
        "scores": {"faithfulness": 1.0, "context_precision": 1.0, "hri": 0.0},
        "reasons": {},
        "undefined": [],
        "hallucinated": False,
        "details": {
            "faithfulness": {
                "hallucinated": False,
                "claims": [{"text": "supported", "value": 1.0, "start": 0, "end": 1}],
            },
            "context_precision": {"chunks": [{"value": 1.0}]},
        },
    }
    assert (second["id"], second["undefined"]) == ("b", ["context_precision"])
    assert second["scores"] == {"faithfulness": 0.0, "context_precision": None, "hri": 0.5}
    assert second["reasons"]["context_precision"] == "no ground truth"


def test_answers_none_of_which_has_a_context_have_no_faithfulness(tmp_path: Path) -> None:
    names = ["faithfulness", "hri"]
    (first, second), _ = score(tmp_path, names, line(1, contexts=[]), line("b", contexts=[" "], answer="made up"))
    assert first["scores"] == {"faithfulness": None, "hri": None}
    assert second["reasons"]["faithfulness"] == "no context: not defined without one"


def test_what_is_told_of_all(tmp_path: Path) -> None:
    answers = ["supported", "made up", "unreadable", "no opinion", "no"]
    lines, tally = score(tmp_path, ["faithfulness"], *(line(answer, answer=answer) for answer in answers))
    assert [one["scores"]["faithfulness"] for one in lines] == [1, 0, None, None, None]
    assert tally.lines() == [
        "faithfulness: 0.500 (n = 2)",
        "  2 not measured: half a JSON (1); OSError: the disk is gone (1)",
        "  1 undefined: an abstention, which claims nothing",
    ]
    assert tally.measured


def test_of_many_reasons_the_most_frequent_are_told() -> None:
    tally = MeasureTally(["faithfulness"])
    for reason in ["a", "b", "b", "c", "d", "e"]:
        tally.add({"faithfulness": Score(None, reason)})
    assert tally.lines() == [
        "faithfulness: not measured (n = 0)",
        "  6 not measured: b (2); a (1); c (1); 2 other reasons",
    ]
    assert not tally.measured


def test_scores_cannot_take_the_place_of_their_answers(tmp_path: Path) -> None:
    file = written(tmp_path, line())
    for scores, message in ((file, "holds the answers"), (file / "below", "cannot be written")):
        with pytest.raises(PrerequisiteError, match=message):
            asyncio.run(score_file(file, scores, AskedMeasures(["faithfulness"]), Obeying(), Settings(), bool))
    assert file.read_text().startswith('{"id"')


# Answers of anybody's: what is read of a line, and that each problem is named at once.


def problems(file: Path) -> list[str]:
    with pytest.raises(DataError) as refused:
        check_answers(file)
    return str(refused.value).replace(f"{file}:", "").split("\n")


def says_no(answer: str) -> bool:
    return answer == "no"


def test_a_line_is_a_material(tmp_path: Path) -> None:
    full = line(7, ground_truth="So.", gold_pages=["Page."], quotes=["Quote."], answerable=False, abstained=True, tag=1)
    file = written(tmp_path, full, line("b", contexts=[], answer=""))
    assert check_answers(file) == 2
    first, second = read_answers(file, says_no)
    assert (first.id, second.id) == (7, "b")
    assert first.material == Material(
        "What?", "supported", ("It is so.",), "So.", ("Page.",), ("Quote.",), abstained=True, answerable=False
    )
    assert second.material == Material("What?", "")


def test_who_does_not_say_whether_it_abstains_is_asked(tmp_path: Path) -> None:
    file = written(tmp_path, line(1, answer="no"), line(2, answer="no", abstained=False), line(3, answer="yes"))
    assert [given.material.abstained for given in read_answers(file, says_no)] == [True, False, False]


def test_every_problem_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    lines = [
        '{"id": 1}',
        json.dumps(line(2, ground_truths="So.")),
        "",
        json.dumps(line(2, question=" ", contexts="one", answer=3)),
        "prose",
        json.dumps(line("2")),
        "[1]",
        json.dumps(line(True)),
        json.dumps(line(" ", answerable="no")),
    ]
    file.write_bytes("\n".join(lines).encode() + b'\n{"id": "\xff"}')
    found = problems(file)
    assert found[:8] == [
        "1: question: Field required",
        "1: contexts: Field required",
        "1: answer: Field required",
        "2: ground_truths is not a field that is read. Did you mean 'ground_truth'? Else call it otherwise.",
        "4: question: String should have at least 1 character",
        "4: contexts: Input should be a valid array",
        "4: answer: Input should be a valid string",
        "5: line: Invalid JSON: expected value at line 1 column 1",
    ]
    assert found[8:12] == [
        "6: id '2' stands already on line 2.",
        "7: line: Input should be an object",
        "8: id: Value error, an id is a text or a whole number",
        "9: id: Value error, an id is a text or a whole number",
    ]
    assert found[12].startswith("9: answerable: ")
    assert found[13].startswith("10: line: Invalid JSON")


def test_a_byte_order_mark_and_strange_ends_of_lines_do_no_harm(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    one = json.dumps(line("a", answer="one\u2028two"), ensure_ascii=False)
    file.write_bytes(b"\xef\xbb\xbf" + f"{one}\r\n\r\n{json.dumps(line('b'))}".encode())
    assert [given.material.answer for given in read_answers(file, says_no)] == ["one\u2028two", "supported"]


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_a_file_without_answers_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_bytes(content)
    assert "holds no answer" in problems(file)[0]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert problems(tmp_path / "gone.jsonl")[0].startswith("No file")


# `rag-harness judge score`: exit status, and what the terminal says.

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
        (["--measures", "recall@5"], "not a judged measure"),
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


# A verdict on a chunk is asked for once: by experiments at once, one after the other, and by later runs.

E3 = replace(ROW, contexts=(RETURNS, OPENING))
E4 = replace(ROW, contexts=(REFUNDS, OPENING, RETURNS, REFUNDS))


async def useful(judge: FusedJudge, *rows: Any) -> list[Sequence[Usefulness]]:
    return await asyncio.gather(*(judge.opinion(row, ["usefulness"]).usefulness() for row in rows))


def values(said: Sequence[Usefulness]) -> list[float | None]:
    return [each.value for each in said]


def test_two_experiments_at_once_ask_about_each_chunk_once() -> None:
    chat = Chat(seconds=1.0)
    e3, e4 = virtual_time.run(useful(create(as_parts(Parts(chat))), E3, E4))
    assert [asked.numbered("passage") for asked in chat.asked] == [[RETURNS, OPENING], [REFUNDS]]
    assert (values(e3), values(e4)) == ([1.0, 0.0], [1.0, 0.0, 1.0, 1.0])


def test_a_later_run_asks_about_none_and_another_question_about_all(tmp_path: Path) -> None:
    stores = [ArrayStore([], tmp_path) for _ in range(3)]
    first, later, other = Chat(), Chat(), Chat()
    asyncio.run(useful(create(as_parts(Parts(first, kept=stores[0]))), E4))
    stores[0].flush()
    found = asyncio.run(useful(create(as_parts(Parts(later, kept=stores[1]))), E3))
    asyncio.run(useful(create(as_parts(Parts(other, kept=stores[2]))), replace(E3, question="When?")))
    assert (len(first.asked), len(later.asked), len(other.asked)) == (1, 0, 1)
    assert values(found[0]) == [1.0, 0.0]


@pytest.mark.parametrize("change", [{"question": "When?"}, {"ground_truth": REFUNDS}, {"contexts": (f"{RETURNS} ",)}])
def test_what_belongs_to_the_key(change: dict[str, Any]) -> None:
    chat = Chat()
    judge = create(as_parts(Parts(chat)))
    asyncio.run(useful(judge, replace(E3, contexts=(RETURNS,))))
    asyncio.run(useful(judge, replace(E3, **{"contexts": (RETURNS,), **change})))
    assert len(chat.asked) == 2


def test_verdicts_belong_to_one_model_and_its_prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    from rag_harness.evaluation.judges import client as judge_chat

    parts = Parts()
    asyncio.run(useful(create(as_parts(parts)), E3))
    monkeypatch.setattr(judge_chat, "prompt", lambda name: f"another {name}")
    asyncio.run(useful(create(as_parts(parts)), E3))
    (kind, model, revision), (_, _, other) = parts.opened
    assert (kind, model) == ("judged", "scripted/judge")
    assert revision != other


@pytest.mark.parametrize(("mode", "asked_later"), [("record", 0), ("live", 1)])
def test_a_verdict_that_could_not_be_had_stays_so_in_a_run_and_in_a_recording(mode: str, asked_later: int) -> None:
    kept = ArrayStore([])
    chat = Chat(useful=[{"verdicts": []}] * 2)
    settings = Settings(mode=mode)
    judge = create(as_parts(Parts(chat, settings, kept=kept)))
    found = asyncio.run(useful(judge, E3, E3)) + asyncio.run(useful(judge, E3))
    assert {each.reason for said in found for each in said} == {"the judge gave no verdict for it"}
    assert len(chat.asked) == 2
    assert values(asyncio.run(useful(judge, E4))[0]) == [1.0, None, None, 1.0]
    assert chat.asked[-1].numbered("passage") == [REFUNDS]
    later = Chat()
    again = asyncio.run(useful(create(as_parts(Parts(later, settings, kept=kept))), E3))
    assert len(later.asked) == asked_later
    assert values(again[0]) == ([None, None] if mode == "record" else [1.0, 0.0])
    assert mode == "live" or again[0][0].reason == "the judge gave no verdict for it"


def test_who_waits_for_a_call_that_fails_hears_of_it_and_the_next_asks_again() -> None:
    chat = Chat(seconds=1.0, useful=[ModelCallError("down")])
    judge = create(as_parts(Parts(chat)))

    async def judged() -> tuple[list[Any], list[Any]]:
        opinions = [judge.opinion(E3, ["usefulness"]).usefulness() for _ in range(2)]
        failed = await asyncio.gather(*opinions, return_exceptions=True)
        return failed, await useful(judge, E3)

    failed, found = virtual_time.run(judged())
    assert [str(error) for error in failed] == ["down", "down"]
    assert values(found[0]) == [1.0, 0.0]


def test_a_row_that_is_cancelled_does_not_take_the_call_from_others() -> None:
    chat = Chat(seconds=1.0)
    judge = create(as_parts(Parts(chat)))

    async def judged() -> list[Sequence[Usefulness]]:
        first = asyncio.create_task(useful(judge, E3))
        await asyncio.sleep(0.5)
        second = asyncio.create_task(useful(judge, E3))
        await asyncio.sleep(0.1)
        first.cancel()
        return await second

    assert values(virtual_time.run(judged())[0]) == [1.0, 0.0]
    assert len(chat.asked) == 1


def test_waiting_for_another_rows_call_is_not_ones_own_time() -> None:
    from rag_harness.core.concurrency import Deadline

    chat = Chat(seconds=5.0)
    judge = create(as_parts(Parts(chat)))

    async def judged() -> list[Sequence[Usefulness]]:
        loop = asyncio.get_running_loop()
        first = asyncio.create_task(useful(judge, E3))
        await asyncio.sleep(1.0)
        found = await Deadline(2.0, clock=loop.time).bound(useful(judge, E3))
        await first
        return found

    assert values(virtual_time.run(judged())[0]) == [1.0, 0.0]
