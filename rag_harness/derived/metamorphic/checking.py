"""Scores the metamorphic checks of a run: a sample of its answers is asked again with one thing changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import islice
from pathlib import Path

from rag_harness.derived.attribution.bench import Bench, KnownExperiment
from rag_harness.derived.attribution.failing import rows_of
from rag_harness.derived.attribution.interventions import TWICE
from rag_harness.derived.attribution.turns import as_asked
from rag_harness.derived.derived_runs import DerivedRuns, DerivedTrial
from rag_harness.derived.metamorphic.metamorphic_checks import PARAPHRASE, Check, Original, Paraphrase, broken, check_of
from rag_harness.derived.metamorphic.question_changes import Changed
from rag_harness.derived.metamorphic.relations import compared_answer, difference
from rag_harness.files.atomic import write_atomically
from rag_harness.measures.metamorphic import CHECKER
from rag_harness.results.cases import CaseFile
from rag_harness.results.manifest import RunManifest, SuiteRecord, awaited
from rag_harness.results.row import ExperimentResult
from rag_harness.results.score import CHECKED, Author, ScoreLine, row_digest

REVISION = "1"
"""Raise this when the same two answers get another score, or when something else is changed."""
AUTHOR = Author(CHECKER, "", REVISION)
_AT_ONCE = 64
"""Trials whose rows are in memory together."""


@dataclass(frozen=True, slots=True)
class CaseSampling:
    """The cases that are checked: ``most`` of each experiment, 0 for all. All experiments and runs share one sample."""

    most: int
    seed: int

    def of(self, case_ids: Sequence[str]) -> list[str]:
        """Return the cases of the sample."""
        drawn = sorted(case_ids, key=lambda case_id: blake2b(f"{self.seed} {case_id}".encode()).digest())
        return drawn[: self.most or None]


class Checker:
    """Checks the run in ``output``.

    Args:
        output: folder of the result files.
        manifest: manifest of the run.
        bench: finds the experiments.
        runs: runs derived trials; None where none may run, and ``why_not`` then says why.
        sampling: chooses the cases.
        paraphrase: rephrases a question; None where no model does.
    """

    def __init__(
        self,
        output: Path,
        manifest: RunManifest,
        bench: Bench,
        runs: DerivedRuns | None,
        sampling: CaseSampling,
        paraphrase: Paraphrase | None = None,
        why_not: str = "",
    ) -> None:
        self._output, self._manifest, self._bench, self._runs = output, manifest, bench, runs
        self._sampling, self._paraphrase, self._why_not = sampling, paraphrase, why_not

    def check(self, experiment: str, measures: Sequence[str]) -> list[ScoreLine]:
        """Check the answers of one experiment, and write its file of scores."""
        record = self._manifest.suites[experiment]
        subject = self._bench.subject(experiment, record.fingerprints)
        found = [line for batch in self._batches(experiment, subject) for line in self._scores(batch, measures)]
        write_atomically(self._output / CHECKED / record.file, (line.line() for line in found))
        return found

    def _batches(self, experiment: str, subject: KnownExperiment) -> Iterator[list[Original]]:
        sampled = frozenset(self._sampling.of(_came(self._output, self._manifest.suites[experiment])))
        found = rows_of(self._output, self._manifest, experiment, lambda row: row.query_id in sampled)
        rows = (Original(as_asked(case, row), row, subject) for case, row in found)
        while batch := list(islice(rows, _AT_ONCE)):
            yield batch

    def _scores(self, batch: Sequence[Original], measures: Sequence[str]) -> Iterator[ScoreLine]:
        seed = self._sampling.seed
        words = self._words(batch) if PARAPHRASE in measures else None
        checks = [(each, check_of(measure, each, seed, words)) for each in batch for measure in measures]
        came = self._run([check.ask for _, check in checks if check.ask is not None])
        lines = [self._scored(original, check, came) for original, check in checks]
        waver = self._wavering([original for (original, _), line in zip(checks, lines, strict=True) if line.value == 0])
        return (_noted(line, waver.get(line.query_id, "")) for line in lines)

    def _words(self, batch: Sequence[Original]) -> Mapping[str, Changed] | None:
        return self._paraphrase([each.row.query for each in batch]) if self._paraphrase is not None else None

    def _run(self, asks: Sequence[DerivedTrial]) -> Mapping[DerivedTrial, ExperimentResult | str]:
        return self._runs.run(asks) if self._runs is not None else dict.fromkeys(asks, self._why_not)

    def _scored(
        self, original: Original, check: Check, came: Mapping[DerivedTrial, ExperimentResult | str]
    ) -> ScoreLine:
        row = came[check.ask] if check.ask is not None else check.why_not
        if isinstance(row, str):
            return _line(original, check, None, row, {})
        why = broken(check.measure, original, self._sampling.seed, compared_answer(original.row), compared_answer(row))
        return _line(original, check, float(not why), why, {"answer": row.llm_answer})

    def _wavering(self, originals: Sequence[Original]) -> dict[str, str]:
        """Return the trials whose answer to the same, unchanged question differs, and how."""
        asks = {_again(each): each for each in {each.row.query_id: each for each in originals}.values()}
        found = {}
        for ask, row in self._run(list(asks)).items():
            if not isinstance(row, str) and not row.repeats_itself:
                found[ask.case.query.query_id] = difference(
                    row.query, compared_answer(asks[ask].row), compared_answer(row)
                )
        return found


def _came(output: Path, record: SuiteRecord) -> list[str]:
    """Return the cases with a row in this run, also with an error."""
    cases = CaseFile(output, record.cases)
    try:
        return list(filter(awaited(record), cases.ids))
    finally:
        cases.close()


def _again(original: Original) -> DerivedTrial:
    assert original.subject.experiment is not None
    return DerivedTrial(original.subject.experiment, TWICE[0], original.case, original.row)


def _line(original: Original, check: Check, value: float | None, reason: str, came: Mapping[str, str]) -> ScoreLine:
    row = original.row
    return ScoreLine(
        measure=check.measure,
        version=1,
        experiment=row.experiment,
        query_id=row.query_id,
        row=row_digest(row),
        gold="",
        author=AUTHOR,
        value=value,
        reason=reason,
        undefined=check.undefined and value is None,
        detail={"query": row.query, "changed": check.changed, "before": row.llm_answer, **came},
    )


def _noted(line: ScoreLine, waver: str) -> ScoreLine:
    """Add to a broken relation that the answer also changes without any change of the question: it may be noise."""
    if line.value != 0 or not waver:
        return line
    return replace(line, detail={**line.detail, "wavers": waver})
