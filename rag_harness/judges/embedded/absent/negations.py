"""Finds negations that the source lacks, and negations of the source that a claim leaves out."""

from __future__ import annotations

from collections.abc import Iterable

from rag_harness.judges.embedded.absent.sentences import KnownSentences, Negation, Sentence, share_among

_FEWEST = 3
"""Least content words of a claim; shorter claims are not checked."""
_PUT_IN = 0.6
"""Least share of the claim's words in the sentence whose statement is said to be negated."""
_LEFT_OUT = 0.5
"""The same for a missing negation."""
_WHOLE, _ABOUT = 0.75, 0.7
"""Least share of the source's sentence in the claim, and of the claim in it, where the claim names what is denied."""
_STEM, _FORM = 4, 6
_SHOWN = 80


def negation(claim: Sentence, known: KnownSentences) -> str:
    """Return a negation that only the claim has, or only the source; empty where they agree."""
    if len(claim.stems) < _FEWEST:
        return ""
    if claim.negations:
        return _put_in(claim, known)
    return "" if claim.denials else _left_out(claim, known)


def _put_in(claim: Sentence, known: KnownSentences) -> str:
    for one in claim.negations:
        near = [
            sentence
            for sentence in known.sentences
            if share_among(claim.stems, sentence.stems) >= _PUT_IN and _all_in(one.scope, sentence.stems)
        ]
        if near and not any(sentence.denials - claim.denials or sentence.negations for sentence in near):
            return f"“{one.word}”: the passage says it without"
    return ""


def _left_out(claim: Sentence, known: KnownSentences) -> str:
    for sentence in known.sentences:
        for one in sentence.negations:
            if _is_left_out(one, sentence, claim):
                text = " ".join(sentence.text.split())
                return f"left out is “{one.word}”: {text[:_SHOWN]}{'…' * (len(text) > _SHOWN)}"
    return ""


def _is_left_out(one: Negation, sentence: Sentence, claim: Sentence) -> bool:
    """Return whether a claim says what a sentence negates: about the same subject, or with the same words nearby."""
    forth = share_among(claim.stems, sentence.stems)
    if forth >= _ABOUT and one.subject and _all_in(one.subject, claim.stems):
        return True
    if not _all_in(one.scope, claim.stems):
        return False
    is_whole = len(sentence.stems) >= _FEWEST and share_among(sentence.stems, claim.stems) >= _WHOLE
    return forth >= _LEFT_OUT or is_whole


def _all_in(stems: Iterable[str], others: frozenset[str]) -> bool:
    return all(stem in others or _has_form(stem, others) for stem in stems)


def _has_form(stem: str, others: frozenset[str]) -> bool:
    """Return whether there is another form of a long word: acquisition of acquire."""
    return len(stem) >= _FORM and any(len(other) > _STEM and other[:_STEM] == stem[:_STEM] for other in others)
