"""The scorecard of the study, costs and times, panels of judges, slices, and the golden suite."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import nsmallest
from typing import Any

import numpy as np

from rag_harness.core.types import GOLDEN
from rag_harness.evaluation.measures import RANKING, Measure
from rag_harness.evaluation.measures.judged import kinds_shown
from rag_harness.page.content import (
    NONE,
    Block,
    Cell,
    LookedUpHit,
    LookedUpQuestion,
    LookedUpQuestions,
    More,
    Prose,
    Section,
    Table,
    Tone,
    mean_cell,
    measure_title,
    name_said,
    tail_cell,
    why_none,
    word_cells,
)
from rag_harness.page.run import UNJUDGED, Run
from rag_harness.records.golden_result import RetrievalResult
from rag_harness.runs.gates.verdict import value_said
from rag_harness.tables.blocks import STAGES, Totals
from rag_harness.tables.brief_sentences import found_said
from rag_harness.tables.golden_suite import GOLDEN_MEASURES, MOST_SLICES, SLICE, read_retrievals
from rag_harness.tables.pairwise import RISKS, TAIL, figures
from rag_harness.tables.pairwise import PairDifference as Pair
from rag_harness.tables.standings import SliceStanding, Standings, best_of, mean_said
from rag_harness.tables.suite_table import SuiteTable
from rag_harness.tables.summary import judged_in_order, stage_quantiles
from rag_harness.tables.wording import NEITHER, counted, cut, joined_names, money, where_found


def costs(run: Run) -> Table:
    """Return tokens, cost and calls of each experiment."""
    lines: dict[str, Callable[[Totals], str]] = {
        "answers": lambda totals: f"{totals.answered:,}",
        "model calls": lambda totals: f"{totals.calls:,}",
        "tokens in": lambda totals: f"{totals.prompt_tokens:,}",
        "tokens out": lambda totals: f"{totals.completion_tokens:,}",
        "tokens, all": lambda totals: f"{totals.tokens:,}",
        "cost": lambda totals: NONE if totals.cost_usd is None else money(totals.cost_usd),
        "cost a trial": lambda totals: NONE if totals.cost_usd is None else money(totals.cost_usd / totals.rows),
    }
    tables = run.experiments.values()
    rows = [[Cell(name), *word_cells(*(said(table.totals) for table in tables))] for name, said in lines.items()]
    notes = ["What the calls of the answers cost, judging apart; of a replayed answer, what the recorded call cost."]
    if any(table.totals.cost_usd is None for table in tables):
        notes.append(f"{NONE}: no price is known of the model.")
    return Table("costs", ("all trials together", *run.experiments), rows, "What the answers took", notes)


def times(run: Run) -> Table | None:
    """Return p50, p95 and p99 of each stage that some trial has a time of."""
    found = {name: stage_quantiles(table) for name, table in run.experiments.items()}
    stages = [stage for stage in STAGES if any(stage in each for each in found.values())]
    if not stages:
        return None
    rows = [
        [Cell(stage), *(_time(found[name].get(stage), run.tables[name], stage) for name in found)] for stage in stages
    ]
    notes = ["Times of trials in flight together; of a replayed answer, as recorded. first token: of streamed answers."]
    return Table("times", ("p50 / p95 / p99, ms", *found), rows, "Latency", notes)


def _time(quantiles: dict[str, float] | None, table: SuiteTable, stage: str) -> Cell:
    if not quantiles:
        return Cell(NONE, "mute", hint="no trial has a time of it")
    n = np.count_nonzero(~np.isnan(table.totals.times[stage]))
    return Cell(" / ".join(_ms(value) for value in quantiles.values()), hint=f"n = {n}")


def _ms(value: float) -> str:
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"


# What a panel of judges is worth: how far its judges agree, and by people's labels the best one beside it.

_HEADS = (
    "experiment", "measure", "judged by all", "α", "labels", "independent votes", "panel", "best judge", "silent",
)  # fmt: skip
_NOTES = (
    "α is Krippendorff's, of the judges among each other. Independent votes are J / (1 + (J - 1) ρ), ρ being the mean "
    "correlation of two judges' errors against people's labels. Panel and best judge: accuracy at 0.5, or Spearman's "
    "correlation where people gave ratings; the best one is chosen on these labels, which flatters it a little."
)


def panel_table(run: Run) -> Table | None:
    """Return what ``summary.json`` says of the run's panels; None where it has none."""
    found = [each for each in run.summary.get("panels") or () if isinstance(each, Mapping)]
    if not found:
        return None
    judges: Sequence[Any] = found[0].get("judges") or [NONE]
    claims = f"The claims below a trial are those of {judges[0]}, the first judge."
    why = dict.fromkeys(str(each["unworthy"]) for each in found if each.get("unworthy"))
    return Table("panels", _HEADS, [_row(each) for each in found], "Panel of judges", [_NOTES, claims, *why])


