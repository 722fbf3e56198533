"""Assertions of promptfoo as expectations; what has no counterpart is noted with its reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag_harness.authoring.importing.demands import Demand, kept_demands
from rag_harness.authoring.importing.notes import Notes
from rag_harness.authoring.importing.promptfoo import assertion_types as types
from rag_harness.authoring.importing.promptfoo.files_beside import UnreadFileError, is_file, value_beside
from rag_harness.authoring.importing.promptfoo.templates import TemplateLeftError, filled
from rag_harness.dataset.records.source_record import plain_text

_USUAL_LIKENESS = 0.75
_SHOWN = 40
_CHANGED = ("transform", "contextTransform")
"""Keys by which another text than the answer is looked at."""


@dataclass
class Asserted:
    """What assertions ask for: expectations, and the right answer where one states it."""

    expect: list[Demand] = field(default_factory=list)
    ground_truth: str = ""


class Assertions:
    """Reads the assertions of one test.

    Args:
        variables: of the test, for templates.
        folder: that of the config, for values in files.
        where: its place.
        notes: takes what has no counterpart.
    """

    def __init__(self, variables: Mapping[str, Any], folder: Path, where: str, notes: Notes) -> None:
        self._variables, self._folder, self._where, self._notes = variables, folder, where, notes
        self._ground_truth = ""

    def read(self, asserted: Sequence[Any]) -> Asserted:
        """Return what they ask for."""
        demands = [demand for each in asserted for demand in self._demands(each)]
        return Asserted(kept_demands(demands, self._where, self._notes), self._ground_truth)

    def _demands(self, raw: Any) -> Iterator[Demand]:
        if not isinstance(raw, Mapping) or not isinstance(raw.get("type"), str):
            self._lose("an assertion without a type")
            return
        kind, negated = raw["type"].removeprefix("not-"), raw["type"].startswith("not-")
        if kind == "assert-set":
            yield from self._of_set(raw)
            return
        try:
            value = filled(self._value(raw), self._variables)
        except TemplateLeftError as error:
            self._lose(f"{raw['type']}: {error}")
            return
        except UnreadFileError as error:
            self._lose(f"{raw['type']} with a value in a file: {error}")
            return
        if changed := [key for key in _CHANGED if raw.get(key)]:
            self._lose(f"{raw['type']} with {changed[0]}: answers are looked at as they are")
        elif raw.get("weight") == 0:
            self._notes.tell(f"{raw['type']} with weight 0: it is shown and does not count", self._where)
        elif kind == "word-count" and negated and not isinstance(value, Mapping):
            self._lose("not-word-count of a number: state min or max")
        else:
            if kind in types.WITH_REFERENCE and not negated:
                self._ground_truth = self._ground_truth or plain_text(value)
            found = list(self._of_type(kind, value, raw))
            beside = {} if raw.get("weight") in (None, 1) else {"weight": raw["weight"]}
            yield from ({**({"not": each} if negated else each), **beside} for each in found)

    def _value(self, raw: Mapping[str, Any]) -> Any:
        """Return the value of an assertion; what stands in a file is read.

        Raises:
            UnreadFileError: a file cannot be read.
        """
        value = raw.get("value")
        if isinstance(value, list):
            return [value_beside(each, self._folder) if is_file(each) else each for each in value]
        return value_beside(value, self._folder) if is_file(value) else value

    def _of_set(self, raw: Mapping[str, Any]) -> Iterator[Demand]:
        """Yield the demands of a set. Its weight is that of each of its assertions, times their own."""
        inner, weight = raw.get("assert"), raw.get("weight", 1)
        if isinstance(weight, bool) or not isinstance(weight, (int, float)):
            self._lose(f"assert-set with the weight {str(weight)[:_SHOWN]!r}, which is no number")
        elif weight == 0:
            self._notes.tell("assert-set with weight 0: it is shown and does not count", self._where)
        elif raw.get("threshold") not in (None, 1):
            self._lose("assert-set with a threshold: so many of several have no counterpart. State what must be kept")
        elif isinstance(inner, list):
            found = (demand for each in inner for demand in self._demands(each))
            yield from ({**each, "weight": weight * each.get("weight", 1)} if weight != 1 else each for each in found)

    def _of_type(self, kind: str, value: Any, raw: Mapping[str, Any]) -> Iterator[Demand]:
        if kind == "equals" and isinstance(value, (dict, list)):
            yield {"json": {"const": value}}
        elif kind in types.OF_TEXT:
            ours, options = types.OF_TEXT[kind]
            yield {ours: _as_text(value), **options}
        elif kind in types.OF_TEXTS:
            ours, options = types.OF_TEXTS[kind]
            yield {ours: [_as_text(each) for each in value] if isinstance(value, list) else value, **options}
        elif kind in types.OF_LIKENESS:
            yield {types.OF_LIKENESS[kind]: value, "at_least": raw.get("threshold", _USUAL_LIKENESS)}
        else:
            yield from self._others(kind, value, raw)

    def _others(self, kind: str, value: Any, raw: Mapping[str, Any]) -> Iterator[Demand]:
        threshold = raw.get("threshold")
        if kind in types.OF_THRESHOLD and threshold is None:
            self._notes.tell(f"{kind} without a threshold: every row has it", self._where)
        elif kind in types.OF_THRESHOLD:
            yield {types.OF_THRESHOLD[kind]: threshold}
        elif kind in types.OF_CRITERION:
            if threshold is not None:
                self._notes.tell(f"{kind} with a threshold: a rubric is met or not", self._where)
            yield from ({"rubric": each} for each in (value if isinstance(value, list) else [value]))
        elif kind == "is-json":
            yield {"is_json": True} if value in (None, "") else {"json": value}
        elif kind == "is-refusal":
            yield {"declines": True}
        elif kind == "word-count":
            yield from self._word_count(value)
        else:
            self._judged_or_lost(kind)

    def _word_count(self, value: Any) -> Iterator[Demand]:
        limits = value if isinstance(value, Mapping) else {"min": _number(value), "max": _number(value)}
        yield from ({f"{end}_words": limits[end]} for end in ("min", "max") if limits.get(end) is not None)

    def _judged_or_lost(self, kind: str) -> None:
        if kind in types.JUDGED:
            name = types.JUDGED[kind]
            self._lose(
                f"{kind}: a judged measure here: --rag-measures={name}, and a gate on it (docs/explanation/judging.md)"
            )
        else:
            self._lose(f"{kind}: {types.why_unmatched(kind)}")

    def _lose(self, what: str) -> None:
        self._notes.lose(what, self._where)


def _as_text(value: Any) -> Any:
    """Return a number as text, as promptfoo looks for it."""
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def _number(value: Any) -> Any:
    text = plain_text(value)
    return int(text) if text.isascii() and text.isdecimal() else value
