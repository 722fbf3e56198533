"""Conversations written by a chat model of role ``writer``, held to the filters of single questions and of turns.

Each turn is checked as a single question is: the model answers its question that stands alone with its evidence, and
without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from rag_harness.authoring.questions.asked_in_waves import PATIENCE, asked_in_waves
from rag_harness.authoring.questions.conversing.replied_turns import LONGEST_REPLY, conversation_of
from rag_harness.authoring.questions.conversing.subject_free import turn_fault
from rag_harness.authoring.questions.conversing.told_to_converse import ConversationTask, conversation_tasks
from rag_harness.authoring.questions.conversing.turn_draft import ConversationDraft, GeneratedConversations
from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.draft import Draft
from rag_harness.authoring.questions.known_without import fault_of_answers
from rag_harness.authoring.questions.likeness import TakenQuestions
from rag_harness.models.prompts import Prompts
from rag_harness.models.until_right import Fault, ask_until_right
from rag_harness.protocols import ChatModel

_REPEAT = (
    "That cannot be used: {fault}. Write the whole conversation again, without that fault, or another one. Only the "
    "JSON object."
)


class ConversationWriter:
    """Asks a model for conversations.

    Args:
        chat: the model.
        prompts: the model's instructions.
        collection: the documents, in any language that words can be read of.
        at_once: how many conversations are worked on at one time.
    """

    def __init__(self, chat: ChatModel, prompts: Prompts, collection: DocumentCollection, at_once: int) -> None:
        self._chat, self._prompts, self._collection = chat, prompts, collection
        self._at_once = max(1, at_once)

    async def ask(
        self,
        wanted: int,
        seed: int,
        most_shared: float = 1.0,
        rejected: Sequence[Draft] = (),
        asked: Sequence[Draft] = (),
    ) -> GeneratedConversations:
        """Return the conversations; fewer than wanted if the pages or the budget allow no more.

        ``rejected`` are questions that a person has rejected, ``asked`` those that are asked beside them.
        """
        found, taken = GeneratedConversations(), TakenQuestions(most_shared, self._collection, rejected)
        for draft in asked:
            taken.add(draft)

        def keep(conversation: ConversationDraft) -> str | None:
            said = TakenQuestions()
            for turn in conversation.turns:
                if fault := taken.fault_of(turn.alone) or said.fault_of(turn.alone):
                    return fault
                said.add(turn.alone)
            for turn in conversation.turns:
                taken.add(turn.alone)
            found.drafts.append(conversation)
            return None

        todo = islice(conversation_tasks(self._collection, seed), PATIENCE + PATIENCE * wanted + len(rejected))
        await asked_in_waves(todo, wanted, self._at_once, self._written, keep, found)
        found.short = wanted - len(found.drafts)
        return found

    async def _written(self, task: ConversationTask) -> ConversationDraft | Fault:
        """Return a conversation that passes; else the fault of the last attempt."""
        messages = task.messages(self._prompts)
        return await ask_until_right(
            self._chat, messages, lambda said: self._read(task, said), _REPEAT, remembered=LONGEST_REPLY
        )

    async def _read(self, task: ConversationTask, said: str) -> ConversationDraft | Fault:
        found = conversation_of(task, said, self._collection)
        if isinstance(found, str):
            return Fault(found)
        for number, turn in enumerate(found.turns, 1):
            own = self._collection.about(turn.near_pages)
            if fault := turn_fault(turn, own) or await fault_of_answers(turn.alone, self._chat, own):
                return Fault(f"turn {number}: {fault}")
        return found
