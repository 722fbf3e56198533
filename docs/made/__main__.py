"""Writes the pages and pictures that are made from the code."""

from __future__ import annotations

from docs.made import DOCS, IMAGES, PAGES, PICTURES

for name, page in PAGES.items():
    (DOCS / name).write_text(page(), encoding="utf-8")
for name, picture in PICTURES.items():
    (IMAGES / name).write_text(picture(), encoding="utf-8")
