"""A question that is not yet a row: what is asked, what is right, and what shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_harness.types import Evidence

BY_LLM = "llm"
"""What a question is made of that a model wrote."""
MADE_OF = " + "
"""Stands between the kinds of facts that a row says its question was made of."""
LEFT_OPEN = "left open"
"""What a question is made of that asks for what a statement does not say."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A question with its gold.

    Attributes:
        kind: the query type: ``direct``, ``multi_hop`` or ``negative``.
        plain: the question in the page's own words, by which a search should find the page.
        text: the question as it is asked.
        answer: the words of the ground truth that the question asks for; empty where nothing answers it.
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
        """The documents that the evidence is of, each once."""
        return tuple(dict.fromkeys(each.filename for each in self.evidence))
