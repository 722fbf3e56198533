"""Answers as long as one may be, each of a form that some rule may read again and again."""

from __future__ import annotations

import json
from itertools import chain, repeat

from tests.hostile import ACTS

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
