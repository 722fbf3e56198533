"""Is a JSON body harmless? Asked of its bytes, before any parser: nesting, charset, half characters."""

from __future__ import annotations

import re

import numpy as np

from rag_harness.service.problems import ProblemError

MOST_LEVELS = 64
_PAIR = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
_STEP = np.zeros(256, dtype=np.int8)
_STEP[[ord("["), ord("{")]] = 1
_STEP[[ord("]"), ord("}")]] = -1


def check_json(body: bytes) -> None:
    """Check bytes that a JSON parser will be given.

    Raises:
        ProblemError: 400 where they nest deeper than ``MOST_LEVELS``, are not UTF-8, or escape half a character.
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


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    # UTF-16 would hide brackets from us and show them to the parser; in UTF-8 no byte of a JSON text is 0.
    return b"\0" not in body


def _without_escapes(body: bytes) -> bytes:
    """Return it with each escaped backslash and quote hidden: then each quote that is left begins or ends a string."""
    return body.replace(b"\\\\", b"__").replace(b'\\"', b"__")


def levels_exceed(plain: bytes, most: int) -> bool:
    """Return whether brackets outside strings nest deeper than ``most``; linear, 1 MB takes milliseconds."""
    if plain.count(b"[") + plain.count(b"{") <= most:
        return False
    found = np.frombuffer(plain, dtype=np.uint8)
    in_string = np.bitwise_xor.accumulate(found == ord('"'))
    steps = np.where(in_string, np.int8(0), _STEP[found])
    return int(np.cumsum(steps, dtype=np.int32).max()) > most
