"""The language of each document: stated in its metadata, set by the option, found in its text, or its neighbours'."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from rag_harness.errors import SettingsError, unknown
from rag_harness.settings import Settings
from rag_harness.types import LANGUAGE, Document
from rag_harness.words.language import KNOWN, shares
from rag_harness.words.languages import ENGLISH, LANGUAGES, has_rules

AUTO = "auto"
ASSUMED = "language_assumed"
"""The key in the metadata of a document that is too short to tell its language: why it has the one that it has."""
MIXED = "languages_mixed"
"""The key in the metadata of a document in several languages: the share of each, as text."""
_LEAST_SHARE = 0.15
"""The least share of a second language that makes a document mixed. A quote or a table of terms has less."""

_BY_NAME = {"english": ENGLISH, **{rules.name.lower(): code for code, rules in LANGUAGES.items()}}


def language_of(settings: Settings) -> str:
    """Return the language of all documents and questions that the option names; "auto" where it is to be found.

    Raises:
        SettingsError: no language is called that.
    """
    named = settings.language.strip().lower()
    if named in (AUTO, *KNOWN):
        return named
    hint = f" Did you mean {_BY_NAME[named]!r}?" if named in _BY_NAME else ""
    known = (AUTO, ENGLISH, *LANGUAGES)
    others = ", ".join(sorted(set(KNOWN) - set(known)))
    said = f"Unknown language {settings.language!r}.{hint} Known: {', '.join(known)}" if hint else ""
    said = said or unknown("language", settings.language, known).rstrip(".")
    raise SettingsError(f"rag_language: {said}; without rules: {others}.")


def with_languages(
    documents: Sequence[Document], asked: str = AUTO, shares_of: Callable[[str], dict[str, float]] = shares
) -> list[Document]:
    """Return the documents, each with its language in its metadata, unless that is English.

    Args:
        documents: a collection. What is too short to tell gets the most frequent language of the others.
        asked: the language of all that state none; ``auto``: it is found in the text.
        shares_of: finds the languages of a text and their shares, the largest first.
    """
    by_option = {} if asked == AUTO else {asked: 1.0}
    found = [_stated(document) or by_option or shares_of(document.text) for document in documents]
    told = Counter(next(iter(each)) for each in found if each)
    usual = told.most_common(1)[0][0] if told else ENGLISH
    return [_told(document, each, usual) for document, each in zip(documents, found, strict=True)]


def _stated(document: Document) -> dict[str, float]:
    """Return the language that metadata state as a code or an English name: "de", "de-AT", "German"."""
    stated = str(document.metadata.get(LANGUAGE) or "").strip().lower()
    language = _BY_NAME.get(stated, stated.replace("_", "-").split("-")[0])
    return {language: 1.0} if language in KNOWN else {}


def _told(document: Document, found: dict[str, float], usual: str) -> Document:
    if not found:
        return _in(document, usual, {ASSUMED: "too short to tell"})
    language, *others = found
    is_mixed = any(found[each] >= _LEAST_SHARE for each in others)
    return _in(document, language, {MIXED: _said(found)} if is_mixed else {})


def _in(document: Document, language: str, more: dict[str, str] | None = None) -> Document:
    """Return the document in a language. English ones stay as they are, so that nothing changes where all are."""
    said = {LANGUAGE: language} if language != ENGLISH or LANGUAGE in document.metadata else {}
    said |= {key: why for key, why in (more or {}).items() if language != ENGLISH or key == MIXED}
    return replace(document, metadata={**document.metadata, **said}) if said else document


def _said(found: dict[str, float]) -> str:
    return ", ".join(f"{language} {share:.0%}" for language, share in found.items() if share >= _LEAST_SHARE)


def languages_said(documents: Iterable[Document]) -> list[str]:
    """Return what to know about the languages of documents, a sentence each; nothing where all are English."""
    known = list(documents)
    counts = Counter(document.language for document in known)
    if set(counts) <= {ENGLISH} and not any(MIXED in each.metadata for each in known):
        return []
    named = ", ".join(f"{count} in {language}" for language, count in counts.most_common())
    lines = [f"Documents by language: {named}."]
    lines += [_without_rules(language, counts[language]) for language in counts if not has_rules(language)]
    short = [each for each in known if ASSUMED in each.metadata]
    if short:
        lines.append(f"{len(short)} too short to tell: taken for the language of most others, {short[0].language}.")
    mixed = [f"{each.doc_id} ({each.metadata[MIXED]})" for each in known if MIXED in each.metadata]
    if mixed:
        more = f" and {len(mixed) - 3} more" if len(mixed) > 3 else ""
        lines.append(f"In several languages, read as the first: {', '.join(mixed[:3])}{more}.")
    return lines


def _without_rules(language: str, count: int) -> str:
    return f"{count} in {language}, which has no rules: words are cut as English ones, and nothing else is done."
