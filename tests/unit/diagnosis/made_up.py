"""A made-up study: six pages, a reader that knows the gold and believes the first source, and faults to plant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rag_harness.core.protocols import Experiment
from rag_harness.core.settings import Settings
from rag_harness.core.text.refusals import declines
from rag_harness.core.types import Answer, Case, Chunk, Document, Evidence, Hit, PipelineOutput, Query
from rag_harness.data.datasets import Data
from rag_harness.diagnosis.corpus_view import says
from rag_harness.diagnosis.explainer import Explainer
from rag_harness.diagnosis.reruns import RerunSupport, running
from rag_harness.evaluation.measures.correctness import needed_quotes
from rag_harness.pipelines.parts import RunParts
from rag_harness.records.row import ExperimentResult
from rag_harness.records.scores import CauseLine
from tests.unit.suite_tables import write_run

THINGS = ("lamp", "kettle", "tent", "desk", "sofa", "scarf")
OLD = "old-lamp.md"
DONT_KNOW = "I don't know."


def page(thing: str, days: int, name: str = "", **metadata: Any) -> Document:
    allowed = f"You may return the {thing} within {days} days of delivery."
    text = f"# The {thing}\n\nEvery {thing} is made by hand.\n\n{allowed}\n"
    doc_id = name or f"{thing}.md"
    return Document(doc_id, text, thing, {"id": doc_id.removesuffix(".md"), **metadata})


PAGES = [
    page("lamp", 31, supersedes="old-lamp", status="current"),
    *(page(thing, 31 + n) for n, thing in enumerate(THINGS) if n),
    page("lamp", 14, OLD, status="outdated"),
]


def case(n: int) -> Case:
    thing = THINGS[n]
    quote = f"You may return the {thing} within {31 + n} days of delivery."
    truth = f"The {thing} may be returned within {31 + n} days of delivery."
    query = Query(f"q{n}", f"How long may I return the {thing}?")
    return Case(query, ground_truth=truth, qrels={f"{thing}.md": 1}, evidence=(Evidence(f"{thing}.md", quote),))


CASES = [case(n) for n in range(len(THINGS))]


def chunks_of(pages: Sequence[Document]) -> list[Chunk]:
    """Cut each page into its paragraphs."""
    found = []
    for document in pages:
        place = 0
        for n, text in enumerate(document.text.strip().split("\n\n")):
            place = document.text.index(text, place)
            chunk_id = f"{document.doc_id}#chunk_{n}"
            found.append(
                Chunk(chunk_id, document.doc_id, text, place, place + len(text), index=n, metadata=document.metadata)
            )
    return found


def halved(chunk: Chunk) -> list[Chunk]:
    middle = chunk.text.index("within") + 3
    first = replace(chunk, text=chunk.text[:middle], end=chunk.start + middle)
    rest = replace(chunk, chunk_id=f"{chunk.chunk_id}b", text=chunk.text[middle:], start=chunk.start + middle)
    return [first, rest]


def hits(chunks: Sequence[Chunk]) -> list[Hit]:
    return [Hit(chunk, 1.0 / rank, rank) for rank, chunk in enumerate(chunks, 1)]


@dataclass
class Pipeline:
    """Finds chunks that share a word with the question, and reads them; faults replace its parts.

    ``says`` replaces what the reader says, ``loses`` is how many chunks at the end it does not see, ``sends`` how many
    characters of each chunk are sent; ``calls`` counts how often it was asked.
    """

    chunks: Sequence[Chunk]
    k: int = 4
    says: Callable[[str], str] = staticmethod(lambda said: said)
    order: Callable[[Chunk], Any] = staticmethod(lambda chunk: chunk.doc_id == OLD)
    loses: int = 0
    sends: int | None = None
    calls: list[str] = field(default_factory=list)

    async def answer(self, query: Query) -> PipelineOutput:
        thing = query.text.rstrip("?").split()[-1]
        found = hits(sorted((chunk for chunk in self.chunks if thing in chunk.text), key=self.order))
        sent = [replace(hit, chunk=replace(hit.chunk, text=hit.chunk.text[: self.sends])) for hit in found]
        return self._read(query, sent, sent[: self.k])

    async def answer_from(self, query: Query, given: Sequence[Hit]) -> PipelineOutput:
        return self._read(query, given, given)

    def _read(self, query: Query, found: Sequence[Hit], context: Sequence[Hit]) -> PipelineOutput:
        self.calls.append(query.query_id)
        said = self.says(
            _said(CASES[int(query.query_id[1:])], [hit.chunk.text for hit in context[: len(context) - self.loses]])
        )
        return PipelineOutput(Answer(said, abstained=declines(said), raw=said), tuple(found), tuple(context))


def _said(case: Case, texts: Sequence[str]) -> str:
    thing = case.query.text.rstrip("?").split()[-1]
    first = next((text for text in texts if f"return the {thing} within" in text), "")
    if first and not says([first], case.evidence[0].quote):
        return first
    return case.ground_truth if all(says(texts, quote) for quote in needed_quotes(case)) else DONT_KNOW


def experiment(pipeline: Pipeline, **changes: Any) -> Experiment:
    declared: dict[str, Any] = {"answer_from": pipeline.answer_from, "chunks": lambda: pipeline.chunks}
    return Experiment("x1", pipeline, **(declared | changes))


class Pages(Data):
    """The pages, as the run's own data has them."""

    def __init__(self) -> None:
        super().__init__(Settings())
        self.__dict__["documents"] = PAGES


def parts(output: Path, **settings: Any) -> RunParts:
    return RunParts(Settings(profile="mock", output=str(output), **settings))


def explained(
    output: Path, made: Experiment, rows: Sequence[ExperimentResult] = (), **settings: Any
) -> list[CauseLine]:
    """Explain a run of ``made``; of ``rows`` where they are given, and else of what is in ``output``."""
    if rows:
        write_run(output, rows, CASES)
    with running(output, parts(output, **settings)) as runs:
        return explainer(output, made, runs).every()


def explainer(output: Path, made: Experiment | None, runs: Any = None, worst: int | None = None) -> Explainer:
    return Explainer(output, RerunSupport(lambda _: made, lambda _: "aaaa", lambda _: Pages()), runs, worst)
