"""Questions from a writer model: faults are named to it, at most three times, and what it cannot mend is dropped."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from rag_harness.__main__ import CANNOT_RUN, main
from rag_harness.authoring.drafting import PATIENCE
from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.generator import GeneratedQuestions
from rag_harness.authoring.questions.llm_writer import Writer, gives
from rag_harness.authoring.questions.review.rows import ReviewFile, rejected
from rag_harness.core.errors import BudgetError, ModelCallError
from rag_harness.core.types import Completion, Document, Message, Usage
from rag_harness.data.queries import read_queries
from rag_harness.models.prompts import TRIES, load_prompts
from tests.plugin.counting_server import CountingServer, counting_server
from tests.unit.authoring.questions.shop import PAGES, documents, folder
from tests.unit.authoring.questions.test_filters import GOOD

SEAL = "If the parcel seal is broken, we refund half of the price."
FERRY = "If the ferry is cancelled, we call the recipient first."
SAID = {
    "returns.md": ("My box came with the seal torn. What do I get back?", SEAL),
    "delivery.md": ("The ferry to us is not going. Who do you phone?", FERRY),
    "club.md": ("When does an evening of the club stop?", "Club evenings end at 21:30."),
}


def written(source: str) -> str:
    question, quote = SAID[source]
    return json.dumps({"question": question, "answer": quote, "quotes": [{"filename": source, "quote": quote}]})


class Model:
    """Writes well, answers from what it is given, and knows nothing; ``says`` replaces what it writes."""

    model = "stub"

    def __init__(self, says: Callable[[str, int], str | Exception] | None = None, knows: bool = False) -> None:
        self.asked: list[list[Message]] = []
        self._says, self._knows = says, knows

    async def complete(
        self, messages: Sequence[Message], response_format: Mapping[str, Any] | None = None
    ) -> Completion:
        assert response_format is None
        self.asked.append(list(messages))
        said = self._reply(list(messages))
        if isinstance(said, Exception):
            raise said
        return Completion(said, self.model, Usage(), 1.0)

    def _reply(self, messages: list[Message]) -> str | Exception:
        system, user = messages[0].content, messages[1].content
        if not system.startswith("You write questions"):
            return user if "[" in user else "Half of the price is refunded." if self._knows else "UNKNOWN"
        (source, *_) = re.findall(r"\[Source \d: ([\w.]+)\]", user)
        tries = sum(message.role == "assistant" for message in messages)
        return written(source) if self._says is None else self._says(source, tries)


def ask(model: Model, seed: int = 0, at_once: int = 4, **wanted: int) -> GeneratedQuestions:
    collection = DocumentCollection(documents())
    return asyncio.run(Writer(model, load_prompts("questions"), collection, at_once).ask(wanted, seed))


def test_what_is_sound_is_taken_and_says_who_wrote_it() -> None:
    found = ask(Model(), direct=3)
    assert {draft.text for draft in found.drafts} == {question for question, _ in SAID.values()}
    assert all(draft.made_of == ("llm",) for draft in found.drafts)
    assert not found.short


PROSE = "Here is a question for you: when do evenings end?"


@pytest.mark.parametrize(
    ("first", "named"),
    [
        (PROSE, "it is not what was asked for"),
        ("", "the reply is empty"),
        ("x" * 1_000_000, "it is not what was asked for"),
        ('{"question": 3}', "it is not what was asked for"),
        ('{"question": ' + "[" * 19_000, "it is not what was asked for"),
        ('{"question": " ", "answer": "b", "quotes": []}', "question or answer is empty"),
        (written("club.md").replace("21:30", "21:3O"), "the evidence is not in the page"),
        (json.dumps({"question": "When?", "answer": "21:30", "quotes": []}), "quotes must be of"),
        (written("returns.md"), "quotes must be of"),
        (written("club.md").replace("stop?", "stop according to this page?"), "points at something outside"),
    ],
)
def test_a_fault_is_named_and_asked_again(first: str, named: str) -> None:
    model = Model(lambda source, tries: written(source) if tries or source != "club.md" else first)
    found = ask(model, direct=3)
    assert len(found.drafts) == 3
    again = [messages for messages in model.asked if len(messages) > 2]
    assert len(again) == 1
    assert named in again[0][-1].content


def test_after_three_tries_it_is_dropped_with_its_last_fault() -> None:
    model = Model(lambda *_: PROSE)
    found = ask(model, direct=2)
    assert found.drafts == []
    assert found.short == {"direct": 2}
    ((fault, count),) = found.dropped.items()
    assert "not what was asked for" in fault
    assert len(model.asked) == TRIES * count


def test_the_same_question_a_hundred_times_is_taken_once() -> None:
    same = json.dumps({"question": "When does an evening of the club stop?", "answer": "Club evenings end at 21:30.",
                       "quotes": [{"filename": "club.md", "quote": "Club evenings end at 21:30."}]})  # fmt: skip
    found = ask(Model(lambda *_: same), direct=3)
    assert len(found.drafts) == 1


def test_what_a_model_knows_without_the_documents_is_dropped() -> None:
    found = ask(Model(knows=True), direct=3)
    assert found.dropped == {"it is answered without the documents": 1}
    assert len(found.drafts) == 2


def test_what_is_not_answered_from_its_evidence_is_dropped() -> None:
    class Silent(Model):
        def _reply(self, messages: list[Message]) -> str | Exception:
            wrote = messages[0].content.startswith("You write questions")
            return super()._reply(messages) if wrote else "UNKNOWN"

    assert set(ask(Silent(), direct=3).dropped) == {"it is not answered from its evidence alone"}


def test_a_negative_question_that_a_passage_answers_is_dropped() -> None:
    asked = {"question": "Is there parking at the club house?", "answer": "Not said.", "quotes": []}
    model = Model(lambda *_: json.dumps(asked))
    assert set(ask(model, negative=1).dropped) == {"a passage answers it"}

    class Unsure(Model):
        def _reply(self, messages: list[Message]) -> str | Exception:
            return super()._reply(messages) if messages[0].content.startswith("You write") else "UNKNOWN"

    (draft,) = ask(Unsure(lambda *_: json.dumps(asked)), negative=1).drafts
    assert draft.evidence == ()
    assert draft.metadata["nearest"]


def test_a_question_of_two_pages_must_quote_both() -> None:
    model = Model()
    found = ask(model, multi_hop=1)
    assert found.drafts == []
    assert "the question must need both sources" in model.asked[1][-1].content


def test_a_spent_budget_keeps_what_was_written_and_says_so() -> None:
    model = Model(lambda source, _: written(source) if len(model.asked) < 4 else BudgetError("0.10 USD are spent"))
    found = ask(model, at_once=1, direct=3)
    assert len(found.drafts) == 1
    assert found.stopped == "0.10 USD are spent"


def test_a_call_that_failed_costs_its_question_alone() -> None:
    model = Model(lambda source, _: ModelCallError("503") if source == "club.md" else written(source))
    found = ask(model, direct=3)
    assert len(found.drafts) == 2
    assert found.dropped["the writer could not be asked: 503"] >= 1


def many() -> list[Document]:
    said = "A harbour pass lets a driver enter the quay. " * 8
    return documents(**{f"page{number}": f"# Page {number}\n\n{said}" for number in range(40)})


def ask_many(model: Model, at_once: int, wanted: int) -> GeneratedQuestions:
    writer = Writer(model, load_prompts("questions"), DocumentCollection(many()), at_once)
    return asyncio.run(writer.ask({"direct": wanted}, 0))


def test_a_server_that_is_gone_is_not_asked_for_every_page() -> None:
    model = Model(lambda *_: ModelCallError("connection refused"))
    found = ask_many(model, at_once=1, wanted=30)
    assert found.stopped == "the writer could not be asked: connection refused"
    assert len(model.asked) == PATIENCE


def test_a_writer_that_never_learns_is_asked_no_more() -> None:
    model = Model(lambda *_: PROSE)
    found = ask_many(model, at_once=4, wanted=2)
    assert found.dropped.total() == PATIENCE + PATIENCE * 2
    assert len(model.asked) == TRIES * found.dropped.total()


def test_the_order_of_replies_decides_nothing() -> None:
    one, all_at_once = (ask(Model(), at_once=number, direct=3) for number in (1, 16))
    assert [draft.text for draft in one.drafts] == [draft.text for draft in all_at_once.drafts]


@pytest.mark.parametrize(
    ("reply", "held"),
    [("You refund half of its price.", True), ("UNKNOWN", False), ("We refund nothing.", False), ("", False)],
)
def test_whether_a_reply_gives_the_answer(reply: str, held: bool) -> None:
    assert gives(reply, GOOD) is held


@pytest.fixture
def server() -> Iterator[CountingServer]:
    def reply(body: Any) -> str:
        said = Model()._reply([Message(each["role"], each["content"]) for each in body["messages"]])
        assert isinstance(said, str)
        return said

    with counting_server(delay=0.0, reply=reply) as running:
        yield running


def test_the_command_says_what_to_do_where_nobody_may_be_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = folder(tmp_path, PAGES)
    monkeypatch.chdir(tmp_path)
    asking = ["kb", "queries", str(made), "--writer", "llm", "--writer-model", "stub"]
    assert main([*asking, "--writer-base-url", "http://127.0.0.1:9/v1"]) == CANNOT_RUN
    assert "--rag-mode=record" in capsys.readouterr().err


def test_the_command_records_and_asks_nobody_twice(
    tmp_path: Path, server: CountingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = folder(tmp_path, PAGES)
    monkeypatch.chdir(tmp_path)
    asking = ["kb", "queries", str(made), "--writer", "llm", "--direct", "3"]
    model = ["--writer-model", "stub", "--writer-base-url", server.url, "--mode"]
    assert main([*asking, *model, "record"]) == 0
    calls, first = server.calls.total(), (made / "queries.jsonl").read_bytes()
    queries = read_queries(made / "queries.jsonl", made)
    assert {query.metadata["generated_by"] for query in queries} == {"stub"}
    assert main([*asking, *model, "record"]) == 0
    assert main([*asking, *model, "replay"]) == 0
    assert server.calls.total() == calls
    assert (made / "queries.jsonl").read_bytes() == first


def test_the_command_asks_for_others_in_the_place_of_those_that_were_rejected(
    tmp_path: Path, server: CountingServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = folder(tmp_path, PAGES)
    monkeypatch.chdir(tmp_path)
    asking = ["kb", "queries", str(made), "--writer", "llm", "--direct", "2", "--writer-model", "stub"]
    asking += ["--writer-base-url", server.url, "--mode", "record"]
    assert main(asking) == 0
    questions = ReviewFile(made / "queries.jsonl")
    questions.put({0: rejected(questions.rows[0], "Ada", "nobody would ask this")})
    first, second = (row["query"] for row in questions.rows)
    assert main(asking) == 0
    asked = [query.query.text for query in read_queries(made / "queries.jsonl", made)]
    assert len(asked) == 2
    assert first not in asked
    assert second in asked
    assert "     1  somebody rejected it\n" in capsys.readouterr().out
