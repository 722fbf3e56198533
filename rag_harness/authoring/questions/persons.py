"""Changes the grammatical person: what a page says to its reader, in the reader's own words."""

from __future__ import annotations

import re
from collections.abc import Collection

from rag_harness.authoring.questions.clauses import AUXILIARIES
from rag_harness.authoring.questions.wordlists import word_set

_OBJECT_AFTER = word_set(
    """
    to for from with by of on at between about around against give gives gave send sends let lets ask asks allow
    allows help helps tell tells show shows pay pays charge charges contact reach reaches call calls email text owe
    costs earn earned earns save saves refund refunds notify warn inform enable enables require requires want wants
    than like beside near remind reminds invite invites
    """
)
"""Words after which "you" becomes "me"."""
_OPENING = word_set("A An The If When Once Unless To You We Your Our Each Every All No Any Some Use Set Call")
_PERSONS = {
    "your": "my", "yours": "mine", "yourself": "myself", "you're": "I'm", "you’re": "I'm", "you've": "I've",
    "you’ve": "I've", "you'll": "I'll", "you’ll": "I'll", "you'd": "I'd", "we": "you", "us": "you", "our": "your",
    "ours": "yours", "we're": "you're", "we've": "you've", "we'll": "you'll", "ourselves": "yourselves",
    "we’re": "you're", "we’ve": "you've", "we’ll": "you'll", "let's": "let's",
}  # fmt: skip


_ANY = re.compile(r"\b(?:you|we|us|our|let's)", re.I)


def asked_by_reader(text: str) -> str:
    """Return a page's words as its reader would say them: "you" becomes I or me, "we" becomes you."""
    if not _ANY.search(text):
        return text
    words = text.split(" ")
    found = [_person(words, place) for place in range(len(words))]
    said = " ".join(found)
    for written, meant in (
        ("I are", "I am"),
        ("are I", "am I"),
        ("I were", "I was"),
        ("were I", "was I"),
        ("I aren['’]t", "I'm not"),
        ("I weren['’]t", "I wasn't"),
    ):
        said = re.sub(rf"\b{written}\b", meant, said)
    return said


def _person(words: list[str], place: int) -> str:
    word = words[place]
    bare = word.rstrip(",.;:?!)").lower()
    tail = word[len(bare) :]
    if bare == "you" and place and words[place - 1].lower() == "of":
        return "us" + tail
    if bare == "you":
        before = words[place - 1].lower() if place else ""
        last = place + 1 == len(words) or bool(tail)
        return ("me" if before in _OBJECT_AFTER or (last and before not in AUXILIARIES) else "I") + tail
    return _PERSONS[bare] + tail if bare in _PERSONS else word


def lower_first(text: str, names: Collection[str]) -> str:
    """Return ``text`` with a small first letter, unless its first word is one of ``names`` or looks like one."""
    first, _, others = text.partition(" ")
    word = first.strip("\"'“(,.:")
    following = others.split(" ", 1)[0]
    named = (following[:1].isupper() or following[:1].isdigit()) and word not in _OPENING
    return text if named or word in names or not (word.istitle() or len(word) == 1) else text[:1].lower() + text[1:]
