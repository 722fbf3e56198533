"""Rules about texts: answers that say the truth or decline, equal and opposite words, names of pages."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.text.answer_match import answer_match, polarity
from rag_harness.core.text.comparison import (
    PageNames,
    comparable,
    comparable_text,
    compared_words,
    divided,
    folded,
    without_emphasis,
)
from rag_harness.core.text.refusals import declines
from rag_harness.core.text.terms import opposite, same_sense

# Does an answer say what the ground truth says?

AGREE = [
    ("May I pay in instalments?", "Yes, in up to three instalments.", "Yes"),
    ("Is the cellar included?", "Yes", "It is, the cellar comes with the flat."),
    ("Is the helmet mandatory?", "No", "You don't need a helmet, so it isn't mandatory."),
    ("Which part is it?", "DH-330-A", "The part number is DH-330-A."),
    ("Where is the log?", "/var/log/wx/station.log", "In station.log under /var/log/wx/"),
    ("Who delivers?", "Greenacre Organics", "Greenacre Organics brings it."),
    ("What goes in?", "water, salt, sugar, bay leaf", "Salt and sugar in water, with a bay leaf."),
    ("Was kostet die Miete?", "Die Miete kostet 4,90 Euro.", "4,90 € kostet sie."),
    ("谁负责打扫楼道?", "物业公司", "楼道由物业公司打扫。"),
    ("¿Es obligatorio el casco?", "No es obligatorio.", "No hace falta llevar casco, no es obligatorio."),
    ("Is opened software returnable?", "It cannot be returned.", "No, opened software cannot be returned."),
    ("When does it open?", "at 21:15", "At quarter past nine in the evening."),
    ("How long is it?", "90 minutes", "an hour and a half"),
    ("How many seats?", "two hundred and forty", "240"),
    ("In what year?", "1987", "in '87"),
    ("How much is it?", "CHF 1'250", "1250 francs"),
    ("Is it free?", "No", "By no means."),
    ("Which colours are there?", "red, green, blue", "blue, green and red"),
    ("How many points?", "50", "You need 50. Those who fail may come again after 14 days."),
    ("下班几点?", "下午五点", "17:00下班。"),
]
OPEN = [
    ("How is silver kept?", "Wrap it in acid-free paper and store it dry.", "Leave it where air can reach it."),
    ("What does he do?", "He repairs bikes.", "He mends bicycles."),
    ("How many came on Saturday?", "37", "37 on Friday and 52 on Saturday."),
    ("What year did it shut?", "1971", "Maybe 1971, maybe 1974."),
    ("In which order?", "wash, dry, iron", "Dry, then wash, then iron."),
    ("Is it allowed?", "No", "It is not forbidden."),
    ("May I smoke here?", "No", "Smoking is forbidden here."),
    ("Who wrote it?", "Ana Lopez", "Ana Lopez and Juan Perez"),
    ("Where is the key?", "from the caretaker", "From the caretaker. The caretaker has none though."),
    ("Was kostet es?", "8,90 €", "Acht Euro neunzig"),
]
DIFFER = [
    ("May I hand my ticket on?", "Yes, tickets are transferable.", "No"),
    ("Do all pupils need a tablet?", "Not all, only those from year 7 on.", "All pupils need one."),
    ("Which part is it?", "DH-330-A", "DH-330-B"),
    ("Which drill?", "the Corvex 20", "the Corvex 200"),
    ("Who chairs it?", "Tomasz Nowak", "Tomasz Nowicki"),
    ("Which towns get it?", "Dunmere and Colby", "Dunmere, Colby, Ashton and Pell."),
    ("Who has a key?", "Ana, Piet and Marlon", "Ana and Piet"),
    ("When does it open?", "9 am", "It opens at 10:00."),
    ("How long is it?", "2 km", "2 miles"),
    ("How much is it?", "$45", "€45"),
    ("Which colours are there?", "red, green, blue", "red and green"),
    ("How much is it and when is it due?", "£80, within 21 days", "It is £80."),
    ("Where is it?", "in Berlin", "It is in Munich."),
    ("Which version?", "2.10", "2.1"),
    ("Is it free?", "No", "Absolutely."),
    ("Should it be covered?", "It should be covered.", "It should not be covered."),
    ("What is the rent?", "€45 a day", "It is €45 a day. No, sorry: it is €60."),
    ("Wie lange dauert sie?", "sechs Monate", "Sie dauert drei Monate."),
    ("几点开门?", "上午9点", "上午十点开门。"),
    ("Which code?", "7731", "****"),
    ("这种药一天吃几次?", "一天三次", "每天吃两次。"),
    ("自転車で通れますか。", "通れません。", "はい、通れます。"),
    ("¿Se puede pagar con tarjeta?", "No, solo en efectivo.", "Sí, aceptan cualquier tarjeta."),
]


@pytest.mark.parametrize(("question", "truth", "answer"), AGREE)
def test_an_answer_that_says_the_same_agrees(question: str, truth: str, answer: str) -> None:
    assert answer_match(question, truth, answer).agrees is True


@pytest.mark.parametrize(("question", "truth", "answer"), DIFFER)
def test_an_answer_that_says_something_else_does_not(question: str, truth: str, answer: str) -> None:
    assert answer_match(question, truth, answer).agrees is False


@pytest.mark.parametrize(("question", "truth", "answer"), OPEN)
def test_of_an_answer_that_may_be_either_the_rule_cannot_tell(question: str, truth: str, answer: str) -> None:
    assert answer_match(question, truth, answer).agrees is None


def test_texts_in_two_languages_are_not_compared_by_their_words() -> None:
    truth = "The refund goes back to the card that you have paid with."
    answer = "Das Geld wird auf die Karte gebucht, mit der Sie bezahlt haben."
    assert answer_match("Where does the refund go?", truth, answer).agrees is None


@pytest.mark.parametrize("truth", [truth for _, truth, _ in [*AGREE, *DIFFER]])
def test_a_truth_agrees_with_itself(truth: str) -> None:
    assert answer_match("What is it?", truth, truth).agrees is True


@given(st.text(max_size=80), st.text(min_size=1, max_size=80), st.text(max_size=80))
def test_any_text_has_a_share_between_0_and_1(question: str, truth: str, answer: str) -> None:
    assert 0 <= answer_match(question, truth, answer).share <= 1


@pytest.mark.parametrize(
    ("text", "affirms"),
    [
        ("Yes.", True),
        ("No, only in May", False),
        ("Not all of them", False),
        ("いいえ", False),
        ("Oui, bien sûr", True),
        ("It never does", False),
    ],
)
def test_a_text_says_yes_or_no(text: str, affirms: bool) -> None:
    found = polarity(text)
    assert found is not None
    assert found.affirms is affirms


# An answer declines by all that it says. benchmarks/refusals.py has 2,435 answers of other hands.


@pytest.mark.parametrize(
    "answer",
    [
        "I don't know.",
        "I’m sorry, but I couldn’t find any information on that. Please contact our support team.",
        "Based on the provided context, the documents **do not mention** the price [1][2].",
        "The passages describe shipping and returns. They do not say anything about gift cards.",
        "N/A",
        "Das geht aus den Unterlagen leider nicht hervor.",
        "Je ne trouve aucune information à ce sujet dans les documents.",
        "Lo siento, los documentos no mencionan el precio.",
        "Mi dispiace, non ho trovato informazioni su questo.",
        "Daar kan ik in de documenten niets over vinden.",
        "Não encontrei essa informação nos documentos.",
        "The passages cover fares and seats, but not refunds. Perhaps the fare rules do.",
        "Les informations fournies ne permettent pas de le déterminer.",
        "Im Beipackzettel wird die Lagerung nicht erwähnt.",
        "I can't give tax advice. If you send me the 2021 form, I can read it to you.",
        "I found no statement on overtime.\n\n**Sources**\n1. Employee handbook, section 5\n2. Works agreement 2019",
        "The retrieved section covers only codes E-100 to E-299. It does not list E-417.",
    ],
)
def test_it_declines(answer: str) -> None:
    assert declines(answer)


def test_the_phrases_of_a_suite_decline_besides() -> None:
    own = ("OUT_OF_SCOPE", "That's above my pay grade, friend")
    for answer in ("out_of_scope", "That’s above my pay grade, friend. Ask the shop.", "I don't know."):
        assert declines(answer, own)
    assert not declines("OUT_OF_SCOPE")
    assert not declines("OUT_OF_SCOPE_2 is the code of error 7.", own)
    assert not declines("That's above my pay grade, friend, but it costs 5 euros.", own)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "I don't know why you ask, lamps can be returned within 45 days.",
        "Unfortunately, worn shoes cannot be returned.",
        "The manual does not say how heavy it is, but it is 40 cm wide.",
        'The bot replies "I don\'t know" below a confidence of 0.4.',
        "A 404 error means that the page was not found on the server.",
        "The warranty does not cover water damage.",
        "Der Preis ist nicht im Abo enthalten.",
        "Ce yaourt ne contient pas de lactose.",
        "La batería dura dos días. No encuentro nada sobre la garantía.",
        "It returns `None` if the key is missing.",
        "Blades, drill bits and sanding paper are not part of a loan.",
        "If no entry is found in the index, press Return.",
        "The pages say that the fee is not refunded.",
        "The customer writes that she could not find the invoice.",
        "No exact date is given, although the notes speak of spring.",
        "We do not share your personal data with advertisers.",
        "Fourteen days from delivery. The text does not specify whether holidays count.",
        "I don't know. " + "The lamp costs nine euros. " * 300,
    ],
)
def test_it_answers(answer: str) -> None:
    assert not declines(answer)


# Texts that a reader takes for the same are compared as the same, and places are those of the text as written.


@pytest.mark.parametrize(
    ("written", "same"),
    [
        (unicodedata.normalize("NFD", "crème brûlée"), "crème brûlée"),
        ("ﬁne oﬃce", "fine office"),
        ("４５ days", "45 days"),
        ("ware\u00adhouse\u200b", "warehouse"),
        ("“don’t” – it", '"don\'t" - it'),
        ("R&amp;D&nbsp;team &#8364;5", "R&D team €5"),
        ("10² m, 2½", "10² m, 2½"),
        ("AT&T; and &unknown;", "AT&T; and &unknown;"),
    ],
)
def test_what_looks_the_same_is_the_same(written: str, same: str) -> None:
    assert comparable(written) == comparable_text(written).text == same


@pytest.mark.parametrize(
    ("written", "bare"),
    [
        ("**45** `days`", "45 days"),
        ("max_tokens * 2", "max_tokens * 2"),
        ("_it_ is 2*3*4", "it is 2*3*4"),
        ("**", "**"),
    ],
)
def test_marks_of_emphasis_are_left_out_and_those_in_names_stay(written: str, bare: str) -> None:
    assert without_emphasis(written) == (comparable_text(written).text or written) == bare


@given(st.text(alphabet="aé\u0301 *_`\u00ad\u200bﬁ½&amp;한ᄒ\u1161ไ่'’0-\n", max_size=40))
def test_each_character_has_its_place_in_the_text_as_written(text: str) -> None:
    found = comparable_text(text)
    assert len(found.text) == len(found.starts) == len(found.ends)
    assert [*found.starts] == sorted(found.starts)
    for place, letter in enumerate(found.text):
        assert letter in comparable(text[found.starts[place] : found.ends[place]])


@given(st.text(max_size=60))
def test_a_form_is_a_form_once_and_for_all(text: str) -> None:
    assert comparable(comparable(text)) in (comparable(text), comparable(comparable(comparable(text))))
    assert compared_words(text) == compared_words(folded(text))


def test_scripts_without_blanks_are_characters_or_pairs() -> None:
    assert divided(["您可以在", "iPhone手机"], 1) == ["您", "可", "以", "在", "iPhone", "手", "机"]
    assert compared_words("四十五天内") == ["四十", "十五", "五天", "天内"]
    assert compared_words("天") == ["天"]
    # A mark belongs to its letter: a word of Hindi is no heap of consonants, and one of Thai is cut between letters.
    assert compared_words("की दुकान") == ["की", "दुकान"]
    assert compared_words("ที่นี่") == ["ที่นี่"]


# Words that state the same or the opposite of a thing.


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("accepted", "rejected"),
        ("open", "closed"),
        ("available", "unavailable"),
        ("refundable", "non-refundable"),
        ("before", "after"),
        ("included", "excluded"),
        ("free", "charged"),
        ("starts", "ends"),
    ],
)
def test_opposites_in_any_order_and_form(one: str, other: str) -> None:
    assert opposite(one, other)
    assert opposite(other, one)
    assert not opposite(one, one)


def test_a_contrast_tells_two_things_apart_and_denies_nothing() -> None:
    assert opposite("adults", "children")
    assert not opposite("adults", "children", contrasts=False)


def test_words_of_one_sense() -> None:
    assert same_sense("required", "compulsory")
    assert not same_sense("required", "optional")
    assert not same_sense("lamp", "table")


# Pages are found by the names of other people's software, and never by a name that may mean two.

PAGES = ("returns.md", "de/returns.md", "faq/rückgabe.md", "prices 2024.md", "v3.12.md", "Guide/Setup.md")


@pytest.mark.parametrize(
    ("told", "page"),
    [
        ("returns.md", "returns.md"),
        ("/data/kb/de/returns.md", "de/returns.md"),
        ("./faq/rückgabe.md", "faq/rückgabe.md"),
        (unicodedata.normalize("NFD", "faq/rückgabe.md"), "faq/rückgabe.md"),
        ("C:\\kb\\faq\\rückgabe.md", "faq/rückgabe.md"),
        ("https://docs.example/faq/r%C3%BCckgabe.md?v=2#top", "faq/rückgabe.md"),
        ("file:///srv/kb/prices%202024.md", "prices 2024.md"),
        ("prices 2024", "prices 2024.md"),
        ("guide/setup.MD", "Guide/Setup.md"),
        ("https://docs.example/guide/setup/", "Guide/Setup.md"),
        ("other/rückgabe.md", ""),
        ("nowhere.md", ""),
        ("", ""),
    ],
)
def test_a_name_finds_its_page(told: str, page: str) -> None:
    assert PageNames(lambda: PAGES).find(told) == page


def test_a_name_that_two_pages_end_with_finds_none() -> None:
    assert PageNames(lambda: ("a/x.md", "b/x.md")).find("x.md") == ""
    assert PageNames(lambda: ("a/X.md", "a/x.md")).find("/kb/a/X.md") == "a/X.md"


def test_names_are_read_when_one_is_looked_for() -> None:
    asked: list[int] = []

    def names() -> tuple[str, ...]:
        asked.append(1)
        return PAGES

    found = PageNames(names)
    assert not asked
    assert [found.find("prices 2024"), found.find("prices 2024")] == ["prices 2024.md"] * 2
    assert asked == [1]
