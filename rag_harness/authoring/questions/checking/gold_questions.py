"""Reads the gold of each question in a file of questions or a golden set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rag_harness.authoring.questions.metadata_keys import LOOKED_AT
from rag_harness.dataset.conversations import turn_id
from rag_harness.dataset.golden import GoldenEntry, read_golden
from rag_harness.dataset.queries import read_queries
from rag_harness.types import Case, Evidence, Expectation


@dataclass(frozen=True, slots=True)
class QuestionWithGold:
    """A question with its gold.

    ``standalone`` is the question of a turn as it would be asked with nothing before it; ``stands_on`` are the turns
    before it. ``pages`` are the relevant documents, and ``quotes`` its evidence; a quote without a file name is from
    one of ``pages``. ``looked_at`` are pages that have its words but do not answer it. ``expect`` is what it demands of
    its answers.
    """

    name: str
    kind: str
    text: str
    ground_truth: str = ""
    pages: tuple[str, ...] = ()
    quotes: tuple[Evidence, ...] = ()
    answerable: bool = True
    looked_at: tuple[str, ...] = ()
    expect: tuple[Expectation, ...] = ()
    standalone: str = ""
    stands_on: tuple[str, ...] = ()

    @property
    def alone(self) -> str:
        """The question in words that need nothing said before it; empty for a later turn of which nobody wrote them."""
        return self.standalone or ("" if self.stands_on else self.text)


def is_golden(file: Path) -> bool:
    """Whether a file is a golden set, by its name: files of questions have one JSON object a line."""
    return file.suffix.lower() in (".json", ".csv")


def read_asked(file: Path, types: Sequence[str] = ()) -> Sequence[QuestionWithGold]:
    """Read questions (``.jsonl``) or a golden set (``.json``, ``.csv``), in their order.

    Args:
        file: the questions.
        types: types of questions beside the known ones.

    Raises:
        DataError: the file is missing, empty or malformed; the message names every problem.
    """
    if is_golden(file):
        return list(map(_of_entry, read_golden(file)))
    return [_of_case(case) for case in read_queries(file, types=types) if case.has_text]


def _of_case(case: Case) -> QuestionWithGold:
    """Return a question with its gold; of a scenario its first turn, with the gold of the conversation."""
    looked_at = case.metadata.get(LOOKED_AT, ())
    scenario = case.scenario
    return QuestionWithGold(
        case.query.query_id,
        case.query_type,
        case.query.text,
        scenario.ground_truth if scenario else case.ground_truth,
        tuple(case.qrels),
        case.evidence,
        case.answerable,
        (looked_at,) if isinstance(looked_at, str) else tuple(looked_at),
        (*case.expect, *scenario.reached) if scenario else case.expect,
        case.standalone,
        _before(case),
    )


def _before(case: Case) -> tuple[str, ...]:
    place = case.query.place
    return tuple(turn_id(place["conversation"], turn) for turn in range(1, int(place["turn"]))) if place else ()


def _of_entry(entry: GoldenEntry) -> QuestionWithGold:
    quotes = tuple(Evidence("", quote) for quote in entry.evidence)
    kind = str(entry.metadata.get("query_type", "golden"))
    return QuestionWithGold(entry.entry_id, kind, entry.query, pages=entry.expected, quotes=quotes)
