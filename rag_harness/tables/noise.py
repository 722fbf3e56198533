"""The variance components of a run, between queries, answers and judgements, and their lines for the terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from math import sqrt
from pathlib import Path
from textwrap import wrap
from typing import Any

from rag_harness.core.settings import Settings
from rag_harness.core.types import GOLDEN
from rag_harness.evaluation.judges.traits import all_say_the_same
from rag_harness.evaluation.measures.correctness import CORRECT
from rag_harness.evaluation.measures.judged import JudgedMeasure
from rag_harness.records.manifest import RunManifest
from rag_harness.runs.engine import computes_its_answers
from rag_harness.stats.agreement import Components, variance_components
from rag_harness.tables.pairwise import measure_said
from rag_harness.tables.reader import read_repeat
from rag_harness.tables.suite_table import SuiteTable
from rag_harness.tables.wording import money, number_or_dash

# Variance components: between queries, between answers to one query, and between judgements of one answer.
#
# They need a run that answered each query several times (``--rag-repeats``). Answers after the first are in
# ``derived/``.

COMPUTED = "the embedded reader computes its answers, the same each time: not asked again"
JUDGE_TOO = "; the judge computes too, so the noise of a run is 0"
CONSTANT = "no value differed between the answers to a query: nothing to share out"
TOO_FEW = "no query has a value for each answer"
BUY = {"query": "queries", "pipeline": "answers (--rag-repeats)", "judge": "judgements (--rag-judge-repeats)"}
"""What to increase to reduce the effect of each variance."""


@dataclass(frozen=True, slots=True)
class MeasureNoise:
    """The variance components of one measure; ``found`` is None where ``reason`` says why.

    ``judge_computes`` says that the judge has no variance. ``left_out`` counts queries that lack a value of some
    answer.
    """

    measure: str
    found: Components | None
    left_out: int = 0
    judge_computes: bool = False
    reason: str = ""

    @property
    def error(self) -> float | None:
        """Standard error of the mean over queries like these."""
        found = self.found
        if found is None or found.query is None:
            return None
        return found.error_of(found.queries, found.repeats, found.judgements)

    @property
    def rerun(self) -> float | None:
        """Standard deviation of the mean between runs of the same queries, each answered and judged once."""
        found = self.found
        if found is None or found.pipeline is None:
            return None
        return sqrt((max(0.0, found.pipeline) + max(0.0, found.judge or 0.0)) / found.queries)

    @property
    def largest(self) -> str:
        """The component with the largest part of the mean's standard error; empty where that is not known."""
        found = self.found
        if found is None or found.query is None:
            return ""
        counts = {"query": 1, "pipeline": found.repeats, "judge": found.repeats * found.judgements}
        parts = {name: max(0.0, getattr(found, name) or 0.0) / count for name, count in counts.items()}
        return max(parts, key=lambda name: parts[name]) if any(parts.values()) else ""

    def as_json(self) -> dict[str, Any]:
        """Return the fields for ``summary.json``."""
        if self.found is None:
            return {"reason": self.reason}
        found = self.found
        return {
            **found._asdict(),
            "shares": found.shares(),
            "standard_error": self.error,
            "run_to_run": self.rerun,
            "buy": self.largest,
            "left_out": self.left_out,
        }


@dataclass(frozen=True, slots=True)
class Flaky:
    """A query with both right and wrong answers."""

    query_id: str
    right: int
    answers: int


