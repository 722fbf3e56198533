"""The golden suite: its cases, the retriever under test, and the experiment that looks them up."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from rag_harness.core.concurrency import Lazy
from rag_harness.core.errors import PrerequisiteError, SettingsError, unknown
from rag_harness.core.files import text_digest
from rag_harness.core.protocols import Experiment, Retriever
from rag_harness.core.registry import is_own_code, noting
from rag_harness.core.settings import affecting
from rag_harness.core.types import GOLDEN, Answer, Case, Chunk, Hit, PipelineOutput, Query, slices_of
from rag_harness.data.beir import BeirDataset
from rag_harness.data.datasets import Data
from rag_harness.data.golden import Gold, GoldenEntry, resolve
from rag_harness.pipelines.experiments import known_experiments
from rag_harness.pipelines.parts import RunParts
from rag_harness.pipelines.trace import Trace
from rag_harness.records.golden_result import RetrievalCase, RetrievalResult, rank_of, ranked_names, retrieval_result
from rag_harness.records.row import ExperimentResult
from rag_harness.retrieval.builder import Retrieval, check_compatible
from rag_harness.retrieval.retrievers import HybridRetriever, RerankedRetriever
from rag_harness.runs.fingerprint import fingerprint_of

# The golden suite's cases: from the user's golden set over the knowledge base, or from a public collection.


def golden_ids(data: Data) -> list[str]:
    """Return the ids of all entries; reads the golden file and no document."""
    if data.collection is not None:
        return [query.query_id for query in data.collection.queries]
    return [entry.entry_id for entry in data.golden]


def golden_slices(data: Data) -> list[dict[str, str]]:
    """Return the labels of each entry that gates can slice by."""
    if data.collection is not None:
        return [query.place for query in data.collection.queries]
    return [slices_of(entry.metadata) for entry in data.golden]


def golden_cases(data: Data, retrieval: Retrieval) -> list[RetrievalCase]:
    """Return all entries with what counts as found.

    Raises:
        DataError: an expected id resolves to nothing; names every such entry and the nearest ids.
    """
    if data.collection is not None:
        return [_judged(query, data.collection) for query in data.collection.queries]
    gold = resolve(data.golden, retrieval.chunks)
    by_id = {chunk.chunk_id: chunk for chunk in retrieval.chunks}
    return [_case(entry, gold[entry.entry_id], by_id) for entry in data.golden]


def check_cutoff(retrieval: Retrieval) -> None:
    """Refuse a cutoff that is larger than the index: every query would pass.

    Raises:
        SettingsError: there are fewer chunks than the cutoff asks for.
    """
    k, size = retrieval.settings.k, len(retrieval.chunks)
    if k > size:
        raise SettingsError(
            f"k is {k}, but the knowledge base has {size} chunks: everything would be found. "
            f"Choose --rag-k below {size}."
        )


def _judged(query: Query, collection: BeirDataset) -> RetrievalCase:
    relevance = collection.qrels[query.query_id]
    wanted = [doc_id for doc_id, gain in relevance.items() if gain > 0]
    more = [f"{len(wanted) - 3} more"] if len(wanted) > 3 else []
    return RetrievalCase(
        query.query_id,
        query.text,
        relevance,
        expected=(*wanted[:3], *more),
        slices=query.place,
        left_out=collection.left_out(query.query_id),
    )


def _case(entry: GoldenEntry, gold: Gold, chunks: Mapping[str, Chunk]) -> RetrievalCase:
    return RetrievalCase(
        case_id=entry.entry_id,
        query=entry.query,
        relevant=gold.relevance,
        by_chunk=gold.level == "chunk",
        names_of=gold.expected_of,
        expected=entry.expected,
        justification=entry.justification,
        passage=_passage(entry, gold, chunks),
        slices=slices_of(entry.metadata),
    )


def _passage(entry: GoldenEntry, gold: Gold, chunks: Mapping[str, Chunk]) -> str:
    """Return what should have been found: a quote, else the beginning of the first relevant chunk."""
    if entry.evidence:
        return entry.evidence[0]
    first = next((chunk for each, chunk in chunks.items() if each in gold.ids or chunk.doc_id in gold.ids), None)
    return first.text[:200] if first else ""


DEPTH = 100
"""Hits that are searched for the expected document, so that a miss can report the document's rank."""


