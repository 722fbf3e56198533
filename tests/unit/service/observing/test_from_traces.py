from __future__ import annotations

import asyncio
import json
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.__main__ import main
from rag_harness.core.types import Answer, PipelineOutput
from rag_harness.data.queries import read_queries
from rag_harness.service.database import Database
from rag_harness.service.labelling import LABELLING_REASONS, Logged, LoggedTraces, merged, sample_of_questions
from rag_harness.service.observations import FAILED, Observed
from rag_harness.service.traces import DAY, Thumb, Traces
from tests.unit.service.observing.seen import output, seen


def serve(state: Path, *asked: tuple[Observed, Thumb | None, str], content: bool = True) -> None:
    """Leave in ``state`` what a server would that was asked this, and given these thumbs."""

    async def doing() -> None:
        state.mkdir(exist_ok=True)
        database = Database(state / "service.sqlite3")
        traces = Traces(database, 30, content)
        for each, thumb, comment in asked:
            traces.keep(each)
            if thumb is not None:
                await traces.rate(each.ids.trace_id, None, thumb, comment)
        await traces.stop()
        database.close()

    asyncio.run(doing())


def asking(question: str, outcome: str = "pass", hours: float = 1, **changed: Any) -> Observed:
    changed.setdefault("output", output(outcome) if outcome != FAILED else PipelineOutput(Answer("")))
    return seen(question=question, outcome=outcome, began=time.time() - hours * 3_600, **changed)


def several(state: Path) -> None:
    serve(
        state,
        (asking("How long can I return a lamp?", hours=5), None, ""),
        (asking("how long  can I return a LAMP", hours=2), -1, "wrong page"),
        (asking("How long can I return a lamp?", hours=3, inputs={"shop": "Graz"}), None, ""),
        (asking("Who are you?", "abstain", hours=4), None, ""),
        (asking("Is it true?", "warn", hours=6), 1, "well done"),
        (asking("Does it break?", FAILED, hours=7), None, ""),
        (asking("What was last month?", hours=24 * 20), -1, ""),
    )


