"""Whether a text says yes or no: by its first word, or by a negation in its first sentence."""

from __future__ import annotations

import re
from typing import NamedTuple

from rag_harness.words.citation_marks import CITATION
from rag_harness.words.comparison import folded

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
    """What a text says to a question of yes or no. ``stated``: by a word of its own, as "Yes"."""

    affirms: bool
    stated: bool


def asks_yes_or_no(question: str) -> bool:
    """Return whether a question can be answered by yes or no."""
    text = folded(question)
    is_asked = _QUESTION.match(text) is not None or text.rstrip(" ?？。").endswith(("吗", "ますか", "ですか"))
    return is_asked and not _OR.search(text) and not _ASKS_WHAT.search(text)


def polarity(text: str) -> Polarity | None:
    """Return what a text says; None where it says nothing."""
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
