"""The languages of a prompt: of its question, and of each source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from rag_harness.models.reader.prompt import Prompt
from rag_harness.words.language import spoken, told
from rag_harness.words.languages import ENGLISH, LANGUAGES


@dataclass(frozen=True, slots=True)
class PromptLanguages:
    """The language of the question, and that of each source by its number."""

    question: str
    sources: Mapping[int, str]


def languages_in(prompt: Prompt) -> PromptLanguages:
    """Return the languages. A source too short to tell has that of most others, and so has such a question."""
    found = {source.number: told(source.text) for source in prompt.sources}
    known = [language for language, _ in Counter(filter(None, found.values())).most_common()]
    among = tuple(dict.fromkeys((*known, ENGLISH, *LANGUAGES)))
    return PromptLanguages(
        spoken(prompt.question, among), {number: language or among[0] for number, language in found.items()}
    )
