"""The names of causes of failure, for code that shows causes without importing what finds them.

A trial has a cause, which is found by its evidence and by running it again. Its category follows from scores alone
(``measures.judged.categories``) and stands in tables of categories, never beside a cause.
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
