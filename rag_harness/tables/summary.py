"""The summary of a run: one line for each experiment, the scorecard, the speed of each stage, and summary.json."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_harness.core.files import write_atomically
from rag_harness.core.settings.profiles import MOCK, SIMULATED, Prices
from rag_harness.core.types import GOLDEN
from rag_harness.evaluation.measures.judged import JudgedMeasure, kinds_shown
from rag_harness.evaluation.measures.measure import CompositeMeasure
from rag_harness.records.manifest import SuiteRecord, panel_label
from rag_harness.runs.gates import Verdict
from rag_harness.stats import quantile
from rag_harness.tables.blocks import STAGES
from rag_harness.tables.conversations import by_turn, drift_of, has_turns
from rag_harness.tables.suite_table import SuiteTable
from rag_harness.tables.wording import TERMINAL_WIDTH, money, number_or_dash

HEADER = (
    "experiment", "trials", "errors", "resumed", "recall@5", "mrr@10", "abstained", "tokens", "lost", "cost"
)  # fmt: skip
SUMMARY_MEASURES = ("recall@5", "mrr@10")
"""The measures that the lines show; a table must have them."""
SHORT_MEASURE_NAMES = {
    "context_precision": "CP",
    "faithfulness": "F",
    "answer_relevancy": "AR",
    "g_mean": "G_mean",
    "hri": "HRI",
    "hri_gold": "HRI_gold",
}
"""The study's names of its measures in the heads of tables. Other measures keep their full names."""


@dataclass(frozen=True, slots=True)
class ExperimentSummary:
    """Aggregates of one experiment. Means are over the cases with gold, lost ones included; None where there is none.

    ``cost_usd`` is the cost of its answers when they were asked for, in this run or earlier; None where no price is
    known.
    """

    experiment: str
    trials: int
    errors: int
    resumed: int
    recall_at_5: float | None
    mrr_at_10: float | None
    abstained: int
    tokens: int
    lost: int
    cost_usd: float | None

    def cells(self) -> tuple[str, ...]:
        """Return the row of the table."""
        return (
            self.experiment,
            str(self.trials),
            str(self.errors),
            str(self.resumed),
            number_or_dash(self.recall_at_5),
            number_or_dash(self.mrr_at_10),
            str(self.abstained),
            str(self.tokens),
            str(self.lost),
            "-" if self.cost_usd is None else money(self.cost_usd),
        )


def summarise(tables: Mapping[str, SuiteTable]) -> list[ExperimentSummary]:
    """Return the aggregates of each experiment with a row or a lost case, by its id."""
    return [_summary(name, suite) for name, suite in sorted(tables.items()) if suite.totals.rows or suite.lost_of({})]


def summary_lines(summaries: Sequence[ExperimentSummary]) -> list[str]:
    """Return the table, a line for each experiment. Columns of losses and costs are left out where all are empty."""
    hidden = {"lost"} if not any(summary.lost for summary in summaries) else set()
    hidden |= {"cost"} if not any(summary.cost_usd for summary in summaries) else set()
    columns = [n for n, name in enumerate(HEADER) if name not in hidden]
    return table([[row[n] for n in columns] for row in (HEADER, *(summary.cells() for summary in summaries))])


def answers_by(tables: Mapping[str, SuiteTable]) -> str:
    """Say which models gave the answers. A model that is not an LLM is not presented as one."""
    whose = {name: _whose(suite.totals.models) for name, suite in sorted(tables.items()) if suite.totals.models}
    if len(set(whose.values())) <= 1:
        return f"answers by {next(iter(whose.values()), 'nobody: no trial has one')}"
    by_author: dict[str, list[str]] = {}
    for name, author in whose.items():
        by_author.setdefault(author, []).append(name)
    return "; ".join(f"answers of {', '.join(names)} by {author}" for author, names in by_author.items())


def _whose(models: Counter[str]) -> str:
    return " and ".join(author(model) for model, _ in models.most_common())


