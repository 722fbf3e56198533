"""What figures of answers do not show by themselves: contexts without the words of their page, refusals in other words.

Terminal, page and comment say it in the same sentences.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rag_harness.gates.grammar import Gate
from rag_harness.measures import measure_named
from rag_harness.report.suite_table import SuiteTable
from rag_harness.report.wording import counted
from rag_harness.settings import Settings

_SHARE = 0.05
"""Answers that only read like refusals are told from this share on: below it some are mistaken for ones."""


def doubts(tables: Mapping[str, SuiteTable]) -> Iterator[str]:
    """Yield what is to be known of the answers of experiments, without a full stop."""
    for name, table in sorted(tables.items()):
        totals = table.totals
        if totals.retrieves and not totals.depth and totals.answered:
            yield f"{name}: none of {counted(totals.answered, 'answer')} came with a context"
        if table.unknown_pages:
            told, there = (", ".join(map(repr, names)) for names in table.unknown_pages)
            yield (
                f"{name}: no context names a page of the documents, so recall and other ranking measures find none. "
                f"It says {told}; pages are {there}. Name the page in Chunk.doc_id, or [read] chunk_id of a service"
            )
        if table.foreign and table.foreign[0]:
            yield (
                f"{name}: {table.foreign[0]:,} of {counted(table.foreign[1], 'context')} with a text that is not in "
                "the page that they name. Recall and other ranking measures go by the name and count them as found; "
                "evidence_recall looks at texts, if questions have evidence quotes"
            )
        if totals.placed:
            yield from _without_words(name, totals.placed)
        if totals.evasive > _SHARE * totals.answered:
            yield (
                f"{name}: {totals.evasive:,} of {counted(totals.answered, 'answer')} read like refusals, and are not "
                "counted as declined. Name their words (refusals in [tool.rag_harness] of pyproject.toml), or state "
                "it: [read] abstained of a service, Answer(abstained=True) of a pipeline"
            )


def foreign_said(gate: Gate, tables: Iterable[SuiteTable], settings: Settings) -> str:
    """Return why a gate that goes by names of pages is not judged; empty where it is."""
    if settings.foreign_text == "allow" or not getattr(measure_named(gate.measure), "by_name", False):
        return ""
    return next(filter(None, (table.foreign_said for table in tables)), "")


def _without_words(name: str, placed: Mapping[str, int]) -> Iterator[str]:
    from rag_harness.pipelines.endpoint.placing import NO_TEXT  # where a service was asked

    if silent := placed.get(NO_TEXT, 0):
        yield (
            f"{name}: of {counted(sum(placed.values()), 'context')} {silent:,} without text. Recall and other ranking "
            "measures go by the name and count them as found; evidence_recall looks at texts, if questions have "
            "evidence quotes"
        )
