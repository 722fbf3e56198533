"""Checks the bytes of JSON before any parser sees them: nesting, charset, half characters, numbers."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from rag_harness.service.problems import ProblemError, shortened

MOST_LEVELS = 64
_PAIR = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
_STEP = np.zeros(256, dtype=np.int8)
_STEP[[ord("["), ord("{")]] = 1
_STEP[[ord("]"), ord("}")]] = -1


def check_json(body: bytes) -> None:
    """Check the bytes of a JSON text before they are parsed.

    Raises:
        ProblemError: 400 if they nest deeper than ``MOST_LEVELS``, are not UTF-8, escape half a character, or have a
            number that is not finite.
    """
    if not _is_utf8(body):
        raise ProblemError(400, "not_utf8", "The body is not JSON in UTF-8. Send it as UTF-8.")
    plain = _without_escapes(body)
    if levels_exceed(plain, MOST_LEVELS):
        raise ProblemError(
            400, "too_deep", f"The body nests lists and objects deeper than {MOST_LEVELS} levels. Send it flatter."
        )
    if b"\\u" in plain and _HALF.search(_PAIR.sub(b"", plain)):
        raise ProblemError(
            400, "half_a_character", "The body escapes half a character (a lone surrogate). Send whole ones."
        )
    if fault := _number_fault(body):
        raise ProblemError(400, "not_finite", f"In the body {shortened(fault)}: NaN, infinite or too large.")


def is_flat(text: str) -> bool:
    """Return whether JSON nests no deeper than ``MOST_LEVELS``."""
    return not levels_exceed(_without_escapes(text.encode(errors="replace")), MOST_LEVELS)


def fault_of_value(value: Any, path: str) -> str:
    """Return what is wrong in a value that was parsed from checked bytes; empty if nothing is."""
    for where, found in _leaves(value, path):
        if isinstance(found, float) and not math.isfinite(found):
            return f"{where} is no finite number"
        if isinstance(found, str) and not _is_whole(found):
            return f"{where} has half a character (a lone surrogate)"
    return ""


def _is_whole(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= each <= "\udfff" for each in text)


def _number_fault(body: bytes) -> str:
    """Return the number that is not finite: Python's parser takes NaN, Infinity and 1e999. Empty if there is none."""
    odd: list[float] = []

    def number(text: str) -> float:
        found = float(text)
        if not math.isfinite(found):
            odd.append(found)
        return found

    try:
        value = json.loads(body, parse_float=number, parse_constant=number)
    except ValueError:
        return ""  # it is not JSON; the parser will report it
    return fault_of_value(value, "") if odd else ""


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield each value that holds no others, and each name in an object, with its path: ``inputs.weights[3]``."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield path, name
            yield from _leaves(each, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for place, each in enumerate(value):
            yield from _leaves(each, f"{path}[{place}]")
    else:
        yield path, value


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    # UTF-16 would hide brackets from this check but not from the parser. In UTF-8, no byte of a JSON text is 0.
    return b"\0" not in body


def _without_escapes(body: bytes) -> bytes:
    """Return the text without escaped backslashes and quotes. Each quote that is left begins or ends a string."""
    return body.replace(b"\\\\", b"__").replace(b'\\"', b"__")


def levels_exceed(plain: bytes, most: int) -> bool:
    """Return whether brackets outside strings nest deeper than ``most``. Linear: 1 MB takes milliseconds."""
    if plain.count(b"[") + plain.count(b"{") <= most:
        return False
    found = np.frombuffer(plain, dtype=np.uint8)
    in_string = np.bitwise_xor.accumulate(found == ord('"'))
    steps = np.where(in_string, np.int8(0), _STEP[found])
    return int(np.cumsum(steps, dtype=np.int32).max()) > most
