"""Each language has its own stems, sentences, kinds of questions and ways to say "I don't know"."""

from __future__ import annotations

import pytest

from rag_harness.core.text.language_detection import asked_language, shares, spoken, told, unruled
from rag_harness.core.text.languages import LANGUAGES, has_rules
from rag_harness.core.text.refusals import declines
from rag_harness.core.text.sentences import sentence_texts
from rag_harness.core.text.terms import answer_kind, terms

PROSE = {
    "de": "Die Rückgabefrist beträgt 45 Tage. Zurückgeschickte Artikel müssen unbenutzt sein, und der Käufer trägt "
    "die Kosten nicht.",
    "fr": "Le délai de retour est de 45 jours. Les articles renvoyés doivent être neufs, et l'acheteur ne paie pas les "
    "frais.",
    "es": "El plazo de devolución es de 45 días. Los artículos devueltos no deben estar usados, y el comprador no paga "
    "los gastos.",
    "pt": "O prazo de devolução é de 45 dias. Os artigos devolvidos não devem estar usados, e o comprador não paga os "
    "custos.",
    "it": "Il termine di reso è di 45 giorni. Gli articoli restituiti non devono essere usati, e l'acquirente non paga "
    "le spese.",
    "nl": "De retourtermijn bedraagt 45 dagen. Teruggestuurde artikelen mogen niet gebruikt zijn, en de koper betaalt "
    "de kosten niet.",
    "en": "The return period is 45 days. Articles that are sent back must not be used, and the buyer pays no costs.",
}
SAME_WORD = [
    ("de", "Rücksendungen", "Rücksendung"),
    ("de", "Räder", "Rad"),
    ("fr", "l'assurance", "assurances"),
    ("es", "devoluciones", "devolución"),
    ("pt", "devoluções", "devolução"),
    ("it", "dell'assicurazione", "assicurazioni"),
    ("nl", "terugbetalingen", "terugbetaling"),
]


@pytest.mark.parametrize("language", PROSE)
def test_prose_tells_its_language(language: str) -> None:
    assert told(PROSE[language]) == language
    assert shares(f"# 1.2.3\n\n{PROSE[language]}") == {language: 1.0}


def test_a_mixed_document_has_the_language_of_most_of_it() -> None:
    found = shares("\n\n".join([PROSE["de"], PROSE["de"], PROSE["en"]]))
    assert list(found) == ["de", "en"]
    assert found["de"] > 0.6


@pytest.mark.parametrize(("language", "one", "other"), SAME_WORD)
def test_forms_of_a_word_are_one_term_in_their_language_alone(language: str, one: str, other: str) -> None:
    assert terms(one, language) == terms(other, language) != frozenset()
    assert terms(one) != terms(other)


def test_a_language_without_rules_is_cut_as_english_is() -> None:
    assert terms("Palautusaika on 45 päivää", "fi") == terms("Palautusaika on 45 päivää")
    assert not has_rules("fi")


GERMAN = (
    "Sperrige Waren, z. B. Anhänger, kommen später. Die Fassung gilt seit dem 3. März 2025. Das steht auf Seite 12. "
    "Die 2. Mahnung kostet 4 €. Dr. Meier hilft."
)
CUT = [
    "Sperrige Waren, z. B. Anhänger, kommen später.",
    "Die Fassung gilt seit dem 3. März 2025.",
    "Das steht auf Seite 12.",
    "Die 2. Mahnung kostet 4 €.",
    "Dr. Meier hilft.",
]


def test_abbreviations_and_ordinals_end_no_german_sentence() -> None:
    assert sentence_texts(GERMAN, "de") == CUT
    assert sentence_texts(GERMAN, "en") != CUT


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("fr", "Mme. Blanc répond. Le prix est de 5 € env. par mois."),
        ("es", "La Sra. Ruiz responde. Son aprox. 5 € al mes."),
        ("pt", "A Sra. Reis responde. São aprox. 5 € por mês."),
        ("it", "Il sig. Rossi risponde. Sono ca. 5 € al mese."),
        ("nl", "Dhr. Jansen antwoordt. Het is ca. 5 € per maand."),
    ],
)
def test_each_language_has_its_abbreviations(language: str, text: str) -> None:
    assert len(sentence_texts(text, language)) == 2


@pytest.mark.parametrize(
    "text",
    [
        "Das weiß ich leider nicht.",
        "Ich weiß es nicht.",
        "Diese Frage kann ich nicht beantworten.",
        "Je ne sais pas.",
        "No lo sé.",
        "Não sei.",
        "Non lo so.",
        "Dat weet ik niet.",
        "I don't know.",
        *(rules.refusal for rules in LANGUAGES.values()),
    ],
)
def test_an_answer_declines_in_its_own_words(text: str) -> None:
    assert declines(text)


@pytest.mark.parametrize(
    "text",
    [
        "Wer die Nummer nicht weiß, ruft an.",
        "Man weiß nicht, wann das Lager liefert.",
        "The sign on the door says no se.",
        "Si vous ne savez pas votre taille, mesurez.",
    ],
)
def test_a_sentence_about_not_knowing_declines_nothing(text: str) -> None:
    assert not declines(text)


@pytest.mark.parametrize(
    ("language", "question", "kind", "answer"),
    [
        ("de", "Wie lange dauert der Versand?", "a duration", "3 bis 5 Werktage"),
        ("de", "Was kostet eine Inspektion?", "an amount of money", "69 €"),
        ("de", "Wann endet die Frist?", "a date or time", "am 3. März"),
        ("fr", "Combien coûte la livraison ?", "an amount of money", "12 €"),
        ("es", "¿Cuánto tiempo tarda el envío?", "a duration", "5 días"),
        ("pt", "Quanto custa a entrega?", "an amount of money", "12 €"),
        ("it", "Quanto dura la garanzia?", "a duration", "2 anni"),
        ("nl", "Hoe lang duurt de levering?", "a duration", "3 dagen"),
    ],
)
def test_a_question_wants_a_kind_of_answer(language: str, question: str, kind: str, answer: str) -> None:
    name, pattern = answer_kind(question, language)
    assert name == kind
    assert pattern is not None
    assert pattern.search(answer)


@pytest.mark.parametrize(
    ("question", "among", "language"),
    [
        ("Wie hoch sind die Versandkosten?", ("de", "en"), "de"),
        ("How much is shipping?", ("de",), "en"),
        ("Kaution Leihrad", ("de", "en"), "de"),
        ("Kaution Leihrad", ("en", "de"), "de"),
        ("Visa, Mastercard", ("de", "en"), "de"),
        ("Visa, Mastercard", ("en", "de"), "en"),
        ("HK-204", ("nl", "de"), "nl"),
        ("204?", ("nl", "de"), "nl"),
        ("返金には5日かかります。", ("de",), "ja"),
    ],
)
def test_a_question_has_its_own_language_or_that_of_most_documents(
    question: str, among: tuple[str, ...], language: str
) -> None:
    assert spoken(question, among) == language


def test_a_question_that_tells_nothing_is_english() -> None:
    assert asked_language("max power stations per order?") == "en"
    assert asked_language("Wie lange dauert der Versand?") == "de"


def test_only_languages_without_rules_are_left_unjudged() -> None:
    assert unruled("Palautusaika on 45 päivää ja se ei ole pidempi kuin muut.") == "not judged: language fi"
    assert unruled(PROSE["de"]) == ""
