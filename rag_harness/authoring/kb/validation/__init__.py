"""Validates a knowledge base with its questions and golden set, and draws its links."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rag_harness.authoring.kb.validation.report import CheckResult, Finding, ValidationReport

__all__ = ["CheckResult", "Finding", "ValidationReport", "graph", "validate"]


def validate(
    kb_dir: Path, queries: Path | None = None, golden: Path | None = None, types: Sequence[str] = ()
) -> ValidationReport:
    """Run every check on the pages of ``kb_dir``, and on the question files that are given.

    ``types`` are types of questions beside the known ones.

    Raises:
        DataError: there is no such folder, no page in it, or a question file that was named is missing.
    """
    from rag_harness.work.garbage import uncollected

    with uncollected():
        return _checked(kb_dir, queries, golden, tuple(types))


def _checked(kb_dir: Path, queries: Path | None, golden: Path | None, types: tuple[str, ...]) -> ValidationReport:
    from rag_harness.authoring.kb.validation import (
        golden_checks,
        mermaid,
        page_languages,
        pages,
        plan,
        query_checks,
        similarity,
        stated,
        version_pairs,
    )
    from rag_harness.authoring.kb.validation.material import read_material

    material = read_material(kb_dir)
    report = ValidationReport(kb_dir)
    report.checks += pages.checks(material)
    report.checks += page_languages.checks(material)
    report.checks += plan.checks(material)
    report.checks += stated.checks(material)
    report.checks += version_pairs.checks(material)
    report.checks += mermaid.checks(material)
    report.checks += query_checks.checks(material, queries, types)
    report.checks += golden_checks.checks(material, golden)
    report.checks += similarity.checks(material)
    return report


def graph(kb_dir: Path) -> str:
    """Return the links between the pages of ``kb_dir`` as a Mermaid flowchart.

    Raises:
        DataError: there is no such folder, or no page in it.
    """
    from rag_harness.authoring.kb.validation.material import read_material
    from rag_harness.authoring.kb.validation.topology import flowchart

    return flowchart(read_material(kb_dir))
