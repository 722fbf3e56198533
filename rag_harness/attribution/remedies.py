"""One line of what to do about each cause; where a detail has no line of its own, that of its cause."""

from __future__ import annotations

from collections.abc import Mapping

REMEDIES: Mapping[tuple[str, str], str] = {
    ("Retrieval Miss", ""): "read the evidence beside the question: what would have to match?",
    ("Retrieval Miss", "no retriever"): "expect no more than the model knows, or give it a context",
    ("Retrieval Miss", "not in the index"): "add the page to the documents, or find out why it was left out",
    ("Retrieval Miss", "cut by a chunk border"): "larger chunks or more overlap: --rag-chunk-size, --rag-chunk-overlap",
    (
        "Retrieval Miss",
        "not found",
    ): "hybrid retrieval, a better embedder, or more candidates: --rag-candidates",
    ("Retrieval Miss", "found but ranked below k"): "rerank, or give the model more: --rag-top-k",
    (
        "Retrieval Miss",
        "lost in reranking",
    ): "the reranker put it too low: try another, --rag-rerank-model",
    ("Outdated Info", ""): "take outdated pages out of the index, or filter by status before the prompt",
    ("Logic Failure", ""): "a stronger model, or a prompt that asks for the figures of the sources",
    ("Logic Failure", "wrong refusal"): "soften the instruction to refuse, or a stronger model",
    (
        "Logic Failure",
        "answered what is not in the documents",
    ): "tell the model when to refuse",
    ("Logic Failure", "distracted"): "fewer chunks (--rag-top-k), or a reranker that puts the evidence first",
    ("Logic Failure", "incomplete multi-hop"): "ask for every part: a prompt that lists them, or sub-questions",
    ("Noise", ""): "temperature 0 and a seed; else answer each query several times and judge the mean",
    ("Gold Doubtful", ""): "read question, ground truth and evidence; mend the case or leave it out",
    ("Judge Doubtful", ""): "read the answer; hold the judge against people: rag-harness judge calibrate",
    ("Undetermined", ""): "give the case a ground truth and evidence quotes",
}