@dataclass(frozen=True)
class GoldenPipeline:
    """Looks up entries with the retriever under test.

    Args:
        step: the retriever under test.
        name: what ``--rag-retriever`` calls it.
        k: cutoff of the suite; the first k hits are the context.
        entries: entries by id. Gold decides the names by which hits are ranked, not which hits are returned.
    """

    step: Retriever
    name: str
    k: int
    entries: Mapping[str, RetrievalCase]

    async def answer(self, query: Query) -> PipelineOutput:
        trace, entry = Trace(), self.entries[query.query_id]
        await trace.retrieve(self.step, query.text, max(self.k, DEPTH) + len(entry.left_out))
        trace.retrieved = _counted(trace.retrieved, entry.left_out)
        trace.context = list(trace.retrieved[: self.k])
        ranked = ranked_names([hit.chunk.chunk_id for hit in trace.retrieved], entry)
        trace.note("retrieve", retriever=self.name, k=self.k, rank=rank_of(ranked, entry.relevant))
        return replace(trace.output(Answer("")), ranking=tuple(ranked), retrieval_only=True)


def _counted(hits: Sequence[Hit], left_out: frozenset[str]) -> list[Hit]:
    """Return the hits without those of documents that do not count. Hits below move up."""
    if not left_out:
        return list(hits)
    counted = (hit for hit in hits if hit.chunk.doc_id not in left_out)
    return [replace(hit, rank=rank) for rank, hit in enumerate(counted, 1)]


RETRIEVERS = ("dense", "bm25", "hybrid", "reranked")


def retriever_named(
    name: str, retrieval: Retrieval, experiment_of: Callable[[str], Experiment], experiments: Sequence[str]
) -> Retriever:
    """Return the retriever ``name``: one of ``RETRIEVERS``, or the retrieve step of an experiment.

    Raises:
        SettingsError: no retriever or experiment has that name, or the experiment retrieves nothing.
    """
    if name == "dense":
        return retrieval.dense
    if name == "bm25":
        return retrieval.words
    if name == "hybrid":
        return HybridRetriever((retrieval.dense, retrieval.words))
    if name == "reranked":
        return RerankedRetriever(retrieval.dense, retrieval.reranker(), retrieval.settings.candidates)
    if name in experiments:
        return retrieve_step(experiment_of(name))
    raise SettingsError(unknown("retriever", name, [*RETRIEVERS, *experiments]))


def retrieve_step(experiment: Experiment) -> Retriever:
    """Return the retrieve step that an experiment declares, or its pipeline's own method ``retrieve(query, k)``.

    Raises:
        SettingsError: it has neither.
    """
    if experiment.retriever is not None:
        return experiment.retriever
    if callable(getattr(experiment.pipeline, "retrieve", None)):
        return cast("Retriever", experiment.pipeline)
    raise SettingsError(
        f"Experiment {experiment.id!r} retrieves nothing that could be tested. Give its pipeline a method "
        f"retrieve(query, k), or choose another with --rag-retriever."
    )


