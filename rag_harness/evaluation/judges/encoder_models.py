"""Encoder models: the model that the settings name, its input format and labels, and its loaded weights."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rag_harness.core.concurrency import IMPORTING
from rag_harness.core.errors import ModelOutputError, PrerequisiteError
from rag_harness.core.files import file_sha256, text_digest
from rag_harness.core.registry import missing_package
from rag_harness.models.endpoints import MAX_TOKENS, there, token_batches

# What each model was trained to read, as its authors' own code has it. A model is known by its name.

FamilyName = Literal["pair", "token", "sequence-to-sequence"]

_FACTCG = (
    '{chunk}\n\nChoose your answer: based on the paragraph above can we conclude that "{claim}"?\n\n'
    "OPTIONS:\n- Yes\n- No\nI think the answer is "
)
_UNSUPPORTED_FIRST = ("unsupported", "supported")
_SUPPORTED_FIRST = ("supported", "hallucinated")
_SUPPORTED_FIRST = ("supported", "hallucinated")


@dataclass(frozen=True, slots=True)
class InputFormat:
    """The input format of a model.

    Attributes:
        called: a part of the model's name in lower case; empty for models that are not known by name.
        family: the kind of model.
        text: chunk and claim in one text. Empty: the tokenizer joins the two itself.
        window: longest piece of a chunk that the model reads at once, in tokens or words; 0: as much as fits.
        unit: what ``window`` counts.
        longest: most tokens of one input. The model's own positions may allow fewer.
        labels: the labels in their order, as the authors state them; used where the model's own labels have no names.
        english: whether it was trained on English alone.
    """

    called: str
    family: FamilyName
    text: str = ""
    window: int = 400
    unit: Literal["tokens", "words"] = "tokens"
    longest: int = 512
    labels: tuple[str, ...] = ()
    english: bool = True


_JOINED = "{chunk}{eos}{claim}"
FORMATS = (
    # https://github.com/Liyan06/MiniCheck, minicheck/inference.py
    InputFormat("minicheck-flan-t5", "sequence-to-sequence", f"predict: {_JOINED}", 500, "words", 2048),
    InputFormat("minicheck-roberta", "pair", _JOINED, labels=_UNSUPPORTED_FIRST),
    InputFormat("minicheck-deberta", "pair", _JOINED, longest=2048, labels=_UNSUPPORTED_FIRST),
    # https://github.com/derenlei/FactCG, factcg/inference.py
    InputFormat("factcg-deberta", "pair", _FACTCG, 550, "words", 2048, _UNSUPPORTED_FIRST),
    # https://github.com/KRLabsOrg/LettuceDetect, lettucedetect/detectors/transformer.py
    InputFormat("lettucedect-base-modernbert-en", "token", window=0, longest=4096, labels=_SUPPORTED_FIRST),
    InputFormat("lettucedect-large-modernbert-en", "token", window=0, longest=4096, labels=_SUPPORTED_FIRST),
    InputFormat("nli-deberta-v3", "pair"),
)
_UNKNOWN = {
    "pair": InputFormat("", "pair", english=False),
    "token": InputFormat("", "token", window=0, longest=4096, english=False),
}


def known_format(model: str) -> InputFormat | None:
    """Return the format of a model that is known by name; None of any other.

    The name of a folder is its last part, or the part of the hub's cache that names the model.
    """
    parts = Path(model.partition("@")[0]).parts
    cached = [part for part in parts if part.startswith("models--")]
    name = (cached or parts or [""])[-1].lower()
    return next((known for known in FORMATS if known.called in name), None)


def format_of(model: str, architectures: Sequence[str]) -> InputFormat | None:
    """Return the input format of a model, by its name, or by the architectures in its config; None if unknown."""
    family = family_of(architectures)
    known = known_format(model)
    if known is not None:
        return known if known.family == family else None
    return _UNKNOWN.get(family or "")


def family_of(architectures: Sequence[str]) -> FamilyName | None:
    """Return the family of a model; None where it is not a classifier."""
    for architecture in architectures:
        if architecture.endswith("ForSequenceClassification"):
            return "pair"
        if architecture.endswith("ForTokenClassification"):
            return "token"
        if architecture == "T5ForConditionalGeneration":
            return "sequence-to-sequence"
    return None


# Which of a classifier's labels means that a claim is supported. The model says it; nobody guesses.

SUPPORTING = ("entailment", "entails", "supported", "supports", "support", "grounded", "consistent", "factual", "yes")
OPPOSING = ("hallucinated", "hallucination", "unsupported", "not_supported", "ungrounded", "inconsistent", "no")
_UNNAMED = re.compile(r"label_?\d+|\d+", re.I)


def supporting_label(model: str, named: Sequence[str], published: Sequence[str]) -> int:
    """Return the place of the label that means support.

    Args:
        model: name of the model, for messages.
        named: the labels of its config, in their order.
        published: the labels by its authors' code. They count where the config has no names.

    Raises:
        PrerequisiteError: no label has a name, or none of them, or several, are known to mean support.
    """
    if all(_UNNAMED.fullmatch(label) for label in named):
        if len(published) != len(named):
            raise PrerequisiteError(
                f"The labels of {model!r} have no names ({', '.join(named) or 'none at all'}): nobody can tell which "
                f"one means that a claim is supported. If you know it, write it into its config.json, for example "
                f'"id2label": {{"0": "unsupported", "1": "supported"}}, and give that folder.'
            )
        named = published
    folded = [re.sub(r"[\s-]+", "_", label.strip().lower()) for label in named]
    found = [place for place, label in enumerate(folded) if label in SUPPORTING]
    if not found and len(folded) == 2:
        found = [place for place, label in enumerate(folded) if label not in OPPOSING]
    if len(found) != 1 or len(folded) < 2:
        raise PrerequisiteError(
            f"The labels of {model!r} are {', '.join(named)}: one of several must mean that a claim is supported, and "
            f"be called {', '.join(SUPPORTING[:-1])} or {SUPPORTING[-1]}."
        )
    return found[0]


# Finds the model that the settings name, and reads its config. It loads no weights and runs no code of a model.

EXAMPLES = (
    "lytang/MiniCheck-RoBERTa-Large, KRLabsOrg/lettucedect-large-modernbert-en-v1, yaxili96/FactCG-DeBERTa-v3-Large, "
    "cross-encoder/nli-deberta-v3-base"
)
_FILES = ["*.json", "*.txt", "*.model", "*.safetensors"]
_ON_HUB = re.compile(r"(?P<name>[\w-][\w.-]*/[\w-][\w.-]*)(@(?P<commit>[0-9a-f]{40}))?")


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A model that can judge.

    Attributes:
        name: the folder as the settings have it, or the name on the hub without the commit.
        folder: where its files lie; None where a replay needs none.
        format: how it is asked.
        supporting: place of the label that means support; 0 for a model without labels.
        revision: its commit on the hub, or the digest of its files.
    """

    name: str
    folder: Path | None
    format: InputFormat
    supporting: int
    revision: str


