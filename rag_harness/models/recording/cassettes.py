"""HTTP recordings in vcrpy's file format: one file for each interaction, named by its request.

``<folder>/<model>/<digest>.yaml``: the digest is of method, path and the normalised JSON body, after keys and private
text were removed. So a lookup needs no search. Experiments with the same request share a file. Workers that record at
the same time lose nothing. The name can be checked from a file that is not abridged.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rag_harness.errors import DataError, RecordingWriteError
from rag_harness.files.atomic import write_atomically
from rag_harness.models.recording.cassette_file import SCHEMA_VERSION, Recorded, read_interaction, write_interaction
from rag_harness.models.recording.cleaned_request import STORES, CleanedRequest, read_request, request_digest
from rag_harness.models.recording.nearest import Neighbours, request_differences
from rag_harness.models.recording.scrubbing import Cleaner, Scrub

__all__ = [
    "CONFIRMED",
    "OUTDATED",
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

TOTAL, TTFT = "x-rag-recorded-total-ms", "x-rag-recorded-ttft-ms"
"""Headers of a replayed response: the times of the recorded call."""
RECORDED_AT, OUTDATED = "x-rag-recorded-at", "x-rag-recorded-outdated"
"""More headers: the date of the recording, and "1" if the model now has another version."""
SERVICES = "endpoints"
"""Folder of services, beside those of the profiles: answers of a service do not depend on the profile."""
OWN = "own"
"""Folder of the calls of users' own code: of tests, and of apps that are traced."""
CONFIRMED = "version.txt"
"""File beside the recordings of a model: a version that gives the same answers, whichever version recorded them."""


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
        self._confirmed: dict[Path, str] = {}

    def asked(self, method: str, url: str, content: bytes, headers: Mapping[str, str] | None = None) -> CleanedRequest:
        """Return a cleaned request, as recordings store it."""
        asked = read_request(method, url, content, headers or {}, self._cleaner)
        return replace(asked, abridges=self._abridges)

    def file(self, asked: CleanedRequest) -> Path:
        """Return the file of a request's recording, which need not exist."""
        return self.folder / asked.folder / f"{asked.digest}.yaml"

    def has(self, method: str, path: str, body: Mapping[str, Any]) -> bool:
        """Return whether a JSON request is recorded, without reading the answer."""
        return self.file(self.asked(method, path, json.dumps(body).encode())).is_file()

    def load(self, asked: CleanedRequest) -> Recorded | None:
        """Return the recording of a request, or None.

        Raises:
            DataError: the file is cut short, damaged or of a newer release; names it.
        """
        file = self.file(asked)
        if not file.is_file():
            return None
        self.used.add(file)
        return read_interaction(file)

    def is_of(self, asked: CleanedRequest, found: Recorded, version: str) -> bool:
        """Return whether a recording is an answer of the ``version`` of a model."""
        return version in (found.version, self._confirmed_in(self.file(asked).parent))

    def _confirmed_in(self, folder: Path) -> str:
        if folder not in self._confirmed:
            try:
                self._confirmed[folder] = (folder / CONFIRMED).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError):
                self._confirmed[folder] = ""
        return self._confirmed[folder]

    def save(self, asked: CleanedRequest, response: Recorded) -> None:
        """Write a recording atomically.

        Raises:
            RecordingWriteError: the disk is full or broken.
        """
        file = self.file(asked)
        try:
            write_atomically(file, write_interaction(asked, response))
        except OSError as error:
            raise RecordingWriteError(
                f"An answer cannot be kept: {file}: {error.strerror or error}. What was recorded before is whole. Make "
                f"room, or name another folder with --rag-cassettes; the next run calls only what is missing."
            ) from error
        self.used.add(file)
        self.made.add(file)

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
                f"Nothing was called. Name another folder with --rag-cassettes, or make this one writable."
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
            self._read_folders[folder] = Neighbours(_readable(sorted(folder.glob("*.yaml"))))
        return self._read_folders[folder]


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
