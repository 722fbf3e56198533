"""Answers as long as one may be, each of a form that some rule may read again and again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from itertools import chain, repeat

from tests.hostile import ACTS
from tests.unit.quick_parsing import no_garbage_looked_for

LONGEST = 200_000
_REPEATED = {
    "prose": "The lamp can be returned within 45 days. ",
    "one letter": "a",
    "one digit": "1",
    "numbers": "1,234.5 ",
    "full stops": ".",
    "full stops and blanks": ". ",
    "lines": "\n",
    "citations": "Fact [1]. ",
    "marks side by side": "[1][2]",
    "open brackets": "[",
    "emoji": "👩‍👩‍👧",
    "accents": "e\u0301",
    "no blanks between words": "島の荷物は何日間。",
    "emphasis": "**a** ",
    "code": "`",
    "fences": "```\n",
    "rows of a table": "| a | b |\n",
    "days": "12 March 2024, ",
    "money": "€9.90 ",
    "negations": "isn't available, ",
    "tags": "<a ",
    "abbreviations": "e.g. Dr. No. U.S. ",
    "blanks that break nothing": "\u00a0",
    "links": "https://a.b/c ",
    "refusals": "I do not know. ",
    "times": "12:30 ",
    "an object in an object": '{"a":',
}
LONG_ANSWERS = {
    **{name: (text * (LONGEST // len(text) + 1))[:LONGEST] for name, text in _REPEATED.items()},
    "objects of a list": json.dumps([{"i": number} for number in range(15_000)]),
    "words": " ".join(f"w{number}" for number in range(28_000)),
    "claims": " ".join(f"Item {number} costs {number} euros [{number % 5 + 1}]." for number in range(5_000)),
    "texts that act": "".join(chain.from_iterable(repeat(ACTS, 100)))[:LONGEST],
}
WORST = ("full stops and blanks", "accents", "marks side by side", "words", "money", "fences")
"""Of those: the ones that took the longest."""
_SHORT, _LINEAR, _MOST = 0.1, 8.0, 2.0
_TRIES = 3


def check_growth(work: Callable[[str], object], text: str) -> None:
    """Check that the time of the processor grows as the text does: at most twice as fast, and two seconds in all."""
    for _ in range(_TRIES):  # other work on the machine takes caches away: the least busy look counts
        quarter, whole = _spent(work, text[: len(text) // 4]), _spent(work, text)
        if whole < _SHORT or whole < _LINEAR * quarter:
            break
    assert whole < _SHORT or whole < _LINEAR * quarter, (quarter, whole)
    assert whole < _MOST * len(text) / LONGEST, (quarter, whole)


def _spent(work: Callable[[str], object], text: str) -> float:
    with no_garbage_looked_for():  # it would look through all that thousands of other tests have left
        began = time.thread_time()
        work(text)
        return time.thread_time() - began
