"""A fact -> the question that asks for it, as somebody would ask who has not read the page."""

from __future__ import annotations

import re
from random import Random

from rag_harness.questions.english import asked_by_reader, lower_first
from rag_harness.questions.facts import Fact

_WHAT_IT = re.compile(r"^what (?:it|they) (\w+?)(s?)\b(.*)$", re.I)


def question_of(fact: Fact, chance: Random) -> str:
    """Return the question, with a capital and a question mark."""
    asked = asked_by_reader(_FORMS[fact.kind](fact, chance))
    asked = re.sub(r"\s+([?,.])", r"\1", " ".join(asked.split())).rstrip(" .,;:")
    return asked[:1].upper() + asked[1:] + ("" if asked.endswith("?") else "?")


def _condition(fact: Fact, chance: Random) -> str:
    when, condition = fact.parts["when"], lower_first(fact.parts["condition"])
    if fact.parts["do"]:
        return f"what {chance.choice(('should', 'do'))} I do {when} {condition}"
    return chance.choice((f"what happens {when} {condition}", f"{when} {condition}, what happens"))


def _purpose(fact: Fact, chance: Random) -> str:
    how = chance.choice(("how do I", "how can I", "what do I have to do to", "what is the way to"))
    return f"{how} {fact.parts['purpose']}"


def _definition(fact: Fact, chance: Random) -> str:
    term = fact.parts["term"]
    if fact.parts["be"] == "are":
        return f"what are {term}"
    return chance.choice((f"what is {term}", f"what exactly is {term}", f"can you explain what {term} is"))


def _property(fact: Fact, _: Random) -> str:
    parts = fact.parts
    return f"what {parts['do']} {parts['subject']} {parts['verb']} {_AFTER.get(parts['verb'], '')} {parts['when']}"


_AFTER = {"default": "to", "depend": "on", "refer": "to", "lead": "to", "stand": "for", "consist": "of", "belong": "to"}


def _asked(fact: Fact, _: Random) -> str:
    return fact.parts["asked"]


def _cell(fact: Fact, chance: Random) -> str:
    row, column = fact.parts["row"], fact.parts["column"]
    how = fact.parts["how"]
    if how == "turned":
        return f"what is the {lower_first(row)} of the {column}" if column[0].isupper() else f"{column}: what is the {lower_first(row)}"
    if how == "what it":
        match = _WHAT_IT.match(column)
        return f"what does {lower_first(row)} {match[1]}{match[3]}" if match else f"{row}: {column}"
    if how == "passive":
        return f"what is {lower_first(row)} {lower_first(column)}"
    if how == "tells":
        return chance.choice((f"what does {row} mean", f"what is {row} about"))
    if how == "money":
        return f"how much is {lower_first(row)} for {column}"
    if how == "time":
        return f"how long is it for {lower_first(row)} with {column}"
    if how == "entity":
        return f"what applies to {lower_first(row)} for {column}"
    if how == "wordy":
        return f"{row}: {lower_first(column)}"
    return f"what is the {lower_first(column)} of {lower_first(row)}"


_FORMS = {
    "condition": _condition, "purpose": _purpose, "definition": _definition, "property": _property,
    "quantity": _asked, "permission": _asked, "cell": _cell,
}  # fmt: skip
