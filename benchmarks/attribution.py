"""Planted faults on the shipped study: does the diagnosis, which is told nothing, name them?

    python benchmarks/attribution.py [--suite study|textbook|bicycles] [--reader simulated|embedded] [--seed N]

A healthy pipeline (BM25, ten chunks, a reader) answers every answerable query of a suite: the study (``data/kb``), the
textbook, or the six questions of ``examples/kb``. Then one fault is planted, the queries are asked again, and what
failed is explained as ``rag-harness explain`` does. A fault has touched a trial that was right and is not any more; a
ground truth with a wrong figure has touched every trial whose answer carries the right one. For stale pages every page
gets an outdated twin with other figures.

The simulated reader stands for a good LLM: it knows the gold, says the ground truth where every vital quote is in its
context, and else that it does not know; it believes the first source that speaks of the matter. The embedded reader is
the extractive one of the profile.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

from planted import explained

from rag_harness.core.protocols import Experiment
from rag_harness.core.settings.loading import load_settings
from rag_harness.core.text.refusals import declines
from rag_harness.core.text.terms import written_numbers
from rag_harness.core.types import Answer, Case, Chunk, Document, Hit, PipelineOutput, Query
from rag_harness.diagnosis.corpus_view import CorpusView, says
from rag_harness.evaluation.measures.correctness import needed_quotes, rightness
from rag_harness.pipelines.parts import Generator, RunParts
from rag_harness.pipelines.trace import Trace
from rag_harness.records.row import ExperimentResult
from rag_harness.retrieval.bm25 import Bm25Index
from rag_harness.runs.trial import Trial, run_trial

ROOT = Path(__file__).parents[1]
SUITES = {"study": ("", {}), "textbook": ("textbook", {}), "bicycles": ("", {"kb_dir": "examples/kb"})}
"""Name of the data, and settings, of each suite."""
K, CANDIDATES = 10, 20
STOPS_AT, WORDS, SENT = 60, 18, 200
"""Characters, and words, that an answer has where the model stops early; characters that a service sends of a chunk."""
DONT_KNOW, WRONG_GOLD = "I don't know.", "wrong figure in the ground truth"
Retrieve = Callable[[Query], list[Hit]]
Read = Callable[[Query, Trace], Awaitable[PipelineOutput]]


class Simulated:
    """A reader that knows the gold of every case."""

    def __init__(self, cases: Sequence[Case], view: CorpusView) -> None:
        self._cases, self._view = {case.query.query_id: case for case in cases}, view

    async def answer(self, query: Query, trace: Trace) -> PipelineOutput:
        said = self._said(self._cases[query.query_id], trace.context)
        return trace.output(Answer(said, abstained=declines(said), raw=said))

    def _said(self, case: Case, hits: Sequence[Hit]) -> str:
        texts = [hit.chunk.text for hit in hits]
        gold = {one.filename for one in case.evidence}
        matter = [hit.chunk for hit in hits if {hit.chunk.doc_id, self._view.superseded.get(hit.chunk.doc_id)} & gold]
        if matter and matter[0].doc_id not in gold:
            return matter[0].text
        return case.ground_truth if all(says(texts, quote) for quote in needed_quotes(case)) else DONT_KNOW


@dataclass
class Pipeline:
    """Retrieves by BM25 and reads; a fault replaces one of the parts."""

    retrieve: Retrieve
    read: Read

    async def answer(self, query: Query) -> PipelineOutput:
        hits = self.retrieve(query)
        return await self._read(query, Trace(retrieved=hits, context=hits[:K]))

    async def answer_from(self, query: Query, hits: Sequence[Hit]) -> PipelineOutput:
        return await self._read(query, Trace(retrieved=list(hits), context=list(hits)))

    async def _read(self, query: Query, trace: Trace) -> PipelineOutput:
        return await self.read(query, trace)


class Study:
    """A suite, and each fault as an experiment over it."""

    def __init__(self, suite: str, reader: str, seed: int) -> None:
        self.name, settings = SUITES[suite]
        self.parts = RunParts(load_settings({"mode": "auto", **settings}, rootdir=ROOT))
        self.data = self.parts.data(self.name)
        self.chunks = self.parts.retrieval(data=self.name).chunks
        self.cases = [case for case in self.data.cases if case.answerable]
        # The cut is made: what follows is known of the pages and in no index, until a fault puts it there.
        paired = {page.doc_id for page in self.data.documents if page.metadata.get("supersedes")}
        living = [page for page in self.data.documents if page.metadata.get("status") != "outdated"]
        alone = [page for page in living if page.doc_id not in paired]
        others = [page for page in self.data.documents if page not in alone]
        self.data.documents[:] = [*others, *map(current, alone), *map(twin_page, alone)]
        self.view, self.rng = CorpusView(self.chunks, self.data.documents), random.Random(seed)
        generator = Generator(self.parts.chat(), self.parts.prompts("e2"))
        self.read = Simulated(self.cases, self.view).answer if reader == "simulated" else generator.answer

    def case(self, query_id: str) -> Case:
        return next(case for case in self.cases if case.query.query_id == query_id)

    def experiment(self, fault: str) -> Experiment:
        chunks = {"page deleted": self._without_pages, "chunk border": self._cut}.get(fault, lambda: self.chunks)()
        index = Bm25Index(lambda: chunks)
        found: dict[str, list[Hit]] = {}

        def search(query: Query) -> list[Hit]:
            if query.text not in found:
                found[query.text] = index.search(query.text, CANDIDATES)
            return found[query.text]

        changes: Mapping[str, Callable[[Query, list[Hit]], list[Hit]]] = {
            "stale first": self._stale_first,
            "last chunk lost": lambda _, hits: _best_last(hits),
            "chunks cut": lambda _, hits: _cut_short(hits),
            "chunks cut, index unknown": lambda _, hits: _cut_short(hits),
        }

        def retrieve(query: Query) -> list[Hit]:
            hits = search(query)
            return changes[fault](query, hits) if fault in changes else hits

        pipeline = Pipeline(retrieve, self._reader(fault))
        if fault == "returns a string":
            return Experiment("x1", Speaking(pipeline))
        if fault == "chunks cut, index unknown":
            return Experiment("x1", pipeline)
        return Experiment("x1", pipeline, answer_from=pipeline.answer_from, chunks=lambda: chunks)

    def _reader(self, fault: str) -> Read:
        async def ignoring(query: Query, trace: Trace) -> PipelineOutput:
            known = await self.read(query, Trace())
            said = known.answer if not known.answer.abstained else Answer("It depends on the details of your order.")
            return trace.output(said)

        async def refusing(_: Query, trace: Trace) -> PipelineOutput:
            return trace.output(Answer(DONT_KNOW, abstained=True))

        async def noisy(query: Query, trace: Trace) -> PipelineOutput:
            wrong = self.rng.random() < 0.3
            return trace.output(Answer("Please see our general terms.")) if wrong else await self.read(query, trace)

        async def losing(query: Query, trace: Trace) -> PipelineOutput:
            known = await self.read(query, Trace(context=trace.context[:-1]))
            return trace.output(known.answer)

        async def stopping(query: Query, trace: Trace) -> PipelineOutput:
            known = (await self.read(query, Trace(context=trace.context))).answer
            return trace.output(known if known.abstained else Answer(known.text[:STOPS_AT].strip()))

        async def limited(query: Query, trace: Trace) -> PipelineOutput:
            known = (await self.read(query, Trace(context=trace.context))).answer
            words = known.text.split()
            # In words of its own: no source says what an answer begins with.
            said = f"Going by what I was given, it is like this: {' '.join(words)}".split()[:WORDS]
            return trace.output(known if known.abstained else Answer(" ".join(said)))

        faults: Mapping[str, Read] = {
            "context ignored": ignoring,
            "refuses": refusing,
            "noise 30 %": noisy,
            "last chunk lost": losing,
            "answer stops": stopping,
            "answer limited": limited,
            "returns a string": ignoring,
        }
        return faults.get(fault, self.read)

    def wrong_gold(self) -> None:
        """Give the ground truth of every case another figure in place of one that its evidence has."""
        self.cases = [_with_wrong_figure(case, self.rng) for case in self.cases]

    def _without_pages(self) -> list[Chunk]:
        pages = sorted({one.filename for case in self.cases for one in case.evidence})
        gone = set(self.rng.sample(pages, len(pages) // 3))
        return [chunk for chunk in self.chunks if chunk.doc_id not in gone]

    def _cut(self) -> list[Chunk]:
        """Cut every chunk that holds a vital quote in the middle of it."""
        cut = {chunk.chunk_id: [chunk] for chunk in self.chunks}
        for case in self.cases:
            for quote in needed_quotes(case):
                for pieces in cut.values():
                    pieces[:] = [piece for each in pieces for piece in _halves(each, quote)]
        return [piece for pieces in cut.values() for piece in pieces]

    def _stale_first(self, query: Query, hits: list[Hit]) -> list[Hit]:
        case = self.case(query.query_id)
        gold = {one.filename for one in case.evidence}
        known = {heir for old, heir in self.view.superseded.items() if old.startswith("old-")}
        twins = [twin(hit.chunk) for hit in hits if hit.chunk.doc_id in gold & known]
        order = [*(Hit(chunk, 1.0, 1) for chunk in twins[:2]), *hits]
        return [replace(hit, rank=rank) for rank, hit in enumerate(order, 1)]


def twin(chunk: Chunk) -> Chunk:
    """Return what an outdated version of the page said in the place of ``chunk``: each figure is another."""
    text = re.sub(r"\d+", lambda found: str(int(found[0]) + 13), chunk.text)
    old = f"old-{chunk.doc_id}"
    return replace(chunk, chunk_id=f"old-{chunk.chunk_id}", doc_id=old, text=text, metadata=_outdated(chunk.metadata))


def _outdated(metadata: Mapping[str, object]) -> dict[str, object]:
    return {**metadata, "id": f"old-{metadata.get('id')}", "status": "outdated", "supersedes": None}


def twin_page(page: Document) -> Document:
    """Return an outdated version of a page."""
    text = re.sub(r"\d+", lambda found: str(int(found[0]) + 13), page.text)
    return replace(page, doc_id=f"old-{page.doc_id}", text=text, metadata=_outdated(page.metadata))


def current(page: Document) -> Document:
    """Return a page that names its outdated twin."""
    return replace(page, metadata={**page.metadata, "supersedes": f"old-{page.doc_id}"})


@dataclass
class Speaking:
    """Returns what a pipeline says, and nothing of how it came to say it."""

    pipeline: Pipeline

    async def answer(self, query: Query) -> str:
        return (await self.pipeline.answer(query)).answer.text


def _best_last(hits: Sequence[Hit]) -> list[Hit]:
    """Return the context the other way round, as prompts have it that put the best chunk beside the question."""
    order = [*reversed(hits[:K]), *hits[K:]]
    return [replace(hit, rank=rank) for rank, hit in enumerate(order, 1)]


def _cut_short(hits: Sequence[Hit]) -> list[Hit]:
    """Return hits of which a service sends the first characters alone."""
    return [replace(hit, chunk=replace(hit.chunk, text=hit.chunk.text[:SENT])) for hit in hits]


def _with_wrong_figure(case: Case, rng: random.Random) -> Case:
    """Return a case whose ground truth says another figure than its evidence; itself where both share none."""
    quoted = written_numbers(" ".join(one.quote for one in case.evidence)) - written_numbers(case.query.text)
    found = [each for each in re.finditer(r"\d+(?:[.,:]\d+)*", case.ground_truth) if each[0] in quoted]
    if not found:
        return case
    place, figure = rng.choice(found), ""
    while not figure or figure in quoted | written_numbers(case.ground_truth):
        figure = re.sub(r"\d+$", lambda digits: str(int(digits[0]) + rng.randint(1, 40)), place[0])
    truth = case.ground_truth
    return replace(case, ground_truth=truth[: place.start()] + figure + truth[place.end() :])


def _halves(chunk: Chunk, quote: str) -> list[Chunk]:
    place = chunk.text.find(quote)
    if place < 0:
        return [chunk]
    middle = place + len(quote) // 2
    first = replace(chunk, text=chunk.text[:middle], end=chunk.start + middle, chunk_id=f"{chunk.chunk_id}a")
    return [first, replace(chunk, text=chunk.text[middle:], start=chunk.start + middle, chunk_id=f"{chunk.chunk_id}b")]


EXPECTED = {
    "page deleted": ("Retrieval Miss", "not in the index"),
    "context ignored": ("Logic Failure", ""),
    "stale first": ("Outdated Info", ""),
    "refuses": ("Logic Failure", "wrong refusal"),
    "chunk border": ("Retrieval Miss", "cut by a chunk border"),
    "noise 30 %": ("Noise", ""),
    "last chunk lost": ("Logic Failure", "not read where it stood"),
    "answer stops": ("Logic Failure", "cut short"),
    "answer limited": ("Logic Failure", "cut short"),
    "chunks cut": ("Retrieval Miss", "the page came without the passage"),
    "chunks cut, index unknown": ("Retrieval Miss", "the page came without the passage"),
    "returns a string": ("Undetermined", "the pipeline does not say what it looked up"),
    WRONG_GOLD: ("Gold Doubtful", "the answer has the figure of the evidence"),
}


async def answered(study: Study, experiment: Experiment) -> list[ExperimentResult]:
    settings = study.parts.settings
    outcomes = [await run_trial(Trial("x1", case), experiment.pipeline, settings, "f") for case in study.cases]
    return [outcome.row for outcome in outcomes if outcome.row is not None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", choices=tuple(SUITES), default="study")
    parser.add_argument("--reader", choices=("simulated", "embedded"), default="simulated")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--fault", choices=tuple(EXPECTED), action="append", help="only these; default: all")
    chosen = parser.parse_args()

    def study() -> Study:
        # Made anew for each fault: who explains closes the connections of the models.
        return Study(chosen.suite, chosen.reader, chosen.seed)

    right = healthy(study())
    for fault in chosen.fault or EXPECTED:
        planted(study(), fault, right)


def healthy(study: Study) -> set[str]:
    """Run without a fault, print the causes of what failed, and return the trials that were right."""
    experiment = study.experiment("")
    rows = asyncio.run(answered(study, experiment))
    right = {row.query_id for row in rows if _is_right(study, row)}
    with tempfile.TemporaryDirectory() as folder:
        lines = explained(study, experiment, rows, Path(folder))
    counts = Counter((line.cause, line.detail) for line in lines)
    print(f"healthy: {len(right)} of {len(rows)} right; the others: {dict(counts)}")
    return right


def planted(study: Study, fault: str, right: set[str]) -> None:
    """Plant a fault and print how many of the trials that it touched got its cause."""
    experiment = study.experiment(fault)
    rows = asyncio.run(answered(study, experiment))
    if fault == WRONG_GOLD:
        before = {case.query.query_id: case.ground_truth for case in study.cases}
        study.wrong_gold()
        # The rows say the ground truth too.
        now_said = {case.query.query_id: case.ground_truth for case in study.cases}
        rows = [row.model_copy(update={"ground_truth": now_said[row.query_id]}) for row in rows]
        answers = {row.query_id: written_numbers(row.llm_answer) for row in rows}
        mended = {
            query_id: written_numbers(before[query_id]) - written_numbers(now_said[query_id]) for query_id in right
        }
        touched = {query_id for query_id in right if mended[query_id] and mended[query_id] <= answers[query_id]}
    else:
        touched = {row.query_id for row in rows if row.query_id in right and not _is_right(study, row)}
    with tempfile.TemporaryDirectory() as folder:
        started = perf_counter()
        lines = explained(study, experiment, rows, Path(folder))
        took = perf_counter() - started
    cause, detail = EXPECTED[fault]
    said = {line.query_id: (line.cause, line.detail) for line in lines}
    found = Counter(said.get(query_id, ("none", "")) for query_id in touched)
    named = sum(n for (its, fine), n in found.items() if its == cause and detail in (fine, ""))
    share = f"{named} of {len(touched)} touched trials get {cause}{f': {detail}' if detail else ''}"
    print(f"{fault}: {share}; {len(lines)} failed trials explained in {took:.1f} s")
    print(f"    {', '.join(f'{n} {its}: {fine}' for (its, fine), n in found.most_common())}")


def _is_right(study: Study, row: ExperimentResult) -> bool:
    return rightness(study.case(row.query_id), row.llm_answer, row.abstained).right


if __name__ == "__main__":
    main()
