"""Validate a knowledge base with its questions and golden set, and draw its links."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rag_harness.authoring.kb.checks import ValidationReport, read_material
from rag_harness.authoring.kb.near_duplicates import check_near_duplicates
from rag_harness.authoring.kb.page_checks import check_diagrams, check_languages, check_pages, flowchart
from rag_harness.authoring.kb.plan_checks import check_facts, check_plan_files, check_version_pairs
from rag_harness.authoring.kb.query_checks import check_golden_set, check_queries
from rag_harness.core.progress import uncollected


def validate(
    kb_dir: Path, queries: Path | None = None, golden: Path | None = None, types: Sequence[str] = ()
) -> ValidationReport:
    """Run every check on the pages of ``kb_dir``, and on the question files that are given.

    ``types`` are types of questions beside the known ones.

    Raises:
        DataError: the folder or a named question file is missing, or the folder has no page.
    """
    with uncollected():
        return _checked(kb_dir, queries, golden, tuple(types))


def _checked(kb_dir: Path, queries: Path | None, golden: Path | None, types: tuple[str, ...]) -> ValidationReport:
    material = read_material(kb_dir)
    report = ValidationReport(kb_dir)
    report.checks += check_pages(material)
    report.checks += check_languages(material)
    report.checks += check_plan_files(material)
    report.checks += check_facts(material)
    report.checks += check_version_pairs(material)
    report.checks += check_diagrams(material)
    report.checks += check_queries(material, queries, types)
    report.checks += check_golden_set(material, golden)
    report.checks += check_near_duplicates(material)
    return report


def graph(kb_dir: Path) -> str:
    """Return the links between the pages of ``kb_dir`` as a Mermaid flowchart.

    Raises:
        DataError: the folder is missing, or has no page.
    """
    return flowchart(read_material(kb_dir))
