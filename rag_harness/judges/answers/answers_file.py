"""Reads answers of any system, one JSON object a line. The file is read twice, line by line: to check, and to judge."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, StrictBool, StrictStr, StringConstraints, ValidationError, field_validator

from rag_harness.errors import DataError
from rag_harness.measures.judged import Material
from rag_harness.measures.judged.turn_material import kinds_named, turn_material
from rag_harness.models.reasoning import parted
from rag_harness.types import Message

_Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class SaidLine(BaseModel):
    """A message that was said before the question."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="allow")
    role: Literal["user", "assistant"]
    content: StrictStr


class AnswerLine(BaseModel):
    """One line. Unknown fields are skipped, unless their name looks like a misspelt field."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="allow")
    id: Any
    question: _Words
    contexts: tuple[StrictStr, ...]
    answer: StrictStr
    ground_truth: StrictStr = ""
    gold_pages: tuple[StrictStr, ...] = ()
    quotes: tuple[StrictStr, ...] = ()
    answerable: StrictBool = True
    abstained: StrictBool | None = None
    history: tuple[SaidLine, ...] = ()
    turn_kind: StrictStr = ""
    earlier_contexts: tuple[tuple[StrictStr, ...], ...] = ()

    @field_validator("id")
    @classmethod
    def _text_or_number(cls, value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, (str, int)) or not str(value).strip():
            raise ValueError("an id is a text or a whole number")
        return value


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """An answer with the texts for judging it.

    ``id`` is as it was given: a text or a number. ``earlier`` are the contexts of the turns before it, the oldest
    first.
    """

    id: str | int
    material: Material
    earlier: tuple[tuple[str, ...], ...] = ()


def check_answers(file: Path) -> int:
    """Return how many answers ``file`` holds.

    Raises:
        DataError: there is none, or lines are malformed, or an id occurs twice; lists every problem as ``file:line:
            …``.
    """
    problems: list[str] = []
    first_line: dict[str, int] = {}
    for number, line in _lines(file):
        read, found = _parse(line)
        problems += [f"{file}:{number}: {problem}" for problem in found]
        if read is None:
            continue
        seen = first_line.setdefault(str(read.id), number)
        if seen != number:
            problems.append(f"{file}:{number}: id {read.id!r} stands already on line {seen}.")
    if problems:
        raise DataError("\n".join(problems))
    if not first_line:
        raise DataError(f"{file} holds no answer: each line is an object with id, question, contexts and answer.")
    return len(first_line)


def read_answers(file: Path, abstains: Callable[[str], bool]) -> Iterator[GivenAnswer]:
    """Yield the answers of a checked file. ``abstains`` decides for lines that do not say whether they abstain."""
    # Where any answer came with a context, one without has found nothing.
    read_lines = (AnswerLine.model_validate_json(line) for _, line in _lines(file))
    retrieves = any(context.strip() for read in read_lines for context in read.contexts)
    for _, line in _lines(file):
        read = AnswerLine.model_validate_json(line)
        answer = parted(read.answer).answer
        abstained = abstains(answer) if read.abstained is None else read.abstained
        material = Material(
            question=read.question,
            answer=answer,
            contexts=read.contexts,
            ground_truth=read.ground_truth,
            gold_pages=read.gold_pages,
            quotes=read.quotes,
            abstained=abstained,
            answerable=read.answerable,
            retrieves=retrieves,
        )
        said = [Message(each.role, each.content) for each in read.history]
        yield GivenAnswer(read.id, turn_material(material, said, kinds_named(read.turn_kind)), read.earlier_contexts)


def _lines(file: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, numbered from 1, without a byte order mark."""
    if not file.is_file():
        raise DataError(f"No file {file}. Name one with an answer on each line: id, question, contexts, answer.")
    with file.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            if text.strip():
                yield number, text


def _parse(line: bytes) -> tuple[AnswerLine | None, list[str]]:
    try:
        read = AnswerLine.model_validate_json(line)
    except ValidationError as error:
        return None, [f"{_where(each['loc'])}: {each['msg']}" for each in error.errors()]
    return read, [_misspelt(name, meant) for name in read.model_extra or () if (meant := _meant(name, read))]


def _where(place: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in place) or "line"


def _meant(name: str, read: AnswerLine) -> str:
    left_out = [field for field in AnswerLine.model_fields if field not in read.model_fields_set]
    return next(iter(get_close_matches(name, left_out, n=1, cutoff=0.8)), "")


def _misspelt(name: str, meant: str) -> str:
    return f"{name} is no field that is read. Did you mean {meant!r}? Else call it otherwise."
