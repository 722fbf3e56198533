"""The facts of a document in its sentences and tables, in each language, and their wording as questions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import TypeVar

from rag_harness.authoring.questions.english import POINTING, clause, lower_first, word_set
from rag_harness.authoring.questions.sentence_facts import QuotablePassage, passages, read_sentence
from rag_harness.core.text.languages import ENGLISH, LANGUAGES, LanguageRules
from rag_harness.core.types import Document

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
    return {"asked": question_for_cell(said.removeprefix("the "), _the(thing)), "attribute": said, "thing": _the(thing)}


def question_for_cell(attribute: str, thing: str) -> str:
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


MONEY, DURATION, WEIGHT, AMOUNT, THING = "money", "duration", "weight", "amount", "thing"


@dataclass(frozen=True)
class QuestionForms:
    """The forms of a language. In a question, ``{v}`` is the verb and ``{s}`` the subject.

    Attributes:
        verbs: by the kind of statement, the verbs with ``|`` between, and the question. ``amount`` is "amounts to"; for
            a duration it has its own question, ``how_long``.
        articles: beginnings of a subject that is not a name; in lower case in the question.
        cell: the question for the cell of a table, with ``{row}`` and ``{name}``.
        both: joins two questions. ``versions``: asks for a fact now and under an old page's ``{title}``.
        unanswered: the ground truth of a question that nothing answers, with ``{page}``.
        before, after: the truth of a question about two versions.
    """

    verbs: Mapping[str, tuple[str, str]]
    how_long: str
    articles: str
    cell: str
    both: str
    versions: str
    unanswered: str
    before: str
    after: str

    @cached_property
    def patterns(self) -> Mapping[str, re.Pattern[str]]:
        """A pattern for each statement: subject, verb, and the rest of the sentence."""
        begins = rf"(?P<s>(?:(?:{self.articles})\s?)?[^\W\d_][^,;:.!?()]{{1,70}}?)"
        return {
            stated: re.compile(rf"{begins}\s(?P<v>{verbs})\s(?P<a>[^;:!?]{{1,300}})[.]$", re.IGNORECASE)
            for stated, (verbs, _) in self.verbs.items()
        }

    def asked(self, stated: str, subject: str, verb: str, is_duration: bool = False) -> str:
        """Return the question for a statement. A subject with an article loses its capital."""
        form = self.how_long if stated == AMOUNT and is_duration else self.verbs[stated][1]
        has_article = re.match(rf"(?:{self.articles})(?:\s|(?<=['’]))", subject, re.IGNORECASE)
        said = subject[:1].lower() + subject[1:] if has_article else subject
        be, _, are = form.partition("//")
        return (are if self._is_plural(stated, verb) and are else be).format(s=said, v=verb.lower())

    def of_thing(self, parts: Mapping[str, str], stated: str) -> str:
        """Return the question for another statement about the thing of a fact."""
        one, *more = self.verbs[stated][0].split("|")
        return self.asked(stated, parts["about"], more[0] if self._is_plural(parts["stated"], parts["verb"]) else one)

    def _is_plural(self, stated: str, verb: str) -> bool:
        """Return whether a verb is plural: every second one of a list is."""
        return verb.lower() in self.verbs[stated][0].split("|")[1::2]

    def joined(self, one: str, other: str) -> str:
        """Return two questions as one."""
        second = other.lstrip("¿")
        return f"{one.rstrip('? ')}{self.both}{second[:1].lower()}{second[1:]}"


GERMAN = QuestionForms(
    verbs={
        MONEY: ("kostet|kosten", "Wie viel {v} {s}?"),
        DURATION: ("dauert|dauern", "Wie lange {v} {s}?"),
        WEIGHT: ("wiegt|wiegen", "Wie viel {v} {s}?"),
        AMOUNT: ("beträgt|betragen", "Wie hoch ist {s}?//Wie hoch sind {s}?"),
        THING: ("ist ein|sind die|ist eine", "Was ist {s}?//Was sind {s}?"),
    },
    how_long="Wie lang ist {s}?//Wie lang sind {s}?",
    articles="der|die|das|ein|eine|unser|unsere|jeder|jede|jedes",
    cell="Was ist für „{row}“ unter „{name}“ angegeben?",
    both=", und ",
    versions="{asked} Und was galt nach „{title}“?",
    unanswered="Die Dokumente beantworten das nicht: {page} handelt von etwas Nahem und sagt es nicht.",
    before="Vorher: ",
    after="Jetzt: ",
)
FRENCH = QuestionForms(
    verbs={
        MONEY: ("coûte|coûtent", "Combien {v} {s} ?"),
        DURATION: ("dure|durent|prend|prennent", "Combien de temps {v} {s} ?"),
        WEIGHT: ("pèse|pèsent", "Combien {v} {s} ?"),
        AMOUNT: ("est de|sont de|s'élève à|s'élèvent à", "De combien est {s} ?//De combien sont {s} ?"),
        THING: ("est un|sont des|est une", "Qu'est-ce que {s} ?"),
    },
    how_long="De combien de temps est {s} ?//De combien de temps sont {s} ?",
    articles="le|la|les|l['’]|un|une|des|notre|nos|votre|vos|chaque",
    cell="Qu'est-il indiqué pour « {row} » sous « {name} » ?",
    both=", et ",
    versions="{asked} Et qu'en était-il selon « {title} » ?",
    unanswered="Les documents ne répondent pas à cela : {page} traite d'un sujet proche et ne le dit pas.",
    before="Avant : ",
    after="Maintenant : ",
)
SPANISH = QuestionForms(
    verbs={
        MONEY: ("cuesta|cuestan", "¿Cuánto {v} {s}?"),
        DURATION: ("dura|duran|tarda|tardan", "¿Cuánto tiempo {v} {s}?"),
        WEIGHT: ("pesa|pesan", "¿Cuánto {v} {s}?"),
        AMOUNT: ("es de|son de|asciende a|ascienden a", "¿De cuánto es {s}?//¿De cuánto son {s}?"),
        THING: ("es un|son los|es una", "¿Qué es {s}?//¿Qué son {s}?"),
    },
    how_long="¿De cuánto tiempo es {s}?//¿De cuánto tiempo son {s}?",
    articles="el|la|los|las|un|una|nuestro|nuestra|nuestros|nuestras|su|sus|cada",
    cell="¿Qué se indica para «{row}» en «{name}»?",
    both=", y ",
    versions="{asked} ¿Y qué valía según «{title}»?",
    unanswered="Los documentos no responden a esto: {page} trata de algo cercano y no lo dice.",
    before="Antes: ",
    after="Ahora: ",
)
PORTUGUESE = QuestionForms(
    verbs={
        MONEY: ("custa|custam", "Quanto {v} {s}?"),
        DURATION: ("dura|duram|demora|demoram", "Quanto tempo {v} {s}?"),
        WEIGHT: ("pesa|pesam", "Quanto {v} {s}?"),
        AMOUNT: ("é de|são de", "De quanto é {s}?//De quanto são {s}?"),
        THING: ("é um|são os|é uma", "O que é {s}?//O que são {s}?"),
    },
    how_long="De quanto tempo é {s}?//De quanto tempo são {s}?",
    articles="o|a|os|as|um|uma|nosso|nossa|nossos|nossas|seu|sua|cada",
    cell="O que está indicado para «{row}» em «{name}»?",
    both=", e ",
    versions="{asked} E o que valia segundo «{title}»?",
    unanswered="Os documentos não respondem a isto: {page} trata de algo próximo e não o diz.",
    before="Antes: ",
    after="Agora: ",
)
ITALIAN = QuestionForms(
    verbs={
        MONEY: ("costa|costano", "Quanto {v} {s}?"),
        DURATION: ("dura|durano|richiede|richiedono", "Quanto tempo {v} {s}?"),
        WEIGHT: ("pesa|pesano", "Quanto {v} {s}?"),
        AMOUNT: ("è di|sono di|ammonta a|ammontano a", "Di quanto è {s}?//Di quanto sono {s}?"),
        THING: ("è un|sono i|è una", "Che cos'è {s}?//Che cosa sono {s}?"),
    },
    how_long="Di quanto tempo è {s}?//Di quanto tempo sono {s}?",
    articles="il|lo|la|i|gli|le|l['’]|un|uno|una|un['’]|ogni",
    cell="Che cosa è indicato per «{row}» alla voce «{name}»?",
    both=", e ",
    versions="{asked} E che cosa valeva secondo «{title}»?",
    unanswered="I documenti non rispondono a questo: {page} tratta qualcosa di vicino e non lo dice.",
    before="Prima: ",
    after="Ora: ",
)
DUTCH = QuestionForms(
    verbs={
        MONEY: ("kost|kosten", "Hoeveel {v} {s}?"),
        DURATION: ("duurt|duren", "Hoe lang {v} {s}?"),
        WEIGHT: ("weegt|wegen", "Hoeveel {v} {s}?"),
        AMOUNT: ("bedraagt|bedragen", "Hoeveel {v} {s}?"),
        THING: ("is een|zijn de", "Wat is {s}?//Wat zijn {s}?"),
    },
    how_long="Hoe lang is {s}?//Hoe lang zijn {s}?",
    articles="de|het|een|onze|ons|elke|elk|uw",
    cell="Wat staat er voor ‘{row}’ onder ‘{name}’?",
    both=", en ",
    versions="{asked} En wat gold volgens ‘{title}’?",
    unanswered="De documenten beantwoorden dit niet: {page} gaat over iets vergelijkbaars en zegt het niet.",
    before="Vroeger: ",
    after="Nu: ",
)
QUESTION_FORMS: Mapping[str, QuestionForms] = {
    "de": GERMAN, "fr": FRENCH, "es": SPANISH, "pt": PORTUGUESE, "it": ITALIAN, "nl": DUTCH,
}  # fmt: skip
"""The forms by the code of the language."""


StatedFact = tuple[str, str, dict[str, str], str]
"""Kind, answer, parts and statement: see ``facts.Fact``."""
MOST_WORDS = 45
_MONEY_VALUE = re.compile(r"[€$£]\s?\d|\d\s?(?:€|EUR\b|USD\b|GBP\b|CHF\b|%|euros?\b|Euro\b)")
_WEIGHT = re.compile(r"\d\s?(?:k?g|kilos?|Kilo|t)\b")
_FEWEST_LETTERS = re.compile(r"[^\W\d_]{2}")
_EMPTY_VALUE = re.compile(r"[\W_]*$|n/?a$|[✓✔✅❌✗✘]")


def facts_stated(passage: QuotablePassage, language: str) -> Iterator[StatedFact]:
    """Yield what a passage states: a sentence of a known form, or the cells of a row; nothing without forms."""
    forms, rules = QUESTION_FORMS.get(language), LANGUAGES.get(language)
    if forms and rules:
        yield from _row(passage, forms) if passage.names else _sentence(passage, forms, rules)


def answers_it(text: str, stated: str, rules: LanguageRules) -> bool:
    """Return whether a text has what a question for ``stated`` asks for: money, a duration, a weight."""
    if stated == DURATION:
        return _duration(rules).search(text) is not None
    if stated == AMOUNT:
        return any(character.isdigit() for character in text)
    patterns = {MONEY: _MONEY_VALUE, WEIGHT: _WEIGHT}
    return stated == THING or patterns[stated].search(text) is not None


def _duration(rules: LanguageRules) -> re.Pattern[str]:
    return next(answered for name, _, answered in rules.kinds if name == "a duration")


def _sentence(passage: QuotablePassage, forms: QuestionForms, rules: LanguageRules) -> Iterator[StatedFact]:
    text = passage.text
    if len(text.split()) > MOST_WORDS:
        return
    for stated, pattern in forms.patterns.items():
        found = pattern.match(text)
        if not found or not _is_subject(found["s"], rules) or not answers_it(found["a"], stated, rules):
            continue
        subject, verb, answer = found["s"], found["v"], found["a"]
        if stated == THING:
            answer = f"{verb.split()[-1]} {answer}"
        asked = forms.asked(stated, subject, verb, _duration(rules).search(answer) is not None)
        kind = "definition" if stated == THING else "quantity"
        yield kind, answer, {"asked": asked, "stated": stated, "about": subject, "verb": verb.lower()}, text
        return


def _is_subject(subject: str, rules: LanguageRules) -> bool:
    """Return whether words are a subject that stands alone: a noun, and no "it", "this" or "who" before it."""
    first, *others = subject.lower().split()
    rest = [word for word in (first, *others) if rules.plain(word)]
    points = first in rules.stop_words and not others
    return bool(rest) and not points and len(subject.split()) <= 8


def _row(passage: QuotablePassage, forms: QuestionForms) -> Iterator[StatedFact]:
    row, *cells = passage.cells
    _, *names = passage.names
    if len(set(names)) < len(names) or not _FEWEST_LETTERS.search(row):
        return
    for name, cell in zip(names, cells, strict=True):
        if _FEWEST_LETTERS.search(name) and not _EMPTY_VALUE.match(cell) and cell != row:
            asked = forms.cell.format(row=row, name=name)
            yield "cell", cell, {"asked": asked, "about": row}, f"{row} – {name}: {cell}"


PLANNED_KINDS = ("amount", "date", "limit", "rule")


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact, which the quote ``document.text[start:end]`` states.

    Attributes:
        kind: condition, purpose, definition, property, quantity, permission or cell; one of PLANNED_KINDS if a plan
            says that the page must state it.
        said: the statement as a reader sees it: the ground truth of a question about it.
        answer: the part of the statement that is asked for.
        parts: the other parts of the question, by name.
    """

    doc_id: str
    section: tuple[str, ...]
    kind: str
    start: int
    end: int
    quote: str
    said: str
    answer: str
    parts: Mapping[str, str] = field(default_factory=dict)


