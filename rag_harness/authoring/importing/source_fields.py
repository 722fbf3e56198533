"""What is known of a tool's records: which of its fields is which of ours, and what has no counterpart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag_harness.authoring.importing.demands import Demand
from rag_harness.dataset.records.field_names import MEANINGS, plain_name

_BY_ANY_NAME = ("query", "ground_truth")


@dataclass(frozen=True, slots=True)
class SourceFields:
    """The fields of one tool.

    Attributes:
        name: the tool, as ``--from`` names it.
        fields: names of the tool for each field of ours; the first that a record has counts. A question and a ground
            truth may have any other name of ``MEANINGS``, too, but for those that are something else below.
        typical: names that only this tool has; one of them tells its files.
        scored: names of answers and of what they were made of: they are scored, and are no gold.
        unmatched: names without a counterpart, each with the reason.
        unread: names that say nothing of a question, such as dates.
        read_otherwise: names that ``expected`` or ``left_out`` reads.
        objects: names of objects whose members are labels.
        separator: what parts the texts of a cell of a CSV file.
        is_synthetic: whether a record says that no person wrote its question.
        type_of: the type of a question, where a record tells it; "" where it does not.
        left_out: why a record is no question; "" where it is one.
        expected: what the answer owes, as expectations.
        no_question: what is said of a record without a question.
    """

    name: str
    fields: Mapping[str, Sequence[str]]
    typical: Sequence[str] = ()
    scored: Sequence[str] = ()
    unmatched: Mapping[str, str] = field(default_factory=dict)
    unread: Sequence[str] = ()
    read_otherwise: Sequence[str] = ()
    objects: Sequence[str] = ()
    separator: str = ""
    is_synthetic: Callable[[Mapping[str, Any]], bool] = lambda _: False
    type_of: Callable[[Mapping[str, Any]], str] = lambda _: ""
    left_out: Callable[[Mapping[str, Any]], str] = lambda _: ""
    expected: Callable[[Mapping[str, Any]], Sequence[Demand]] = lambda _: ()
    no_question: str = "a record without a question"

    def names_of(self, ours: str) -> Sequence[str]:
        """Return the names that a field of ours may have, those that count more first."""
        own = self.fields.get(ours, ())
        if ours not in _BY_ANY_NAME:
            return own
        others = {
            plain_name(name)
            for name in (*self.scored, *self.unmatched, *self.unread, *self.read_otherwise, *self.objects)
        }
        return (*own, *(name for name in MEANINGS[ours] if plain_name(name) not in others and name not in own))
