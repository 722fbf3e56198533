"""Checks with a model that a question is answered with its evidence, and not without it.

A question that is answered without its documents only tests the model's memory. A question that is not answered with
its evidence tests nothing.
"""

from __future__ import annotations

import re

from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.draft import Draft
from rag_harness.authoring.questions.quotable_passages import seen
from rag_harness.protocols import ChatModel
from rag_harness.types import Message
from rag_harness.words.terms import figures, terms

UNKNOWN_REPLY = "UNKNOWN"
"""The model's reply if it does not know the answer."""
HELD = 0.6
"""An answer adds words to its question. A reply must have this share of them to count as the answer."""
_WITH = "Answer from the sources alone, in one or two sentences. Say only UNKNOWN where they do not answer."
_WITHOUT = "Answer in one or two sentences. Say only UNKNOWN unless you are sure."
_QUESTION = "{sources}\n\n{question}"


async def fault_of_answers(draft: Draft, chat: ChatModel, collection: DocumentCollection) -> str | None:
    """Return the reason against a draft, from the model's own answers with and without evidence; None if none."""
    if draft.kind == "negative":
        return await _fault_of_negative(draft, chat, collection)
    quotes = "\n\n".join(f"[{each.filename}] {seen(each.quote)}" for each in draft.evidence)
    told = await _said(chat, _WITH, _QUESTION.format(sources=quotes, question=draft.text))
    if not gives(told, draft):
        return "it is not answered from its evidence alone"
    return "it is answered without the documents" if gives(await _said(chat, _WITHOUT, draft.text), draft) else None


async def _fault_of_negative(draft: Draft, chat: ChatModel, collection: DocumentCollection) -> str | None:
    near = "\n\n".join(f"[{hit.chunk.doc_id}] {hit.chunk.text}" for hit in collection.nearest(draft.plain, 5))
    said = await _said(chat, _WITH, _QUESTION.format(sources=near, question=draft.text))
    return None if UNKNOWN_REPLY in said.upper() else "a passage answers it"


async def _said(chat: ChatModel, system: str, user: str) -> str:
    return (await chat.complete([Message("system", system), Message("user", user)])).text


def gives(reply: str, draft: Draft) -> bool:
    """Whether a reply gives the answer: its figures, and most of the words that it adds to the question."""
    if re.search(rf"\b{UNKNOWN_REPLY}\b", reply, re.I):
        return False
    wanted = terms(draft.ground_truth) - terms(draft.text)
    numbers = figures(draft.ground_truth) - figures(draft.text)
    held = len(wanted & terms(reply)) / len(wanted) if wanted else 1.0
    return numbers <= figures(reply) and held >= (HELD if not numbers else HELD / 2)
