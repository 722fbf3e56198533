"""Writes the pages that are made from the code."""

from __future__ import annotations

from docs.made import PAGES, REFERENCE

for name, page in PAGES.items():
    (REFERENCE / name).write_text(page(), encoding="utf-8")