def author(model: str) -> str:
    """Name the model that answered, for people."""
    if not model:
        return "a pipeline of your own"
    if model.startswith(SIMULATED):
        return f"{model} (SIMULATED, with planted faults, not an LLM)"
    if model.startswith(MOCK):
        return f"{model} (MOCK, placeholders of no meaning, not an LLM)"
    return f"{model} (a baseline reader, not an LLM)" if is_no_llm(model) else model


def made_up(author: str) -> str:
    """Return SIMULATED or MOCK where answers say nothing of a model that would be used; empty for any other author."""
    return next((word for word in ("SIMULATED", "MOCK") if f"({word}, " in author), "")


def is_no_llm(model: str) -> bool:
    """Return whether a model is code of this package, which quotes and does not reason."""
    return model.startswith(("embedded/", MOCK))


def judge_said(judge: str, model: str, asks_model: bool | None) -> str:
    """Name the judge for people. A judge that is not an LLM is not presented as one, nor one that does not say."""
    if not model:
        return "nobody: the judge cannot be had"
    if is_no_llm(model):
        return f"{model} (words and vectors compared, no LLM)"
    what = {True: f"an LLM, method {judge}", False: f"method {judge}, no LLM", None: f"method {judge}"}
    return f"{model} ({what[asks_model]})"


def judges_said(suites: Iterable[SuiteRecord]) -> list[str]:
    """Name the judges of suites for people, each once. A panel is one."""
    found: dict[str, None] = {}
    for suite in suites:
        pairs = [author[:2] for author in suite.authors]
        alone = [judge_said(judge, model, suite.asks_model.get(judge)) for judge, model in pairs]
        found |= dict.fromkeys([panel_label(suite.panel, pairs)] if suite.panel else alone)
    return list(found)


def _summary(experiment: str, suite: SuiteTable) -> ExperimentSummary:
    totals, means = suite.totals, suite.aggregate(SUMMARY_MEASURES)
    return ExperimentSummary(
        experiment=experiment,
        trials=totals.rows,
        errors=totals.errors,
        resumed=totals.resumed,
        recall_at_5=means["recall@5"],
        mrr_at_10=means["mrr@10"],
        abstained=totals.abstained,
        tokens=totals.tokens,
        lost=suite.lost_of({}),
        cost_usd=totals.cost_usd,
    )


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align cells: the first column left, numbers right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


# The study's scorecard: means of judged measures with intervals, and categories of answers. 100 columns.

_FIRST = ("context_precision", "faithfulness", "answer_relevancy", "g_mean", "hri")
_WIDTH = 100
_ACROSS = 6
"""Most measures in one table. Those of the study are in the first table."""


def scorecard_lines(
    tables: Mapping[str, SuiteTable], suites: Mapping[str, SuiteRecord], prices: Prices | None = None
) -> list[str]:
    """Return the lines; none where nothing was judged. ``suites`` name the judges and their costs."""
    judged = {name: suite for name, suite in sorted(tables.items()) if name != GOLDEN and judged_in_order(suite)}
    if not judged:
        return []
    authors = dict.fromkeys(author[:2] for name in judged for author in suites[name].authors)
    whose = " and ".join(judges_said(suites[name] for name in judged))
    answering = {model for suite in judged.values() for model in suite.totals.models}
    kin = [line for _, model in authors for line in one_family(model, answering)]
    took = _took([suites[name] for name in judged], [model for _, model in authors], prices)
    return [
        f"judged by {whose}",
        *kin,
        *took,
        *_means(judged),
        *_categories(judged),
        *_again(judged),
        *_unmeasured(judged),
    ]


def _took(records: Sequence[SuiteRecord], models: Sequence[str], prices: Prices | None) -> list[str]:
    """Say what calls of the judge's model have cost, where it has one."""
    spent: Counter[str] = Counter()
    for record in records:
        spent.update(record.judging)
    if not spent["calls"]:
        return []
    # The tokens of all judges are counted together, so their cost is known where one model was asked.
    asked = {model for model in models if not is_no_llm(model)} or set(models)
    model = asked.pop() if len(asked) == 1 else ""
    cost = prices.cost(model, spent["prompt_tokens"], spent["completion_tokens"]) if prices and model else None
    replayed = f", {spent['recorded']} of them replayed" if spent["recorded"] else ""
    tokens = f"{spent['prompt_tokens']:,} tokens in, {spent['completion_tokens']:,} out"
    return [f"judging took {spent['calls']} calls{replayed}; {tokens}" + (f"; {money(cost)}" if cost else "")]


