"""Details of a claim that its source does not support: figures, names, identifiers, negations and opposites."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from rag_harness.core.text.contradictions import Contradiction, against
from rag_harness.core.text.numbers import in_digits, in_words
from rag_harness.core.text.terms import STOPWORDS, opposite, same_sense, senses, stem
from rag_harness.evaluation.judges.embedded.alignment import SplitText
from rag_harness.evaluation.judges.embedded.quantities import (
    CITED,
    KnownSentences,
    Negation,
    Quantity,
    Sentence,
    clocks,
    quantities,
    sentence_of,
    share_among,
    times,
)
from rag_harness.evaluation.judges.embedded.values import is_computed, is_stated, misplaced

__all__ = ["absent"]


# Finds identifiers in a claim that no passage has: flags, paths, codes, versions. To the letter, or they are wrong.

_IDENTIFIER = re.compile(
    r"(?<![\w-])--?[A-Za-z][\w-]*(?![\w-])|(?<![\w/.:])/[\w.-]+(?:/[\w.-]+)+|\b[A-Za-z]\w*_\w+\b|\b(?!\d{1,2}\.\d{1,2}\.\d{4}\b)\d+(?:\.\d+){2,}\b"
    r"|\b[A-Z]{1,4}-?\d+[A-Za-z\d-]*\b|(?<![\w.-])[\w.-]{1,100}\.(?:py|json|ya?ml|toml|ini|conf|cfg|log|csv|sh|tar|gz|zip)\b"
)


def identifiers(text: str) -> list[str]:
    """Return the identifiers of a text."""
    return [found[0].rstrip(".") for found in _IDENTIFIER.finditer(text)]


def unknown_identifier(claim: Sentence, known: KnownSentences) -> str:
    """Return what no passage has of a claim's identifiers; empty where each is there."""
    said = identifiers(claim.text)
    found = identifier_not_in(said, [one.text for one in known.everything]) if said else ""
    return f"{found}: no passage has it" if found else ""


def identifier_not_in(said: Sequence[str], sources: Sequence[str]) -> str:
    """Return the first identifier that no source has to the letter; empty where each is there."""
    for one in said:
        whole = re.compile(rf"(?<![\w-]){re.escape(one)}(?![\w-])")
        if not any(whole.search(source) for source in sources):
            return one
    return ""


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
"""Words that begin a sentence and are not names, also before a name."""
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

    Such a name is alone before a verb, or before another capitalised word, where a similar passage has another
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


_FEWEST = 3
"""Least content words of a claim; shorter claims are not checked."""
_PUT_IN = 0.6
"""Least share of the claim's words in the sentence whose statement is said to be negated."""
_LEFT_OUT = 0.5
"""The same for a missing negation."""
_WHOLE, _ABOUT = 0.75, 0.7
"""Least share of the source's sentence in the claim, and of the claim in it, where the claim names what is denied."""
_STEM, _FORM = 4, 6
_SHOWN = 80


def negation(claim: Sentence, known: KnownSentences) -> str:
    """Return a negation that only the claim has, or only the source; empty where they agree."""
    if len(claim.stems) < _FEWEST:
        return ""
    if claim.negations:
        return _put_in(claim, known)
    return "" if claim.denials else _left_out(claim, known)


def _put_in(claim: Sentence, known: KnownSentences) -> str:
    for one in claim.negations:
        near = [
            sentence
            for sentence in known.sentences
            if share_among(claim.stems, sentence.stems) >= _PUT_IN and _all_in(one.scope, sentence.stems)
        ]
        if near and not any(sentence.denials - claim.denials or sentence.negations for sentence in near):
            return f"“{one.word}”: the passage says it without"
    return ""


def _left_out(claim: Sentence, known: KnownSentences) -> str:
    for sentence in known.sentences:
        for one in sentence.negations:
            if _is_left_out(one, sentence, claim):
                text = " ".join(sentence.text.split())
                return f"left out is “{one.word}”: {text[:_SHOWN]}{'…' * (len(text) > _SHOWN)}"
    return ""


