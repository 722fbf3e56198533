"""What a service is sent of a conversation: role and content, and no more than its limits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import ModelCallError, SettingsError
from rag_harness.core.settings.endpoints import HistoryLimits, read_endpoint
from rag_harness.core.types import Query
from rag_harness.pipelines.endpoint.requests import Template, sent_history
from tests.unit.pipelines.endpoint.services import Service
from tests.unit.server import as_json, serving

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
    with pytest.raises(ModelCallError, match="the history of q1 is no list of messages with role and content"):
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
    with pytest.raises(ModelCallError, match="history of q1 is no list of messages"):
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
        ({"a": "{{}}"}, "{{}} is no placeholder"),
        ({"a": "{{a b}}"}, "{{a b}} is no placeholder"),
    ],
)
def test_an_unknown_place_is_refused_before_anything_is_sent(template: Any, said: str) -> None:
    with pytest.raises(SettingsError) as error:
        Template(template, "my_service: body")
    assert said in str(error.value)
