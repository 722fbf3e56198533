"""Changes between runs, differences between experiments, and the race of rag-harness tune."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from rag_harness.core.errors import DataError
from rag_harness.core.types import TrialId
from rag_harness.diagnosis.tuning.outcome import Entry, RaceFigure, RaceOutcome, figure_cell, race_fate, read_outcome
from rag_harness.diagnosis.tuning.outcome import sentences as outcome_sentences
from rag_harness.evaluation.measures import measure_named
from rag_harness.page.charts import Estimate, Point, Scatter, Staircase, scatter, staircase
from rag_harness.page.charts.plots import Better
from rag_harness.page.content import (
    NONE,
    Block,
    Cell,
    Figure,
    More,
    Prose,
    Section,
    Table,
    Tone,
    interval_said,
    measure_title,
    name_said,
    word_cells,
)
from rag_harness.page.run import DOCUMENTS, Run
from rag_harness.runs.gates.verdict import value_said
from rag_harness.tables.comparison import Comparison, MeasureChange, WorseConversation
from rag_harness.tables.comparison_lines import folded_said, p_or_seen
from rag_harness.tables.pairwise import ALPHA, PAIR_COLUMNS, excludes_0, figures, measure_said, sign_of
from rag_harness.tables.pairwise import PairDifference as Pair
from rag_harness.tables.run_diff import RunDiff, run_diff, same_said, sentences
from rag_harness.tables.wording import better_of, counted, cut

SHOWN_MOVES = 20
_SAME = 1e-12
_QUERY = 90
_Move = tuple[str, float, float]
"""Case, value before, value after."""


@dataclass(frozen=True, slots=True)
class ComparedExperiment:
    """An experiment of a run; ``label`` is its name in the table."""

    run: Run
    experiment: str
    label: str

    def values(self, measure: str) -> Mapping[str, float]:
        """Return the value of each case that has one."""
        return self.run.tables[self.experiment].values(measure, {})

    def cell(self, case: str, text: str, tone: Tone = "") -> Cell:
        """Return a cell with a link to the trial."""
        return Cell(text, tone, trial=self.run.address(TrialId(self.experiment, case)))


def moved(name: str, now: ComparedExperiment, before: ComparedExperiment, measure: str) -> list[Table]:
    """Return a table of queries that went up and one of those that went down, where there are any.

    Args:
        name: prefix of the tables' names.
        now: side of the later value.
        before: side of the earlier value.
        measure: a measure that both have.
    """
    new, old = now.values(measure), before.values(measure)
    moves = sorted(((case, old[case], new[case]) for case in new if case in old), key=lambda move: move[1] - move[2])
    up = [move for move in moves if move[2] - move[1] > _SAME]
    down = [move for move in reversed(moves) if move[1] - move[2] > _SAME]
    sides = {"up": up, "down": down}
    return [_table(f"{name}-{way}", now, before, measure, way, found) for way, found in sides.items() if found]


def _table(
    name: str, now: ComparedExperiment, before: ComparedExperiment, measure: str, way: str, moves: Sequence[_Move]
) -> Table:
    found = now.run.tables[now.experiment].columns[measure].measure
    better = better_of(found)
    tone: Tone = ("good" if (way == "up") == (better == "higher") else "bad") if better else ""
    rows = [
        [
            now.cell(case, case),
            before.cell(case, value_said(old, found.unit)),
            now.cell(case, value_said(new, found.unit), tone),
            Cell(cut(now.run.query_of(now.experiment, case), _QUERY)),
        ]
        for case, old, new in moves[:SHOWN_MOVES]
    ]
    more = [f"and {len(moves) - SHOWN_MOVES} more"] if len(moves) > SHOWN_MOVES else []
    caption = f"{counted(len(moves), 'query', 'queries')} went {way}: {measure_title(found)}"
    return Table(name, ("query", before.label, now.label, "question"), rows, caption, more)


_MOVED_BY = ("g_mean", "factuality", "answer_relevancy", "recall@5", "token_f1")
"""Measures that order the queries. The first that both experiments of a pair have is used."""
_ACROSS = 7
"""Most measures in one matrix: more cannot be printed legibly."""
_TESTS = (
    "p (t): paired t-test; p (perm): Fisher's paired permutation test; both two-sided. They are adjusted by Holm, and "
    "the 95 % intervals with them, for"
)


def differences(runs: Sequence[Run]) -> Section | None:
    """Return the pairs of the first run; None where the run has fewer than two experiments."""
    run = runs[0]
    if len(run.experiments) < 2:
        return None
    blocks = [*_blocks(run)]
    if not blocks:
        why = "They are not on the same data, or no case has a value of the same measure in two of them."
        blocks = [Prose(f"No two experiments can be compared. {why}", "unsure")]
    return Section("differences", "Which is better", blocks)


def _blocks(run: Run) -> Iterator[Block]:
    pairs = [*run.pairwise, *run.unjudged]
    if not any(pair.found for pair in pairs):
        return
    yield Prose("Differences are over the cases that both experiments have a value of, the first minus the second.")
    study = [pair for pair in run.pairwise if pair.family == "study" and pair.found]
    if study:
        notes = [f"{_TESTS} {counted(_tests(study), 'test')}."]
        if any(pair.found and pair.found.clusters for pair in study):
            notes.append("p is by question, as the study's plan says; intervals are by page or conversation.")
        rows = [[Cell(pair.pair), *_study(pair, run)] for pair in study]
        head = ("pair", "measure", *PAIR_COLUMNS, "which is better")
        yield Table("pairwise-study", head, rows, "What the study asks: quality, and risk", [*notes, *_reasons(run)])
    judged = [pair for pair in run.pairwise if pair.family == "others" and not pair.quantile]
    yield from _matrix(run, "pairwise-others", judged, "Other judged measures", counted(_tests(judged), "test"))
    most = max((_tests(_of(run.unjudged, measure)) for measure in _names(run.unjudged)), default=0)
    plain = f"the pairs of each measure, at most {most}"
    yield from _matrix(run, "pairwise-unjudged", run.unjudged, "Measures that no judge gives", plain)
    yield from _queries(run, pairs)


def _study(pair: Pair, run: Run) -> list[Cell]:
    assert pair.found is not None
    name = measure_said(pair.measure).replace(" ↓", "") + _tail(pair) + " ↓" * measure_said(pair.measure).endswith("↓")
    said = Cell(_sentence(pair, run), _tone(pair, run))
    return [*word_cells(name, *figures(pair.found, pair.p_t, pair.p_permutation)), said]


def _tail(pair: Pair) -> str:
    return f", p{pair.quantile * 100:.0f}" if pair.quantile else ""


def _is_sure(pair: Pair) -> bool:
    """Whether a difference is significant at 5 %: by the tests, or for a quantile by its interval."""
    interval = pair.found.interval if pair.found else None
    return pair.is_significant or bool(pair.quantile and interval and excludes_0(interval) and not pair.errors)


def _tone(pair: Pair, run: Run) -> Tone:
    """Return good where the first is significantly better, bad where the second is, else unsure."""
    if pair.found is None or not _is_sure(pair):
        return "unsure"
    lower = run.tables[pair.first].columns[pair.measure].measure.better == "lower"
    return "good" if (pair.found.difference > 0) != lower else "bad"


def _sentence(pair: Pair, run: Run) -> str:
    """Say in words whether a difference is significant."""
    assert pair.found is not None
    if not pair.quantile and pair.p_t is None:
        return f"not tested: {pair.found.reason}"
    if pair.errors:
        return f"neither is better: {pair.errors}"
    if not _is_sure(pair):
        by_tests = pair.quantile is None and not excludes_0(pair.found.interval) and max(*_p_values(pair)) <= ALPHA
        why = "the interval holds 0" if pair.quantile or by_tests else "p > 0.05"
        return f"not sure, it may be chance: {why}"
    better = pair.first if _tone(pair, run) == "good" else pair.second
    return f"{better} is better" + (", by the interval alone: there is no test of it" if pair.quantile else "")


def _p_values(pair: Pair) -> tuple[float, float]:
    return (1.0 if pair.p_t is None else pair.p_t), (1.0 if pair.p_permutation is None else pair.p_permutation)


def _matrix(run: Run, name: str, pairs: Sequence[Pair], caption: str, family: str) -> Iterator[Table]:
    """Yield the mean differences, one line for each pair, in as many tables as needed, so that none is too wide."""
    measures = [measure for measure in _names(pairs) if any(pair.found for pair in _of(pairs, measure))]
    by_place = {(pair.first, pair.second, pair.measure): pair for pair in pairs}
    lines = [(b, a) for a, b in combinations(sorted(run.experiments), 2)]
    signs = "> the first is better, < the second, both p ≤ 0.05, interval without 0"
    notes = [f"Mean difference ± half of its interval; {signs}. {_TESTS} {family}."]
    for start in range(0, len(measures), _ACROSS):
        shown = measures[start : start + _ACROSS]
        rows = [
            [Cell(f"{first} - {second}"), *(_difference(by_place.get((first, second, m)), run) for m in shown)]
            for first, second in lines
        ]
        part = f"-{start // _ACROSS + 1}" if start else ""
        yield Table(f"{name}{part}", ("pair", *map(measure_said, shown)), rows, caption, notes)


def _difference(pair: Pair | None, run: Run) -> Cell:
    if pair is None or pair.found is None:
        return Cell(NONE, "mute", hint=pair.reason if pair else "in the table above, or one of the two has no value")
    n, difference, between, _, p_t, p_permutation = figures(pair.found, pair.p_t, pair.p_permutation)
    if pair.found.interval is None or pair.p_t is None:
        return Cell(f"{difference} (n={n})", "mute", hint=pair.reason)
    half = (pair.found.interval.high - pair.found.interval.low) / 2
    hint = f"n = {n}; interval {between}; p (t) {p_t}, p (perm) {p_permutation}"
    return Cell(f"{difference}{sign_of(pair)} ±{half:.3f}", _tone(pair, run), hint=hint)


def _reasons(run: Run) -> Iterator[str]:
    """Yield why a difference or a test is missing, one line for each reason."""
    by_reason: dict[str, dict[str, None]] = {}
    for pair in run.pairwise:
        if pair.reason:
            by_reason.setdefault(pair.reason, {})[pair.measure + _tail(pair)] = None
    yield from (f"No test of {'; '.join(names)}: {reason}." for reason, names in by_reason.items())


def _queries(run: Run, pairs: Sequence[Pair]) -> Iterator[More]:
    """Yield for each pair the queries that changed, on the first measure that both have."""
    found = {(pair.first, pair.second, pair.measure) for pair in pairs if pair.found and not pair.quantile}
    for first, second in dict.fromkeys((pair.first, pair.second) for pair in pairs if pair.found):
        measure = next((m for m in _MOVED_BY if (first, second, m) in found), "")
        if measure:
            title = f"{first} - {second}: which queries went up, which down, by {name_said(measure)}"
            tables = moved(
                f"moved-{first}-{second}",
                ComparedExperiment(run, first, first),
                ComparedExperiment(run, second, second),
                measure,
            )
            yield More(title, tables or [Prose("None: every query has the same value in both.")])


def _names(pairs: Sequence[Pair]) -> list[str]:
    return list(dict.fromkeys(pair.measure for pair in pairs))


def _of(pairs: Sequence[Pair], measure: str) -> list[Pair]:
    return [pair for pair in pairs if pair.measure == measure]


def _tests(pairs: Sequence[Pair]) -> int:
    return sum(pair.p_t is not None for pair in pairs)


# The conversations that got worse between two runs; each leads to its first turn that did, both runs side by side.

SHOWN_TALKS = 20
_HEAD = ("conversation", "worse from", "change of its mean")
_NOTE = "A conversation got worse where the mean over its turns did. Its link shows both runs side by side."


def worse_talks(diff: RunDiff, now: Run, before: Run, number: int) -> Iterator[More]:
    """Yield the conversations of each experiment that got worse, folded; ``number`` is the earlier run's."""
    for change in diff.worse_talks:
        if change.suite in now.experiments and change.conversations:
            title = f"{change.suite}: conversations that got worse in {name_said(change.measure)}"
            worse = change.conversations.worse
            rows = [_row(change, each, now, before) for each in worse[:SHOWN_TALKS]]
            more = [f"and {len(worse) - SHOWN_TALKS} more"] if len(worse) > SHOWN_TALKS else []
            yield More(title, [Table(f"worse-talks-{number}-{change.suite}", _HEAD, rows, notes=[_NOTE, *more])])


