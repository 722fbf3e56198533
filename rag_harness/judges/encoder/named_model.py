"""Finds the model that the settings name, and reads its config. It loads no weights and runs no code of a model."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from rag_harness.errors import PrerequisiteError
from rag_harness.files.sources import file_sha256, text_digest
from rag_harness.judges.encoder.input_formats import InputFormat, family_of, format_of, known_format
from rag_harness.judges.encoder.label_order import supporting_label
from rag_harness.registry import missing_package

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
        name: a folder, or a name on the hub, with ``@`` and a commit where one is wanted.
        refusal: why no model may be called. A model that is known by name and commit then needs no files.

    Raises:
        PrerequisiteError: there is no such model here, or it cannot judge; says why.
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
        raise PrerequisiteError(f"The config.json of the model {name!r} in {folder} is no JSON object.")
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
        f"The weights of {name!r} are neither in the cache of the hub here nor to be had from it "
        f"({next(iter(str(why).splitlines()), type(why).__name__)}). Give the folder of a downloaded model with "
        f"--rag-judge-model.{remedy}"
    ) from why
