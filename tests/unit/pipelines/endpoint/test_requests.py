"""What a service is sent of a conversation, and in which session."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import ModelCallError, ModelOutputError, SessionLostError, SettingsError
from rag_harness.core.settings.endpoints import HistoryLimits, read_endpoint
from rag_harness.core.types import SESSION, PipelineOutput, Query
from rag_harness.models.calls import asked_again, asked_in
from rag_harness.pipelines.endpoint.requests import Template, sent_history
from tests.talking_server import TalkingServer, talking_server
from tests.unit.pipelines.endpoint.services import Service
from tests.unit.server import as_json, serving

# What a service is sent of a conversation: role and content, and no more than its limits.

# What a service is sent of a conversation: role and content, and no more than its limits.


def asked(*said: str) -> list[dict[str, Any]]:
    """Return messages of user and assistant by turns."""
    roles = ("user", "assistant")
    return [{"role": roles[n % 2], "content": text} for n, text in enumerate(said)]


def turn(history: list[dict[str, Any]], **more: Any) -> Query:
    place = {"conversation": "c1", "turn": len(history) // 2 + 1}
    return Query("c1#9", "and then?", {**place, **({"history": history} if history else {}), **more})


LONG = asked("q1", "a1", "q2", "a2", "q3", "a3")


@pytest.mark.parametrize(
    ("limits", "sent", "left_out"),
    [
        (HistoryLimits(), LONG, 0),
        (HistoryLimits(most_turns=3), LONG, 0),
        (HistoryLimits(most_turns=2), LONG[2:], 1),
        (HistoryLimits(most_turns=0), [], 3),
        (HistoryLimits(most_chars=12), LONG, 0),
        (HistoryLimits(most_chars=11), LONG[2:], 1),
        (HistoryLimits(most_chars=7), LONG[4:], 2),
        (HistoryLimits(most_chars=3), [], 3),
        (HistoryLimits(most_turns=1, most_chars=11), LONG[4:], 2),
    ],
)
def test_the_oldest_turns_are_left_out_whole(limits: HistoryLimits, sent: list[Any], left_out: int) -> None:
    found = sent_history(turn(LONG), limits, "my_chat.toml")
    assert (found.query.inputs["history"], found.left_out) == (sent, left_out)


def test_a_system_message_belongs_to_the_turn_that_it_begins_with() -> None:
    said = [{"role": "system", "content": "Be brief."}, *LONG]
    found = sent_history(Query("q1", "?", {"history": said}), HistoryLimits(most_turns=2), "my_chat.toml")
    assert found.query.inputs["history"] == LONG[2:]


@given(st.lists(st.text(max_size=5), max_size=12), st.integers(0, 30), st.integers(0, 6))
def test_what_is_sent_is_the_end_of_what_was_said_and_within_the_limits(said: list[str], chars: int, n: int) -> None:
    history = asked(*said)
    sent = sent_history(turn(history), HistoryLimits(n, chars), "x").query.inputs.get("history", [])
    assert sent == history[len(history) - len(sent) :]
    assert sum(len(each["content"]) for each in sent) <= chars
    assert sum(each["role"] == "user" for each in sent) <= n
    assert not sent or sent[0]["role"] == "user"


def test_what_the_harness_notes_of_a_message_is_not_sent() -> None:
    history = [*asked("q1"), {"role": "assistant", "content": "Sorry.", "failed": True}]
    for limits in (HistoryLimits(), HistoryLimits(most_turns=5)):
        assert sent_history(turn(history), limits, "x").query.inputs["history"] == asked("q1", "Sorry.")


def test_limits_need_messages() -> None:
    with pytest.raises(ModelCallError, match="the history of q1 is not a list of messages with role and content"):
        sent_history(Query("q1", "?", {"history": "so far"}), HistoryLimits(most_turns=1), "my_chat.toml")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("most_turns = -1", "most_turns is -1: expected a whole number, 0 or more"),
        ("most_turns = 1.5", "most_turns is 1.5: expected a whole number"),
        ('most_chars = "9"', "most_chars is '9': expected a whole number"),
        ("most = 3", "'most'"),
    ],
)
def test_limits_that_are_none_are_refused(tmp_path: Path, table: str, said: str) -> None:
    file = tmp_path / "my_chat.toml"
    file.write_text(f'url = "http://127.0.0.1/chat"\n[history]\n{table}\n')
    with pytest.raises(SettingsError) as error:
        read_endpoint(file)
    assert said in str(error.value)


def test_a_chat_service_needs_one_line_for_turns_and_the_row_says_what_was_left_out(tmp_path: Path) -> None:
    reply = {"choices": [{"message": {"content": "Sure."}}]}
    with serving(as_json(reply)) as server:
        spec = f'url = "{server.url}/v1/chat/completions"\nkind = "openai"\nmodel = "m"\nhistory.most_turns = 1\n'
        found = Service(tmp_path, spec).ask(turn(LONG))
        first = Service(tmp_path, spec).ask(turn([]))
    question = {"role": "user", "content": "and then?"}
    assert [each["messages"] for each in server.requests] == [[*LONG[4:], question], [question]]
    details = [next(stage.detail for stage in each.stages if stage.name == "ask") for each in (found, first)]
    assert [each.get("turns_left_out") for each in details] == [2, None]


def test_a_system_message_stands_before_the_messages(tmp_path: Path) -> None:
    body = json.dumps({"messages": [{"role": "system", "content": "Be brief."}, "{{*messages}}"]})
    with serving(as_json({"answer": "Sure."})) as server:
        Service(tmp_path, f"url = \"{server.url}/chat\"\nbody = '{body}'\n").ask(turn(LONG[:2]))
    said = server.requests[0]["messages"]
    assert [each["role"] for each in said] == ["system", "user", "assistant", "user"]


HISTORY = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
QUERY = Query("q1", 'say "it"', {"selected_text": "π", "history": HISTORY, "k": 5, "user": {"id": 7}})


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ({"query": "{{query}}"}, {"query": 'say "it"'}),
        ({"a": "Q: {{ query }}!"}, {"a": 'Q: say "it"!'}),
        ("{{query}} {{query_id}}", 'say "it" q1'),
        ({"k": "{{inputs.k}}"}, {"k": 5}),
        ({"k": "top {{inputs.k}}"}, {"k": "top 5"}),
        ({"id": "{{inputs.user.id}}"}, {"id": 7}),
        ({"h": "{{history}}"}, {"h": HISTORY}),
        ({"h": "so far: {{history}}"}, {"h": "so far: " + str(HISTORY).replace("'", '"')}),
        (["{{*history}}", "{{query}}"], [*HISTORY, 'say "it"']),
        (["{{*inputs.k}}"], [5]),
        (["{{*messages}}"], [*HISTORY, {"role": "user", "content": 'say "it"'}]),
        ([1, "{{*messages}}"], [1, *HISTORY, {"role": "user", "content": 'say "it"'}]),
        ({"m": "{{messages}}"}, {"m": [*HISTORY, {"role": "user", "content": 'say "it"'}]}),
        ({"all": "{{inputs}}"}, {"all": dict(QUERY.inputs)}),
        ({"a": "{{inputs.no?}}", "b": 1}, {"b": 1}),
        ({"a": "x{{inputs.no?}}y"}, {"a": "xy"}),
        (["{{*inputs.no?}}", "{{inputs.no?}}", 1], [1]),
        ({"deep": [{"x": ["{{query_id}}"]}]}, {"deep": [{"x": ["q1"]}]}),
        ({"n": 1, "t": True, "z": None, "s": "{query}"}, {"n": 1, "t": True, "z": None, "s": "{query}"}),
    ],
)
def test_places_are_filled(template: Any, filled: Any) -> None:
    assert Template(template, "a: body").fill(QUERY) == filled


@pytest.mark.parametrize("place", [{}, {"conversation": "c1", "turn": 1}])
def test_a_question_with_nothing_before_it_has_an_empty_history(place: dict[str, Any]) -> None:
    template = {"h": "{{history}}", "o": "{{history?}}", "m": ["{{*history}}", 1], "all": "{{messages}}"}
    filled = Template(template, "a: body").fill(Query("q1", "why?", place))
    assert filled == {"h": [], "m": [1], "all": [{"role": "user", "content": "why?"}]}


def test_messages_need_a_history_that_is_a_list() -> None:
    with pytest.raises(ModelCallError, match="history of q1 is not a list of messages"):
        Template("{{messages}}", "my_service: body").fill(Query("q1", "why?", {"history": "so far nothing"}))


def test_what_a_query_brings_is_no_template() -> None:
    query = Query("q1", "{{inputs.secret}} {{nope}} ${HOME}", {"secret": "s"})
    assert Template({"q": "{{query}}!"}, "a").fill(query) == {"q": query.text + "!"}


def test_an_address_is_quoted() -> None:
    assert (
        Template("http://h/s?q={{query}}&k={{inputs.k}}", "a: url").fill_url(QUERY) == "http://h/s?q=say%20%22it%22&k=5"
    )


def test_a_missing_input_is_named_with_those_that_there_are() -> None:
    with pytest.raises(ModelCallError) as error:
        Template({"x": "{{inputs.selection}}"}, "my_service: body").fill(QUERY)
    assert str(error.value) == (
        "my_service: body wants {{inputs.selection}}, and q1 has no such input; its inputs: history, k, selected_text, "
        "user. Where it may be missing: {{inputs.selection?}}."
    )


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ({"a": "{{qeury}}"}, "Unknown placeholder 'qeury'. Did you mean 'query'?"),
        (["{{question}}"], "Unknown placeholder 'question'."),
        ("{{query.text}}", "Unknown placeholder 'query.text'."),
        ("{{messages.last}}", "Unknown placeholder 'messages.last'."),
        ({"a": "{{}}"}, "{{}} is not a placeholder"),
        ({"a": "{{a b}}"}, "{{a b}} is not a placeholder"),
    ],
)
def test_an_unknown_place_is_refused_before_anything_is_sent(template: Any, said: str) -> None:
    with pytest.raises(SettingsError) as error:
        Template(template, "my_service: body")
    assert said in str(error.value)


# Services that keep conversations themselves: which session a question is sent in, and what is no session.

BODY = 'body = { message = "{{query}}", session = "{{session}}" }'
STATED = f'{BODY}\n[session]\npath = "session"\n'
CHOSEN = f'{BODY}\n[session]\nid = "{{{{conversation}}}}/{{{{uuid}}}}"\n'


@pytest.fixture
def server() -> Iterator[TalkingServer]:
    with talking_server() as found:
        yield found


def service(folder: Path, server: TalkingServer, more: str, path: str = "chat", **settings: Any) -> Service:
    return Service(folder, f'url = "{server.url}/{path}"\n{more}', **settings)


def turn_of_session(n: int, session: Any = None, conversation: str = "c1", failed: bool = False) -> Query:
    reply = {"role": "assistant", "content": "a", **({"failed": True} if failed else {})}
    history = [message for k in range(1, n) for message in ({"role": "user", "content": f"q{k}"}, reply)]
    told = {"history": history} if history else {}
    told |= {} if session is None else {SESSION: session}
    return Query(f"{conversation}#{n}", f"q{n}", {"conversation": conversation, "turn": n, **told})


def session_of(output: PipelineOutput) -> Any:
    return next(stage.detail.get(SESSION) for stage in output.stages if stage.name == "ask")


def test_a_turn_is_sent_alone_in_the_session_of_those_before_it(tmp_path: Path, server: TalkingServer) -> None:
    chat = service(tmp_path, server, STATED)
    first = chat.ask(turn_of_session(1))
    second = chat.ask(turn_of_session(2, session_of(first)))
    assert [each.answer.text for each in (first, second)] == ["1. q1 after nothing", "2. q2 after q1"]
    assert session_of(first) == session_of(second)
    sent = [json.loads(call.messages[0].content)["body"] for each in (first, second) for call in each.calls]
    assert sent == [{"message": "q1"}, {"message": "q2", "session": session_of(first)}]


def test_a_question_that_is_no_turn_has_a_session_of_its_own(tmp_path: Path, server: TalkingServer) -> None:
    chat = service(tmp_path, server, CHOSEN)
    sessions = [session_of(chat.ask(Query(name, "why?"))) for name in ("q1", "q2")]
    assert len(set(sessions)) == 2
    assert [re.fullmatch(r"q\d/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", each) is not None for each in sessions] == [
        True,
        True,
    ]


def test_an_id_keeps_its_type(tmp_path: Path, server: TalkingServer) -> None:
    ids = iter(range(7, 9))
    server.make = lambda: next(ids)
    chat = service(tmp_path, server, STATED)
    assert session_of(chat.ask(turn_of_session(1))) == 7
    assert chat.ask(turn_of_session(2, 7)).answer.text == "2. q2 after q1"


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("x" * 10_000, "finds a text of 10,000 characters; a session is a text of 1 to 2,000 characters"),
        (" ", "finds a text of 1 characters"),
        (1.5, "finds the number 1.5"),
        (True, "finds true"),
        (["a"], "finds a list of 1"),
        ({"id": "a"}, "finds an object with 'id'"),
        (None, "finds null"),
        (..., "finds nothing in the answer. At $ there is an object with 'answer'"),
    ],
)
def test_what_is_no_id_is_an_error_that_names_it(tmp_path: Path, server: TalkingServer, state: Any, said: str) -> None:
    server.state = lambda _session: state
    with pytest.raises(ModelOutputError) as error:
        service(tmp_path, server, STATED).ask(turn_of_session(1))
    assert f"my_service: session.path = 'session' {said}" in str(error.value)
    assert len(server.heard) == 1  # asking again would not help


def test_an_answer_after_the_first_may_leave_the_id_out_where_the_path_says_so(
    tmp_path: Path, server: TalkingServer
) -> None:
    chat = service(tmp_path, server, STATED.replace('"session"\n', '"session?"\n'))
    session = session_of(chat.ask(turn_of_session(1)))
    server.state = lambda _session: ...
    assert session_of(chat.ask(turn_of_session(2, session))) == session
    with pytest.raises(ModelOutputError, match="finds nothing in the answer"):
        service(tmp_path, server, STATED).ask(turn_of_session(3, session))
    with pytest.raises(ModelOutputError, match="finds nothing in the answer"):
        chat.ask(turn_of_session(1, conversation="c2"))


HEADER = 'body = { message = "{{query}}" }\nheaders = { x-session = "{{ session }}" }\n[session]\npath = "session"\n'


def test_a_session_may_stand_in_a_header(tmp_path: Path, server: TalkingServer) -> None:
    chat = service(tmp_path, server, HEADER)
    session = session_of(chat.ask(turn_of_session(1)))
    assert chat.ask(turn_of_session(2, session)).answer.text == "2. q2 after q1"


@pytest.mark.parametrize("session", ["a\r\nx-admin: 1", "naïve", "a\x00b"])
def test_what_no_header_may_have_is_not_sent_in_one(tmp_path: Path, server: TalkingServer, session: str) -> None:
    server.make = lambda: session
    chat = service(tmp_path, server, HEADER)
    assert session_of(chat.ask(turn_of_session(1))) == session
    with pytest.raises(ModelOutputError, match="cannot be in the header 'x-session'"):
        chat.ask(turn_of_session(2, session))
    assert len(server.heard) == 1
    # In a body it is a text like any other.
    body = service(tmp_path, server, STATED)
    assert body.ask(turn_of_session(2, session)).answer.text == "2. q2 after q1"


def test_a_session_is_opened_with_the_headers_of_the_service_and_stands_in_the_address(
    tmp_path: Path, server: TalkingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "planted-0123456789")
    ids = iter(["a b", "../c"])
    server.make = lambda: next(ids)
    spec = (
        'body = { message = "{{query}}" }\nheaders = { authorization = "Bearer ${MY_KEY}" }\n[session]\npath = "id"\n'
        'open = { url = "/v1/threads", body = { user = "eval" } }\n'
    )
    chat = service(tmp_path, server, spec, "threads/{{session}}")
    output = chat.ask(turn_of_session(1))
    assert session_of(output) == "a b"
    assert server.opened == [("Bearer planted-0123456789", {"user": "eval"})]
    assert f"{server.url}/threads/a%20b" in output.calls[0].messages[0].content
    assert session_of(chat.ask(turn_of_session(1, conversation="c2"))) == "../c"
    assert len(server.opened) == 2


def test_a_session_is_opened_at_the_service_and_nowhere_else(tmp_path: Path) -> None:
    spec = f'url = "http://127.0.0.1:1/chat"\n{BODY}\n[session]\npath = "id"\nopen = {{ url = "http://evil.test/x" }}\n'
    with pytest.raises(SettingsError, match=r"session\.open is at 'http://evil\.test/x', another host than url"):
        Service(tmp_path, spec)


def test_each_answer_may_name_the_session_of_the_next_turn(tmp_path: Path, server: TalkingServer) -> None:
    server.changes = True
    chat = service(tmp_path, server, STATED + "changes = true\n")
    first = chat.ask(turn_of_session(1))
    second = chat.ask(turn_of_session(2, session_of(first)))
    assert session_of(first) != session_of(second)
    assert chat.ask(turn_of_session(3, session_of(second))).answer.text == "3. q3 after q1, q2"


@pytest.mark.parametrize(
    ("unknown", "more", "said"),
    [
        ("new", "", "asked in 'gone', it answered in '"),
        ("404", "", "it answered with status 404"),
        ("400", "lost = \"$[?@.code=='no_such_session']\"", "finds an object with 'code'"),
        ("error", 'lost = "error.code"', "session.lost = 'error.code' finds text: 'no_such_session'"),
        ("take", 'lost = "is_new"', "session.lost = 'is_new' finds true"),
    ],
)
def test_a_session_that_was_forgotten_is_no_answer_and_no_recording(
    tmp_path: Path, server: TalkingServer, unknown: Any, more: str, said: str
) -> None:
    server.unknown = unknown
    chat = service(tmp_path, server, f"{STATED}{more}\n", mode="record")
    with pytest.raises(SessionLostError) as error:
        chat.ask(turn_of_session(2, "gone"))
    assert str(error.value).startswith("my_service has forgotten the session of c1#2: ")
    assert said in str(error.value)
    assert not list((tmp_path / "cassettes").rglob("*.yaml"))
    assert (
        chat.ask(turn_of_session(1)).answer.text == "1. q1 after nothing"
    )  # what the first turn says of itself is no loss


def test_a_turn_is_never_asked_without_the_memory_of_those_before_it(tmp_path: Path, server: TalkingServer) -> None:
    chat = service(tmp_path, server, STATED)
    with pytest.raises(SessionLostError, match="it is not known in which session the turns before c1#3 were asked"):
        chat.ask(turn_of_session(3))
    assert not server.heard
    # Where nothing was answered, there is nothing to remember.
    assert chat.ask(turn_of_session(2, failed=True)).answer.text == "1. q2 after nothing"


def test_conversations_and_repeats_never_share_a_session(tmp_path: Path, server: TalkingServer) -> None:
    server.make = lambda: "the-only-one"
    chat = service(tmp_path, server, STATED)
    chat.ask(turn_of_session(1))
    with pytest.raises(ModelOutputError, match="c2#1 has the session 'the-only-one', and so has 'c1'"):
        chat.ask(turn_of_session(1, conversation="c2"))
    with asked_again(1), pytest.raises(ModelOutputError, match="c1#1 has the session 'the-only-one', and so has 'c1'"):
        chat.ask(turn_of_session(1))
    assert chat.ask(turn_of_session(2, "the-only-one")).answer.text.endswith("q2 after q1, q1, q1")


def test_sessions_of_an_earlier_run_are_gone_on_in_where_their_loss_would_be_seen(
    tmp_path: Path, server: TalkingServer
) -> None:
    server.unknown = "take"
    with asked_in("earlier"):
        for spec in (STATED, CHOSEN + 'lost = "gone"\n', CHOSEN + "resumes = true\n"):
            service(tmp_path, server, spec).ask(turn_of_session(2, "s"))
        for spec in (CHOSEN, STATED + "resumes = false\n"):
            with pytest.raises(SessionLostError, match="would not say that it has forgotten them"):
                service(tmp_path, server, spec).ask(turn_of_session(2, "s"))
    assert len(server.heard) == 3


def test_recordings_go_by_what_was_said_and_not_by_the_session(tmp_path: Path, server: TalkingServer) -> None:
    chat = service(tmp_path, server, STATED, mode="record")
    first = chat.ask(turn_of_session(1))
    session = session_of(first)
    chat.ask(turn_of_session(2, session))
    kept = {file.read_text() for file in (tmp_path / "cassettes").rglob("*.yaml")}
    assert len(kept) == 2
    sent = [text.partition("response:")[0] for text in kept]
    assert not any(session in each for each in sent)
    replay = service(tmp_path, server, STATED, mode="replay")
    assert replay.ask(turn_of_session(1)).answer.text == first.answer.text
    assert replay.ask(turn_of_session(2, "another")).answer.text == "2. q2 after q1"
    assert len(server.heard) == 2
    # Another answer before it, or another conversation, is another question.
    changed = turn_of_session(2, session)
    changed.inputs["history"][1]["content"] = "b"
    for other in (changed, turn_of_session(1, conversation="c2")):
        assert not replay.pipeline.is_recorded(other)
    assert not replay.pipeline.is_recorded(turn_of_session(2))


def test_a_recording_of_another_session_is_not_gone_on_from(tmp_path: Path, server: TalkingServer) -> None:
    chat = service(tmp_path, server, STATED, mode="record")
    first = session_of(chat.ask(turn_of_session(1)))
    chat.ask(turn_of_session(2, first))
    with asked_in("restarted"):
        second = session_of(chat.ask(turn_of_session(1)))
    assert second != first
    assert chat.ask(turn_of_session(2, second)).answer.text == "2. q2 after q1"
    assert [session for session, _ in server.heard] == [first, first, second, second]
    assert session_of(chat.ask(turn_of_session(2, second))) == second
    assert len(server.heard) == 4


def test_no_history_is_sent_and_none_can_be(tmp_path: Path, server: TalkingServer) -> None:
    body = 'body = { message = "{{query}}", session = "{{session}}", all = "{{inputs}}" }'
    chat = service(tmp_path, server, STATED.replace(BODY, body))
    session = session_of(chat.ask(turn_of_session(1)))
    output = chat.ask(turn_of_session(2, session))
    sent = json.loads(output.calls[0].messages[0].content)["body"]
    assert sent["all"] == {"conversation": "c1", "turn": 2}


def test_what_a_user_says_is_no_placeholder(tmp_path: Path, server: TalkingServer) -> None:
    chat = service(tmp_path, server, CHOSEN)
    query = Query("{{uuid}}", "{{session}}")
    assert session_of(chat.ask(query)).startswith("{{uuid}}/")
    assert server.messages == ["{{session}}"]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (f"{BODY}\n[session]\n", "neither path nor id"),
        (f'{BODY}\n[session]\npath = "a"\nid = "{{{{uuid}}}}"\n', "both path and id"),
        (f'{BODY}\n[session]\nid = "my-{{{{conversation}}}}"\n', 'Write id = "my-{{conversation}}-{{uuid}}"'),
        (f'{BODY}\n[session]\nid = "{{{{uuid}}}}"\nchanges = true\n', "both id and changes"),
        (f'{BODY}\n[session]\nid = "{{{{uuid}}}}"\nopen = {{ url = "/s" }}\n', "both id and open"),
        (f'{BODY}\n[session]\npath = "a"\nchanges = true\nopen = {{ url = "/s" }}\n', "both open and changes"),
        (f'{BODY}\n[session]\npath = "a"\nopen = {{}}\n', "open has no url"),
        (f'{BODY}\n[session]\npath = "a"\nopen = "/s"\n', "expected a table, open = "),
        (f'{BODY}\n[session]\npath = "a"\nresumes = "no"\n', "resumes is 'no': expected true or false"),
        (f'{BODY}\n[session]\npath = "a"\npaht = "b"\n', "Did you mean 'path'?"),
        (f'{BODY}\nsession = "a"\n', "session is 'a': expected a table"),
        ('[session]\npath = "a"\n', "the session is never sent. Put {{session}} where the service looks for it"),
        (f'{BODY}\nhistory.most_turns = 2\n[session]\npath = "a"\n', "has [session] and [history]"),
        (
            'body = { m = "{{messages}}", s = "{{session}}" }\n[session]\npath = "a"\n',
            "has [session] and {{messages}} in its body",
        ),
    ],
)
def test_a_table_that_cannot_be_used_is_refused(tmp_path: Path, spec: str, said: str) -> None:
    file = tmp_path / "my_chat.toml"
    file.write_text(f'url = "http://127.0.0.1/chat"\n{spec}')
    with pytest.raises(SettingsError) as error:
        read_endpoint(file)
    assert said in str(error.value)


def test_an_address_needs_a_session_from_the_first_turn_on(tmp_path: Path) -> None:
    file = tmp_path / "my_chat.toml"
    table = '\n[session]\npath = "a"\n'
    file.write_text(f'url = "http://127.0.0.1/s/{{{{session}}}}"{table}')
    with pytest.raises(SettingsError, match="the first turn of a conversation has none yet"):
        read_endpoint(file)
    for fit in (
        f'url = "http://127.0.0.1/s?at={{{{session?}}}}"{table}',
        f'{file.read_text()}open = {{ url = "/s" }}\n',
    ):
        file.write_text(fit)
        assert read_endpoint(file).session


def test_a_placeholder_of_a_session_needs_the_table(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"A service that keeps conversations has \[session\]"):
        Service(tmp_path, f'url = "http://127.0.0.1/chat"\n{BODY}\n')


def test_a_chat_endpoint_with_a_memory_is_sent_the_question_alone(tmp_path: Path) -> None:
    file = tmp_path / "my_chat.toml"
    file.write_text(
        'url = "http://127.0.0.1/v1/chat/completions"\nkind = "openai"\nmodel = "m"\n'
        'headers = { x-session = "{{session}}" }\nsession.id = "{{uuid}}"\n'
    )
    assert json.loads(read_endpoint(file).body)["messages"] == [{"role": "user", "content": "{{query}}"}]
