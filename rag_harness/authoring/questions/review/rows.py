"""The review of drafted questions: rows and decisions, the file of questions under review, and its lock."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from rag_harness.authoring.questions.drafts import MADE_OF, Draft
from rag_harness.core.errors import DataError, SettingsError
from rag_harness.core.files import text_digest, write_atomically
from rag_harness.core.json_text import read_json
from rag_harness.core.process_lock import LockHeldError, process_lock
from rag_harness.core.types import NEGATIVE, REVIEWED, Evidence, review_said
from rag_harness.data.queries import read_queries
from rag_harness.data.query_lines import DECLINES, rows_of_line, with_turns

# Metadata keys of a question, by which the check of the documents and the review exchange findings.

AFFECTED = "affected"
"""Why a person must look at a question again: its documents have changed."""
LOOKED_AT = "not_answered_by"
"""Pages that have the words of a question, and that a person found not to answer it."""


# Decisions about a row of ``queries.jsonl``, and who made them. A row is a dictionary, never changed in place.

QueryRow = dict[str, Any]

UNREVIEWED, ACCEPTED, REJECTED = "unreviewed", "accepted", "rejected"
_MEANT = {"yes": ACCEPTED, "rejected": REJECTED, "no": UNREVIEWED}
_OF_REVIEW = ("reviewed", "reviewed_by", "rejected_because")

EDITED_FIELDS = ("query_type", "query", "ground_truth", "context_reference", "evidence", "standalone")
"""The fields of a row that a person may have changed; the last one belongs to a turn."""
REJECTION_REASONS = (
    "the answer is wrong",
    "another page answers it otherwise",
    "the evidence does not answer it",
    "nobody would ask this",
    "not understandable by itself",
)
"""Common reasons to reject a question. Any other words are allowed, too."""


def state_of(row: QueryRow) -> str:
    """Return unreviewed, accepted or rejected. A row written by a person without a mark counts as unreviewed, too."""
    said = _metadata(row).get(REVIEWED)
    return UNREVIEWED if said is None else _MEANT[review_said(said)]


def asked_alone(row: QueryRow) -> str:
    """Return the question in words that need nothing said before it; empty for a later turn without such words."""
    return str(row.get("standalone") or (row["query"] if row.get("turn", 1) == 1 else ""))


def accepted(row: QueryRow, by: str, not_answered_by: Sequence[str] = ()) -> QueryRow:
    """Return the row as one that a person has accepted.

    ``not_answered_by`` are pages that have its words, and that the person found not to answer it. ``queries check``
    then does not report them again.
    """
    kept = {name: value for name, value in _metadata(row).items() if name != AFFECTED}
    known = kept.get(LOOKED_AT, ())
    looked_at = list(dict.fromkeys([*([known] if isinstance(known, str) else known), *not_answered_by]))
    seen = {**kept, LOOKED_AT: looked_at} if not_answered_by else kept
    return _marked({**row, "metadata": seen}, {"reviewed": "yes", "reviewed_by": by})


def rejected(row: QueryRow, by: str, reason: str) -> QueryRow:
    """Return the row as one that must not be asked."""
    return _marked(row, {"reviewed": "rejected", "reviewed_by": by, "rejected_because": reason})


def reopened(row: QueryRow) -> QueryRow:
    """Return the row as one without a decision."""
    return _marked(row, {"reviewed": "no"})


def edited(row: QueryRow, changes: Mapping[str, Any], by: str) -> QueryRow:
    """Return the row with changed fields. A decision about the old fields is removed."""
    changed = reopened({**row, **changes})
    return {**changed, "metadata": {**changed["metadata"], "edited_by": by}}


def line_of(row: QueryRow) -> str:
    """Return the row as a line of JSON. Half a character is written as an escape, since UTF-8 cannot hold it."""
    text = json.dumps(row, ensure_ascii=False)
    return text if text.isprintable() or not _has_half(text) else json.dumps(row)


def question_digest(row: QueryRow) -> str:
    """Return the digest of a row. A later reader can tell by it whether the row has changed."""
    return text_digest(line_of(row))


def _has_half(text: str) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in text)


def _marked(row: QueryRow, marks: Mapping[str, str]) -> QueryRow:
    kept = {name: value for name, value in _metadata(row).items() if name not in _OF_REVIEW}
    return {**row, "metadata": {**kept, **marks}}


def _metadata(row: QueryRow) -> Mapping[str, Any]:
    return row.get("metadata") or {}


# Rejecting a turn rejects those behind it because their history is gone. Taking that back brings back what was
# rejected with it, and the turns that it stands on. Other words of a turn, or of its answer, reopen those behind it
# that were accepted, because they were accepted behind the old words.

MOST_BEFORE = 6
"""How many of the turns before a turn are shown."""
_SAID = ("query", "ground_truth", "reply")


def with_standing(rows: Sequence[QueryRow], changed: Mapping[int, QueryRow]) -> dict[int, QueryRow]:
    """Return changes of rows by number, with those that they mean for other turns of the same conversations."""
    found = dict(changed)
    for conversation in dict.fromkeys(row["conversation"] for row in changed.values() if "conversation" in row):
        turns = sorted(
            (number for number, row in enumerate(rows) if row.get("conversation") == conversation),
            key=lambda number: int(rows[number]["turn"]),
        )
        for place, number in enumerate(turns):
            if number in changed:
                _come_back(rows, turns[:place], turns[place + 1 :], number, found)
                _reopen(rows, turns[place + 1 :], number, found)
        for place, number in enumerate(turns):
            if number in changed and state_of(changed[number]) == REJECTED:
                _go(rows, turns[place + 1 :], changed[number], found)
    return found


def _come_back(
    rows: Sequence[QueryRow], before: Iterable[int], behind: Iterable[int], number: int, found: dict[int, QueryRow]
) -> None:
    """Where a rejected turn comes back, bring back what it stands on, and what was rejected with it."""
    if not (state_of(rows[number]) == REJECTED != state_of(found[number])):
        return
    for each in before:
        if state_of(found.get(each, rows[each])) == REJECTED:
            found[each] = reopened(rows[each])
    for each in behind:
        if each not in found and _why(rows[each]) == _because(rows[number]):
            found[each] = reopened(rows[each])


def _reopen(rows: Sequence[QueryRow], behind: Iterable[int], number: int, found: dict[int, QueryRow]) -> None:
    if all(found[number].get(name) == rows[number].get(name) for name in _SAID):
        return
    for each in behind:
        if each not in found and state_of(rows[each]) == ACCEPTED:
            found[each] = reopened(rows[each])


def _go(rows: Sequence[QueryRow], behind: Iterable[int], row: QueryRow, found: dict[int, QueryRow]) -> None:
    for each in behind:
        if state_of(found.get(each, rows[each])) != REJECTED:
            by = str(row["metadata"].get("reviewed_by", ""))
            found[each] = rejected(found.get(each, rows[each]), by, _because(row))


def _because(row: QueryRow) -> str:
    return f"it stands on turn {row['turn']}, which was rejected"


def _why(row: QueryRow) -> str:
    return str((row.get("metadata") or {}).get("rejected_because", ""))


def by_conversation(rows: Sequence[QueryRow]) -> Mapping[str, Sequence[QueryRow]]:
    """Return the turns of each conversation, as they stand."""
    found: dict[str, list[QueryRow]] = {}
    for row in rows:
        if "conversation" in row:
            found.setdefault(row["conversation"], []).append(row)
    return found


def said_before(rows: Sequence[QueryRow], row: QueryRow) -> list[tuple[str, str]]:
    """Return what was said before a turn: the user's words, and the reply to them. Empty for other questions."""
    if "conversation" not in row:
        return []
    same = [each for each in rows if each.get("conversation") == row["conversation"]]
    before = sorted((each for each in same if each["turn"] < row["turn"]), key=lambda each: int(each["turn"]))
    return [(str(each["query"]), _reply(each)) for each in before]