# Makers of models. A judge favours answers of models of its own maker (Panickssery et al. 2024).

_MAKERS = {
    "gpt": "openai", "chatgpt": "openai", "o": "openai", "claude": "anthropic", "gemini": "google", "gemma": "google",
    "grok": "x-ai", "llama": "meta", "meta": "meta", "meta-llama": "meta", "mistral": "mistral", "mistralai": "mistral",
    "mixtral": "mistral", "ministral": "mistral", "qwen": "qwen", "deepseek": "deepseek", "command": "cohere",
    "phi": "microsoft",
}  # fmt: skip
_LETTERS = re.compile(r"[a-z]+")


def maker_of(model: str) -> str:
    """Return the maker of a model, by its name; ``x-ai/grok-beta`` and ``grok-2`` give x-ai. Empty: unknown."""
    seller, slash, name = model.lower().rpartition(":" if "/" not in model else "\0")[2].partition("/")
    if seller in ("embedded", "simulated", "mock"):
        return ""
    known = _LETTERS.match(name.rpartition("/")[2] if slash else seller)
    return _MAKERS.get(known[0] if known else "", _MAKERS.get(seller, seller if slash else ""))


def one_family(judge: str, answering: Iterable[str]) -> list[str]:
    """Return a warning where the judge and an answering model are from one maker."""
    same = [model for model in sorted(answering) if model and maker_of(model) and maker_of(model) == maker_of(judge)]
    if not same:
        return []
    return [f"The judge {judge} and {same[0]}, which answered, are one family: a judge favours its own."]


def judged_in_order(suite: SuiteTable) -> list[str]:
    """Return the judged measures and composites of a suite, the study's first."""
    composed = {"g_mean", "hri", "hri_gold"}
    found = [
        name for name, column in suite.columns.items() if isinstance(column.measure, JudgedMeasure) or name in composed
    ]
    return [*(name for name in _FIRST if name in found), *(name for name in found if name not in _FIRST)]


def _means(judged: Mapping[str, SuiteTable]) -> Iterator[str]:
    names = list(dict.fromkeys(name for suite in judged.values() for name in judged_in_order(suite)))
    columns = [column for name in names for column in ([name, "p95"] if name.startswith("hri") else [name])]
    first = ["experiment", *judged]
    cells = [
        [SHORT_MEASURE_NAMES.get(column, column), *(_cell(suite, columns, n) for suite in judged.values())]
        for n, column in enumerate(columns)
    ]
    for shown in _blocks(first, cells):
        yield from table(list(zip(first, *shown, strict=True)))


def _blocks(first: Sequence[str], columns: Iterable[Sequence[str]]) -> list[list[Sequence[str]]]:
    """Divide the columns into as many tables as needed, so that none is too wide."""
    blocks: list[list[Sequence[str]]] = []
    left = 0
    for column in columns:
        width = max(map(len, column)) + 2
        if width > left or len(blocks[-1]) == _ACROSS:
            blocks.append([])
            left = _WIDTH - max(map(len, first))
        blocks[-1].append(column)
        left -= width
    return blocks


def _cell(suite: SuiteTable, columns: Sequence[str], n: int) -> str:
    is_tail = columns[n] == "p95"
    name = columns[n - 1] if is_tail else columns[n]
    values = list(suite.values(name, {}).values()) if name in suite.columns else []
    if not values:
        return "-"
    if is_tail:
        return f"{quantile(sorted(values), 0.95):.2f}"
    mean = f"{sum(values) / len(values):.2f}"
    if len(values) == 1:
        return mean  # one case gives no interval
    found = suite.interval(name)
    return f"{mean} ±{(found[1] - found[0]) / 2:.2f}" if found else mean


def _categories(judged: Mapping[str, SuiteTable]) -> list[str]:
    """Return a line for each category, in per cent of the answers, with a column for each experiment."""
    shares = {name: suite.shares() for name, suite in judged.items()}
    if not any(shares.values()):
        return []
    rows = [
        [kind, *(f"{share[kind]:.1%}" if share else "-" for share in shares.values())]
        for kind in kinds_shown(kind for share in shares.values() for kind in share if share[kind])
    ]
    return table([["answers", *shares], *rows])


