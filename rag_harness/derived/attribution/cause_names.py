"""The names of causes of failure, for code that shows causes without importing what finds them.

A trial has a cause, which is found by running it again. It also has a category, which follows from its scores
(``measures.judged.categories``). The two are independent, and may contradict each other.
"""

from __future__ import annotations

JUDGE_DOUBTFUL, NOISE, GOLD_DOUBTFUL = "Judge Doubtful", "Noise", "Gold Doubtful"
OUTDATED_INFO, RETRIEVAL_MISS, LOGIC_FAILURE = "Outdated Info", "Retrieval Miss", "Logic Failure"
UNDETERMINED, EXPECTATION_BROKEN = "Undetermined", "Expectation Broken"
TOP_LEVEL = (
    RETRIEVAL_MISS,
    OUTDATED_INFO,
    LOGIC_FAILURE,
    NOISE,
    GOLD_DOUBTFUL,
    JUDGE_DOUBTFUL,
    UNDETERMINED,
    EXPECTATION_BROKEN,
)
"""Every cause, the study's three first."""
CAUSE_MEANINGS = {
    RETRIEVAL_MISS: "what the answer needs was not in the chunks that the model was given",
    OUTDATED_INFO: "the answer follows an old version of a document",
    LOGIC_FAILURE: "the model was given what the answer needs, and its answer is wrong all the same",
    NOISE: "the same question, asked again, was answered rightly",
    GOLD_DOUBTFUL: "the ground truth itself may be wrong",
    JUDGE_DOUBTFUL: "the answer has what the ground truth asks for, so the judge may be wrong",
    UNDETERMINED: "the trial does not have what is needed to find its cause",
    EXPECTATION_BROKEN: "the answer breaks what the question demands of its form, its wording, its time or its cost",
}
"""What each cause means, as the end of a sentence."""

_FEW_USEFUL = (
    "The kind is by scores, and few chunks were useful (context_precision < 0.4); the cause is by the evidence, and "
    "what the answer needs was among them."
)
_MOST_USEFUL = (
    "The kind is by scores, and most chunks were useful (context_precision > 0.6); the cause is by the evidence, and "
    "what the answer needs was not among them."
)
_KEEPS_TO_CHUNKS = (
    "The kind is by scores, which hold the answer against its chunks: it keeps to them; the cause is by the gold, "
    "which the answer lacks."
)
_RIGHT_TO_ABSTAIN = (
    "The kind is by the case, which the documents answer; the cause is by what the model was given, which does not: to "
    "abstain from that was right."
)
_APART = {
    ("Retrieval Failure", LOGIC_FAILURE): _FEW_USEFUL,
    ("Total Failure", LOGIC_FAILURE): _FEW_USEFUL,
    ("Hallucination", RETRIEVAL_MISS): _MOST_USEFUL,
    ("Wrong Abstention", RETRIEVAL_MISS): _RIGHT_TO_ABSTAIN,
    **{("Clean Pass", cause): _KEEPS_TO_CHUNKS for cause in (RETRIEVAL_MISS, OUTDATED_INFO, LOGIC_FAILURE, NOISE)},
}


def why_apart(kind: str, cause: str) -> str:
    """Return in one sentence why an answer's category and the cause of its failure contradict each other.

    Empty where they do not, or where one of them is not known.
    """
    return _APART.get((kind, cause), "")
