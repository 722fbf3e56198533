"""The search for the cause of each failed trial of a run.

Failures, gold, interventions, and diagnosis.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

from rag_harness.core.concurrency import Lazy
from rag_harness.core.errors import DataError
from rag_harness.core.text.refusals import declines
from rag_harness.core.types import GOLDEN, SERVICE, Case, TrialId
from rag_harness.diagnosis.broken_expectations import broken_facts, broken_in, wants_refusal
from rag_harness.diagnosis.failures import (
    CauseProgress,
    FailedCase,
    failed_gates,
    first_cases,
    first_rows,
    remedy_of,
    rows_of,
    suspect,
    suspects,
    tables_of,
)
from rag_harness.diagnosis.gold import GoldIndex, gold_facts, may_contradict
from rag_harness.diagnosis.interventions import (
    NOT_GIVEN,
    STANDALONE,
    TWICE,
    agent_facts,
    altered,
    as_asked,
    changed_searches,
    changed_turns,
    standalone_of,
    was_given,
)
from rag_harness.diagnosis.reruns import DerivedRuns, DerivedTrial, KnownExperiment, RerunSupport, asks_of
from rag_harness.diagnosis.rules import Diagnosis, FailureFacts, RerunResult, diagnose
from rag_harness.diagnosis.symptoms import AcrossTrials, WordSearch, other_language, trial_signs
from rag_harness.diagnosis.truncation import CutOff, EndingHabits, cut_off, habits_of
from rag_harness.evaluation.measures.correctness import Rightness, rightness
from rag_harness.pipelines.trace import GivenSearches
from rag_harness.records.manifest import RunManifest, read_manifest
from rag_harness.records.row import ExperimentResult
from rag_harness.records.scores import CauseLine, leave_causes, read_causes, with_reviews
from rag_harness.tables.answer_warnings import error_lines
from rag_harness.tables.brief import wrong_answers
from rag_harness.tables.standings import ANSWERS, RETRIEVAL
from rag_harness.tables.suite_table import SuiteTable
from rag_harness.tables.wording import counted

_AT_ONCE = 64
"""Failed trials whose rows are in memory together."""
ROWS_ONLY = "nothing was run again"
REPLAYED = "its answer is replayed or computed: asking again gives the same"


_TELLING = (*RETRIEVAL, "mrr@10", "citation_recall", *ANSWERS)


@dataclass
class _Failed:
    """A failed trial, with what is known so far."""

    suspect: FailedCase
    case: Case
    row: ExperimentResult
    facts: FailureFacts
    subject: KnownExperiment
    turns: Mapping[str, Case] = field(default_factory=dict)
    searches: Mapping[str, GivenSearches] = field(default_factory=dict)
    tried: dict[str, RerunResult] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _KnownRun:
    """What is known of all trials of an experiment."""

    subject: KnownExperiment
    table: SuiteTable
    habits: Lazy[EndingHabits]
    gold_index: Lazy[GoldIndex]
    across: AcrossTrials


class Explainer:
    """Explains the failures of the run in ``output``.

    Args:
        output: folder of the result files.
        support: finds the experiments.
        runs: runs derived trials; None where only rows and gold are used.
        worst: number of trials of each experiment to look at, the worst; None for all that may have failed.
        tables: tables of the run, where they are already read.
        why_not: why there are no ``runs``.

    Raises:
        DataError: ``run.json`` is missing or damaged.
    """

    def __init__(
        self,
        output: Path,
        support: RerunSupport,
        runs: DerivedRuns | None = None,
        worst: int | None = None,
        tables: Mapping[str, SuiteTable] | None = None,
        why_not: str = ROWS_ONLY,
    ) -> None:
        self._output, self._support, self._runs, self._worst = output, support, runs, worst
        self._why_not = "" if runs is not None else why_not
        self._manifest: RunManifest = read_manifest(output)
        self._tables = tables if tables is not None else tables_of(output, self._manifest)
        self._progress = CauseProgress(0)
        self.unsure: set[str] = set()
        """The experiments of which something may come out otherwise the next time."""

    def every(self, known: Mapping[str, Sequence[CauseLine]] | None = None) -> list[CauseLine]:
        """Explain all failures, experiment by experiment, the worst first, and write ``causes.jsonl``.

        Lines about experiments of earlier runs that have no table stay in the file. ``known`` are experiments whose
        causes are known.
        """
        known = known or {}
        names = [name for name in self._tables if name != GOLDEN]
        self._progress = CauseProgress(sum(len(self._suspects(name)) for name in names if name not in known))
        lines = [line for name in names for line in (known[name] if name in known else self._of(name, None))]
        self._progress.end()
        return leave_causes(self._output, self._manifest, self._tables, lines)

    @property
    def answers(self) -> dict[str, int]:
        """The number of answers of each experiment, failed or not."""
        return {name: table.totals.answered for name, table in self._tables.items()}

    @property
    def wrong_by_experiment(self) -> dict[str, set[str]]:
        """The wrong answers of each experiment, as the run in brief counts them."""
        return {name: wrong_answers(table) for name, table in self._tables.items()}

    @property
    def errors(self) -> list[str]:
        """The errors that trials ended in, a line for each that differs; no answer of theirs can be explained."""
        lines, more = error_lines(table for name, table in self._tables.items() if name != GOLDEN)
        return [*lines, *([f"… and {counted(more, 'more error')}, in {self._output}/"] if more > 0 else [])]

    def one(self, trial: str) -> CauseLine | None:
        """Explain one trial by its id, as pytest shows it; None where it did not fail. ``causes.jsonl`` is not changed.

        Raises:
            DataError: the run has no such trial with an answer.
        """
        wanted = self._named(trial)
        found = next(iter(self._of(wanted.experiment, wanted.query_id)), None)
        return with_reviews([found], read_causes(self._output))[0] if found else None

    def figures(self, trial: str) -> str:
        """Return the values of a trial with an answer by the measures that tell most; empty where it has none.

        Raises:
            DataError: the run has no such trial with an answer.
        """
        wanted = self._named(trial)
        table = self._tables[wanted.experiment]
        values = {name: table.values(name, {}).get(wanted.query_id) for name in _TELLING if table.has(name)}
        return "  ".join(f"{name} {value:.3f}" for name, value in values.items() if value is not None)

    def _named(self, trial: str) -> TrialId:
        tables = {name: table for name, table in self._tables.items() if name != GOLDEN}
        known = {
            str(TrialId(name, case_id)): TrialId(name, case_id)
            for name, table in tables.items()
            for position, case_id in enumerate(table.ids)
            if table.state_of(position) == "ok"
        }
        if trial not in known:
            near = get_close_matches(trial, known, n=3)
            example = f"A trial is an experiment and a query: {next(iter(known), 'e3-q_direct_001')}."
            hint = f"Did you mean {', '.join(near)}?" if near else example
            raise DataError(f"The run of {self._output} has no trial {trial!r} with an answer. {hint}")
        return known[trial]

    def _of(self, name: str, only: str | None) -> list[CauseLine]:
        table = self._tables[name]
        every = self._suspects(name, None if only is None else len(table.ids))
        chosen = every if only is None else {only: every[only]}
        subject = self._support.subject(name, self._manifest.suites[name].fingerprints) if chosen else KnownExperiment()

        def is_looked_at(row: ExperimentResult) -> bool:
            # A ground truth against its own evidence makes no answer look bad, so all answers are searched for it.
            return row.query_id in chosen or (only is None and self._worst is None and _may_contradict(row))

        known = self._known(name, subject)
        rows = rows_of(self._output, self._manifest, name, is_looked_at)
        looked_at = (
            _failed(chosen.get(row.query_id) or suspect(table, row.query_id), case, row, known) for case, row in rows
        )
        meant = (each for each in looked_at if each.row.query_id in chosen or each.facts.gold.contradicted)
        if chosen and (subject.experiment is None or subject.view is None):
            self.unsure.add(name)
        found: list[CauseLine] = []
        for batch in _batches(filter(_did_fail, self._progress.counted(meant))):
            found += self._diagnosed(batch)
            self._progress.tell()
        order = {query_id: n for n, query_id in enumerate(chosen)}
        return sorted(found, key=lambda line: order.get(line.query_id, len(order)))

    def _suspects(self, name: str, worst: int | None = None) -> dict[str, FailedCase]:
        failed = failed_gates(self._output, name, int(self._manifest.settings.get("k") or 10))
        return suspects(self._tables[name], self._worst if worst is None else worst, failed)

    def _known(self, name: str, subject: KnownExperiment) -> _KnownRun:
        """Return what all trials of an experiment tell together; it is read on first use."""

        def rows() -> Iterator[ExperimentResult]:
            return first_rows(self._output, self._manifest, name)

        search = WordSearch(subject.view) if subject.view is not None else None
        return _KnownRun(
            subject,
            self._tables[name],
            Lazy(lambda: habits_of(rows())),
            Lazy(lambda: GoldIndex(first_cases(self._output, self._manifest, name))),
            AcrossTrials(rows, search),
        )

    def _diagnosed(self, batch: Sequence[_Failed]) -> Iterator[CauseLine]:
        if self._runs is not None:
            self._try(self._runs, batch)
        return (_line(failed, diagnose(failed.facts, failed.tried), self._why_not) for failed in batch)

    def _try(self, runs: DerivedRuns, batch: Sequence[_Failed]) -> None:
        """Run the interventions of each trial. The unchanged trial runs up to three times, until it ends otherwise."""
        first = {ask: failed for failed in batch for ask in _first(failed)}
        self._take(runs, first)
        for again in TWICE[1:]:
            left = [failed for failed in batch if _may_be_noise(failed)]
            self._take(runs, {_again(failed, again): failed for failed in left})

    def _take(self, runs: DerivedRuns, asked: Mapping[DerivedTrial, _Failed]) -> None:
        for ask, came_to in runs.run(list(asked)).items():
            if isinstance(came_to, str):
                self.unsure.add(ask.experiment.id)
            asked[ask].tried[ask.name] = _trialled(ask, came_to, asked[ask].facts)


def _failed(suspect: FailedCase, case: Case, row: ExperimentResult, known: _KnownRun) -> _Failed:
    subject = known.subject
    standalone = standalone_of(as_asked(case, row), subject.view)
    turns = changed_turns(case, row, standalone)
    case = as_asked(case, row)
    right = rightness(case, row.llm_answer, row.abstained)
    abstained = row.abstained or declines(row.llm_answer)
    broken = broken_facts(case, row, subject.view)
    gold = gold_facts(case, row, subject.view)
    agent = agent_facts(case, row, gold, subject.view)
    searches = {} if agent is None else changed_searches(agent, row, gold, subject.view)
    sources = [case.ground_truth, *(one.quote for one in case.evidence), *(c.text for c in row.retrieved_chunks)]
    facts = FailureFacts(
        query=row.query,
        answer=row.llm_answer,
        answerable=case.answerable,
        abstained=abstained,
        says_so=row.abstained,
        retrieves=bool(known.table.totals.retrieves),
        right=right,
        gold=gold,
        category=suspect.category,
        tells=_tells(row),
        cut_off=CutOff() if (right.right and not broken) or abstained else cut_off(row, sources, known.habits.get()),
        others_gold="" if right.right or abstained else known.gold_index.get().other(case, row.llm_answer, right),
        judged=suspect.judged,
        broken=broken,
        wants_refusal=wants_refusal(case),
        standalone=turns[STANDALONE].query.text if STANDALONE in turns else "",
        agent=agent,
        signs=trial_signs(case, row, gold, (right, abstained), known.across, known.gold_index),
    )
    return _Failed(suspect, case, row, facts, subject, turns, searches)


def _may_contradict(row: ExperimentResult) -> bool:
    return row.answerable and may_contradict(row.query, row.ground_truth, row.llm_answer)


def _tells(row: ExperimentResult) -> bool:
    """Return whether a pipeline reports what it did. A plain text does not, nor does a service without its contexts."""
    if row.retrieved_chunks or row.candidates or row.retrieval_time_ms is not None:
        return True
    return bool(row.stages) and not any(call.role == SERVICE for stage in row.stages for call in stage.calls)


def _did_fail(failed: _Failed) -> bool:
    """Return whether one of the worst trials has failed: not where its answer is right, or cannot be checked.

    Where the answer is right by evidence that contradicts the ground truth, the ground truth counts as failed.
    """
    return failed.facts.fails_by_gold or bool(failed.facts.broken)


def _first(failed: _Failed) -> list[DerivedTrial]:
    experiment, view = failed.subject.experiment, failed.subject.view
    if experiment is None or (failed.facts.right.right and not failed.facts.broken):
        return []
    if failed.facts.only_expected:
        return asks_of(experiment, failed.case, failed.row, {})
    # Where no document answers the query, another context could contain no evidence.
    hits = altered(failed.row, failed.facts.gold, view) if failed.facts.answerable else {}
    turns, searches = (failed.turns, failed.searches) if failed.facts.answerable else ({}, {})
    said = [DerivedTrial(experiment, name, changed, failed.row) for name, changed in turns.items()]
    said += [
        DerivedTrial(experiment, name, failed.case, failed.row, searches=given) for name, given in searches.items()
    ]
    return [*asks_of(experiment, failed.case, failed.row, hits), *said]


def _again(failed: _Failed, name: str) -> DerivedTrial:
    assert failed.subject.experiment is not None
    return DerivedTrial(failed.subject.experiment, name, failed.case, failed.row)


def _may_be_noise(failed: _Failed) -> bool:
    same = [failed.tried[name] for name in TWICE if name in failed.tried]
    return bool(same) and all(came_to.right is not None and not came_to.repaired for came_to in same)


def _trialled(ask: DerivedTrial, came_to: ExperimentResult | str, facts: FailureFacts) -> RerunResult:
    if isinstance(came_to, str):
        return RerunResult(why=came_to)
    if ask.searches is not None and not was_given(came_to):
        return RerunResult(came_to.llm_answer, why=NOT_GIVEN)
    if ask.hits is None and ask.searches is None and came_to.repeats_itself:
        return RerunResult(came_to.llm_answer, why=REPLAYED)
    return RerunResult(came_to.llm_answer, _judged(ask.case, came_to, facts))


def _judged(case: Case, came_to: ExperimentResult, facts: FailureFacts) -> Rightness:
    """Judge a new answer by all that the first failed by: gold, language, expectations."""
    right = rightness(case, came_to.llm_answer, came_to.abstained)
    if facts.only_expected or facts.right.right:
        keeps = not broken_in(case, came_to) and (right.value is None or right.right)
        right = Rightness(right.value, keeps)
    is_foreign = bool(facts.signs.language and other_language(case, came_to))
    return Rightness(right.value, right.right and not is_foreign)


def _line(failed: _Failed, found: Diagnosis, why_not: str) -> CauseLine:
    altering = {name: came_to for name, came_to in failed.tried.items() if name not in TWICE}
    observational = not any(came_to.right is not None for came_to in failed.tried.values())
    return CauseLine(
        experiment=failed.row.experiment,
        query_id=failed.row.query_id,
        query=failed.row.query,
        category=failed.suspect.category,
        hri=failed.suspect.hri,
        cause=found.cause,
        detail=found.detail,
        repaired_by=found.repaired_by,
        evidence=found.evidence,
        remedy=remedy_of(found.cause, found.detail, _ingredients(failed.subject)),
        observational=observational,
        limits=why_not or _limits(failed, altering),
        answers={name: _plain(came_to) for name, came_to in failed.tried.items()},
        fingerprint=failed.row.fingerprint,
    )


def _ingredients(subject: KnownExperiment) -> Collection[str]:
    return subject.experiment.ingredients if subject.experiment is not None else ()


def _limits(failed: _Failed, altering: Mapping[str, RerunResult]) -> str:
    if failed.subject.limits or (failed.facts.right.right and not failed.facts.broken):
        return failed.subject.limits
    return next((came_to.why for came_to in altering.values() if came_to.why), "")


def _plain(came_to: RerunResult) -> dict[str, object]:
    if came_to.right is None:
        return {"answer": came_to.answer, "why": came_to.why}
    return {"answer": came_to.answer, "right": came_to.right.right, "value": came_to.right.value}


def _batches(failed: Iterable[_Failed]) -> Iterator[list[_Failed]]:
    each = iter(failed)
    while batch := list(islice(each, _AT_ONCE)):
        yield batch
