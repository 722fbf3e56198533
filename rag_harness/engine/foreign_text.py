"""Contexts whose text does not stand in the page that they name: the right id, and the words of something else.

Ranking measures go by the names of pages. Where the texts are others, they measure what no reader was given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rag_harness.pipelines import endpoints_of
from rag_harness.protocols import Experiment
from rag_harness.registry.own_parts import is_own_code
from rag_harness.results.manifest import SuiteRecord, of_run
from rag_harness.results.row import ExperimentResult, numbered_lines, row_or_none
from rag_harness.settings import Settings
from rag_harness.types import Document
from rag_harness.words.same_words import words_of
from rag_harness.words.text_origins import PageTexts

MOST_ROWS = 2000
"""Most rows that are looked at, spread evenly over the file: their share is that of all of them."""
EXAMPLES = 2
"""How many names of each kind are shown."""


class ForeignText(NamedTuple):
    """What the contexts of a suite have to do with the pages that they name.

    Attributes:
        foreign: how many have a text that the page which they name does not have.
        of: how many name a page that is there and have a text.
        unknown: where no name fits any page: two that are told, and two of pages that are there.
    """

    foreign: int = 0
    of: int = 0
    unknown: tuple[tuple[str, ...], ...] = ()

    def fields(self) -> dict[str, Any]:
        """Return the fields of a suite's record that say so."""
        return ({"foreign": (self.foreign, self.of)} if self.of else {}) | (
            {"unknown_pages": self.unknown} if self.unknown else {}
        )


def cuts_pages(experiment: Experiment, settings: Settings) -> bool:
    """Return whether the contexts of an experiment come from this package's own parts, which cut them from pages."""
    return experiment.id not in endpoints_of(settings) and not is_own_code(experiment.code)


def foreign_text(output: Path, record: SuiteRecord, documents: Sequence[Document]) -> ForeignText:
    """Return how many contexts of a suite's rows have a text that the page which they name does not have."""
    pages, foreign, of = PageTexts({document.doc_id: document.text for document in documents}), 0, 0
    told: dict[str, bool] = {}
    for row in _some_rows(output / record.file, record):
        for chunk in row.retrieved_chunks:
            name = chunk.metadata.filename
            told[name] = pages.has(name)
            if told[name] and words_of(chunk.text):
                of += 1
                foreign += not pages.says(name, chunk.text)
    if any(told.values()) or not any(told) or not documents:
        return ForeignText(foreign, of)
    there = tuple(document.doc_id for document in documents[:EXAMPLES])
    return ForeignText(foreign, of, (tuple(filter(None, told))[:EXAMPLES], there))


def _some_rows(file: Path, record: SuiteRecord) -> Iterator[ExperimentResult]:
    if not file.is_file():
        return
    counts, total = of_run(record), sum(1 for _ in numbered_lines(file))
    step = max(1, -(-total // MOST_ROWS))
    for number, (_, line, _) in enumerate(numbered_lines(file)):
        row = row_or_none(line) if number % step == 0 else None
        if row is not None and row.ok and counts(row):
            yield row
