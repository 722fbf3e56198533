"""``embedded/alignment``: a deterministic judge without an LLM, from words and their MiniLM vectors.

It estimates; it does not understand. docs/dev/results/embedded-judge.md has its accuracy, and that of a model that
never reads the source.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

from rag_harness.files.sources import text_digest
from rag_harness.judges.embedded.judgement_reading import JudgementReading
from rag_harness.judges.embedded.kept import KeptJudgements
from rag_harness.judges.embedded.model import digest
from rag_harness.judges.embedded.opinion import EmbeddedOpinion
from rag_harness.measures.judged import JudgeQuestion, Material
from rag_harness.models.embedders.sentence_transformers import DEFAULT_MODEL
from rag_harness.protocols import JudgeParts, TextEmbedder
from rag_harness.registry.revisions import REVISIONS
from rag_harness.settings import access_of

MODEL = "embedded/alignment"


class EmbeddedJudge:
    """Judges by a few hundred coefficients over lexical and MiniLM features, whatever the run's embedder is."""

    name = "embedded"
    model = MODEL
    asks_model = False
    deterministic = True
    reads_conversation = False

    def __init__(self, parts: JudgeParts) -> None:
        self._parts = parts

    @cached_property
    def revision(self) -> str:
        """Digest of coefficients, rules and embedder; known without loading a model."""
        return text_digest("\0".join([digest(), REVISIONS["judges/embedded"], self._embedder.revision]))

    def opinion(self, material: Material, asks: Collection[JudgeQuestion]) -> EmbeddedOpinion:  # noqa: ARG002 - all are cheap
        return EmbeddedOpinion(material, self._reading, self._kept)

    @cached_property
    def _embedder(self) -> TextEmbedder:
        return self._parts.embedder(DEFAULT_MODEL)

    @cached_property
    def _reading(self) -> JudgementReading:
        return JudgementReading(lambda: self._embedder)

    @cached_property
    def _kept(self) -> KeptJudgements:
        access = access_of(self._parts.settings)
        store = self._parts.stores.open("judged", self.model, self.revision)
        refusal = access.refusal(local=True, profile=self._parts.settings.profile)
        return KeptJudgements(store, access.keeps != "nothing", refusal)


def create(parts: JudgeParts) -> EmbeddedJudge:
    """Return the embedded judge of a run."""
    return EmbeddedJudge(parts)
