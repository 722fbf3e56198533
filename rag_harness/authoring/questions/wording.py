"""Words a fact as a question, as someone would ask who has not read the page."""

from __future__ import annotations

import re
from random import Random

from rag_harness.authoring.questions.facts import Fact


def question_of(fact: Fact, chance: Random) -> str:
    """Return the question in the words of the page, with a capital and a question mark."""
    return sentence(_FORMS[fact.kind](fact, chance))


def sentence(asked: str) -> str:
    """Return words as a question: a capital, no blank before marks, one question mark."""
    asked = re.sub(r"(?<!\s)\s+([?,.;:])(?=\s|$)", r"\1", " ".join(asked.split())).rstrip(" .,;:?")
    return f"{asked[:1].upper()}{asked[1:]}?"


def _condition(fact: Fact, chance: Random) -> str:
    when, condition, asked = (fact.parts[name] for name in ("when", "condition", "asked"))
    return chance.choice((f"{asked} {when} {condition}", f"{when} {condition}, {asked}"))


def _purpose(fact: Fact, chance: Random) -> str:
    how = chance.choice(("how do I", "how can I", "what do I have to do to", "what is the way to"))
    return f"{how} {fact.parts['purpose']}"


def _definition(fact: Fact, chance: Random) -> str:
    term, be = fact.parts["term"], fact.parts["be"]
    return chance.choice((f"what {be} {term}", f"what exactly {be} {term}", f"can you explain what {term} {be}"))


def _property(fact: Fact, _: Random) -> str:
    parts = fact.parts
    return f"what {parts['do']} {parts['subject']} {parts['verb']} {parts['after']} {parts['when']}"


def _asked(fact: Fact, _: Random) -> str:
    return fact.parts["asked"]


_FORMS = {
    "condition": _condition, "purpose": _purpose, "definition": _definition, "property": _property,
    "quantity": _asked, "permission": _asked, "cell": _asked,
    "amount": _asked, "date": _asked, "limit": _asked, "rule": _asked,
}  # fmt: skip
