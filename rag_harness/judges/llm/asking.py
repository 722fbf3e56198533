"""Puts one question to the judge's model; what two rows ask word for word is asked once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any

from rag_harness.errors import ModelOutputError
from rag_harness.files.sources import json_digest, source_digest
from rag_harness.judges.llm.marks import Section, marked
from rag_harness.judges.llm.shared import Shared
from rag_harness.protocols import ChatModel, JudgeParts
from rag_harness.recording.store import key_of
from rag_harness.types import Message

LONGEST_TEXT = 40_000
"""Characters of a text that is taken apart; what is longer is not paid for."""
MOST_CLAIMS = 100
"""Claims of a text that are judged; a reply with more is not believed."""
_LONGEST_REPLY = 4096
"""Tokens: a hundred verdicts, or some fifty claims with their quotes."""

Schema = Mapping[str, Any]
TEXT: Schema = {"type": "string"}


class Asking:
    """The way to the model of role ``judge``.

    Args:
        chat: the model.
        shares: a request that was made before is not made again in this process.
    """

    def __init__(self, chat: ChatModel, shares: bool) -> None:
        self.chat = chat
        self._shared: Shared[str] | None = Shared() if shares else None

    async def ask(self, task: str, sections: Sequence[Section], reply: Mapping[str, Schema], end: str = "") -> str:
        """Return what the model replies.

        Args:
            task: what to do.
            sections: what to do it with, as data.
            reply: the JSON schema of each key of the reply.
            end: said last, outside of the data.

        Raises:
            RagHarnessError: of the chat model, as it is.
        """
        system = f"{prompt('data')}\n\n{task}\n\nReply as JSON: {_shape(object_schema(reply))}"
        messages = [Message("system", system), Message("user", "\n\n".join(filter(None, [marked(sections), end])))]
        if self._shared is None:
            return await self._complete(messages, reply)
        key = key_of(*(message.content for message in messages))
        return await self._shared.get(key, lambda: self._complete(messages, reply))

    async def _complete(self, messages: Sequence[Message], reply: Mapping[str, Schema]) -> str:
        return (await self.chat.complete(messages, response_format(reply))).text


def asking_of(parts: JudgeParts, shares: bool) -> Asking:
    """Return the way to the model that the settings name for role ``judge``."""
    return Asking(parts.chat("judge", temperature=0.0, max_output_tokens=_LONGEST_REPLY), shares)


def object_schema(keys: Mapping[str, Schema]) -> Schema:
    """Return the schema of an object that has exactly these keys."""
    return {"type": "object", "properties": dict(keys), "required": list(keys), "additionalProperties": False}


def list_schema(of: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": of}


def response_format(reply: Mapping[str, Schema]) -> Mapping[str, Any]:
    """Return OpenAI's structured-output request."""
    return {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": object_schema(reply)}}


def _shape(schema: Schema) -> str:
    """Say what a schema wants, for servers that know none."""
    if "enum" in schema:
        return " or ".join(map(json.dumps, schema["enum"]))
    if schema["type"] == "object":
        return "{" + ", ".join(f'"{name}": {_shape(each)}' for name, each in schema["properties"].items()) + "}"
    if schema["type"] == "array":
        return f"[{_shape(schema['items'])}, …]"
    return {"string": '"…"', "integer": "1", "boolean": "true or false"}[schema["type"]]


@lru_cache
def prompt(name: str) -> str:
    """Return a prompt of this room."""
    return (files(__package__) / f"{name}.md").read_text(encoding="utf-8").strip()


def revision_of(judge: str) -> str:
    """Return the digest of what ``judge`` asks and how it reads: its prompts, and the source of this room."""
    texts = [file for file in sorted(each.name for each in files(__package__).iterdir()) if file.endswith(".md")]
    prompts = {file: prompt(file.removesuffix(".md")) for file in texts if file.startswith((judge, "data"))}
    return json_digest([prompts, source_digest(f"{__package__}.{judge}")])


def check_length(what: str, text: str) -> None:
    """Refuse to take apart what is too long to be an answer.

    Raises:
        ModelOutputError: it is; says how long it is.
    """
    if len(text) > LONGEST_TEXT:
        raise ModelOutputError(f"{what} of {len(text):,} characters: at most {LONGEST_TEXT:,} are judged")


def too_many(count: int) -> str:
    """Say that a reply has more claims than are believed; empty where it has not."""
    return f"the judge found {count:,} claims: at most {MOST_CLAIMS} are judged" if count > MOST_CLAIMS else ""