def _row(change: MeasureChange, each: WorseConversation, now: Run, before: Run) -> list[Cell]:
    trial, by = TrialId(change.suite, each.case), -each.by if change.better == "higher" else each.by
    turn = Cell(f"turn {each.turn}", trial=now.address(trial), beside=before.address(trial))
    return [Cell(each.conversation), turn, Cell(f"{by:+.3f}", "bad")]


_CHANGE_COLUMNS = ("measure", "n", "before", "now", "difference", "interval", "p (Holm)", "gained", "lost")
_LISTED = ("g_mean", "hri", "answer_correctness", "faithfulness", "recall@5", "token_f1")
"""Measures whose queries are listed; for other measures they are counted."""
_UNKNOWN = (
    "Nobody can tell whether the documents are the same: both runs have to keep that (--rag-save or --rag-compare). "
    "So a difference may come from other documents."
)


def diff(runs: Sequence[Run]) -> Section | None:
    """Return the changes from each other run to the first, which is now; None for a single run."""
    if len(runs) < 2:
        return None
    blocks = [block for number, before in enumerate(runs[1:], 1) for block in _against(runs[0], before, number)]
    return Section("diff", "Changes between runs", blocks)


def _against(now: Run, before: Run, number: int) -> Iterator[Block]:
    try:
        found = now.compared_with(before)
    except DataError as error:
        # Only this pair cannot be compared; the other runs are still shown.
        yield Prose(f"{now.name} is not set against {before.name}. {error}", "bad")
        return
    diff = run_diff(found)
    yield from (Prose(sentence.text, sentence.tone) for sentence in sentences(diff))
    yield Prose(f"Before is {before.name}, of {found.before}. Now is {now.name}, of {found.now}.")
    if found.is_same_run:
        return
    if not _documents_known(now, before):
        yield Prose(_UNKNOWN, "unsure")
    yield from _differing(found, number)
    yield from worse_talks(diff, now, before, number)
    for suite in diff.suites:
        yield from _suite(diff, suite, now, before, number) if diff.rows(suite) else ()
    if equal := [suite for suite in diff.suites if not diff.rows(suite)]:
        yield Prose(f"The same in every case of both runs: {', '.join(equal)}.")


