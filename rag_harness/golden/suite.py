"""The golden suite of a run, in one process: its entries, and the experiment that looks them up."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

from rag_harness.errors import PrerequisiteError
from rag_harness.golden.cases import check_cutoff, golden_cases, golden_ids, golden_slices
from rag_harness.golden.pipeline import GoldenPipeline
from rag_harness.golden.run import RetrievalCase, RetrievalResult, retrieval_result
from rag_harness.once import Once
from rag_harness.pipelines import known_experiments
from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Experiment, Retriever
from rag_harness.results.row import ExperimentResult
from rag_harness.retrieval.compatibility import check_compatible
from rag_harness.retrieval.retrievers import retriever_named
from rag_harness.types import Case, Query

GOLDEN = "golden"


class GoldenSuite:
    """Entries, what counts as found, and the retriever under test, each made when it is first needed.

    Args:
        parts: what retrievers are made of.
        registered: an experiment by its name; its retrieve step can be the one under test.
    """

    def __init__(self, parts: RunParts, registered: Callable[[str], Experiment]) -> None:
        self._parts, self._registered = parts, registered
        self._every_id, self._cases = Once(lambda: golden_ids(parts)), Once(self._read_cases)
        self._experiment = Once(self._make_experiment)
        self.broken = ""
        """Why nothing of it can be run; empty where it can."""

    @property
    def ids(self) -> list[str]:
        """Ids of the entries that this run looks at, in their order. Reading them builds nothing.

        Raises:
            PrerequisiteError: the golden set cannot be read.
        """
        return self._every_id.get()[: self._parts.settings.limit or None]

    @property
    def known_ids(self) -> Sequence[str]:
        """Ids of all entries; none where they cannot be read."""
        try:
            return self._every_id.get()
        except PrerequisiteError:
            return ()

    @property
    def slices(self) -> list[dict[str, str]]:
        """What gates can slice by, of each entry; builds nothing."""
        return golden_slices(self._parts)

    @property
    def cases(self) -> dict[str, RetrievalCase]:
        """All entries, with what counts as found resolved to documents and chunks of this run."""
        return self._cases.get()

    def _read_cases(self) -> dict[str, RetrievalCase]:
        return {case.case_id: case for case in golden_cases(self._parts)}

    @property
    def queries(self) -> list[Query]:
        """What the retriever will be asked in this run."""
        return [Query(entry_id, self.cases[entry_id].query) for entry_id in self.ids]

    @property
    def digest(self) -> str:
        """Digest of all entries and of what counts as found."""
        known = [[c.case_id, c.query, sorted(c.relevant.items()), c.by_chunk] for c in self.cases.values()]
        return blake2b(json.dumps(known).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()

    def case(self, entry_id: str) -> Case:
        """Return an entry as the engine and its row know it."""
        entry = self.cases[entry_id]
        return Case(
            Query(entry_id, entry.query),
            query_type=entry.slices.get("query_type", "direct"),
            qrels=entry.relevant,
            metadata=entry.slices,
        )

    @property
    def experiment(self) -> Experiment:
        """The golden suite as an experiment, which generates nothing.

        Raises:
            PrerequisiteError, CriticalError: golden set, cutoff or retriever cannot be used.
        """
        return self._experiment.get()

    def _make_experiment(self) -> Experiment:
        parts, name = self._parts, self._parts.settings.retriever
        check_cutoff(parts)
        retriever = self._retriever(name)
        pipeline = GoldenPipeline(retriever, name, parts.settings.k, self.cases)
        return Experiment(
            GOLDEN, pipeline, ingredients=self._ingredients(name), retriever=retriever, prepare=self._prepare(name)
        )

    def _retriever(self, name: str) -> Retriever:
        return retriever_named(name, self._parts, lambda each: self._registered(each).pipeline, known_experiments())

    def _ingredients(self, name: str) -> dict[str, Any]:
        parts, settings = self._parts, self._parts.settings
        made = {"retriever": name, "k": settings.k, "candidates": settings.candidates, "documents": parts.kb_digest}
        return {
            **made,
            "chunks": [settings.chunk_size, settings.chunk_overlap, settings.dataset],
            "embedder": [parts.embedder.model, parts.embedder.revision],
            "reranker": [parts.reranker.model, parts.reranker.revision],
            "index": settings.index,
        }

    def _prepare(self, name: str) -> Callable[[Sequence[Query]], None] | None:
        """Return what makes index and vectors ready and compares them; words need neither."""
        if name == "bm25":
            return None

        def prepare(queries: Sequence[Query]) -> None:
            texts = [query.text for query in queries]
            self._parts.prepare(texts)
            check_compatible(self._parts, texts[0])

        return prepare

    def result(self, row: ExperimentResult) -> RetrievalResult:
        """Return what the row of an entry says, set against what should be found."""
        settings = self._parts.settings
        return retrieval_result(self.cases[row.query_id], row, settings.retriever, settings.k)