def _row(found: Mapping[str, Any]) -> list[Any]:
    worth: Mapping[str, Any] = found.get("worth") or {}
    best = str(worth.get("best") or "")
    silent = ", ".join(f"{name}: {count}" for name, count in (found.get("silent") or {}).items())
    return word_cells(
        str(found.get("suite", "")),
        str(found.get("measure", "")),
        f"{found.get('judged')} of {found.get('cases')}",
        _number(found.get("alpha")),
        str(worth.get("labels", NONE)),
        _number(worth.get("n_eff")),
        _number(worth.get("panel")),
        f"{best}: {_number((worth.get('by_judge') or {}).get(best))}" if best else NONE,
        silent or NONE,
    )


def _number(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, (int, float)) else NONE


_ALONE = "One experiment: there is nothing to compare it with, so nothing is marked as best."
_MARKS = (
    "★ better than every other experiment that has the measure, each difference significant by paired t and by "
    "permutation test after Holm's correction: over its family where a judge gives the measure, over its own pairs "
    "elsewhere; experiments with the same value on every case are one winner, and each carries "
    "it. Intervals that overlap do not contradict it: the tests compare case by case."
)


def scorecard(runs: Sequence[Run]) -> Section | None:
    """Return the scorecard of the first run; None where only the golden suite ran, which has a section of its own."""
    run = runs[0]
    if not run.experiments and run.selected:
        return None
    nothing = Prose("No trial was selected: there is nothing to score.", "unsure")
    blocks = [*_blocks(run)] if run.experiments else [nothing]
    return Section("scorecard", "Scorecard", [block for block in blocks if block is not None])


def measures_shown(run: Run) -> list[Measure]:
    """Return the measures that some suite of the run has a value of, or was judged on, in the report's order."""
    return measures_of(list(run.selected.values()))


def measures_of(tables: Sequence[SuiteTable]) -> list[Measure]:
    """Return the measures with a value: judged ones, those compared without a judge, then all others."""
    judged = [name for table in tables for name in judged_in_order(table)]
    known = {name: column.measure for table in tables for name, column in table.columns.items()}
    valued = [name for name in known if any(table.has(name) for table in tables)]
    rest = [name for name in (*UNJUDGED, *NEITHER, *known) if name in valued]
    return [known[name] for name in dict.fromkeys([*judged, *rest])]


def _blocks(run: Run) -> Iterator[Block | None]:
    tables = list(run.experiments.values())
    if not any(judged_in_order(table) for table in tables):
        yield Prose("No answer was judged: name measures with --rag-measures, or in a gate.", "unsure")
    measures, minor = measures_of(tables), set(RANKING) - set(UNJUDGED)
    first = [measure for measure in measures if measure.name not in minor]
    yield _table(
        run,
        "scorecard",
        first,
        "Means ± half the width of their 95 % interval; the interval itself where it is lopsided",
    )
    if rest := [measure for measure in measures if measure.name in minor]:
        yield More(
            "Other measures of retrieval", [_table(run, "scorecard-others", rest, "Means, as above; without tests")]
        )
    yield _categories(run)
    yield panel_table(run)
    yield costs(run)
    yield times(run)


def _table(run: Run, name: str, measures: Sequence[Measure], caption: str) -> Table:
    rows = [row for measure in measures for row in _rows(run, measure)]
    notes = [_MARKS if len(run.experiments) > 1 else _ALONE] if name == "scorecard" else []
    return Table(name, ("measure", *run.experiments), rows, caption, [*notes, *_missing(run, measures)])


def _rows(run: Run, measure: Measure) -> Iterator[list[Cell]]:
    best = best_of(measure.name, run.experiments, [*run.pairwise, *run.unjudged])
    means = [mean_cell(table, measure.name, name in best) for name, table in run.experiments.items()]
    yield [Cell(measure_title(measure)), *means]
    if measure.name in RISKS:
        title = measure_title(measure).replace(" ↓", f", p{TAIL * 100:.0f} ↓")
        yield [Cell(title), *(tail_cell(table, measure.name, TAIL) for table in run.experiments.values())]


