"""Whether an answer says what a ground truth says, by a rule that needs no model.

Looked for in the answer, in this order: another yes or no than that of the truth; a statement that contradicts it; its
codes; its numbers, dates and amounts as values; its names; its words, without those that the question has already.
Words are compared by the stems of their language, and by pairs of characters where a script has no blanks.

``benchmarks/correct_rule.py`` measures the rule against the labels of people.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from rag_harness.words.citation_marks import CITATION
from rag_harness.words.comparison import comparable, compared_words, folded
from rag_harness.words.contradictions import against
from rag_harness.words.language import told
from rag_harness.words.languages import ENGLISH, has_rules
from rag_harness.words.polarity import asks_yes_or_no, is_bare, polarity
from rag_harness.words.stated_values import StatedValue, share_stated, stated_values, unit_words, value_words
from rag_harness.words.terms import terms

RULE = "ground_truth"
"""The name of the rule: what a row says that was decided by it."""
LEAST_VALUES, LEAST_NAMES, LEAST_WORDS = 2 / 3, 0.6, 0.5
"""Least shares of the values, the names and the words of a truth that an answer must have."""
LEAST_WORDS_BESIDE = 0.25
"""Least share of the words where all values, codes and names are there, too."""
_NAME = re.compile(r"(?<![.!?:\n]\s)(?<!^)(?<![\w.])[^\W\d_a-z][^\W\d_]+(?:-[^\W\d_]+)*")
_CHUNK = re.compile(r"[^\s\"'`(),;]+")
_CODED = re.compile(r"\d[^\W\d_]|[^\W\d_]-?\d|[_/=\\]|\w\.\w|^--?[^\W\d_]")
_PER = re.compile(r"[^\W\d_]{1,2}/")
_ENDS = re.compile(r"[.!?;:]\s")
_PIECE = re.compile(r"\d+|[^\W\d_]+")
_ITEMS = re.compile(r"[,;、\n&]|\b(?:and|und|et|y|e|en|as well as)\b")
_LONGEST_ITEM = 4
_UNITS = "|".join(re.escape(unit) for unit in sorted(unit_words(), key=len, reverse=True))
_NUMBER_AND_UNIT = re.compile(
    rf"(?<![\d.,])\d[\d.,]{{0,20}}[\s-]?(?:{_UNITS})(?!\w)"
    r"|\b(?:may|march) \d|\d(?:st|nd|rd|th)? (?:of )?(?:may|march)\b",
    re.I,
)
_SECOND_QUESTION = re.compile(
    r"\b(?:and|und|et|y)\s+(?:\w+\s)?(?:who|whom|what|when|how|which|where|why|wh?en|wie|qui|combien)\b"
)
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_UNIT_WORDS = frozenset(["eur", "euro", "usd", "dollar", "gbp", "pound", "cent", "franc", "percent", "prozent"])
_NO_TERMS = _UNIT_WORDS | {"none", "never", "nothing", "nobody", "cannot", "without", "neither", "ye"}
"""Words of currencies, and those of yes or no, which ``polarity`` looks at."""
_REPEATED = 3
_MOST = 20_000
"""Characters of an answer that are looked at."""


@dataclass(frozen=True, slots=True)
class Match:
    """How an answer and a ground truth agree.

    Attributes:
        share: mean share of what the truth says that the answer says, in [0, 1].
        agrees: whether the answer says what the truth says; None where the rule cannot tell.
    """

    share: float
    agrees: bool | None


def answer_match(question: str, truth: str, answer: str) -> Match:
    """Return how an answer to a question agrees with its ground truth, which has at least a word or a number."""
    return _Compared(question, truth, CITATION.sub(" ", answer[:_MOST])).match


class _Compared:
    """A question, its ground truth and an answer, side by side."""

    def __init__(self, question: str, truth: str, answer: str) -> None:
        self._question, self._truth, self._answer = question, truth, answer
        languages = [told(truth) or told(f"{question} {truth}"), told(answer)]
        self._differ = bool(all(languages)) and languages[0] != languages[1]
        self._language = next(filter(None, languages), ENGLISH)

    @property
    def match(self) -> Match:
        if (said := self._by_polarity()) is not None:
            return said
        shares = [share for share in (self._values, self._names, self._codes) if share is not None]
        share = (sum(shares) + self._words) / (len(shares) + 1)
        if self._contains and not self._contradicts:
            return Match(1.0, True)
        if self._is_code:
            return Match(share, self._codes == 1)
        if self._differ:
            return Match(share, True if shares and min(shares) == 1 else None)
        return Match(share, self._has_all(bool(shares)) and not self._contradicts)

    def _has_all(self, has_facts: bool) -> bool:
        values = self._values is None or self._values >= LEAST_VALUES
        names = self._names is None or self._names >= LEAST_NAMES
        codes = self._codes is None or self._codes == 1
        least = LEAST_WORDS_BESIDE if has_facts else LEAST_WORDS
        return values and names and codes and self._words >= least and self._has_items

    def _by_polarity(self) -> Match | None:
        """Return the match of an answer to a question of yes or no, where that alone decides."""
        mine, its = polarity(self._truth), polarity(self._answer)
        if mine is None or its is None or not (mine.stated or asks_yes_or_no(self._question)):
            return None
        if mine.affirms != its.affirms:
            return Match(0.0, False)
        if is_bare(self._truth) or (self._values is None and self._terms(self._truth) <= self._terms(self._question)):
            return Match(1.0, True)
        if mine.stated and (its.stated or self._repeats) and not _asks_more(self._question):
            return Match(1.0, not self._contradicts)
        return Match(1.0, True) if mine.stated and self._values == 1 else None

    @property
    def _repeats(self) -> bool:
        """Whether an answer is the question as a statement, which is a yes, or with a negation, which is a no."""
        asked = self._terms(self._question)
        said = self._terms(self._answer)
        return bool(asked) and _REPEATED * sum(_has_word(word, said) for word in asked) >= len(asked)

    @cached_property
    def _values(self) -> float | None:
        asked = stated_values(self._question, self._language)
        mine = [each for each in stated_values(self._truth, self._language) if not self._is_article(each)]
        wanted = [each for each in mine if not any(one.has(each) for one in asked)]
        return share_stated(wanted, stated_values(self._answer, self._language)) if wanted else None

    def _is_article(self, value: StatedValue) -> bool:
        """Whether a value is the "one" of a sentence, which need not be counted."""
        return value.exact == {("number", 1.0)} and "1" not in self._truth

    @cached_property
    def _names(self) -> float | None:
        if self._language == "de":  # all nouns have capitals
            return None
        known = set(compared_words(self._question))
        lead = "x " if self._is_name else ""
        found = map(folded, _NAME.findall(lead + self._truth))
        wanted = {word for word in found if word not in known | value_words() | unit_words() | _UNIT_WORDS}
        said = set(compared_words(self._answer))
        return len(wanted & said) / len(wanted) if wanted else None

    @property
    def _is_name(self) -> bool:
        """Whether a truth is a name and no sentence, so that its first capital tells, too."""
        return len(self._truth.split()) > 1 and all(word[:1].isupper() for word in self._truth.split() if len(word) > 3)

    @cached_property
    def _codes(self) -> float | None:
        wanted = _codes_in(self._truth)
        pieces = _pieces(self._answer)
        return sum(_pieces(code) <= pieces for code in wanted) / len(wanted) if wanted else None

    @property
    def _is_code(self) -> bool:
        """Whether the truth is a code and nothing else."""
        return self._codes is not None and len(_CHUNK.findall(self._truth)) == len(_codes_in(self._truth))

    @cached_property
    def _words(self) -> float:
        """The share of the words of the truth, beside those of the question, that the answer has."""
        truth, question = self._terms(self._truth), self._terms(self._question)
        said = self._terms(self._answer) | frozenset(compared_words(self._answer))
        wanted = truth - question or (frozenset() if self._values else truth or self._plain_words)
        if truth and not wanted:  # its values are all that it adds: the answer has to be about the same
            mine = self._terms(self._answer)
            return float(not mine or any(_has_word(word, mine) for word in truth | question))
        return sum(_has_word(word, said) for word in wanted) / len(wanted) if wanted else 1.0

    def _terms(self, text: str) -> frozenset[str]:
        language = self._language if has_rules(self._language) else ENGLISH
        of_values = value_words(language)
        plain = _NUMBER_AND_UNIT.sub(" ", comparable(text))
        plain = _PIECE.sub(lambda found: " " if found[0].casefold() in of_values else found[0], plain)
        return frozenset(word for word in terms(plain, language) - _NO_TERMS if not word[0].isdigit())

    @property
    def _plain_words(self) -> frozenset[str]:
        return frozenset(compared_words(self._truth))

    @property
    def _has_items(self) -> bool:
        """Whether each item of a truth that is a list is in the answer."""
        items = _items(self._truth)
        if len(items) < 2 or max(len(item.split()) for item in items) > _LONGEST_ITEM:
            return True
        asked = self._terms(self._question)
        said = self._terms(self._answer) | frozenset(compared_words(self._answer))
        wanted = [words for item in items if (words := self._terms(item) - asked)]
        has_all = all(2 * sum(_has_word(word, said) for word in words) >= len(words) for words in wanted)
        return has_all and not self._has_more(frozenset().union(*wanted) | asked)

    def _has_more(self, known: frozenset[str]) -> bool:
        """Whether an answer of one sentence is a list with an item that neither truth nor question has."""
        items = _items(self._answer)
        if len(items) < 2 or _ENDS.search(self._answer.strip(" .")):
            return False
        short = [words for item in items if len(item.split()) <= 2 and (words := self._terms(item))]
        return any(not any(_has_word(word, known) for word in words) for words in short)

    @property
    def _contains(self) -> bool:
        """Whether the truth, word by word, stands in the answer."""
        wanted, said = _PIECE.findall(folded(self._truth)), _PIECE.findall(folded(self._answer))
        if _CJK.search(self._truth):
            return "".join(wanted) in "".join(said)
        size = len(wanted)
        return size > 0 and any(said[at : at + size] == wanted for at in range(len(said) - size + 1))

    @cached_property
    def _contradicts(self) -> bool:
        # A denial is told from the yes or no of both, where the question asks for that.
        denials = asks_yes_or_no(self._question)
        return any(not denials or each.kind != "negation" for each in against(self._answer, [self._truth]))


def _items(text: str) -> list[str]:
    return [item.strip() for item in _ITEMS.split(text.strip(" .")) if item.strip()]


def _codes_in(text: str) -> list[str]:
    chunks = (chunk.rstrip(".:!?") for chunk in _CHUNK.findall(text))
    return [chunk for chunk in chunks if _CODED.search(chunk) and _is_code(chunk)]


def _is_code(text: str) -> bool:
    """Whether it is a code, and no amount with its unit: "€1,250.00", "5 l/100"."""
    return text.count(".") > 1 or (any(map(str.isalpha, text)) and _PER.match(text) is None)


def _pieces(text: str) -> set[str]:
    return set(_PIECE.findall(folded(text)))


def _has_word(word: str, said: frozenset[str]) -> bool:
    return word in said or (len(word) >= 5 and any(_is_alike(word, each) for each in said))


def _is_alike(word: str, other: str) -> bool:
    """Whether two words have the same beginning, as inflected and derived forms have."""
    size = max(5, min(len(word), len(other)) - 2)
    return len(other) >= 5 and word[:size] == other[:size]


def _asks_more(question: str) -> bool:
    return _SECOND_QUESTION.search(folded(question)) is not None
