"""Pair classifiers: MiniCheck's RoBERTa and DeBERTa, FactCG, and cross-encoders of natural language inference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rag_harness.judges.encoder.input_formats import InputFormat
from rag_harness.judges.encoder.loaded_classifier import LoadedClassifier, TokenIds, probabilities
from rag_harness.judges.encoder.pair_reading import PairReading


class PairClassifier(PairReading):
    """The softmax over a classifier's labels; the one that means support counts.

    Args:
        asked_as: how the model is asked.
        load: loads the model.
        supporting: place of the label that means support.
    """

    def __init__(self, asked_as: InputFormat, load: Callable[[], LoadedClassifier], supporting: int) -> None:
        super().__init__(asked_as, load)
        self._supporting = supporting

    def support_of(self, inputs: Sequence[TokenIds]) -> dict[int, float]:
        model, tokenizer = self.loaded.model, self.loaded.tokenizer
        # BERT was trained with two segments. RoBERTa's config has them too, and its tokenizer never tells them apart.
        trained = "token_type_ids" in tokenizer.model_input_names and not self._format.text
        has_segments = trained and getattr(model.config, "type_vocab_size", 0) > 1

        def forward(ids: Any, mask: Any) -> Any:
            said = {"token_type_ids": _segments(ids, tokenizer.sep_token_id)} if has_segments else {}
            return model(input_ids=ids, attention_mask=mask, **said).logits

        found = self.loaded.run(inputs, forward)
        return {place: float(probabilities(logits)[self._supporting]) for place, logits in found}


def _segments(ids: Any, separator: int) -> Any:
    """Return 0 up to the first separator and 1 behind it, as BERT was trained."""
    ends = (ids == separator).long()
    return (ends.cumsum(1) - ends).clamp(max=1)
