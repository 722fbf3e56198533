"""Errors that the harness raises on purpose."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

#     RagHarnessError
#     ├── PrerequisiteError        the run cannot start: a key, a file, a package or an option is missing or wrong
#     │   ├── SettingsError        an option has a value that cannot be used
#     │   ├── DataError            a document, query or golden file is malformed; names file and line
#     │   │   └── UnreadableError  a file has no readable text; the caller puts the file's name in front
#     │   └── RegistryError        no part is registered under this name
#     ├── ChunkTooLongError        a chunk is longer than the embedder reads
#     ├── ModelOutputError         a model answered, but not in a form that can be used
#     │   └── TraceError           an app answered, but its trace lacks what the row needs
#     ├── ModelCallError           a call to a model failed after its retries
#     │   ├── SessionLostError     a service with a memory of its own no longer knows what was said before a turn
#     │   └── QueryTooLongError    a question has more tokens than the embedder reads; asking again does not help
#     ├── BudgetError              the next call could pass the budget, so it is not made
#     ├── DeadlineError            a call or a trial took longer than it may
#     ├── RecordingMissError       replay needs an answer that was never recorded
#     └── CriticalError            the run must stop now: a rejected key, an unknown model, a dead index
#         ├── NoRoomError          the disk has no room for a file, so nothing of it was written
#         └── RecordingWriteError  an answer cannot be kept, and neither could the next ones that are paid for
#
# A message says what was asked, what was found, and what to do. The plugin and a
# notebook show a PrerequisiteError and a CriticalError without a traceback.


class RagHarnessError(Exception):
    """Base of all errors raised on purpose by this package."""


class _ShownAloneError(RagHarnessError):
    """Is shown without a traceback: its message says it all."""

    def _render_traceback_(self) -> list[str]:
        """Return what a notebook shows. IPython asks for it; the traceback would be several screens of our code."""
        return [f"{type(self).__name__}: {self}"]


class PrerequisiteError(_ShownAloneError):
    """The run cannot start; the message says what is missing and how to get it."""


class SettingsError(PrerequisiteError):
    """An option, ini value or environment variable has a value that cannot be used."""


class DataError(PrerequisiteError):
    """Input files are malformed; the message lists every problem with file and line."""


class UnreadableError(DataError):
    """A file has no readable text, or reading it passes a limit. The message says why, without the file's name."""


class RegistryError(PrerequisiteError):
    """No part is registered under a name."""


class ChunkTooLongError(RagHarnessError):
    """A chunk holds more tokens than the embedder reads, so its end could never be found."""


class ModelOutputError(RagHarnessError):
    """A model's answer cannot be parsed; ``raw`` is the answer. ``said`` is the completion that cost its tokens."""

    def __init__(self, message: str, raw: str = "") -> None:
        super().__init__(message)
        self.raw: str = raw
        self.said: Any = None


class EmptyAnswerError(ModelOutputError):
    """An answer has no text. A pipeline that declines says so in words."""


class TraceError(ModelOutputError):
    """The trace of a trial lacks what its row needs; the message says what, and what to do."""


class NotJudgedError(ModelOutputError):
    """A judge cannot judge this kind of text. The score is missing, and the message is the reason."""


class ModelCallError(RagHarnessError):
    """A call to a model failed for good, after ``retries`` retries and ``waited_ms`` milliseconds of waiting."""

    retries: int = 0
    waited_ms: float = 0.0


class SessionLostError(ModelCallError):
    """A service that keeps conversations itself does not know, or may not know, what was said before a turn."""


class QueryTooLongError(ModelCallError):
    """A question has ``tokens`` tokens, but the embedding model reads at most ``most``."""

    def __init__(self, message: str, tokens: int, most: int) -> None:
        super().__init__(message)
        self.tokens: int = tokens
        self.most: int = most

    def __reduce__(self) -> tuple[type[QueryTooLongError], tuple[str, int, int]]:
        return type(self), (str(self), self.tokens, self.most)


class BudgetError(RagHarnessError):
    """The next call could pass the budget. A trial that was not asked is not a failure; it is "not run"."""


class DeadlineError(RagHarnessError):
    """A call or a trial took longer than it may."""


class RecordingMissError(RagHarnessError):
    """Replay needs something that is not in the recording; ``texts`` are the texts without a vector."""

    def __init__(self, message: str, texts: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.texts: tuple[str, ...] = tuple(texts)


class CriticalError(_ShownAloneError):
    """No later trial can succeed, so the run stops at once."""


class NoRoomError(CriticalError):
    """The disk has no room for a file. This is checked before writing, so no file is half written."""


class RecordingWriteError(CriticalError):
    """A model's answer cannot be written: the disk is full, or refuses."""


def is_near(name: str, known: Iterable[str]) -> bool:
    """Return whether a name is probably a misspelling of one of ``known``."""
    return bool(name_meant(name, known))


def name_meant(name: str, known: Iterable[str]) -> str:
    """Return the one of ``known`` that ``name`` is probably a misspelling of; empty where none is near."""
    return next(iter(get_close_matches(name, list(known), n=1)), "")


def meant(name: str, known: Iterable[str]) -> str:
    """Return `` Did you mean 'recall'?`` with the nearest of ``known``; empty where none is near."""
    near = name_meant(name, known)
    return f" Did you mean {near!r}?" if near else ""


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """Return the message that ``name`` is not a known ``kind``, with the nearest names."""
    names = sorted(known)
    return f"Unknown {kind} {name!r}.{meant(name, names)} Known: {', '.join(names) or 'none'}."