def _again(judged: Mapping[str, SuiteTable]) -> Iterator[str]:
    """Say whether a judge that was asked again agrees with itself."""
    from rag_harness.evaluation.judges.calibration.agreement import repeatability

    for measure in dict.fromkeys(name for suite in judged.values() for name in suite.said_again):
        values: dict[Hashable, list[float | None]] = {}
        for name, suite in judged.items():
            first = suite.values(measure, {}) if measure in suite.columns else {}
            for case, more in suite.said_again.get(measure, {}).items():
                values[name, case] = [first.get(case), *more]
        yield f"{measure}: {repeatability(values).line()}"


def _unmeasured(judged: Mapping[str, SuiteTable]) -> Iterator[str]:
    """Say which measurable cases have no score, and why. Composites are left out: their parts say it."""
    for name, suite in judged.items():
        for measure in judged_in_order(suite):
            is_part = isinstance(suite.columns[measure].measure, JudgedMeasure)
            failures = suite.failures(measure, {})
            if failures and is_part:
                said = ", ".join(f"{n} of {suite.selected_of({})} have {why}" for why, n in failures.most_common(1))
                more = f", {len(failures) - 1} more reasons" if len(failures) > 1 else ""
                yield from wrap(f"{name}: {measure}: {said}{more}", _WIDTH, subsequent_indent="  ")


TIME_QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_WORTH_SAYING = 0.05
"""Seconds. Below this, a wait is only a thread that woke late, not a rate limit."""
_WAITING = "waiting between tries"
TablesByName = Mapping[str, SuiteTable]


def stage_quantiles(suite: SuiteTable) -> dict[str, dict[str, float]]:
    """Return p50, p95 and p99 in milliseconds of the whole trial, and of each stage that some row has a time of."""
    found = {stage: _there(times) for stage, times in suite.totals.times.items()}
    return {
        stage: {name: quantile(times, share) for name, share in TIME_QUANTILES.items()}
        for stage, times in found.items()
        if any(times)
    }


def stage_lines(tables: TablesByName) -> list[str]:
    """Return a line for each experiment with p50/p95/p99 of trials and stages; nothing without times."""
    found = {name: stage_quantiles(suite) for name, suite in sorted(tables.items()) if suite.totals.rows}
    stages = [stage for stage in STAGES if any(stage in times for times in found.values())]
    if not stages:
        return []
    cells = [(name, *(_quantiles_cell(times.get(stage)) for stage in stages)) for name, times in found.items()]
    return table([("p50/p95/p99 ms", *stages), *cells])


def speed_lines(tables: TablesByName, concurrency: int) -> list[str]:
    """Return how long this run's own trials took, and where; none where all are replayed or resumed."""
    new = [suite for suite in tables.values() if suite.totals.new.any()]
    if not new:
        return []
    wall = max(max(s.totals.ended for s in new) - min(s.totals.began for s in new), 0.001)
    n = sum(int(suite.totals.new.sum()) for suite in new)
    trials = f"{n} trial{'s' * (n > 1)} in {_seconds(wall)}, {_rate(n / wall)} a second"
    return ["; ".join([trials, *_paid(new)]), *_where(new, wall, concurrency), *_waits(new)]


def _where(suites: Sequence[SuiteTable], wall: float, concurrency: int) -> list[str]:
    """Say where the time went. Local models work on one batch after another; calls wait in parallel.

    Work that two experiments share is in the rows of both, and is counted once. Stages of different trials may run at
    the same time, so their sum may exceed the total.
    """
    spent = {"retrieval": _once(suites, "retrieve"), "reranking": _once(suites, "rerank")}
    calls = np.concatenate([_new(suite, "model call") for suite in suites])
    if len(calls):
        how = f" ({calls.mean():.0f} ms each, {concurrency} in flight)"
        spent[f"model calls{how}"] = max(calls.sum() / concurrency, calls.max()) / 1000
    spent["other steps"] = sum(_untimed(suite) for suite in suites) / concurrency / 1000
    spent[_WAITING] = _waiting(suites, concurrency, wall - sum(spent.values()))
    said = [f"{name} {_seconds(seconds)}" for name, seconds in spent.items() if seconds >= _WORTH_SAYING]
    return _folded([*said, f"harness {_seconds(max(wall - sum(spent.values()), 0.0))}"]) if said else []


