"""Texts of another language are told, and nothing else is taken for one."""

from __future__ import annotations

import pytest

from rag_harness.core.text.language_detection import foreign, not_judged

GERMAN = "Die Rückerstattung dauert 5 Tage und wird auf die Karte gebucht, mit der Sie bezahlt haben."


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (GERMAN, "de"),
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
        (f"`the` is set in the code of:\n```\nif the and of is in to: return for it\n```\n{GERMAN}", "de"),
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
    assert not_judged("How long?", GERMAN) == "not judged: language de"
    assert not_judged("How long?", "Five days.") == ""
