"""Describes a miss of the golden suite in words: short, aligned, at most 100 columns wide."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from rag_harness.measures.golden_run import FoundHit, RetrievalResult

TERMINAL_WIDTH = 100
_LABEL = 11
_MOST_DOCUMENTS, _LONGEST_NAME = 5, 60
_TIE = "\N{NO-BREAK SPACE}"
_WHOLE = 25
"""Lines of a question that is shown whole: 2,000 characters. A longer one would hide all others."""


def explain_miss(result: RetrievalResult) -> str:
    """Return the query, the expected documents, their ranks, and the hits that came instead."""
    lines = [
        *_labelled("query", result.query),
        *_labelled("expected", f"{', '.join(result.expected)}: {where_found(result)}"),
        *(_labelled("because", result.justification) if result.justification else ()),
        *(_labelled("passage", f"“{' '.join(result.passage.split())}”") if result.passage else ()),
        *(_labelled("error", result.error) if result.error else ()),
        *_found(result.top),
        *(() if result.found else _labelled("next", _remedy(result))),
    ]
    return "\n".join(lines)


def miss_line(result: RetrievalResult) -> str:
    """Return the miss in one line."""
    return f"{result.case_id}: expected {', '.join(result.expected)}, {where_found(result)}: {cut(result.query, 60)}"


def missed(result: RetrievalResult) -> list[str]:
    """Return the miss in a few lines: the question whole, what was expected, and the documents that came instead."""
    ranks: dict[str, int] = {}
    for hit in result.top:
        ranks.setdefault(hit.document, hit.rank)
    more = [f"and {len(ranks) - _MOST_DOCUMENTS} more"] if len(ranks) > _MOST_DOCUMENTS else []
    found = [f"{rank}{_TIE}{cut(name, _LONGEST_NAME)}" for name, rank in list(ranks.items())[:_MOST_DOCUMENTS]]
    said = [
        ("miss", f"{result.case_id}: expected {', '.join(result.expected)}, {where_found(result)}"),
        ("  asked", result.query),
        ("  found", ", ".join([*found, *more]) or result.error or "nothing"),
    ]
    return [line.replace(_TIE, " ") for label, text in said for line in _labelled(label, text, most=_WHOLE)]


def where_found(result: RetrievalResult) -> str:
    """Say at which rank the first expected document was found."""
    if result.found:
        return f"rank {result.rank}"
    if result.rank is not None:
        return f"rank {result.rank}, not in the top {result.k}"
    if not result.ranked:
        return "nothing was returned"
    # Retrievers that ask for shared words return what has any: often fewer hits than a measure looks at.
    return f"not among the {len(result.ranked)} hits" if len(result.ranked) > 1 else "not the only hit"


def _remedy(result: RetrievalResult) -> str:
    if result.error:
        return "the query could not be run; the log has the traceback"
    if result.rank is not None:
        return (
            "it is found, but too low: compare its passage with the hits above; try --rag-retriever=hybrid or reranked"
        )
    return "it shares too little with the query: read the passage, and check that the gold is right"


def _labelled(label: str, text: str, most: int = 4) -> list[str]:
    width = TERMINAL_WIDTH - _LABEL
    body = textwrap.wrap(text, width, break_on_hyphens=False, max_lines=most, placeholder=" …")
    return [f"{(label if n == 0 else '').ljust(_LABEL)}{line}" for n, line in enumerate(body or [""])]


def _found(hits: Sequence[FoundHit]) -> list[str]:
    if not hits:
        return _labelled("found", "nothing")
    document = min(34, max(len(hit.document) for hit in hits))
    section = 24
    head = f"{'found':{_LABEL}}{'rank':>4} {'score':>6}  {'document':{document}}  {'section':{section}}  "
    return [head.rstrip(), *(_hit_line(hit, document, section) for hit in hits)]


def _hit_line(hit: FoundHit, document: int, section: int) -> str:
    where = f"{cut(hit.document, document):{document}}  {cut(hit.section.rpartition(' > ')[2], section):{section}}"
    start = f"{'':{_LABEL}}{hit.rank:>4} {hit.score:>6.3f}  {where}  "
    return f"{start}{cut(hit.snippet, max(0, TERMINAL_WIDTH - len(start)))}".rstrip()


def cut(text: str, width: int) -> str:
    """Return ``text`` on one line of at most ``width`` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= width else f"{flat[: max(0, width - 1)]}…"
