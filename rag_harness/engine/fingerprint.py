"""Everything that changes a result, in one digest per experiment.

The parts are kept apart, so that two runs can be told to differ in data (not comparable) or in models (what is being
compared).
"""

from __future__ import annotations

import ast
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rag_harness.pipelines.parts import RunParts
from rag_harness.settings import Settings
from rag_harness.settings.profiles import EMBEDDED_URL

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
    return {
        "prompts": [_digest(repr(generator.prompts)), _sources(f"{_PACKAGE}.prompts")],
        "chat": _chat(settings),
    }


def _retrieval(pipeline: Any, parts: RunParts) -> dict[str, Any]:
    if not hasattr(pipeline, "retriever"):
        return {}
    settings, embedder = parts.settings, parts.embedder
    known: dict[str, Any] = {
        "chunking": [settings.chunk_size, settings.chunk_overlap, _sources(f"{_PACKAGE}.chunking")],
        "embedder": [embedder.model, embedder.revision],
        "index": settings.index,
        "top_k": getattr(pipeline, "top_k", settings.top_k),
    }
    if hasattr(pipeline, "reranker"):
        candidates = getattr(pipeline, "candidates", settings.candidates)
        known["reranker"] = [pipeline.reranker.model, pipeline.reranker.revision, candidates]
    return known


def _chat(settings: Settings) -> list[Any]:
    sampling = [settings.temperature, settings.seed, settings.max_output_tokens]
    reader = _sources(f"{_PACKAGE}.chat.embedded") if settings.chat_base_url == EMBEDDED_URL else ""
    return [settings.chat_model, settings.chat_base_url, sampling, reader]


@lru_cache
def _sources(module: str) -> str:
    """Digest a module's source, and that of the modules beside and below it that it imports."""
    start = None if module.partition(".")[0] in sys.stdlib_module_names else _file_of(module)
    if start is None:
        return ""
    # What lies beside a module that was installed by itself is other people's.
    room = start if start.parent.name == "site-packages" else start.parent
    above = module.count(".") + (start.name == "__init__.py")
    top = start.parents[min(above, len(start.parents) - 1)]
    found: dict[Path, bytes] = {}
    waiting = sorted(start.parent.glob("*.py")) if start.name == "__init__.py" else [start]
    while waiting:
        file = waiting.pop()
        if file not in found and file.is_relative_to(room):
            found[file] = file.read_bytes()
            waiting += _imported_files(file, found[file], top)
    return hashlib.blake2b(b"\0".join(found[file] for file in sorted(found)), digest_size=8).hexdigest()


def _file_of(module: str) -> Path | None:
    loaded = getattr(sys.modules.get(module), "__file__", None)
    if loaded:
        return Path(loaded)
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin) if spec and spec.origin and Path(spec.origin).is_file() else None


def _imported_files(file: Path, source: bytes, top: Path) -> Iterator[Path]:
    """Yield the files that ``file`` imports from below ``top``, found by their paths: nothing is imported for it."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        for base, name in _imports(node, file, top):
            target = base.joinpath(*name.split("."))
            yield from (each for each in (target.with_suffix(".py"), target / "__init__.py") if each.is_file())


def _imports(node: ast.AST, file: Path, top: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(node, ast.Import):
        yield from ((top, alias.name) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = file.parents[node.level - 1] if node.level else top
        prefix = f"{node.module}." if node.module else ""
        yield from ((base, f"{prefix}{alias.name}") for alias in node.names)
        if node.module:
            yield base, node.module


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
