"""What can be why a trial failed, by name. Whoever shows causes needs the names, and none of what finds them."""

from __future__ import annotations

JUDGE_DOUBTFUL, NOISE, GOLD_DOUBTFUL = "Judge Doubtful", "Noise", "Gold Doubtful"
OUTDATED_INFO, RETRIEVAL_MISS, LOGIC_FAILURE = "Outdated Info", "Retrieval Miss", "Logic Failure"
UNDETERMINED = "Undetermined"
TOP_LEVEL = (RETRIEVAL_MISS, OUTDATED_INFO, LOGIC_FAILURE, NOISE, GOLD_DOUBTFUL, JUDGE_DOUBTFUL, UNDETERMINED)
"""Every cause, the study's three first."""
