"""Expectations: what a single case demands of its answer, and whether the answer keeps to it.

``"expect": [{"contains": "45 days"}, {"not": {"regex": "refund"}}, {"cites": "returns.md", "must": true}]``

``dataset`` reads them and ``measures`` looks at answers with them. The room knows neither rows nor models: it is handed
an ``AnswerSeen``. Begin reading with ``kind.py``. A kind of your own is a class in a file and a line in your
``pyproject.toml``::

    [project.entry-points."rag_harness.expectations"]
    polite = "my_package.polite:Polite"
"""

from __future__ import annotations

from rag_harness.expectations.contradicting import contradictions
from rag_harness.expectations.kind import AnswerSeen, ExpectationKind, Finding, Source
from rag_harness.expectations.looking import Kept, as_found, kept_share, looked_at
from rag_harness.expectations.reading import (
    MOST_EXPECTED,
    as_json,
    expectations_of,
    kind_of,
    known_kinds,
    needs_model,
    tells_by_words,
)

__all__ = [
    "MOST_EXPECTED",
    "AnswerSeen",
    "ExpectationKind",
    "Finding",
    "Kept",
    "Source",
    "as_found",
    "as_json",
    "contradictions",
    "expectations_of",
    "kept_share",
    "kind_of",
    "known_kinds",
    "looked_at",
    "needs_model",
    "tells_by_words",
]