def first_change(runs: Sequence[Run]) -> list[Prose]:
    """Return the first sentence about what changed from the second run to the first; empty where there is none."""
    if len(runs) < 2:
        return []
    try:
        found = runs[0].compared_with(runs[1])
    except DataError:  # the section says why
        return []
    return [Prose(sentence.text, sentence.tone) for sentence in [*sentences(run_diff(found))][:1]]


def _documents_known(now: Run, before: Run) -> bool:
    kept = all(DOCUMENTS in run.manifest.digests for run in (now, before))
    shared = [name for name in now.selected if name in before.selected]
    return kept or all(run.suites[name].pages for name in shared for run in (now, before))


def _differing(found: Comparison, number: int) -> Iterator[Block]:
    rows = [word_cells(*line.partition(": ")[::2]) for line in [*found.differing, *found.notes]]
    if rows:
        head = ("what", "before → now")
        yield More(
            "What differs between the two runs, and what is not compared",
            [Table(f"differing-{number}", head, [_arrowed(row) for row in rows])],
        )


def _arrowed(row: Sequence[Cell]) -> list[Cell]:
    return [row[0], Cell(row[1].text.replace(" -> ", " → "))]


def _suite(diff: RunDiff, suite: str, now: Run, before: Run, number: int) -> Iterator[Block]:
    """Yield the measures of a suite that differ; folded where none changed more than chance explains."""
    changes = diff.rows(suite)
    blocks = [*_tables(changes, same_said(diff.same_of(suite)), suite, now, before, number)]
    if diff.changed(suite):
        yield from blocks
    elif blocks:
        yield More(folded_said(diff, suite), blocks)


