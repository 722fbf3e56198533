"""The outcome of a race: the file tune.json, and its sentences and table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rag_harness.core.errors import DataError
from rag_harness.core.files import write_atomically
from rag_harness.evaluation.measures import measure_named

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
            f"{file} is not an outcome of a race of this version: {type(error).__name__}. Remove it, and tune again."
        ) from error


def _held_out(said: Mapping[str, Any]) -> HeldOut:
    one = {key: RaceFigure(**said[key]) for key in ("winner", "today", "difference")}
    return HeldOut(**one, others={name: (RaceFigure(**a), RaceFigure(**b)) for name, (a, b) in said["others"].items()})


_MOST_LINES = 12


def outcome_lines(outcome: RaceOutcome) -> list[str]:
    """Return all that a person needs to know of a race."""
    return [*_table(outcome), "", *sentences(outcome)]


def sentences(outcome: RaceOutcome) -> list[str]:
    """Return the answer: the winner and its figure on held-out questions, and how sure the choice is."""
    winner, measure = outcome.entry(outcome.winner), outcome.objective[0]
    found = [_of_winner(outcome, winner, measure)]
    if outcome.held_out is not None:
        found.append(_against_today(outcome))
        raced = winner.figures[measure]
        found.append(
            f"On the {raced.n} questions that chose it, it had {_share(raced.value)}: do not report that one, it was "
            f"the best of {len(outcome.entries)}."
        )
    found += [*_others(outcome, winner), *_constraints(outcome), *_how_it_went(outcome)]
    return found


def _of_winner(outcome: RaceOutcome, winner: Entry, measure: str) -> str:
    is_today = " (as it is today)" if outcome.winner == outcome.today else ""
    if outcome.held_out is None:
        raced = winner.figures[measure]
        return (
            f"{winner.title}{is_today}: {measure} {_figure(raced)} on the questions of the race, so this figure is too "
            f"good; the budget did not reach the others."
        )
    return (
        f"{winner.title}{is_today}: {measure} {_figure(outcome.held_out.winner)} on {outcome.held_out.winner.n} "
        f"questions that it was not chosen by."
    )


def _against_today(outcome: RaceOutcome) -> str:
    held = outcome.held_out
    assert held is not None
    if outcome.winner == outcome.today:
        return "Nothing that was tried is shown to be better than today's configuration."
    sure = "not told apart"
    if held.difference.low > 0 or held.difference.high < 0:
        better = (held.difference.value > 0) == (outcome.better == "higher")
        sure = "better" if better else "WORSE: keep what you have"
    return (
        f"Today's has {_figure(held.today)} there: {held.difference.value:+.3f} "
        f"[{held.difference.low:+.2f}, {held.difference.high:+.2f}], {sure}."
    )


def _others(outcome: RaceOutcome, winner: Entry) -> Iterator[str]:
    others = [each for each in outcome.stayed if each.name != winner.name and not each.why]
    if not others:
        return
    apart = "1 other is" if len(others) == 1 else f"{len(others)} others are"
    cheapest = min(others, key=lambda each: each.context)
    cheaper = ""
    if winner.context and cheapest.context < 0.9 * winner.context:
        cheaper = (
            f"; the cheapest of them ({cheapest.title}) gives the model {cheapest.context / winner.context:.0%} as much"
        )
    yield f"{apart} not told apart from it{cheaper}."
    if outcome.needed > outcome.questions[0]:
        yield (
            f"{outcome.questions[0]} questions to race on are few: to see a difference of {outcome.seen:g} in four of "
            f"five races takes about {outcome.needed:,}. Write more: rag-harness kb queries."
        )


def _constraints(outcome: RaceOutcome) -> Iterator[str]:
    broken = [each for each in outcome.entries if each.why]
    if broken:
        yield f"{len(broken)} of {len(outcome.entries)} do not keep to {', '.join(outcome.constraints)}."


def _how_it_went(outcome: RaceOutcome) -> Iterator[str]:
    gone = sum(bool(each.left_after) and not each.why for each in outcome.entries)
    share = outcome.calls / outcome.grid if outcome.grid else 1.0
    asked = f", {share:.0%} of what asking all would take" if outcome.asks_answers else ""
    yield (
        f"The race ended after {outcome.asked} of {outcome.questions[0]} questions: {outcome.ended}. "
        f"{gone} of {len(outcome.entries)} left, each shown not to be the best; all of this holds with "
        f"{outcome.confidence:.0%}{asked}."
    )


def _table(outcome: RaceOutcome) -> Iterator[str]:
    measures = list(outcome.objective)
    shown = outcome.entries[:_MOST_LINES]
    must = [each for each in outcome.entries[_MOST_LINES:] if each.name == outcome.today]
    width = max(len(each.title) for each in (*shown, *must))
    yield f"{'configuration':<{width}}  {'  '.join(f'{name:<20}' for name in measures)}  in the race"
    for each in (*shown, *must):
        figures = "  ".join(f"{figure_cell(each, name):<20}" for name in measures)
        yield f"{each.title:<{width}}  {figures}  {race_fate(outcome, each)}"
    rest = len(outcome.entries) - len(shown) - len(must)
    if rest > 0:
        yield f"{rest} more are in the report, and in tune.json"


def figure_cell(entry: Entry, name: str) -> str:
    """Return the figure of a measure with its interval, as the race saw it; "-" without one."""
    figure = entry.figures.get(name)
    return "-" if figure is None else _figure(figure, name)


def race_fate(outcome: RaceOutcome, entry: Entry) -> str:
    """Return the result of a configuration in the race."""
    if entry.name == outcome.winner:
        return "chosen"
    if entry.why:
        return entry.why
    if entry.left_after:
        by = "" if entry.measure == outcome.objective[0] else f" by {entry.measure}"
        return f"left after {entry.left_after}: {entry.better} is better{by}"
    if entry.aside_after:
        return f"set aside after {entry.aside_after}, not told apart from the best"
    return "not told apart from the best"


def _figure(figure: RaceFigure, measure: str = "") -> str:
    if measure and measure_named(measure).unit != "share":
        return f"{figure.value:.4g} [{figure.low:.3g}, {figure.high:.3g}]"
    return f"{_share(figure.value)} [{figure.low:.2f}, {figure.high:.2f}]"


def _share(value: float) -> str:
    return f"{value:.3f}"
