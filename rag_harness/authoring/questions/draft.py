"""A question before it is a row: the text, the answer and the evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_harness.types import Evidence

BY_LLM = "llm"
"""The origin of a question that a model wrote."""
MADE_OF = " + "
"""Separates the kinds of facts in a row's ``made_of``."""
LEFT_OPEN = "left open"
"""The origin of a question about something that a statement leaves open."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A question with its gold.

    Attributes:
        kind: the query type: ``direct``, ``multi_hop`` or ``negative``.
        plain: the question in the page's own words; a search for it should find the page.
        text: the question as it is asked.
        answer: the words of the ground truth that the question asks for; empty if nothing answers it.
        made_of: the kinds of facts that it was made from.
    """

    kind: str
    plain: str
    text: str
    ground_truth: str
    answer: str
    evidence: tuple[Evidence, ...]
    made_of: tuple[str, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def pages(self) -> tuple[str, ...]:
        """The documents of the evidence, each once."""
        return tuple(dict.fromkeys(each.filename for each in self.evidence))
