"""Validate a knowledge base with its questions and golden set, find near-duplicate pages, and draw its links."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from rag_harness.authoring.kb.checks import CheckResult, Material, ValidationReport, read_material
from rag_harness.authoring.kb.page import Page
from rag_harness.authoring.kb.page_checks import check_diagrams, check_languages, check_pages, flowchart
from rag_harness.authoring.kb.plan_checks import check_facts, check_plan_files, check_version_pairs
from rag_harness.authoring.kb.query_checks import check_golden_set, check_queries
from rag_harness.core.progress import uncollected
from rag_harness.core.text.comparison import with_single_blanks
from rag_harness.core.text.shingles import Hashing, Resemblances, candidates, signature

THRESHOLD = 0.3
"""From this Jaccard similarity on, two pages are listed. It compares the sets of three-word runs."""
_SAME = 0.9
_BAND = 2
"""Rows of a signature: enough to find a pair at the threshold."""
_SHORT = 12
"""Paragraphs with fewer words are phrases ("See also …") that several pages may have."""


def check_near_duplicates(material: Material) -> list[CheckResult]:
    """Return the two checks."""
    return [_pasted(material), _near_duplicates(material)]


def _pasted(material: Material) -> CheckResult:
    check, versions = CheckResult("pasted paragraphs"), _versions(material)
    places: dict[str, list[tuple[Page, int]]] = {}
    for page in material.pages.values():
        for line, text in page.paragraphs:
            if text.count(" ") + 1 >= _SHORT:
                places.setdefault(with_single_blanks(text), []).append((page, line))
    steps = {with_single_blanks(step) for page in material.planned.values() for step in page.steps or ()}
    for text, found in places.items():
        if text in steps:
            continue  # planned word for word: similar procedures have similar steps
        names = list(dict.fromkeys(page.doc_id for page, _ in found))
        if len(names) > 1 and frozenset(names) not in versions:
            page, line = found[0]
            check.note(
                material.at(page.doc_id, line), f"{text[:60]!r}… stands word for word in {_list(names[1:])} too."
            )
    check.checked = f"{len(places)} paragraphs"
    return check


def _near_duplicates(material: Material) -> CheckResult:
    check, versions = CheckResult("near-duplicates", f"{len(material.pages)} pages"), _versions(material)
    groups: dict[tuple[str, ...], list[str]] = {}
    for page in material.pages.values():
        groups.setdefault(tuple(_words(page)), []).append(page.doc_id)
    for names in groups.values():
        if len(names) > 1:
            check.note(material.at(names[0]), f"the same words as {_list(names[1:])}.")
    for first, second, share in _pairs({names[0]: words for words, names in groups.items()}):
        if frozenset((first, second)) not in versions:
            check.note(material.at(first), f"near {second}: {share:.0%} of their three-word runs are the same.")
    return check


def _versions(material: Material) -> frozenset[frozenset[str]]:
    """Return pairs that should be similar: versions of one page, planned to share nearly all facts."""
    plan = material.plan
    found = ((plan.page(pair.outdated), plan.page(pair.current)) for pair in plan.version_pairs or ()) if plan else ()
    return frozenset(frozenset((old.filename, new.filename)) for old, new in found if old and new and old.facts)


def _words(page: Page) -> list[str]:
    return [word for _, text in page.paragraphs for word in text.casefold().split()]


def _pairs(words: dict[str, tuple[str, ...]]) -> Iterator[tuple[str, str, float]]:
    """Yield near-duplicate pages. A copy of an earlier page is compared no further: that would be quadratic."""
    if not words:
        return
    names, hashing = list(words), Hashing()
    runs = [hashing.runs(" ".join(of_page)) for of_page in words.values()]
    resemblances, copies = Resemblances(runs), set[int]()
    for number, earlier in candidates(np.stack([signature(each) for each in runs]), _BAND).items():
        compared = [near for near in earlier if near not in copies]
        shares = resemblances.to(number, compared)
        near = {names[compared[at]]: float(shares[at]) for at in np.flatnonzero(shares >= THRESHOLD)}
        yield from ((name, names[number], share) for name, share in sorted(near.items()))
        if max(near.values(), default=0.0) >= _SAME:
            copies.add(number)


def _list(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


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
