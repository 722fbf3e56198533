"""The questions that the simulated model knows, with their gold answers and the quotes that hold the evidence."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rag_harness.dataset.query_tables import rows_of_table
from rag_harness.dataset.records.reading import is_table
from rag_harness.errors import DataError
from rag_harness.words.citation_marks import without_marks

Sources = Sequence[tuple[str, str]]
"""A context: the file and the text of each source, in the order of the prompt."""


@dataclass(frozen=True, slots=True)
class KnownQuestion:
    """A question with its gold.

    Attributes:
        text: the question.
        answer: the gold answer.
        pages: the files that answer it; empty where no document does.
        quotes: file and text of each quote that the answer needs.
        topic: the category of the question; empty for none.
    """

    text: str
    answer: str
    pages: frozenset[str]
    quotes: tuple[tuple[str, str], ...]
    topic: str

    def evidence_in(self, context: Sources) -> list[int]:
        """Return the numbers of the sources that hold the evidence, from 1; none unless all evidence is there.

        A question without quotes has its evidence where a source of each of its pages is.
        """
        if not self.quotes:
            found = [n for n, (file, _) in enumerate(context, 1) if file in self.pages]
            return found if self.pages <= {context[n - 1][0] for n in found} else []
        holding = list[int]()
        sources = [(n, name, _one_line(text)) for n, (name, text) in enumerate(context, 1)]
        for file, quote in self.quotes:
            where = [n for n, name, text in sources if name == file and _one_line(quote) in text]
            if not where:
                return []
            holding += where[:1]
        return sorted(set(holding))


def question_key(text: str) -> str:
    """Return the form in which questions are looked up: case and white space do not count."""
    return " ".join(text.casefold().split())


def read_questions(file: Path, mapped: Mapping[str, str] = MappingProxyType({})) -> dict[str, KnownQuestion]:
    """Return the questions of a ``queries.jsonl`` by ``question_key``. Lines that are no question are left out.

    Args:
        file: the lines, or a table of questions.
        mapped: the column of each field of a table that is not known by its name.

    Raises:
        DataError: the file cannot be read.
    """
    rows = (_row(line) for line in _lines(file, mapped))
    found = [_question(row) for row in rows if isinstance(row.get("query"), str) and row.get("ground_truth")]
    return {question_key(each.text): each for each in found}


def _lines(file: Path, mapped: Mapping[str, str]) -> Iterable[str]:
    if is_table(file):
        return (each.text for each in rows_of_table(file, mapped))
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"The simulated model knows the questions of {file}, which cannot be read: {error}") from error


def _row(line: str) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}


def _question(row: Mapping[str, Any]) -> KnownQuestion:
    pages = row.get("context_reference") or ()
    quotes = tuple((each["filename"], each["quote"]) for each in row.get("evidence") or ())
    named = frozenset([pages] if isinstance(pages, str) else pages) | {file for file, _ in quotes}
    topic = str((row.get("metadata") or {}).get("category", ""))
    return KnownQuestion(row["query"], str(row["ground_truth"]), named, quotes, topic)


def _one_line(text: str) -> str:
    return " ".join(without_marks(text).split())
