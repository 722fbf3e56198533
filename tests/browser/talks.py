"""Output folders with conversations: of an experiment after reference replies, and of two after their own answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag_harness.core.types import Case, Expectation, Query
from rag_harness.records.manifest import QUERIES, read_manifest, write_manifest
from rag_harness.records.row import ExperimentResult
from rag_harness.records.scores import Author, CauseLine, ScoreLine, row_digest, write_causes
from rag_harness.runs.conversations import SHOWN
from tests.hostile import WHOLE
from tests.unit.rows import failed_row, make_chunk, make_row
from tests.unit.suite_tables import write_run

WHO = Author("embedded", "embedded/alignment", "1")
LAMP, RIGHT_TO_LEFT, HOSTILE, LONG = "lamp", "rtl", "bad", "long"
HEBREW = ("כמה זמן אפשר להחזיר מנורה?", "ומה לגבי Ridge 2, 45 €?", "והכיס הגדול?")
TURNED = "turned \u202eto the end of its element"
_LAMP = ("How long may I return a lamp?", "and if it is broken?", "who pays for the parcel?", "and to Norway?")
_SEARCHED = "who pays for the parcel? (lamp broken)"
FAILED = ("c2-own", "lamp#2")
"""A turn that has no answer."""
Questions = Mapping[str, Sequence[str]]
"""The questions of each conversation."""


@dataclass
class Talks:
    """A run over conversations. ``c1`` is asked after reference replies.

    ``worse`` answers the turns of these ids otherwise, and badly.
    """

    experiments: Sequence[str] = ("c1", "c1-own", "c2-own")
    questions: Questions = field(default_factory=lambda: {LAMP: _LAMP, RIGHT_TO_LEFT: HEBREW})
    worse: Sequence[str] = ()
    digest: str = "talks"

    def write(self, output: Path) -> Path:
        """Write the folder."""
        output.mkdir(parents=True, exist_ok=True)
        cases = [case for name, asked in self.questions.items() for case in _cases(name, asked)]
        rows = [row for experiment in self.experiments for row in self._rows(experiment, cases)]
        write_run(output, rows, cases, scores=[_score(row, self.worse) for row in rows if row.ok])
        manifest = read_manifest(output)
        suites = {
            name: record.model_copy(update={"history": "own" if name.endswith("-own") else "gold"})
            for name, record in manifest.suites.items()
        }
        write_manifest(output, manifest.model_copy(update={"suites": suites, "digests": {QUERIES: self.digest}}))
        write_causes(output, [_cause(row) for row in rows if row.query_id.endswith("#2")])
        return output

    def _rows(self, experiment: str, cases: Sequence[Case]) -> Iterator[ExperimentResult]:
        said: list[dict[str, Any]] = []
        for case in cases:
            place = case.query.place
            if place["turn"] == "1":
                said = []
            row = self._row(experiment, case, said)
            yield row
            reply: dict[str, Any] = {"role": "assistant", "content": row.llm_answer if row.ok else SHOWN}
            own = {**reply, **({} if row.ok else {"failed": True})}
            gold = {"role": "assistant", "content": case.ground_truth}
            said += [{"role": "user", "content": case.query.text}, own if experiment.endswith("-own") else gold]

    def _row(self, experiment: str, case: Case, said: Sequence[Any]) -> ExperimentResult:
        inputs = {**case.query.inputs, **({"history": [*said]} if said else {})}
        about: dict[str, Any] = {
            "experiment": experiment,
            "query_id": case.query.query_id,
            "query": case.query.text,
            "inputs": inputs,
            "ground_truth": case.ground_truth,
            "context_reference": ["returns.md"],
            "metadata": {},
            "fingerprint": f"print-{experiment}",
        }
        if (experiment, case.query.query_id) == FAILED:
            return failed_row(**about)
        chunks = [make_chunk("returns.md#chunk_0", text="Within 30 days of delivery.")]
        return make_row(**about, retrieved_chunks=chunks, **self._answer(experiment, case))

    def _answer(self, experiment: str, case: Case) -> dict[str, Any]:
        is_other = experiment == "c2-own" and case.query.place["turn"] != "1"
        text = _hostile(case) if case.query.place["conversation"] == HOSTILE else f"Reply to {case.query.query_id}."
        words = "Nobody knows." if case.query.query_id in self.worse else f"{'Other. ' * is_other}{text} [Source 1]"
        detail = {"asked": case.query.text, "searched": _SEARCHED, "by": "by rules"}
        stage = [{"name": "rewrite", "ms": 1.0, "detail": detail}] if case.query.query_id == "lamp#3" else []
        return {"llm_answer": words, "raw_output": words, "stages": [*stage, {"name": "generate", "ms": 2.0}]}


def hostile_talk() -> Questions:
    """Return a conversation whose questions, and with ``Talks`` its replies, are hostile texts, many in each."""
    parts = [WHOLE[start::6] for start in range(6)]
    return {HOSTILE: [TURNED, *("\n".join(part) for part in parts)]}


def long_talk(turns: int = 100) -> Questions:
    """Return a long conversation."""
    return {LONG: [f"Question {turn}, and what about it?" for turn in range(1, turns + 1)]}


def _cases(name: str, questions: Sequence[str]) -> Iterator[Case]:
    for turn, question in enumerate(questions, 1):
        query = Query(f"{name}#{turn}", question, {"conversation": name, "turn": turn})
        yield Case(
            query,
            "direct",
            f"Reference {turn}.",
            {"returns.md": 1},
            expect=(Expectation("contains", f"{name}#{turn}"),),
        )


def _hostile(case: Case) -> str:
    return f"{case.query.text}\n{TURNED}"


def _score(row: ExperimentResult, worse: Sequence[str]) -> ScoreLine:
    who = ("faithfulness", 1, row.experiment, row.query_id, row_digest(row), "", WHO)
    turn = int(row.query_id.rpartition("#")[2])
    return ScoreLine(*who, 0.0 if row.query_id in worse else max(0.1, round(0.95 - 0.1 * turn, 3)))


def _cause(row: ExperimentResult) -> CauseLine:
    return CauseLine(
        experiment=row.experiment,
        query_id=row.query_id,
        query=row.query,
        cause="Retrieval Miss",
        detail="not among the candidates",
        evidence="returns.md is at no place of the first 20",
        remedy="raise candidates",
        fingerprint=row.fingerprint,
    )
