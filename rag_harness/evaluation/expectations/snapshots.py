"""Snapshots of answers: their expectation, and syrupy's files, one an experiment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from rag_harness.core.errors import DataError, PrerequisiteError
from rag_harness.core.files import write_atomically
from rag_harness.core.registry import missing_package
from rag_harness.core.types import Expectation
from rag_harness.evaluation.expectations.text import in_one_line
from rag_harness.records.expectations import LONGEST, AnswerSeen, ExpectationKind, Finding, looked_at

if TYPE_CHECKING:
    from syrupy.extensions.amber.serializer import AmberDataSerializer


# The answer says what it said before. Case, blanks and citation marks do not count.

SNAPSHOT = "snapshot"
NOT_YET = "no snapshot yet: pytest --snapshot-update"
_WORD = re.compile(r"\d{1,30}(?:[.,]\d{1,30}){0,10}|\w{1,30}|[^\w\s]")
"""A number, a word, or a sign. Blanks do not count, so neither does the one that a citation mark leaves."""
_BESIDE, _MOST = 2, 12
"""How many words a message shows before and behind those that differ, and how many of these."""


class Snapshot(ExpectationKind):
    """The answer says what its snapshot says."""

    options: ClassVar[Mapping[str, type | tuple[type, ...]]] = {"case": bool}

    def problem(self, demand: Expectation) -> str:
        if demand.negated:
            return 'it has no opposite. What an answer must not say is {"not": {"contains": "…"}}'
        if demand.wanted is not True:
            return 'write true: the text is that of an answer. A text of your own is {"equals": "…"}'
        return ""

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        if demand.was is None:
            return Finding(None, NOT_YET)
        change = _change(demand, answer.words)
        return change or Finding(True, "it says the same", 0, len(answer.text))


def renewed(demand: Expectation, text: str) -> Expectation:
    """Return a snapshot as an update leaves it: with the present answer, unless it agrees with the stored one.

    An empty answer, and one that is too long to be checked, is not stored.
    """
    if not text.strip() or len(text) > LONGEST:
        return demand
    is_same = looked_at([demand], AnswerSeen(text))[0].kept is True
    return demand if is_same else replace(demand, was=text)


class _Word(NamedTuple):
    text: str
    start: int
    end: int


def _change(demand: Expectation, now: str) -> Finding | None:
    """Return the change, from the first to the last word that differs; None without one."""
    was, counts_case = AnswerSeen(demand.was or "").words, bool(demand.options.get("case"))
    old, new = _words(was, counts_case), _words(now, counts_case)
    if [each.text for each in old] == [each.text for each in new]:
        return None
    if not new:
        return Finding(False, "the answer is empty")
    first = sum(1 for _ in takewhile(_alike, zip(old, new, strict=False)))
    rest = min(len(old), len(new)) - first
    last = sum(1 for _ in takewhile(_alike, zip(old[::-1][:rest], new[::-1][:rest], strict=False)))
    differing = new[first : len(new) - last] or new[max(first - 1, 0) :][:1]
    said = f"“{_shown(was, old, first, last)}” became “{_shown(now, new, first, last)}”"
    return Finding(False, said, differing[0].start, differing[-1].end)


def _words(text: str, counts_case: bool) -> list[_Word]:
    found = _WORD.finditer(text)
    return [_Word(match[0] if counts_case else match[0].casefold(), *match.span()) for match in found]


def _alike(pair: tuple[_Word, _Word]) -> bool:
    return pair[0].text == pair[1].text


def _shown(text: str, words: list[_Word], first: int, last: int) -> str:
    """Return the words that differ with a few beside them, cut from behind."""
    start, end = max(0, first - _BESIDE), min(len(words), len(words) - last + _BESIDE, first + _MOST)
    if start >= end:
        return ""
    shown = in_one_line(text[words[start].start : words[end - 1].end])
    return f"{'…' if start else ''}{shown}{'…' if end < len(words) and not shown.endswith('…') else ''}"


# Reads and writes snapshots of answers: syrupy's amber files, one an experiment, an answer under the id of its trial.
#
# syrupy's own folder, ``__snapshots__``, is none for them: it counts what no assertion of a test has asked for as
# unused, fails the run for it, and deletes it with ``--snapshot-update``.

ENDING = ".ambr"


def read_snapshots(file: Path) -> dict[str, str]:
    """Return the answers in a file by their names; none where the file does not exist.

    Raises:
        PrerequisiteError: syrupy is not installed.
        DataError: the file is not a file of snapshots.
    """
    serializer = _serializer()
    try:
        found = serializer.read_file(str(file))
    except Exception as error:  # syrupy's errors have no base of their own
        raise DataError(f"{file} cannot be read as snapshots: {error}") from error
    if found.tainted:
        raise DataError(
            f"{file} is not a file of snapshots that the installed syrupy reads: its first line was to be "
            f"'# serializer version: {serializer.VERSION}'. Take it from git again, or delete it and keep the answers "
            f"again with --snapshot-update."
        )
    return {each.name: str(each.data) for each in found}


def write_snapshots(file: Path, answers: Mapping[str, str]) -> None:
    """Write a file of snapshots, sorted by name, or delete it where no answer is left.

    Raises:
        OSError: it cannot be written.
    """
    from syrupy.data import Snapshot, SnapshotCollection

    if not answers:
        file.unlink(missing_ok=True)
        return
    with TemporaryDirectory() as folder:
        # syrupy writes in place: a kill would leave half a file.
        whole = Path(folder) / file.name
        collection = SnapshotCollection(location=str(whole))
        for name, text in answers.items():
            # Text behind a lone carriage return would be lost when the file is read.
            lines = text.replace("\r\n", "\n").replace("\r", "\n")
            collection.add(Snapshot(name=name, data=lines.encode("utf-8", "replace").decode()))
        _serializer().write_file(collection)
        write_atomically(file, whole.read_bytes())


def _serializer() -> type[AmberDataSerializer]:
    try:
        from syrupy.extensions.amber.serializer import AmberDataSerializer
    except ImportError as error:
        raise PrerequisiteError(missing_package("expectation 'snapshot'", error)) from error
    return AmberDataSerializer
