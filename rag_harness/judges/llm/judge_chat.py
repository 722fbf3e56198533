"""Asks the judge's model one question. Equal requests of two rows are sent once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files

from rag_harness.errors import RecordingMissError
from rag_harness.files.sources import json_digest
from rag_harness.judges.llm.marked_texts import MarkedText, marked
from rag_harness.judges.llm.schemas import Schema, object_schema, response_format, shape
from rag_harness.judges.llm.shared import Shared
from rag_harness.models.first_token import with_alternatives
from rag_harness.models.recording.store import key_of
from rag_harness.protocols import ChatModel, JudgeParts
from rag_harness.registry.revisions import REVISIONS
from rag_harness.types import Message

_LONGEST_REPLY = 4096
"""Tokens of a reply: a hundred verdicts, or some fifty claims with their quotes."""


class JudgeChat:
    """Access to the model of role ``judge``.

    Args:
        chat: the model.
        shares: whether equal requests are sent only once in this process.
    """

    def __init__(self, chat: ChatModel, shares: bool) -> None:
        self.chat, self._states_probabilities = chat, True
        self._shared: Shared[str] | None = Shared() if shares else None

    async def ask(self, task: str, sections: Sequence[MarkedText], reply: Mapping[str, Schema], end: str = "") -> str:
        """Return the model's reply.

        Args:
            task: the task.
            sections: the material, as data.
            reply: JSON schema of each key of the reply.
            end: last text of the prompt, outside of the data.

        Raises:
            RagHarnessError: any error of the chat model.
        """
        system = f"{prompt('data')}\n\n{task}\n\nReply as JSON: {shape(object_schema(reply))}"
        messages = [Message("system", system), Message("user", "\n\n".join(filter(None, [marked(sections), end])))]
        if self._shared is None:
            return await self._complete(messages, reply)
        key = key_of(*(message.content for message in messages))
        return await self._shared.get(key, lambda: self._complete(messages, reply))

    async def first_token(self, task: str, sections: Sequence[MarkedText]) -> Mapping[str, float]:
        """Return the log-probability of each token that the reply could begin with; empty where they are not stated.

        A model that once stated none is not asked again.

        Raises:
            RagHarnessError: any error of the chat model.
        """
        messages = [Message("system", f"{prompt('data')}\n\n{task}"), Message("user", marked(sections))]
        if not self._states_probabilities:
            return {}
        try:
            with with_alternatives():
                found = (await self.chat.complete(messages)).first_token
        except RecordingMissError:
            # The run that recorded had learnt from another answer that the model states none.
            return {}
        self._states_probabilities = bool(found)
        return found

    async def _complete(self, messages: Sequence[Message], reply: Mapping[str, Schema]) -> str:
        return (await self.chat.complete(messages, response_format(reply))).text


def asking_of(parts: JudgeParts, shares: bool) -> JudgeChat:
    """Return the access to the model that the settings name for role ``judge``."""
    return JudgeChat(parts.chat("judge", temperature=0.0, max_output_tokens=_LONGEST_REPLY), shares)


@lru_cache
def prompt(name: str) -> str:
    """Return a prompt of this room."""
    return (files(__package__) / f"{name}.md").read_text(encoding="utf-8").strip()


def revision_of(judge: str) -> str:
    """Return the digest of a judge's prompts and its revision."""
    texts = [file for file in sorted(each.name for each in files(__package__).iterdir()) if file.endswith(".md")]
    prompts = {file: prompt(file.removesuffix(".md")) for file in texts if file.startswith((judge, "data"))}
    return json_digest([prompts, REVISIONS[f"judges/{judge}"]])
