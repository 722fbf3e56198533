"""``fused``: a judge with few, large calls. Each text is split once, and all its numbered items are judged in one call.

Cost of an answer in calls. Equal requests are sent only once in a process:

====================================================  =====================================================
faithfulness, context precision, answer relevancy     3: A takes the answer apart (claims, and the questions that it
                                                      would answer), B judges all claims, C all chunks, beside A.
                                                      One more where something was left out or unreadable: 4 at
                                                      most, 3 in a row at most
context precision alone                               1; 0 for chunks that were judged for the same question before
answer relevancy alone, faithfulness alone            1, 2
each further pair of claims and source                1: factuality; claims of the answer by the ground truth; of the
                                                      ground truth by contexts or answer; nuggets by the answer
the ground truth, where its claims are wanted         1 for all experiments
criteria in words, twelve together                    1; one more where something was left out
====================================================  =====================================================

One more call is needed for each further pair with missing verdicts. An empty text needs none.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

from rag_harness.files.sources import json_digest
from rag_harness.judges.llm.fused_opinion import FusedOpinion, Tools
from rag_harness.judges.llm.judge_chat import asking_of, revision_of
from rag_harness.judges.llm.known import KnownUsefulness
from rag_harness.judges.llm.nearness import Nearness
from rag_harness.measures.judged import JudgeQuestion, Material
from rag_harness.protocols import JudgeParts
from rag_harness.settings import access_of
from rag_harness.work.once import Once


class FusedJudge:
    """Asks the model of role ``judge`` with as few calls as possible.

    Args:
        parts: parts of the run.
    """

    name = "fused"
    asks_model = True
    deterministic = False
    reads_conversation = True

    def __init__(self, parts: JudgeParts) -> None:
        self._parts = parts
        self._tools = Tools(
            asking_of(parts, shares=True), Once(self._known), Nearness(parts.embedder), getattr(parts, "repeat", 0)
        )

    @property
    def model(self) -> str:
        return self._tools.asking.chat.model

    @cached_property
    def revision(self) -> str:
        """Digest of prompts and source, and of the embedder that relevancy is measured with."""
        embedder = self._parts.embedder()
        return json_digest([revision_of(self.name), embedder.model, embedder.revision])

    def opinion(self, material: Material, asks: Collection[JudgeQuestion]) -> FusedOpinion:
        return FusedOpinion(self._tools, material, asks)

    def _known(self) -> KnownUsefulness:
        store = self._parts.stores.open("judged", self.model, revision_of(self.name))
        return KnownUsefulness(store, keeps_missing=access_of(self._parts.settings).records)


def create(parts: JudgeParts) -> FusedJudge:
    """Return the judge of role ``judge`` that makes few calls."""
    return FusedJudge(parts)
