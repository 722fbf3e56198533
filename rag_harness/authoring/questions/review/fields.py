"""The fields of a question as a text that a person edits, and back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rag_harness.authoring.questions.review.reviewed_rows import QueryRow
from rag_harness.errors import DataError

EDITING_HELP = """Change what stands below the lines that begin with {mark}, and save. Pages stand one a line.
"alone" is a turn's question in words that need nothing said before it; it may be empty.
Evidence must stand in its page word for word. What you remove is gone; more is added by a line
"{mark} evidence FILE" with the quote below it. An empty file leaves the question as it was.
"""
FIELDS = {
    "kind": "query_type",
    "question": "query",
    "answer": "ground_truth",
    "pages": "context_reference",
    "evidence": "evidence",
}
"""The fields that can be edited: from the name in the text to the name in a row."""
EDITED_FIELDS = (*FIELDS.values(), "standalone")
"""The fields of a row that a person may have changed; the last one is that of a turn."""


def text_of(row: QueryRow) -> str:
    """Return the text to edit."""
    parts = _parts(row)
    mark = "==="
    # A quote may contain such a line itself, for example an underlined heading.
    while any(f"\n{mark} " in f"\n{text}" for _, text in parts):
        mark += "="
    fields = "".join(f"\n{mark} {name}\n{text}\n" for name, text in parts)
    return f"{EDITING_HELP.format(mark=mark)}{fields}"


def changes_of(text: str) -> dict[str, Any]:
    """Return the fields of an edited text; empty if the text is empty.

    Raises:
        DataError: a part is missing or unknown, or is empty and must not be.
    """
    if not text.strip():
        return {}
    found = re.search(r"^(===+) ", text, re.M)
    if found is None:
        raise DataError("No line begins with ===: the parts of the question cannot be told apart.")
    _, *rest = re.split(rf"^{found[1]} (.*)$", text, flags=re.M)
    parts = [(name.strip(), body.strip()) for name, body in zip(rest[::2], rest[1::2], strict=True)]
    _check([name for name, _ in parts])
    told: Mapping[str, str] = dict(parts)
    for name in ("kind", "question"):
        if not told[name]:  # a file with such a row could no longer be read
            raise DataError(f"The {name} is empty. Write one; a question that is not to be asked is rejected.")
    quotes = [(name.partition(" ")[2].strip(), body) for name, body in parts if name.startswith("evidence ")]
    return {
        "query_type": told["kind"],
        "query": told["question"],
        **({"standalone": told["alone"]} if "alone" in told else {}),
        "ground_truth": told["answer"],
        "context_reference": [line.strip() for line in told["pages"].splitlines() if line.strip()],
        "evidence": [{"filename": filename, "quote": quote} for filename, quote in quotes if quote],
    }


def _parts(row: QueryRow) -> list[tuple[str, str]]:
    pages = row.get("context_reference") or []
    named = [pages] if isinstance(pages, str) else pages
    return [
        ("kind", row.get("query_type", "direct")),
        ("question", row["query"]),
        *([("alone", row.get("standalone", ""))] if "conversation" in row else []),
        ("answer", row.get("ground_truth", "")),
        ("pages", "\n".join(named)),
        *((f"evidence {each['filename']}", each["quote"]) for each in row.get("evidence") or ()),
    ]


def _check(names: list[str]) -> None:
    wanted = [name for name in FIELDS if name != "evidence"] + (["alone"] if "alone" in names else [])
    once = [name for name in names if not name.startswith("evidence ")]
    if sorted(once) != sorted(wanted):
        wrong = [name for name in once if name not in wanted or once.count(name) > 1]
        lacking = [name for name in wanted if name not in once]
        said = f"Missing: {', '.join(lacking)}." if lacking else f"Not understood: {', '.join(wrong)}."
        raise DataError(f"{said} Each of {', '.join(wanted)} stands once; evidence names its file.")