def read_facts(document: Document, names: Collection[str] = frozenset()) -> Iterator[Fact]:
    """Yield the facts of a document in their order; a passage may state several.

    ``names`` are words that keep their capital within a sentence.
    """
    for passage in passages(document):
        for kind, answer, parts, said in _stated(passage, document.language, names):
            quote = document.text[passage.start : passage.end]
            place = (document.doc_id, passage.section, kind, passage.start, passage.end)
            yield Fact(*place, quote, said, answer, parts)


def _stated(passage: QuotablePassage, language: str, names: Collection[str]) -> Iterator[StatedFact]:
    if language != ENGLISH:
        return facts_stated(passage, language)
    return read_row(passage, names) if passage.names else read_sentence(passage, names)


# Words a fact as a question, as someone would ask who has not read the page.


def question_for_fact(fact: Fact, chance: Random) -> str:
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


def _prepared_question(fact: Fact, _: Random) -> str:
    return fact.parts["asked"]


_FORMS = {
    "condition": _condition, "purpose": _purpose, "definition": _definition, "property": _property,
    "quantity": _prepared_question, "permission": _prepared_question, "cell": _prepared_question,
    "amount": _prepared_question, "date": _prepared_question, "limit": _prepared_question, "rule": _prepared_question,
}  # fmt: skip