@dataclass(frozen=True, slots=True)
class Noise:
    """The variance components of one experiment; ``reason`` says why there are none.

    ``missing`` counts repeated answers that did not come. ``cost_usd`` is the cost of those that did, None where no
    price is known. ``flaky`` queries are found by the measure ``correct``; ``is_checked`` says whether any answer has a
    value of it. ``are_alike`` says that cases are alike, turns of one conversation for example: the components do not
    know that, so the standard error of the mean is larger than they say.
    """

    experiment: str
    answers: int
    measures: tuple[MeasureNoise, ...] = ()
    flaky: tuple[Flaky, ...] = ()
    is_checked: bool = False
    missing: int = 0
    cost_usd: float | None = None
    reason: str = ""
    are_alike: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the fields for ``summary.json``."""
        return {
            "answers": self.answers,
            "missing": self.missing,
            "cost_usd": self.cost_usd,
            "reason": self.reason,
            "measures": {each.measure: each.as_json() for each in self.measures},
            "is_checked": self.is_checked,
            "flaky": [{"query_id": each.query_id, "right": each.right, "of": each.answers} for each in self.flaky],
        }


def noises(output: Path, manifest: RunManifest, tables: Mapping[str, SuiteTable], settings: Settings) -> list[Noise]:
    """Return the variance components of each experiment; none where queries were not answered again.

    Raises:
        DataError: the cases are missing or damaged.
    """
    if not settings.repeats:
        return []
    names = [name for name in sorted(tables) if name != GOLDEN]
    found = [_noise(output, name, manifest, tables[name], settings) for name in names]
    return [replace(each, are_alike=tables[each.experiment].alike is not None) for each in found]


def _noise(output: Path, name: str, manifest: RunManifest, first: SuiteTable, settings: Settings) -> Noise:
    record = manifest.suites[name]
    if settings.repeats > 1 and computes_its_answers(name, settings):
        return Noise(name, 1, reason=COMPUTED + (JUDGE_TOO if record.authors and all_say_the_same(settings) else ""))
    looked_at = [column.measure for column in first.columns.values()]
    repeats = range(2, settings.repeats + 1)
    answers = [first, *(read_repeat(output, name, repeat, record, looked_at) for repeat in repeats)]
    return noise_of(name, answers, [*record.judged, "token_f1"], all_say_the_same(settings), settings.judge_repeats)


def noise_of(
    name: str, answers: Sequence[SuiteTable], measures: Sequence[str], judge_computes: bool, turns: int
) -> Noise:
    """Return the variance components of an experiment; ``turns`` is how often the judge was asked again."""
    came = [{case for n, case in enumerate(table.ids) if table.state_of(n) == "ok"} for table in answers]
    ended = [{case for n, case in enumerate(each.ids) if each.ended is not None and each.ended[n]} for each in answers]
    missing = sum(len(came[0] - again - over) for again, over in zip(came[1:], ended[1:], strict=True))
    whole = set.intersection(*came)
    found = [
        _measured(answers, measure, whole, judge_computes, turns)
        for measure in dict.fromkeys(measures)
        if measure in answers[0].columns
    ]
    said = _said(answers, whole)
    costs = [cost for table in answers[1:] if (cost := table.totals.cost_usd) is not None]
    total = sum(costs) if costs else None
    return Noise(name, len(answers), tuple(found), _flaky(said), bool(said), missing, total)


def _measured(
    answers: Sequence[SuiteTable], measure: str, whole: Set[str], judge_computes: bool, turns: int
) -> MeasureNoise:
    values = [table.values(measure, {}) for table in answers]
    cases = [case for case in values[0] if case in whole and all(case in each for each in values)]
    left = len(whole & {case for each in values for case in each}) - len(cases)
    if not cases:
        return MeasureNoise(measure, None, left, reason=TOO_FEW)
    once = {case: [[each[case]] for each in values] for case in cases}
    again = _judged_again(answers, measure, once, turns)
    if _is_constant([*once.values(), *again.values()]):
        alone = len(answers) == 1 and not again
        why = variance_components(list(once.values())).reasons["pipeline"] if alone else CONSTANT
        return MeasureNoise(measure, None, left, reason=why)
    is_judged = isinstance(answers[0].columns[measure].measure, JudgedMeasure)
    computes = judge_computes or measure == "token_f1"
    return MeasureNoise(measure, _components(once, again, computes), left, is_judged and computes)


def _is_constant(blocks: Sequence[list[list[float]]]) -> bool:
    return all(len({value for answer in block for value in answer}) == 1 for block in blocks)


def _judged_again(
    answers: Sequence[SuiteTable], measure: str, once: Mapping[str, list[list[float]]], turns: int
) -> dict[str, list[list[float]]]:
    """Return all judgements of the cases whose answers all have every repeat of the judgement."""
    found: dict[str, list[list[float]]] = {}
    for case, block in once.items():
        more = [table.said_again.get(measure, {}).get(case, ()) for table in answers]
        said = [[*one, *(value for value in rest if value is not None)] for one, rest in zip(block, more, strict=True)]
        if turns and all(len(each) == turns + 1 for each in said):
            found[case] = said
    return found


def _components(
    once: Mapping[str, list[list[float]]], again: Mapping[str, list[list[float]]], judge_computes: bool
) -> Components:
    """Return the components. Where only some answers were judged again, the judge's variance comes from these."""
    if len(again) == len(once):
        return variance_components(list(again.values()))
    found = variance_components(list(once.values()))
    judge = 0.0 if judge_computes else variance_components(list(again.values())).judge if again else None
    if judge is None:
        return found
    pipeline = None if found.pipeline is None else found.pipeline - judge
    reasons = {name: why for name, why in found.reasons.items() if name != "judge"}
    return found._replace(pipeline=pipeline, judge=judge, reasons=reasons)


