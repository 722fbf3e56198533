"""The kinds of effect that an option can have on a result."""

from __future__ import annotations

from typing import Literal

Affects = Literal["data", "retrieval", "reranking", "generation", "judging", "golden", "reliability", "nothing"]
"""The part of a result that an option changes. A fingerprint has the options that affect what its experiment does.

Options of ``data`` name files, and the content of the files counts. Options of ``reliability``
count for the reliability engine alone. Options of ``nothing`` do not change results.
"""
