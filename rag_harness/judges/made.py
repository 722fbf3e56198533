"""The judge that the settings name."""

from __future__ import annotations

from typing import cast

from rag_harness.judges.spent import CountedParts
from rag_harness.measures.judged import Judge
from rag_harness.models.names import judge_name
from rag_harness.protocols import JudgeParts
from rag_harness.registry import resolve


def judge_of(parts: JudgeParts) -> Judge:
    """Return the judge of a run, made of its parts.

    Raises:
        RegistryError: no judge has the name that the settings say.
        PrerequisiteError: it needs a package that is not installed.
    """
    return cast("Judge", resolve("judges", judge_name(parts.settings))(CountedParts(parts)))
