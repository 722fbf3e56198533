"""Questions and conversations from a writer model: faults are named to it; what it cannot mend is dropped."""

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
from rag_harness.authoring.questions.conversation_writer import (
    NAMES_IT,
    ConversationWriter,
    GeneratedConversations,
    TurnDraft,
    conversation_tasks,
    is_subject_free,
    turn_fault,
)
from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.drafts import Draft
from rag_harness.authoring.questions.generator import GeneratedQuestions
from rag_harness.authoring.questions.llm_writer import Writer, gives
from rag_harness.authoring.questions.review.rows import ReviewFile, rejected, rejected_beside, rejected_ids
from rag_harness.core.errors import BudgetError, ModelCallError
from rag_harness.core.types import Completion, Document, Evidence, Message, Usage
from rag_harness.data.queries import read_queries
from rag_harness.frontends.cli import FOUND
from rag_harness.models.prompts import TRIES, load_prompts
from tests.plugin.counting_server import CountingServer, counting_server
from tests.unit.authoring.questions.shop import PAGES, documents, folder
from tests.unit.authoring.questions.test_questions import GOOD

# Questions from a writer model: faults are named to it, at most three times, and what it cannot mend is dropped.

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


# Conversations from a writer model: faults are named to it, and what it cannot mend is dropped.

Turn = dict[str, Any]
FAULTY = "A faulty lantern is replaced within 12 working days."
PINE = "| Pine Lantern | 1.2 kg | €39 | 30 days |"
BRASS = "| Brass Lantern | 2.4 kg | €89 | 45 days |"


def turn(kind: str, question: str, answer: str, *quotes: str, standalone: str = "") -> Turn:
    quoted = [{"filename": "returns.md", "quote": quote} for quote in quotes]
    return {"turn_kind": kind, "question": question, "standalone": standalone, "answer": answer, "quotes": quoted}


FIRST = turn("first", "My box came with the seal torn. What do I get back?", "Half of the price is refunded.", SEAL)
FOLLOW_UP = turn(
    "follow_up", "and how heavy is that?", "It weighs 2.4 kg.", BRASS, standalone="How heavy is the brass lantern?"
)
WRONG = turn(
    "correction", "so that is 24 weeks, right?", "No, it is replaced within 12 working days.", FAULTY,
    standalone="Am I right that a faulty lantern is replaced within 24 weeks?",
)  # fmt: skip
NOTHING = turn("unanswerable", "who paints those?", "It is not said who paints lanterns.",
               standalone="Who paints the brass lantern?")  # fmt: skip
TURNS = [FIRST, FOLLOW_UP, WRONG, NOTHING]


def reply(*turns: Turn) -> str:
    return json.dumps({"turns": list(turns or TURNS)})


class ConversationModel:
    """Writes the same conversation of returns.md and none of other pages; answers from what it is given."""

    model = "stub"

    def __init__(self, says: Callable[[int], str | Exception] | None = None) -> None:
        self.asked: list[list[Message]] = []
        self._says = says or (lambda _: reply())

    async def complete(
        self, messages: Sequence[Message], response_format: Mapping[str, Any] | None = None
    ) -> Completion:
        assert response_format is None
        self.asked.append(list(messages))
        said = self.reply(list(messages))
        if isinstance(said, Exception):
            raise said
        return Completion(said, self.model, Usage(), 1.0)

    def reply(self, messages: Sequence[Message]) -> str | Exception:
        system, user = messages[0].content, messages[1].content
        if system.startswith("You write conversations"):
            source = re.findall(r"\[Source 1: ([\w.]+)\]", user)[0]
            tries = sum(message.role == "assistant" for message in messages)
            return self._says(tries) if source == "returns.md" else "no"
        if "Who paints" in user or not user.startswith("["):
            return "UNKNOWN"
        return user


def ask_for_conversations(
    model: ConversationModel, wanted: int = 1, at_once: int = 4, rejected: Sequence[Draft] = ()
) -> GeneratedConversations:
    writer = ConversationWriter(model, load_prompts("conversations"), DocumentCollection(documents()), at_once)
    return asyncio.run(writer.ask(wanted, 0, rejected=rejected))


