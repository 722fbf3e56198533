"""Cassettes: HTTP recordings by request, and the recording most similar to a request without one."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rag_harness.core.errors import DataError, RecordingWriteError
from rag_harness.core.files import begin_atomically, finish_begun
from rag_harness.models.recording.cassette_file import (
    SCHEMA_VERSION,
    ExperimentCassette,
    Recorded,
    read_interaction,
    write_interaction,
)
from rag_harness.models.recording.scrubbing import (
    STORES,
    CleanedRequest,
    Cleaner,
    Scrub,
    abridged,
    normal,
    read_request,
    request_digest,
)

__all__ = [
    "OWN",
    "RECORDED_AT",
    "SCHEMA_VERSION",
    "SERVICES",
    "TOTAL",
    "TTFT",
    "Cassettes",
    "CleanedRequest",
    "Recorded",
    "last_written",
    "request_digest",
]


_SHORT = ("model", "temperature", "seed", "max_tokens")
"""Fields whose recorded value is short enough for a message."""


class Neighbours:
    """The requests of one folder's recordings. Each is read and split into lines once, for all requests without one.

    Args:
        recordings: the recordings of the folder, by file. Their answers are not loaded.
    """

    def __init__(self, recordings: Iterable[tuple[Path, Recorded]]) -> None:
        self._recorded: dict[Path, Recorded] = {}
        self._lines: dict[Path, frozenset[str]] = {}
        known: dict[str, str] = {}  # prompts share most of their lines, so each line is kept once
        for file, recorded in recordings:
            self._recorded[file] = replace(recorded, body=b"")
            lines = _lines(abridged(recorded.request), recorded.url)
            self._lines[file] = frozenset(known.setdefault(line, line) for line in lines)

    def nearest(self, asked: CleanedRequest) -> tuple[Path, Recorded] | None:
        """Return the recording with the largest share of lines in common with a request, or None.

        Of equal ones, the last by name is returned.
        """
        mine = _lines(abridged(asked.body), asked.url)
        best = max(self._lines, key=lambda file: (_likeness(mine, self._lines[file]), file.name), default=None)
        return None if best is None else (best, self._recorded[best])


def _likeness(mine: Set[str], theirs: Set[str]) -> float:
    shared = len(mine & theirs)
    return shared / max(1, len(mine) + len(theirs) - shared)


def request_differences(asked: CleanedRequest, recorded: Recorded) -> list[str]:
    """Return the differences: fields of the request; in the prompt, the system text, the sources or the question."""
    # Some recordings have an abridged prompt. The digests of cut paragraphs differ where the paragraphs do.
    one, other = _fields(abridged(asked.body)), _fields(abridged(recorded.request))
    keys = [key for key in {*one, *other} - {"messages"} if normal(one.get(key)) != normal(other.get(key))]
    found = [f"{key} ({other.get(key)!r} recorded)" if key in _SHORT else key for key in sorted(keys)]
    mine, theirs = _parts(one), _parts(other)
    found += [name for name in dict.fromkeys([*mine, *theirs]) if mine.get(name) != theirs.get(name)]
    return [*_address(asked.url, recorded.url), *found, *(["the body"] if asked.raw else [])]


def _address(asked: str, recorded: str) -> Iterator[str]:
    mine, theirs = urlsplit(asked), urlsplit(recorded)
    if mine.path != theirs.path:
        yield f"the path ({theirs.path} recorded)"
    if mine.query != theirs.query:
        yield f"the query string ({theirs.query!r} recorded)"


def _fields(body: Any) -> Mapping[str, Any]:
    return body if isinstance(body, Mapping) else {"the body": body}


def _lines(body: Any, url: str) -> set[str]:
    messages = body.get("messages") if isinstance(body, Mapping) else None
    said = (str(each.get("content", "")) for each in _messages(body)) if messages else _texts(body)
    return {line for text in said for line in text.splitlines()} or set(re.split(r"[/?&]", url))


def _messages(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    messages = body.get("messages")
    return [each for each in messages if isinstance(each, Mapping)] if isinstance(messages, list) else []


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for each in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from _texts(each)


def _parts(body: Mapping[str, Any]) -> dict[str, str]:
    parts: dict[str, str] = {}
    for message in _messages(body):
        content = str(message.get("content", ""))
        if message.get("role") == "system":
            parts["the system prompt"] = content
            continue
        context, _, question = content.rpartition("Question: ")
        parts["the question"] = question
        # A source's address counts, too: a long one is abridged together with its text.
        for label, text in re.findall(r"^\[(Source \d+): (.*?)(?=^\[Source \d+: |\Z)", context, re.M | re.S):
            parts[f"the text of [{label}]"] = text.strip()
    return parts


# HTTP recordings in vcrpy's file format: one file for each interaction, named by its request.
#
# ``<folder>/<model>/<digest>.yaml``: the digest is of method, path and the normalised JSON body, after keys and private
# text were removed. So a lookup needs no search. Experiments with the same request share a file. Workers that record at
# the same time lose nothing, and two branches that record different questions merge without a conflict. The name can be
# checked from a file that is not abridged. Files with the interactions of an experiment (``cassette_file``) lie
# in the folder itself; they are read and never written to.

TOTAL, TTFT = "x-rag-recorded-total-ms", "x-rag-recorded-ttft-ms"
"""Headers of a replayed response: the times of the recorded call."""
RECORDED_AT = "x-rag-recorded-at"
"""Another: the date of the recording."""
SERVICES = "endpoints"
"""Folder of services, beside those of the profiles: answers of a service do not depend on the profile."""
OWN = "own"
"""Folder of the calls of users' own code: of tests, and of apps that are traced."""