def _reply(row: QueryRow) -> str:
    is_negative = row.get("query_type") == NEGATIVE
    return str(row.get("reply") or row.get("ground_truth") or (DECLINES if is_negative else ""))


# Chooses which questions of a file are shown, in their order.


def chosen_rows(
    rows: Sequence[QueryRow], kind: str = "", only: str = "", sample: int | None = None, seed: int = 0
) -> list[int]:
    """Return the numbers of the rows of a kind, of a state, or of a sample.

    A sample is drawn before states are looked at, and depends only on ids and seed. So a reviewer who continues
    tomorrow gets the same sample.

    Raises:
        DataError: no row is of that kind.
    """
    numbers = [number for number, row in enumerate(rows) if kind in ("", row.get("query_type", "direct"))]
    if not numbers:
        kinds = ", ".join(sorted({row.get("query_type", "direct") for row in rows}))
        raise DataError(f"No question is of the kind {kind!r}. There are: {kinds}.")
    if sample is not None:
        drawn = sorted(numbers, key=lambda number: text_digest(f"{seed} {rows[number]['query_id']}"))[:sample]
        numbers = sorted(drawn)
    return [number for number in numbers if only in ("", state_of(rows[number]))]


class _ConversationLine(NamedTuple):
    """A line that holds a whole conversation, as it was read."""

    line: str
    raw: Mapping[str, Any]
    rows: Sequence[QueryRow]


