"""Everything that changes a result, in one digest per experiment.

The parts are kept apart, so that two runs can be told to differ in data (not comparable) or in models (what is being
compared).
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rag_harness.pipelines import built_in
from rag_harness.pipelines.parts import RunParts
from rag_harness.profiles import EMBEDDED_URL
from rag_harness.settings import Settings

_PACKAGE = "rag_harness"


def experiment_parts(experiment: str, pipeline: Any, parts: RunParts, queries_digest: str) -> dict[str, Any]:
    """Return what decides the results of ``experiment``, by name, ready for JSON.

    A pipeline of the user's own is known by its module's source; what else decides its answers it may say in an
    attribute ``fingerprint``.
    """
    settings = parts.settings
    module = type(pipeline).__module__
    known: dict[str, Any] = {
        "data": {"queries": queries_digest},
        "profile": settings.profile,
        "mode": settings.mode,
        "source": _sources(module),
    }
    if experiment in built_in() and module.startswith(f"{_PACKAGE}.pipelines"):
        known["prompts"] = _digest(repr(parts.prompts(experiment)))
        known["chat"] = _chat(settings)
        known |= _retrieval(pipeline, parts)
    else:
        known["own"] = str(getattr(pipeline, "fingerprint", ""))
    known["data"] |= known.pop("kb", {})
    return known


def digest_of_parts(parts: Mapping[str, Any]) -> str:
    """Return the digest that stands in every row."""
    return _digest(json.dumps(parts, sort_keys=True))


def file_digest(file: Path) -> str:
    """Return the digest of a file's bytes."""
    return hashlib.blake2b(file.read_bytes(), digest_size=8).hexdigest()


def _retrieval(pipeline: Any, parts: RunParts) -> dict[str, Any]:
    if not hasattr(pipeline, "retriever"):
        return {}
    settings, embedder = parts.settings, parts.embedder
    known: dict[str, Any] = {
        "kb": {"documents": parts.kb_digest},
        "chunking": [settings.chunk_size, settings.chunk_overlap, _sources(f"{_PACKAGE}.chunking")],
        "embedder": [embedder.model, embedder.revision],
        "top_k": settings.top_k,
    }
    if hasattr(pipeline, "reranker"):
        known["reranker"] = [pipeline.reranker.model, pipeline.reranker.revision, settings.candidates]
    return known


def _chat(settings: Settings) -> list[Any]:
    sampling = [settings.temperature, settings.seed, settings.max_output_tokens]
    reader = _sources(f"{_PACKAGE}.chat.embedded") if settings.chat_base_url == EMBEDDED_URL else ""
    return [settings.chat_model, settings.chat_base_url, sampling, reader]


def _sources(module: str) -> str:
    """Digest a module's source, and that of the modules beside it that it imports."""
    return _digest("".join(text for _, text in sorted(_closure(module, module.rpartition(".")[0], {}).items())))


def _closure(module: str, room: str, found: dict[str, str]) -> dict[str, str]:
    if module in found:
        return found
    files = list(_files(module))
    found[module] = "".join(file.read_text(encoding="utf-8") for file in files)
    for file in files:
        for imported in _imports(file):
            if imported.startswith((f"{room}.", f"{module}.")) and room:
                _closure(imported, room, found)
    return found


def _files(module: str) -> Iterator[Path]:
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        spec = None
    if spec is not None and spec.origin and Path(spec.origin).is_file():
        origin = Path(spec.origin)
        yield from sorted(origin.parent.glob("*.py")) if origin.name == "__init__.py" else [origin]


def _imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
