"""The section of figures, each with a table of its data. The one that compares experiments is on the first screen."""

from __future__ import annotations

from collections.abc import Sequence

from rag_harness.page.content import Section
from rag_harness.page.drawings import FIGURES
from rag_harness.page.run import Run


def charts(runs: Sequence[Run]) -> Section | None:
    """Return the figures of the first run; None where nothing can be drawn."""
    found = [figure for drawn in FIGURES if (figure := drawn(runs[0])) is not None]
    return Section("charts", "Charts", found) if found else None
