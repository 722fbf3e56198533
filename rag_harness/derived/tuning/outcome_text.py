"""Says what came of a race: a sentence, and a table."""

from __future__ import annotations

from collections.abc import Iterator

from rag_harness.derived.tuning.outcome import Entry, RaceFigure, RaceOutcome
from rag_harness.measures import measure_named

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
    """Return what became of a configuration in the race."""
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
