"""Models of a dry run: recorded ones, those in this process, and mocks for chat, embeddings and reranking."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from rag_harness.core.package import install
from rag_harness.core.protocols import Parts, RetrievalParts, Tokenizer
from rag_harness.core.registry import REVISIONS
from rag_harness.core.settings import Settings
from rag_harness.core.settings.profiles import BASELINE_READER, BUILT_IN_PROFILES, EMBEDDED_URL, Profile
from rag_harness.core.text.comparison import compared_words
from rag_harness.core.types import Completion, Hit, Matrix, Message, Usage, Vector
from rag_harness.models.array_store import ArrayStore, key_of
from rag_harness.models.endpoints import chat_name, embedder_lacks, embedder_name, reranker_lacks

_ASKED_ELSEWHERE = ("writer_model", "writer_base_url", "rewrite_model", "rewrite_base_url", "user_model")
"""Options of models besides those of a profile. Without them the profile's chat model does the work, or a rule."""


def of_dry_run(settings: Settings) -> Settings:
    """Return the settings with models that a dry run has; any other run's as they are.

    Nothing is called over a network, so calls that are not recorded are answered here. ``stands_in`` states it.
    """
    if not settings.dry_run or _is_recorded(settings):
        return settings
    settings = replace(settings, qdrant_url="")
    if _answers_here(settings):
        return settings
    where = settings.folder_said("cassettes")
    why = f"DRY_RUN: profile {settings.profile!r} has no recordings of these questions in {where}/, so"
    for reads in _readers(settings):
        if not embedder_lacks(reads):
            return replace(reads, stands_in=f"{why} {BASELINE_READER} answers")
    return replace(
        _with_models(settings, "mock"),
        stands_in=f"{why} all answers and their sources are MOCK, placeholders, and no gate on them is judged. With an "
        f"embedder installed {BASELINE_READER} answers: {install('local-light')}",
    )


def _is_recorded(settings: Settings) -> bool:
    """Return whether answers of the profile are recorded; where questions have vectors, some of these questions."""
    recordings = settings.folder("cassettes")
    vectors = list((recordings / (settings.stores_of or settings.profile) / "vectors").glob("*/"))
    keys = [key_of("query", text) for text in _questions(settings.queries_path)]
    if vectors and keys:
        return any(found is not None for each in vectors for found in ArrayStore([each]).get(keys))
    return any(each.is_file() for each in (recordings / settings.profile).rglob("*"))


def _questions(file: Path) -> Iterator[str]:
    """Yield the questions of a file of lines; none of any other file. What is wrong in it is said by its reader."""
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines() if file.suffix == ".jsonl" else []
    except (OSError, ValueError):
        return
    for line in lines:
        with suppress(ValueError, TypeError, KeyError):
            yield str(json.loads(line)["query"])


def _answers_here(settings: Settings) -> bool:
    """Return whether every model of the pipelines answers in this process, and can be loaded."""
    is_remote = chat_name(settings) == "openai" and settings.chat_base_url != EMBEDDED_URL
    return not (
        is_remote or embedder_name(settings) == "openai" or embedder_lacks(settings) or reranker_lacks(settings)
    )


def _readers(settings: Settings) -> Iterator[Settings]:
    """Yield the settings of the package's reader, with each backend that may be installed."""
    for backend in dict.fromkeys((settings.embed_backend, "onnx-int8", "torch")):
        yield replace(_with_models(settings, "embedded"), embed_backend=backend)


def _with_models(settings: Settings, profile: str) -> Settings:
    """Return the settings with all models of a profile, whatever was set by options of their own."""
    chosen = BUILT_IN_PROFILES[profile]
    models: dict[str, Any] = {each.name: getattr(chosen, each.name) for each in fields(Profile)}
    others: dict[str, Any] = dict.fromkeys((*_ASKED_ELSEWHERE, "judge", "panel"), "")
    return replace(settings, profile=profile, **(others | models))


# A mock chat model. It serves a trial run on any data. Its answer says that it is a placeholder.


class MockChat:
    """Answers every prompt with the same words, in the requested form."""

    model = "mock/placeholder"

    async def complete(
        self, messages: Sequence[Message], response_format: Mapping[str, Any] | None = None
    ) -> Completion:
        cites = " [Source 1]" if "[Source 1:" in messages[-1].content else ""
        said: dict[str, Any] = {"answer": f"Placeholder answer of the mock profile.{cites}"}
        if "reasoning_steps" in json.dumps(response_format or {}):
            said = {"reasoning_steps": ["Placeholder step of the mock profile."], **said}
        return Completion(json.dumps(said), self.model, Usage(calls=1), total_ms=0.0, ttft_ms=0.0)


def create_chat(_parts: Parts) -> MockChat:
    """Return the mock chat model."""
    return MockChat()


# A mock embedder, for trial runs: hashed bag-of-words vectors, which only show shared words. It needs no model.

_DIMENSION = 512


class WordTokenizer:
    """Counts words and punctuation marks."""

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(re.findall(r"\w+|[^\w\s]", text)) for text in texts]


class MockEmbedder:
    """Counts words in hashed buckets and scales the vector to unit length."""

    model = "mock/hashed-words"
    revision = REVISIONS["embedders/mock"]
    needs_no_model = True
    dimension = _DIMENSION
    max_tokens = 100_000

    def tokenizer(self) -> Tokenizer:
        return WordTokenizer()

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return np.stack([_counts(text) for text in texts]) if texts else np.empty((0, _DIMENSION), np.float32)

    embed_queries = embed_documents


def _counts(text: str) -> Vector:
    buckets = [crc32(word.encode()) % _DIMENSION for word in compared_words(text)]
    counts = np.bincount(buckets or [0], minlength=_DIMENSION).astype(np.float32)
    return counts / np.float32(np.linalg.norm(counts))


def create_embedder(_parts: Parts) -> MockEmbedder:
    """Return the mock embedder."""
    return MockEmbedder()


class MockReranker:
    """Counts shared words."""

    model = "mock/word-overlap"
    revision = REVISIONS["rerankers/mock"]

    def rerank(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        words = set(compared_words(query))
        scored = [(len(words & set(compared_words(hit.chunk.text))), hit) for hit in hits]
        scored.sort(key=lambda pair: -pair[0])
        return [hit.reranked(float(score), rank) for rank, (score, hit) in enumerate(scored, 1)]


def create_reranker(_parts: RetrievalParts) -> MockReranker:
    """Return the mock reranker."""
    return MockReranker()
