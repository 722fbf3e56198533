"""What a model is asked without: learned from its refusals, and kept for the other processes and for the replay."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from rag_harness.files.atomic import write_atomically
from rag_harness.files.log import log
from rag_harness.files.regular import regular_bytes
from rag_harness.models.chat.parameters import known_without

FILE_NAME = "asked_without.json"


class AskedWithout:
    """The parameters that one model of one server is asked without.

    Args:
        model: the server's name of the model; some are known by it.
        read: files that other runs and processes may have written. A replay finds recordings by the request, so it
            reads what the run that recorded them has learned.
        written: the file to keep it in; None keeps it in this process.
    """

    def __init__(self, model: str, read: Iterable[Path] = (), written: Path | None = None) -> None:
        self._model, self._read, self._written = model, tuple(read), written
        self._names = known_without(model)
        self._is_kept = False
        self._look()

    @property
    def names(self) -> frozenset[str]:
        """The names of the parameters."""
        return self._names

    def learn(self, refused: frozenset[str], sent_without: frozenset[str], why: str) -> bool:
        """Take over what a refusal named, and what other processes have learned.

        Args:
            refused: what the refusal named.
            sent_without: what the refused request was sent without.
            why: the server's words, for the log.

        Returns:
            Whether there is another way of asking than the one that was refused.
        """
        self._look()
        if "max_completion_tokens" in refused and "max_tokens" in known_without(self._model):
            # The name promised too much: this server wants the older parameter.
            self._names, refused = self._names - {"max_tokens"}, refused - {"max_completion_tokens"}
        learned = refused - self._names
        self._names |= refused
        if learned:
            log.info("%s is asked without %s: %s", self._model, ", ".join(sorted(learned)), why)
            self._keep()
        return self._names != sent_without

    def answered(self) -> None:
        """Keep the names of a request that was answered: what the cache of another run knew, a replay has to know."""
        if not self._is_kept:
            self._keep()

    def _look(self) -> None:
        for file in self._read:
            with suppress(OSError, ValueError, TypeError):
                found = json.loads(regular_bytes(file))["without"]
                self._names |= frozenset(name for name in found if isinstance(name, str))

    def _keep(self) -> None:
        self._is_kept = True
        said = {"model": self._model, "without": sorted(self._names - known_without(self._model))}
        if self._written is None or not said["without"]:
            return
        # Where it cannot be kept, each process learns it by a refusal of its own.
        with suppress(OSError):
            self._written.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._written, f"{json.dumps(said, indent=1)}\n".encode())
