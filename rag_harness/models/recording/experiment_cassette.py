"""A file of vcrpy's format with the interactions of an experiment, beside the folders that have a file for each.

``<folder>/e3.yaml``. Every interaction has its own ``metadata``: the digest of its request, by which it is found, and
what a recording has beside. vcrpy passes over them. A lookup reads neither YAML nor any interaction but its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

from rag_harness.errors import DataError
from rag_harness.models.recording.cassette_file import Recorded, cassette_text, read_interaction_text

_HEAD = "version: 1\ninteractions:\n"
_BEGIN = "\n- request:\n"
_METADATA = re.compile(r"^  metadata:\n    digest: (?P<digest>[0-9a-f]{24})\n(?P<rest>(?:    .*\n)+)\Z", re.MULTILINE)
_ONE = "\nmetadata:\n"


def cassette_of(interactions: Mapping[str, str]) -> str:
    """Return the content of a file, made of the contents of files with one interaction, by the digest of the request.

    Raises:
        ValueError: one of them is in no form that the harness writes.
    """
    return _HEAD + "".join(_entry(digest, text) for digest, text in interactions.items())


def _entry(digest: str, text: str) -> str:
    interaction, end, metadata = text.removeprefix(_HEAD).rpartition(_ONE)
    if not (end and text.startswith(_HEAD) and interaction.startswith("- request:\n")):
        raise ValueError(f"{digest} is in a form that cannot be packed")
    lines = "".join(f"  {line}\n" for line in metadata.splitlines())
    return f"{interaction}\n  metadata:\n    digest: {digest}\n{lines}"


class ExperimentCassette:
    """The interactions of one file.

    Args:
        file: the file.

    Raises:
        DataError: it cannot be read.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        try:
            self._text = cassette_text(file)
        except (OSError, ValueError) as error:
            raise DataError(f"The recordings {file} cannot be read: {error}.") from error

    @cached_property
    def _entries(self) -> dict[str, tuple[int, int]]:
        """The place of each whole interaction in the text, by digest."""
        found = ((self._metadata(span), span) for span in self._spans)
        return {match["digest"]: span for match, span in found if match}

    @cached_property
    def _spans(self) -> list[tuple[int, int]]:
        """Begin and end of each interaction in the text, whole or not."""
        begins, at = [], self._text.find(_BEGIN)
        while at >= 0:
            begins.append(at + 1)
            at = self._text.find(_BEGIN, at + 1)
        return [*zip(begins, [*begins[1:], len(self._text)], strict=True)]

    @cached_property
    def fault(self) -> str:
        """What is wrong with the file, with the line; empty where every interaction is whole."""
        if not self._text.startswith(_HEAD) or not self._spans or self._spans[0][0] != len(_HEAD):
            return f"{self.file}, line 1: it does not begin as a recording of this tool"
        for span in self._spans:
            if not self._metadata(span):
                return f"{self.file}, line {self._line(span[0])}: the recording that begins there is not whole"
        return ""

    @property
    def digests(self) -> list[str]:
        """The digests of all requests, in the order of the file."""
        return [*self._entries]

    def __contains__(self, digest: str) -> bool:
        return digest in self._entries

    def read(self, digest: str) -> Recorded:
        """Return the interaction with this digest.

        Raises:
            DataError: it is damaged; names file and line.
        """
        begin, end = self._entries[digest]
        metadata = self._metadata((begin, end))
        assert metadata is not None
        lines = "".join(f"{line[2:]}\n" for line in metadata["rest"].splitlines())
        try:
            return read_interaction_text(f"{_HEAD}{self._text[begin : metadata.start()]}metadata:\n{lines}")
        except Exception as error:
            why = " ".join(str(error).split())[:200]
            raise DataError(
                f"The recording at {self.file}, line {self._line(begin)} cannot be read: {why}. Take the file as it "
                f"was from your repository, or remove this recording and record it again."
            ) from error

    def readable(self) -> Iterator[tuple[Path, Recorded]]:
        """Yield the interactions that can be read, each with file and line."""
        for digest, (begin, _) in self._entries.items():
            try:
                yield self.file.with_name(f"{self.file.name}:{self._line(begin)}"), self.read(digest)
            except DataError:
                continue

    def _metadata(self, span: tuple[int, int]) -> re.Match[str] | None:
        # The metadata are the last lines: a search from the beginning would read each prompt.
        at = self._text.rfind("\n  metadata:\n", *span)
        return _METADATA.match(self._text, at + 1, span[1]) if at >= 0 else None

    def _line(self, place: int) -> int:
        return self._text.count("\n", 0, place) + 1
