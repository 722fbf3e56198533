"""Columns that probably hold questions or ground truths, by what stands in them and by their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rag_harness.dataset.records.field_names import plain_name
from rag_harness.dataset.records.source_record import given

LOOKED_AT = 50
"""The most records that are looked at."""
_GOLD = (
    "answer", "gold", "truth", "expected", "reference", "ideal", "correct", "solution", "target", "output", "response",
    "reply", "result",
)  # fmt: skip
_GOLD_WORDS = frozenset({"gt", "a", "label", "antwort", "respuesta", "reponse"})
_NO_GOLD = ("id", "score", "count", "date", "time", "type", "url", "source")
_MARKS = ("?", "？", "؟", ";")
_SENTENCE = 3
"""Words that make a text more than a name."""


def likely_question(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the column or path that probably holds the questions; "" where none looks like it."""
    ranked = [(_asking(texts), name) for name, texts in _texts_by_path(rows).items()]
    most, name = max(ranked, key=lambda each: each[0], default=(0.0, ""))
    return name if most else ""


def likely_gold(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the columns or paths that may hold ground truths: those with such names first, then those of sentences."""
    found = {name: texts for name, texts in _texts_by_path(rows).items() if not _is_no_gold(name)}
    named = [name for name in found if _is_named_gold(name)]
    others = [
        name
        for name, texts in found.items()
        if name not in named and 2 * len(texts) > len(rows) and _share_distinct(texts) > 0.5 and _has_sentences(texts)
    ]
    return [*named, *others]


def _texts_by_path(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in rows:
        for path, text in _texts(row):
            found.setdefault(path, []).append(text)
    return found


def _texts(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the texts of a row and of the objects in it, with their paths; of a list the first."""
    for name, value in values.items():
        inner = value if isinstance(value, Mapping) else {"": value}
        for key, each in inner.items():
            first = given(each[0] if isinstance(each, list) and each else each)
            if isinstance(first, (str, int, float)) and not isinstance(first, bool) and str(first).strip():
                yield f"{name}.{key}" if key else str(name), str(first).strip()


def _asking(texts: Sequence[str]) -> float:
    marked = sum(text.endswith(_MARKS) for text in texts) / len(texts)
    sentences = sum(len(text.split()) >= _SENTENCE for text in texts) / len(texts)
    shortness = 1 / (1 + sum(map(len, texts)) / len(texts) / 1000)
    return (2 * marked + sentences) * _share_distinct(texts) * shortness


def _share_distinct(texts: Sequence[str]) -> float:
    return len({*texts}) / len(texts)


def _has_sentences(texts: Sequence[str]) -> bool:
    return 2 * sum(len(text.split()) >= _SENTENCE for text in texts) >= len(texts)


def _is_named_gold(name: str) -> bool:
    words = name.replace(".", "_").replace("-", "_").replace(" ", "_").casefold().split("_")
    return any(each in plain_name(name) for each in _GOLD) or bool(_GOLD_WORDS & {*words})


def _is_no_gold(name: str) -> bool:
    last = name.replace(".", "_").replace("-", "_").replace(" ", "_").casefold().rpartition("_")[2]
    is_retrieved = "context" in plain_name(name) or "retriev" in plain_name(name)
    return is_retrieved or last in _NO_GOLD or last.removesuffix("s") in _NO_GOLD
