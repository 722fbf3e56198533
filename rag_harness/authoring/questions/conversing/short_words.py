"""The words of turns that leave out what was said before."""

from __future__ import annotations

import re
from random import Random

from rag_harness.authoring.questions.clauses import AUXILIARIES
from rag_harness.authoring.questions.draft import Draft
from rag_harness.authoring.questions.inflection import third
from rag_harness.authoring.questions.verbs import BASES, THIRD
from rag_harness.authoring.questions.wording import sentence
from rag_harness.authoring.questions.wordlists import word_set

_OF_IT = ("and the {0}", "what about the {0}", "and what {1} the {0}")
_OTHER = ("and for {0}", "what about {0}", "and {0}")
_AGAIN = ("back to {0}: {1}", "once more about {0}: {1}", "{0} again: {1}")
_FIRST_AGAIN = ("back to what I asked first: {1}", "back to my first question: {1}")
_ANOTHER = ("something else: {0}", "another question: {0}", "on another matter: {0}")
_ANSWERED = ("{0}, please", "{0}", "I mean {0}")
_SINGULAR, _PLURAL = ("is", "was", "does", "has"), ("are", "were", "do", "have")
_ANY = ("can", "could", "may", "might", "must", "should", "will", "would", "did", "had")
_NO_THING = frozenset(("me", "you", "i", "us", "we", "my", "your"))


def is_plural(name: str) -> bool:
    """Whether a name is that of several things, judged by its head: "gift cards", "hours of work"."""
    head = re.split(r" (?:of|per|in|for|from|to|with|by|at)\b|\s?\(", name, maxsplit=1)[0]
    return head.endswith("s") and not head.endswith(("ss", "us", "is"))


def attribute_of_it(attribute: str, chance: Random) -> str:
    """Return the question for an attribute of what was spoken of."""
    return sentence(chance.choice(_OF_IT).format(attribute, "are" if is_plural(attribute) else "is"))


def of_another(name: str, chance: Random) -> str:
    """Return the last question once more, of another thing: "And for the other one?"."""
    return sentence(chance.choice(_OTHER).format(name))


def back_to(name: str, asked: str, chance: Random) -> str:
    """Return a question as one that returns to an earlier subject; the first one if ``name`` is empty."""
    return sentence(chance.choice(_AGAIN if name else _FIRST_AGAIN).format(name, _small(asked)))


def another_matter(alone: Draft, chance: Random) -> str:
    """Return a question that stands alone as one about something else. One with its topic needs no other word."""
    asked = alone.text
    if "topic" in alone.metadata or chance.random() >= _SAID_SO:
        return asked
    return sentence(chance.choice(_ANOTHER).format(_small(asked)))


_SAID_SO = 0.6


def _small(asked: str) -> str:
    """Return a question with a small first letter, unless its first word is "I" or a code."""
    return asked if re.match(r"I\b|\w*[A-Z_]\w*[A-Z_.]", asked) else asked[:1].lower() + asked[1:]


def answered(name: str, chance: Random) -> str:
    """Return what a user says who was asked which one is meant."""
    said = chance.choice(_ANSWERED).format(name)
    return f"{said[:1].upper()}{said[1:]}."


def without_subject(asked: str, subject: str) -> str:
    """Return a question with a pronoun for its subject; empty if it cannot be replaced."""
    if not subject or subject.casefold() in _NO_THING:
        return ""
    helps = "|".join((*_SINGULAR, *_PLURAL, *_ANY))
    found = re.search(rf"\b({helps}) {re.escape(subject)}(?=[\s?]|$)", asked, re.I)
    if not found:
        return ""
    plural = found[1] in _PLURAL or (found[1] in _ANY and is_plural(subject))
    return f"{asked[: found.start()]}{found[1]} {'they' if plural else 'it'}{asked[found.end() :]}"


def without_thing(asked: str, thing: str) -> str:
    """Return a question with "it" behind a preposition for a planned thing, or for the subject; empty if neither."""
    behind = re.compile(
        rf"\b(for|of|with|to|in|on|from|by|at|about) (?:the )?{re.escape(thing)}(?=$|[,?]| ([\w-]+))", re.I
    )
    found = behind.search(asked)
    if found:  # in "the sales team meeting" it is no thing of its own
        is_whole = not found[2] or found[2] in _BEHIND or found[2].endswith(("ed", "en"))
        return behind.sub(r"\1 it", asked) if is_whole else ""
    return without_subject(asked, f"the {thing}") or without_subject(asked, thing)


_BEHIND = (
    AUXILIARIES | BASES | THIRD.keys() | word_set("in on at to by for from with after before until once per and or")
)


def affirmed(asked: str, subject: str) -> str:
    """Return a yes-or-no question as a statement: "does a repair restart it" as "a repair restarts it"."""
    found = re.match(rf"(\w+) {re.escape(subject)} (\S+)(.*)$", asked, re.I)
    if not found or subject.casefold() in _NO_THING:
        return ""
    helps, verb, rest = found.groups()
    said = {"does": third(verb), "do": verb}.get(helps.lower(), f"{helps.lower()} {verb}")
    return f"{subject} {'has' if said == 'haves' else said}{rest}"
