"""Finds identifiers in a claim that no passage has: flags, paths, codes, versions. To the letter, or they are wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag_harness.judges.embedded.absent.sentences import KnownSentences, Sentence

_IDENTIFIER = re.compile(
    r"(?<![\w-])--?[A-Za-z][\w-]*(?![\w-])|(?<![\w/.:])/[\w.-]+(?:/[\w.-]+)+|\b[A-Za-z]\w*_\w+\b|\b(?!\d{1,2}\.\d{1,2}\.\d{4}\b)\d+(?:\.\d+){2,}\b"
    r"|\b[A-Z]{1,4}-?\d+[A-Za-z\d-]*\b|(?<![\w.-])[\w.-]{1,100}\.(?:py|json|ya?ml|toml|ini|conf|cfg|log|csv|sh|tar|gz|zip)\b"
)


def identifiers(text: str) -> list[str]:
    """Return the identifiers of a text."""
    return [found[0].rstrip(".") for found in _IDENTIFIER.finditer(text)]


def unknown_identifier(claim: Sentence, known: KnownSentences) -> str:
    """Return what no passage has of a claim's identifiers; empty where each is there."""
    said = identifiers(claim.text)
    found = identifier_not_in(said, [one.text for one in known.everything]) if said else ""
    return f"{found}: no passage has it" if found else ""


def identifier_not_in(said: Sequence[str], sources: Sequence[str]) -> str:
    """Return the first identifier that no source has to the letter; empty where each is there."""
    for one in said:
        whole = re.compile(rf"(?<![\w-]){re.escape(one)}(?![\w-])")
        if not any(whole.search(source) for source in sources):
            return one
    return ""
