"""Rules by which what a simulated user says follows from its scenario and from what was said before.

They find numbers, names and addresses that stand nowhere there, the answer before anybody has given it, answers to
questions of the user's own, and the voice of the assistant. The rule for names reads English alone. What else a text
claims, only a judge can tell.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag_harness.expectations import AnswerSeen, looked_at, tells_by_words
from rag_harness.types import Expectation, Scenario
from rag_harness.users.moves import Exchange
from rag_harness.words.language import asked_language
from rag_harness.words.languages import ENGLISH
from rag_harness.words.same_words import words_of
from rag_harness.words.terms import figures, stem, tokens

_OTHER_VOICE = (
    *("as an ai", "language model", "how can i help", "how can i assist", "how may i help", "how may i assist"),
    *("i'm here to help", "i am here to help", "[source", "user:", "assistant:", "person:"),
    *("according to the documents", "according to the context", "based on the documents"),
    *("simulated user", "the simulation", "the scenario", "my persona"),
)
"""What the assistant says, or somebody who reads out the instructions."""
_OWN_ANSWER = re.compile(r"\?\s{0,9}(?:(?:yes|no)\s?[,.:;!]|the answer (?:is|to)\b)", re.IGNORECASE)
_ADDRESS = re.compile(r"https?://|www\.|@")
_FROM_TWO = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_TENS = {"twenty": "20", "thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "ninety": "90", "hundred": "100"}
_NUMBERS = {word: str(number) for number, word in enumerate(_FROM_TWO, 2)} | _TENS
"""Numbers as words. "One" is mostly none: the bigger one."""
_NO_NAMES = frozenset(("i", "ok", "tv", "id", "asap", "btw", "fyi", "thanks"))
_BEGINS = ".!?:;\n\"'“‘(-–—*"
_TITLE = 0.6
"""Share of capitalised words from which a message is written in capitals throughout."""


def out_of_role(text: str, scenario: Scenario, before: Sequence[Exchange]) -> str:
    """Return what in a user's words follows from nothing, as far as rules can tell; empty where all of it does."""
    facts = [text for fact in scenario.facts for text in fact]
    own = [scenario.opening, scenario.persona, scenario.goal, *scenario.asks, *facts]
    heard = [said for each in before for said in (each.said, each.reply)]
    known = "\n".join([*own, *heard])
    found = (
        _another_voice(text, known, [fact for _, fact in scenario.facts]),
        _leaked(text, scenario, own, before),
        _unheard("the number", _numbers(text) - _numbers(known)),
        _unheard("the name", _unknown_names(text, known)),
        "it has an address that stands nowhere before" if _ADDRESS.search(text) and not _ADDRESS.search(known) else "",
    )
    return next(filter(None, found), "")


def _another_voice(text: str, known: str, facts: Sequence[str]) -> str:
    plain = text.casefold().replace("’", "'")
    voice = next((each for each in _OTHER_VOICE if each in plain and each not in known.casefold()), "")
    if voice:
        return f"it speaks as somebody else: “{voice}”"
    own = _OWN_ANSWER.search(text)
    # A user who asks again and adds what it knows answers nothing: "Can I return it? Yes, it was opened."
    told = own is not None and any(fact and text[own.start() + 1 :].lstrip().startswith(fact) for fact in facts)
    return "it answers its own question" if own and not told else ""


def _leaked(text: str, scenario: Scenario, own: Sequence[str], before: Sequence[Exchange]) -> str:
    """Return what of the answer the user says before anybody has said it."""
    heard = frozenset[int]().union(*(each.kept for each in before))
    for number, demand in enumerate(scenario.reached):
        if number in heard or not tells_by_words(demand) or any(_keeps(each, demand) for each in own):
            continue
        if _keeps(text, demand):
            return f"it says the answer before it is given: {demand}"
    truth = _plain(scenario.ground_truth)
    known = [*own, *(each.reply for each in before)]
    if truth and _in(truth, text) and not any(_in(truth, each) for each in known):
        return f"it says the answer before it is given: “{scenario.ground_truth[:80]}”"
    return ""


def _keeps(text: str, demand: Expectation) -> bool:
    return bool(looked_at([demand], AnswerSeen(text, explained=False))[0].kept)


def _plain(text: str) -> str:
    return " ".join(words_of(text))


def _in(words: str, text: str) -> bool:
    return f" {words} " in f" {_plain(text)} "


def _unheard(what: str, unknown: frozenset[str]) -> str:
    return next((f"it says {what} {each}, which stands nowhere before" for each in sorted(unknown)), "")


def _numbers(text: str) -> frozenset[str]:
    words = (each.casefold() for each in tokens(text))
    return frozenset(map(_value, figures(text))) | {_NUMBERS[word] for word in words if word in _NUMBERS}


def _value(figure: str) -> str:
    try:
        return f"{float(figure):g}"
    except ValueError:  # a time of day, 10:30
        return figure


def _unknown_names(text: str, known: str) -> frozenset[str]:
    """Return the capitalised words that do not begin a sentence, and that stand nowhere in ``known`` in any form."""
    if asked_language(text) != ENGLISH:
        return frozenset()
    words = [(found[0], text[: found.start()].rstrip()[-1:]) for found in re.finditer(r"[^\W\d_]{2,40}", text)]
    capital = [(word, behind) for word, behind in words if word[0].isupper()]
    if len(capital) > 3 and len(capital) > _TITLE * len(words):
        return frozenset()
    forms = {stem(word.casefold()) for word in tokens(known)} | _NO_NAMES
    names = (word for word, behind in capital if behind and behind not in _BEGINS)
    return frozenset(word for word in names if stem(word.casefold()) not in forms)
