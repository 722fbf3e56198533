"""Things of one kind, by titles that are otherwise the same."""

from __future__ import annotations

from rag_harness.authoring.questions.gap_questions import siblings
from rag_harness.core.types import Document


def of_titles(*titles: str) -> dict[str, tuple[str, ...]]:
    documents = [Document(f"p{number}.md", f"# {title}\n", title) for number, title in enumerate(titles)]
    return siblings(documents, ())


def test_what_titles_differ_by_is_of_one_kind() -> None:
    found = of_titles("Returning the Alder kettle", "Returning the Brisk toaster", "Warranty of the Lumo lamp")
    assert found == {"Alder kettle": ("Brisk toaster",), "Brisk toaster": ("Alder kettle",)}


def test_one_word_in_common_makes_no_kind() -> None:
    assert of_titles("Returning Kettles", "Returning Toasters") == {}


def test_what_is_no_short_name_is_no_thing() -> None:
    assert of_titles("How to return a kettle", "How to return a toaster") == {}
