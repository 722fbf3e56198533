"""Every error that the harness raises on purpose.

    RagHarnessError
    ├── PrerequisiteError        the run cannot start: a key, a file, a package or an option is missing or wrong
    │   ├── SettingsError        an option has a value that cannot be used
    │   ├── DataError            a document, query or golden file is malformed; names file and line
    │   │   └── UnreadableError  no text can be had of a file; whoever knows its name puts it in front
    │   └── RegistryError        a name that no registered part answers to
    ├── ChunkTooLongError        a chunk is longer than the embedder reads
    ├── ModelOutputError         a model answered, but not in a form that can be used
    ├── ModelCallError           a call to a model failed after its retries
    │   └── QueryTooLongError    a question has more tokens than the embedder reads; asking again does not help
    ├── BudgetError              the next call could pass the budget, so it is not made
    ├── DeadlineError            a call or a trial took longer than it may
    ├── RecordingMissError       replay was asked for something that nobody recorded
    └── CriticalError            the run must stop now: a rejected key, an unknown model, a dead index
        ├── NoRoomError          the disk has no room for what is to be written, and nothing was
        └── RecordingWriteError  an answer cannot be kept: going on would pay for others that cannot either

A message says what was asked, what was found, and what to do. The plugin prints a
PrerequisiteError and a CriticalError without a traceback.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class RagHarnessError(Exception):
    """Base of all errors raised on purpose by this package."""


class PrerequisiteError(RagHarnessError):
    """The run cannot start; the message says what is missing and how to get it."""


class SettingsError(PrerequisiteError):
    """An option, ini value or environment variable has a value that cannot be used."""


class DataError(PrerequisiteError):
    """Input files are malformed; the message lists every problem with file and line."""


class UnreadableError(DataError):
    """No text can be had of a file, or not within the limits; the message says why, without the file's name."""


class RegistryError(PrerequisiteError):
    """A name was asked for that nothing is registered under."""


class ChunkTooLongError(RagHarnessError):
    """A chunk holds more tokens than the embedder reads, so its end could never be found."""


class ModelOutputError(RagHarnessError):
    """A model's answer cannot be read; ``raw`` keeps what it said."""

    def __init__(self, message: str, raw: str = "") -> None:
        super().__init__(message)
        self.raw = raw


class NotJudgedError(ModelOutputError):
    """A judge does not judge such a text, whoever asks; the message is the reason of the score that is not there."""


class ModelCallError(RagHarnessError):
    """A call to a model failed for good, after the retries that made sense."""


class QueryTooLongError(ModelCallError):
    """A question has ``tokens`` tokens, and the embedding model reads ``most``."""

    def __init__(self, message: str, tokens: int, most: int) -> None:
        super().__init__(message)
        self.tokens, self.most = tokens, most

    def __reduce__(self) -> tuple[type[QueryTooLongError], tuple[str, int, int]]:
        return type(self), (str(self), self.tokens, self.most)


class BudgetError(RagHarnessError):
    """The next call could pass the budget. What was not asked is no failure: it is "not run"."""


class DeadlineError(RagHarnessError):
    """A call or a trial took longer than it may."""


class RecordingMissError(RagHarnessError):
    """Replay was asked for what is not in the recording; ``texts`` are those that have no vector."""

    def __init__(self, message: str, texts: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.texts = tuple(texts)


class CriticalError(RagHarnessError):
    """Nothing that follows can succeed, so the run stops at once."""


class NoRoomError(CriticalError):
    """The disk has no room for what is to be written; found out before, and so nothing is written by half."""


class RecordingWriteError(CriticalError):
    """What a model answered cannot be kept: the disk is full, or refuses."""


def is_near(name: str, known: Iterable[str]) -> bool:
    """Return whether a name is probably a slip of one of the ``known``."""
    return bool(get_close_matches(name, known, n=1))


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """Say that ``name`` is no known ``kind``, with the nearest names."""
    names = sorted(known)
    close = get_close_matches(name, names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"Unknown {kind} {name!r}.{hint} Known: {', '.join(names) or 'none'}."
