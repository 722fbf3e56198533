"""Language by small words, intent by the first ones."""

from __future__ import annotations

import pytest

from rag_harness.studies.reliability import understood


@pytest.mark.parametrize("text", ["hi", "Hello there!", "thanks a lot, bye", "Thank you so much", "good morning"])
def test_talk(text: str) -> None:
    assert understood(text).is_talk


@pytest.mark.parametrize(
    "text",
    [
        "hi, how long may I return a lamp?",
        "thanks for nothing: where is my parcel",
        "hello kitty mug price",
        "",
        "hi " * 10_000 + "?",
        "hi" + " " * 200 + "how long may I return a lamp?",
    ],
)
def test_who_asks_is_not_turned_away(text: str) -> None:
    assert not understood(text).is_talk


def test_an_order_is_no_question() -> None:
    assert understood("Please cancel my order HK-204.").intent == "command"
    assert understood("Cancel it, or can I still change it?").intent == "question"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("How long do I have to return a lamp?", "en"),
        ("Wie lange kann ich die Lampe zurückgeben?", "de"),
        ("Combien de temps pour rendre la lampe ?", "fr"),
        ("¿Cuándo puedo devolver la lámpara y con qué?", "es"),
        ("HK-204", "unknown"),
    ],
)
def test_language(text: str, language: str) -> None:
    assert understood(text).language == language
