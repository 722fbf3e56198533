"""Loads a classifier and runs it on batches of similar length."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_harness.errors import ModelOutputError, PrerequisiteError
from rag_harness.judges.encoder.named_model import NamedModel
from rag_harness.models.device import there
from rag_harness.models.token_batches import MAX_TOKENS, token_batches
from rag_harness.registry import missing_package
from rag_harness.work.once import IMPORTING

GPU_TOKENS = 65_536
"""Tokens of a batch on a GPU, padding included. A GPU is slow by small batches, and a CPU by large ones."""
_LOADERS = {
    "pair": "AutoModelForSequenceClassification",
    "token": "AutoModelForTokenClassification",
    "sequence-to-sequence": "AutoModelForSeq2SeqLM",
}
_ABSOLUTE = ("bert", "roberta", "xlm-roberta", "camembert", "electra", "distilbert", "modernbert")
"""Architectures that cannot read beyond their positions. Those of T5 and of DeBERTa v3 are relative."""

TokenIds = Sequence[int]
Logits = npt.NDArray[np.float64]


@dataclass(frozen=True)
class LoadedClassifier:
    """A model and its tokenizer on their device.

    Attributes:
        longest: most tokens of one input.
    """

    model: Any
    tokenizer: Any
    device: str
    longest: int

    def plain(self, text: str) -> str:
        """Return ``text`` without the tokenizer's special tokens, in the same length. As text they mean nothing."""
        for token in self.tokenizer.all_special_tokens:
            text = text.replace(token, " " * len(token))
        # A tokenizer accepts no lone surrogates.
        return text.encode("utf-8", "replace").decode()

    def counts(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, without special tokens."""
        return [len(ids) for ids in self.tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]]

    def run(self, inputs: Sequence[TokenIds], forward: Callable[[Any, Any], Any]) -> Iterator[tuple[int, Logits]]:
        """Yield the place of each input with its logits, longest first.

        Args:
            inputs: token ids of each input.
            forward: takes ids and mask of a batch, returns its logits, the batch first.

        Raises:
            ModelOutputError: logits are no numbers.
        """
        import torch

        most = MAX_TOKENS if self.device == "cpu" else GPU_TOKENS
        for places in token_batches([len(ids) for ids in inputs], most):
            ids, mask = self._padded([inputs[place] for place in places])
            with torch.inference_mode():
                found = forward(ids.to(self.device), mask.to(self.device)).double().cpu().numpy()
            if not np.isfinite(found).all():
                raise ModelOutputError("The encoder judge gave logits that are no numbers.")
            yield from zip(places, found, strict=True)

    def _padded(self, batch: Sequence[TokenIds]) -> tuple[Any, Any]:
        """Return ids and mask of a batch. The mask hides the padding, so its id does not matter."""
        import torch

        lengths = np.array([len(ids) for ids in batch])
        mask = np.arange(lengths.max()) < lengths[:, None]
        ids = np.full(mask.shape, self.tokenizer.pad_token_id or 0, np.int64)
        ids[mask] = np.concatenate([np.asarray(each, np.int64) for each in batch])
        return torch.from_numpy(ids), torch.from_numpy(mask.astype(np.int64))


def probabilities(logits: Logits) -> Logits:
    """Return the softmax over the last axis."""
    raised: Logits = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares: Logits = raised / raised.sum(axis=-1, keepdims=True)
    return shares


def load_classifier(named: NamedModel, precision: str, device: str) -> LoadedClassifier:
    """Load a model from its folder. Nothing is downloaded, and no code of the model is run.

    Raises:
        PrerequisiteError: a package is missing, or the files cannot be loaded; says why.
    """
    with IMPORTING:
        # Set before the import: no telemetry, and no tokenizer threads, which a fork would break.
        os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        try:
            import torch
            import transformers
        except ImportError as error:
            raise PrerequisiteError(missing_package(f"judge {named.name!r}", error)) from error
        transformers.utils.logging.disable_progress_bar()
        there(device)
        wanted = torch.float32 if precision == "float32" else torch.bfloat16
        model, tokenizer = _from_files(transformers, named, wanted)
    return LoadedClassifier(model.to(device).eval(), tokenizer, device, _longest(named, model.config))


def _from_files(transformers: Any, named: NamedModel, dtype: Any) -> tuple[Any, Any]:
    local = {"local_files_only": True, "trust_remote_code": False}
    loader = getattr(transformers, _LOADERS[named.format.family])
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(named.folder), use_fast=True, **local)
        model, how = loader.from_pretrained(
            str(named.folder), use_safetensors=True, dtype=dtype, output_loading_info=True, **local
        )
    except Exception as error:
        # A damaged folder makes transformers, tokenizers, safetensors and torch raise many kinds of errors.
        why = next(iter(str(error).splitlines()), type(error).__name__)
        raise PrerequisiteError(f"The judge {named.name!r} in {named.folder} cannot be loaded: {why}") from error
    if how["missing_keys"]:
        raise PrerequisiteError(
            f"The weights of {named.name!r} in {named.folder} lack {', '.join(sorted(how['missing_keys'])[:3])}: it "
            f"would judge at random. They are of a model that was not trained as its config.json says."
        )
    if not tokenizer.is_fast:
        raise PrerequisiteError(f"The model {named.name!r} has no fast tokenizer, which tells the places of tokens.")
    return model, tokenizer


def _longest(named: NamedModel, config: Any) -> int:
    positions = getattr(config, "max_position_embeddings", 0) or 0
    absolute = config.model_type in _ABSOLUTE or getattr(config, "position_biased_input", False)
    if not absolute or not positions:
        return named.format.longest
    # Positions of RoBERTa begin behind the id of the padding.
    unused = (config.pad_token_id or 0) + 1 if "roberta" in config.model_type or config.model_type == "camembert" else 0
    return min(named.format.longest, positions - unused)
