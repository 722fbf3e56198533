"""The comment on a pull request: a run in brief, as GitHub's Markdown of at most 60 lines and 8,000 characters.

Each file writes one part from a ``Brief`` and a ``Run``. Public: the names below. Begin reading with ``whole.py``.
"""

from __future__ import annotations

from rag_harness.page.comment.whole import MOST_CHARACTERS, MOST_LINES, comment_of

__all__ = ["MOST_CHARACTERS", "MOST_LINES", "comment_of"]
