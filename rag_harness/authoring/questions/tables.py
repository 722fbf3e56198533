"""Finds what a row of a table states: which of its names are attributes, and how to ask for a cell."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from rag_harness.authoring.questions.clauses import clause
from rag_harness.authoring.questions.persons import lower_first
from rag_harness.authoring.questions.pointing import POINTING
from rag_harness.authoring.questions.quotable_passages import QuotablePassage
from rag_harness.authoring.questions.wordlists import word_set

_EMPTY = re.compile(r"[\W_]*$|n/?a$|none$|unknown$|tbd$|same\b|see\b|as above|[✓✔✅❌✗✘]|(?:yes|no|x)\b", re.I)
_MONEY = re.compile(r"(?:from |up to )?(?:[€$£¥]\s?\d[\d.,]*|\d[\d.,]*\s?(?:€|EUR|USD|GBP))(?: per [a-z]+)?$")
_WHAT_IT = re.compile(r"what (?:it|they) ([a-z]+?)(s?)((?: [a-z]+)*)$", re.I)
_TELLS = word_set("meaning")
_DOES = word_set("description purpose effect behavior behaviour")
_CONDITIONS = re.compile(r"(?:if|when|situation|case|problem|what happened|if …|when …)\W*$", re.I)
_OUTCOMES = re.compile(
    r"(?:then|outcome|result|what happens|what we do|what to do|what you can do|remedy|solution)\W*$", re.I
)
_ATTRIBUTES = word_set(
    """
    address age amount author availability benefit budget capacity category charge code colour color condition contact
    content cost country coverage currency date deadline default deductible deposit depth destination device diameter
    dimensions discount distance duration email event extra extension fee field format frequency fuel guarantee height
    hours interval kind language length level licence license limit link location manager material maximum method
    minimum mode model name number output owner package pages parameter part penalty period person phone plan platform
    port position power precedence price priority product protocol provider quantity range rate rating ratio reason
    role room rule scope score season section service setting shape signature size speed stage standard status store
    strength supplier surcharge team temperature term threshold time timeout tool topic total type unit url validity
    value version voltage volume warranty weight width window year zone surface dependency extra lifetime
    """
)
"""Attributes of things: heads of names that can follow "the … of"."""
_OF = word_set(
    "address age capacity depth diameter height length weight width size role type unit voltage strength surface"
)
_FEATURES = word_set("feature property attribute specification detail")
_NO_THING = re.compile(r"(?:off|up to|from|over|under|after|before|until|within|more|less|signed|not)\b", re.I)
_NO_COLUMN = word_set("support supported notes note value values details comment comments remarks result yes no")
_HANGS = re.compile(r"\b(?:from|until|to|of|for|with|in|on|at|by|as|per|…)$", re.I)
_LONGEST = 6
"""The most words of a row's or a column's name. A longer one is a sentence."""

QuestionForm = tuple[str, str]
"""The form of the question, and the words in it."""


def read_row(passage: QuotablePassage, names_kept: Collection[str]) -> Iterator[tuple[str, str, dict[str, str], str]]:
    """Yield what the cells of a row state, as kind, answer, parts and statement."""
    row, *cells = passage.cells
    first, *names = passage.names
    if len(set(names)) < len(names) or POINTING.search(row):
        return
    for name, cell in zip(names, cells, strict=True):
        if _EMPTY.match(cell) or cell == row or POINTING.search(name):
            continue
        asked = _asked(_called(row, first, names_kept), lower_first(name, names_kept), cell, first, names)
        if asked:
            said = f"{row} – {name}: {cell}" if first else f"{name} – {row}: {cell}"
            yield "cell", cell, asked, said


def _called(row: str, first: str, names_kept: Collection[str]) -> str:
    """Return a row's name for a question: "the parameter stop" if it is one word of code."""
    kind = first.casefold().removesuffix("s")
    small = lower_first(row, names_kept) if " " in row else row
    return f"the {kind} {row}" if kind in _CALLED and re.fullmatch(r"[a-z]+", row) else small