WEIGHTS = {
    "condition": 1.0, "purpose": 1.0, "quantity": 1.5, "definition": 0.7, "property": 0.6, "permission": 0.7,
    "cell": 0.8, "amount": 1.0, "date": 0.7, "limit": 1.0, "rule": 0.8,
}  # fmt: skip
"""How often each kind is used relative to the others, if pages have facts of all kinds."""


_Thing = TypeVar("_Thing")


def shuffled(things: Sequence[_Thing], chance: Random) -> list[_Thing]:
    """Return things in a random order."""
    order = list(things)
    chance.shuffle(order)
    return order


def in_turn(pages: Sequence[Document], facts: Callable[[Document], Sequence[Fact]], chance: Random) -> Iterator[Fact]:
    """Yield the facts of all pages: one from each page in a random order, then a second one from each, and so on."""
    order = shuffled(pages, chance)
    left: dict[str, dict[str, list[Fact]]] = {}
    seen: Counter[str] = Counter()
    waiting = order
    while waiting:
        again = []
        for page in waiting:
            if page.doc_id not in left:
                left[page.doc_id] = _by_kind(facts(page), chance)
            fact = _next(left[page.doc_id], seen)
            if fact is not None:
                again.append(page)
                yield fact
            else:
                left[page.doc_id] = {}
        waiting = again


def _by_kind(facts: Sequence[Fact], chance: Random) -> dict[str, list[Fact]]:
    found: dict[str, list[Fact]] = {}
    for fact in facts:
        found.setdefault(fact.kind, []).append(fact)
    for of_kind in found.values():
        chance.shuffle(of_kind)
    return found


def _next(left: dict[str, list[Fact]], seen: Counter[str]) -> Fact | None:
    kinds = [kind for kind, of_kind in left.items() if of_kind]
    if not kinds:
        return None
    kind = min(kinds, key=lambda each: (seen[each] / WEIGHTS[each], each))
    seen[kind] += 1
    return left[kind].pop()
