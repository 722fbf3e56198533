"""Whether what is printed is what was computed: numbers with their decimals, or between two ends where chance was drawn."""

from __future__ import annotations

import re
from collections.abc import Sequence

NUMBER = r"[-+]?[0-9][0-9,]*(?:\.[0-9]+)?"
Ends = tuple[float, float]


def problem(text: str, form: str, *wanted: float | Ends | str) -> str:
    """Return what is wrong with ``text``; empty where it is right.

    ``form`` is the text with ``{}`` for each of ``wanted``: a number, which must be printed right in as many decimals
    as are printed; two ends between which it must lie; or a text.
    """
    pattern = re.escape(form).replace(re.escape("{}"), "(.+?)")
    found = re.fullmatch(pattern, text)
    if not found:
        return f"{text!r} is not of the form {form!r}"
    wrong = [f"{said} for {_said(want)}" for said, want in zip(found.groups(), wanted, strict=True) if not _fits(said, want)]
    return f"{text!r}: {', '.join(wrong)}" if wrong else ""


def _fits(said: str, want: float | Ends | str) -> bool:
    if isinstance(want, str):
        return said == want
    if not re.fullmatch(NUMBER, said):
        return False
    number, half = float(said.replace(",", "")), 0.5 * 10.0 ** -len(said.partition(".")[2]) * (1 + 1e-6)
    low, high = want if isinstance(want, tuple) else (want, want)
    return low - half - 1e-12 <= number <= high + half + 1e-12


def _said(want: float | Ends | str) -> str:
    return want if isinstance(want, str) else " to ".join(f"{end:.6g}" for end in _ends(want))


def _ends(want: float | Ends) -> Sequence[float]:
    return want if isinstance(want, tuple) else (want,)
