"""Evaluate RAG pipelines with pytest: every query a test case, thresholds as gates, runs replayed offline.

What a suite, a pipeline, a part or a measure of your own imports is exported here. ``architecture.md`` lists the
two other public modules. Everything else is private: its names and places may change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rag_harness.registry.installed import VERSION

if TYPE_CHECKING:
    from rag_harness.dataset.ingest import Loader
    from rag_harness.errors import RagHarnessError
    from rag_harness.expectations import AnswerSeen, ExpectationKind, Finding
    from rag_harness.gates import Gate, parse_gate
    from rag_harness.gates.early_stop import EarlyStop, random_order
    from rag_harness.measures.composite import CompositeMeasure
    from rag_harness.measures.golden_run import RetrievalResult
    from rag_harness.measures.judged import (
        Claim,
        Judge,
        JudgedMeasure,
        Material,
        Opinion,
        Relevancy,
        Support,
        Usefulness,
        Verdict,
        Verdicts,
        supported_share,
    )
    from rag_harness.measures.measure import Measure, RankingMeasure, RowMeasure, Score
    from rag_harness.measures.ranking_arrays import Found
    from rag_harness.models.anew import seed_shift
    from rag_harness.notebook.evaluating import aevaluate, evaluate
    from rag_harness.notebook.evaluation import Evaluation
    from rag_harness.notebook.gate_check import GateCheck
    from rag_harness.notebook.measure_figures import MeasureFigure
    from rag_harness.pipelines.generation import Generator
    from rag_harness.pipelines.parts import RunParts
    from rag_harness.pipelines.step_trace import StepTrace
    from rag_harness.pipelines.trace import Trace
    from rag_harness.pipelines.trial_step import TrialStep
    from rag_harness.protocols import (
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
    from rag_harness.report.frames import load_results
    from rag_harness.results.row import ExperimentResult
    from rag_harness.retrieval.chunking import Chunker, ChunkingSettings
    from rag_harness.retrieval.retrieval import Retrieval, spec_of
    from rag_harness.retrieval.retrievers import RerankedRetriever
    from rag_harness.settings import Settings
    from rag_harness.stats.components import variance_components
    from rag_harness.types import (
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

__version__ = VERSION

_NAMES = {
    "dataset.ingest": "Loader",
    "errors": "RagHarnessError",
    "expectations": "AnswerSeen ExpectationKind Finding",
    "gates": "Gate parse_gate",
    "gates.early_stop": "EarlyStop random_order",
    "measures.composite": "CompositeMeasure",
    "measures.golden_run": "RetrievalResult",
    "measures.judged": "Claim Judge JudgedMeasure Material Opinion Relevancy Support Usefulness Verdict Verdicts "
    "supported_share",
    "measures.measure": "Measure RankingMeasure RowMeasure Score",
    "measures.ranking_arrays": "Found",
    "models.anew": "seed_shift",
    "notebook.evaluating": "aevaluate evaluate",
    "notebook.evaluation": "Evaluation",
    "notebook.measure_figures": "MeasureFigure",
    "notebook.gate_check": "GateCheck",
    "pipelines.generation": "Generator",
    "pipelines.parts": "RunParts",
    "pipelines.step_trace": "StepTrace",
    "pipelines.trace": "Trace",
    "pipelines.trial_step": "TrialStep",
    "protocols": "ChatModel ChatParts Embedder Experiment Index JudgeParts Parts PersistentIndex Pipeline Reranker "
    "RetrievalParts Retriever TokenEmbedder Tokenizer",
    "report.frames": "load_results",
    "results.row": "ExperimentResult",
    "retrieval.chunking": "Chunker ChunkingSettings",
    "retrieval.retrieval": "Retrieval spec_of",
    "retrieval.retrievers": "RerankedRetriever",
    "settings": "Settings",
    "stats.components": "variance_components",
    "types": "Answer Call Case Chunk Completion Decision Document Evidence Expectation ExpectedTool Hit IndexSpec "
    "Matrix Message PipelineOutput Query Scenario Stage Timings TokenVectors TrialId Usage Vector",
}
"""The public names by their modules."""
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}

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


def __getattr__(name: str) -> Any:
    """Import a public name on first use. pytest imports this package in every suite, so its import must be cheap."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"rag_harness.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    """Return the public names, those that nobody has asked for yet too."""
    return __all__
