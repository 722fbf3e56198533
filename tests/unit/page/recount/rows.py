"""What a run left behind, read with json alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

Json = dict[str, Any]


@dataclass
class Suite:
    """An experiment: its cases in their order, its rows, the scores of them, and who was to be asked at all."""

    name: str
    record: Json
    cases: dict[str, Json]
    rows: dict[str, Json] = field(default_factory=dict)
    scores: dict[str, dict[str, Json]] = field(default_factory=dict)
    values: dict[str, dict[str, float]] = field(default_factory=dict)
    """By measure, as they are first asked for."""

    @cached_property
    def asked(self) -> list[str]:
        """Cases that were selected and asked for."""
        selected = list(self.cases) if self.record["selected"] == "all" else self.record["selected"]
        left_out = {*self.record["not_run"], *self.record["settled"]}
        return [case for case in self.cases if case in set(selected) - left_out]

    @cached_property
    def answered(self) -> dict[str, None]:
        """Cases with an answer, in their order."""
        return {case: None for case in self.asked if case in self.rows and self.rows[case]["status"] == "ok"}

    @property
    def errors(self) -> list[str]:
        """Cases whose row is an error."""
        return [case for case in self.asked if case in self.rows and case not in self.answered]

    @property
    def lost(self) -> list[str]:
        """Cases that were asked for, and of which no row came."""
        return [case for case in self.asked if case not in self.rows]


@dataclass
class RunFiles:
    """The files of a run."""

    manifest: Json
    summary: Json
    suites: dict[str, Suite]
    causes: list[Json]
    others: list[RunFiles] = field(default_factory=list)


def read_files(output: Path, *others: Path) -> RunFiles:
    """Read them, and those of the runs that it is set against."""
    manifest = json.loads((output / "run.json").read_text())
    suites = {name: _suite(output, name, record) for name, record in sorted(manifest["suites"].items())}
    summary = output / "summary.json"
    known = {name: set(record["fingerprints"]) for name, record in manifest["suites"].items()}
    causes = [line for line in _lines(output / "causes.jsonl") if line["fingerprint"] in known[line["experiment"]]]
    return RunFiles(
        manifest,
        json.loads(summary.read_text()) if summary.exists() else {},
        suites,
        causes,
        [*map(read_files, others)],
    )


def _suite(output: Path, name: str, record: Json) -> Suite:
    cases = {line["case_id"]: line for line in _lines(output / "cases" / f"{record['data']}.jsonl")}
    suite = Suite(name, record, cases)
    for row in _lines(output / record["file"]):
        if row["fingerprint"] in record["fingerprints"] and row["query_id"] in suite.asked:
            suite.rows.setdefault(row["query_id"], row)
    authors = {tuple(author) for author in record["authors"]}
    for score in _lines(output / "scores" / record["file"]):
        judged = suite.rows.get(score["query_id"])
        is_known = (score["judge"], score["model"], score["revision"]) in authors and not score.get("repeat")
        if is_known and judged and score["row"] == _judged_of(judged):
            suite.scores.setdefault(score["query_id"], {})[score["measure"]] = score
    return suite


def _judged_of(row: Mapping[str, Any]) -> str:
    """Return the digest that a score names its row by."""
    chunks = [chunk["text"] for chunk in row["retrieved_chunks"]]
    said = [row["query"], row["llm_answer"], "abstained" if row["abstained"] else "", row["ground_truth"], *chunks]
    encoded = [text.encode("utf-8", "surrogatepass") for text in said]
    return blake2b(b"".join(len(each).to_bytes(8, "big") + each for each in encoded), digest_size=12).hexdigest()


def _lines(file: Path) -> Iterator[Json]:
    if file.exists():
        for line in file.read_text().splitlines():
            try:
                yield json.loads(line)
            except ValueError:  # torn by a kill
                continue