def _tables(
    changes: Sequence[MeasureChange], same: str, suite: str, now: Run, before: Run, number: int
) -> Iterator[Block]:
    if changes:
        note = (
            "Over the cases that have a value in both. p: paired permutation test; the interval is that of gates. "
            "Both are adjusted by Holm for the tested measures that differ. gained: queries that got better."
        )
        rows = [_change_row(change, now) for change in changes]
        yield Table(
            f"diff-{number}-{suite}", _CHANGE_COLUMNS, rows, f"{suite}: from {before.name} to {now.name}", [note]
        )
    if same:
        yield Prose(f"{same}.")
    if suite in now.experiments:
        listed = [change for change in changes if change.measure in _LISTED]
        yield from (_changed_queries(change, now, before, number) for change in listed)


def _change_row(change: MeasureChange, now: Run) -> list[Cell]:
    measure = now.tables[change.suite].columns[change.measure].measure
    said = [str(change.n), f"{change.before:.3f}", f"{change.now:.3f}"]
    moved_by = Cell(f"{change.difference:+.3f}", _change_tone(change))
    between = interval_said(*change.interval, signed=True) if change.interval else NONE
    counts = (str(len(change.gained)), str(len(change.lost))) if change.better else (NONE, NONE)
    return [
        Cell(measure_title(measure)),
        *word_cells(*said),
        moved_by,
        *word_cells(between, p_or_seen(change), *counts),
    ]