def _is_left_out(one: Negation, sentence: Sentence, claim: Sentence) -> bool:
    """Return whether a claim states what a sentence negates: about the same subject, or with the same words nearby."""
    forth = share_among(claim.stems, sentence.stems)
    if forth >= _ABOUT and one.subject and _all_in(one.subject, claim.stems):
        return True
    if not _all_in(one.scope, claim.stems):
        return False
    is_whole = len(sentence.stems) >= _FEWEST and share_among(sentence.stems, claim.stems) >= _WHOLE
    return forth >= _LEFT_OUT or is_whole


def _all_in(stems: Iterable[str], others: frozenset[str]) -> bool:
    return all(stem in others or _has_form(stem, others) for stem in stems)


def _has_form(stem: str, others: frozenset[str]) -> bool:
    """Return whether there is another form of a long word: acquisition of acquire."""
    return len(stem) >= _FORM and any(len(other) > _STEM and other[:_STEM] == stem[:_STEM] for other in others)


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
    """Return whether a figure follows another one in brackets: "350 °F (175 °C)"."""
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

    having, without = list[Sentence](), list[Sentence]()
    for sentence in known.sentences:
        (having if any(_may_be(said, one) for one in sentence.quantities) else without).append(sentence)
    there = max(map(alike, having), default=0.0)
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


_LEAST = 0.75
"""Least share of the rest of a claim in the sentence that has the opposite."""
_ELSEWHERE = 0.5
"""Share of the rest in a sentence that has the claim's own word, from which that sentence may be the one meant."""
_FEWEST_SHARED_TERMS = 2
"""Least content words of the rest."""
_PLACED = frozenset(("before", "after"))
"""Function words that are compared, with the word behind them."""
_SIGN = r"[\s-]{0,24}[€$£]?\s{0,24}$"
_UPPER = re.compile(
    r"\b(?:under|below|less than|fewer than|up to|at most|no more than|not more than|(?:a )?maximum(?: of)?"
    rf"|younger than){_SIGN}",
    re.I,
)
_LOWER = re.compile(
    r"\b(?:over|above|more than|at least|no less than|(?:a )?minimum(?: of)?|older than"
    rf"|exceed(?:s|ing)?){_SIGN}",
    re.I,
)


class Bound(NamedTuple):
    """The words before a quantity that bound it, and whether from above."""

    words: str
    is_upper: bool


def unsupported_opposite(claim: Sentence, known: KnownSentences) -> str:
    """Return a word or a bound of a claim whose opposite a passage has in its place; empty where there is none."""
    return _other_bound(claim, known) or _opposite_word(claim, known)


def _other_bound(claim: Sentence, known: KnownSentences) -> str:
    for one in claim.quantities:
        ours = bound_of(claim.text, one)
        if ours is None:
            continue
        same = [(sentence, other) for sentence in known.sentences for other in sentence.quantities if one.same(other)]
        bounds = [bound_of(sentence.text, other) for sentence, other in same if _is_near(claim, sentence)]
        if bounds and all(theirs is not None and theirs.is_upper != ours.is_upper for theirs in bounds):
            return f"“{ours.words}”: the passage says “{bounds[0].words if bounds[0] else ''}”"
    return ""


def _is_near(claim: Sentence, sentence: Sentence) -> bool:
    return share_among(claim.stems, sentence.stems) >= _ELSEWHERE


def bound_of(text: str, one: Quantity) -> Bound | None:
    """Return the bound of a quantity in its text."""
    before = in_digits(text)[max(0, one.start - 24) : one.start]
    for pattern, is_upper in ((_UPPER, True), (_LOWER, False)):
        if found := pattern.search(before):
            return Bound(" ".join(found[0].strip(" -€$£").split()), is_upper)
    return None


def _opposite_word(claim: Sentence, known: KnownSentences) -> str:
    read = claim.read
    for place, word in enumerate(read.words):
        if not senses(word) or (word in STOPWORDS and word not in _PLACED):
            continue
        rest = claim.stems - {stem(word)}
        if len(rest) < _FEWEST_SHARED_TERMS:
            continue
        if any(_has(word, one) and share_among(rest, one.stems) >= _ELSEWHERE for one in known.sentences):
            continue
        for sentence in known.sentences:
            found = _in_place(place, word, claim, sentence)
            if found and share_among(rest, sentence.stems) >= _LEAST:
                return f"“{read.written[place]}”: the passage says “{found}”"
    return ""


