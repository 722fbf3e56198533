"""Prompts as they were sent: ``prompts/<digest>.json`` beside the rows. Each is stored once for all its rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

from rag_harness.errors import CriticalError
from rag_harness.types import Message

PROMPTS = "prompts"
"""Folder beside the result files."""


def named_prompt(messages: Sequence[Message]) -> tuple[str, str]:
    """Return the digest of messages, and the content of their file; both are empty where there are no messages."""
    if not messages:
        return "", ""
    content = json.dumps([{"role": message.role, "content": message.content} for message in messages], indent=1)
    return blake2b(content.encode(), digest_size=12).hexdigest(), content


class PromptFiles:
    """Stores messages under the digest of their content. Several processes may write to the same folder.

    Args:
        output: folder of the result files.
    """

    def __init__(self, output: Path) -> None:
        self._folder = output / PROMPTS
        self._kept: set[str] = set()

    def keep(self, messages: Sequence[Message]) -> str:
        """Write ``messages`` unless their file exists, and return their digest; empty where there are no messages.

        Raises:
            CriticalError: the folder cannot be written.
        """
        digest, content = named_prompt(messages)
        if digest:
            self.keep_file(digest, content)
        return digest

    def keep_file(self, digest: str, content: str) -> None:
        """Write messages that another process has ``named_prompt``, unless their file exists.

        Raises:
            CriticalError: the folder cannot be written.
        """
        if digest not in self._kept:
            self._write(digest, content)
            self._kept.add(digest)

    def _write(self, digest: str, content: str) -> None:
        file = f"{self._folder}/{digest}.json"
        try:
            if not self._kept:
                self._folder.mkdir(parents=True, exist_ok=True)
            # The name is the digest: an existing file has the same content, or is shorter where a kill has torn it.
            if Path(file).exists() and Path(file).stat().st_size == len(content):
                return
            with open(file, "wb", buffering=0) as stream:  # noqa: PTH123 - a third of Path.open's time, once a trial
                stream.write(content.encode("ascii"))
        except OSError as error:
            raise CriticalError(
                f"A prompt cannot be kept in {self._folder}: {error.strerror or error}. Make room, or choose another "
                f"folder with --rag-output."
            ) from error
