"""What came of a race, as it is kept in ``output/tune.json``: the report and ``tune`` itself read nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rag_harness.errors import DataError
from rag_harness.files.atomic import write_atomically

FILE = "tune.json"


@dataclass(frozen=True)
class RaceFigure:
    """A mean of a measure over questions, with an interval that holds with 95 %."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Entry:
    """One configuration of the race.

    Attributes:
        name: of its derived rows.
        title: in words.
        values: its parameters, those that the space varies.
        figures: of the race, by measure; over the questions that it was asked.
        context: mean number of characters that it gives a model.
        left_after: after how many questions it left; 0 where it stayed.
        aside_after: after how many questions it was set aside, though it is not shown to be worse; 0 where it was not.
        better: title of the one that was shown to be better.
        measure: by which it was shown.
        why: the constraint that it broke, or what it lacks.
        failed: questions that it did not answer.
    """

    name: str
    title: str
    values: Mapping[str, Any]
    figures: Mapping[str, RaceFigure]
    context: float
    left_after: int = 0
    aside_after: int = 0
    better: str = ""
    measure: str = ""
    why: str = ""
    failed: int = 0


@dataclass(frozen=True)
class HeldOut:
    """Figures on questions that the race never saw."""

    winner: RaceFigure
    today: RaceFigure
    difference: RaceFigure
    others: Mapping[str, tuple[RaceFigure, RaceFigure]] = field(default_factory=dict)
    """Further measures: of the winner, and of today."""


@dataclass(frozen=True)
class RaceOutcome:
    """Everything that is said of a race.

    Attributes:
        space: the file.
        objective: measures; the race was about the first.
        better: whether higher or lower values of it are better.
        began: digests of space, questions and code, to notice a change before it goes on.
        by: what keeps questions together.
        questions: of the race, and held out.
        groups: of the race, and held out.
        asks_answers: whether models answered; else only what was found was measured.
        ended: why the race ended.
        asked: questions that those who stayed were asked.
        calls: questions asked of all configurations together; of a ranking that several share each counts.
        grid: what asking all would have been.
        entries: all configurations, the best first.
        winner, today: names of entries.
        held_out: None where the race found nothing that may be used.
        screened: what was asked first without answers, and how many left by that; None without such a race.
        needed: questions that a difference of ``seen`` would need, to be seen in four of five races.
        seen: the margin, or 0.05.
        left_out: combinations that do not go together.
    """

    space: str
    objective: tuple[str, ...]
    better: str
    began: Mapping[str, str]
    by: str
    questions: tuple[int, int]
    groups: tuple[int, int]
    asks_answers: bool
    ended: str
    asked: int
    calls: int
    grid: int
    margin: float
    confidence: float
    entries: tuple[Entry, ...]
    winner: str
    today: str
    held_out: HeldOut | None
    looks: tuple[tuple[int, int], ...]
    needed: int
    seen: float
    left_out: Mapping[str, int]
    screened: tuple[str, int] | None = None
    constraints: tuple[str, ...] = ()

    def entry(self, name: str) -> Entry:
        """Return an entry by its name."""
        return next(each for each in self.entries if each.name == name)

    @property
    def stayed(self) -> list[Entry]:
        """The configurations that are not told from the best, with it."""
        return [each for each in self.entries if not each.left_after]

    def write(self, output: Path) -> None:
        """Write the file."""
        output.mkdir(parents=True, exist_ok=True)
        write_atomically(output / FILE, json.dumps(asdict(self), indent=1, ensure_ascii=False).encode())


def read_outcome(output: Path) -> RaceOutcome | None:
    """Return the outcome that is kept in a folder of results; None without one.

    Raises:
        DataError: the file cannot be read.
    """
    file = output / FILE
    if not file.is_file():
        return None
    try:
        said = json.loads(file.read_text(encoding="utf-8"))
        entries = tuple(
            Entry(**{**each, "figures": {name: RaceFigure(**one) for name, one in each["figures"].items()}})
            for each in said.pop("entries")
        )
        held = said.pop("held_out")
        lists = {key: tuple(value) for key, value in said.items() if isinstance(value, list)}
        lists["looks"] = tuple(tuple(each) for each in said["looks"])
        return RaceOutcome(**{**said, **lists, "entries": entries, "held_out": _held_out(held) if held else None})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{file} is no outcome of a race of this version: {type(error).__name__}. Remove it, and tune again."
        ) from error


def _held_out(said: Mapping[str, Any]) -> HeldOut:
    one = {key: RaceFigure(**said[key]) for key in ("winner", "today", "difference")}
    return HeldOut(**one, others={name: (RaceFigure(**a), RaceFigure(**b)) for name, (a, b) in said["others"].items()})
