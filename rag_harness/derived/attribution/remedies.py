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
    (
        "Retrieval Miss",
        "lost the subject",
    ): "rewrite follow-ups before the search, as c1 does, or search for what was said, too",
    (
        "Retrieval Miss",
        "lost in history",
    ): "read the earlier answer that misled it; search for what the user said alone",
    (
        "Logic Failure",
        "lost the subject",
    ): "give the model what was said before, or the question in words that stand alone",
    (
        "Logic Failure",
        "lost in history",
    ): "read the earlier answer that misled it; ask for an answer by the sources alone",
    (
        "Retrieval Miss",
        "never searched",
    ): "tell it when it has to search; or search once before it decides",
    (
        "Retrieval Miss",
        "searched for the wrong thing",
    ): "read its queries beside the evidence; where they are right, mend the retriever",
    (
        "Retrieval Miss",
        "stopped too early",
    ): "allow more searches, and have it check each part of the question before it answers",
    (
        "Retrieval Miss",
        "found and not used",
    ): "give the answer all that its searches found, or look at what drops it",
    (
        "Retrieval Miss",
        "searched on after all was found",
    ): "have it check what it found before it searches again; keep earlier hits",
    (
        "Logic Failure",
        "searched on after all was found",
    ): "have it check what it found before it searches again: later hits mislead it",
    ("Outdated Info", ""): "take outdated pages out of the index, or filter by status before the prompt",
    ("Logic Failure", ""): "a stronger model, or a prompt that asks for the figures of the sources",
    (
        "Logic Failure",
        "cut short",
    ): "allow longer answers: --rag-max-output-tokens, max_tokens; if empty, read the whole reply",
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
    ("Logic Failure", "found and not said"): "ask for it in the prompt: it stands in the sources; or a stronger model",
    (
        "Logic Failure",
        "says what it must not",
    ): "forbid it in the prompt; if no source has it, a stronger model",
    (
        "Logic Failure",
        "cites another source",
    ): "ask for the source of each statement in the prompt",
    ("Logic Failure", "cites nothing"): "ask for citations in the prompt, and show one as an example",
    (
        "Logic Failure",
        "cites a source that is not there",
    ): "number the sources in the prompt, and say that no others exist",
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
    (
        "Gold Doubtful",
        "no page has what is expected",
    ): "read the expectation: no page has it. Mend it, or add the page",
    ("Judge Doubtful", ""): "read the answer; hold the judge against people: rag-harness judge calibrate",
    (
        "Undetermined",
        "the pipeline does not say what it looked up",
    ): "return a PipelineOutput with the prompt's chunks as context; a service: [read] contexts",
    ("Undetermined", ""): "give the case a ground truth and evidence quotes",
    ("Expectation Broken", ""): "read what stands there beside what is expected: one of the two is to be mended",
    (
        "Expectation Broken",
        "form of the answer",
    ): "ask for this form in the prompt; JSON: the model's own JSON mode",
    ("Expectation Broken", "wording"): "ask for these words in the prompt, or mend the expectation: no source has them",
    ("Expectation Broken", "took too long"): "see which step takes the time: the report's speed; or raise the limit",
    (
        "Expectation Broken",
        "cost too much",
    ): "fewer chunks (--rag-top-k), a cheaper model; or raise the limit",
    ("Expectation Broken", "decided otherwise"): "look at the thresholds by which the pipeline decides",
    ("Expectation Broken", "says something else than before"): "read both answers; --snapshot-update keeps the new one",
    (
        "Expectation Broken",
        "declines in words of its own",
    ): "have the pipeline report that it abstains, or expect these words",
    (
        "Expectation Broken",
        "a source that must not be in the prompt",
    ): "filter the page out before the prompt, or take it out of the index",
}
