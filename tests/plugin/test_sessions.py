"""Services that keep conversations themselves, by TOML alone: recorded, replayed, killed, resumed, forgotten."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event
from time import monotonic, sleep
from typing import Any

import pytest

from tests.plugin.conftest import Suite
from tests.talking_server import TalkingServer, talking_server
from tests.unit.pipelines.endpoint.tracing_service import tracing_service

CHAT = """
url = "{url}/chat"
body = {{ message = "{{{{query}}}}", session = "{{{{session}}}}" }}

[session]
path = "session"
"""
CHOSEN = CHAT.replace('path = "session"', 'id = "{{{{conversation}}}}/{{{{uuid}}}}"')
FILE = "--rag-endpoint=my_chat.toml"
TURNS: list[dict[str, Any]] = [{"query": f"q{turn}", "ground_truth": "45 days"} for turn in (1, 2, 3)]
TALKS: list[dict[str, Any]] = [{"conversation": f"c{n}", "turns": TURNS} for n in range(3)]


@pytest.fixture
def server() -> Iterator[TalkingServer]:
    with talking_server() as found:
        found.unknown = "new"
        yield found


@pytest.fixture
def chat(suite: Suite, server: TalkingServer, monkeypatch: pytest.MonkeyPatch) -> Suite:
    monkeypatch.setenv("RAG_RESUME", "1")  # what mode live does without it has a test of its own
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    write(suite, server)
    suite.write_queries(TALKS)
    return suite


def write(suite: Suite, server: TalkingServer, spec: str = CHAT, more: str = "") -> None:
    (suite.path / "my_chat.toml").write_text(spec.format(url=server.url) + more)


def rows(suite: Suite, name: str = "my_chat") -> dict[str, Any]:
    found = suite.rows(name)
    assert len({str(row["query_id"]) for row in found}) == len(found)
    return {str(row["query_id"]): row for row in found}


def session_of(row: Any) -> Any:
    return next(stage["detail"].get("service_session") for stage in row["stages"] if stage["name"] == "ask")


def said(suite: Suite, name: str = "my_chat") -> dict[str, str]:
    return {query_id: row["llm_answer"] for query_id, row in rows(suite, name).items()}


WITH_MEMORY = {
    f"c{n}#{turn}": f"{turn}. q{turn} after {', '.join(f'q{before}' for before in range(1, turn)) or 'nothing'}"
    for n in range(3)
    for turn in (1, 2, 3)
}


# Workers share recordings and rows, and each has whole conversations: who names a session is nothing to them. So one
# kind is recorded by workers here, and the other where a user is simulated; without workers both are, further below.
KINDS = [(CHAT, "-n0", "-n0"), (CHOSEN, "-n0", "-n0"), (CHAT, "-n2", "-n2"), (CHOSEN, "-n2", "-n2")]


@pytest.mark.parametrize(
    ("spec", "workers", "later"),
    [(CHAT, "-n2", "-n0"), *(pytest.param(*each, marks=pytest.mark.long) for each in KINDS)],
    ids=["stated-2", "stated-0", "chosen-0", "stated-2-2", "chosen-2-2"],
)
def test_a_service_with_a_memory_is_recorded_and_replayed_without_it(
    chat: Suite, server: TalkingServer, spec: str, workers: str, later: str
) -> None:
    server.unknown = "take"
    write(chat, server, spec)
    result = chat.run(FILE, "--rag-mode=record", workers, "--rag-gate=my_chat: error_rate <= 0")
    result.assert_outcomes(passed=9)
    assert said(chat) == WITH_MEMORY
    assert not (chat.path / "output" / "my_chat-own.jsonl").exists()
    sessions = {query_id: session_of(row) for query_id, row in rows(chat).items()}
    assert len(set(sessions.values())) == 3
    assert all(len({sessions[f"c{n}#{turn}"] for turn in (1, 2, 3)}) == 1 for n in range(3))
    history = rows(chat)["c1#3"]["inputs"]["history"]
    assert [each["content"] for each in history] == ["q1", WITH_MEMORY["c1#1"], "q2", WITH_MEMORY["c1#2"]]
    heard = len(server.heard)
    chat.run(FILE, "--rag-mode=replay", "--rag-overwrite", later).assert_outcomes(passed=9)
    chat.run(FILE, "--rag-mode=record", "--rag-overwrite", later).assert_outcomes(passed=9)
    assert said(chat) == WITH_MEMORY
    assert len(server.heard) == heard == 9
    kept = "".join(file.read_text() for file in (chat.path / "cassettes").rglob("*.yaml"))
    assert all(f"session: '\"{session}\"'" in kept for session in sessions.values())


def test_gold_history_is_refused_where_it_is_asked_for(chat: Suite, server: TalkingServer) -> None:
    result = chat.run(FILE, "--rag-mode=live", "--rag-history=gold")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--rag-history=gold*my_chat keeps conversations itself*Leave --rag-history out*"])
    result = chat.run("--rag-run=my_chat-own", FILE, "--rag-mode=live")
    assert "my_chat keeps conversations itself, so its own answers are always" in result.stderr.str()
    for history in ("own", "both"):
        chat.run(FILE, "--rag-mode=live", f"--rag-history={history}", "-k", "c1").assert_outcomes(passed=3)
    assert server.messages == ["q1", "q2", "q3"] * 2


def test_repeats_have_sessions_of_their_own(chat: Suite, server: TalkingServer) -> None:
    chat.run(FILE, "--rag-mode=record", "--rag-repeats=2").assert_outcomes(passed=9)
    again = "derived/my_chat+repeat2"
    assert said(chat) == said(chat, again) == WITH_MEMORY
    assert len({session_of(row) for name in ("my_chat", again) for row in rows(chat, name).values()}) == 6
    assert len(server.heard) == 18
    chat.run(FILE, "--rag-mode=replay", "--rag-overwrite", "--rag-repeats=2", "-n2").assert_outcomes(passed=9)
    assert len(server.heard) == 18
    assert said(chat) == said(chat, again) == WITH_MEMORY


@pytest.mark.parametrize(
    ("spec", "workers", "later"),
    [(CHOSEN, "-n2", "-n0"), *(pytest.param(*each, marks=pytest.mark.long) for each in KINDS)],
    ids=["chosen-2", "stated-0", "chosen-0", "stated-2-2", "chosen-2-2"],
)
def test_a_simulated_user_talks_to_a_service_with_a_memory(
    chat: Suite, server: TalkingServer, spec: str, workers: str, later: str
) -> None:
    server.unknown = "take"
    write(chat, server, spec)
    scenario = {"opening": "q1", "asks": ["q2", "q3"], "max_turns": 5}
    chat.write_queries([{"conversation": f"c{n}", "scenario": scenario} for n in range(3)])
    options = (FILE, "--rag-repeats=2")
    chat.run(*options, "--rag-mode=record", workers).assert_outcomes(passed=9, skipped=6)
    again = "derived/my_chat-sim+repeat2"
    assert said(chat, "my_chat-sim") == said(chat, again) == WITH_MEMORY
    assert len({session_of(row) for name in ("my_chat-sim", again) for row in rows(chat, name).values()}) == 6
    for more in (("--rag-mode=replay", "--rag-overwrite"), ("--rag-mode=record",)):
        chat.run(*options, *more, later).assert_outcomes(passed=9, skipped=6)
        assert said(chat, "my_chat-sim") == said(chat, again) == WITH_MEMORY
    # What has ended is no conversation that was cut off.
    assert len(server.heard) == 18


def test_a_played_conversation_that_was_cut_off_is_begun_anew(chat: Suite, server: TalkingServer) -> None:
    """Where the service would not say that it has forgotten it: no turn is asked, and the next run begins."""
    write(chat, server, CHOSEN)
    server.unknown = "take"
    chat.write_queries([{"conversation": "c0", "scenario": {"opening": "q1", "asks": ["q2", "q3"], "max_turns": 5}}])
    killed_between_turns(chat, server, "--rag-mode=record")
    server.forget()
    # The user repeats a question that has failed, and gives up.
    chat.run(FILE, "--rag-mode=record", "-n0").assert_outcomes(failed=2, passed=2, skipped=1)
    assert not server.heard
    gate = "--rag-gate=my_chat-sim: error_rate <= 0"
    chat.run(FILE, "--rag-mode=record", "-n0", gate).assert_outcomes(passed=3, skipped=2)
    expected = {f"c0#{turn}": WITH_MEMORY[f"c0#{turn}"] for turn in (1, 2, 3)}
    assert said(chat, "my_chat-sim").items() >= expected.items()
    assert server.messages == ["q1", "q2", "q3"]


ENDS = """
import os, time
seen = []