def _names_something(name: str) -> bool:
    return (
        bool(re.search(r"[^\W\d_]{2}", name))
        and len(name.split()) <= _LONGEST
        and not re.search(r"[,;:/]|\band\b", name)
    )


_CALLED = word_set("parameter option field attribute setting argument event code method metric flag variable class")


def _asked(row: str, name: str, cell: str, first: str, names: Sequence[str]) -> dict[str, str]:
    """Return the parts of a question for a cell; empty if it is not clear how row and column belong together."""
    if _CONDITIONS.match(first) and _OUTCOMES.match(name):
        if len(cell.split()) < 2:
            return {}
        return {"asked": f"what happens if {row.removeprefix('if ')}"} if clause(row) else {}
    if not row[:1].isalpha() or _NO_THING.match(row) or not _names_something(row) or not _names_something(name):
        return {}
    told = _told(row, name)
    if told:
        return {"asked": told}
    hangs = _NO_THING.match(name) or name.casefold() in _NO_COLUMN or _HANGS.search(name) or _HANGS.search(row)
    return {} if hangs else _attribute(row, name, first) or _of_entities(row, name, cell, names)


def _told(row: str, name: str) -> str:
    """Return the question that a column's name implies: what it does, what it means, what it is for."""
    does = _WHAT_IT.match(name)
    if does:
        return f"what does {row} {does[1]}{does[3]}"
    if name.casefold() in _TELLS:
        return f"what does {row} mean"
    if name.casefold() not in _DOES or is_attribute(row):
        return ""
    return f"what is {row} for" if name.casefold() in ("purpose", "description") else f"what does {row} do"


def _attribute(row: str, name: str, first: str) -> dict[str, str]:
    if is_attribute(name) and not is_attribute(row) and first:
        return _of(name, row)
    turned = not first or first.casefold() in _FEATURES
    return _of(row, name) if turned and is_attribute(row) and not is_attribute(name) else {}


def _of(attribute: str, thing: str) -> dict[str, str]:
    said = " ".join(word.lower() if word.istitle() else word for word in attribute.split())
    return {"asked": question_of(said.removeprefix("the "), _the(thing)), "attribute": said, "thing": _the(thing)}


def question_of(attribute: str, thing: str) -> str:
    """Return the question for an attribute of a thing."""
    joins = "of" if attribute.rsplit(maxsplit=1)[-1] in _OF else "for"
    head = re.split(r" (?:of|per|in|for|from|to|with|by|at)\b", attribute, maxsplit=1)[0]
    be = "are" if head.endswith("s") and not head.endswith(("ss", "us", "is")) else "is"
    return f"what {be} the {attribute} {joins} {thing}"


def _of_entities(row: str, name: str, cell: str, names: Sequence[str]) -> dict[str, str]:
    """Ask for the cell of two things that meet in it: Standard in Zone 1."""
    fits = _alike(names) and _MONEY.match(cell)
    return {"asked": f"how much is {_the(row)} for {name}"} if fits else {}


def is_attribute(name: str) -> bool:
    """Whether a name is an attribute of things, judged by its head: "opening hours", "price per day"."""
    head = re.split(r" (?:of|per|in|for|from|to|with|by|at)\b|\s?\(", name.casefold(), maxsplit=1)[0].split()
    return bool(head) and (head[-1] in _ATTRIBUTES or head[-1].removesuffix("s") in _ATTRIBUTES)


def _alike(names: Sequence[str]) -> bool:
    """Whether names are of similar things, by a word that two of them share: Zone 1, Zone 2; Grove, Grove Plus."""
    words = [set(re.findall(r"[^\W\d_]{3,}", name.casefold())) for name in names]
    return any(one & other for number, one in enumerate(words) for other in words[:number])


def _the(name: str) -> str:
    """Return a name with an article, unless it has one, is a plural, or is a name or a code."""
    word = name.split(maxsplit=1)[0]
    bare = (
        not word.islower()
        or not word.isalpha()
        or word in _ARTICLES
        or (name.endswith("s") and not name.endswith("ss"))
    )
    return name if bare else f"the {name}"


_ARTICLES = word_set("a an the my your each every any all no")
