"""Judge answers of any system from a file of JSON lines, without a run."""

from __future__ import annotations

import asyncio
import json
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, StrictBool, StrictStr, StringConstraints, ValidationError, field_validator

from rag_harness.core.concurrency import Deadline
from rag_harness.core.errors import CriticalError, DataError, PrerequisiteError, RagHarnessError, SettingsError
from rag_harness.core.log import log
from rag_harness.core.registry import resolve
from rag_harness.core.settings import Settings
from rag_harness.core.types import Message
from rag_harness.evaluation.expectations.rubrics import read_rubrics
from rag_harness.evaluation.judges.factory import judged
from rag_harness.evaluation.measures import Score, known_measures, parts_of, score_named
from rag_harness.evaluation.measures.conversations import NO_EARLIER, LateMeasure
from rag_harness.evaluation.measures.expectations import also_asking, with_criteria
from rag_harness.evaluation.measures.judged import JudgedMeasure
from rag_harness.evaluation.measures.measure import CompositeMeasure
from rag_harness.evaluation.measures.opinion import Judge, Material, also_asking_of_turns, kinds_named, turn_material
from rag_harness.models.prompts import split_reply
from rag_harness.records.row import storable
from rag_harness.stats import mean_or_none

# Reads answers of any system, one JSON object a line. The file is read twice, line by line: to check, and to judge.

_Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class SaidLine(BaseModel):
    """A message before the question."""

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
        answer = split_reply(read.answer).answer
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
    return f"{name} is not a field that is read. Did you mean {meant!r}? Else call it otherwise."


# Judges answers and yields their scores in the order of the answers. The number of answers in memory is bounded.

_AHEAD = 4
"""Answers that may wait for a slow one before them, for each answer in flight."""


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """An answer with its scores, by the names of the requested measures."""

    given: GivenAnswer
    scores: Mapping[str, Score]


@dataclass(frozen=True)
class AskedMeasures:
    """The requested measures by name, and the judged measures that they need. ``rubrics`` is the folder of rubrics.

    Raises:
        SettingsError: a name is not a measure, or not a judged one.
    """

    names: Sequence[str]
    rubrics: Path = Path("rubrics")
    parts: Sequence[JudgedMeasure] = field(init=False)

    def __post_init__(self) -> None:
        if not self.names:
            raise SettingsError(f"No measure is named. Judged are: {', '.join(_judged_names())}.")
        for name in self.names:
            if not parts_of([name]):
                raise SettingsError(f"{name!r} is not a judged measure. Judged are: {', '.join(_judged_names())}.")
        parts = with_criteria(parts_of(self.names), read_rubrics(self.rubrics), self.rubrics)
        object.__setattr__(self, "parts", parts)

    def of(self, scores: Mapping[str, Score]) -> dict[str, Score]:
        """Return the scores of the requested measures, from those of their parts."""
        return {name: score_named(name, scores) for name in dict.fromkeys(self.names)}


async def judge_answers(
    answers: Iterable[GivenAnswer], asked: AskedMeasures, judge: Judge, in_flight: int, seconds: float
) -> AsyncGenerator[JudgedAnswer, None]:
    """Yield each answer with its scores, in the order of ``answers``.

    Args:
        answers: read only as far as needed.
        asked: the requested measures.
        judge: the judge.
        in_flight: most answers that are judged at once.
        seconds: most seconds for judging one answer.
    """
    judging = _Judging(asked, judge, asyncio.Semaphore(in_flight), seconds)
    waiting: deque[asyncio.Task[JudgedAnswer]] = deque()
    for given in answers:
        if len(waiting) == in_flight * _AHEAD:
            yield await waiting.popleft()
        waiting.append(asyncio.create_task(judging.one(given)))
    while waiting:
        yield await waiting.popleft()


@dataclass
class _Judging:
    asked: AskedMeasures
    judge: Judge
    slots: asyncio.Semaphore
    seconds: float
    broken: str = ""
    """Why no later judgement can succeed."""

    async def one(self, given: GivenAnswer) -> JudgedAnswer:
        async with self.slots:
            return JudgedAnswer(given, self.asked.of(await self._parts(given)))

    async def _parts(self, given: GivenAnswer) -> Mapping[str, Score]:
        if self.broken:
            return self._none(self.broken)
        try:
            late = f"deadline: not judged within {self.seconds:g} s"
            material = also_asking_of_turns(also_asking(given.material, self.asked.parts), self.asked.parts)
            return await Deadline(self.seconds, late).bound(self._judged(material, given))
        except CriticalError as error:
            self.broken = self.broken or str(error)
            return self._none(self.broken)
        except RagHarnessError as error:
            return self._none(str(error))
        except Exception as error:
            log.error("%r could not be judged", given.id, exc_info=error)
            return self._none(f"{type(error).__name__}: {error}")

    async def _judged(self, material: Material, given: GivenAnswer) -> Mapping[str, Score]:
        """Return the scores; of late measures, from those that they build on."""
        late = [each for each in self.asked.parts if isinstance(each, LateMeasure)]
        found = await judged(material, [each for each in self.asked.parts if each not in late], self.judge)
        for measure in late:
            found[measure.name] = await self._later(measure, material, given, found[measure.builds_on])
        return found

    async def _later(self, measure: LateMeasure, material: Material, given: GivenAnswer, said: Score) -> Score:
        if not given.earlier:
            return Score(None, NO_EARLIER, undefined=True)
        asked = measure.later(material, said, [*enumerate(given.earlier, 1)][::-1])
        return asked if isinstance(asked, Score) else (await judged(asked, [measure], self.judge))[measure.name]

    def _none(self, why: str) -> dict[str, Score]:
        return {part.name: Score(None, why) for part in self.asked.parts}