def _change_tone(change: MeasureChange) -> Tone:
    """Return good or bad for a change that chance hardly explains, where higher or lower is better."""
    tones: dict[str, Tone] = {"better": "good", "worse": "bad", "changed": ""}
    return tones[change.direction] if change.is_sure else ""


def _changed_queries(change: MeasureChange, now: Run, before: Run, number: int) -> More:
    counts = f"{len(change.gained)} gained, {len(change.lost)} lost"
    if not change.better:
        counts = f"{len(change.rose) + len(change.fell)} changed"
    title = f"{change.suite}, {name_said(change.measure)}: {counts}"
    new, old = ComparedExperiment(now, change.suite, now.name), ComparedExperiment(before, change.suite, before.name)
    return More(title, moved(f"moved-{number}-{change.suite}-{change.measure}", new, old, change.measure))


_KINDS: Mapping[str, int] = {
    "chosen": 3,
    "today": 1,
    "not told apart": 0,
    "set aside": 14,
    "breaks a constraint": 7,
    "left": 5,
}
"""The colour and shape of each kind of configuration. That of those that were set aside is hollow."""
_CONTEXT = "characters of context"


def race_course(outcome: RaceOutcome) -> Figure:
    """Return how many configurations were still in, by the number of questions that were asked."""
    begun = len(outcome.entries) - (outcome.screened[1] if outcome.screened else 0)
    looks = [(0, max(begun, outcome.looks[0][1] if outcome.looks else 0)), *outcome.looks]
    title = "Who was still in the race"
    chart = Staircase(
        ident="race-course",
        title=title,
        steps=tuple(looks),
        x_label="questions asked",
        y_label="configurations in the race",
    )
    kept = [look for at, look in enumerate(looks) if at in (0, len(looks) - 1) or look[1] != looks[at - 1][1]]
    table = Table("race-course", (chart.x_label, chart.y_label), [word_cells(str(n), str(left)) for n, left in kept])
    notes = []
    if outcome.screened:
        measure, gone = outcome.screened
        notes.append(f"Before any answer was asked for, {gone} of {len(outcome.entries)} left by {measure}.")
    if outcome.asks_answers:
        notes.append("Some of them are shown to be worse; others are set aside, of which nothing is claimed.")
    return Figure(title, [staircase(chart)], table, notes)