def _missing(run: Run, measures: Sequence[Measure]) -> Iterator[str]:
    """Yield why experiments have no value at all, one line for each reason."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for name, table in run.experiments.items():
        for measure in measures:
            if not table.has(measure.name):
                by_reason.setdefault((name, why_none(table, measure.name)), []).append(measure.name)
    for (name, why), found in by_reason.items():
        yield f"{name} has no {joined_names(found)}: {why or 'no case is of the kind that it is about'}."


def _categories(run: Run) -> Table | None:
    """Return the share of each category of answers."""
    shares = {name: table.shares() for name, table in run.experiments.items()}
    if not any(shares.values()):
        return None
    kinds = kinds_shown(kind for share in shares.values() for kind in share if share[kind])
    rows = [[Cell(kind, kind=kind), *word_cells(*(_share(share, kind) for share in shares.values()))] for kind in kinds]
    counts = [sum(map(bool, table.categories or ())) for table in run.experiments.values()]
    rows.append([Cell("answers"), *word_cells(*(f"{n:,}" if n else NONE for n in counts))])
    notes = ["Each answer is of one kind, the first that holds; what each means is below, in Method."]
    return Table("categories", ("category", *shares), rows, "Categories of answers, in per cent", notes)


def _share(shares: dict[str, float], kind: str) -> str:
    return f"{shares[kind]:.1%}" if shares else NONE


_HEAD = ("slice", "measure", "cases", "best", "mean", "beats", "no sure difference from", "the same on every case")
_PAIRS = ("slice", "measure", "pair", "n", "difference", "interval", "p (t)", "p (perm)")
_SLICE_MARKS = (
    "Best: ahead of most others, case by case; all: everybody has the same values. ★ better than every other with a "
    "value, each difference significant by paired t and by permutation test after Holm's correction; with = several "
    "that have the same value on every case, which win together."
)
_FAMILY = (
    "p and the intervals of differences are adjusted by Holm for {}: every pair on every slice that is asked for. The "
    "pairs of the best alone would be too few, because the same cases say which it is and how much better."
)


def slices(runs: Sequence[Run]) -> Section | None:
    """Return the first run's standings on slices; None where none were asked for, or no experiment has a rival."""
    blocks = [*_standing_blocks(runs[0].standings)]
    return Section("slices", "Which wins where", blocks) if blocks else None


def _standing_blocks(found: Standings) -> Iterator[Block]:
    if found.found:
        data = ("data",) if found.several else ()
        notes = [_SLICE_MARKS, _FAMILY.format(counted(found.tests, "test")), *_without(found)]
        rows = [[*_data(each, found), *_slice_row(each)] for each in found.found]
        caption = "The best experiment of each slice; its mean with the 95 % interval"
        yield Table("slices", (*data, *_HEAD), rows, caption, notes)
        pairs = [[*_data(each, found), *row] for each in found.found for row in _pairs(each)]
        caption = "The best minus each other experiment, over the cases that both have a value of"
        yield More("By how much, on each slice", [Table("slices-pairs", (*data, *_PAIRS), pairs, caption)])
    yield from (Prose(f"{why}.", "unsure") for why in found.blank)


def _data(each: SliceStanding, found: Standings) -> list[Cell]:
    return [Cell(each.data)] if found.several else []


def _slice_row(each: SliceStanding) -> list[Cell]:
    name = "all" if each.is_level else " = ".join(each.winners) or each.best
    best = Cell(name, is_best=bool(each.winners))
    behind = f"behind {_names(each.ahead)}" if each.ahead else ""
    rivals = (_names(each.beaten), "; ".join(text for text in (_names(each.open), behind) if text), _names(each.equal))
    told = [Cell(text) if text else Cell(NONE, "mute") for text in rivals]
    return [*word_cells(each.name, name_said(each.measure), str(each.cases)), best, Cell(mean_said(each)), *told]


def _names(pairs: Sequence[Pair]) -> str:
    return ", ".join(pair.second for pair in pairs)


def _pairs(each: SliceStanding) -> Iterator[list[Cell]]:
    """Yield one line for each difference. A missing difference has a reason."""
    for pair in each.against:
        place = word_cells(each.name, name_said(each.measure), pair.pair)
        if pair.found is None:
            yield [*place, *(Cell(NONE, "mute", hint=pair.reason) for _ in range(5))]
            continue
        n, difference, between, _, p_t, p_permutation = figures(pair.found, pair.p_t, pair.p_permutation)
        tone: Tone = "good" if pair in each.beaten else "bad" if pair in each.ahead else "unsure"
        yield [*place, Cell(n), Cell(difference, tone, hint=pair.reason), *word_cells(between, p_t, p_permutation)]


def _without(found: Standings) -> Iterator[str]:
    """Yield the experiments that have no value on a slice, but have values on others."""
    for each in found.found:
        if each.without:
            yield f"{each.name}: no {name_said(each.measure)} of {', '.join(each.without)}."


