"""An answer declines by all that it says. benchmarks/refusals.py has 2,435 answers of other hands."""

from __future__ import annotations

import pytest

from rag_harness.core.text.refusals import declines


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