def race_front(outcome: RaceOutcome) -> Figure:
    """Return each configuration by the first measure of the objective, and by the second or by its context."""
    first, *more = outcome.objective
    across = more[0] if more else _CONTEXT
    both = {each.name: (_across(each, more), each.figures.get(first)) for each in outcome.entries}
    kinds = {each.name: kind_in_race(outcome, each) for each in outcome.entries}
    drawn = [each for each in outcome.entries if all(both[each.name])]
    points = tuple(
        Point(each.title, x, _estimate(y), _KINDS[kinds[each.name]])
        for each in drawn
        for x, y in [both[each.name]]
        if x is not None and y is not None
    )
    title = f"{first} against {across}"
    chart = Scatter(
        ident="race-front",
        title=title,
        points=points,
        x_label=across,
        y_label=first,
        better_x=_better(more[0]) if more else "low",
        better_y=_better(first),
        named=tuple(each.title for each in drawn if each.name in (outcome.winner, outcome.today)),
        kinds=tuple((name, number) for name, number in _KINDS.items() if name in kinds.values()),
    )
    rows = [
        [Cell(each.title), *word_cells(_said(each, more), figure_cell(each, first), kinds[each.name])] for each in drawn
    ]
    table = Table("figure-race", ("configuration", across, first, "in the race"), rows, "With 95 % intervals")
    notes = [
        "Figures are of the race. The stepped line joins the configurations that no other beats on both; they, the "
        "chosen one and today's have their 95 % intervals, and all have them as titles."
    ]
    if len(drawn) < len(outcome.entries):
        notes.append(f"{len(outcome.entries) - len(drawn)} without both figures are not drawn.")
    return Figure(title, [scatter(chart)], table, notes)


def kind_in_race(outcome: RaceOutcome, entry: Entry) -> str:
    """Return the kind of a configuration, by which its mark is drawn."""
    if entry.name == outcome.winner:
        return "chosen"
    if entry.name == outcome.today:
        return "today"
    if entry.why:
        return "breaks a constraint"
    return "left" if entry.left_after else "set aside" if entry.aside_after else "not told apart"


def _across(entry: Entry, more: list[str]) -> Estimate | None:
    if not more:
        return Estimate(entry.context)
    figure = entry.figures.get(more[0])
    return None if figure is None else _estimate(figure)


def _said(entry: Entry, more: list[str]) -> str:
    return figure_cell(entry, more[0]) if more else f"{entry.context:,.0f}"


def _estimate(figure: RaceFigure) -> Estimate:
    # The mean of equal values may differ from both ends by rounding.
    return Estimate(figure.value, min(figure.low, figure.value), max(figure.high, figure.value))


def _better(name: str) -> Better:
    return "low" if measure_named(name).better == "lower" else "high"


# The race of ``rag-harness tune``: what it chose and how sure that is, every configuration, two drawings.

HEAD = ("characters of context", "in the race")


def race(runs: Sequence[Run]) -> Section | None:
    """Return the race in the folder of the first run; None where there was none.

    Raises:
        DataError: the file of the race cannot be read.
    """
    outcome = read_outcome(runs[0].output)
    return None if outcome is None else race_section(outcome)


def race_section(outcome: RaceOutcome) -> Section:
    """Return the outcome of a race."""
    return Section("race", "The race of configurations", list(_race_blocks(outcome)))


def race_rows(outcome: RaceOutcome) -> list[list[str]]:
    """Return a row for each configuration, the best first: its name, figures, context, and its fate in the race."""
    return [
        [
            f"{each.title} (today)" if each.name == outcome.today and each.title != "today" else each.title,
            *(figure_cell(each, name) for name in outcome.objective),
            f"{each.context:,.0f}",
            race_fate(outcome, each),
        ]
        for each in outcome.entries
    ]


def _race_blocks(outcome: RaceOutcome) -> Iterator[Block]:
    first, *others = outcome_sentences(outcome)
    yield Prose(first, "good" if outcome.held_out else "unsure")
    yield from map(Prose, others)
    yield race_front(outcome)
    yield race_course(outcome)
    rows = [
        [Cell(name), *word_cells(*figures), Cell(fate, _entry_tone(outcome, each))]
        for each, (name, *figures, fate) in zip(outcome.entries, race_rows(outcome), strict=True)
    ]
    notes = [
        "Figures are those of the race, with 95 % intervals; the figure of the best is too good, because it was "
        "chosen by it."
    ]
    notes += [f"{n} combinations were left out: {why} would not fit." for why, n in outcome.left_out.items()]
    yield Table("race", ("configuration", *outcome.objective, *HEAD), rows, "All configurations, the best first", notes)


def _entry_tone(outcome: RaceOutcome, entry: Entry) -> Tone:
    if entry.name == outcome.winner:
        return "good"
    return "bad" if entry.left_after or entry.why else "mute" if entry.aside_after else ""