MOST_QUESTIONS = 200
"""Questions of the table; the others are counted."""
_MOST_RANKS, _LONGEST_NAME = 10, 60
_FOUND = "✓ marks what was expected. A rank that is left out is a further hit of a document that stands before it."
_MEANS = "Means ± half the width of their 95 % interval; the interval itself where it is lopsided"


def retrieval(runs: Sequence[Run]) -> Section | None:
    """Return what the golden suite of the first run found; None where it did not run."""
    run = runs[0]
    table = run.selected.get(GOLDEN)
    return None if table is None else Section("retrieval", "Retrieval suite", [*_golden_blocks(run, table)])


def _golden_blocks(run: Run, table: SuiteTable) -> Iterator[Block]:
    if (found := run.brief.golden) is not None:
        yield Prose(f"{'; '.join([found_said(found), *found.broken])}.", "bad" if found.broken else "")
    first = dict.fromkeys([*_of_cutoff(run), *GOLDEN_MEASURES])
    measures = {measure.name: measure for measure in measures_of([table])}
    yield _means(table, "golden", [measures[name] for name in first if name in measures])
    if rest := [measure for name, measure in measures.items() if name not in first]:
        yield More("Other measures of the retrieval suite", [_means(table, "golden-others", rest)])
    yield _questions(run, table)


def _of_cutoff(run: Run) -> list[str]:
    k = run.brief.golden.k if run.brief.golden is not None else 10
    return [f"recall@{k}", f"mrr@{k}"]


def _means(table: SuiteTable, name: str, measures: Sequence[Measure]) -> Table:
    """Return a row a measure, over all questions and over those of each type."""
    types = sorted(table.slices().get(SLICE, set()))[:MOST_SLICES]
    types = [kind for kind in types if table.selected_of({SLICE: kind})]
    slices = [{}, *({SLICE: kind} for kind in types if len(types) > 1)]
    names = [f"{' '.join(where.values()) or 'all'}, n = {table.selected_of(where):,}" for where in slices]
    rows = [
        [Cell(measure_title(each)), *(mean_cell(table, each.name, where=where) for where in slices)]
        for each in measures
    ]
    return Table(name, ("measure", *names), rows, f"The golden suite by type of question. {_MEANS}")


def _questions(run: Run, table: SuiteTable) -> LookedUpQuestions:
    """Return the questions: the misses first, then those of which the least was found."""
    measures = [name for name in dict.fromkeys([*_of_cutoff(run), "recall@10", "ndcg@10"]) if table.has(name)]
    values = {name: table.values(name, {}) for name in measures}
    recall = values.get(_of_cutoff(run)[0], {})
    every = list(read_retrievals(run.output, run.manifest))
    first = nsmallest(MOST_QUESTIONS, every, key=lambda result: _place(result, recall))
    left = len(every) - len(first)
    more = f"And {counted(left, 'more question')}: rag-harness report {run.output} -o report.csv has all."
    shown = f"{len(first):,} of {counted(len(every), 'question')}" if left else "Every question"
    return LookedUpQuestions(
        f"{shown}, misses first",
        [_question(result, values) for result in first],
        [_FOUND, *([more] if left else [])],
    )


def _place(result: RetrievalResult, recall: Mapping[str, float]) -> tuple[float, float]:
    # The recall of a miss is 0, and one that was never found is worse than one that was found too low.
    rank = float("inf") if result.rank is None else result.rank
    return recall.get(result.case_id, 0.0), -rank


def _question(result: RetrievalResult, values: Mapping[str, Mapping[str, float]]) -> LookedUpQuestion:
    measured = {name: found[result.case_id] for name, found in values.items() if result.case_id in found}
    figures = [f"{name} {value_said(value)}" for name, value in measured.items()]
    return LookedUpQuestion(
        ident=result.case_id,
        query=result.query,
        expected=", ".join(result.expected),
        outcome=f"rank {result.rank}" if result.found else where_found(result),
        tone="good" if result.found else "bad",
        hits=[*_hits(result)],
        figures=" · ".join([*filter(None, [result.slices.get(SLICE)]), *figures]),
        error=result.error,
    )


def _hits(result: RetrievalResult) -> Iterator[LookedUpHit]:
    """Yield the first documents with their ranks, and below them those that were expected."""
    for rank, name in enumerate(result.ranked, 1):
        is_expected = result.relevant.get(name, 0) > 0
        # A further hit of a document keeps its place, under a name that begins so.
        if not name.startswith("\0") and (rank <= _MOST_RANKS or is_expected):
            yield LookedUpHit(rank, cut(name, _LONGEST_NAME), is_expected)