def _judged_names() -> list[str]:
    made = {name: resolve("measures", name) for name in known_measures()}
    kinds = (JudgedMeasure, CompositeMeasure)
    return [name for name, kind in made.items() if isinstance(kind, type) and issubclass(kind, kinds)]


_REASONS = 3
"""Most reasons that are printed for a measure."""


@dataclass
class MeasureTally:
    """Values and reasons of each measure, counted."""

    names: Sequence[str]
    values: dict[str, list[float]] = field(init=False)
    failed: dict[str, Counter[str]] = field(init=False)
    undefined: dict[str, Counter[str]] = field(init=False)

    def __post_init__(self) -> None:
        self.values = {name: [] for name in self.names}
        self.failed = {name: Counter() for name in self.names}
        self.undefined = {name: Counter() for name in self.names}

    @property
    def measured(self) -> bool:
        """Whether anything was measured."""
        return any(self.values.values())

    def add(self, scores: Mapping[str, Score]) -> None:
        """Add the scores of an answer."""
        for name, score in scores.items():
            if score.value is not None:
                self.values[name].append(score.value)
            else:
                (self.undefined if score.undefined else self.failed)[name][score.reason] += 1

    def lines(self) -> list[str]:
        """Return mean and number of values of each measure, and the number of missing values by reason."""
        return [line for name in self.values for line in self._of(name)]

    def _of(self, name: str) -> Iterator[str]:
        values = self.values[name]
        mean = mean_or_none(values)
        yield f"{name}: {'not measured' if mean is None else f'{mean:.3f}'} (n = {len(values)})"
        yield from _why("not measured", self.failed[name])
        yield from _why("undefined", self.undefined[name])


async def score_file(
    answers: Path, scores: Path, asked: AskedMeasures, judge: Judge, settings: Settings, abstains: Callable[[str], bool]
) -> MeasureTally:
    """Judge the answers of a file, write their scores to another, and return their tally.

    Args:
        answers: file of answers, see ``AnswerLine``.
        scores: file to write; an older one is replaced.
        asked: the requested measures.
        judge: the judge.
        settings: number of answers in flight, and seconds for each.
        abstains: decides whether an answer abstains, where its line does not state it.

    Raises:
        DataError: the answers cannot be read; lists every problem.
        PrerequisiteError: the scores cannot be written.
    """
    if scores.resolve() == answers.resolve():
        raise PrerequisiteError(f"{scores} holds the answers: name another file for the scores with -o.")
    check_answers(answers)
    tally, given = MeasureTally(asked.names), read_answers(answers, abstains)
    judged = judge_answers(given, asked, judge, settings.concurrency, settings.deadline)
    await write_scores(judged, scores, judge, tally)
    return tally


async def write_scores(judged: AsyncIterable[JudgedAnswer], file: Path, judge: Judge, tally: MeasureTally) -> None:
    """Write a line to ``file`` as soon as each answer is judged, so that an interrupted run keeps its scores.

    Raises:
        PrerequisiteError: the file cannot be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("wb") as stream:
            async for answer in judged:
                tally.add(answer.scores)
                stream.write(_line(answer, judge))
                stream.flush()
    except OSError as error:
        raise PrerequisiteError(f"{file} cannot be written: {error.strerror}. Name another one with -o.") from error


def _line(answer: JudgedAnswer, judge: Judge) -> bytes:
    scores = answer.scores
    content = {
        "id": answer.given.id,
        "judge": judge.name,
        "model": judge.model,
        "revision": judge.revision,
        "scores": {name: score.value for name, score in scores.items()},
        "reasons": {name: score.reason for name, score in scores.items() if score.value is None},
        "undefined": [name for name, score in scores.items() if score.undefined],
        **_hallucinated(scores),
        "details": {name: dict(score.detail) for name, score in scores.items() if score.detail},
    }
    return json.dumps(storable(content), ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _hallucinated(scores: Mapping[str, Score]) -> dict[str, Any]:
    """Return the verdict on the whole answer, where the judge has a fitted threshold."""
    said = scores["faithfulness"].detail if "faithfulness" in scores else {}
    return {"hallucinated": said["hallucinated"]} if "hallucinated" in said else {}


def _why(what: str, reasons: Counter[str]) -> Iterator[str]:
    if not reasons:
        return
    told = [f"{reason} ({count})" if len(reasons) > 1 else reason for reason, count in reasons.most_common(_REASONS)]
    more = len(reasons) - len(told)
    yield f"  {reasons.total()} {what}: {'; '.join(told)}{f'; {more} other reasons' if more else ''}"