class Cassettes:
    """The recordings of one profile, or of the user's own calls.

    Args:
        folder: the folder of the recordings.
        secrets: values that must not reach the disk.
        scrub: removes private text from requests and answers.
        abridges: whether long paragraphs of a request are stored as their first words and a digest.

        Attributes:
            used: the files that were replayed or made.
            made: the files that were made.
    """

    def __init__(
        self, folder: Path, secrets: Iterable[str] = (), scrub: Scrub | None = None, abridges: bool = False
    ) -> None:
        self.folder = folder
        self._abridges = abridges
        self.used: set[Path] = set()
        self.made: set[Path] = set()
        self._cleaner = Cleaner(secrets, scrub)
        self._read_folders: dict[Path, Neighbours] = {}
        self._read_experiments: dict[Path, ExperimentCassette] = {}

    def asked(self, method: str, url: str, content: bytes, headers: Mapping[str, str] | None = None) -> CleanedRequest:
        """Return a cleaned request, as recordings store it."""
        asked = read_request(method, url, content, headers or {}, self._cleaner)
        return replace(asked, abridges=self._abridges)

    def file(self, asked: CleanedRequest) -> Path:
        """Return the file of a request's recording, which need not exist."""
        return self.folder / asked.folder / f"{asked.digest}.yaml"

    def has(self, asked: CleanedRequest) -> bool:
        """Return whether a request is recorded, without reading the answer."""
        return _is_there(self.file(asked)) or self._of_an_experiment(asked) is not None

    def load(self, asked: CleanedRequest) -> Recorded | None:
        """Return the recording of a request, or None.

        Raises:
            DataError: the file is cut short, damaged or of a newer release; names it.
        """
        file = self.file(asked)
        if _is_there(file):
            self.used.add(file)
            return read_interaction(file)
        found = self._of_an_experiment(asked)
        if found is not None:
            self.used.add(found.file)
            return found.read(asked.digest)
        for cassette in self._of_experiments():
            if cassette.fault:
                raise DataError(
                    f"{cassette.fault}. Perhaps it was the answer that is asked for. Take the file as it was from your "
                    f"repository, or remove the lines and record them again."
                )
        return None

    def _of_an_experiment(self, asked: CleanedRequest) -> ExperimentCassette | None:
        return next((cassette for cassette in self._of_experiments() if asked.digest in cassette), None)

    def _of_experiments(self) -> Iterator[ExperimentCassette]:
        """Yield the files of experiments, those that were read already before the others."""
        known = dict(self._read_experiments)
        yield from known.values()
        for file in self._files_of_experiments:
            if file not in known:
                self._read_experiments[file] = ExperimentCassette(file)
                yield self._read_experiments[file]

    @cached_property
    def _files_of_experiments(self) -> list[Path]:
        # Recordings of a service lie in the folder itself, so it has none.
        return sorted(self.folder.glob("*.yaml")) if type(self) is Cassettes else []

    def save(self, asked: CleanedRequest, response: Recorded) -> None:
        """Write a recording atomically.

        Raises:
            RecordingWriteError: the disk is full or broken.
        """
        self.begin(asked, response)()

    def begin(self, asked: CleanedRequest, response: Recorded) -> Callable[[], None]:
        """Write a recording so that no kill loses it; return what syncs it and puts it in place.

        Both raise RecordingWriteError where the disk is full or broken.
        """
        file = self.file(asked)
        with _explained(file):
            finish = begin_atomically(file, write_interaction(asked, response))

        def end() -> None:
            with _explained(file):
                finish()
            self.used.add(file)
            self.made.add(file)

        return end

    def check_writable(self) -> None:
        """Check that the folder can be written, before any call is paid for.

        Raises:
            DataError: the folder cannot be written.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                pass
        except OSError as error:
            raise DataError(
                f"Mode record keeps answers in {self.folder}, which cannot be written: {error.strerror or error}. "
                f"Nothing was called. Name another folder with --rag-project, or make this one writable."
            ) from error

    def unused(self) -> list[Path]:
        """Return the recordings that were neither replayed nor made, without stores of vectors and scores."""
        folders = [each for each in self.folder.glob("*/") if each.name not in STORES]
        return sorted(file for folder in folders for file in folder.glob("*.yaml") if file not in self.used)

    def nearest(self, asked: CleanedRequest) -> str:
        """Return a message for a request without a recording: the most similar recording, and the differences."""
        found = self._neighbours(self.file(asked).parent).nearest(asked)
        if found is None:
            return f"Nothing of {asked.owner} is recorded in {self.folder}."
        file, recorded = found
        differing = ", ".join(request_differences(asked, recorded)) or "nothing that can be named"
        return f"The nearest recording, {file.name}, differs in {differing}."

    def _neighbours(self, folder: Path) -> Neighbours:
        if folder not in self._read_folders:
            of_experiments = chain.from_iterable(each.readable() for each in self._of_experiments())
            self._read_folders[folder] = Neighbours(chain(_readable(sorted(folder.glob("*.yaml"))), of_experiments))
        return self._read_folders[folder]


@contextmanager
def _explained(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RecordingWriteError(
            f"An answer cannot be kept: {file}: {error.strerror or error}. What was recorded before is whole. Make "
            f"room, or name another folder with --rag-project; the next run calls only what is missing."
        ) from error


def _is_there(file: Path) -> bool:
    """Return whether a recording is there. One that a kill has left beside its place is moved there."""
    return file.is_file() or finish_begun(file, _is_whole)


def _is_whole(file: Path) -> bool:
    try:
        read_interaction(file)
    except DataError:
        return False
    return True


def _readable(files: Iterable[Path]) -> Iterable[tuple[Path, Recorded]]:
    for file in files:
        try:
            yield file, read_interaction(file)
        except DataError:
            # A request for this file gets its error. Here the request is for another one.
            continue


def last_written(folder: Path) -> float:
    """Return when an answer was last added to or removed from a folder of recordings or its subfolders.

    In seconds since 1970; 0 without any. Vectors and scores do not count.
    """
    latest = 0.0
    for place, below, files in os.walk(folder):
        below[:] = [each for each in below if each not in STORES]
        if any(file.endswith(".yaml") for file in files):
            latest = max(latest, Path(place).stat().st_mtime)
    return latest
