"""The colours of all charts, for the page that shows them."""

from __future__ import annotations

from importlib.resources import files


def stylesheet() -> str:
    """Return the CSS of the charts' classes, light and dark by the system, light in print."""
    return files(__package__).joinpath("charts.css").read_text(encoding="utf-8")