def named_model(name: str, refusal: str = "") -> NamedModel:
    """Return the model of the folder or the hub name ``name``.

    Args:
        name: a folder, or a name on the hub, optionally with ``@`` and a commit.
        refusal: why no model may be called. A model that is known by name and commit then needs no files.

    Raises:
        PrerequisiteError: this machine lacks the model, or it cannot judge. The message has the reason.
    """
    if name and Path(name).is_dir():
        folder = Path(name)
        return _judging(name, folder, _digest(tuple(_stats(folder))))
    on_hub = _ON_HUB.fullmatch(name)
    if on_hub is None or name.startswith(("embedded/", "mock/")):
        raise PrerequisiteError(
            f"The judge 'encoder' needs a model, and --rag-judge-model={name or '…'} is neither a folder here nor a "
            f"name on the hub. Name one: {EXAMPLES}, or the folder of a downloaded model."
        )
    known = known_format(name)
    if refusal and on_hub["commit"] and known:
        return NamedModel(on_hub["name"], None, known, 0, on_hub["commit"])
    folder = _from_hub(on_hub["name"], on_hub["commit"], not refusal)
    return _judging(on_hub["name"], folder, folder.name)


def _judging(name: str, folder: Path, revision: str) -> NamedModel:
    config = _config(name, folder)
    if "auto_map" in config:
        raise PrerequisiteError(
            f"The model {name!r} brings code of its own, which would run here with all your rights (auto_map in its "
            f"config.json). Such code is never run. Use a model that transformers can load by itself: {EXAMPLES}."
        )
    architectures = [str(each) for each in config.get("architectures") or ()]
    asked = format_of(name, architectures)
    if asked is None:
        raise PrerequisiteError(_cannot_judge(name, architectures))
    if not any(folder.glob("*.safetensors")):
        raise PrerequisiteError(
            f"The model {name!r} has no *.safetensors in {folder}. Other files of weights can hold code, and are not "
            f"read. Save it again with save_pretrained."
        )
    has_labels = asked.family != "sequence-to-sequence"
    place = supporting_label(name, _labels(config), asked.labels) if has_labels else 0
    return NamedModel(name, folder, asked, place, revision)


