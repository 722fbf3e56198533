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

from rag_harness.pipelines.parts import RunParts
from rag_harness.profiles import EMBEDDED_URL
from rag_harness.settings import Settings

_PACKAGE = "rag_harness"


def experiment_parts(pipeline: Any, parts: RunParts, queries_digest: str, built_by: str = "") -> dict[str, Any]:
    """Return what decides the results of ``pipeline``, by name, ready for JSON.

    Of a pipeline made of this package's parts everything is known. Of any other: the source of its module, and what it
    says of itself in an attribute ``fingerprint``. ``built_by`` names the module that put it together.
    """
    settings = parts.settings
    return {
        "data": {"queries": queries_digest, **_documents(pipeline, parts)},
        "profile": settings.profile,
        "mode": settings.mode,
        "source": [_sources(module) for module in (type(pipeline).__module__, built_by) if module],
        "own": str(getattr(pipeline, "fingerprint", "")),
        **_generation(pipeline, settings),
        **_retrieval(pipeline, parts),
    }


def digest_of_parts(parts: Mapping[str, Any]) -> str:
    """Return the digest that stands in every row."""
    return _digest(json.dumps(parts, sort_keys=True))


def file_digest(file: Path) -> str:
    """Return the digest of a file's bytes."""
    return hashlib.blake2b(file.read_bytes(), digest_size=8).hexdigest()


def _documents(pipeline: Any, parts: RunParts) -> dict[str, str]:
    return {"documents": parts.kb_digest} if hasattr(pipeline, "retriever") else {}


def _generation(pipeline: Any, settings: Settings) -> dict[str, Any]:
    generator = getattr(pipeline, "generator", None)
    if generator is None:
        return {}
    return {"prompts": _digest(repr(generator.prompts)), "chat": _chat(settings)}


def _retrieval(pipeline: Any, parts: RunParts) -> dict[str, Any]:
    if not hasattr(pipeline, "retriever"):
        return {}
    settings, embedder = parts.settings, parts.embedder
    known: dict[str, Any] = {
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
