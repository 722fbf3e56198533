from __future__ import annotations

from typing import Any

import pytest

from rag_harness.core.errors import ModelCallError, ModelOutputError
from rag_harness.core.settings.endpoints import AnswerPaths
from rag_harness.core.types import Chunk, Hit, Usage
from rag_harness.pipelines.endpoint.answer import AnswerReader, Context, ServiceAnswer, answer_of, finish_reason_of
from rag_harness.pipelines.user_pipelines import declined

SAID: Any = {
    "answer": "45 days",
    "contexts": [
        {"text": "one", "id": 7, "document": "returns.md", "score": 0.5},
        {"text": "two", "meta": {"source": "b.md"}},
        "three",
    ],
    "sure": 0.75,
    "verdict": "pass",
    "usage": {"in": 12, "out": 3},
    "none": None,
    "error": None,
}


def reader(**paths: str) -> AnswerReader:
    return AnswerReader(AnswerPaths(**paths), "my_service")


def test_everything_that_can_be_said_is_read() -> None:
    found = reader(
        contexts="contexts",
        document="document?",
        confidence="sure",
        decision="verdict",
        usage_prompt="usage.in",
        usage_completion="usage.out",
        error="error",
    ).read(SAID)
    first, second, third = found.contexts
    assert first == Context("one", "7", "returns.md", 0.5)
    assert (second, third) == (Context("two"), Context("three"))
    assert (found.answer, found.confidence, found.decision) == ("45 days", 0.75, "pass")
    assert (found.usage_prompt, found.usage_completion) == (12, 3)


def test_the_items_of_a_list_may_stand_apart() -> None:
    found = reader(contexts="$.contexts[0,1].text").read(SAID)
    assert [context.text for context in found.contexts] == ["one", "two"]
    assert reader(contexts="$.nowhere[*]?").read(SAID).contexts == ()
    groups = {"answer": "x", "groups": [{"hits": ["a", "b"]}, {"hits": ["c"]}]}
    assert [context.text for context in reader(contexts="$.groups[*].hits").read(groups).contexts] == ["a", "b", "c"]
    assert reader(contexts="none").read(SAID).contexts == ()


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        (
            {"answer": "reply"},
            "read.answer = 'reply' finds nothing in the answer. At $ there is an object with 'answer'",
        ),
        (
            {"answer": "contexts"},
            "finds a list of 3, first an object with 'text', 'id', 'document', 'score'; expected text",
        ),
        ({"answer": "sure"}, "finds the number 0.75; expected text"),
        ({"answer": "none"}, "finds null; expected text"),
        ({"answer": "$.contexts[0,1].text"}, "expected one thing; the path finds several"),
        ({"contexts": "answer"}, "finds text: '45 days'; expected a list"),
        ({"contexts": "usage"}, "finds an object with 'in', 'out'; expected a list"),
        ({"contexts": "hits"}, "read.contexts = 'hits' finds nothing"),
        ({"contexts": "contexts", "text": "body"}, "context 1: read.text = 'body' finds nothing. At $ there is an"),
        ({"contexts": "contexts", "score": "text"}, "read.score = 'text' finds text: 'one'; expected a number"),
        ({"contexts": "$.usage.*"}, "context 1 is the number 12, and nothing is read of it: text = 'text?', id"),
        ({"confidence": "usage.in"}, "expected a number from 0 to 1"),
        ({"confidence": "verdict"}, "expected a number"),
        ({"decision": "sure"}, "expected text"),
        ({"usage_prompt": "sure"}, "expected a whole number"),
        ({"citations": "answer"}, "expected a list of places"),
        ({"citations": "contexts"}, "expected a list of places"),
        ({"abstained": "sure"}, "expected true or false"),
    ],
)
def test_what_is_missing_or_of_another_kind_is_named(paths: dict[str, str], said: str) -> None:
    with pytest.raises(ModelOutputError) as error:
        reader(**paths).read(SAID)
    assert said in str(error.value)
    assert error.value.raw.startswith('{"answer": "45 days"')


def test_an_empty_answer_is_none_unless_it_may_be() -> None:
    with pytest.raises(ModelOutputError, match=r"expected an answer. Where it may be empty: answer\?"):
        reader().read({"answer": " "})
    assert reader(answer="answer?").read({"answer": ""}).answer == ""
    assert reader(answer="answer?").read({}).answer == ""


def test_an_error_of_the_service_is_its_own() -> None:
    with pytest.raises(ModelCallError, match="my_service says that it failed: no index"):
        reader(error="error").read({"answer": "x", "error": {"message": "no index"}})
    with pytest.raises(ModelCallError, match="busy"):
        reader(error="error").read({"error": "busy"})
    assert reader(error="error").read({"answer": "x"}).answer == "x"


def test_fields_are_shown_one_by_one() -> None:
    fields = {field.name: field for field in reader(answer="reply", confidence="sure").fields(SAID)}
    assert "finds nothing" in fields["answer"].problem
    assert fields["confidence"].value == 0.75


def test_usage_never_fails() -> None:
    paths = reader(usage_prompt="usage.in", usage_completion="verdict")
    assert paths.usage(SAID) == Usage(12, 0, calls=1)
    assert reader(usage_prompt="nowhere").usage([]) == Usage(0, 0, calls=1)


def hits(*documents: str) -> list[Hit]:
    return [Hit(Chunk(f"{name}#{n}", name, "t"), 1.0, n) for n, name in enumerate(documents, 1)]


def test_citations_are_places_or_names() -> None:
    said = ServiceAnswer("x", (Context("a", "c1", "a.md"), Context("b", "c2", "b.md")), (2, "c1", "b.md", "x.md", 9))
    answer = answer_of(said, hits("a.md", "b.md"))
    assert (answer.citations, answer.invalid_citations) == ((2, 1), (3, 9))


def test_without_a_path_the_sources_that_the_text_names_are_cited() -> None:
    answer = answer_of(ServiceAnswer("so [Source 2], but [Source 5]"), hits("a.md", "b.md"))
    assert (answer.citations, answer.invalid_citations) == ((2,), (5,))


def test_abstaining_is_said_by_the_service_or_in_the_usual_words() -> None:
    assert declined(answer_of(ServiceAnswer("I don't know."), ()))
    assert not answer_of(ServiceAnswer("I don't know.", abstained=False), ()).abstained
    assert answer_of(ServiceAnswer("Sorry!", abstained=True), ()).abstained


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"choices": [{"finish_reason": "length"}]}, "length"),
        ({"stop_reason": "max_tokens"}, "max_tokens"),
        ({"choices": [], "finish_reason": None}, ""),
        ({"choices": "odd"}, ""),
        (["a list"], ""),
    ],
)
def test_why_a_model_stopped_is_read_as_the_usual_apis_say_it(document: Any, reason: str) -> None:
    assert finish_reason_of(document) == reason
