"""A row of promptfoo's CSV as a test: variables, ``__expected`` columns, labels.

``contains: Paris``, ``similar(0.8): Hello``, ``not-contains-any: a, "b, c"``; a text without a type is ``equals``.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from typing import Any

from rag_harness.authoring.importing.promptfoo.assertion_types import OF_TEXTS, TYPES, UNMATCHED_BEGINNINGS

_CONFIG = re.compile(r"__config:__expected(\d{0,4}):(\w{1,80})")
_EXPECTED = re.compile(r"__expected(\d{0,4})")
_THRESHOLD = re.compile(r"\((\d{1,12}(?:\.\d{1,12})?)\)")
_SCRIPT = {"javascript": "javascript", "fn": "javascript", "eval": "javascript", "python": "python"}
_RUBRIC = {"grade": "llm-rubric"}
_USUAL = {"similar": 0.8, "rouge-n": 0.75}
"""Thresholds of a compact text that states none."""
_METADATA = "__metadata:"
_OPTIONS = {"__prefix": "prefix", "__suffix": "suffix"}


def row_as_test(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as a test of a config has it. Columns that promptfoo does not know are variables."""
    configs = {found.groups(): value for name, value in row.items() if (found := _CONFIG.fullmatch(name)) and value}
    test: dict[str, Any] = {"vars": {}, "assert": [], "metadata": {}, "options": {}}
    for name, value in row.items():
        if found := _EXPECTED.fullmatch(name):
            if value and value.strip():
                test["assert"].append({**assertion_of(value), **_config(configs, found[1])})
        elif name.startswith(_METADATA):
            key = name.removeprefix(_METADATA)
            test["metadata"][key.removesuffix("[]")] = _listed(value or "") if key.endswith("[]") else value
        elif name in _OPTIONS:
            test["options"][_OPTIONS[name]] = value
        elif name in ("__description", "__threshold", "__providerOutput"):
            test[name[2:]] = value
        elif not name.startswith(("__config:", "__metric")):
            test["vars"][name] = value or ""
    return test


def _config(configs: Mapping[tuple[str | Any, ...], Any], number: str) -> dict[str, Any]:
    """Return the configuration of an assertion: that of all ``__expected`` columns, and that of its own."""
    own = {key: value for (of, key), value in configs.items() if of in ("", number)}
    return {key: _as_number(value) if key in ("threshold", "weight") else value for key, value in own.items()}


def assertion_of(text: str) -> dict[str, Any]:
    """Return the assertion that a compact text means."""
    head, colon, rest = text.partition(":")
    if colon and head in _SCRIPT | _RUBRIC:
        return {"type": (_SCRIPT | _RUBRIC)[head], "value": rest.strip()}
    if text.startswith("file://"):
        return {"type": "python" if ".py" in text else "javascript", "value": text}
    kind, rest = _known_type(text)
    bare = kind.removeprefix("not-")
    if not kind:
        return {"type": "equals", "value": text}
    stated = _THRESHOLD.match(rest)
    rest = rest[stated.end() :] if stated else rest
    if rest and not rest.startswith(":"):
        return {"type": "equals", "value": text}
    value = rest[1:].strip()
    threshold = float(stated[1]) if stated else _USUAL.get(bare)
    return {
        "type": kind,
        "value": _listed(value) if bare in OF_TEXTS else value or None,
        **({} if threshold is None else {"threshold": threshold}),
    }


def _known_type(text: str) -> tuple[str, str]:
    """Return the type that a text begins with, and what stands behind it; the longest of several."""
    bare = text.removeprefix("not-")
    begin = next((each for each in UNMATCHED_BEGINNINGS if bare.startswith(each)), "")
    if begin:
        name = re.split(r"[(:\s]", bare[len(begin) :], maxsplit=1)[0]
        found = f"{begin}{name}"
    else:
        found = max((each for each in TYPES if bare.startswith(each)), key=len, default="")
    return (text[: len(text) - len(bare)] + found, bare[len(found) :]) if found else ("", text)


def _listed(text: str) -> list[str]:
    r"""Return texts with commas between; one with a comma stands in quotes, or has ``\,``."""
    # A line break in a text is no end of a row, and csv takes it for one.
    plain = text.replace("\\,", "\0").replace("\n", "\1").replace("\r", "\2")
    rows: Iterator[list[str]] = csv.reader([plain], skipinitialspace=True)
    found = [each.replace("\0", ",").replace("\1", "\n").replace("\2", "\r").strip() for each in next(rows, [])]
    return [each for each in found if each]


def _as_number(value: Any) -> Any:
    try:
        return float(value)
    except (TypeError, ValueError):
        return value
