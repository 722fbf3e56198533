"""What the rules of one language are, and how its lists of words become patterns."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

_NUMBER = r"\d"
_CURRENCY = r"[€$£]\s?\d|\d\s?(?:€|eur\b|usd\b|gbp\b|chf\b|%)"
_CLOCK = r"\b\d{1,2}[:.]\d{2}\b|\b(?:19|20)\d\d\b|\b\d{1,2}[./]\d{1,2}\."


@dataclass(frozen=True)
class LanguageRules:
    """The rules of a language. Lists are words with blanks between; ``|`` stands between phrases.

    Attributes:
        code: two letters, ISO 639-1.
        name: its English name.
        stemmer: the name of its Snowball stemmer.
        function_words: words that carry no topic, in lower case.
        elided: what stands before an apostrophe and is no word of its own: the "l" of "l'assurance".
        abbreviations: what ends no sentence although a dot follows, without that dot, in lower case.
        ordinals: whether a dot behind a number makes it an ordinal, as in "3. März".
        declining: phrases that say "I don't know", as patterns.
        refusal: how the embedded reader says so; ``about_context`` is what it adds where it has a context.
        how_long, how_much, how_many, when: phrases with which one asks for a duration, money, a number, a date.
        durations, money, dates: words of the answers.
        kind_words: words of a question that only name the kind of its answer: "kostet", "Preis".
    """

    code: str
    name: str
    stemmer: str
    function_words: str
    elided: str
    abbreviations: str
    declining: str
    refusal: str
    about_context: str
    how_long: str
    how_much: str
    how_many: str
    when: str
    durations: str
    money: str
    dates: str
    kind_words: str = ""
    ordinals: bool = False

    @cached_property
    def stop_words(self) -> frozenset[str]:
        """The function words."""
        return frozenset(self.function_words.split())

    @cached_property
    def declines(self) -> re.Pattern[str]:
        """What an answer says that declines."""
        return re.compile(rf"\b(?:{self.declining})\b", re.IGNORECASE)

    @cached_property
    def _elision(self) -> re.Pattern[str] | None:
        return re.compile(rf"(?:{'|'.join(self.elided.split())})['’]", re.IGNORECASE) if self.elided else None

    @cached_property
    def _shortened(self) -> re.Pattern[str]:
        known = "|".join(re.escape(each) for each in self.abbreviations.split())
        return re.compile(rf"(?:(?<!\w)(?:{known}|[^\W\d_])|[.](?:\s?)[^\W\d_])[.]$", re.IGNORECASE)

    @cached_property
    def kinds(self) -> tuple[tuple[str, re.Pattern[str], re.Pattern[str]], ...]:
        """The kinds of answers as ``terms.answer_kind`` names them: how one asks for each, and how it is answered."""
        duration = rf"{_NUMBER}[^.;]{{0,20}}\b(?:{self.durations})\b"
        return tuple(
            (name, re.compile(rf"\b(?:{asked})\b", re.I), re.compile(answered, re.I))
            for name, asked, answered in (
                ("a duration", self.how_long, duration),
                ("an amount of money", self.how_much, rf"{_CURRENCY}|\b(?:{self.money})\b"),
                ("a number", self.how_many, _NUMBER),
                ("a date or time", self.when, rf"{_CLOCK}|\b(?:{self.dates})\b|{duration}"),
            )
        )

    def stem(self, word: str) -> str:
        """Return the stem of a word in lower case, by Snowball's algorithm."""
        import Stemmer

        # A new stemmer each time: it costs 0.3 µs, and a stemmer is not thread-safe.
        return str(Stemmer.Stemmer(self.stemmer, 0).stemWord(word))

    def plain(self, word: str) -> str:
        """Return a word in lower case without an elided one before it; empty for a stop word."""
        word = word.lower()
        if self._elision is not None:
            word = self._elision.sub("", word, count=1) or word
        return "" if word in self.stop_words else word

    def goes_on(self, before: str, following: str) -> bool:
        """Return whether a sentence goes on behind the dot at the end of ``before``: "z. B. Öl", "3. März".

        A single letter is an abbreviation. An ordinal stands before its noun; before a function word, the number ended
        the sentence.
        """
        if not before.endswith("."):
            return False
        if self._shortened.search(before[-16:]):
            return True
        first = following.split(maxsplit=1)[0].strip("\"'“”„»«()*_.,:;").lower() if following.split() else ""
        is_ordinal = self.ordinals and _ORDINAL.search(before[-5:]) is not None
        return is_ordinal and first[:1].isalpha() and first not in self.stop_words

    def goes_on_at(self, text: str, start: int, border: int) -> bool:
        """Return whether a sentence of ``text`` that begins behind ``start`` goes on behind ``border``."""
        before = text[max(start, border - _LOOKED_AT) : border].rstrip()
        return self.goes_on(before, text[border : border + _LOOKED_AT])


_LOOKED_AT = 80
_ORDINAL = re.compile(r"(?<![\d.,])\d{1,2}\.$")