def pytest_rag_result(result):
    seen.append(result)
    if len(seen) == {rows}:
        until = time.monotonic() + {waits}
        while not os.path.exists("under_way") and time.monotonic() < until:
            time.sleep(0.01)
        {ends}
"""


@contextmanager
def held(chat: Suite, server: TalkingServer, message: str, seconds: float = 60.0) -> Iterator[None]:
    """Have ``message`` heard and answered after the block, or after so many seconds; a file says that it has come."""
    is_over, heard = Event(), server.asked

    def asked(session: Any, said: str) -> tuple[int, Any]:
        if said == message:
            (chat.path / "under_way").touch()
            is_over.wait(seconds)
        return heard(session, said)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(server, "asked", asked)
        yield
        is_over.set()
    within_a_minute(lambda: message in server.messages)


def within_a_minute(holds: Callable[[], bool]) -> None:
    until = monotonic() + 60
    while not holds():
        assert monotonic() < until
        sleep(0.01)


def killed(chat: Suite, mode: str, waits: float = 0.0) -> None:
    """Ask one conversation until two rows have come, and until a question is under way for which it waits so long."""
    conftest = chat.path / "conftest.py"
    conftest.write_text(ENDS.format(rows=2, waits=waits, ends="os._exit(9)"))
    chat.run(FILE, mode, "-k", "c0", "-n0")
    conftest.unlink()


def killed_between_turns(chat: Suite, server: TalkingServer, mode: str) -> None:
    """Kill a run after two turns, while the third waits for its turn and is not sent."""
    spec = chat.path / "my_chat.toml"
    text = spec.read_text()
    spec.write_text(f"rpm = 2\n{text}")
    killed(chat, mode)
    spec.write_text(text)
    assert server.messages == ["q1", "q2"]


MODE_RECORD, MODE_LIVE = "--rag-mode=record", "--rag-mode=live"
MODES = pytest.mark.parametrize("mode", [MODE_RECORD, MODE_LIVE])
# Another test kills, in mode live, a run that goes on in its sessions.
MODES_APART = pytest.mark.parametrize("mode", [MODE_RECORD, pytest.param(MODE_LIVE, marks=pytest.mark.long)])


@MODES_APART
def test_a_killed_conversation_goes_on_at_its_turn_in_its_session(
    chat: Suite, server: TalkingServer, mode: str
) -> None:
    killed_between_turns(chat, server, mode)
    chat.run(FILE, mode, "-n0").assert_outcomes(passed=9)
    assert said(chat) == WITH_MEMORY
    assert len(server.heard) == 9
    assert len({session_of(row) for row in rows(chat).values()}) == 3


@MODES
def test_a_question_that_was_under_way_when_the_run_was_killed_is_not_heard_twice(
    chat: Suite, server: TalkingServer, mode: str
) -> None:
    with held(chat, server, "q3"):
        killed(chat, mode, waits=60)
    chat.run(FILE, mode, "-n0").assert_outcomes(passed=9)
    assert said(chat) == WITH_MEMORY
    by_session: dict[Any, list[str]] = {}
    for session, message in server.heard:
        by_session.setdefault(session, []).append(message)
    # The service has heard the third question of the first session. Nobody has gone on there.
    assert sorted(by_session.values()) == [["q1", "q2", "q3"]] * 4
    assert not {row["error"] and row["error"]["type"] for row in rows(chat).values()} - {None}


@MODES_APART
@pytest.mark.parametrize("comes", [True, False])
def test_an_interrupted_conversation_hears_no_question_twice(
    chat: Suite, server: TalkingServer, mode: str, comes: bool
) -> None:
    """What is under way gets seconds to come. After that the service may have heard it, and has not answered."""
    chat.write_queries([TALKS[0]])
    conftest = chat.path / "conftest.py"
    patience = "" if comes else "from rag_harness.runs import engine\n\nengine.STOP_WAIT = 0.5\n"
    conftest.write_text(patience + ENDS.format(rows=1, waits=60, ends="raise KeyboardInterrupt"))
    with held(chat, server, "q2", seconds=0.3 if comes else 60):
        chat.run(FILE, mode, "-n0")
    conftest.unlink()
    chat.run(FILE, mode, "-n0").assert_outcomes(passed=3)
    assert said(chat) == {query_id: text for query_id, text in WITH_MEMORY.items() if query_id.startswith("c0")}
    assert server.messages.count("q1") == (1 if comes else 2)


# How a loss is seen has nothing to do with the mode of the run, and tests of its own beside the pipeline's.
SEEN = {(MODE_RECORD, "new"), (MODE_LIVE, "error")}


@pytest.mark.parametrize(
    ("mode", "unknown"),
    [
        pytest.param(mode, unknown, marks=() if (mode, unknown) in SEEN else pytest.mark.long)
        for mode in (MODE_RECORD, MODE_LIVE)
        for unknown in ("new", "404", "error")
    ],
)
def test_a_conversation_that_was_forgotten_is_an_error_and_is_begun_anew_by_the_next_run(
    chat: Suite, server: TalkingServer, mode: str, unknown: Any
) -> None:
    if unknown == "error":
        write(chat, server, more="lost = \"$[?@.code=='no_such_session']\"\n")
    server.unknown = unknown
    killed_between_turns(chat, server, mode)
    server.forget()
    result = chat.run(FILE, mode, "-n0")
    result.assert_outcomes(passed=8, failed=1)
    error = rows(chat)["c0#3"]["error"]
    assert (error["stage"], error["type"]) == ("ask", "SessionLostError")
    result.stdout.fnmatch_lines(["*my_chat has forgotten the session of c0#3: *The next run begins the conversation *"])
    server.heard.clear()
    result = chat.run(FILE, mode, "-n0")
    result.assert_outcomes(passed=9)
    assert said(chat) == WITH_MEMORY
    # Of the one conversation, and of no other; in mode live a run that has ended is not resumed.
    assert server.messages == (["q1", "q2", "q3"] if "record" in mode else server.messages)
    assert len({session_of(rows(chat)[f"c0#{turn}"]) for turn in (1, 2, 3)}) == 1
    if "record" in mode:
        chat.run(FILE, "--rag-mode=replay", "--rag-overwrite").assert_outcomes(passed=9)
        assert (said(chat), len(server.heard)) == (WITH_MEMORY, 3)


@MODES_APART
def test_a_service_that_takes_any_session_is_not_believed_to_remember_one_of_an_earlier_run(
    chat: Suite, server: TalkingServer, mode: str
) -> None:
    write(chat, server, CHOSEN)
    server.unknown = "take"
    killed_between_turns(chat, server, mode)
    server.forget()
    chat.run(FILE, mode, "-n0").assert_outcomes(passed=9)
    assert (said(chat), len(server.heard)) == (WITH_MEMORY, 9)


def test_a_service_that_takes_any_session_and_says_that_it_is_new_is_resumed(
    chat: Suite, server: TalkingServer
) -> None:
    write(chat, server, CHOSEN, 'lost = "is_new"\n')
    server.unknown = "take"
    killed_between_turns(chat, server, "--rag-mode=live")
    chat.run(FILE, "--rag-mode=live", "-n0").assert_outcomes(passed=9)
    assert (said(chat), len(server.heard)) == (WITH_MEMORY, 9)


def test_a_recording_is_no_session_to_go_on_in(chat: Suite, server: TalkingServer) -> None:
    """A conversation with a turn that was added since is asked from its first turn."""
    write(chat, server, CHOSEN)
    server.unknown = "take"
    chat.run(FILE, "--rag-mode=record").assert_outcomes(passed=9)
    server.forget()
    chat.write_queries([{**TALKS[0], "turns": [*TURNS, {"query": "q4"}]}])
    chat.run(FILE, "--rag-mode=record").assert_outcomes(passed=4)
    assert server.messages == ["q1", "q2", "q3", "q4"]
    assert said(chat)["c0#4"] == "4. q4 after q1, q2, q3"


def test_a_turn_that_failed_has_its_conversation_begun_anew(chat: Suite, server: TalkingServer) -> None:
    server.refuses = {"q2"}
    chat.write_queries([TALKS[0], {"conversation": "d", "turns": [{"query": "q9"}]}])
    chat.run(FILE, "--rag-mode=record", "-n0").assert_outcomes(passed=3, failed=1)
    assert sorted(server.messages) == ["q1", "q2", "q3", "q9"]
    assert len({session for session, _ in server.heard}) == 2
    server.refuses.clear()
    server.heard.clear()
    chat.run(FILE, "--rag-mode=record", "-n0").assert_outcomes(passed=4)
    assert server.messages == ["q1", "q2", "q3"]
    assert {query_id: text for query_id, text in said(chat).items() if query_id in WITH_MEMORY} == {
        query_id: text for query_id, text in WITH_MEMORY.items() if query_id.startswith("c0")
    }


def test_an_answer_that_came_and_cannot_be_read_is_not_asked_for_again(chat: Suite, server: TalkingServer) -> None:
    server.mute = {"q2"}
    for _ in range(2):
        chat.run(FILE, "--rag-mode=record", "-n0").assert_outcomes(passed=6, failed=3)
        assert rows(chat)["c0#2"]["error"]["stage"] == "answer"
        assert len(server.heard) == 9


def test_rows_of_several_sessions_are_no_conversation_to_go_on_in(chat: Suite, server: TalkingServer) -> None:
    """As a run that began one anew, and was killed, may leave them beside those of before."""
    chat.write_queries([TALKS[0]])
    chat.run(FILE, "--rag-mode=record", "-n0").assert_outcomes(passed=3)
    file = chat.path / "output" / "my_chat.jsonl"
    first, *others = file.read_text().splitlines()
    session = session_of(json.loads(first))
    file.write_text("\n".join([first.replace(session, "another"), *others]) + "\n")
    server.heard.clear()
    chat.run(FILE, "--rag-mode=record", "-n0").assert_outcomes(passed=3)
    assert server.messages == ["q1", "q2", "q3"]
    assert session_of(rows(chat)["c0#1"]) == session_of(rows(chat)["c0#3"]) not in ("another", session)


def test_conversations_that_are_given_one_session_are_no_answers(chat: Suite, server: TalkingServer) -> None:
    server.make = lambda: "the-only-one"
    result = chat.run(FILE, "--rag-mode=live", "-n0", "--rag-concurrency=1")
    result.assert_outcomes(passed=3, failed=6)
    result.stdout.fnmatch_lines(["*has the session 'the-only-one', and so has 'c0'*"])


def test_rerecording_begins_every_conversation_anew(chat: Suite, server: TalkingServer) -> None:
    chat.run(FILE, "--rag-mode=record").assert_outcomes(passed=9)
    first = {session_of(row) for row in rows(chat).values()}
    server.forget()
    chat.run(FILE, "--rag-mode=record", "--rag-rerecord").assert_outcomes(passed=9)
    assert len(server.heard) == 9
    assert not first & {session_of(row) for row in rows(chat).values()}
    assert said(chat) == WITH_MEMORY


SAYS_WHO_IT_IS = """
import os

