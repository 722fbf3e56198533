"""Each language has its own stems, sentences, kinds of questions and ways to say "I don't know"."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.text.language_detection import asked_language, foreign, not_judged, shares, spoken, told, unruled
from rag_harness.core.text.languages import LANGUAGES, has_rules
from rag_harness.core.text.refusals import declines
from rag_harness.core.text.sentences import sentence_spans, sentence_texts
from rag_harness.core.text.terms import answer_kind, terms
from rag_harness.service.citations import document_sentences

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


# Texts of another language are told, and nothing else is taken for one.

LANGUAGE_GERMAN = "Die Rückerstattung dauert 5 Tage und wird auf die Karte gebucht, mit der Sie bezahlt haben."


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (LANGUAGE_GERMAN, "de"),
        ("Das weiß ich nicht.", "de"),
        ("Le remboursement est versé dans les cinq jours sur votre carte.", "fr"),
        ("El reembolso se hace en cinco días y se paga con la tarjeta que usó.", "es"),
        ("Il rimborso è fatto in cinque giorni con la carta che ha usato per il pagamento.", "it"),
        ("O reembolso é feito em cinco dias e não é pago em dinheiro.", "pt"),
        ("De terugbetaling duurt vijf dagen en wordt op uw kaart gestort.", "nl"),
        ("Återbetalningen tar fem dagar och sätts in på kortet som du betalade med.", "sv"),
        ("Zwrot trwa pięć dni i jest wypłacany na kartę, którą zapłacono, ale nie w gotówce.", "pl"),
        ("Возврат занимает пять дней.", "ru"),
        ("返金には5日かかります。", "ja"),
        ("退款需要五天时间到账。", "zh"),
        ("Tiền sẽ được hoàn lại trong năm ngày.", "vi"),
        ("ค่าจัดส่งจะคืนภายในห้าวัน", "th"),
        ("Τα χρήματα επιστρέφονται σε πέντε ημέρες.", "el"),
        (f"`the` is set in the code of:\n```\nif the and of is in to: return for it\n```\n{LANGUAGE_GERMAN}", "de"),
    ],
)
def test_another_language_is_told_by_its_words(text: str, language: str) -> None:
    assert foreign(text) == language


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5 Tage.",
        "Refunds take 5 days.",
        "El Camino de Santiago is a route of the north.",
        "Crème brûlée, tarte tatin",
        "import os\nos.path.join(la, le, de)",
        "SELECT * FROM la WHERE de = 1",
        "~~~\nle = la.de(des, du)\n~~~",
        "Die Hard is on at nine, and so is The Man.",
        "She said « il est trop tard » before they left, and nobody in the room knew what that was to mean.",
        "| De | En | La |\n|---|---|---|\n| 1 | 2 | 3 |\n| 4 | 5 | 6 |",
        "$$ x_t = a\\, v + s\\, z_o, \\quad e_k = o - i $$",
        "for i in range(en): del los[i]; print(os.path.join(de, i), file=out)",
        "Die Rückerstattung heißt refund. It takes five days, and it goes to the card that you have paid with.",
        "The Ω of the coil is 5 kΩ, α is 0.3 and β is 0.5.",
    ],
)
def test_names_quotes_code_tables_and_what_is_short_are_not_foreign(text: str) -> None:
    assert foreign(text) == ""


def test_the_reason_names_the_first_text_that_is_not_judged() -> None:
    assert not_judged("How long?", LANGUAGE_GERMAN) == "not judged: language de"
    assert not_judged("How long?", "Five days.") == ""


# One rule for the ends of sentences, on what people write.


@pytest.mark.parametrize(
    "whole",
    [
        "Pay €4.90, e.g. Monday.",
        "See Dr. Meier and Mr. Olson.",
        "It is open Mon. to Fri. at ten.",
        "Bring form No. 4, see Fig. 2 and p. 12.",
        "C. Walton Musser patented it in the U.S. Patent Office.",
        "Six weeks, i.e. forty-five days.",
        "It is 1.5 m.",
        "Come at 5 p.m. Friday.",
        "Well... maybe.",
        "He asked “why?” and left.",
        "1. Fill in your name.",
        "$$ d = v t. $$",
        "It arrived! 🎉",
        "???",
    ],
)
def test_what_is_one_sentence_stays_whole(whole: str) -> None:
    assert sentence_texts(whole) == [whole]


@pytest.mark.parametrize(
    "pieces",
    [
        ["Shops open at ten.", "They close at six."],
        ["Is it free?", "No. Shipping costs €5."],
        ["There is no no.", "The rest is yes."],
        ["We ship until 5 p.m.", "The rest goes out on Monday."],
        ["It waits 45 ms.", "The network needs 48 V.", "Simplified: switching is left out."],
        ["*Model-free.*", "A method learns a policy."],
        ["It is made by Pennock Inc.", "It lasts."],
        ["`archive: false` opens it.", "`true` does not."],
        ["退货期限为45天。", "费用由买方承担。"],
        ["返品は45日以内です。", "送料は無料ですか？"],
        ["One line", "another line"],
    ],
)
def test_what_is_two_is_divided(pieces: list[str]) -> None:
    assert sentence_texts(" ".join(pieces) if "line" not in pieces[0] else "\n".join(pieces)) == pieces


def test_a_wrapped_sentence_goes_on_in_the_next_line_and_a_semicolon_may_end_one() -> None:
    text = "Pay now; it is\ndue. Thank you."
    assert len(list(sentence_spans(text))) == 3
    assert len(list(sentence_spans(text, wrapped=True))) == 2
    assert len(list(sentence_spans(text, wrapped=True, clauses=True))) == 3


def test_the_abbreviations_are_those_of_the_language_that_the_text_is_in() -> None:
    text = "Sperrige Waren, z. B. Anhänger, kommen später. Die Fassung gilt seit dem 3. März."
    assert len(sentence_texts(text)) == len(sentence_texts(text, "de")) == 2
    assert len(sentence_texts(text, "en")) > 2


def test_headings_items_and_rows_of_a_document_are_sentences_of_their_own() -> None:
    page = "# Returns\nSend it\nback. We pay.\n- One. Two.\n| a | b |\n"
    found = [page[slice(*span)] for span in document_sentences(page, 0, len(page), wrapped=True)]
    assert found == ["# Returns", "Send it\nback.", "We pay.", "- One.", "Two.", "| a | b |"]


@given(st.text("aB1 .!?;…\n\"'”)。e$", max_size=60), st.booleans(), st.booleans())
def test_sentences_stand_in_order_and_leave_out_blank_space_alone(text: str, wrapped: bool, clauses: bool) -> None:
    found = list(sentence_spans(text, language="en", wrapped=wrapped, clauses=clauses))
    kept = "".join(text[start:end] for start, end in found)
    assert "".join(kept.split()) == "".join(text.split())
    assert all(before[1] <= start < end for before, (start, end) in zip([(0, 0), *found], found, strict=False))
