"""Output folders to make pages of: a small study, as a run leaves it behind, and the texts that may stand in one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from rag_harness.core.types import Case, Evidence, Query
from rag_harness.evaluation.measures import columns_of, default_measures, measure_named
from rag_harness.records.manifest import QUERIES, RunManifest, read_manifest, write_manifest
from rag_harness.records.row import ExperimentResult
from rag_harness.records.scores import Author, CauseLine, ScoreLine, row_digest, write_causes
from rag_harness.runs.gates import judge, parse_gate
from rag_harness.tables.pairwise import pairwise
from rag_harness.tables.reader import read_tables
from rag_harness.tables.summary import write_summary_file
from tests.unit.rows import failed_row, make_row
from tests.unit.suite_tables import write_run

WHO = Author("embedded", "embedded/alignment", "1")
JUDGED = ("context_precision", "faithfulness", "answer_relevancy", "factuality")
GATES = (
    "e3: recall@5 >= 0.4",
    "e3: faithfulness >= 0.99",
    "e3: recall@5 > e2 @95%",
    "e2: answer_relevancy >= 0.3",
)
TYPES = ("direct", "multi_hop", "negative")
THINGS = ("lamp", "desk", "sleeping bag", "rain jacket", "stove")
CLAIM_REASON, REMEDY, SYSTEM = "as the judge read it", "raise candidates", "Answer from the context."
_SENTENCES = (
    "You may return it within 30 days of delivery.",
    "Opened items cost a fee of 12 per cent.",
    "The deposit comes back when the seal is whole.",
    "Ask the desk at the front for a new label.",
)


@dataclass
class Study:
    """What a run is made of. ``texts`` replace fields of the row of a trial: (experiment, query id) -> changes."""

    experiments: Sequence[str] = ("e1", "e2", "e3")
    cases: int = 12
    seed: int = 7
    gates: Sequence[str] = GATES
    texts: Mapping[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    queries: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    truths: Mapping[str, str] = field(default_factory=dict)

    def write(self, output: Path) -> Path:
        """Write the folder."""
        output.mkdir(parents=True, exist_ok=True)
        rng = Random(self.seed)
        cases = [self._case(number) for number in range(self.cases)]
        rows = [self._row(name, case, rng) for name in self.experiments for case in cases]
        scores = [score for row in rows if row.ok for score in _scores(row, rng)]
        write_run(output, rows, cases, scores=scores)
        told = {"digests": {QUERIES: f"{self.cases} cases"}, "commit": "0123456789abcdef"}
        write_manifest(output, read_manifest(output).model_copy(update=told))
        write_causes(output, _causes(rows))
        _write_prompts(output, rows)
        self._write_summary(output)
        return output

    def _case(self, number: int) -> Case:
        ident = f"q{number:03}"
        kind, thing = TYPES[number % 3], THINGS[number % len(THINGS)]
        query = self.queries.get(ident, f"How long may I keep a {thing} before it is mine, case {number}?")
        answerable = kind != "negative"
        return Case(
            Query(ident, query),
            kind,
            self.truths.get(ident, "Within 30 days of delivery.") if answerable else "",
            {f"page-{number % 5}.md": 1} if answerable else {},
            evidence=(Evidence(f"page-{number % 5}.md", "within 30 days of delivery"),) if answerable else (),
            answerable=answerable,
            metadata={"topic": thing, **self.labels.get(ident, {})},
        )

    def _row(self, experiment: str, case: Case, rng: Random) -> ExperimentResult:
        ident = case.query.query_id
        about: dict[str, Any] = {
            "experiment": experiment,
            "query_id": ident,
            "query": case.query.text,
            "query_type": case.query_type,
            "answerable": case.answerable,
            "ground_truth": case.ground_truth,
            "context_reference": list(case.qrels),
            "metadata": dict(case.metadata),
            "fingerprint": f"print-{experiment}",
        }
        changes = self.texts.get((experiment, ident), {})
        context = _context(experiment, case, rng)
        if int(ident[1:]) % 11 == 10 and not changes:
            return failed_row(**about, **{name: context[name] for name in ("retrieval_time_ms", "rerank_time_ms")})
        return make_row(**{**about, **context, **_answer(experiment, context, rng), **changes})

    def _write_summary(self, output: Path) -> None:
        manifest = read_manifest(output)
        names = columns_of(list(JUDGED))
        tables = read_tables(
            output,
            lambda _: [*{m.name: m for m in [*default_measures(False, 10), *map(measure_named, names)]}.values()],
        )
        gates = [parse_gate(text, 10) for text in self.gates]
        verdicts = [judge(gate, tables, unit=measure_named(gate.measure).unit) for gate in gates]
        more = {"pairwise": [cell.as_json() for cell in pairwise(tables, manifest.suites)]}
        write_summary_file(output, tables, verdicts, manifest.settings, more)


def cited_run(output: Path) -> Path:
    """Write a study in which the citations of one answer were judged: e3-q003."""
    answer = "You may return it within 14 days. [Source 1] Ask for a new label. [Source 2]"
    Study(texts={("e3", "q003"): {"abstained": False, "llm_answer": answer, "citations": [1, 2]}}).write(output)
    file = output / "scores" / "e3.jsonl"
    rows = (ExperimentResult.model_validate_json(line) for line in (output / "e3.jsonl").read_text().splitlines())
    row = next(row for row in rows if row.query_id == "q003")
    claims = [
        {
            "text": "You may return it within 14 days.",
            "value": 0.0,
            "start": 0,
            "end": 44,
            "needs": True,
            "reason": "another source than the cited one supports it",
            "citations": [1],
            "sources": [
                {"source": 1, "value": 0.0, "support": "none", "cited": True},
                {"source": 3, "value": 1.0, "support": "full", "cited": False, "quote": "within 14 days of delivery"},
            ],
        },
        {
            "text": "Ask for a new label.",
            "value": 0.5,
            "start": 45,
            "end": len(answer),
            "needs": True,
            "reason": "",
            "citations": [2],
            "sources": [{"source": 2, "value": 0.5, "support": "partial", "cited": True, "quote": "a new label"}],
        },
    ]
    who = ("citation_support", 1, "e3", "q003", row_digest(row), "", WHO)
    with file.open("ab") as stream:
        stream.write(ScoreLine(*who, 0.25, detail={"claims": claims}).line())
    return output


def empty_run(output: Path) -> Path:
    """Write what a run leaves behind that selected nothing."""
    settings = {"k": 10, "retriever": "dense", "profile": "mock", "mode": "auto"}
    write_manifest(output, RunManifest(date="2026-01-01T00:00:00+00:00", settings=settings, suites={}))
    return output


def _context(experiment: str, case: Case, rng: Random) -> dict[str, Any]:
    if experiment == "e1":
        return {"retrieved_chunks": [], "candidates": [], "retrieval_time_ms": None, "rerank_time_ms": None}
    pages = rng.sample(range(8), 5)
    if experiment != "e2" and case.qrels:
        gold = int(next(iter(case.qrels)).removeprefix("page-").removesuffix(".md"))
        pages = [gold, *[page for page in pages if page != gold]][:5]
    chunks = [_chunk(page, place, experiment) for place, page in enumerate(pages)]
    more = [_chunk(page, 5, experiment) for page in range(8) if page not in pages]
    kept = ("chunk_id", "score", "rerank_score", "scores")
    return {
        "retrieved_chunks": chunks,
        "candidates": [{name: chunk[name] for name in kept} for chunk in [*chunks, *more]],
        "retrieval_time_ms": round(rng.uniform(1, 9), 3),
        "rerank_time_ms": None if experiment == "e2" else round(rng.uniform(5, 20), 3),
    }


def _chunk(page: int, place: int, experiment: str) -> dict[str, Any]:
    score, second = round(0.9 - place / 10 - page / 1000, 4), round(4.0 - place - page / 100, 4)
    signals = {"dense": score} if experiment == "e2" else {"dense": score, "rerank": second}
    return {
        "chunk_id": f"page-{page}.md#chunk_0",
        "text": f"## Rule {page}\n\n{_SENTENCES[page % 4]}  Goods go back\nwithin 30 days of delivery, rule {page}.",
        "score": score,
        "rerank_score": signals.get("rerank"),
        "scores": signals,
        "metadata": {"filename": f"page-{page}.md", "section": f"Returns > Rule {page}", "version": "1"},
    }


def _answer(experiment: str, context: Mapping[str, Any], rng: Random) -> dict[str, Any]:
    said = rng.sample(_SENTENCES, 2)
    has_context = bool(context["retrieved_chunks"])
    answer = f"{said[0]} [Source 1] {said[1]}" if has_context else f"{said[0]} {said[1]}"
    ms = round(rng.uniform(20, 400), 3)
    abstained = rng.random() < 0.15
    times = {"retrieve": context.get("retrieval_time_ms"), "rerank": context.get("rerank_time_ms")}
    call = {
        "role": "answer",
        "model": "mock/chat",
        "ms": ms,
        "ttft_ms": round(ms / 3, 3),
        "usage": {"prompt_tokens": 500, "completion_tokens": 40, "calls": 1},
        "prompt": f"prompt-{experiment}",
    }
    return {
        "llm_answer": "I don't know." if abstained else answer,
        "raw_output": "I don't know." if abstained else json.dumps({"answer": answer}),
        "abstained": abstained,
        "citations": [1] if has_context and not abstained else [],
        "llm_time_ms": ms,
        "ttft_ms": round(ms / 3, 3),
        "total_time_ms": round(ms + sum(filter(None, times.values())), 3),
        "usage": {"prompt_tokens": rng.randint(400, 600), "completion_tokens": rng.randint(20, 60), "calls": 1},
        "cost_usd": round(rng.uniform(0.0001, 0.002), 6),
        "confidence": round(rng.random(), 3) if experiment == "e3" else None,
        "stages": [
            *({"name": name, "ms": took} for name, took in times.items() if took is not None),
            {"name": "generate", "ms": ms, "calls": [call]},
        ],
        "decisions": [{"name": "enough", "outcome": "answer", "value": 0.7, "threshold": 0.5, "reason": "it is above"}]
        if experiment == "e3"
        else [],
        "model": "mock/chat",
        "reasoning_steps": ["Look for the rule.", "Say it."] if experiment == "e3" else None,
    }


def _scores(row: ExperimentResult, rng: Random) -> Iterator[ScoreLine]:
    better = {"e1": 0.0, "e2": 0.1, "e3": 0.25}.get(row.experiment, 0.2)
    for measure in JUDGED:
        yield _score(measure, row, min(1.0, round(rng.random() * 0.7 + better, 6)))


def _score(measure: str, row: ExperimentResult, value: float) -> ScoreLine:
    who = (measure, 1, row.experiment, row.query_id, row_digest(row), "", WHO)
    if row.abstained and measure in ("faithfulness", "factuality"):
        return ScoreLine(*who, None, "an abstention, which claims nothing", undefined=True)
    if not row.retrieved_chunks and measure in ("context_precision", "faithfulness"):
        return ScoreLine(*who, None, "no retrieval", undefined=True)
    if row.query_id == "q004" and measure == "answer_relevancy":
        return ScoreLine(*who, None, "the judge said nothing that can be read")
    detail = {"claims": list(_claims(row.llm_answer, value))} if measure in ("faithfulness", "factuality") else {}
    return ScoreLine(*who, value, detail=detail)


def _claims(answer: str, value: float) -> Iterator[dict[str, Any]]:
    start = 0
    for number, sentence in enumerate(answer.split(". ")[:4]):
        end = min(len(answer), start + len(sentence) + 1)
        said = round(value if number else value / 2, 3)
        yield {
            "text": answer[start:end],
            "value": said,
            "start": start,
            "end": end,
            "passage": 0,
            "reason": CLAIM_REASON,
        }
        start = end + 1


def _causes(rows: Sequence[ExperimentResult]) -> Iterator[CauseLine]:
    kinds = ("Retrieval Miss", "Logic Failure")
    for number, row in enumerate(rows):
        if int(row.query_id[1:]) % 3 == 0:
            yield CauseLine(
                experiment=row.experiment,
                query_id=row.query_id,
                query=row.query,
                category="bad answer",
                hri=0.4,
                cause=kinds[number % 2],
                detail="not among the candidates",
                evidence=f"page-{number % 5}.md is at no place of the first 20",
                remedy=REMEDY,
                answers={"+gold_context": {"answer": "Within 30 days.", "right": True}},
                fingerprint=row.fingerprint,
            )


def _write_prompts(output: Path, rows: Sequence[ExperimentResult]) -> None:
    (output / "prompts").mkdir(exist_ok=True)
    for name in {row.experiment for row in rows}:
        sent = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "What is asked."}]
        (output / "prompts" / f"prompt-{name}.json").write_text(json.dumps(sent))