def test_what_is_sound_is_taken_with_its_kinds_and_gold() -> None:
    (draft,) = ask_for_conversations(ConversationModel()).drafts
    assert [each.kind for each in draft.turns] == ["first", "follow_up", "correction", "unanswerable"]
    assert [each.text for each in draft.turns] == [each["question"] for each in TURNS]
    assert draft.turns[1].alone.text == "How heavy is the brass lantern?"
    assert draft.turns[1].alone.evidence[0].quote == BRASS
    assert draft.turns[3].alone.kind == "negative"
    assert draft.turns[3].alone.metadata["nearest_page"] == "returns.md"
    assert all(each.alone.made_of == ("llm",) for each in draft.turns)


@pytest.mark.parametrize(
    ("turns", "named"),
    [
        ([FIRST, FOLLOW_UP], "it has 2 turns, and 3 to 6 are wanted"),
        ([FIRST, *[FOLLOW_UP] * 6], "it has 7 turns"),
        ([FOLLOW_UP, FIRST, WRONG], "the first turn, and no other, is of the kind first"),
        ([FIRST, FOLLOW_UP, FIRST], "the first turn, and no other, is of the kind first"),
        ([FIRST, WRONG, NOTHING], "no turn is a follow_up"),
        ([FIRST, FOLLOW_UP, {**WRONG, "turn_kind": "chat"}], "turn_kind 'chat' is none of first"),
        ([FIRST, FOLLOW_UP, {**WRONG, "turn_kind": "back"}], "back comes behind a subject_change"),
        ([FIRST, {**FOLLOW_UP, "standalone": ""}, WRONG], "turn 2: question, standalone or answer is empty"),
        ([FIRST, {**FOLLOW_UP, "quotes": []}, WRONG], "turn 2: quotes must be of"),
        ([FIRST, FOLLOW_UP, {**NOTHING, "quotes": FIRST["quotes"]}], 'turn 3: "quotes" must be empty'),
        ([FIRST, {**FOLLOW_UP, "question": FOLLOW_UP["standalone"]}, WRONG], "turn 2: a follow-up says as much"),
        (
            [FIRST, {**FOLLOW_UP, "question": "what is the weight in kg of brass?"}, WRONG],
            "turn 2: the words of a follow-up lead to its page by themselves",
        ),
        (
            [FIRST, turn("follow_up", "and that?", "3 kg", "| Brass | 3 kg |", standalone="Heavy is brass?"), WRONG],
            "turn 2: the evidence is not in the page",
        ),
        ([FIRST, {**FOLLOW_UP, "answer": "It weighs 9 kg."}, WRONG], "turn 2: "),
        ([{**FIRST, "question": "What does this page say of the seal?"}, FOLLOW_UP, WRONG], "turn 1: points at"),
    ],
)  # fmt: skip
def test_a_fault_is_named_with_its_turn_and_asked_again(turns: list[Turn], named: str) -> None:
    model = ConversationModel(lambda tries: reply() if tries else reply(*turns))
    assert len(ask_for_conversations(model).drafts) == 1
    again = [asked for asked in model.asked if len(asked) > 2 and "returns.md" in asked[1].content]
    assert named in again[0][-1].content


@pytest.mark.parametrize("said", ["", "no JSON", "{", '{"turns": 3}', '{"turns": [3]}', "{" + '"a":[' * 5_000, "[]"])
def test_what_is_no_conversation_is_dropped_after_three_tries(said: str) -> None:
    model = ConversationModel(lambda _: said)
    found = ask_for_conversations(model)
    assert (found.drafts, found.short) == ([], 1)
    assert max(len(asked) for asked in model.asked) == 2 * TRIES


def test_the_same_conversation_is_taken_once_and_a_rejected_question_is_not_taken() -> None:
    assert len(ask_for_conversations(ConversationModel(), wanted=3).drafts) == 1
    (draft,) = ask_for_conversations(ConversationModel()).drafts
    assert ask_for_conversations(ConversationModel(), rejected=[draft.turns[1].alone]).drafts == []


def test_what_a_passage_answers_is_no_unanswerable_turn() -> None:
    class Sure(ConversationModel):
        def reply(self, messages: Sequence[Message]) -> str | Exception:
            return "Ada paints them." if "Who paints" in messages[1].content else super().reply(messages)

    assert set(ask_for_conversations(Sure()).dropped) >= {"turn 4: a passage answers it"}


def test_a_spent_budget_and_a_server_that_is_gone_end_it() -> None:
    assert (
        ask_for_conversations(ConversationModel(lambda _: BudgetError("0.10 USD are spent"))).stopped
        == "0.10 USD are spent"
    )

    class Gone(ConversationModel):
        def reply(self, messages: Sequence[Message]) -> str | Exception:
            return ModelCallError("connection refused")

    found = ask_for_conversations(Gone(), wanted=9)
    assert set(found.dropped) == {"the writer could not be asked: connection refused"}
    assert (found.drafts, found.short) == ([], 9)


