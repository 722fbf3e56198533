"""The file of the questions under review. It is complete at every moment, and changes by others are not overwritten.

Rejected questions are moved to ``<name>.rejected.jsonl`` beside it. So readers of the questions do not ask them, and
none is lost. If the process is killed between the two writes, a question is in both files and counts as not rejected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from rag_harness.authoring.questions.review.file_lines import FileLines
from rag_harness.authoring.questions.review.reviewed_rows import REJECTED, QueryRow, state_of
from rag_harness.authoring.questions.review.standing import with_standing
from rag_harness.dataset.queries import read_queries
from rag_harness.errors import DataError
from rag_harness.files.atomic import write_atomically
from rag_harness.files.json_text import read_json

MOST_PROBLEMS = 5
"""How many malformed lines are named one by one."""


def rejected_file(file: Path) -> Path:
    """Return the file of the rejected questions of ``file``."""
    return file.with_name(f"{file.stem}.rejected{file.suffix}")


def rejected_rows(file: Path) -> list[QueryRow]:
    """Return the rejected questions of ``file``; empty if there are none.

    Raises:
        DataError: the rejected questions cannot be read.
    """
    apart = rejected_file(file)
    return [_row(line, apart) for line in _lines(_text(apart, _content(apart)))]


class ReviewFile:
    """The questions of a file, followed by the rejected ones.

    Raises:
        DataError: the file is no file of questions.
    """

    def __init__(self, file: Path) -> None:
        # Resolved, because a rename would replace a link by a file.
        self.file: Path = file.resolve()
        held = self._found()
        asked, apart = (_text(file, content) for file, content in held.items())
        _check(self.file, is_empty=bool(apart.strip()) and not asked.strip())
        self._lines = FileLines(_lines(asked))
        _refuse_scenarios(self._lines.rows, self.file)
        known = {row["query_id"]: row["query"] for row in self._lines.rows}
        rejected: list[tuple[str, QueryRow]] = []
        self._others: list[str] = []
        for line in _lines(apart):
            row = _row(line, rejected_file(self.file))
            if row["query_id"] not in known:
                known[row["query_id"]] = row["query"]
                rejected.append((line, row))
            elif known[row["query_id"]] != row["query"]:
                # The questions were written anew after the rejection, and a new question got its id.
                self._others.append(line)
        self._lines.add(rejected)
        self._held = held

    @property
    def rows(self) -> Sequence[QueryRow]:
        """All questions. A row's number does not change."""
        return self._lines.rows

    def put(self, changed: Mapping[int, QueryRow]) -> Mapping[int, QueryRow]:
        """Write changed rows at these numbers; return all that changed: turns stand on each other.

        Raises:
            DataError: a file cannot be written, or someone else has written it since it was read; nothing is written.
        """
        if self._found() != self._held:
            raise DataError(f"{self.file} was changed by somebody else meanwhile. Run the command again.")
        every = with_standing(self.rows, changed)
        self._write(self._lines.with_rows(every))
        return every

    def _write(self, new: FileLines) -> None:
        is_out, was_out = _are_rejected(new.rows), _are_rejected(self.rows)
        # Rows that come back are written first, while rows that leave are still in their old file. A killed process
        # thus leaves a question in both files, never in neither.
        leaves = [now and not before for now, before in zip(is_out, was_out, strict=True)]
        stays = [not now or leaving for now, leaving in zip(is_out, leaves, strict=True)]
        self._keep(self.file, new.with_those_of(self._lines, leaves).asked(stays))
        others = "".join(f"{line}\n" for line in self._others).encode()
        self._keep(rejected_file(self.file), others + new.apart(is_out))
        self._keep(self.file, new.asked([not out for out in is_out]))
        self._lines = new

    def _keep(self, file: Path, content: bytes) -> None:
        if content == self._held[file]:
            return
        try:
            if content or file == self.file:
                write_atomically(file, content)
            else:
                file.unlink()
        except OSError as error:
            raise DataError(f"{file} cannot be written: {error.strerror}. No decision is kept.") from error
        self._held[file] = content

    def _found(self) -> dict[Path, bytes]:
        return {file: _content(file) for file in (self.file, rejected_file(self.file))}


def _are_rejected(rows: Sequence[QueryRow]) -> list[bool]:
    return [state_of(row) == REJECTED for row in rows]


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes() if file.is_file() else b""
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}. Mend its rights.") from error


def _text(file: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: not UTF-8 at byte {error.start}. Save the file as UTF-8.") from error


def _lines(text: str) -> Iterator[str]:
    return (line for line in text.split("\n") if line.strip())


def _check(file: Path, is_empty: bool) -> None:
    """Check that it is a file of questions. An empty file is valid: all of its questions were rejected."""
    if not file.is_file():
        raise DataError(f"No file {file}. Name a file of questions; rag-harness kb queries DIR writes one.")
    try:
        if not is_empty:
            read_queries(file)
    except DataError as error:
        problems = str(error).split("\n")
        more = [f"… and {len(problems) - MOST_PROBLEMS} more."] if len(problems) > MOST_PROBLEMS else []
        said = "\n".join([*problems[:MOST_PROBLEMS], *more])
        raise DataError(f"{said}\n{file} is no file of questions that can be reviewed.") from error


def _refuse_scenarios(rows: Iterable[QueryRow], file: Path) -> None:
    played = next((row for row in rows if "scenario" in row), None)
    if played is not None:
        raise DataError(
            f"{file} has a line with a scenario, {played.get('conversation')!r}: what is asked in it is known when it "
            f"is played, and questions are reviewed one by one. Keep scenarios in a file of their own. rag-harness "
            f"queries check looks at their gold."
        )


def _row(line: str, file: Path) -> QueryRow:
    try:
        row: QueryRow = read_json(line)
        row["query_id"], row["query"], row["metadata"]["reviewed"]
    except (ValueError, TypeError, KeyError) as error:
        raise DataError(f"{file} holds a line that is no rejected question. Mend or remove it.") from error
    return row