class GoldenSuite:
    """Entries, gold, and the retriever under test, each made when it is first needed.

    Args:
        parts: what retrievers are made of.
        registered: returns an experiment by its name. Its retrieve step can be the retriever under test.
        fingerprint: returns what decides the results of such an experiment.
    """

    def __init__(
        self, parts: RunParts, registered: Callable[[str], Experiment], fingerprint: Callable[[Experiment], str]
    ) -> None:
        self._parts, self._registered, self._fingerprint = parts, registered, fingerprint
        self._every_id, self._cases = Lazy(lambda: golden_ids(parts.data())), Lazy(self._read_cases)
        self._experiment = Lazy(self._make_experiment)
        self.broken = ""
        """Why the suite cannot be run; empty where it can."""

    @property
    def ids(self) -> list[str]:
        """Ids of the entries of this run, in their order. Reading them builds no index.

        Raises:
            PrerequisiteError: the golden set cannot be read.
        """
        return self._every_id.get()[: self._parts.settings.limit or None]

    @property
    def every_id(self) -> list[str]:
        """Ids of all entries of the data.

        Raises:
            PrerequisiteError: the golden set cannot be read.
        """
        return self._every_id.get()

    @property
    def known_ids(self) -> Sequence[str]:
        """Ids of all entries; empty where the golden set cannot be read."""
        try:
            return self.every_id
        except PrerequisiteError:
            return ()

    @property
    def slices(self) -> list[dict[str, str]]:
        """The labels of each entry that gates can slice by. Reading them builds no index."""
        return golden_slices(self._parts.data())

    @property
    def cases(self) -> dict[str, RetrievalCase]:
        """All entries. Their gold is resolved to documents and chunks of this run."""
        return self._cases.get()

    def _read_cases(self) -> dict[str, RetrievalCase]:
        return {case.case_id: case for case in golden_cases(self._parts.data(), self._parts.retrieval())}

    @property
    def queries(self) -> list[Query]:
        """The queries of this run."""
        return [Query(entry_id, self.cases[entry_id].query) for entry_id in self.ids]

    @property
    def digest(self) -> str:
        """Digest of all entries with their gold."""
        known = [[c.case_id, c.query, sorted(c.relevant.items()), c.by_chunk] for c in self.cases.values()]
        return text_digest(json.dumps(known))

    def case(self, entry_id: str) -> Case:
        """Return an entry as the engine and its row know it."""
        return self.cases[entry_id].case

    @property
    def experiment(self) -> Experiment:
        """The golden suite as an experiment, which generates nothing.

        Raises:
            PrerequisiteError, CriticalError: golden set, cutoff or retriever cannot be used.
        """
        return self._experiment.get()

    def _make_experiment(self) -> Experiment:
        settings, retrieval = self._parts.settings, self._parts.retrieval()
        check_cutoff(retrieval)
        name = settings.retriever
        with noting() as made:
            retriever = retriever_named(name, retrieval, self._registered, known_experiments(settings))
        pipeline = GoldenPipeline(retriever, name, settings.k, self.cases)
        code = {"pipeline": (__name__, type(pipeline).__module__), **made.code}
        return Experiment(
            GOLDEN,
            pipeline,
            ingredients={**made.of, **self._ingredients(name)},
            code=code,
            retriever=retriever,
            prepare=self._prepare(name),
            is_reusable=not is_own_code(code) and (name in RETRIEVERS or self._registered(name).is_reusable),
        )

    def _ingredients(self, name: str) -> dict[str, Any]:
        """Return what decides the ranking, beside what the retriever has noted itself."""
        cut = affecting(self._parts.settings, "golden")
        if name in RETRIEVERS:
            return {"documents": self._parts.data().digest, **cut}
        return {"retrieve_step_of": self._of_step(self._registered(name)), **cut}

    def _of_step(self, experiment: Experiment) -> str:
        """Return the fingerprint of an experiment, also without a file of questions: a search needs none."""
        try:
            return self._fingerprint(experiment)
        except FileNotFoundError:
            return fingerprint_of(experiment, self._parts.settings, "")

    def _prepare(self, name: str) -> Callable[[Sequence[Query]], None] | None:
        """Return what prepares index and vectors, and checks that they fit. BM25 needs neither."""
        retrieval = self._parts.retrieval()
        ready = self._parts.prepared(retrieval) if name in RETRIEVERS else self._registered(name).prepare
        if name == "bm25" or ready is None:
            return None

        def prepare(queries: Sequence[Query]) -> None:
            ready(queries)
            check_compatible(retrieval, queries[0].text)

        return prepare

    def result(self, row: ExperimentResult) -> RetrievalResult:
        """Return the retrieved documents of an entry's row, compared with its gold."""
        settings = self._parts.settings
        return retrieval_result(self.cases[row.query_id], row, settings.retriever, settings.k)