def test_tasks_are_the_same_for_a_seed_and_their_kinds_in_order() -> None:
    collection = DocumentCollection(documents())
    one, same, other = (list(conversation_tasks(collection, seed)) for seed in (1, 1, 2))
    assert one == same != other
    for task in one:
        assert task.kinds[:2] == ("first", "follow_up")
        assert 3 <= len(task.kinds) <= 6
        if "back" in task.kinds:
            assert "subject_change" in task.kinds[: task.kinds.index("back")]
        pages = {chunk.doc_id for chunk in task.chunks}
        assert len(pages) == (2 if "subject_change" in task.kinds else 1)


@pytest.fixture
def conversing_server() -> Iterator[CountingServer]:
    def said(body: Any) -> str:
        messages = [Message(each["role"], each["content"]) for each in body["messages"]]
        written = ConversationModel().reply(messages)
        assert isinstance(written, str)
        return written

    with counting_server(delay=0.0, reply=said) as running:
        yield running


def test_the_command_records_conversations_and_asks_nobody_twice(
    tmp_path: Path,
    conversing_server: CountingServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = folder(tmp_path, PAGES)
    monkeypatch.chdir(tmp_path)
    asking = ["kb", "queries", str(made), "--writer", "llm", "--conversations", "2", "--writer-model", "stub"]
    asking += ["--writer-base-url", conversing_server.url, "--mode"]
    assert main([*asking, "record"]) == FOUND
    assert "1 conversations of 4 turns, unreviewed" in capsys.readouterr().out
    calls, first = conversing_server.calls.total(), (made / "queries.jsonl").read_bytes()
    cases = read_queries(made / "queries.jsonl", made)
    assert {case.metadata["generated_by"] for case in cases} == {"stub"}
    assert main([*asking, "replay"]) == FOUND
    assert conversing_server.calls.total() == calls
    assert (made / "queries.jsonl").read_bytes() == first


def test_without_a_model_the_command_asks_for_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = folder(tmp_path)
    assert main(["kb", "queries", str(made), "--conversations", "5"]) == CANNOT_RUN
    assert "add --writer llm, with --writer-model and --writer-base-url." in capsys.readouterr().err
    assert not (made / "queries.jsonl").exists()


def test_the_words_of_a_turn_are_held_to_leave_out_what_they_should() -> None:
    collection = DocumentCollection(documents())
    asked = "How heavy is the brass lantern?"
    alone = Draft("direct", asked, asked, "2.4 kg", "2.4 kg", (Evidence("returns.md", BRASS),), ("llm",))
    named = TurnDraft("follow_up", "And how heavy is the lantern?", alone, "brass lantern")
    assert turn_fault(named, collection) == NAMES_IT
    assert is_subject_free("And how about that?", ("returns.md",), collection)
    assert not is_subject_free("And the brass lantern?", ("returns.md",), collection)


def test_a_rejected_follow_up_is_known_by_its_question_that_stands_alone(tmp_path: Path) -> None:
    apart = tmp_path / "queries.rejected.jsonl"
    turn = {
        "query_id": "c1#2",
        "conversation": "c1",
        "turn": 2,
        "query": "And the price?",
        "metadata": {"reviewed": "no"},
    }
    apart.write_text(json.dumps({**turn, "standalone": "What does the lamp cost?"}) + "\n" + json.dumps(turn))
    assert [draft.text for draft in rejected_beside(tmp_path / "queries.jsonl")] == ["What does the lamp cost?", ""]
    assert rejected_ids(tmp_path / "queries.jsonl") == {"c1#2", "c1"}


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--conversations", "0"], "No question and no conversation is asked for."),
        (["--conversations", "5", "-n", "3", "--direct", "9"], "are 9. Leave -n out, or make them agree."),
    ],
)
def test_what_cannot_be_asked_for(
    arguments: list[str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["kb", "queries", str(folder(tmp_path)), *arguments]) == CANNOT_RUN
    assert why in capsys.readouterr().err


@pytest.mark.parametrize("number", ["-1", "x", "1.5", "9999999999", "1_000", ""])
def test_bad_numbers_are_named(number: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["kb", "queries", str(folder(tmp_path)), f"--conversations={number}"])
    assert left.value.code == CANNOT_RUN
    assert f"argument --conversations: {number!r} is not a whole number from 0 to 1,000,000" in capsys.readouterr().err
