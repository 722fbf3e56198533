"""The encoder judge: a local classifier says whether a chunk supports a claim. Its files are private to it.

``judge`` makes it. ``named_model`` finds the files of the model, ``input_formats`` says what its authors train it on,
``label_order`` which of its labels means support. A family of models is a file: ``pair_classifier``,
``sequence_to_sequence`` (both are ``pair_reading``) and ``token_classifier``. Torch is imported for the first claim.
"""

from __future__ import annotations

from rag_harness.judges.encoder.judge import EncoderJudge, create

__all__ = ["EncoderJudge", "create"]
