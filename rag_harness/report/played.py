"""What became of conversations that simulated users play: how they ended, at their goal or not, and what users cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from rag_harness.report.suite_table import CaseState, SuiteTable
from rag_harness.report.wording import counted
from rag_harness.results.manifest import RunManifest, SuiteRecord
from rag_harness.results.repeat_names import user_fingerprint, user_name
from rag_harness.results.result_paths import result_path
from rag_harness.results.row import ExperimentResult, rows_in
from rag_harness.users.simulated_user import SCRIPT

AT_LIMIT, UNFINISHED = "the most turns were asked", "not finished"
_MOST_NAMED = 3


@dataclass
class Spent:
    """What the model of the users has used."""

    calls: int = 0
    tokens: int = 0
    usd: float | None = 0.0

    def add(self, row: ExperimentResult) -> None:
        """Add a row of what a user said."""
        self.calls += row.usage.calls
        self.tokens += row.usage.prompt_tokens + row.usage.completion_tokens
        self.usd = None if self.usd is None or row.cost_usd is None else self.usd + row.cost_usd


@dataclass
class Played:
    """The conversations of one experiment that simulated users play.

    Attributes:
        by: who played the users.
        turns: number of turns of each conversation that has any.
        reached: conversations whose goal was reached, and those that have one.
        endings: how many conversations ended so.
        taken_out: why a conversation was taken out, by its id.
        spent: what the model of the users has used; None where a script plays.
    """

    by: str
    turns: Mapping[str, int]
    reached: tuple[int, int] = (0, 0)
    endings: Counter[str] = field(default_factory=Counter)
    taken_out: Mapping[str, str] = field(default_factory=dict)
    spent: Spent | None = None

    def lines(self, name: str) -> Iterator[str]:
        """Yield what to know of them, a sentence each."""
        longest, mean = max(self.turns.values(), default=0), fmean(self.turns.values() or [0])
        reached, having = self.reached
        goal = f"{reached} of {having} reached the goal; " if having else ""
        ends = ", ".join(f"{n} × {why}" for why, n in self.endings.most_common())
        talks = counted(len(self.turns), "conversation")
        yield f"{name}: {talks} with a simulated user ({self.by}): {goal}{mean:.1f} turns, {longest} at most; {ends}"
        if self.taken_out:
            named = [f"{talk} {why}" for talk, why in [*self.taken_out.items()][:_MOST_NAMED]]
            more = f"; and {len(self.taken_out) - _MOST_NAMED} more" if len(self.taken_out) > _MOST_NAMED else ""
            yield f"taken out of {name}: {len(self.taken_out)} of {talks}: {'; '.join(named)}{more}"
        if self.spent is not None:
            usd = f", {self.spent.usd:.4f} USD" if self.spent.usd is not None else ""
            yield (
                f"the simulated user of {name} took {counted(self.spent.calls, 'call')} and {self.spent.tokens:,} "
                f"tokens{usd}, counted in no figure of {name}"
            )

    def as_json(self) -> dict[str, Any]:
        """Return them for ``summary.json``."""
        spent = self.spent
        return {
            "user": self.by,
            "conversations": len(self.turns),
            "turns": sum(self.turns.values()),
            "goal_reached": self.reached[0],
            "with_goal": self.reached[1],
            "endings": dict(self.endings),
            "taken_out": dict(self.taken_out),
            "spent": None if spent is None else {"calls": spent.calls, "tokens": spent.tokens, "usd": spent.usd},
        }


def played_of(output: Path, manifest: RunManifest, tables: Mapping[str, SuiteTable]) -> dict[str, Played]:
    """Return the conversations of each experiment of a run that simulated users play."""
    return {
        name: _played(output, name, record, tables[name])
        for name, record in manifest.suites.items()
        if record.history == "played" and name in tables
    }


def _played(output: Path, name: str, record: SuiteRecord, table: SuiteTable) -> Played:
    turns, most = Counter[str](), Counter[str]()
    for position, labels in enumerate(table.labels):
        talk = labels.get("conversation", "")
        most[talk] += 1
        if table.states[position] in (CaseState.OK, CaseState.ERROR):
            turns[talk] += 1
    ended = {case_id.partition("#")[0]: why.partition(": ")[2] for case_id, why in record.ended.items()}
    ended = {**{talk: AT_LIMIT for talk in turns if turns[talk] == most[talk]}, **ended}
    # What a reason quotes differs from one conversation to the next.
    endings = Counter(ended.get(talk, UNFINISHED).partition(":")[0] for talk in turns)
    goals = table.values("goal_reached", {}) if "goal_reached" in table.columns else {}
    reached = sum(value >= 1 for value in goals.values()), len(goals)
    is_model = bool(record.user) and record.user != SCRIPT
    spent = _spent(output, name, record) if is_model else None
    return Played(record.user, turns, reached, endings, record.taken_out, spent)


def _spent(output: Path, name: str, record: SuiteRecord) -> Spent:
    spent, fingerprints = Spent(), {user_fingerprint(each) for each in record.fingerprints}
    for row in rows_in(result_path(output, user_name(name))):
        if row.fingerprint in fingerprints:
            spent.add(row)
    return spent
