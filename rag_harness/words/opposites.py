"""Words that state the same or the opposite of a thing: allowed and forbidden, free and paid."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from rag_harness.words.terms import stem

_SENSES = """
    allow permit accept approve admit welcome possible legal let suitable | forbid prohibit ban deny refuse reject \
    decline impossible illegal disallow unsuitable
    include cover contain comprise insure reimburse refund provide | exclude except exempt omit separately
    free gratis complimentary | pay cost charge fee price chargeable
    need require compulsory mandatory obligatory must necessary | optional voluntary recommend unnecessary
    available | unavailable
    open | close shut
    liable | exempt
    before beforehand prior ahead | after afterwards afterward
    start begin commence | end finish stop
    fast quick | slow
    faster quicker | slower
    cheap | expensive dear
    cheaper | dearer
    wet damp moist moisten | dry
    oral spoken verbal | write written writing
    harmless safe | dangerous harmful unsafe damage hazardous
    indoor indoors inside | outdoor outdoors outside
    increase rise raise grow climb | decrease reduce fall drop decline lower shrink
    high higher highest | low lower lowest
    more | less fewer
    most maximum | least minimum
    above over | below under beneath
    ~ arrive arrival | depart departure
    ~ enter entry entrance | exit
    ~ buy purchase | sell
    enable activate | disable deactivate
    ~ on | off
    ~ public | private
    ~ manual manually | automatic automatically
    empty | full
    early earlier earliest | late later latest
    ~ first | last
    ~ old older | new newer
    ~ hot warm | cold cool
    ~ left | right
    ~ north northern | south southern
    ~ east eastern | west western
    win | lose
    always | never
    ~ all every everybody everyone | none nobody
    ~ import | export
    ~ upload | download
    lock | unlock
    connect | disconnect
    ~ temporary | permanent
    ~ internal | external
    ~ adult | child
    ~ domestic | international abroad
    ~ weekday | weekend
    ~ longer | shorter
    ~ long | short
    bigger larger | smaller
    big large | small
    heavier | lighter
    heavy | light
    stronger | weaker
    strong | weak
    valid | invalid expire
    active | inactive
    visible | hidden
    pass | fail
    add | remove
    ~ upper | lower
    ~ front | rear back
    ~ top | bottom
    ~ horizontal | vertical
    ~ odd | even
    remember keep | delete discard
"""
_PREFIXES = ("un", "non", "in", "im", "dis", "il", "ir")
_IRREGULAR = {
    "began": "begin", "begun": "begin", "forbidden": "forbid", "fell": "fall", "fallen": "fall", "rose": "rise",
    "grew": "grow", "won": "win", "lost": "lose", "bought": "buy", "sold": "sell", "kept": "keep", "paid": "pay",
    "denied": "deny", "denies": "deny", "banned": "ban", "stopped": "stop", "dropped": "drop", "children": "child",
    "shutting": "shut", "needed": "need",
}  # fmt: skip


_CONTRASTS = "~"
"""Mark of pairs that tell two things apart: what is stated of adults is not denied of children."""


class Sense(NamedTuple):
    """What a word states: of which pair of opposites, and which of the two."""

    pair: int
    side: bool


def opposite(one: str, other: str, contrasts: bool = True) -> bool:
    """Return whether two lower-case words are opposites; with ``contrasts``, also those that tell two things apart."""
    ours, theirs = senses(one), senses(other)
    if not contrasts:
        ours = frozenset(said for said in ours if said.pair not in _contrasts())
    return any(Sense(pair, not side) in theirs for pair, side in ours) or _negated(one, other) or _negated(other, one)


def same_sense(one: str, other: str) -> bool:
    """Return whether two lower-case words state the same of a thing."""
    return bool(senses(one) & senses(other))


@cache
def senses(word: str) -> frozenset[Sense]:
    """Return what a lower-case word states; nothing for most words."""
    word = _IRREGULAR.get(word, word)
    return _senses().get(word) or _senses().get(stem(word), frozenset())


@cache
def _contrasts() -> frozenset[int]:
    lines = filter(None, map(str.strip, _SENSES.splitlines()))
    return frozenset(pair for pair, line in enumerate(lines) if line.startswith(_CONTRASTS))


@cache
def _senses() -> dict[str, frozenset[Sense]]:
    found: dict[str, set[Sense]] = {}
    for pair, line in enumerate(filter(None, map(str.strip, _SENSES.splitlines()))):
        for side, words in enumerate(line.lstrip(_CONTRASTS).split("|")):
            for word in words.split():
                for form in {word, stem(word)}:
                    found.setdefault(form, set()).add(Sense(pair, bool(side)))
    return {word: frozenset(said) for word, said in found.items()}


def _negated(one: str, other: str) -> bool:
    """Return whether ``one`` is ``other`` with a negating syllable before it: unavailable, non-refundable."""
    if len(other) < 5:
        return False
    return any(one.startswith(prefix) and stem(one[len(prefix) :].lstrip("-")) == stem(other) for prefix in _PREFIXES)
