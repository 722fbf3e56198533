"""The figures of a chart, as its file keeps them beside the drawing."""

from __future__ import annotations

from rag_harness.dataset.ingest.office.package import Element, below, children

_MOST_POINTS = 1_000


def chart_rows(chart: Element) -> tuple[str, list[list[str]]]:
    """Return the title of a chart, and a table with a row for each category and a column for each series."""
    series = list(below(chart, "ser"))[:50]
    names = [" ".join(_points(each, "tx").values()) for each in series]
    values = [_points(each, "val") or _points(each, "yVal") for each in series]
    labels: dict[int, str] = {}
    for each in series:
        labels = labels or _points(each, "cat") or _points(each, "xVal")
    places = sorted({at for points in (labels, *values) for at in points})[:_MOST_POINTS]
    rows = [[labels.get(at, ""), *(points.get(at, "") for points in values)] for at in places]
    return _title(chart), [["", *names], *rows] if rows else []


def _points(series: Element, role: str) -> dict[int, str]:
    found: dict[int, str] = {}
    for holder in children(series, role):
        for point in below(holder, "pt"):
            at = point.get("idx", "")
            if at.isascii() and at.isdigit() and len(at) < 7:
                found[int(at)] = " ".join((each.text or "").strip() for each in below(point, "v"))
    return found


def _title(chart: Element) -> str:
    for each in below(chart, "title"):
        return " ".join("".join(text.text or "" for text in below(each, "t")).split())
    return ""
