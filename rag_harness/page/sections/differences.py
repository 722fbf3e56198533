"""Differences between experiments: every pair on every measure, with tests, and the queries that changed most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from rag_harness.page.content import Block, Cell, More, Prose, Section, Table, Tone, word_cells
from rag_harness.page.figures import NONE, name_said
from rag_harness.page.run import Run
from rag_harness.page.sections.moved import ComparedExperiment, moved
from rag_harness.report.pairwise import ALPHA, excludes_0
from rag_harness.report.pairwise import PairDifference as Pair
from rag_harness.report.pairwise_lines import PAIR_COLUMNS, figures, measure_said, sign_of
from rag_harness.report.wording import counted

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