def _waiting(suites: Sequence[SuiteTable], concurrency: int, left: float) -> float:
    """Return the seconds in which trials only waited, for rate limits and between tries: at most those ``left``."""
    waited = sum(suite.totals.waited_ms for suite in suites) / concurrency
    longest = max(suite.totals.longest_wait_ms for suite in suites)
    return max(min(max(waited, longest) / 1000, left), 0.0)


def _folded(parts: Sequence[str]) -> list[str]:
    """Join the parts with commas, in as many lines as needed."""
    lines = [parts[0]]
    for part in parts[1:]:
        longer = f"{lines[-1]}, {part}"
        lines = [*lines[:-1], longer] if len(longer) < TERMINAL_WIDTH else [*lines[:-1], f"{lines[-1]},", part]
    return lines


def _untimed(suite: SuiteTable) -> float:
    """Return the milliseconds of new trials outside known stages: steps of a user's own pipeline."""
    times, new = suite.totals.times, suite.totals.new
    staged = np.nansum([times[stage][new] for stage in ("retrieve", "rerank", "model call")], axis=0)
    return float(np.nansum(np.maximum(times["total"][new] - staged, 0.0)))


def _once(suites: Sequence[SuiteTable], stage: str) -> float:
    """Return a stage's seconds over all new trials. Equal times of one case are one shared piece of work."""
    new = [np.where(suite.totals.new, suite.totals.times[stage], np.nan) for suite in suites]
    if all(suite.ids is suites[0].ids for suite in suites):
        return _different(np.array(new)) / 1000
    places = {case: place for place, case in enumerate(dict.fromkeys(case for suite in suites for case in suite.ids))}
    rows = np.full((len(suites), len(places)), np.nan)
    for row, suite, times in zip(rows, suites, new, strict=True):
        row[[places[case] for case in suite.ids]] = times
    return _different(rows) / 1000


def _different(times: npt.NDArray[np.float64]) -> float:
    """Sum the times of each case, shape (suites, cases). Equal times of one case are counted once."""
    ordered = np.sort(times, axis=0)
    ordered[1:][ordered[1:] == ordered[:-1]] = np.nan
    return float(np.nansum(ordered))


def _new(suite: SuiteTable, stage: str) -> npt.NDArray[np.float64]:
    times = suite.totals.times[stage][suite.totals.new]
    return np.asarray(times[~np.isnan(times)])


def _there(times: npt.NDArray[np.float64]) -> list[float]:
    found: list[float] = np.sort(times[~np.isnan(times)]).tolist()
    return found


def _quantiles_cell(quantiles: Mapping[str, float] | None) -> str:
    return "/".join(_milliseconds(value) for value in quantiles.values()) if quantiles else "-"


def _milliseconds(value: float) -> str:
    if value < 9.95:
        return f"{value:.1f}"
    return f"{value:.0f}" if value < 10_000 else f"{value / 1000:.0f}s"


def _paid(suites: Sequence[SuiteTable]) -> Iterator[str]:
    cost = sum(suite.totals.paid_usd for suite in suites)
    if cost:
        yield f"{money(cost)} paid"


def _waits(suites: Sequence[SuiteTable]) -> Iterator[str]:
    waited = sum(suite.totals.waited_ms for suite in suites) / 1000
    retries = sum(suite.totals.retries for suite in suites)
    if waited >= _WORTH_SAYING or retries:
        tries = "1 retry" if retries == 1 else f"{retries} retries"
        yield f"waited {_seconds(waited)} for rate limits and between tries, {tries}"


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if value < 1 else f"{value:.1f} s" if value < 100 else f"{value:.0f} s"