class FileLines:
    """The rows of a file with their lines. What is not changed keeps its bytes.

    Args:
        lines: those of the file, without empty ones.

    Attributes:
        rows: the questions, a turn a row, in their order.
    """

    def __init__(self, lines: Iterable[str] = ()) -> None:
        self.rows: list[QueryRow] = []
        self._own: list[str] = []
        self._wholes: dict[str, _ConversationLine] = {}
        for line in lines:
            raw = read_json(line)
            rows = rows_of_line(raw)
            if "turns" in raw:
                self._wholes[str(raw["conversation"])] = _ConversationLine(line, raw, rows)
            self.rows += rows
            self._own += map(line_of, rows) if "turns" in raw else [line]

    def add(self, apart: Iterable[tuple[str, QueryRow]]) -> None:
        """Add rejected rows with their lines: a turn behind those of its conversation, others at the end."""
        turns: dict[str, list[tuple[str, QueryRow]]] = defaultdict(list)
        others: list[tuple[str, QueryRow]] = []
        known = {row.get("conversation") for row in self.rows} - {None}
        for line, row in apart:
            (turns[row["conversation"]] if row.get("conversation") in known else others).append((line, row))
        both = zip(self._own, self.rows, strict=True)
        found: list[tuple[str, QueryRow]] = []
        for conversation, group in groupby(both, key=lambda each: each[1].get("conversation")):
            found += group
            found += sorted(turns.pop(conversation, []), key=lambda each: int(each[1]["turn"])) if conversation else []
        found += others
        self._own, self.rows = [line for line, _ in found], [row for _, row in found]

    def with_rows(self, changed: Mapping[int, QueryRow]) -> FileLines:
        """Return the lines with other rows at these numbers."""
        new = FileLines()
        new._wholes = self._wholes
        new.rows, new._own = list(self.rows), list(self._own)
        for number, row in changed.items():
            new.rows[number], new._own[number] = row, line_of(row)
        return new

    def with_those_of(self, old: FileLines, chosen: Sequence[bool]) -> FileLines:
        """Return the lines with the chosen rows as they are in ``old``, byte for byte."""
        new = self.with_rows({})
        for number, is_chosen in enumerate(chosen):
            if is_chosen:
                new.rows[number], new._own[number] = old.rows[number], old._own[number]
        return new

    def asked(self, stay: Sequence[bool]) -> bytes:
        """Return the lines of the rows that stay. The turns of a line stay in one line."""
        return "".join(f"{line}\n" for line in self._lines(stay)).encode()

    def apart(self, are_out: Sequence[bool]) -> bytes:
        """Return the lines of the rows that are out, a turn a line."""
        lines = (line for line, is_out in zip(self._own, are_out, strict=True) if is_out)
        return "".join(f"{line}\n" for line in lines).encode()

    def _lines(self, stay: Sequence[bool]) -> Iterator[str]:
        kept = [number for number, stays in enumerate(stay) if stays]
        for conversation, numbers in groupby(kept, key=lambda number: self.rows[number].get("conversation")):
            whole = self._wholes.get(str(conversation))
            if whole is None:
                yield from (self._own[number] for number in numbers)
            else:
                rows = [self.rows[number] for number in numbers]
                yield whole.line if rows == whole.rows else line_of(with_turns(whole.raw, rows))