def _said(answers: Sequence[SuiteTable], whole: Collection[str]) -> dict[str, list[float]]:
    """Return what ``correct`` says of the answers to each query, of which some were checked."""
    values = [table.values(CORRECT, {}) for table in answers if CORRECT in table.columns]
    said = {case: [each[case] for each in values if case in each] for case in answers[0].ids if case in whole}
    return {case: right for case, right in said.items() if right}


def _flaky(said: Mapping[str, Sequence[float]]) -> tuple[Flaky, ...]:
    """Return the flaky queries, the most evenly divided first."""
    counts = [Flaky(case, int(sum(right)), len(right)) for case, right in said.items()]
    found = [each for each in counts if 0 < each.right < each.answers]
    return tuple(sorted(found, key=lambda each: abs(2 * each.right - each.answers) / each.answers))


_WIDTH = 100
_SHOWN = 10
_HEADER = f"  {'':<21}{'n':>5}{'mean':>8}{'error':>8}{'run to run':>12}{'queries':>9}{'pipeline':>10}{'judge':>10}"


def noise_lines(found: Sequence[Noise]) -> list[str]:
    """Return the lines, at most 100 columns wide."""
    return [part for noise in found for line in _lines(noise) for part in wrap_line(line)]


def wrap_line(line: str) -> list[str]:
    """Wrap a line. A table's line keeps its columns."""
    return [line] if len(line) <= _WIDTH else wrap(line, _WIDTH, subsequent_indent="    ")


def _lines(noise: Noise) -> Iterator[str]:
    if noise.reason:
        yield f"{noise.experiment}: {noise.reason}"
        return
    answers = f"{noise.answers} answer{'s' * (noise.answers > 1)} to each query"
    yield f"{noise.experiment}: {answers}{_cost(noise)}{_missing(noise)}"
    told = [each for each in noise.measures if each.found is not None]
    if told:
        yield _HEADER
    yield from (_row(each) for each in told)
    if told and noise.are_alike:
        yield "  error: as of cases of their own. Some of these are alike, turns of a conversation: it is larger"
    yield from _reasons(noise.measures)
    yield from _advice(told)
    yield from _flaky_lines(noise)


def _cost(noise: Noise) -> str:
    return f"; those after the first cost {money(noise.cost_usd)}" if noise.cost_usd else ""


def _missing(noise: Noise) -> str:
    where = f"output/derived/{noise.experiment}+repeat2.jsonl" if noise.missing else ""
    return f"; {noise.missing} answers after the first did not come, {where} and those beside it say why" * bool(where)


def _row(noise: MeasureNoise) -> str:
    found = noise.found
    assert found is not None
    shares = found.shares()
    judge = "computes" if noise.judge_computes else _percent(shares.get("judge"))
    numbers = f"{found.queries:>5}{found.mean:>8.3f}{number_or_dash(noise.error):>8}{number_or_dash(noise.rerun):>12}"
    parts = f"{_percent(shares.get('query')):>9}{_percent(shares.get('pipeline')):>10}{judge:>10}"
    return f"  {measure_said(noise.measure):<21.21}{numbers}{parts}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _reasons(measures: Sequence[MeasureNoise]) -> Iterator[str]:
    """Say why a figure is missing. Measures with the same reason share a line."""
    said: dict[str, list[str]] = {}
    for each in measures:
        for why in dict.fromkeys(each.found.reasons.values() if each.found is not None else [each.reason]):
            said.setdefault(why, []).append(measure_said(each.measure))
        if each.left_out:
            said.setdefault(f"{each.left_out} queries lack a value of some answer, and are left out", []).append(
                measure_said(each.measure)
            )
    yield from (f"  {', '.join(names)}: {why}" for why, names in said.items())


def _advice(told: Sequence[MeasureNoise]) -> Iterator[str]:
    """Say how to reduce the standard error of the mean, by its largest component."""
    said: dict[str, list[str]] = {}
    for each in told:
        if each.largest:
            said.setdefault(each.largest, []).append(measure_said(each.measure))
    yield from (f"  buy more {BUY[part]} for {', '.join(names)}" for part, names in said.items())


def _flaky_lines(noise: Noise) -> Iterator[str]:
    if noise.answers < 2:
        return
    if not noise.is_checked:
        yield "  no answer was checked as right or wrong, so no query can be called flaky"
        return
    if not noise.flaky:
        yield "  no query is right in some answers and wrong in others"
        return
    yield "  flaky: right in some answers and wrong in others"
    yield from (f"    {each.query_id}  right in {each.right} of {each.answers}" for each in noise.flaky[:_SHOWN])
    more = len(noise.flaky) - _SHOWN
    if more > 0:
        yield f"    and {more} more: summary.json"