def pytest_configure():
    with open("processes.txt", "a") as file:
        file.write(f"{os.getpid()}\\n")
"""


def killed_after(chat: Suite, server: TalkingServer, questions: int, moment: float, *args: str) -> None:
    """Start a run, and kill it with its workers a moment after the service has heard so many more questions."""
    processes, before = chat.path / "processes.txt", len(server.heard)
    processes.write_text("")
    with (chat.path / "out.txt").open("ab") as out:
        run = subprocess.Popen([sys.executable, "-m", "pytest", *args], cwd=chat.path, stdout=out, stderr=out)
    while run.poll() is None and len(server.heard) - before < questions:
        sleep(0.005)
    sleep(moment)
    pids = [int(line) for line in processes.read_text().splitlines()] if run.poll() is None else []
    run.kill()
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    run.wait(timeout=60)
    within_a_minute(lambda: not any(map(is_there, pids)))


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


# What a killed run leaves in both modes is looked at above, once for each; here all may be left at once.
@pytest.mark.parametrize(
    ("mode", "repeats", "kills"),
    [
        (MODE_RECORD, 1, 2),
        (MODE_LIVE, 2, 2),
        *(
            pytest.param(mode, repeats, 25, marks=pytest.mark.long)
            for mode in (MODE_RECORD, MODE_LIVE)
            for repeats in (1, 2)
        ),
    ],
)
def test_whenever_a_run_is_killed_and_the_service_forgets_no_answer_has_another_memory_than_it_says(
    chat: Suite, server: TalkingServer, mode: str, repeats: int, kills: int
) -> None:
    chance, options = random.Random(kills + repeats), (FILE, mode, f"--rag-repeats={repeats}")
    names = ["my_chat", "derived/my_chat+repeat2"][:repeats]
    server.delay, many = 0.05, 6
    (chat.path / "conftest.py").write_text(SAYS_WHO_IT_IS)
    chat.write_queries([{"conversation": f"c{n}", "turns": TURNS} for n in range(many)])
    expected = {f"c{n}#{turn}": WITH_MEMORY[f"c0#{turn}"] for n in range(many) for turn in (1, 2, 3)}
    for number in range(kills):
        questions, moment = chance.randrange(2 * many), chance.uniform(0, 0.1)
        killed_after(chat, server, questions, moment, *options, "--rag-concurrency=3", ("-n0", "-n2")[number % 2])
        if chance.random() < 0.5:
            server.forget()
        for row in (row for name in names for row in chat.rows(name)):
            assert row["llm_answer"] in ("", expected[str(row["query_id"])])  # or no answer
    for _ in range(2):  # what was forgotten is begun anew by the next run
        result = chat.run(*options)
    result.assert_outcomes(passed=3 * many)
    assert all(said(chat, name) == expected for name in names)


@pytest.mark.parametrize("option", ["--rag-attribute", "--rag-metamorphic"])
def test_nothing_is_asked_again_in_a_session_that_is_over(chat: Suite, server: TalkingServer, option: str) -> None:
    """The service would hear a question twice, after all that was said since. A first turn has a session of its own."""
    turns = [{"query": f"q{turn}", "expect": [{"contains": "45 days"}]} for turn in (1, 2, 3)]
    chat.write_queries([{"conversation": "c0", "turns": turns}])
    chat.run(FILE, "--rag-mode=live", "-n0", option).assert_outcomes(passed=3)
    session = session_of(rows(chat)["c0#3"])
    assert [message for asked_in, message in server.heard if asked_in == session] == ["q1", "q2", "q3"]
    assert len(server.heard) > 3
    assert all("q1" in message.casefold() for asked_in, message in server.heard if asked_in != session)
    said = "".join(file.read_text() for file in (chat.path / "output").rglob("*.jsonl"))
    assert "the service keeps the conversation itself, so this turn cannot be asked again" in said


def test_a_service_with_a_memory_sends_the_spans_of_each_turn(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER_COUNT", raising=False)
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    suite.write_queries(TALKS)
    with tracing_service() as service:
        top = f'url = "{service.url}"\ntraces = "otlp"\ntraces_port = {service.port}\ntraces_late = 0.1\n'
        body = 'body = { query = "{{query}}", session = "{{session}}" }\n[session]\npath = "session"\n'
        (suite.path / "my_chat.toml").write_text(top + body)
        suite.run(FILE, "--rag-mode=record").assert_outcomes(passed=9)
        # The first turn of each conversation alone is asked without a session.
        assert sorted(query for session, query in service.heard if not session) == ["q1"] * 3
    recorded = rows(suite)
    for query_id, row in recorded.items():
        searches = [stage["input"] for stage in row["stages"] if stage.get("kind") == "retrieve"]
        assert searches == [f"q{query_id[-1]}"], "spans of another turn"
        assert session_of(row) == session_of(recorded[f"{query_id[:2]}#1"])
    assert len({row["trace_id"] for row in recorded.values()}) == 9
    assert len({session_of(row) for row in recorded.values()}) == 3
    suite.run(FILE, "--rag-mode=replay", "--rag-overwrite").assert_outcomes(passed=9)
    told = {query_id: (session_of(row), row["trace_id"]) for query_id, row in rows(suite).items()}
    assert told == {query_id: (session_of(row), row["trace_id"]) for query_id, row in recorded.items()}
