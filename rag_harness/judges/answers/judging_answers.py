"""Judges answers and yields their scores in the order of the answers. The number of answers in memory is bounded."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rag_harness.errors import CriticalError, RagHarnessError, SettingsError
from rag_harness.expectations.rubrics import read_rubrics
from rag_harness.files.log import log
from rag_harness.judges.answers.answers_file import GivenAnswer
from rag_harness.judges.scoring import judged
from rag_harness.measures import Score, known_measures, measure_named, parts_of
from rag_harness.measures.composite import CompositeMeasure
from rag_harness.measures.judged import Judge, JudgedMeasure, Material
from rag_harness.measures.judged.carried import NO_EARLIER, LateMeasure
from rag_harness.measures.judged.rubric_measure import also_asking, with_criteria
from rag_harness.measures.judged.turn_criteria import also_asking_of_turns
from rag_harness.registry import resolve
from rag_harness.work.deadline import Deadline

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
        SettingsError: a name is no measure, or no judged one.
    """

    names: Sequence[str]
    rubrics: Path = Path("rubrics")
    parts: Sequence[JudgedMeasure] = field(init=False)

    def __post_init__(self) -> None:
        if not self.names:
            raise SettingsError(f"No measure is named. Judged are: {', '.join(_judged_names())}.")
        for name in self.names:
            if not parts_of([name]):
                raise SettingsError(f"{name!r} is no judged measure. Judged are: {', '.join(_judged_names())}.")
        parts = with_criteria(parts_of(self.names), read_rubrics(self.rubrics), self.rubrics)
        object.__setattr__(self, "parts", parts)

    def of(self, scores: Mapping[str, Score]) -> dict[str, Score]:
        """Return the scores of the requested measures, from those of their parts."""
        return {name: _score(name, scores) for name in dict.fromkeys(self.names)}


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


def _score(name: str, scores: Mapping[str, Score]) -> Score:
    measure: object = measure_named(name)
    return measure.score(scores) if isinstance(measure, CompositeMeasure) else scores[name]


def _judged_names() -> list[str]:
    made = {name: resolve("measures", name) for name in known_measures()}
    kinds = (JudgedMeasure, CompositeMeasure)
    return [name for name, kind in made.items() if isinstance(kind, type) and issubclass(kind, kinds)]
