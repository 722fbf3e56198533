"""Promises over repeats: what a gate asks of several answers to the same question.

``pass^3(citation_recall)`` is the chance that all of 3 answers are right, ``worst_of_3(token_f1)`` the mean worst value
of 3, and ``flip_rate(token_f1>=0.5)`` the chance that of 2 answers one is right and one is wrong. An answer is right
where the measure has its best value, or where it holds the condition that stands behind the measure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import isfinite
from typing import Literal, TypeAlias

PromiseKind: TypeAlias = Literal["pass^", "worst_of_", "flip_rate"]
FORMS = "pass^3(…), worst_of_3(…) or flip_rate(…)"
_OF = re.compile(r"(pass\^|worst_of_|flip_rate)\s*(\w*)\s*\(\s*(.*?)\s*\)")
_LIMITED = re.compile(r"(.*?)\s*([<>=!]+)\s*(.*)")
_LIMITS = (">=", "<=", ">", "<")
_KINDS: dict[str, PromiseKind] = {"pass^": "pass^", "worst_of_": "worst_of_", "flip_rate": "flip_rate"}


@dataclass(frozen=True, slots=True)
class Promise:
    """What is asked of ``k`` answers to each question.

    ``limit`` is the condition of a right answer, as an operator and a number. None is the measure's best value.
    """

    kind: PromiseKind
    k: int
    limit: tuple[str, float] | None = None

    def of(self, measure: str) -> str:
        """Return the text of the promise about a measure: ``pass^3(token_f1>=0.5)``."""
        number = "" if self.kind == "flip_rate" else str(self.k)
        return f"{self.kind}{number}({measure}{limit_text(self.limit)})"

    @property
    def is_share(self) -> bool:
        """Whether its values are chances, whatever the unit of the measure is."""
        return self.kind != "worst_of_"


def number_text(number: float) -> str:
    """Write a number as a person would: 1, not 1.0."""
    return repr(number).removesuffix(".0")


def read_promise(what: str) -> tuple[Promise, str] | None:
    """Return the promise in the left side of a gate, and the name of its measure; None where there is none.

    Raises:
        ValueError: it is half a promise; the message is the problem in words.
    """
    found = _OF.fullmatch(what)
    if not found:
        if what.startswith(("pass^", "pass@")):
            raise ValueError(f"{what!r} is no promise over repeats; write {FORMS}")
        return None
    kind, digits, inner = _KINDS[found[1]], found[2], found[3]
    if kind == "flip_rate":
        if digits:
            raise ValueError(f"flip_rate compares 2 answers, and takes no number; write flip_rate({inner})")
        return _promise(kind, 2, inner)
    if not (digits.isascii() and digits.isdigit() and int(digits) > 0):
        raise ValueError(f"a number of answers, 1 or more, stands behind {kind!r}; write {kind}3({inner})")
    return _promise(kind, int(digits), inner)


def _promise(kind: PromiseKind, k: int, inner: str) -> tuple[Promise, str]:
    if "~" in inner:
        raise ValueError(f"people's labels are of first answers, so {inner} has no promise over repeats")
    measure, limit = read_limit(inner)
    if limit and kind == "worst_of_":
        raise ValueError(f"{kind}{k} takes the values themselves; write {kind}{k}({measure}), or pass^{k}({inner})")
    return Promise(kind, k, limit), measure


def read_limit(inner: str) -> tuple[str, tuple[str, float] | None]:
    """Return what stands before the condition of ``token_f1>=0.5``, and the condition; None where there is none.

    A condition inside of parentheses belongs to what is called there.

    Raises:
        ValueError: the condition cannot be read; says why.
    """
    called = inner[: call_end(inner)]
    limited = _LIMITED.fullmatch(inner[len(called) :])
    if not limited:
        return inner, None
    more, op, digits = limited.groups()
    if op not in _LIMITS:
        raise ValueError(f"{op!r} in {inner!r} is no comparison; use one of {' '.join(_LIMITS)}")
    try:
        limit = float(digits)
    except ValueError:
        limit = float("nan")
    if not isfinite(limit):
        raise ValueError(f"{digits!r} in {inner!r} is no number")
    return called + more, (op, limit)


def limit_text(limit: tuple[str, float] | None) -> str:
    """Return the text of a condition: ``>=0.5``; empty where there is none."""
    return f"{limit[0]}{number_text(limit[1])}" if limit else ""


def call_end(text: str) -> int:
    """Return where the call ends that a text begins with: behind ``pass^3(token_f1>=0.5)``; 0 where it is no call."""
    opened = text.find("(")
    if opened < 0 or any(sign in text[:opened] for sign in "<>=!)"):
        return 0
    depth = 0
    for place in range(opened, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if not depth:
            return place + 1
    return 0
