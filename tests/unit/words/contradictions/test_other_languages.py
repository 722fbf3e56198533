"""What is not English is not read for contradictions: rules for English would find some, and nobody knows how well."""

from __future__ import annotations

from rag_harness.core.text.contradictions import against, contradictions
from rag_harness.core.text.language_detection import no_rules

OLD = "Die Lieferung kostet in der Schweiz 5 € und sie kommt nicht mit der Post."
NEW = OLD.replace("5 €", "9 €")
IN_ENGLISH = "The return period is 30 days for all articles that are not used."


def test_german_texts_contradict_nothing_and_that_is_said() -> None:
    assert contradictions([OLD, NEW]) == []
    assert against(OLD, [NEW]) == []
    assert no_rules("contradictions are looked for in English", OLD) == (
        "no rules for de: contradictions are looked for in English"
    )


def test_english_texts_beside_them_are_read() -> None:
    found = contradictions([OLD, IN_ENGLISH, IN_ENGLISH.replace("30", "45")])
    assert [(one.first.text, one.second.text) for one in found] == [(1, 2)]