def made(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def command(state: Path, file: Path, *more: str) -> int:
    return main(["queries", "from-traces", "--state", str(state), "-o", str(file), *more])


def test_what_users_asked_becomes_cases_that_can_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    several(tmp_path / "state")
    file = tmp_path / "queries.jsonl"
    assert command(tmp_path / "state", file) == 0
    assert capsys.readouterr().out.startswith("5 of 5 questions (6 traces since 7d) -> ")
    cases = read_queries(file)
    assert [case.query.text for case in cases] == [
        "Does it break?",
        "Is it true?",
        "how long  can I return a LAMP",
        "Who are you?",
        "How long can I return a lamp?",
    ]
    assert {(case.query_type, case.ground_truth, case.context_reference) for case in cases} == {("unlabelled", "", ())}
    assert cases[4].query.inputs == {"shop": "Graz"}


def test_a_row_says_why_it_is_there_and_what_was_answered(tmp_path: Path) -> None:
    several(tmp_path / "state")
    command(tmp_path / "state", tmp_path / "queries.jsonl", "--only", "thumbs-down")
    (row,) = made(tmp_path / "queries.jsonl")
    metadata = row["metadata"]
    assert {name: metadata[name] for name in ("reviewed", "sampled_as", "asked")} == {
        "reviewed": "no",
        "sampled_as": "thumbs-down",
        "asked": 2,
    }
    told = metadata["seen"]
    assert (told["answer_given"], told["sources_cited"], told["comments"]) == (
        "A quokka [Source 1].",
        [1],
        ["wrong page"],
    )
    assert told["sources_shown"][0]["document"] == "animals.md"
    assert (told["decision"], told["confidence"], told["drawn_of"], len(told["trace_ids"])) == ("pass", 0.9, 1, 2)
    assert told["first_asked"] < told["last_asked"]
    assert "prompts" not in json.dumps(row)


def test_a_question_that_begins_a_conversation_is_one_like_any_other(tmp_path: Path) -> None:
    history = [{"role": "user", "content": "Lamps?"}, {"role": "assistant", "content": "45 days."}]
    serve(
        tmp_path / "state",
        *((asking("Lamps?", inputs={"conversation": name, "turn": 1}), None, "") for name in "ab"),
        *((asking("Why?", inputs={"conversation": name, "turn": 2, "history": history}), None, "") for name in "ab"),
    )
    command(tmp_path / "state", tmp_path / "queries.jsonl")
    first, later = sorted(read_queries(tmp_path / "queries.jsonl"), key=lambda case: case.query.text)
    assert (first.query.inputs, first.metadata["asked"]) == ({}, 2)
    assert ([each.content for each in later.query.history], later.metadata["asked"]) == (["Lamps?", "45 days."], 2)


def test_only_short_values_are_what_cases_can_be_sliced_by(tmp_path: Path) -> None:
    several(tmp_path / "state")
    command(tmp_path / "state", tmp_path / "queries.jsonl")
    for case in read_queries(tmp_path / "queries.jsonl"):
        assert set(case.labels) == {"reviewed", "sampled_as", "asked", "query_type"}


@pytest.mark.parametrize(
    ("only", "questions"),
    [
        ("failed", ["Does it break?"]),
        ("abstained", ["Who are you?"]),
        ("warned", ["Is it true?"]),
        ("thumbs-down", ["how long  can I return a LAMP"]),
    ],
)
def test_only_what_is_of_interest(tmp_path: Path, only: str, questions: list[str]) -> None:
    several(tmp_path / "state")
    assert command(tmp_path / "state", tmp_path / "q.jsonl", "--only", only) == 0
    assert [row["query"] for row in made(tmp_path / "q.jsonl")] == questions


def test_further_back(tmp_path: Path) -> None:
    several(tmp_path / "state")
    assert command(tmp_path / "state", tmp_path / "q.jsonl", "--since", "4w", "--only", "thumbs-down") == 0
    assert made(tmp_path / "q.jsonl")[0]["query"] == "What was last month?"


def test_a_sample_is_the_same_each_time_and_another_of_another_seed(tmp_path: Path) -> None:
    serve(tmp_path / "state", *((asking(f"Question {n}?"), None, "") for n in range(30)))
    files = [tmp_path / f"{n}.jsonl" for n in range(3)]
    for file, seed in zip(files, ("0", "0", "1"), strict=True):
        assert command(tmp_path / "state", file, "--sample", "5", "--seed", seed) == 0
    first, again, other = (file.read_bytes() for file in files)
    assert first == again != other
    assert len(made(files[0])) == 5
    assert made(files[0])[0]["metadata"]["seen"]["drawn_of"] == 30


def test_a_sample_has_of_every_reason(tmp_path: Path) -> None:
    passed = [(asking(f"Question {n}?"), None, "") for n in range(20)]
    unsure = [(asking(f"Unsure {n}?", "warn"), None, "") for n in range(20)]
    down: Thumb = -1
    serve(tmp_path / "state", *passed, *unsure, (asking("bad"), down, ""))
    command(tmp_path / "state", tmp_path / "q.jsonl", "--sample", "9")
    reasons = [row["metadata"]["sampled_as"] for row in made(tmp_path / "q.jsonl")]
    assert sorted(reasons) == ["any"] * 4 + ["thumbs-down"] + ["warned"] * 4


def test_prompts_are_not_read_for_labels(tmp_path: Path) -> None:
    asked = asking("one")
    serve(tmp_path / "state", (asked, None, ""))
    with closing(LoggedTraces(tmp_path / "state")) as kept:
        said = kept.content(asked.ids.trace_id)
    assert said["answer"] == "A quokka [Source 1]."
    assert "prompts" not in said


def _refused(capsys: pytest.CaptureFixture[str], status: int, *words: str) -> None:
    assert status == 2
    said = capsys.readouterr().err
    assert [word for word in words if word not in said] == []
    assert "Traceback" not in said


def test_traces_without_words_say_how_to_keep_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    serve(tmp_path / "state", (asking("secret?"), None, ""), content=False)
    status = command(tmp_path / "state", tmp_path / "q.jsonl")
    _refused(capsys, status, "1 traces have no words in them", "rag-harness serve --trace-content")
    assert not (tmp_path / "q.jsonl").exists()


def test_questions_of_two_tenants_are_never_mixed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    theirs = asking("theirs", collection="theirs")
    serve(tmp_path / "state", (asking("ours"), None, ""), (theirs, None, ""))
    _refused(capsys, command(tmp_path / "state", tmp_path / "q.jsonl"), "default, theirs", "--collection")
    assert command(tmp_path / "state", tmp_path / "q.jsonl", "--collection", "theirs") == 0
    assert [row["query"] for row in made(tmp_path / "q.jsonl")] == ["theirs"]


def test_what_cannot_be_done_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state, file = tmp_path / "state", tmp_path / "q.jsonl"
    _refused(capsys, command(state, file), "No service has run on", "--state DIR")
    assert not state.exists()
    serve(state)
    _refused(capsys, command(state, file), "No question was traced", "--since")
    serve(state, (asking("one"), None, ""))
    _refused(capsys, command(state, file, "--since", "a while"), "'a while' is not an age")
    _refused(capsys, command(state, file, "--sample", "0"), "--sample 0")
    assert command(state, file, "--only", "warned") == 1
    assert "None of 1 questions since 7d is warned" in capsys.readouterr().out
    assert command(state, file) == 0
    _refused(capsys, command(state, file), "is there already")


_logged = st.builds(
    Logged,
    st.uuids().map(lambda each: each.hex),
    st.datetimes().map(lambda each: each.isoformat()),
    st.sampled_from(["pass", "warn", "abstain", "unchecked", FAILED]),
    st.none() | st.floats(0, 1),
    st.sampled_from([None, 1, -1]),
    st.text(max_size=5),
    st.text("aB ?.", min_size=1, max_size=4),
    st.just({}),
)


@given(st.lists(_logged, max_size=30, unique_by=lambda each: each.trace_id), st.integers(1, 10), st.randoms())
def test_no_trace_is_lost_and_their_order_changes_nothing(traces: list[Logged], size: int, chance: Any) -> None:
    asked = merged(traces)
    assert sorted(each.trace_id for one in asked for each in one.traces) == sorted(each.trace_id for each in traces)
    shuffled = list(traces)
    chance.shuffle(shuffled)
    assert merged(shuffled) == asked
    taken = sample_of_questions(asked, size, None, 0)
    assert len(taken) == min(size, len(asked))
    assert sample_of_questions(merged(shuffled), size, None, 0) == taken
    for one in asked:
        assert all(
            LABELLING_REASONS.index(one.shown.reason) <= LABELLING_REASONS.index(each.reason) for each in one.traces
        )


def test_the_oldest_day_that_is_kept_is_looked_at(tmp_path: Path) -> None:
    serve(tmp_path / "state", (asking("old", hours=6 * DAY / 3_600), None, ""))
    assert command(tmp_path / "state", tmp_path / "q.jsonl") == 0
