"""Every document gets a language: its own, its neighbours', or the option's; what has no rules is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_harness.core.errors import SettingsError
from rag_harness.core.settings import Settings
from rag_harness.core.types import Document
from rag_harness.data.documents import language_of, languages_said, read_knowledge_base, with_languages
from tests.unit.words.test_languages import PROSE

GERMAN_PAGES = Path(__file__).parents[2] / "data/german"


def _documents(**texts: str) -> list[Document]:
    return [Document(f"{name}.md", text, name) for name, text in texts.items()]


def test_the_german_pages_are_german() -> None:
    documents = read_knowledge_base(GERMAN_PAGES)
    assert {document.language for document in documents} == {"de"}
    assert languages_said(documents) == ["Documents by language: 8 in de."]


def test_nothing_changes_and_nothing_is_said_where_all_is_english() -> None:
    documents = _documents(a=PROSE["en"], b="Short.")
    assert with_languages(documents) == documents
    assert languages_said(with_languages(documents)) == []


def test_each_document_of_a_mixed_collection_has_its_own() -> None:
    found = with_languages(_documents(a=PROSE["de"], b=PROSE["en"], c=PROSE["fr"], d=PROSE["de"]))
    assert [document.language for document in found] == ["de", "en", "fr", "de"]


def test_what_is_too_short_has_the_language_of_most_others_and_that_is_said() -> None:
    found = with_languages(_documents(a=PROSE["de"], b="Hotline: 0761 1234"))
    assert found[1].language == "de"
    assert "1 too short to tell: taken for the language of most others, de." in languages_said(found)


def test_a_document_in_two_languages_has_that_of_its_larger_part_and_that_is_said() -> None:
    (found,) = with_languages(_documents(a="\n\n".join([PROSE["de"], PROSE["de"], PROSE["en"]])))
    assert found.language == "de"
    assert any("a.md (de 7" in line and "en" in line for line in languages_said([found]))


@pytest.mark.parametrize(
    ("text", "language"), [("退款需要五天时间到账。", "zh"), ("يستغرق رد الأموال خمسة أيام.", "ar")]
)
def test_a_language_without_rules_is_named(text: str, language: str) -> None:
    found = with_languages(_documents(a=text))
    assert found[0].language == language
    assert f"1 in {language}, which has no rules" in languages_said(found)[1]


def test_the_option_names_the_language_of_all_that_state_none() -> None:
    stated = Document("b.md", PROSE["en"], "b", {"language": "fr"})
    found = with_languages([*_documents(a=PROSE["en"]), stated], "de")
    assert [document.language for document in found] == ["de", "fr"]


@pytest.mark.parametrize(("named", "hint"), [("german", "'de'"), ("dee", "'de'"), ("xx", "Known: ")])
def test_an_unknown_language_is_refused_with_what_could_be_meant(named: str, hint: str) -> None:
    with pytest.raises(SettingsError, match="rag_language") as error:
        language_of(Settings(language=named))
    assert hint in str(error.value)


def test_languages_without_rules_may_be_named() -> None:
    assert language_of(Settings(language=" ZH ")) == "zh"


@pytest.mark.parametrize(
    ("stated", "language"), [("de-AT", "de"), ("German", "de"), ("en_GB", "en"), ("klingon", "fr")]
)
def test_what_metadata_state_counts_before_the_text_where_it_is_known(stated: str, language: str) -> None:
    (found,) = with_languages([Document("a.md", PROSE["fr"], "a", {"language": stated})])
    assert found.language == language
