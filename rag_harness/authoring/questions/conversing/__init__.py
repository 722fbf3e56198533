"""Conversations drafted from documents: a question that stands alone, and turns that leave out what was said before.

make_conversations(collection, wanted, seed)   conversations whose turns pass the filters, and why there are not more
conversation_rows(drafts, by, taken)           lines of ``queries.jsonl``, one a conversation
"""

from __future__ import annotations

from rag_harness.authoring.questions.conversing.conversation_rows import conversation_rows
from rag_harness.authoring.questions.conversing.drafting import GeneratedConversations, make_conversations

__all__ = ["GeneratedConversations", "conversation_rows", "make_conversations"]
