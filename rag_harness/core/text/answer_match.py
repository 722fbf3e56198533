"""The match of an answer and a ground truth, by a rule that needs no model."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from rag_harness.core.text.comparison import comparable, compared_words, folded
from rag_harness.core.text.contradictions import against
from rag_harness.core.text.figures import word_set
from rag_harness.core.text.language_detection import told
from rag_harness.core.text.languages import ENGLISH, has_rules
from rag_harness.core.text.memory import remembered_as
from rag_harness.core.text.numbers import StatedValue, share_stated, stated_values, unit_words, value_words
from rag_harness.core.text.terms import CITATION, terms

_FIRMLY = "absolutely|definitely|certainly|surely|sure|natürlich|klar|selbstverständlich|bien sûr|por supuesto|claro"
_YES = rf"(?:{_FIRMLY})(?!,? (?:not|no|nicht|keine?|nein|non|pas|que no)\b)"
_YES += (
    "|indeed|exactly|absolument|jawohl|genau|yes|yep|yeah|correct|right|of course(?! not)"
    "|ja|doch|oui|sí|si,|sì|sim|да|tak|是的?|对|可以|能|はい|ええ"
)
_NO = (
    rf"(?:{_FIRMLY}),? (?:not?|nicht|nein|non|pas|que no)|of course not|by no means|under no circumstances|not at all"
    r"|keinesfalls|keineswegs|auf keinen fall|en aucun cas|pas du tout|de ninguna manera|en absoluto|絶対だめ"
    r"|no(?! (?:one|longer|more|less|later|sooner|matter))|nope|never|not(?! (?:only|just)\b)"
    "|nein|non|não|nee|нет|nie|不|否|没有|いいえ|いえ"
)
_SAID_FIRST = re.compile(rf"\W{{0,5}}(?:(?P<yes>(?:{_YES}))|(?P<no>{_NO}))(?![^\W\d_\u3040-\u9fff])")
_AUXILIARY = "is|are|was|were|do|does|did|can|could|may|might|must|should|will|would|has|have|had|need"
_SAID_SHORT = re.compile(
    rf"\W{{0,5}}(?:(?:it|they|you|he|she|we|i|that|there|one) (?:{_AUXILIARY}|ca|wo)"
    r"(?:(?P<no>n't| not(?! only)|not)\b|(?P<yes>(?=[,.;!]|$)))"
    r"|(?P<never>do not|don't)\b)"
)
_SAID_LATER = re.compile(r"\b(?:so|i'd say|the answer is|answer:)\W{1,3}(?:(?P<yes>yes)|(?P<no>no))\b")
_NEGATED = re.compile(
    r"\b(?:not|never|cannot|none|nobody|nothing|neither|nor|without|(?<!at )no)\b|-free\b"
    r"|n't\b|\b(?:nicht|keine?[nmrs]?|nie|niemals)\b"
    r"|\b(?:ne |n')[^\W\d_]{1,20} (?:pas|plus|jamais|rien)\b|\b(?:nunca|non|não|niet|geen|nem)\b"
    r"|[不没無无未]|ません|ない"
)
_DENYING = (
    "forbidden|prohibited|unlawful|illegal|banned|impossible|unusual|uncommon|wrong|excluded|refused|rejected|denied|failed"
    r"|barred|un\w{4,20}|verboten|untersagt|unmöglich|unzulässig|interdite?s?|prohibid[oa]s?|imposible"
)
_DENIAL = re.compile(rf"(?:\b(?:{_DENYING})\b|禁止|严禁)")
_DENIED_DENIAL = re.compile(rf"(?:\bnot|n't|\bnever|\bnicht|\bpas) (?:at all )?({_DENYING})\b")
_SENTENCE = re.compile(r"(?<=[.!?])\s|[。！？;]|\n")
_QUESTION = re.compile(
    r"\W{0,5}(?:(?:is|are|was|were|do|does|did|can|could|may|might|must|should|will|would|has|have|had|need|am)\b"
    r"|(?:ist|sind|war|darf|dürfen|kann|können|muss|müssen|soll|hat|haben|gibt|wird|werden|est-ce|peut-on|faut-il|puis-je"
    r"|puede|puedo|se puede|es|hay|posso|può|è|mag|kan)\b)"
)
_ASKS_WHAT = re.compile("[何誰谁哪几]|どこ|いつ|いくら|どの|どう|なぜ|什么|多少|怎")
_OR = re.compile(r"\b(?:or|oder|ou|o|of)\b")


class Polarity(NamedTuple):
    """The reply of a text to a question of yes or no. ``stated``: by a word of its own, as "Yes"."""

    affirms: bool
    stated: bool


def asks_yes_or_no(question: str) -> bool:
    """Return whether a question can be answered by yes or no."""
    text = folded(question)
    is_asked = _QUESTION.match(text) is not None or text.rstrip(" ?？。").endswith(("吗", "ますか", "ですか"))
    return is_asked and not _OR.search(text) and not _ASKS_WHAT.search(text)


def polarity(text: str) -> Polarity | None:
    """Return the reply of a text; None where it has none."""
    plain = folded(CITATION.sub(" ", text)).strip()
    if not plain:
        return None
    if (said := _SAID_FIRST.match(plain)) or (said := _SAID_LATER.search(plain[:400])):
        return Polarity(said["yes"] is not None, stated=True)
    if said := _SAID_SHORT.match(plain):
        return Polarity(said["yes"] is not None, stated=True)
    return Polarity(not negates(_SENTENCE.split(plain, maxsplit=1)[0]), stated=False)


def negates(text: str) -> bool:
    """Return whether a text has a negation."""
    return _NEGATED.search(folded(text)) is not None


def denied_denials(text: str) -> list[str]:
    """Return the words that deny something and are denied themselves: of "not forbidden" the last."""
    return [found[1] for found in _DENIED_DENIAL.finditer(folded(text))]


def denials(text: str) -> list[str]:
    """Return the words of a text that deny something by themselves, as "forbidden" does."""
    return [found[0] for found in _DENIAL.finditer(folded(text))]


def is_bare(text: str) -> bool:
    """Return whether a text is nothing but yes or no."""
    plain = folded(text).strip()
    said = _SAID_FIRST.match(plain)
    return said is not None and not plain[said.end() :].strip(" .!,。！")


_TAKEN_BACK = re.compile(
    r"\b(?:or rather|no, (?:sorry|wait)|sorry[:,]|correction|scratch that|i mean|i meant|i misspoke|meaning|to be exact"
    r"|to be precise|more precisely|more exactly|that said|in fact"
    r"|in reality|actually|instead|takes? (?:his|her|its|their)"
    r" place|on second thoughts?|strike that|make that|not quite|rather not|used to be|formerly|no longer"
    r"|until recently"
    r"|vielmehr|genauer gesagt|besser gesagt|stattdessen|nein, |en fait|en réalité|ou plutôt|pardon|non, "
    r"|mejor dicho|en realidad|o más bien|perdón|anzi|infatti)"
    r"|其实|不对|更正|准确地说|应该是|いや、|実は|訂正|正しくは"
)
_OPEN = re.compile(
    r"\b(?:could be|might be|may be|maybe|perhaps|possibly|somewhere between|depends? on|depending on|it depends|either"
    r"|or possibly|can't tell|cannot tell|not sure|no idea|hard to say|wouldn't swear|somebody|someone"
    r"|vielleicht|möglicherweise|kommt darauf an|eventuell|peut-être|ça dépend|cela dépend|quizás?|tal vez|depende)\b"
    r"|也许|可能|大概|不一定|かもしれ|たぶん|によります"
)
_TURNED = re.compile(r"\b(?:but|though|although|however|so|aber|obwohl|mais|pero|aunque)\b")


def taken_back(text: str) -> tuple[str, str] | None:
    """Return what a text says before it says that it is something else, and after it; None where it does not."""
    plain = folded(text)
    found = _TAKEN_BACK.search(plain)
    return (plain[: found.start()], plain[found.end() :]) if found else None


def leaves_open(text: str) -> bool:
    """Return whether a text says that it may be one thing or another."""
    return _OPEN.search(folded(text)) is not None


def turns(text: str) -> bool:
    """Return whether a text sets one part against another, as with "but"."""
    return _TURNED.search(folded(text)) is not None


LEAST_WORDS, LEAST_WORDS_BESIDE = 0.8, 0.25
"""Least share of the words of a truth: of one in words alone, and where its values, codes or names are there."""
_SHORT = 3
"""Most words of a truth that is a fact: an answer that has none of them is another."""
_NAME = re.compile(r"(?<![.!?:\n]\s)(?<!^)(?<![\w.])[^\W\d_a-z][^\W\d_]+(?:-[^\W\d_]+)*")
_FIRST_NAME = re.compile(r"(?:^|[.!?:]\s)([A-Z][^\W\d_]+) (?=[A-Z][^\W\d_])")
_CHUNK = re.compile(r"[^\s\"'`(),;]+")
_CODED = re.compile(r"\d[^\W\d_]|[^\W\d_]-?\d|[_/=\\]|\w\.\w|^--?[^\W\d_]")
_PER = re.compile(r"[^\W\d_]{1,2}/")
_ENDS = re.compile(r"[.!?;:]\s")
_STOPS = re.compile(r"(?<=[.!?])\s|\n")
_PIECE = re.compile(r"\d+|[^\W\d_]+")
_ITEMS = re.compile(
    r"[,;、\n&]|\b(?:and|und|et|y|e|en|as well as)\b|(?<=[\u3040-\u9fff])(?:和|与|及|と)(?=[\u3040-\u9fff])"
)
_LONGEST_ITEM = 4
_BETWEEN = re.compile(r"\W*(?:between|zwischen|entre)\b")
_UNITS = "|".join(re.escape(unit) for unit in sorted(unit_words(), key=len, reverse=True))
_NUMBER_AND_UNIT = re.compile(
    rf"(?<![\d.,])\d[\d.,]{{0,20}}[\s-]?(?:{_UNITS})(?!\w)"
    r"|(?:[上下]午|晚上|午[前後])?[一二三四五六七八九十两\d]{1,2}[点點時](?:半|整)?"
    r"|\b(?:may|march) \d|\d(?:st|nd|rd|th)? (?:of )?(?:may|march)\b",
    re.I,
)
_SECOND_QUESTION = re.compile(
    r"\b(?:and|und|et|y)\s+(?:\w+\s)?(?:who|whom|what|when|how|which|where|why|wh?en|wie|qui|combien)\b"
)
_EXPLAINS = re.compile(
    r"\W*(?:why|how (?!many|much|long|far|old|high|often)"
    r"|what (?:happens|should|must|does)|warum|wieso|wie |pourquoi|comment|por qué|cómo|为什么|怎)"
)
_ORDERED = re.compile(r"\b(?:order|sequence|steps?|reihenfolge|ordre|orden|ordine)\b|顺序|順", re.I)
_VERSION = re.compile(r"\b(?:version|release|versión|versie)\b", re.I)
_NUMBERED = re.compile(r"v?\d+(?:\.\d+)+")
_DIGIT = re.compile(r"\d")
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_CURRENCIES = {
    name: re.compile(pattern)
    for name, pattern in {
        "euro": r"€|\b(?:eur|euros?)\b",
        "dollar": r"\$|\b(?:usd|dollars?|dólares)\b",
        "pound": r"£|\b(?:gbp|pounds? sterling)\b",
        "franc": r"\bchf\b|\b(?:swiss )?francs?\b|\bfranken\b",
        "crown": r"\b(?:sek|nok|dkk|kroner|kronor|krona|krone)\b",
        "yen": r"円|\b(?:jpy|yen)\b",
        "yuan": r"元|\b(?:cny|rmb|yuan)\b",
    }.items()
}
_UNIT_WORDS = word_set("chf jpy cny rmb sek nok dkk eur euro usd dollar gbp pound cent franc percent prozent")
_NO_NAMES = _UNIT_WORDS | word_set("may march mr mrs ms dr prof sir madam ltd inc gmbh ag herr frau mme sr sra")
"""Words with a capital that need not be there: months, which are values, and titles."""
_NO_TERMS = _UNIT_WORDS | {"none", "never", "nothing", "nobody", "cannot", "without", "neither", "ye"}
"""Words of currencies, and those of yes or no, which ``polarity`` looks at."""
_MOST = 20_000
"""Characters of an answer that are looked at."""


@dataclass(frozen=True, slots=True)
class Match:
    """How an answer and a ground truth agree.

    Attributes:
        share: mean share of the truth that the answer states, in [0, 1].
        agrees: whether the answer agrees with the truth; None where the rule cannot decide.
    """

    share: float
    agrees: bool | None


@lru_cache(maxsize=2048)
@remembered_as(lambda match: [match.share, match.agrees], lambda known: Match(*known))
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
        facts = [share for share in (self._values, self._names, self._codes) if share is not None]
        share = (sum(facts) + self._words) / (len(facts) + 1)
        if self._is_double_negation:
            return Match(share, None)
        if self._is_turned or self._is_denied or self._is_taken_back or not _PIECE.search(self._answer):
            return Match(0.0, False)
        if self._is_doubtful:
            return Match(share, None)
        if self._is_replaced or self._is_left_out or self._is_another:
            return Match(share, False)
        agrees = (self._contains or self._says_all(facts)) and not self._is_contested
        return Match(1.0, True) if agrees else Match(share, None)

    def _says_all(self, facts: list[float]) -> bool:
        """Whether each part of the truth is in the answer."""
        if self._affirms is False:
            return False
        if self._affirms and self._yes_is_all:
            return True
        least = LEAST_WORDS_BESIDE if facts else LEAST_WORDS
        return all(share == 1 for share in facts) and self._words >= least and not self._missing_items

    @property
    def _is_contested(self) -> bool:
        """Whether something in an answer that has all of the truth speaks against it."""
        near = _Compared(self._question, self._truth, self._to_the_point)
        has_other = near._has_rival_value or bool(self._names and near._rival_names) or self._is_out_of_order
        return (
            has_other
            or self._has_item_of(_LONGEST_ITEM)
            or self._negates_other
            or self._turns_later
            or self._contradicts
        )

    @property
    def _to_the_point(self) -> str:
        """The sentences of the answer that have something of the truth, or at least half of what is asked."""
        asked = self._terms(self._question)
        told_of = [text for text in _STOPS.split(self._answer) if self._is_of(text, asked)]
        return " ".join(told_of) or self._answer

    def _is_of(self, text: str, asked: frozenset[str]) -> bool:
        said = self._terms(text)
        values = stated_values(text, self._language)
        if any(each.has(one) for each in values for one in self._wanted) or any(
            _has_word(word, said) for word in self._added
        ):
            return True
        return not said or 2 * sum(_has_word(word, said) for word in asked) >= len(asked)

    @property
    def _turns_later(self) -> bool:
        """Whether a sentence after the first sets something against a word of the truth."""
        later = [text for text in _ENDS.split(self._answer)[1:] if negates(text) or turns(text)]
        return any(_has_word(word, self._terms(text)) for text in later for word in self._added)

    @property
    def _is_doubtful(self) -> bool:
        """Whether the answer takes something back, or leaves open what holds."""
        return taken_back(self._answer) is not None or (leaves_open(self._answer) and not leaves_open(self._truth))

    @property
    def _is_double_negation(self) -> bool:
        """Whether the answer denies a word that denies, and that neither question nor truth has: "not forbidden"."""
        return any(word not in folded(f"{self._question} {self._truth}") for word in denied_denials(self._answer))

    @property
    def _is_taken_back(self) -> bool:
        """Whether the answer has a part of the truth, and then puts something else in its place."""
        if (said := taken_back(self._answer)) is None:
            return False
        before, after = (_Compared(self._question, self._truth, text) for text in said)
        return before._has_some and not after._has_some and bool(after._stated or after._terms(after._answer))

    @property
    def _has_some(self) -> bool:
        return any((self._values, self._names, self._codes)) or (bool(self._added) and self._words > 0)

    @property
    def _is_replaced(self) -> bool:
        """Whether another value of the same kind replaces a part of the truth."""
        if (
            _currencies(self._truth)
            and _currencies(self._answer)
            and not _currencies(self._truth) & _currencies(self._answer)
        ):
            return True
        value = self._values is not None and self._values < 1 and self._has_rival_value
        name = self._names is not None and self._names < 1 and bool(self._rival_names)
        code = self._codes is not None and self._codes < 1 and bool(_codes_in(self._answer) or self._is_code)
        return value or name or code or (self._has_more_items and 2 * self._missing_items <= len(self._listed))

    @property
    def _is_left_out(self) -> bool:
        """Whether an answer to more than one question, or with a list, has a part of the truth and nothing else."""
        if not (_asks_more(self._question) or self._is_list) or self._is_another or self._adds:
            return False
        names = self._names is not None and self._names < 1
        return (
            names
            or self._lacks_value
            or bool(self._missing_items)
            or (_asks_more(self._question) and self._words <= 1 / 2)
        )

    @property
    def _lacks_value(self) -> bool:
        """Whether a value is not there: of a list, one of the kind of another that is."""
        missing = [one for one in self._wanted if not any(each.has(one) for each in self._stated)]
        likes = [one for one in missing if any(one.is_like(each) for each in self._stated)]
        return bool(missing if _asks_more(self._question) else likes)

    @property
    def _is_another(self) -> bool:
        """Whether an answer has nothing of a truth that is a short fact."""
        if (
            self._differ
            or self._affirms is not None
            or asks_yes_or_no(self._question)
            or self._words
            or _EXPLAINS.match(folded(self._question))
        ):
            return False
        if any((self._values, self._names, self._codes)) or (
            self._stated and stated_values(self._truth, self._language)
        ):
            return False
        if self._stated and _CJK.search(self._answer):
            return False
        return len(self._added or self._terms(self._truth)) <= _SHORT and self._adds

    # Yes or no.

    @cached_property
    def _affirms(self) -> bool | None:
        """Whether yes or no is as in the truth; None where it is not asked, or the truth does not say it."""
        mine, its = polarity(self._truth), polarity(self._answer)
        if mine is None or its is None or not (mine.stated or asks_yes_or_no(self._question)):
            return None
        if not its.stated and any(word not in folded(self._question) for word in denials(self._answer)):
            return None
        return mine.affirms == its.affirms

    @property
    def _is_turned(self) -> bool:
        """Whether the answer says no where the truth says yes, or the other way round."""
        mine, its = polarity(self._truth), polarity(self._answer)
        if self._affirms is not False or mine is None or its is None:
            return False
        if (mine.stated and its.stated) or negates(self._question):
            return mine.stated and its.stated
        return self._repeats or (its.stated and not mine.affirms)

    @property
    def _is_denied(self) -> bool:
        """Whether the answer is the truth with a negation, or without its own."""
        truth, said = self._terms(self._truth), self._terms(self._answer)
        return len(truth) > 0 and truth == said and negates(self._truth) is not negates(self._answer)

    @property
    def _yes_is_all(self) -> bool:
        """Whether yes or no is a sufficient answer."""
        mine, its = polarity(self._truth), polarity(self._answer)
        is_plain = is_bare(self._truth) or (self._values is None and not self._added)
        is_said = bool(its and its.stated) or self._repeats
        is_said = is_said and (
            bool(its and its.stated) or negates(self._answer) is negates(_first_sentence(self._answer))
        )
        return is_said and (is_plain or (bool(mine and mine.stated) and not _asks_more(self._question)))

    @property
    def _repeats(self) -> bool:
        """Whether an answer is the question as a statement, which is a yes, or with a negation, which is a no."""
        asked, said = self._terms(self._question), self._terms(self._answer)
        return bool(asked) and 2 * sum(_has_word(word, said) for word in asked) >= len(asked)

    @property
    def _negates_other(self) -> bool:
        """Whether the answer denies what the truth affirms, or the other way round, where yes or no is not asked."""
        if asks_yes_or_no(self._question):
            return False
        if negates(self._question):
            return self._repeats and not negates(self._answer)
        return negates(self._truth) is not negates(_first_sentence(self._answer))

    # Values.

    @cached_property
    def _stated(self) -> tuple[StatedValue, ...]:
        return tuple(dict.fromkeys(stated_values(self._answer, self._language)))

    @cached_property
    def _wanted(self) -> list[StatedValue]:
        """The values of the truth that the question does not have."""
        asked = stated_values(self._question, self._language)
        mine = [each for each in stated_values(self._truth, self._language) if not self._is_article(each)]
        return [each for each in mine if not any(one.has(each) for one in asked)]

    @cached_property
    def _values(self) -> float | None:
        return share_stated(self._wanted, self._stated) if self._wanted else None

    @property
    def _is_exact(self) -> bool:
        """Whether each wanted value is stated with its unit."""
        return all(any(one.exact & each.exact for each in self._stated) for one in self._wanted)

    @cached_property
    def _has_rival_value(self) -> bool:
        """Whether the answer has another value of the kind of a wanted one, which the question does not ask about."""
        known = [*stated_values(self._question, self._language), *stated_values(self._truth, self._language)]
        if self._language != ENGLISH and not _DIGIT.search(self._answer) and not _CJK.search(self._answer):
            said = [each for each in self._stated if each.is_measured]  # numbers in words are only partly known
        else:
            said = list(self._stated)
        others = [each for each in said if not any(each.has(one) or one.has(each) for one in known)]
        return any(each.is_like(one) for each in others for one in self._wanted)

    def _is_article(self, value: StatedValue) -> bool:
        """Whether a value is the "one" of a sentence, which need not be counted."""
        return value.exact == {("number", 1.0)} and "1" not in self._truth

    # Names and codes.

    @cached_property
    def _wanted_names(self) -> set[str]:
        return self._names_of(self._truth) - set(compared_words(self._question))

    @cached_property
    def _names(self) -> float | None:
        wanted = self._wanted_names
        return len(wanted & set(compared_words(self._answer))) / len(wanted) if wanted else None

    @cached_property
    def _rival_names(self) -> set[str]:
        """The names in an answer that neither truth nor question has; initials of the truth are none."""
        known = {*compared_words(self._truth), *compared_words(self._question)}
        initials = {word[0] for word in known}
        return {name for name in self._names_of(self._answer) - known if len(name) > 4 or not set(name) <= initials}

    def _names_of(self, text: str) -> set[str]:
        """Return the words with a capital that begin no sentence, unless the text is nothing but a name."""
        if self._language == "de":  # all nouns have capitals
            return set()
        words = [word for word in text.split() if terms(word)]
        is_name = len(words) > 1 and words[0] == text.split(maxsplit=1)[0] and all(word[:1].isupper() for word in words)
        first = [found[1] for found in _FIRST_NAME.finditer(text)]
        found = [*first, *_NAME.findall(("x " if is_name else "") + text)]
        names = {folded(name) for name in found if name[0].isupper() and terms(name)}
        return names - value_words() - unit_words() - _NO_NAMES

    @cached_property
    def _codes(self) -> float | None:
        wanted = self._wanted_codes
        said = "".join(_PIECE.findall(folded(self._answer)))
        pieces = _pieces(self._answer)
        found = [_pieces(code) <= pieces or "".join(_PIECE.findall(folded(code))) in said for code in wanted]
        return sum(found) / len(wanted) if wanted else None

    @cached_property
    def _wanted_codes(self) -> list[str]:
        if _VERSION.search(self._question) and _NUMBERED.fullmatch(self._truth.strip(" .")):
            return [self._truth.strip(" .")]
        return _codes_in(self._truth)

    @property
    def _is_code(self) -> bool:
        """Whether the truth is a code and nothing else."""
        return len(_CHUNK.findall(self._truth)) == len(self._wanted_codes)

    # Words.

    @cached_property
    def _added(self) -> frozenset[str]:
        """The words of the truth that the question does not have."""
        return self._terms(self._truth) - self._terms(self._question)

    @cached_property
    def _said(self) -> frozenset[str]:
        return self._terms(self._answer) | frozenset(compared_words(self._answer))

    @cached_property
    def _words(self) -> float:
        """The share of the words that the truth adds to the question which the answer has."""
        truth = self._terms(self._truth)
        wanted = self._added or (frozenset() if self._values else truth or frozenset(compared_words(self._truth)))
        if truth and not wanted:  # its values are all that it adds: they are said with their units, or of the same
            mine, known = self._terms(self._answer), truth | self._terms(self._question)
            return float(not mine or self._is_exact or any(_has_word(word, known) for word in mine))
        return sum(_has_word(word, self._said) for word in wanted) / len(wanted) if wanted else 1.0

    @cached_property
    def _adds(self) -> bool:
        """Whether the answer has a word that neither truth nor question has: it may say the truth in other words."""
        known = self._terms(self._truth) | self._terms(self._question)
        if any(code not in self._truth for code in _codes_in(self._answer)):
            return True
        return any(not _has_word(word, known) for word in self._terms(self._answer))

    def _terms(self, text: str) -> frozenset[str]:
        language = self._language if has_rules(self._language) else ENGLISH
        of_values = value_words(language)
        plain = _NUMBER_AND_UNIT.sub(" ", comparable(text))
        plain = _PIECE.sub(lambda found: " " if found[0].casefold() in of_values else found[0], plain)
        return frozenset(word for word in terms(plain, language) - _NO_TERMS if not word[0].isdigit())

    @property
    def _contains(self) -> bool:
        """Whether the answer contains the truth, word by word."""
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

    # Lists.

    @cached_property
    def _listed(self) -> list[frozenset[str]]:
        """The words of each item of a truth that is a list."""
        items = _items(self._truth) if self._is_list else []
        return [words for item in items if (words := self._terms(item) - self._terms(self._question) - unit_words())]

    @property
    def _is_list(self) -> bool:
        items, said = _items(self._truth), polarity(self._truth)
        is_other = (said is not None and said.stated) or _BETWEEN.match(folded(self._truth)) is not None
        return len(items) > 1 and not is_other and max(len(item.split()) for item in items) <= _LONGEST_ITEM

    @cached_property
    def _missing_items(self) -> int:
        """The number of items of the truth that the answer does not have."""
        return sum(2 * sum(_has_word(word, self._said) for word in words) < len(words) for words in self._listed)

    @property
    def _has_more_items(self) -> bool:
        """Whether an answer of one sentence is a list with an item that neither truth nor question has."""
        return self._has_item_of(2)

    def _has_item_of(self, most: int) -> bool:
        """Whether there is such an item of so many words at most."""
        items = _items(self._answer)
        if not self._listed or len(items) < 2 or _CJK.search(self._answer) or _ENDS.search(self._answer.strip(" .")):
            return False
        asked, known = self._terms(self._question), frozenset().union(*self._listed)
        short = [words for item in items if len(item.split()) <= most and (words := self._terms(item) - asked)]
        return any(not any(_has_word(word, known) for word in words) for words in short)

    @property
    def _is_out_of_order(self) -> bool:
        """Whether an order is asked for, and the items of the answer are in another."""
        if not self._listed or not _ORDERED.search(self._question):
            return False
        plain = folded(self._answer)
        places = [
            min((plain.find(word[:5]) for word in words if word[:5] in plain), default=-1) for words in self._listed
        ]
        return places != sorted(places)


def _items(text: str) -> list[str]:
    return [item.strip() for item in _ITEMS.split(text.strip(" .")) if item.strip()]


def _codes_in(text: str) -> list[str]:
    chunks = (chunk.rstrip(".:!?") for chunk in _CHUNK.findall(text))
    return [chunk for chunk in chunks if _CODED.search(chunk) and _is_code(chunk)]


def _is_code(text: str) -> bool:
    """Whether it is a code, and no amount with its unit: "€1,250.00", "5 l/100", "9時"."""
    if _CJK.search(text):
        return False
    return text.count(".") > 1 or (any(map(str.isalpha, text)) and _PER.match(text) is None)


def _currencies(text: str) -> set[str]:
    """Return the currencies of the amounts in a text."""
    plain = folded(text)
    return {name for name, pattern in _CURRENCIES.items() if pattern.search(plain)}


def _first_sentence(text: str) -> str:
    return _ENDS.split(text, maxsplit=1)[0]


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
