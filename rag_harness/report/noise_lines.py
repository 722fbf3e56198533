"""Writes the variance components for people, in lines of 100 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from rag_harness.report.money import money
from rag_harness.report.noise import BUY, MeasureNoise, Noise
from rag_harness.report.pairwise_lines import measure_said

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
    yield from _flaky(noise)


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
    numbers = f"{found.queries:>5}{found.mean:>8.3f}{_number(noise.error):>8}{_number(noise.rerun):>12}"
    parts = f"{_percent(shares.get('query')):>9}{_percent(shares.get('pipeline')):>10}{judge:>10}"
    return f"  {measure_said(noise.measure):<21.21}{numbers}{parts}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


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


def _flaky(noise: Noise) -> Iterator[str]:
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
