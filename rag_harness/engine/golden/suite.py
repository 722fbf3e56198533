"""The golden suite of a run, in one process: its entries, and the experiment that looks them up."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from rag_harness.engine.fingerprint import fingerprint_of
from rag_harness.engine.golden.cases import check_cutoff, golden_cases, golden_ids, golden_slices
from rag_harness.engine.golden.pipeline import GoldenPipeline
from rag_harness.engine.golden.retrievers import RETRIEVERS, retriever_named
from rag_harness.errors import PrerequisiteError
from rag_harness.files.sources import text_digest
from rag_harness.measures.golden_run import RetrievalCase, RetrievalResult, retrieval_result
from rag_harness.pipelines import known_experiments
from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Experiment
from rag_harness.registry.noted_parts import noting
from rag_harness.registry.own_parts import is_own_code
from rag_harness.results.row import ExperimentResult
from rag_harness.retrieval.compatibility import check_compatible
from rag_harness.settings import affecting
from rag_harness.types import GOLDEN, Case, Query
from rag_harness.work.once import Once


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
        self._every_id, self._cases = Once(lambda: golden_ids(parts.data())), Once(self._read_cases)
        self._experiment = Once(self._make_experiment)
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
        """Return the fingerprint of an experiment, also where there is no file of questions: a search needs none."""
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
