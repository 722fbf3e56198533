"""Reads ``synonyms.tsv``, the list of words with similar meaning, and makes every form of each word."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import NamedTuple

from rag_harness.authoring.questions.wordlists import word_set

_PAST = {
    "make": "made", "put": "put", "keep": "kept", "bring": "brought", "hold": "held", "send": "sent", "get": "got",
    "deal": "dealt", "find": "found", "buy": "bought", "set": "set", "tell": "told", "cap": "capped", "stop": "stopped",
}  # fmt: skip
_NO_PAST = word_set("take begin go break spell choose give die rid stand turn lose buy be get")
"""Verbs whose participle differs from the past, or is not used. Their "-ed" form is not replaced."""


class Forms(NamedTuple):
    """``phrases`` as they are; ``words`` by their written form: the kind of form, and its replacements."""

    phrases: dict[str, str]
    words: dict[str, list[tuple[str, str]]]


def read_forms() -> Forms:
    """Read the list."""
    forms = Forms({}, {})
    for line in (files(__package__) / "synonyms.tsv").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            kind, written, said = line.split("\t")
            if kind == "=":
                forms.phrases[written] = said
            for name, one, other in _inflected(kind, written, said):
                forms.words.setdefault(one, []).append((name, other))
    return forms


def _inflected(kind: str, written: str, said: str) -> Iterator[tuple[str, str, str]]:
    first, blank, rest = said.partition(" ")
    if kind == "n":
        yield "noun", written, said
        yield "noun", plural(written), f"{plural(first)}{blank}{rest}" if rest.startswith("of ") else plural(said)
    if kind in ("v", "V"):
        yield "base", written, said
    if kind == "V":
        yield "third", third(written), f"{third(first)}{blank}{rest}"
        yield "ing", ing(written), f"{ing(first)}{blank}{rest}"
        if first not in _NO_PAST and rest.split(" ")[0] not in ("of", "with"):
            yield "past", past(written), f"{past(first)}{blank}{rest}"


def plural(noun: str) -> str:
    """Return the plural of a regular noun."""
    if noun.endswith(("s", "x", "ch", "sh")):
        return f"{noun}es"
    return f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2] not in "aeiou" else f"{noun}s"


def third(verb: str) -> str:
    """Return the third person of a verb."""
    return "does" if verb == "do" else "goes" if verb == "go" else plural(verb)


def ing(verb: str) -> str:
    """Return the present participle of a verb."""
    if verb.endswith("e") and not verb.endswith(("ee", "ye")):
        return f"{verb[:-1]}ying" if verb == "die" else f"{verb[:-1]}ing"
    return f"{verb}{verb[-1]}ing" if verb in _DOUBLED else f"{verb}ing"


def past(verb: str) -> str:
    """Return the past of a verb whose past and participle are the same."""
    if verb in _PAST:
        return _PAST[verb]
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return f"{verb[:-1]}ied"
    return f"{verb}d" if verb.endswith("e") else f"{verb}{verb[-1]}ed" if verb in _DOUBLED else f"{verb}ed"


_DOUBLED = word_set("get put set stop submit begin cap wrap ship log swap cancel permit quit occur")
