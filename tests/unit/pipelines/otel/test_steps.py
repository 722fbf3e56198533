"""What a trace tells becomes steps, hits and context; what it should tell and does not is an error with its reason."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import TraceError
from rag_harness.core.types import StepKind
from rag_harness.pipelines.otel.spans import SpanRecord
from rag_harness.pipelines.otel.steps import MOST_SPANS, FoundDocument, SeenStep, SeenTrace, outcome_of, read_trace
from tests.effort import instructions
from tests.unit.pipelines.otel.spans import genai, model, reranker, search, span

LAMP = "You can return a lamp within 45 days of its delivery"
BULB = "You can return a bulb within 10 days of its delivery"
RUG = "Rugs are sent by freight to every address on the mainland"


def ids(seen: SeenTrace, numbers: list[int]) -> list[str]:
    return [seen.outcome.documents[at].id for at in numbers]


def kinds(seen: SeenTrace) -> list[str]:
    return [step.kind for step in seen.steps]


def test_a_search_and_a_call_are_steps_and_the_prompt_says_what_was_given() -> None:
    spans = [
        search("s", {"a": LAMP, "b": BULB}, at=(0, 10), query="return a lamp"),
        model("m", f"Answer by this: {LAMP}", "45 days", at=(10, 30), llm__token_count__prompt=12),
    ]
    seen = read_trace(spans, "45 days")
    assert kinds(seen) == ["retrieve", "generate"]
    assert seen.steps[0].input == "return a lamp"
    assert [step.ms for step in seen.steps] == [10, 20]
    assert ids(seen, [*seen.outcome.first]) == ["a", "b"]
    assert ids(seen, [*seen.given]) == ["a"]
    assert seen.by_prompt


def test_steps_stand_in_the_order_in_which_they_began_whatever_the_order_of_the_spans() -> None:
    spans = [
        model("m", "", "x", at=(20, 30)),
        search("s2", {"b": BULB}, at=(10, 15), query="second"),
        search("s1", {"a": LAMP}, at=(0, 5), query="first"),
    ]
    seen = read_trace(spans, "x")
    assert [step.input for step in seen.steps[:2]] == ["first", "second"]
    assert ids(seen, [*seen.outcome.first]) == ["a", "b"]
    assert not seen.by_prompt
    assert ids(seen, [*seen.given]) == ["a", "b"]


def test_more_than_ten_documents_keep_their_order() -> None:
    # As texts "10" comes before "2".
    found = {f"d{n:02}": f"the text of document number {n} is its own" for n in range(12)}
    seen = read_trace([search("s", found)], "")
    assert ids(seen, [*seen.outcome.first]) == list(found)


def test_a_reranker_orders_what_is_given_and_the_first_stage_stays_as_it_was() -> None:
    spans = [
        search("s", {"a": LAMP, "b": BULB, "c": RUG}, at=(0, 5)),
        reranker("r", {"c": RUG, "a": LAMP}, at=(5, 9)),
    ]
    seen = read_trace(spans, "")
    assert kinds(seen) == ["retrieve", "rerank"]
    assert ids(seen, [*seen.outcome.first]) == ["a", "b", "c"]
    assert ids(seen, [*seen.given]) == ["c", "a"]


def test_a_search_around_others_comes_after_them_though_it_began_before() -> None:
    spans = [
        search("outer", {"b": BULB, "a": LAMP}, at=(0, 9), query="lamp"),
        search("s1", {"a": LAMP}, at=(1, 3), parent="outer", query="lamp"),
        search("s2", {"b": BULB}, at=(3, 5), parent="outer", query="bulb"),
        model("m", f"{BULB} {LAMP}", "x", at=(9, 12)),
    ]
    assert [step.span.span_id for step in read_trace(spans, "x").steps] == ["s1", "s2", "outer", "m"]


def test_genai_documents_without_text_count_by_their_ids() -> None:
    found = [{"id": "a", "score": 0.9}, {"id": "b", "score": 0.2}]
    spans = [
        genai("s", "retrieval", at=(0, 2), gen_ai__retrieval__query__text="lamp", gen_ai__retrieval__documents=found),
        genai("m", "chat", at=(2, 4), gen_ai__request__model="m", gen_ai__usage__input_tokens=7),
    ]
    seen = read_trace(spans, "x")
    assert kinds(seen) == ["retrieve", "generate"]
    assert ids(seen, [*seen.given]) == ["a", "b"]
    call = seen.steps[1].model_call
    assert call is not None
    assert call.call.usage.prompt_tokens == 7


def test_a_tool_is_a_step_with_its_name_and_its_arguments() -> None:
    tool = genai(
        "t",
        "execute_tool",
        gen_ai__tool__name="get_order",
        gen_ai__tool__call__arguments={"order": 7},
        gen_ai__tool__call__result={"state": "sent"},
    )
    (step,) = read_trace([tool], "x").steps
    assert (step.kind, step.name, step.input, step.output) == ("tool", "get_order", {"order": 7}, {"state": "sent"})


def test_nothing_found_is_told_by_an_empty_list() -> None:
    seen = read_trace([search("s", {})], "x")
    assert kinds(seen) == ["retrieve"]
    assert list(seen.outcome.first) == []


@pytest.mark.parametrize(
    ("spans", "said"),
    [
        ([span("s", openinference__span__kind="RETRIEVER", input__value="lamp")], "does not tell what it returned"),
        ([genai("s", "retrieval")], "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"),
        ([span("s"), span("u", name="GET /")], "('s', 'GET /'), and none says"),
        ([replace(search("s", {"a": LAMP}), dropped=12)], "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT"),
        ([search("s", {"": "__REDACTED__"})], "Its words are hidden: unset OPENINFERENCE_HIDE"),
        ([search("s", {"": ""})], "neither an id nor words"),
        ([replace(model("m", "a", "b"), dropped_events=3)], "OTEL_SPAN_EVENT_COUNT_LIMIT"),
        ([span(f"s{n}", openinference__span__kind="CHAIN") for n in range(MOST_SPANS + 1)], "no trial has more than"),
    ],
)
def test_what_a_row_would_lack_is_an_error(spans: list[object], said: str) -> None:
    with pytest.raises(TraceError) as raised:
        read_trace(spans, "x")  # type: ignore[arg-type]
    assert said in str(raised.value)


def test_a_search_that_failed_found_nothing_and_says_so() -> None:
    failed = replace(span("s", openinference__span__kind="RETRIEVER"), failed=True, message="no connection")
    (step,) = read_trace([failed], "x").steps
    assert step.found == ()
    assert step.detail == {"failed": "no connection"}


def test_two_spans_of_one_call_count_once_with_what_either_tells() -> None:
    outer = span("o", at=(0, 9), openinference__span__kind="LLM", llm__token_count__prompt=12, llm__model_name="m")
    inner = genai("i", "chat", "o", (1, 8), gen_ai__request__model="m-1", gen_ai__usage__output_tokens=3)
    (step,) = read_trace([outer, inner], "x").steps
    assert step.model_call is not None
    usage = step.model_call.call.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.calls) == (12, 3, 1)


def test_what_a_model_was_not_about_is_no_call() -> None:
    # Haystack marks the filling of a template so.
    template = span("p", openinference__span__kind="LLM", output__value="Answer by …")
    assert read_trace([template, search("s", {"a": LAMP})], "x").steps[0].kind == "retrieve"
    assert len(read_trace([template, search("s", {"a": LAMP})], "x").steps) == 1


def test_two_spans_of_one_call_of_a_tool_are_one_step_and_two_calls_are_two() -> None:
    def of_llamaindex(key: str, query: str, parent: str = "") -> SpanRecord:
        told = json.dumps({"kwargs": {"query": query}})
        said = json.dumps({"blocks": [{"text": "two years"}], "tool_name": "look_up", "raw_input": {}})
        kind: dict[str, Any] = {"openinference__span__kind": "TOOL", "tool__name": "look_up"}
        return span(key, parent, (0, 1), **kind, input__value=told, output__value=said)

    spans = [
        of_llamaindex("o", "a"),
        of_llamaindex("i", "a", "o"),
        of_llamaindex("p", "b"),
        of_llamaindex("q", "c", "p"),
    ]
    steps = read_trace(spans, "x").steps
    assert [(step.name, step.input, step.output) for step in steps] == [
        ("look_up", {"query": query}, "two years") for query in ("a", "b", "c")
    ]


@pytest.mark.parametrize("given", [{"kwargs": {}, "args": ["a"]}, {"args": [], "more": 1}, {"kwargs": "a"}, [1]])
def test_arguments_that_only_look_wrapped_stay_as_they_are(given: object) -> None:
    tool = span("t", openinference__span__kind="TOOL", input__value=json.dumps(given))
    assert read_trace([tool], "x").steps[0].input == given


def untold(key: str, parent: str = "", kind: str = "RETRIEVER") -> SpanRecord:
    return span(key, parent, (1, 4), openinference__span__kind=kind, input__value="lamp")


@pytest.mark.parametrize("documents", [["lamp.md"], [{"id": "a"}, "lamp.md"], [None], [7]])
def test_documents_that_are_no_objects_are_an_error(documents: list[object]) -> None:
    with pytest.raises(TraceError, match=r"Document \d in gen_ai.retrieval.documents of span 's' is a \w+, and no obj"):
        read_trace([genai("s", "retrieval", gen_ai__retrieval__documents=documents)], "x")


@pytest.mark.parametrize("told_around", [True, False])
def test_a_search_that_tells_nothing_beside_one_that_tells_is_an_error(told_around: bool) -> None:
    around = search("o", {"a": LAMP, "b": BULB}, at=(0, 9)) if told_around else untold("o")
    with pytest.raises(TraceError, match=r"Span 'silent' .* does not tell what it returned"):
        read_trace([around, search("s", {"a": LAMP}, "o", (1, 2)), untold("silent", "o")], "x")


@pytest.mark.parametrize("inner", [search("s", {"a": LAMP}, "o", (1, 2)), reranker("s", {"a": LAMP}, "o", (1, 2))])
def test_a_wrapper_around_what_tells_its_hits_is_no_step(inner: SpanRecord) -> None:
    seen = read_trace([untold("o"), inner], "x")
    assert [step.span.span_id for step in seen.steps] == ["s"]


def test_a_part_of_a_search_that_tells_its_hits_is_no_step() -> None:
    seen = read_trace([search("o", {"a": LAMP}, at=(0, 9)), untold("part", "o"), untold("part of it", "part")], "x")
    assert [step.span.span_id for step in seen.steps] == ["o"]


def test_a_reranker_around_a_search_that_tells_not_what_it_kept_is_an_error() -> None:
    with pytest.raises(TraceError, match=r"Span 'o' .* does not tell what it returned"):
        read_trace([untold("o", kind="RERANKER"), search("s", {"a": LAMP}, "o", (1, 2))], "x")


def words(text: str) -> str:
    return " ".join(f"{text}{n}" for n in range(40))


def test_a_prompt_in_which_nothing_stands_of_what_was_found_gave_nothing() -> None:
    spans = [search("s", {"a": LAMP}, at=(0, 2)), model("m", "How long can I return a lamp?", "x", at=(3, 9))]
    seen = read_trace(spans, "x")
    assert (list(seen.given), seen.by_prompt) == ([], True)
    assert seen.read_off == "the prompt, in which nothing stands of what was found"


def test_without_a_prompt_the_last_search_counts() -> None:
    spans = [search("s", {"a": LAMP}, at=(0, 2)), model("m", "", "x", at=(3, 9))]
    seen = read_trace(spans, "x")
    assert (ids(seen, [*seen.given]), seen.read_off) == (["a"], "the last search")


@pytest.mark.parametrize("given", [["a"], ["b"], ["b", "a"]])
def test_chunks_that_begin_alike_are_told_apart_by_what_follows(given: list[str]) -> None:
    # Chunks of one page often begin with its title and its path.
    found = {"a": f"{words('head')} {LAMP}", "b": f"{words('head')} {BULB}", "c": f"{words('head')} and more"}
    prompt = "\n\n".join(found[key] for key in given)
    seen = read_trace([search("s", found, at=(0, 2)), model("m", prompt, "x", at=(3, 9))], "x")
    assert ids(seen, [*seen.given]) == given


def test_chunks_that_the_prompt_has_cut_before_they_differ_may_each_be_meant() -> None:
    found = {"a": f"{words('head')} {LAMP}", "b": f"{words('head')} {BULB}"}
    seen = read_trace([search("s", found, at=(0, 2)), model("m", words("head"), "x", at=(3, 9))], "x")
    assert ids(seen, [*seen.given]) == ["a", "b"]


def test_words_that_json_has_escaped_are_found_in_a_prompt() -> None:
    text = "Für die Rückgabe\tgelten fünfundvierzig Tage"
    spans = [search("s", {"a": text}, at=(0, 2)), model("m", json.dumps({"found": text}), "x", at=(3, 9))]
    assert ids(read_trace(spans, "x"), [0]) == ["a"]
    assert list(read_trace(spans, "x").given) == [0]


@pytest.mark.parametrize("around", [False, True])
def test_what_a_reranker_was_given_is_still_there_when_it_fails(around: bool) -> None:
    failed = replace(reranker("r", {}, at=(0, 9) if around else (5, 9)), failed=True, message="no memory")
    seen = read_trace([search("s", {"a": LAMP}, "r" if around else "", (1, 4)), failed], "x")
    assert ids(seen, [*seen.given]) == ["a"]
    assert seen.read_off == "the last search, for r failed: what went on is unknown"
    assert seen.steps[1].detail == {"failed": "no memory"}


def test_a_number_of_tokens_that_is_none_is_no_tokens() -> None:
    (step,) = read_trace([model("m", "a", "b", llm__token_count__prompt=10**400)], "b").steps
    assert step.model_call is not None
    assert step.model_call.call.usage.prompt_tokens == 0


def test_dropped_events_of_what_is_no_work_lose_nothing() -> None:
    chatty = replace(span("c", openinference__span__kind="CHAIN"), dropped_events=3)
    assert read_trace([chatty, search("s", {"a": LAMP})], "x").steps[0].kind == "retrieve"


# What many searches and rerankers come to is what a plain rule says of them, in time that grows with them alone.

Did = Sequence[tuple[StepKind, Sequence[int]]]


def steps(did: Did) -> list[SeenStep]:
    return [
        SeenStep(
            SpanRecord(kind, "t", str(at), end_ns=at), kind, kind, found=tuple(FoundDocument(id=str(n)) for n in found)
        )
        for at, (kind, found) in enumerate(did)
    ]


def plainly(did: Did) -> tuple[list[str], list[str]]:
    """Return first and left by lists that are looked through."""
    first: list[list[int]] = []
    left: list[list[int]] = []
    for kind, found in did:
        for lists, replaces, keeps in ((first, kind == "", True), (left, kind != "retrieve", False)):
            if lists is first and kind == "rerank":
                continue
            shared = [each for each in lists if set(each) & set(found)] or lists[-1:] if replaces else []
            lists[:] = [each for each in lists if not any(each is used for used in shared)]
            lists.append(list(dict.fromkeys([*found, *(n for each in shared for n in each if keeps)])))
    return tuple([*dict.fromkeys(str(n) for each in lists for n in each)] for lists in (first, left))  # type: ignore[return-value]


@given(st.lists(st.tuples(st.sampled_from(["retrieve", "rerank", ""]), st.lists(st.integers(0, 9), max_size=4))))
def test_searches_come_to_what_a_plain_rule_says(did: Did) -> None:
    outcome = outcome_of(steps(did))
    names = [document.id for document in outcome.documents]
    assert ([names[at] for at in outcome.first], [names[at] for at in outcome.left]) == plainly(did)


def test_the_work_is_linear_in_the_steps() -> None:
    def work(searches: int) -> int:
        did: list[tuple[StepKind, Sequence[int]]] = [
            ("retrieve", range(n, n + 10)) for n in range(0, searches * 10, 10)
        ]
        did += [(kind, range(n, n + 10)) for n in range(0, searches * 10, 10) for kind in ("rerank", "")]
        made = steps(did)
        return instructions(lambda: outcome_of(made))

    # Looking through all lists for each step takes fourteen times as many.
    assert work(200) < 5 * work(50)