# The file of the questions under review. It is complete at every moment, and changes by others are not overwritten.
#
# Rejected questions are moved to ``<name>.rejected.jsonl`` beside it. So readers of the questions do not ask them, and
# none is lost. If the process is killed between the two writes, a question is in both files and counts as not
# rejected.

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
        DataError: the file is not a file of questions.
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
                # The questions were written again after the rejection, and a new question got its id.
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
        raise DataError(f"{said}\n{file} is not a file of questions that can be reviewed.") from error


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
        raise DataError(f"{file} holds a line that is not a rejected question. Mend or remove it.") from error
    return row


# Makes sure that a file has only one review at a time.


@contextmanager
def alone_with(file: Path) -> Iterator[None]:
    """Keep other reviews of the file out.

    Raises:
        SettingsError: another review is running.
        DataError: the folder cannot be written.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(process_lock(file.with_name(f".{file.name}.lock")))
        except LockHeldError as error:
            raise SettingsError(
                f"{file} is open in another review: {error.by}. Run the command again when that one has ended."
            ) from None
        except OSError as error:
            raise DataError(
                f"Nothing can be kept in {file.parent}: {error.strerror}. Mend its rights, or review a copy of "
                f"{file.name}."
            ) from error
        yield


# Questions that a person has rejected, so that they are not shown for review again.

QUERIES_FILE = "queries.jsonl"


def rejected_beside(file: Path) -> list[Draft]:
    """Return the rejected questions of ``file``, and of ``queries.jsonl`` beside it: ``file`` may only add to those.

    Raises:
        DataError: the rejected questions cannot be read.
    """
    place = file.resolve()
    files = dict.fromkeys((place, place.with_name(QUERIES_FILE)))
    return [_draft(row, each) for each in files for row in rejected_rows(each)]


def rejected_ids(file: Path) -> set[str]:
    """Return the ids of the rejected questions of ``file``, and of their conversations: a review may bring them back.

    Raises:
        DataError: the rejected questions cannot be read.
    """
    rows = rejected_rows(file.resolve())
    return {row["query_id"] for row in rows} | {row["conversation"] for row in rows if "conversation" in row}


def _draft(row: QueryRow, file: Path) -> Draft:
    try:
        evidence = tuple(Evidence(each["filename"], each["quote"]) for each in row.get("evidence") or ())
        made_of = tuple(str(row["metadata"].get("made_of", "")).split(MADE_OF))
        kind, truth = row.get("query_type", "direct"), str(row.get("ground_truth", ""))
        # "And the price?" says nothing: of a turn the question that stands alone is not asked again.
        text = str(row["query"] if row.get("turn", 1) == 1 else row.get("standalone", ""))
    except (TypeError, KeyError, AttributeError) as error:
        raise DataError(
            f"{rejected_file(file)} holds a line that is not a rejected question. Mend or remove it."
        ) from error
    return Draft(kind, text, text, truth, "", evidence, made_of)
