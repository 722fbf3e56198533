from __future__ import annotations

from typing import Any

import pytest

from rag_harness.core.errors import ModelCallError, SettingsError
from rag_harness.core.types import Query
from rag_harness.pipelines.endpoint.requests import Template

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
