"""One line of advice for each cause. A detail without a line has that of its cause."""

from __future__ import annotations

from collections.abc import Mapping

REMEDIES: Mapping[tuple[str, str], str] = {
    ("Retrieval Miss", ""): "read the evidence beside the question: what would have to match?",
    (
        "Retrieval Miss",
        "no retriever",
    ): "give it a context; if it has one, return it in the PipelineOutput",
    ("Retrieval Miss", "not in the index"): "add the page to the documents, or find out why it was left out",
    ("Retrieval Miss", "cut by a chunk border"): "larger chunks or more overlap: --rag-chunk-size, --rag-chunk-overlap",
    (
        "Retrieval Miss",
        "the page came without the passage",
    ): "send chunks whole if something shortens them (truncation); else larger chunks",
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
    ("Logic Failure", "cut short"): "allow longer answers: --rag-max-output-tokens, or max_tokens of your service",
    (
        "Logic Failure",
        "not read where it stood",
    ): "read the prompt as sent: has it all chunks, whole? else a reranker, or fewer chunks",
    ("Logic Failure", "wrong refusal"): "soften the instruction to refuse, or a stronger model",
    (
        "Logic Failure",
        "answered what is not in the documents",
    ): "tell the model when to refuse",
    ("Logic Failure", "distracted"): "fewer chunks (--rag-top-k), or a reranker that drops what does not belong",
    ("Logic Failure", "incomplete multi-hop"): "ask for every part: a prompt that lists them, or sub-questions",
    ("Noise", ""): "temperature 0 and a seed; else answer each query several times and judge the mean",
    (
        "Gold Doubtful",
        "the gold is that of another question",
    ): "look for rows that have shifted: mend the case, and those beside it",
    ("Gold Doubtful", ""): "read question, ground truth and evidence; mend the case or leave it out",
    (
        "Gold Doubtful",
        "the answer has the figure of the evidence",
    ): "read the evidence: if it is right, mend the figure of the ground truth",
    ("Judge Doubtful", ""): "read the answer; hold the judge against people: rag-harness judge calibrate",
    (
        "Undetermined",
        "the pipeline does not say what it looked up",
    ): "return a PipelineOutput with the prompt's chunks as context; a service: [read] contexts",
    ("Undetermined", ""): "give the case a ground truth and evidence quotes",
}