def _rate(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"


SUMMARY_FILE = "summary.json"


def write_summary_file(
    output: Path,
    tables: Mapping[str, SuiteTable],
    verdicts: Sequence[Verdict],
    settings: Mapping[str, Any],
    more: Mapping[str, Any] | None = None,
) -> None:
    """Write the aggregates by experiment and for ``golden``, the verdict of each gate, and ``more`` by its keys."""
    suites = {name: _aggregates(name, table) for name, table in tables.items() if table.selected_of({})}
    gates = [verdict_json(verdict) for verdict in verdicts]
    content = {**suites, "gates": gates, "profile": settings["profile"], "mode": settings["mode"], **(more or {})}
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    write_atomically(output / SUMMARY_FILE, (text + "\n").encode())


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as the file has it."""
    evidence = {"confidence": verdict.gate.confidence / 100} if verdict.gate.confidence is not None else {}
    return {
        "gate": verdict.gate.condition,
        "state": verdict.state,
        "value": verdict.value,
        "threshold": verdict.threshold,
        "interval": _ends(verdict.interval),
        "n": verdict.n,
        "unit": verdict.unit,
        "reason": verdict.reason,
        **({"counts": verdict.gate.counts} if verdict.gate.turns else {}),
        **({"alike": verdict.alike} if verdict.alike else {}),
        **({"of": verdict.of, "declined": verdict.declined} if verdict.of else {}),
        **({"unreviewed": verdict.unreviewed} if verdict.unreviewed else {}),
        **({"family": verdict.family} if verdict.family else {}),
        **({"expected": verdict.gate.expected} if verdict.gate.expected else {}),
        **({**evidence, "bounds": _ends(verdict.bounds)} if evidence else {}),
        **({"otherwise": verdict.gate.otherwise, "due": verdict.is_due} if verdict.gate.otherwise else {}),
    }


def _ends(interval: tuple[float, float] | None) -> list[float | None] | None:
    """Return the ends; null for an open end."""
    return [end if isfinite(end) else None for end in interval] if interval else None


def _aggregates(name: str, table: SuiteTable) -> dict[str, Any]:
    measures = list(table.columns)
    by_type = {
        key: {"n": table.selected_of({"query_type": key}), **_measured(values)}
        for key, values in table.by("query_type", measures).items()
    }
    return {
        "n": table.selected_of({}),
        "total": table.total_of({}),
        "lost": table.lost_of({}),
        **_measured(table.aggregate(measures)),
        "by_query_type": by_type,
        **_judged(table),
        **_turns(table),
        **_times_and_cost(name, table),
    }


def _judged(table: SuiteTable) -> dict[str, Any]:
    """Return the entries of judged suites: intervals, upper quantiles of the risks, categories, and missing scores."""
    names = [
        name for name, column in table.columns.items() if isinstance(column.measure, (JudgedMeasure, CompositeMeasure))
    ]
    values = {name: found for name in names if (found := list(table.values(name, {}).values()))}
    if not names:
        return {}
    return {
        "intervals": {name: [*between] for name in values if (between := table.interval(name))},
        "p95": {name: quantile(sorted(found), 0.95) for name, found in values.items() if name.startswith("hri")},
        "categories": table.shares(),
        "unmeasured": {name: table.unmeasured(name, {}) for name in names},
    }


def _turns(table: SuiteTable) -> dict[str, Any]:
    """Return the entries of suites with conversations: each measure by turn, and its drift."""
    if not has_turns(table):
        return {}
    names = [name for name in table.columns if table.has(name)]
    drifts = {name: drift for name in names if (drift := drift_of(table, name))}
    return {
        "by_turn": {name: {each.turn: each.as_json() for each in by_turn(table, name)} for name in names},
        "drift": {name: drift.as_json() for name, drift in drifts.items()},
    }


def _measured(values: Mapping[str, float | None]) -> dict[str, float]:
    return {measure: value for measure, value in values.items() if value is not None}


def _times_and_cost(name: str, table: SuiteTable) -> dict[str, Any]:
    """Return the entries of experiments only; ``cost_usd`` is the sum over all answers."""
    if name == GOLDEN or not table.totals.rows:
        return {}
    return {"stages_ms": stage_quantiles(table), "cost_usd": table.totals.cost_usd}
