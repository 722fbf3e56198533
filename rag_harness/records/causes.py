"""Causes of failed trials, one line a trial in ``causes.jsonl``."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError

from rag_harness.core.errors import DataError
from rag_harness.core.files import write_atomically
from rag_harness.core.types import TrialId
from rag_harness.records.json_safe import Metadata, StorableText
from rag_harness.records.manifest import RunManifest
from rag_harness.records.row import first_problem, numbered_lines

# As with rows, keys are only ever added. Readers ignore keys that they do not know.

CAUSES = "causes.jsonl"


class CauseLine(BaseModel):
    """Why one trial failed.

    Attributes:
        experiment: name of what answered.
        query_id: id of the case.
        query: the question.
        category: category of the answer by its scores; empty where it has none that is a failure.
        hri: hallucination risk from 0 to 1 where the pipeline states one; else null.
        cause: the top level.
        detail: the finer one; empty where there is none.
        repaired_by: the intervention that made the answer right; empty where none did, or none was tried.
        evidence: the evidence for the cause, as text for people.
        remedy: what to do, in one line.
        observational: whether the cause comes from rows and gold alone, and nothing was run again; ``limits`` says why.
        answers: result of each intervention, by its name: answer, rightness, or why it was not run.
        limits: the checks that were not possible, and why; empty where all were.
        fingerprint: fingerprint of the failed row.
        reviewed_cause: the cause that a person gave; empty where nobody has reviewed it.
        reviewed_by: name of that person; empty where none was given.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="ignore")

    experiment: StorableText
    query_id: StorableText
    query: StorableText = ""
    category: StorableText = ""
    hri: float | None = None
    cause: StorableText
    detail: StorableText = ""
    repaired_by: StorableText = ""
    evidence: StorableText = ""
    remedy: StorableText = ""
    observational: bool = False
    limits: StorableText = ""
    answers: Metadata = {}
    fingerprint: StorableText = ""
    reviewed_cause: StorableText = ""
    reviewed_by: StorableText = ""

    @property
    def trial(self) -> TrialId:
        """The trial that failed."""
        return TrialId(self.experiment, self.query_id)


def write_causes(output: Path, lines: Iterable[CauseLine]) -> None:
    """Write the file atomically: a reader sees the old file or the whole new one."""
    write_atomically(output / CAUSES, (f"{line.model_dump_json()}\n".encode() for line in lines))


def leave_causes(
    output: Path, manifest: RunManifest, explained: Collection[str], lines: Iterable[CauseLine]
) -> list[CauseLine]:
    """Write the causes of the experiments ``explained``, and return them, with people's reviews of the same rows.

    Lines about other experiments of the folder stay in the file.

    Raises:
        DataError: a line of the file is not a cause.
    """
    before = read_causes(output)
    lines = with_reviews(lines, before)

    def is_of_another(line: CauseLine) -> bool:
        known = manifest.suites.get(line.experiment)
        return known is not None and line.experiment not in explained and line.fingerprint in known.fingerprints

    write_causes(output, [*filter(is_of_another, before), *lines])
    return lines


def read_causes(output: Path) -> list[CauseLine]:
    """Read the file; return no causes where the file does not exist.

    Raises:
        DataError: a line is not a cause. The message has file and line.
    """
    found, file = [], output / CAUSES
    for number, line, _ in numbered_lines(file):
        try:
            found.append(CauseLine.model_validate_json(line))
        except ValidationError as error:
            raise DataError(f"{file}:{number}: {first_problem(error)}. Write it anew: rag-harness explain.") from error
    return found


def with_reviews(new: Iterable[CauseLine], old: Iterable[CauseLine]) -> list[CauseLine]:
    """Return ``new`` with people's reviews of the same rows."""
    said = {(line.trial, line.fingerprint): line for line in old if line.reviewed_cause}
    return [_reviewed(line, said.get((line.trial, line.fingerprint))) for line in new]


def _reviewed(line: CauseLine, old: CauseLine | None) -> CauseLine:
    if old is None:
        return line
    return line.model_copy(update={"reviewed_cause": old.reviewed_cause, "reviewed_by": old.reviewed_by})
