"""``encoder``: a classifier of a few hundred million weights that was trained to see unsupported claims.

It runs in this process. docs/explanation/encoder-judges.md says how, and what its authors have measured.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cached_property

from rag_harness.files.sources import text_digest
from rag_harness.judges.encoder.asked_support import EncoderFamily
from rag_harness.judges.encoder.loaded_classifier import LoadedClassifier, load_classifier
from rag_harness.judges.encoder.named_model import NamedModel, named_model
from rag_harness.judges.encoder.opinion import EncoderOpinion
from rag_harness.judges.encoder.pair_classifier import PairClassifier
from rag_harness.judges.encoder.pooled_readings import PooledReadings
from rag_harness.judges.encoder.sequence_to_sequence import SequenceToSequence
from rag_harness.judges.encoder.token_classifier import TokenClassifier
from rag_harness.measures.judged import JudgeQuestion, Material
from rag_harness.protocols import JudgeParts
from rag_harness.registry.revisions import REVISIONS
from rag_harness.settings import access_of


class EncoderJudge:
    """Asks a local classifier whether chunks support claims. Its weights are loaded for the first new claim.

    Args:
        parts: parts of the run.

    Raises:
        PrerequisiteError: the settings name no model that can judge; says why.
    """

    name = "encoder"
    asks_model = False
    deterministic = True
    reads_conversation = False

    def __init__(self, parts: JudgeParts) -> None:
        settings = parts.settings
        self._refusal = access_of(settings).refusal(local=True, profile=settings.profile)
        self._named: NamedModel = named_model(settings.judge_model, self._refusal)
        self._parts, self._settings = parts, settings

    @property
    def model(self) -> str:
        return self._named.name

    @cached_property
    def revision(self) -> str:
        """Digest of the model's files or commit, this part, precision and device; known without loading weights."""
        unusual = [each for each in (self._settings.precision, self._settings.device) if each not in ("float32", "cpu")]
        return text_digest("\0".join([self._named.revision, REVISIONS["judges/encoder"], *unusual]))

    def opinion(self, material: Material, asks: Collection[JudgeQuestion]) -> EncoderOpinion:  # noqa: ARG002 - texts are shared
        return EncoderOpinion(material, self._family, self._readings, self._named.format.english)

    @cached_property
    def _family(self) -> EncoderFamily:
        return family_for(self._named, self._load)

    @cached_property
    def _readings(self) -> PooledReadings:
        store = self._parts.stores.open("judged", self.model, self.revision)
        return PooledReadings(store, self._family.read, self._refusal)

    def _load(self) -> LoadedClassifier:
        return load_classifier(self._named, self._settings.precision, self._settings.device)


def family_for(named: NamedModel, load: Callable[[], LoadedClassifier]) -> EncoderFamily:
    """Return the family that asks a model."""
    if named.format.family == "token":
        return TokenClassifier(named.format, load, named.supporting)
    if named.format.family == "pair":
        return PairClassifier(named.format, load, named.supporting)
    return SequenceToSequence(named.format, load)


def create(parts: JudgeParts) -> EncoderJudge:
    """Return the judge that asks the classifier of the settings."""
    return EncoderJudge(parts)
