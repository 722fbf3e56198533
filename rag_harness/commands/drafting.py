"""What ``kb queries`` drafts, and the lines that say what came of it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rag_harness.commands.with_settings import run_closing
from rag_harness.commands.writer import writer_parts
from rag_harness.errors import SettingsError

if TYPE_CHECKING:
    from rag_harness.authoring.questions import DocumentCollection, Draft, GeneratedQuestions
    from rag_harness.authoring.questions.conversing import GeneratedConversations

_LONGEST_REPLY = 4_000
"""How many tokens a conversation of six turns may need."""
NO_FACT = (
    "No sentence or table states a fact in English, nor one of a plain form in German, French, Spanish, Portuguese, "
    "Italian or Dutch."
)


@dataclass(frozen=True)
class Drafted:
    """What was drafted, and by whom. ``wanted`` are questions by kind, ``talks`` how many conversations."""

    by: str
    wanted: Mapping[str, int]
    talks: int
    questions: GeneratedQuestions
    conversations: GeneratedConversations

    @property
    def is_short(self) -> bool:
        """Whether there is less than was wanted."""
        return bool(self.questions.short or self.conversations.short)

    @property
    def stopped(self) -> str:
        """Why no more were asked for; empty if they were."""
        return self.questions.stopped or self.conversations.stopped

    def rows(self, collection: DocumentCollection, taken: set[str]) -> Iterator[dict[str, object]]:
        """Yield the lines of the file: the questions, then the conversations. No id is in ``taken``."""
        from rag_harness.authoring.questions import rows
        from rag_harness.authoring.questions.conversing import conversation_rows

        yield from rows(self.questions.drafts, collection, self.by, taken)
        yield from conversation_rows(self.conversations.drafts, self.by, taken)


def drafted(
    chosen: argparse.Namespace, collection: DocumentCollection, wanted: Mapping[str, int], rejected: Sequence[Draft]
) -> Drafted:
    """Return the questions and the conversations that the command line asks for."""
    from rag_harness.authoring.questions import EMBEDDED, make_questions
    from rag_harness.authoring.questions.conversing import GeneratedConversations

    talks = chosen.conversations or 0
    if chosen.writer == "llm":
        return _written_by_model(chosen, collection, wanted, talks, rejected)
    if talks:
        raise SettingsError(
            "A model drafts conversations, and none was named: add --writer llm, with --writer-model and "
            "--writer-base-url."
        )
    questions = make_questions(collection, wanted, chosen.seed, chosen.most_shared, rejected)
    return Drafted(EMBEDDED, wanted, talks, questions, GeneratedConversations())


def _written_by_model(
    chosen: argparse.Namespace,
    collection: DocumentCollection,
    wanted: Mapping[str, int],
    talks: int,
    rejected: Sequence[Draft],
) -> Drafted:
    """Return what a model wrote; the questions first."""
    from rag_harness.authoring.questions.asked_of_llm import Writer
    from rag_harness.authoring.questions.conversing.asked_for_conversations import ConversationWriter

    parts = writer_parts(chosen, _LONGEST_REPLY if talks else 0)
    chat, at_once = parts.chat("writer"), parts.settings.concurrency
    writer = Writer(chat, parts.prompts("questions"), collection, at_once)
    talker = ConversationWriter(chat, parts.prompts("conversations"), collection, at_once)

    async def both() -> Drafted:
        questions = await writer.ask(wanted, chosen.seed, chosen.most_shared, rejected)
        left = 0 if questions.stopped else talks
        found = await talker.ask(left, chosen.seed, chosen.most_shared, rejected, questions.drafts)
        found.short = talks - len(found.drafts)
        return Drafted(chat.model, wanted, talks, questions, found)

    return run_closing(both(), parts)


def why_nothing(folder: Path, found: Drafted) -> str:
    """Return why there is nothing to write."""
    if found.stopped:
        return f"No question was written: {found.stopped}"
    if not (found.talks or any(found.wanted.values())):
        return "No question and no conversation is asked for. Give a number of them."
    if not any(found.wanted.values()):
        why = ", ".join(f"{count} × {reason}" for reason, count in found.conversations.dropped.most_common(3))
        return f"No conversation was drafted of {folder}: {why or 'its pages have no text'}. Write some yourself."
    why = ", ".join(f"{count} × {reason}" for reason, count in found.questions.dropped.most_common(3))
    found_any = f"The facts found were dropped: {why}." if why else NO_FACT
    return f"No question can be asked of {folder}. {found_any} Write questions yourself, or with a model: --writer llm"


def drafted_lines(found: Drafted, file: Path) -> list[str]:
    """Return the lines that say what was written, what was dropped, and what is missing."""
    questions = found.questions
    counts = {kind: sum(draft.kind == kind for draft in questions.drafts) for kind in found.wanted}
    parts = ", ".join(f"{count} {kind}" for kind, count in counts.items() if found.wanted[kind])
    short = [
        f"Asked for {found.wanted[kind]} {kind} questions; the text bears {counts[kind]} that pass the filters."
        for kind in questions.short
    ]
    written = [f"{len(questions.drafts)} questions ({parts})"] if any(found.wanted.values()) else []
    talks = [_conversations(found.conversations)] if found.talks else []
    return [
        f"wrote {file}: {' and '.join(written + talks)}, unreviewed",
        *_dropped(questions.dropped, "drafts"),
        *_dropped(found.conversations.dropped, "turns"),
        *short,
        *_short_of_talks(found),
        *([f"stopped: {found.stopped}"] if found.stopped else []),
    ]


def _conversations(found: GeneratedConversations) -> str:
    turns = sum(len(draft.turns) for draft in found.drafts)
    return f"{len(found.drafts)} conversations of {turns} turns"


def _dropped(dropped: Mapping[str, int], what: str) -> list[str]:
    said = sorted(dropped.items(), key=lambda each: -each[1])
    lines = [f"  {count:6}  {reason}" for reason, count in said]
    return [f"dropped {sum(dropped.values())} {what}:", *lines] if lines else []


def _short_of_talks(found: Drafted) -> list[str]:
    talks = found.conversations
    bears = f"the text bears {len(talks.drafts)} whose turns pass the filters"
    return [f"Asked for {found.talks} conversations; {bears}."] if talks.short else []
