"""Does an answer say what the ground truth says?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.text.answer_match import answer_match, polarity

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
