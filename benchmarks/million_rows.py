"""Writes the output folder of a large run: rows of the study's size but for their prompts, seeded."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

from million_scores import WHO, scores_of

from rag_harness.core.files import file_sha256
from rag_harness.core.types import Case, Evidence, Query
from rag_harness.evaluation.measures import Measure
from rag_harness.records.cases import CaseFile, StoredCase, stored_case, write_cases
from rag_harness.records.manifest import QUERIES, RunManifest, SuiteRecord, write_manifest
from rag_harness.records.row import ExperimentResult, RetrievedChunk
from rag_harness.records.scores import SCORES
from rag_harness.tables.column_cache import SEGMENT, CacheWriter, row_kind, score_kind

EXPERIMENTS = ("e2", "e3")
_DOCUMENTS, _CANDIDATES, _CONTEXT, _TEMPLATES = 500, 20, 5, 300
_WORDS = [f"{first}{second}" for first in ("ware", "ship", "ret", "lamp", "pri", "hol") for second in "aeiou"]


class Cases:
    """The cases, made when they are asked for; as the recorder has them in memory, without holding a million.

    Args:
        count: how many.
    """

    def __init__(self, count: int) -> None:
        self.position = {case_id(number): number for number in range(count)}

    def __getitem__(self, number: int) -> StoredCase:
        source = random.Random(number)
        gold = {f"page-{source.randrange(_DOCUMENTS):03}.md": 1 for _ in range(source.choice([1, 1, 2]))}
        kind = "negative" if number % 5 == 4 else "direct" if number % 5 < 3 else "multi_hop"
        quotes = tuple(Evidence(page, " ".join(source.choices(_WORDS, k=6))) for page in gold)
        answerable = kind != "negative"
        return stored_case(
            Case(
                Query(case_id(number), " ".join(source.choices(_WORDS, k=16))),
                kind,
                " ".join(source.choices(_WORDS, k=12)) if answerable else "",
                gold if answerable else {},
                quotes if answerable else (),
                answerable,
                {"difficulty": source.choice(["easy", "hard"]), "category": source.choice(["a", "b", "c", "d"])},
            )
        )

    def __iter__(self) -> Iterator[StoredCase]:
        return map(self.__getitem__, range(len(self.position)))


def case_id(number: int) -> str:
    """Return the id of a case."""
    return f"q_{number:07}"


def write_output(output: Path, rows: int, measures: Sequence[Measure], judged: Sequence[str] = ()) -> None:
    """Write a run of so many rows, half of each experiment, and blocks with these measures as the recorder does.

    ``judged`` are the measures that there are scores of.
    """
    cases = Cases(rows // len(EXPERIMENTS))
    write_cases(output, QUERIES, cases)
    for name in EXPERIMENTS:
        _write_rows(output, name, cases, measures, judged)
    suites = {
        name: SuiteRecord(
            data=QUERIES,
            file=f"{name}.jsonl",
            fingerprints=[name],
            total=len(cases.position),
            selected="all",
            judged=list(judged),
            authors=[astuple(WHO)] if judged else [],
        )
        for name in EXPERIMENTS
    }
    settings = {"k": 10, "retriever": "dense", "profile": "mock", "mode": "auto"}
    write_manifest(output, RunManifest(date="2026-01-01T00:00:00+00:00", settings=settings, suites=suites))


def _write_rows(output: Path, name: str, cases: Cases, measures: Sequence[Measure], judged: Sequence[str]) -> None:
    file, scores = output / f"{name}.jsonl", output / SCORES / f"{name}.jsonl"
    scores.parent.mkdir(exist_ok=True)
    file.touch()
    scores.touch()
    templates = [_template(name, number) for number in range(_TEMPLATES)]
    digest = file_sha256(CaseFile.place(output, QUERIES))
    keeper = CacheWriter(file, row_kind(measures, cases, lambda: digest), SEGMENT)
    scored = CacheWriter(scores, score_kind(cases.position, lambda: digest), SEGMENT)
    with file.open("ab", buffering=0) as stream, scores.open("ab", buffering=0) as score_stream:
        for number in range(len(cases.position)):
            template = templates[number % _TEMPLATES]
            row = template.model_copy(update=_changes(name, number, cases[number], template))
            line = row.line().encode()
            stream.write(line)
            keeper.add(row, line)
            for score in scores_of(row, judged):
                line = score.line()
                score_stream.write(line)
                scored.add(score, line)
    keeper.seal()
    scored.seal()


def _changes(name: str, number: int, case: StoredCase, template: ExperimentResult) -> Mapping[str, Any]:
    source = random.Random(f"{name} {number}")
    right = source.random() < (0.35 if name == "e2" else 0.4)
    words = case.case.ground_truth.split() if right else source.choices(_WORDS, k=10)
    took, chunks = 150 + source.random() * 600, list(template.retrieved_chunks)
    if case.case.evidence and source.random() < 0.7:
        place, quote = source.randrange(_CONTEXT), case.case.evidence[0]
        chunks[place] = _holding(chunks[place], quote)
    return {
        "retrieved_chunks": tuple(chunks),
        "query_id": case.case.query.query_id,
        "query": case.case.query.text,
        "query_type": case.case.query_type,
        "answerable": case.case.answerable,
        "ground_truth": case.case.ground_truth,
        "llm_answer": " ".join(words) + " [Source 1].",
        "abstained": source.random() < 0.1,
        "total_time_ms": took,
        "llm_time_ms": took - 20,
        "cost_usd": took * 1e-6,
    }


def _holding(chunk: RetrievedChunk, quote: Evidence) -> RetrievedChunk:
    place = replace(chunk.metadata, filename=quote.filename)
    text, chunk_id = f"{chunk.text} {quote.quote}", f"{quote.filename}#chunk_0"
    return replace(chunk, chunk_id=chunk_id, text=text, metadata=place)


def _template(name: str, number: int) -> ExperimentResult:
    source = random.Random(f"{name} template {number}")
    ids = [f"page-{source.randrange(_DOCUMENTS):03}.md#chunk_{source.randrange(9)}" for _ in range(_CANDIDATES)]
    found = [{"chunk_id": each, **_scores(source)} for each in ids]
    context = [{**each, "text": _text(source), "metadata": _place(str(each["chunk_id"]))} for each in found[:_CONTEXT]]
    call = {"role": "answer", "model": "model", "ms": 150.5, "usage": _usage(source), "prompt": "0123456789abcdef"}
    stages = [{"name": step, "ms": source.random() * 20} for step in ("retrieve", "rerank", "prompt")]
    error = {"stage": "generate", "type": "TimeoutError", "message": "no answer within 30 s"}
    return ExperimentResult.model_validate(
        {
            "query_id": "q", "experiment": name, "query": "?", "query_type": "direct", "retrieved_chunks": context,
            "candidates": found, "llm_answer": "", "raw_output": '{"answer": "as below"}', "citations": [1, 3],
            "invalid_citations": [], "abstained": False, "reasoning_steps": None, "ground_truth": "",
            "context_reference": ["page-001.md"], "metadata": {"difficulty": "hard", "category": "a"},
            "retrieval_time_ms": source.random() * 9, "rerank_time_ms": source.random() * 200, "llm_time_ms": 150.0,
            "ttft_ms": 80 + source.random() * 90, "total_time_ms": 160.0, "usage": _usage(source),
            "stages": [*stages, {"name": "generate", "ms": 150.5, "calls": [call]}], "model": "model",
            "profile": "mock", "mode": "auto", "dry_run": False, "status": "error" if number % 100 == 99 else "ok",
            "error": error if number % 100 == 99 else None, "fingerprint": name,
            "finished_at": f"2026-01-01T00:{number % 60:02}:00.000+00:00",
        }
    )  # fmt: skip


def _scores(source: random.Random) -> dict[str, Any]:
    dense, rerank = source.random(), source.random() * 5
    return {"score": dense, "rerank_score": rerank, "scores": {"dense": dense, "bm25": dense * 9, "rerank": rerank}}


def _text(source: random.Random) -> str:
    return " ".join(source.choices(_WORDS, k=12))


def _place(chunk: str) -> dict[str, Any]:
    return {"filename": chunk.partition("#")[0], "section": "Delivery > Prices", "version": "2026", "date": "2026-01"}


def _usage(source: random.Random) -> dict[str, int]:
    return {"prompt_tokens": source.randrange(500, 900), "completion_tokens": source.randrange(10, 90), "calls": 1}
