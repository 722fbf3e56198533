"""Conversations from a writer model: faults are named to it, and what it cannot mend is dropped."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from rag_harness.__main__ import CANNOT_RUN, main
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
from rag_harness.authoring.questions.review.rows import rejected_beside, rejected_ids
from rag_harness.core.errors import BudgetError, ModelCallError
from rag_harness.core.types import Completion, Evidence, Message, Usage
from rag_harness.data.queries import read_queries
from rag_harness.frontends.cli import FOUND
from rag_harness.models.prompts import TRIES, load_prompts
from tests.plugin.counting_server import CountingServer, counting_server
from tests.unit.authoring.questions.shop import PAGES, documents, folder

Turn = dict[str, Any]
SEAL = "If the parcel seal is broken, we refund half of the price."
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


class Model:
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


def ask(model: Model, wanted: int = 1, at_once: int = 4, rejected: Sequence[Draft] = ()) -> GeneratedConversations:
    writer = ConversationWriter(model, load_prompts("conversations"), DocumentCollection(documents()), at_once)
    return asyncio.run(writer.ask(wanted, 0, rejected=rejected))


def test_what_is_sound_is_taken_with_its_kinds_and_gold() -> None:
    (draft,) = ask(Model()).drafts
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
    model = Model(lambda tries: reply() if tries else reply(*turns))
    assert len(ask(model).drafts) == 1
    again = [asked for asked in model.asked if len(asked) > 2 and "returns.md" in asked[1].content]
    assert named in again[0][-1].content


@pytest.mark.parametrize("said", ["", "no JSON", "{", '{"turns": 3}', '{"turns": [3]}', "{" + '"a":[' * 5_000, "[]"])
def test_what_is_no_conversation_is_dropped_after_three_tries(said: str) -> None:
    model = Model(lambda _: said)
    found = ask(model)
    assert (found.drafts, found.short) == ([], 1)
    assert max(len(asked) for asked in model.asked) == 2 * TRIES


def test_the_same_conversation_is_taken_once_and_a_rejected_question_is_not_taken() -> None:
    assert len(ask(Model(), wanted=3).drafts) == 1
    (draft,) = ask(Model()).drafts
    assert ask(Model(), rejected=[draft.turns[1].alone]).drafts == []


def test_what_a_passage_answers_is_no_unanswerable_turn() -> None:
    class Sure(Model):
        def reply(self, messages: Sequence[Message]) -> str | Exception:
            return "Ada paints them." if "Who paints" in messages[1].content else super().reply(messages)

    assert set(ask(Sure()).dropped) >= {"turn 4: a passage answers it"}


def test_a_spent_budget_and_a_server_that_is_gone_end_it() -> None:
    assert ask(Model(lambda _: BudgetError("0.10 USD are spent"))).stopped == "0.10 USD are spent"

    class Gone(Model):
        def reply(self, messages: Sequence[Message]) -> str | Exception:
            return ModelCallError("connection refused")

    found = ask(Gone(), wanted=9)
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
def server() -> Iterator[CountingServer]:
    def said(body: Any) -> str:
        messages = [Message(each["role"], each["content"]) for each in body["messages"]]
        written = Model().reply(messages)
        assert isinstance(written, str)
        return written

    with counting_server(delay=0.0, reply=said) as running:
        yield running


def test_the_command_records_and_asks_nobody_twice(
    tmp_path: Path, server: CountingServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = folder(tmp_path, PAGES)
    monkeypatch.chdir(tmp_path)
    asking = ["kb", "queries", str(made), "--writer", "llm", "--conversations", "2", "--writer-model", "stub"]
    asking += ["--writer-base-url", server.url, "--mode"]
    assert main([*asking, "record"]) == FOUND
    assert "1 conversations of 4 turns, unreviewed" in capsys.readouterr().out
    calls, first = server.calls.total(), (made / "queries.jsonl").read_bytes()
    cases = read_queries(made / "queries.jsonl", made)
    assert {case.metadata["generated_by"] for case in cases} == {"stub"}
    assert main([*asking, "replay"]) == FOUND
    assert server.calls.total() == calls
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
    assert f"argument --conversations: {number!r} is no whole number from 0 to 1,000,000" in capsys.readouterr().err
