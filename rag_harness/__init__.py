"""Evaluate RAG pipelines with pytest: every query a test case, thresholds as gates, runs replayed offline.

What a suite, a pipeline, a part or a measure of your own imports is exported here. ``architecture.md`` lists the
two other public modules. Everything else is private: its names and places may change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rag_harness.core.errors import RagHarnessError
    from rag_harness.core.protocols import (
        ChatModel,
        ChatParts,
        Embedder,
        Experiment,
        Index,
        JudgeParts,
        Parts,
        PersistentIndex,
        Pipeline,
        Reranker,
        RetrievalParts,
        Retriever,
        TokenEmbedder,
        Tokenizer,
    )
    from rag_harness.core.settings import Settings
    from rag_harness.core.types import (
        Answer,
        Call,
        Case,
        Chunk,
        Completion,
        Decision,
        Document,
        Evidence,
        Expectation,
        ExpectedTool,
        Hit,
        IndexSpec,
        Matrix,
        Message,
        PipelineOutput,
        Query,
        Scenario,
        Stage,
        Timings,
        TokenVectors,
        TrialId,
        Usage,
        Vector,
    )
    from rag_harness.data.documents import Loader
    from rag_harness.evaluation.measures.judged import JudgedMeasure, supported_share
    from rag_harness.evaluation.measures.measure import CompositeMeasure, Measure, RankingMeasure, RowMeasure, Score
    from rag_harness.evaluation.measures.opinion import (
        Claim,
        Judge,
        Material,
        Opinion,
        Relevancy,
        Support,
        Usefulness,
        Verdict,
        Verdicts,
    )
    from rag_harness.evaluation.measures.ranking_arrays import Found
    from rag_harness.frontends.notebook.evaluate import aevaluate, evaluate
    from rag_harness.frontends.notebook.evaluation import Evaluation, GateCheck, MeasureFigure
    from rag_harness.models.calls import seed_shift
    from rag_harness.pipelines.parts import Generator, RunParts
    from rag_harness.pipelines.trace import StepTrace, Trace, TrialStep
    from rag_harness.records.expectations import AnswerSeen, ExpectationKind, Finding
    from rag_harness.records.golden_result import RetrievalResult
    from rag_harness.records.row import ExperimentResult
    from rag_harness.retrieval.builder import Retrieval, spec_of
    from rag_harness.retrieval.chunking import Chunker, ChunkingSettings
    from rag_harness.retrieval.retrievers import RerankedRetriever
    from rag_harness.runs.gates import Gate, parse_gate
    from rag_harness.runs.gates.early_stopping import EarlyStop, random_order
    from rag_harness.stats.agreement import variance_components
    from rag_harness.tables.trials import load_results

__all__ = [
    "Answer",
    "AnswerSeen",
    "Call",
    "Case",
    "ChatModel",
    "ChatParts",
    "Chunk",
    "Chunker",
    "ChunkingSettings",
    "Claim",
    "Completion",
    "CompositeMeasure",
    "Decision",
    "Document",
    "EarlyStop",
    "Embedder",
    "Evaluation",
    "Evidence",
    "Expectation",
    "ExpectationKind",
    "ExpectedTool",
    "Experiment",
    "ExperimentResult",
    "Finding",
    "Found",
    "Gate",
    "GateCheck",
    "Generator",
    "Hit",
    "Index",
    "IndexSpec",
    "Judge",
    "JudgeParts",
    "JudgedMeasure",
    "Loader",
    "Material",
    "Matrix",
    "Measure",
    "MeasureFigure",
    "Message",
    "Opinion",
    "Parts",
    "PersistentIndex",
    "Pipeline",
    "PipelineOutput",
    "Query",
    "RagHarnessError",
    "RankingMeasure",
    "Relevancy",
    "RerankedRetriever",
    "Reranker",
    "Retrieval",
    "RetrievalParts",
    "RetrievalResult",
    "Retriever",
    "RowMeasure",
    "RunParts",
    "Scenario",
    "Score",
    "Settings",
    "Stage",
    "StepTrace",
    "Support",
    "Timings",
    "TokenEmbedder",
    "TokenVectors",
    "Tokenizer",
    "Trace",
    "TrialId",
    "TrialStep",
    "Usage",
    "Usefulness",
    "Vector",
    "Verdict",
    "Verdicts",
    "__version__",
    "aevaluate",
    "evaluate",
    "load_results",
    "parse_gate",
    "random_order",
    "seed_shift",
    "spec_of",
    "supported_share",
    "variance_components",
]


if TYPE_CHECKING:
    __version__: str

_NAMES = {
    "core.errors": "RagHarnessError",
    "core.protocols": "ChatModel ChatParts Embedder Experiment Index JudgeParts Parts PersistentIndex Pipeline "
    "Reranker RetrievalParts Retriever TokenEmbedder Tokenizer",
    "core.settings": "Settings",
    "core.types": "Answer Call Case Chunk Completion Decision Document Evidence Expectation ExpectedTool Hit "
    "IndexSpec Matrix Message PipelineOutput Query Scenario Stage Timings TokenVectors TrialId "
    "Usage Vector",
    "data.documents": "Loader",
    "evaluation.measures.judged": "JudgedMeasure supported_share",
    "evaluation.measures.measure": "CompositeMeasure Measure RankingMeasure RowMeasure Score",
    "evaluation.measures.opinion": "Claim Judge Material Opinion Relevancy Support Usefulness Verdict Verdicts",
    "evaluation.measures.ranking_arrays": "Found",
    "frontends.notebook.evaluate": "aevaluate evaluate",
    "frontends.notebook.evaluation": "Evaluation GateCheck MeasureFigure",
    "models.calls": "seed_shift",
    "pipelines.parts": "Generator RunParts",
    "pipelines.trace": "StepTrace Trace TrialStep",
    "records.expectations": "AnswerSeen ExpectationKind Finding",
    "records.golden_result": "RetrievalResult",
    "records.row": "ExperimentResult",
    "retrieval.builder": "Retrieval spec_of",
    "retrieval.chunking": "Chunker ChunkingSettings",
    "retrieval.retrievers": "RerankedRetriever",
    "runs.gates": "Gate parse_gate",
    "runs.gates.early_stopping": "EarlyStop random_order",
    "stats.agreement": "variance_components",
    "tables.trials": "load_results",
}
"""The public names by their modules."""
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Import a public name on first use. pytest imports this package in every suite, so its import must be cheap."""
    if name == "__version__":
        from rag_harness.core.package import VERSION

        return VERSION
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"rag_harness.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    """Return the public names, those that nobody has asked for yet too."""
    return __all__