def _has(word: str, sentence: Sentence) -> bool:
    return any(word == other or same_sense(word, other) or stem(word) == stem(other) for other in sentence.read.words)


def _in_place(place: int, word: str, claim: Sentence, sentence: Sentence) -> str:
    """Return the opposite of a word that a sentence has and the claim has not, where both deny or neither does."""
    if bool(claim.denials - _own(claim)) != bool(sentence.denials - _own(sentence)):
        return ""
    behind = _behind(claim, place)
    for at, other in enumerate(sentence.read.words):
        if (
            opposite(word, other)
            and not _has(other, claim)
            and (word not in _PLACED or behind == _behind(sentence, at))
        ):
            return sentence.read.written[at]
    return ""


def _own(sentence: Sentence) -> frozenset[str]:
    """Return the words that deny something and have opposites of their own, such as "closed"."""
    return frozenset(word for word in sentence.denials if senses(word))


def _behind(sentence: Sentence, place: int) -> str:
    """Return the stem of the next content word."""
    read = sentence.read
    return next((read.stems[at] for at in range(place + 1, len(read.stems)) if read.content[at]), "")


# Rules for what a claim says and its source does not: a figure, date, name or identifier; a negation; an opposite.
#
# Word vectors hardly show these: a copied sentence with another number is as near to its source as before. The rules
# work on English words, and each says in plain words what is missing. docs/dev/results/embedded-judge.md has hits and
# misses.

_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")


def absent(text: SplitText, passages: Sequence[SplitText], question: str) -> list[str]:
    """Return for each sentence of ``text`` the details that no passage has, and what a passage has instead, if known.

    It is empty for a sentence without such a finding. An answer may repeat details of the question.
    """
    sentences = [text.text[start:end] for start, end in text.sentences]
    source = [passage.text[start:end] for passage in passages for start, end in passage.sentences]
    known = KnownSentences(source, question, [passage.text for passage in passages])
    denied = against(in_digits(text.text), [in_digits(passage.text) for passage in passages])
    return [
        _contradicted(span, text, denied, passages) or _missing(sentence, known)
        for span, sentence in zip(text.sentences, sentences, strict=True)
    ]


def _missing(sentence: str, known: KnownSentences) -> str:
    claim = sentence_of(sentence)
    return (
        unsaid_number(claim, known)
        or unknown_name(claim, known)
        or unknown_identifier(claim, known)
        or negation(claim, known)
        or unsupported_opposite(claim, known)
        or misplaced(claim, known)
    )


def _contradicted(
    span: tuple[int, int], text: SplitText, denied: Sequence[Contradiction], passages: Sequence[SplitText]
) -> str:
    for one in denied:
        if not span[0] <= one.first.start < span[1]:
            continue
        ours, theirs = one.differs
        if one.kind == "negation":
            return "the passage denies it" if theirs == "denied" else "it denies what the passage says"
        passage = passages[one.second.text].text
        claimed, stated = text.text[one.first.start : one.first.end], passage[one.second.start : one.second.end]
        ours, theirs = in_words(claimed, ours), in_words(stated, theirs)
        if _has_number_or_year(ours, stated, passage):
            continue
        texts = [each.text for each in passages]
        if is_stated(ours, texts) and (times(ours) or not _is_strict(ours, texts) or is_stated(ours, [theirs])):
            continue
        if times(ours):
            return f"{ours}: no passage says it"
        return f"{ours}: the passage says {theirs}"
    return ""


def _has_number_or_year(said: str, stated: str, passage: str) -> bool:
    """Return whether the statement has the number, too, or the passage the year: then it says no other one instead."""
    if _YEAR.fullmatch(said):
        return re.search(rf"\b{said}\b", passage) is not None
    numbers = {one.number for one in quantities(said)}
    return bool(numbers) and numbers <= {one.number for one in quantities(stated)}


def _is_strict(said: str, texts: Sequence[str]) -> bool:
    """Return whether a passage has a value with its own unit, as what is said of something else has."""
    stated = [one for text in texts for one in quantities(text)]
    return all(any(one.same(other) for other in stated) for one in quantities(said))
