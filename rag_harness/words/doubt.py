"""Words by which a text takes back what it has said, or leaves open which of several things holds."""

from __future__ import annotations

import re

from rag_harness.words.comparison import folded

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
