"""Why answers of each experiment fall short, in counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag_harness.report.suite_table import SuiteTable
from rag_harness.results.causes import CauseLine


@dataclass(frozen=True, slots=True)
class Shortfall:
    """The answers of an experiment that fall short: those of a failed kind or below a failed gate, and the worst ten.

    Attributes:
        experiment: its name.
        n: number of answers that fall short, or, where ``is_sample``, of the worst that were looked into.
        answers: number of all its answers.
        is_sample: whether nothing tells which answers failed, so that only the worst were looked into.
        causes: number of answers by cause, the most frequent first.
        main: the most frequent pair of a cause and a finer cause, ``detail``; ``of_main`` answers have it.
        remedy: what helps against most of these.
        worst: id of the worst of these trials; ``query`` is its question, ``evidence`` shows its cause.
    """

    experiment: str
    n: int
    answers: int
    is_sample: bool
    causes: Mapping[str, int]
    main: str
    detail: str
    of_main: int
    remedy: str
    worst: str
    query: str
    evidence: str

    @property
    def share(self) -> float:
        """The share of the answers that fall short for the main cause."""
        return self.of_main / self.n


def shortfalls(tables: Mapping[str, SuiteTable], causes: Sequence[CauseLine]) -> dict[str, Shortfall]:
    """Return the shortfall of each experiment with causes, by its name."""
    found: dict[str, list[CauseLine]] = {name: [] for name in tables}
    for line in causes:
        if line.experiment in found:
            found[line.experiment].append(line)
    return {name: _shortfall(name, tables[name], lines) for name, lines in found.items() if lines}


def _shortfall(name: str, table: SuiteTable, lines: Sequence[CauseLine]) -> Shortfall:
    (main, detail), of_main = Counter((line.cause, line.detail) for line in lines).most_common(1)[0]
    mine = [line for line in lines if (line.cause, line.detail) == (main, detail)]
    worst, remedy = mine[0], Counter(line.remedy for line in mine).most_common(1)[0][0]
    return Shortfall(
        experiment=name,
        n=len(lines),
        answers=table.totals.answered,
        is_sample=not table.shares(),
        causes=dict(Counter(line.cause for line in lines).most_common()),
        main=main,
        detail=detail,
        of_main=of_main,
        remedy=remedy,
        worst=str(worst.trial),
        query=worst.query,
        evidence=worst.evidence,
    )
