"""Cells of CSV that a spreadsheet shows and never runs as formulas."""

from __future__ import annotations

import re

from rag_harness.shown.hidden import escaped

MARK = "'"
_SIGNS = "=+@＝＋－＠"
"""Characters that begin a formula, besides ``-``: OWASP, CSV injection, and ASVS 1.2.10."""
_RUNS = re.compile(rf"^(?=[\t\r\n]|{MARK}|\s*[-{_SIGNS}])")
# In half of Europe a semicolon separates cells, and the quotes around a cell after a comma do not count.
_RUNS_LATER = re.compile(rf"([;\t\r\n])(?=[ \t]{{0,20}}(?:[{_SIGNS}]|-\S|-[^;\t\r\n]*\|))")


def cell(text: str) -> str:
    """Return text with an apostrophe before each formula. A leading apostrophe is doubled, so that none is lost."""
    safe = escaped(text.replace("\0", "\N{REPLACEMENT CHARACTER}"), kept="\t\r\n")
    return _RUNS.sub(MARK, _RUNS_LATER.sub(rf"\1{MARK}", safe))
