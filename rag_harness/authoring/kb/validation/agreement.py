"""Checks that the two pages of a version pair differ only in the planned facts, as far as their text shows."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rag_harness.authoring.kb.page import fold
from rag_harness.authoring.kb.plan import Plan, PlanPage, VersionPair
from rag_harness.authoring.kb.validation.material import Material
from rag_harness.words.contradictions import Contradiction, contradictions

_Problems = Iterator[tuple[str, str]]
_FIGURES = re.compile(r"\d+")


def version_agreement(material: Material, plan: Plan) -> _Problems:
    """Yield contradictions between versions of a page that are not planned. Pairs without planned facts are skipped."""
    for pair in plan.version_pairs or ():
        outdated, current = plan.page(pair.outdated), plan.page(pair.current)
        if outdated and current and outdated.facts is not None and current.facts is not None:
            yield from _written(material, pair, outdated, current)


def _written(material: Material, pair: VersionPair, outdated: PlanPage, current: PlanPage) -> _Problems:
    pages = [material.pages.get(page.filename) for page in (outdated, current)]
    # Bold marks are removed: the same words are no conflict, however they are marked.
    texts = [page.body.replace("**", "") for page in pages if page]
    for found in contradictions(texts) if len(texts) == len(pages) else ():
        if not _is_planned(found, pair, outdated, current):
            said = f"{outdated.filename} says {_said(found.first.sentence)}, this page {_said(found.second.sentence)}"
            advice = "is no planned conflict. Make both say the same, or plan it."
            yield material.at(current.filename), f"{said}: {' against '.join(found.differs)} {advice}"


def _said(sentence: str) -> str:
    words = " ".join(sentence.split())
    return repr(words if len(words) <= 120 else f"{words[:117]}…")


def _is_planned(found: Contradiction, pair: VersionPair, outdated: PlanPage, current: PlanPage) -> bool:
    """Whether a contradiction is planned: a fact in its own words or in a table, or the versions' dates and numbers."""
    first, second = fold(found.first.sentence), fold(found.second.sentence)
    for conflict in pair.conflicts:
        old, new = fold(conflict.outdated_statement), fold(conflict.current_statement)
        if _within(first, old) and _within(second, new):
            return True
        if found.differs[0] in old and found.differs[1] in new:
            return True
    return _is_validity(first, outdated) or _is_validity(second, current)


def _within(said: str, statement: str) -> bool:
    return said in statement or statement in said


def _is_validity(said: str, page: PlanPage) -> bool:
    """Whether a sentence says from when the page is valid. The versions should differ in that."""
    figures = {figure.lstrip("0") for figure in _FIGURES.findall(page.effective_date or "")}
    is_fact = any(_within(said, fold(fact.statement)) for fact in page.facts or ())
    shown = {figure.lstrip("0") for figure in _FIGURES.findall(said)}
    return bool(figures) and not is_fact and len(figures & shown) >= min(2, len(figures))
