"""What sentences with a plain subject and verb ask in each language."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

MONEY, DURATION, WEIGHT, AMOUNT, THING = "money", "duration", "weight", "amount", "thing"


@dataclass(frozen=True)
class QuestionForms:
    """The forms of a language. In a question, ``{v}`` is the verb and ``{s}`` the subject.

    Attributes:
        verbs: by what it states, the verbs with ``|`` between, and the question. ``amount`` is "amounts to"; of a
            duration it has its own question, ``how_long``.
        articles: what a subject that is no name begins with; small in the question.
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
