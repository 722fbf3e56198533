"""Panels of judges: their agreement, and their worth beside the best judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np

from rag_harness.core.errors import DataError
from rag_harness.evaluation.judges.calibration.agreement import Calibration, read_calibrations
from rag_harness.evaluation.judges.calibration.corrections import ExperimentScores, PanelLabels, panel_labels
from rag_harness.records.manifest import judge_label
from rag_harness.records.scores import Author
from rag_harness.stats.agreement import accuracy, independent_votes, krippendorff_alpha, panel_values, spearman
from rag_harness.stats.inputs import Floats, UndefinedError
from rag_harness.tables.suite_table import PanelValues, SuiteTable

_WIDTH = 100


@dataclass(frozen=True, slots=True)
class PanelWorth:
    """What the judges of a panel are worth, by people's labels.

    Attributes:
        labels: answers that people have labelled and all judges have scored.
        statistic: ``accuracy`` at 0.5 where people gave verdicts, else ``spearman``.
        by_judge: the statistic of each judge, in the order of the panel; None where it is undefined.
        panel: the statistic of the panel's figure.
        best: the judge with the highest statistic. It is chosen on these labels, so it looks a little better than it
            is.
        rho: mean correlation of two judges' errors.
        n_eff: number of independent judges that the panel is worth.
        reason: why something is None.
    """

    labels: int
    statistic: str
    by_judge: Mapping[str, float | None]
    panel: float | None
    best: str
    rho: float | None
    n_eff: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PanelFinding:
    """A panel on one measure of one suite.

    Attributes:
        suite: the experiment.
        measure: what was judged.
        rule: how the panel decides.
        judges: its judges, in its order.
        cases: number of answers with something to measure.
        judged: number of them on which every judge has a value.
        silent: by judge, the number of them on which it has no value.
        alpha: Krippendorff's alpha of the judges; None where ``reason`` says why.
        level: nominal where all judges give verdicts of 0 or 1, else interval.
        reason: why ``alpha`` is missing.
        worth: by people's labels; None where the judges' calibrations have none in common.
        unworthy: why ``worth`` is missing.
    """

    suite: str
    measure: str
    rule: str
    judges: Sequence[str]
    cases: int
    judged: int
    silent: Mapping[str, int]
    alpha: float | None
    level: str
    reason: str
    worth: PanelWorth | None
    unworthy: str

    def as_json(self) -> dict[str, Any]:
        """Return the fields for ``summary.json``."""
        return asdict(self)


def panel_findings(tables: Mapping[str, SuiteTable], judges: Path) -> list[PanelFinding]:
    """Return a finding for each suite and measure that a panel has judged. ``judges`` is the folder of calibrations."""
    if not any(table.panels for table in tables.values()):
        return []
    try:
        calibrations, broken = read_calibrations(judges), ""
    except DataError as error:
        calibrations, broken = [], str(error)
    return [
        _finding(suite, measure, table, calibrations, broken)
        for suite, table in sorted(tables.items())
        for measure in table.panels
    ]


def _finding(
    suite: str, measure: str, table: SuiteTable, calibrations: Sequence[Calibration], broken: str
) -> PanelFinding:
    found = table.panels[measure]
    names = [judge_label(judge, model) for judge, model, _ in found.authors]
    asked = found.values[:, found.asked]
    alpha, level, reason = _agreement(asked)
    worth, why = _worth(suite, measure, table, found, calibrations) if not broken else (None, broken)
    silent = np.isnan(asked).sum(axis=1).tolist()
    return PanelFinding(
        suite=suite,
        measure=measure,
        rule=found.rule,
        judges=names,
        cases=asked.shape[1],
        judged=int((~np.isnan(asked).any(axis=0)).sum()),
        silent={name: count for name, count in zip(names, silent, strict=True) if count},
        alpha=alpha,
        level=level,
        reason=reason,
        worth=worth,
        unworthy=why,
    )


def _agreement(values: Floats) -> tuple[float | None, str, str]:
    items = [[value for value in case if not np.isnan(value)] for case in values.T.tolist()]
    said = {value for item in items for value in item}
    level = "nominal" if said <= {0.0, 1.0} else "interval"
    try:
        return krippendorff_alpha(items, "nominal" if level == "nominal" else "interval"), level, ""
    except UndefinedError as why:
        return None, level, str(why)


def _worth(
    suite: str, measure: str, table: SuiteTable, found: PanelValues, calibrations: Sequence[Calibration]
) -> tuple[PanelWorth | None, str]:
    version = table.columns[measure].measure.version
    each = [
        ExperimentScores(suite, measure, version, Author(*author), _by_query(table.ids, values), {})
        for author, values in zip(found.authors, found.values, strict=True)
    ]
    try:
        return worth_of(found.rule, each, panel_labels(each, calibrations)), ""
    except DataError as why:
        return None, str(why)


def _by_query(ids: Sequence[str], values: Floats) -> dict[str, float]:
    return {ids[place]: float(values[place]) for place in np.flatnonzero(~np.isnan(values)).tolist()}


def worth_of(rule: str, each: Sequence[ExperimentScores], labels: PanelLabels) -> PanelWorth:
    """Return what the judges are worth on these labels."""
    names = [judge_label(scores.author.judge, scores.author.model) for scores in each]
    human, scores = np.array(labels.human), np.array(labels.scores).T
    verdicts = set(labels.human) <= {0.0, 1.0}
    said = {name: _against(human, own, verdicts) for name, own in zip(names, scores, strict=True)}
    valued = {name: value for name, value in said.items() if value is not None}
    reason = ""
    rho = n_eff = None
    try:
        rho, n_eff = independent_votes(scores - human)
    except UndefinedError as why:
        reason = str(why)
    return PanelWorth(
        labels=len(human),
        statistic="accuracy" if verdicts else "spearman",
        by_judge=said,
        panel=_against(human, panel_values(rule, scores), verdicts),
        best=max(valued, key=valued.__getitem__) if valued else "",
        rho=rho,
        n_eff=n_eff,
        reason=reason,
    )


def _against(human: Floats, scores: Floats, verdicts: bool) -> float | None:
    try:
        return accuracy(human, (scores >= 0.5).astype(float)) if verdicts else spearman(human, scores)
    except UndefinedError:
        return None


def panel_lines(findings: Sequence[PanelFinding]) -> list[str]:
    """Return the findings for the terminal, at most 100 columns wide."""
    return [line for found in findings for said in _said(found) for line in wrap(said, _WIDTH, subsequent_indent="  ")]


def _said(found: PanelFinding) -> list[str]:
    silent = "".join(f"; {name} is silent on {count}" for name, count in found.silent.items())
    alpha = f"α {found.alpha:.2f}" if found.alpha is not None else f"α not defined: {found.reason}"
    head = f"{found.suite} {found.measure}: {found.judged} of {found.cases} answers by all {len(found.judges)} judges"
    return [f"{head}{silent}; judges among each other: {alpha}", f"  {worth_said(found)}"]


def worth_said(found: PanelFinding) -> str:
    """Say what the judges are worth by people's labels, or why that is not known."""
    worth = found.worth
    if worth is None:
        return f"what they are worth is not known: {found.unworthy}"
    if worth.n_eff is None or worth.rho is None:
        votes = f"independent votes not defined: {worth.reason}"
    else:
        votes = f"{len(found.judges)} judges are {worth.n_eff:.1f} independent votes (ρ of errors {worth.rho:.2f})"
    beside = f"{worth.statistic} of the panel {_number(worth.panel)}, "
    best = "of no judge"
    if worth.best:
        best = f"of the best judge, {worth.best}, {_number(worth.by_judge[worth.best])}"
    return f"on {worth.labels} labels: {votes}; {beside}{best}"


def _number(value: float | None) -> str:
    return "not defined" if value is None else f"{value:.2f}"
