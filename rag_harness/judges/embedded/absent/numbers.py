"""Finds figures of a claim that its source does not have, or has for something else."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rag_harness.judges.embedded.absent.quantities import Quantity
from rag_harness.judges.embedded.absent.sentences import KnownSentences, Sentence, share_among
from rag_harness.judges.embedded.absent.stated import is_computed, is_stated
from rag_harness.judges.embedded.figures import clocks

_SAME = 0.6
"""Least similarity of a sentence with another figure about the same thing."""
_MARGIN = 0.25
"""Least margin to a sentence that has the claim's figure."""
_NEAR = 0.3
"""Least similarity of a sentence with another time of day."""
_COPIED, _LESS = 0.95, 0.1
"""Similarity of a sentence that was copied except for the figure; then the second, smaller margin is enough."""
_BEFORE_BRACKET = re.compile(r"\d[^()\n]{0,20}\(\s?$")
_JSON_TIME = re.compile(r"\d:\d\b(?!\d)")
"""Times without a second digit, as data has them; they are compared by day."""
_OWN = 12
"""A count up to this may be the claim's own: "three ways" for three listed items."""


def unsaid_number(claim: Sentence, known: KnownSentences) -> str:
    """Return the first figure of a claim that the source lacks for the same thing; empty where there is none."""
    asked = known.question.quantities
    new = [said for said in claim.quantities if not any(map(said.same, asked)) and not _is_converted(said, claim)]
    found = (_unsaid(said, claim, known) for said in new)
    return next(filter(None, found), "") or _unsaid_time(claim, known)


def _is_converted(said: Quantity, claim: Sentence) -> bool:
    """Return whether a figure stands in brackets behind another one: "350 °F (175 °C)"."""
    return bool(said.unit) and _BEFORE_BRACKET.search(claim.text[max(0, said.start - 30) : said.start]) is not None


def _unsaid_time(claim: Sentence, known: KnownSentences) -> str:
    """Return a time of day that no passage has, where a similar sentence has another one."""
    for written, _ in clocks(claim.text):
        if is_stated(written, [*known.texts, known.question.text]) or _JSON_TIME.search("\n".join(known.texts)):
            continue
        near = [(share_among(claim.stems, one.stems), one) for one in known.sentences]
        others = [(alike, time) for alike, one in near if alike >= _NEAR for time, _ in clocks(one.text)]
        if others:
            return f"{written}: the passage says {max(others, key=lambda other: other[0])[1]}"
    return ""


def _unsaid(said: Quantity, claim: Sentence, known: KnownSentences) -> str:
    around = claim.around(said.start)

    def alike(sentence: Sentence) -> float:
        return (share_among(around, sentence.stems) + share_among(claim.stems, sentence.stems)) / 2

    having = [sentence for sentence in known.sentences if any(_may_be(said, one) for one in sentence.quantities)]
    there = max(map(alike, having), default=0.0)
    without = [sentence for sentence in known.sentences if sentence not in having]
    others = [((alike(one), _shared(one, claim)), rival) for one in without for rival in _rivals(said, one, claim)]
    (best, _), rival = max(others, key=lambda other: other[0], default=((0.0, 0), None))
    is_nearer = best >= there + _MARGIN or best >= _COPIED > there + _LESS
    if not having and (is_stated(said.written, known.texts) or is_computed(said, claim, known.sentences)):
        return ""
    if rival and is_nearer and best >= _SAME:
        return f"{said.written}: the passage says {rival.written}"
    return "" if having or _is_own(said, bool(rival)) else f"{said.written}: no passage says it"


def _may_be(said: Quantity, other: Quantity) -> bool:
    """Return whether a quantity may be the claim's: also "8-12 abroad" for twelve days, which leaves out the unit."""
    return said.same(other) or (bool(said.unit) and not other.unit and said.number == other.number)


def _shared(sentence: Sentence, claim: Sentence) -> int:
    """Return how many figures of a claim a sentence has: this selects the right row of a table."""
    return sum(any(map(said.same, sentence.quantities)) for said in claim.quantities)


def _rivals(said: Quantity, sentence: Sentence, claim: Sentence) -> Iterator[Quantity]:
    """Yield the figures of a sentence that measure the same thing and are not in the claim, the last first."""
    for other in reversed(sentence.quantities):
        is_rate = other.written.lower().startswith(("a ", "an "))
        if said.rivals(other) and not is_rate and not any(map(other.same, claim.quantities)):
            yield other


def _is_own(said: Quantity, has_rival: bool) -> bool:
    """Return whether a claim may have a figure that no passage has: it counts, tells its length or names a day."""
    if said.unit in ("month", "weekday"):
        return not has_rival
    return said.noun == "word" or (not said.unit and said.number <= _OWN and said.number % 1 == 0)
