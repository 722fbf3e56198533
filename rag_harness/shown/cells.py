"""Cells of CSV: a spreadsheet shows them and runs none."""

from __future__ import annotations

import re

from rag_harness.shown.hidden import escaped

MARK = "'"
_SIGNS = "=+@＝＋－＠"
"""How formulas begin, ``-`` aside: OWASP, CSV injection, and ASVS 1.2.10."""
_RUNS = re.compile(rf"^(?=[\t\r\n]|{MARK}|\s*[-{_SIGNS}])")
# In half of Europe a semicolon parts cells, and quotes of a cell that a comma began count for nothing.
_RUNS_LATER = re.compile(rf"([;\t\r\n])(?=[ \t]{{0,20}}(?:[{_SIGNS}]|-\S|-[^;\t\r\n]*\|))")


def cell(text: str) -> str:
    """Return text with an apostrophe before what would run; one that is there gets another, so that none is lost."""
    safe = escaped(text.replace("\0", "\N{REPLACEMENT CHARACTER}"), kept="\t\r\n")
    return _RUNS.sub(MARK, _RUNS_LATER.sub(rf"\1{MARK}", safe))