def _cannot_judge(name: str, architectures: list[str]) -> str:
    what = ", ".join(architectures) or "of no architecture that its config.json names"
    known = known_format(name)
    if known is not None:
        return f"The model {name!r} is {what}, and models of that name are of the family {known.family!r}."
    if family_of(architectures) == "sequence-to-sequence":
        return (
            f"The model {name!r} is {what}: nothing in it says what it was trained to answer. Known is "
            f"lytang/MiniCheck-Flan-T5-Large; a folder with it has to be called so, too."
        )
    return (
        f"The model {name!r} is {what}. A judge has to be a classifier of pairs (…ForSequenceClassification), "
        f"of tokens (…ForTokenClassification), or MiniCheck's T5."
    )


def _config(name: str, folder: Path) -> Mapping[str, Any]:
    try:
        found = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PrerequisiteError(f"The model {name!r} in {folder} has no readable config.json: {error}") from error
    if not isinstance(found, dict):
        raise PrerequisiteError(f"The config.json of the model {name!r} in {folder} is not a JSON object.")
    return found


def _labels(config: Mapping[str, Any]) -> list[str]:
    """Return the labels in their order. A config without any has as many unnamed ones as transformers gives it."""
    named = config.get("id2label")
    if not isinstance(named, dict) or not all(str(place) in named for place in range(len(named))):
        return [f"LABEL_{place}" for place in range(int(config.get("num_labels") or 2))]
    return [str(named[str(place)]) for place in range(len(named))]


def _stats(folder: Path) -> list[tuple[Path, int, int]]:
    files = sorted({file for pattern in _FILES for file in folder.glob(pattern) if file.is_file()})
    return [(file, file.stat().st_size, file.stat().st_mtime_ns) for file in files]


@lru_cache(maxsize=8)
def _digest(stats: tuple[tuple[Path, int, int], ...]) -> str:
    """Return the digest of all files that decide a verdict. A process reads them once, unless they change."""
    return text_digest("\0".join(f"{file.name} {file_sha256(file)}" for file, *_ in stats))


def _from_hub(name: str, commit: str | None, may_download: bool) -> Path:
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise PrerequisiteError(missing_package(f"judge {name!r}", error)) from error
    why: Exception | None = None
    for local in (True, False) if may_download else (True,):
        try:
            return Path(snapshot_download(name, revision=commit, allow_patterns=_FILES, local_files_only=local))
        except (OSError, ValueError) as error:
            why = error
    remedy = "" if may_download else f" A replay without its files needs its commit: {name}@COMMIT."
    raise PrerequisiteError(
        f"The weights of {name!r} are neither in the cache of the hub here nor available from it "
        f"({next(iter(str(why).splitlines()), type(why).__name__)}). Give the folder of a downloaded model with "
        f"--rag-judge-model.{remedy}"
    ) from why


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
            ModelOutputError: logits are not numbers.
        """
        import torch

        most = MAX_TOKENS if self.device == "cpu" else GPU_TOKENS
        for places in token_batches([len(ids) for ids in inputs], most):
            ids, mask = self._padded([inputs[place] for place in places])
            with torch.inference_mode():
                found = forward(ids.to(self.device), mask.to(self.device)).double().cpu().numpy()
            if not np.isfinite(found).all():
                raise ModelOutputError("The encoder judge gave logits that are not numbers.")
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
        PrerequisiteError: a package is missing, or the files cannot be loaded. The message has the reason.
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
