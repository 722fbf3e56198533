"""What of a result an option changes."""

from __future__ import annotations

from typing import Literal

Affects = Literal["data", "retrieval", "reranking", "generation", "judging", "golden", "nothing"]
"""What of a result an option changes. An experiment's fingerprint is made from those that affect what it does.

``data`` names files, whose content is what counts; ``nothing`` is how a run goes, not what comes of it.
"""
