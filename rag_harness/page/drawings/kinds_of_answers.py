"""The colour and pattern of each kind of answer: the same in charts, tables and the list of trials."""

from __future__ import annotations

from collections.abc import Mapping

from rag_harness.measures.judged import CATEGORIES
from rag_harness.page.charts import fill_number

_BLUE, _ORANGE, _GREEN, _PINK, _, _OCHRE, _VIOLET, _GREY = range(8)
_SOLID, _RISING, _FALLING, _LEVEL, _UPRIGHT, _CROSSED, _, _SQUARED = range(8)

_FILLS: Mapping[str, tuple[int, int]] = {
    "Clean Pass": (_GREEN, _SOLID),
    "Hallucination": (_ORANGE, _CROSSED),
    "Retrieval Failure": (_BLUE, _FALLING),
    "Irrelevant": (_PINK, _LEVEL),
    "Total Failure": (_VIOLET, _SQUARED),
    "Unclassified": (_GREY, _SOLID),
    "Correct Abstention": (_GREEN, _RISING),
    "Wrong Abstention": (_OCHRE, _UPRIGHT),
    "Answered Unanswerable": (_ORANGE, _FALLING),
    "Unmeasured": (_GREY, _LEVEL),
}
"""Right answers and right abstentions are green; what no document says is orange; what nobody could judge is grey."""


def kind_fill(kind: str) -> int:
    """Return the number of a kind's colour and pattern in charts."""
    return fill_number(*_FILLS[kind])


def kind_class(kind: str) -> str:
    """Return the class of ``charts.css`` that has the same colour and pattern; "" for what is no kind of answer."""
    return f"kind-{kind.lower().replace(' ', '-')}" if kind in CATEGORIES else ""
