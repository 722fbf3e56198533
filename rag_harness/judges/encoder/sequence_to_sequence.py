"""MiniCheck's Flan-T5: its first word is "1" for a supported claim. Nothing is generated; one step is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from rag_harness.errors import PrerequisiteError
from rag_harness.judges.encoder.loaded_classifier import TokenIds, probabilities
from rag_harness.judges.encoder.pair_reading import PairReading

NO, YES = 3, 209
"""Ids of the two first words, by the authors' code."""
_WORDS = {NO: "▁", YES: "▁1"}
"""The words that a T5 has there: "0" is written as two, of which the first is the blank space."""


class SequenceToSequence(PairReading):
    """The softmax over two words of the first step of the decoder."""

    def support_of(self, inputs: Sequence[TokenIds]) -> dict[int, float]:
        model = self._checked

        def forward(ids: Any, mask: Any) -> Any:
            # The decoder begins with id 0, the padding.
            first = ids.new_zeros((len(ids), 1))
            return model(input_ids=ids, attention_mask=mask, decoder_input_ids=first).logits[:, 0, [NO, YES]]

        return {place: float(probabilities(logits)[1]) for place, logits in self.loaded.run(inputs, forward)}

    @cached_property
    def _checked(self) -> Any:
        """The model, whose vocabulary was looked at.

        Raises:
            PrerequisiteError: the two words stand elsewhere: it is another model than its name says.
        """
        there = dict(zip(_WORDS, self.loaded.tokenizer.convert_ids_to_tokens(list(_WORDS)), strict=True))
        if there != _WORDS:
            raise PrerequisiteError(
                f"This T5 has {there[NO]!r} and {there[YES]!r} where MiniCheck's has {_WORDS[NO]!r} and "
                f"{_WORDS[YES]!r} (ids {NO} and {YES}): its first word would mean nothing. It is another model."
            )
        return self.loaded.model
