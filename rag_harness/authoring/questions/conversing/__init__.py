"""Conversations that a model drafts from documents: turns that leave out what was said before.

asked_for_conversations   asks the model, and drops what does not pass the filters of ``subject_free``
conversation_rows         lines of ``queries.jsonl``, one a conversation
"""

from __future__ import annotations

from rag_harness.authoring.questions.conversing.conversation_rows import conversation_rows
from rag_harness.authoring.questions.conversing.turn_draft import GeneratedConversations

__all__ = ["GeneratedConversations", "conversation_rows"]
