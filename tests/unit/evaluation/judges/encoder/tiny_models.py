"""Tiny models of the architectures that judge, made from configs: 16 wide, a word a token, random or biased."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_TEXT = """
    a the lamp lamps fee zinc oak return returns refund refunds take takes within five seven days is free shop opens
    at nine ten parcels to Norway cost twelve euros They are not sent on Sundays How long does and passage passages
    output question following predict . , : ? ! 1 2 3 45
"""
WORDS = _TEXT.split()
FRAMES = {
    "roberta": ("<s> $A </s>", "<s> $A </s> </s> $B </s>"),
    "deberta-v2": ("[CLS] $A [SEP]", "[CLS] $A [SEP] $B [SEP]"),
    "bert": ("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"),
    "modernbert": ("[CLS] $A [SEP]", "[CLS] $A [SEP] $B [SEP]"),
    "t5": ("$A </s>", "$A </s> $B </s>"),
}
MANY = 240
"""Words of the vocabulary, so that the ids that T5 is read at are there."""


def save_tokenizer(folder: Path, kind: str) -> None:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast

    special = _special(kind)
    words = [*special.values(), *WORDS]
    words += [f"w{number}" for number in range(len(words), MANY)]
    if kind == "t5":
        words[3], words[209] = "▁", "▁1"
    ids = {word: number for number, word in enumerate(dict.fromkeys(words))}
    fast = Tokenizer(WordLevel(ids, unk_token=special["unk_token"]))
    fast.pre_tokenizer = Whitespace()
    single, pair = FRAMES[kind]
    named = [(token, ids[token]) for token in dict.fromkeys(special.values())]
    fast.post_processor = TemplateProcessing(single=single, pair=pair, special_tokens=named)
    read = ["input_ids", "attention_mask", *(["token_type_ids"] if kind == "bert" else [])]
    PreTrainedTokenizerFast(tokenizer_object=fast, model_input_names=read, **special).save_pretrained(folder)


def _special(kind: str) -> dict[str, str]:
    if kind == "t5":
        return {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    if kind == "roberta":
        own = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
        return own | {"cls_token": "<s>", "sep_token": "</s>"}
    own = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]"}
    return own | ({"eos_token": "[SEP]"} if kind == "deberta-v2" else {})


def save_model(
    folder: Path,
    architecture: str,
    labels: Sequence[str] = ("unsupported", "supported"),
    biases: Sequence[float] = (),
    positions: int = 600,
    **changed: Any,
) -> Path:
    """Save a tiny model, and return its folder.

    Args:
        folder: where it is saved.
        architecture: name of its class in transformers.
        labels: its labels.
        biases: of the labels, with weights of 0: the softmax over them is exact. Empty: random weights.
        positions: positions that it has.
        changed: keys of its config.json that are changed after it was saved; None takes one out.
    """
    import torch
    import transformers

    torch.manual_seed(len(architecture))
    model_class = getattr(transformers, architecture)
    kind = model_class.config_class.model_type
    config = model_class.config_class(**_sizes(kind, positions), **_named(labels))
    model = model_class(config)
    if biases:
        head = getattr(model.classifier, "out_proj", model.classifier)
        with torch.no_grad():
            head.weight.zero_()
            head.bias.copy_(torch.tensor(list(biases)))
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    save_tokenizer(folder, kind)
    change_config(folder, **changed)
    return folder


def change_config(folder: Path, **changed: Any) -> None:
    file = folder / "config.json"
    config = json.loads(file.read_text()) | changed
    file.write_text(json.dumps({name: value for name, value in config.items() if value is not None}))


def _named(labels: Sequence[str]) -> dict[str, Any]:
    if not labels:
        return {}
    return {"id2label": dict(enumerate(labels)), "label2id": {label: place for place, label in enumerate(labels)}}


def _sizes(kind: str, positions: int) -> dict[str, Any]:
    if kind == "t5":
        return {"vocab_size": MANY, "d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}
    sizes = {
        "vocab_size": MANY,
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "max_position_embeddings": positions,
        "initializer_range": 1.0,
        "pad_token_id": 1 if kind == "roberta" else 0,
    }
    if kind == "modernbert":
        ends = {"bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}
        return sizes | ends | {"initializer_cutoff_factor": 3.0}
    relative = {"relative_attention": True, "position_biased_input": False, "pos_att_type": ["p2c", "c2p"]}
    return sizes | (relative if kind == "deberta-v2" else {})
