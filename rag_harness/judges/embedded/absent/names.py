"""Finds names in a claim that no passage has."""

from __future__ import annotations

import re
from functools import lru_cache

from rag_harness.judges.embedded.absent.quantities import quantities
from rag_harness.judges.embedded.absent.sentences import KnownSentences, Sentence, share_among
from rag_harness.judges.embedded.figures import CITED

_TITLE = 0.6
"""Share of capitalised words from which a sentence counts as a title."""
_BEGINS = re.compile(r"(?:^|[.!?:;•*–—\-(\"“”‘'|/#\]])[\s*_\"“'(]*\Z")
"""Text before a word that is capitalised only because of its position."""
_VERB = re.compile(
    r"(?:is|are|was|were|has|have|had|will|can|may|must|does|did|do|should|would|could|\w+s|\w+ed)", re.I
)
_OPENERS = frozenset(
    """
    both despite although however unlike besides given among throughout regarding following overall provide note
    customer customers government people
    """.split()  # noqa: SIM905
)
"""Words that begin a sentence and are no names, also before a name."""
_NO_NAME = ("ly", "s", "ing", "ed")
_OTHER = 0.3
"""Least similarity of a sentence whose name counts as replaced by another."""
_UNITS = frozenset(("fahrenheit", "celsius", "usd", "eur", "gbp", "chf"))
_FORMS = frozenset(("json", "xml", "csv", "html", "pdf", "yaml", "markdown", "faq", "url"))
"""Names of forms of texts: an answer may say what its source is."""
_DOTTED = re.compile(r"(?:[A-Z]\.){2,}")
_PREFIX, _SHORT = 4, 5


def unknown_name(claim: Sentence, known: KnownSentences) -> str:
    """Return a capitalised word of a claim that no passage has in any form; empty where there is none."""
    found = claim.read
    capital = [place for place, word in enumerate(found.written) if word[:1].isupper() and found.content[place]]
    count = sum(found.content.tolist())
    if count > 3 and len(capital) > _TITLE * count:
        return ""
    cited = [mark.span() for mark in CITED.finditer(claim.text)]
    for place in capital:
        start = int(found.spans[place][0])
        if any(first <= start < end for first, end in cited):
            continue
        if _is_of_money(place, claim):
            continue
        if not _is_known(place, claim, words_of(known)) and not _is_beginning(place, claim, known):
            return f"{found.written[place]}: no passage names it"
    return ""


def _is_of_money(place: int, claim: Sentence) -> bool:
    """Return whether a word names the country of a currency: Swiss francs."""
    following = claim.read.words[place + 1] if place + 1 < len(claim.read.words) else ""
    return following.removesuffix("s") in ("franc", "dollar", "pound", "euro", "krone", "krona", "peso", "rupee")


class Words:
    """The words of a source in the forms in which a name is searched for."""

    def __init__(self, known: KnownSentences) -> None:
        read = [sentence.read for sentence in known.everything]
        written = [word for text in read for word in text.written]
        self.words = frozenset(word for text in read for word in text.words)
        self.stems = frozenset(stem for text in read for stem in text.stems)
        self.joined = "".join(word for text in read for word in text.words)
        self.prefixes = frozenset(word[:_PREFIX] for word in self.words if len(word) >= _PREFIX)
        self.short = tuple(word for word in self.words if 2 < len(word) < _SHORT)
        dotted = [found[0].replace(".", "") for text in read for found in _DOTTED.finditer(text.text)]
        capitals = [word for word in written if 2 <= len(word) <= _SHORT and word.isupper()]
        self.abbreviations = frozenset(word.lower() for word in (*dotted, *capitals))
        letters = ["".join(word[0] for word in text.words) for text in read]
        self.initials = frozenset(
            row[at : at + n] for row in letters for n in range(2, _SHORT + 1) for at in range(len(row) - n + 1)
        )


@lru_cache(maxsize=8)
def words_of(known: KnownSentences) -> Words:
    """Return the words of a source, computed once for all claims of an answer."""
    return Words(known)


def _is_known(place: int, claim: Sentence, source: Words) -> bool:
    found = claim.read
    word = found.words[place].removesuffix("'s")
    if len(word) < 3 or word in source.words or found.stems[place] in source.stems or word in source.joined:
        return True
    if word in _UNITS or word in _FORMS or quantities(word.capitalize()):
        return True
    return _is_form(word, source) or _is_abbreviated(place, claim, source)


def _is_form(word: str, source: Words) -> bool:
    """Return whether a source has another form of a word: Norwegian of Norway, Governor of Gov."""
    if len(word) > _PREFIX and word[:_PREFIX] in source.prefixes:
        return True
    return any(word.startswith(short) for short in source.short)


def _is_abbreviated(place: int, claim: Sentence, source: Words) -> bool:
    """Return whether a source abbreviates the name (CA, U.S.), or the claim abbreviates a name of the source."""
    found = claim.read
    word = found.words[place].removesuffix("'s")
    if _initials(place, claim) in source.abbreviations:
        return True
    if any(_is_short_for(short, word) for short in source.abbreviations):
        return True
    short = word.rstrip("s")
    return _is_capital(found.written[place]) and (short in source.initials or short in source.joined)


def _is_capital(written: str) -> bool:
    """Return whether a word is an abbreviation in capitals, also in the plural: TVs."""
    return len(written) > 1 and written.rstrip("s").isupper()


def _initials(place: int, claim: Sentence) -> str:
    """Return the initials of the capitalised words around a word."""
    found = claim.read
    rows = zip(found.written, found.content, strict=True)
    named = [word[:1].isupper() and content and not _is_capital(word) for word, content in rows]
    first = last = place
    while first and named[first - 1]:
        first -= 1
    while last + 1 < len(named) and named[last + 1]:
        last += 1
    return "".join(word[0] for word in found.written[first : last + 1]).lower()


def _is_short_for(short: str, word: str) -> bool:
    """Return whether the letters of ``short`` occur in ``word`` in their order, and both begin with the same one."""
    letters = iter(word)
    return short[0] == word[0] and all(letter in letters for letter in short)


def _is_beginning(place: int, claim: Sentence, known: KnownSentences) -> bool:
    """Return whether a word is capitalised only because of its position, and is not the name of an actor.

    Such a name stands alone before a verb, or before another capitalised word, where a similar passage has another
    name.
    """
    found = claim.read
    start, end = found.spans[place].tolist()
    if not _BEGINS.search(found.text[:start]):
        return False
    following = found.written[place + 1] if place + 1 < len(found.written) else ""
    acts = (bool(_VERB.fullmatch(following)) and following.islower()) or following[:1].isupper()
    if (
        not acts
        or found.text[end] not in " '’"
        or found.words[place].endswith(_NO_NAME)
        or found.words[place] in _OPENERS
    ):
        return True
    rest = claim.stems - {found.stems[place]}
    return not any(share_among(rest, one.stems) >= _OTHER and _names_another(one, claim) for one in known.sentences)


def _names_another(sentence: Sentence, claim: Sentence) -> bool:
    found = sentence.read
    rows = zip(found.written, found.stems, found.content.tolist(), strict=True)
    return any(word[:1].isupper() and content and stem not in claim.stems for word, stem, content in rows)
