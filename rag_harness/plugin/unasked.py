"""Says that no test of a run asks the questions that somebody has named for it."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from rag_harness.plugin.options import ini, names_questions
from rag_harness.types import GOLDEN

if TYPE_CHECKING:
    from rag_harness.plugin.session import RagSession


def unasked_questions(session: RagSession, suites: Collection[str]) -> str:
    """Say that the questions which somebody has named for this run are asked by none of its ``suites``; else empty."""
    settings = session.settings
    if set(suites) != {GOLDEN} or settings.dataset or not names_questions(settings, ini(session.config)):
        return ""
    if settings.path(settings.golden) == settings.queries_path:
        return ""
    return (
        f"rag: no test of this run asks {settings.queries_path.name} (--rag-queries, RAG_QUERIES): the golden suite "
        f"asks {settings.path(settings.golden).name}. To have it ask others: --rag-golden FILE"
    )
