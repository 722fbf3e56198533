"""Judged scores and causes of failed trials, one line each in files beside the rows."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from math import isfinite
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError

from rag_harness.core.errors import DataError
from rag_harness.core.files import write_atomically
from rag_harness.core.types import TrialId
from rag_harness.records.manifest import RunManifest
from rag_harness.records.row import (
    ExperimentResult,
    Metadata,
    StorableText,
    first_problem,
    numbered_lines,
    read_json,
    storable,
)

# A line says what was judged and by whom. ``row`` is a digest of the row's judged fields, ``gold`` a digest of the
# other texts. As with rows, keys are only ever added. Readers ignore keys that they do not know.

SCORES = "scores"
"""Folder beside the result files."""
CHECKED = "metamorphic"
"""Folder of the scores of metamorphic checks. Each run with checks writes it again."""
BEGIN = b'{"measure":'
"""Beginning of a score's line. A journal holds rows too."""


@dataclass(frozen=True, slots=True)
class Author:
    """The judge of a score: its kind, its model, and the digest of its prompts or coefficients."""

    judge: str
    model: str
    revision: str


@dataclass(frozen=True, slots=True)
class ScoreLine:
    """One score. ``value`` is None where there is none; ``undefined`` says that there was nothing to measure.

    ``repeat`` numbers the repeats of the judgement, which show whether the judge agrees with itself. Repeat 0 is the
    score.
    """

    measure: str
    version: int
    experiment: str
    query_id: str
    row: str
    gold: str
    author: Author
    value: float | None
    reason: str = ""
    undefined: bool = False
    detail: Mapping[str, Any] = field(default_factory=dict)
    repeat: int = 0

    @property
    def trial(self) -> TrialId:
        """The trial whose row was judged."""
        return TrialId(self.experiment, self.query_id)

    @property
    def is_final(self) -> bool:
        """Whether the row need not be judged again. A judge that failed may succeed the next time."""
        return self.value is not None or self.undefined

    @property
    def key(self) -> tuple[str, ...]:
        """The key of the score. Of two lines with the same key, the later one counts."""
        who = self.author
        what = (self.query_id, self.measure, str(self.version), self.row)
        return *what, who.judge, who.model, who.revision, str(self.repeat)

    def line(self) -> bytes:
        """Return the score as one line of JSON, newline included."""
        content = {
            "measure": self.measure,
            "version": self.version,
            "experiment": self.experiment,
            "query_id": self.query_id,
            "row": self.row,
            "gold": self.gold,
            "judge": self.author.judge,
            "model": self.author.model,
            "revision": self.author.revision,
            "value": self.value,
            "reason": self.reason,
            "undefined": self.undefined,
            "detail": dict(self.detail),
            **({"repeat": self.repeat} if self.repeat else {}),
        }
        return _encode(content) + b"\n"


def _encode(content: Mapping[str, Any]) -> bytes:
    try:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode()
    except (TypeError, ValueError):  # the judge's ``detail`` may contain values that JSON does not have
        return json.dumps(storable(content), ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def parse_score(line: bytes | str) -> ScoreLine | None:
    """Read one line; None where it is not a score."""
    try:
        said = read_json(line)
        who = (said["judge"], said["model"], said["revision"])
        named = (said["measure"], said["experiment"], said["query_id"], said["row"], said.get("gold", ""))
        reason, value = said.get("reason", ""), said["value"]
        _check_texts(*who, *named, reason)
        measure, experiment, query_id, row, gold = named
        return ScoreLine(
            measure=measure,
            version=int(said["version"]),
            experiment=experiment,
            query_id=query_id,
            row=row,
            gold=gold,
            author=Author(*who),
            value=None if value is None else _finite(value),
            reason=reason,
            undefined=bool(said.get("undefined")),
            detail=dict((said.get("detail") or {}).items()),
            repeat=int(said.get("repeat") or 0),
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return None


def _check_texts(*texts: Any) -> None:
    for text in texts:
        if type(text) is not str:
            raise TypeError(f"{text!r:.40} is not text")


def _finite(said: Any) -> float:
    value = float(said)
    if not isfinite(value):
        raise ValueError(f"{value} is not a score")
    return value


def read_scores(file: Path) -> Iterator[ScoreLine]:
    """Yield the scores of a file, in its order. Lines that are not scores, as a kill leaves them, are skipped."""
    for _, line, _ in numbered_lines(file):
        found = parse_score(line)
        if found is not None:
            yield found


def row_digest(row: ExperimentResult) -> str:
    """Return the digest of a row's judged fields: question, chunks of the prompt, answer, ground truth.

    For a turn of a conversation, the messages before it are one of them.
    """
    chunks = [chunk.text for chunk in row.retrieved_chunks]
    said = [text for each in row.asked.history for text in (each.role, each.content)]
    abstained = "abstained" if row.abstained else ""
    before = ["said before", str(len(chunks)), *said] if said else []
    return text_digest([row.query, row.llm_answer, abstained, row.ground_truth, *chunks, *before])


def outcome_digest(row: ExperimentResult, ranked: Sequence[str]) -> int:
    """Return a number that differs where rows of one case can differ in a score.

    That is by hits, steps, sources, answer or error; times and costs are left out. ``ranked`` are the names that
    ranking measures look up.
    """
    said = json.dumps([row.ok, row.abstained, row.citations, row.invalid_citations, row.confidence, row.llm_answer])
    read = [f"{hit.chunk_id} {hit.rerank_score}" for hit in row.candidates]
    texts = [said, *ranked, "", *read, "", *(chunk.chunk_id for chunk in row.retrieved_chunks), *_did(row)]
    return int.from_bytes(bytes.fromhex(text_digest(texts))[:8], "big", signed=True)


def _did(row: ExperimentResult) -> list[str]:
    """Return the content of an agent's steps; empty for a row whose steps have only names and times."""
    if not any(stage.kind or stage.hits or stage.input is not None for stage in row.stages):
        return []
    found = ([stage.name, stage.does, stage.input, [hit.chunk_id for hit in stage.hits]] for stage in row.stages)
    return ["", *(json.dumps(each, default=str) for each in found)]


def text_digest(texts: Sequence[str]) -> str:
    """Return the digest of texts in their order."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    whole = b"".join([part for each in encoded for part in (len(each).to_bytes(8, "big"), each)])
    return blake2b(whole, digest_size=12).hexdigest()


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
            raise DataError(f"{file}:{number}: {first_problem(error)}. Write it again: rag-harness explain.") from error
    return found


def with_reviews(new: Iterable[CauseLine], old: Iterable[CauseLine]) -> list[CauseLine]:
    """Return ``new`` with people's reviews of the same rows."""
    said = {(line.trial, line.fingerprint): line for line in old if line.reviewed_cause}
    return [_reviewed(line, said.get((line.trial, line.fingerprint))) for line in new]


def _reviewed(line: CauseLine, old: CauseLine | None) -> CauseLine:
    if old is None:
        return line
    return line.model_copy(update={"reviewed_cause": old.reviewed_cause, "reviewed_by": old.reviewed_by})
