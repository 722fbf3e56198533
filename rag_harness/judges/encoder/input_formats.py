"""What each model was trained to read, as its authors' own code has it. A model is known by its name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

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
    """How a model is asked.

    Attributes:
        called: a part of the model's name in lower case; empty for models that nobody knows by name.
        family: the kind of model.
        text: chunk and claim in one text. Empty: the tokenizer joins the two itself.
        window: longest piece of a chunk that the model reads at once, in tokens or words; 0: as much as fits.
        unit: what ``window`` counts.
        longest: most tokens of one input. The model's own positions may allow fewer.
        labels: the labels in their order, by the authors, for a model whose own labels have no names.
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
    """Return how a model is asked, by its name, or by the architectures in its config; None where nobody can know."""
    family = family_of(architectures)
    known = known_format(model)
    if known is not None:
        return known if known.family == family else None
    return _UNKNOWN.get(family or "")


def family_of(architectures: Sequence[str]) -> FamilyName | None:
    """Return the family of a model; None where it is no classifier."""
    for architecture in architectures:
        if architecture.endswith("ForSequenceClassification"):
            return "pair"
        if architecture.endswith("ForTokenClassification"):
            return "token"
        if architecture == "T5ForConditionalGeneration":
            return "sequence-to-sequence"
    return None
