"""Rules for what a claim says and its source does not: a figure, date, name or identifier; a negation; an opposite.

Word vectors hardly show these: a copied sentence with another number is as near to its source as before. The rules work
on English words, and each says in plain words what is missing. docs/dev/results/embedded-judge.md has hits and misses.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag_harness.judges.embedded.absent.identifiers import unknown_identifier
from rag_harness.judges.embedded.absent.names import unknown_name
from rag_harness.judges.embedded.absent.negations import negation
from rag_harness.judges.embedded.absent.numbers import unsaid_number
from rag_harness.judges.embedded.absent.opposites import turned
from rag_harness.judges.embedded.absent.quantities import quantities
from rag_harness.judges.embedded.absent.sentences import KnownSentences, sentence_of
from rag_harness.judges.embedded.absent.stated import is_stated
from rag_harness.judges.embedded.absent.values import misplaced
from rag_harness.judges.embedded.figures import times
from rag_harness.judges.embedded.words import SplitText
from rag_harness.words.contradictions import Contradiction, against
from rag_harness.words.number_words import in_digits, in_words

__all__ = ["absent"]

_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")


def absent(text: SplitText, passages: Sequence[SplitText], question: str) -> list[str]:
    """Return for each sentence of ``text`` what no passage says, and what is said instead where that is known.

    It is empty for a sentence without such a finding. An answer may repeat what the question says.
    """
    sentences = [text.text[start:end] for start, end in text.sentences]
    source = [passage.text[start:end] for passage in passages for start, end in passage.sentences]
    known = KnownSentences(source, question, [passage.text for passage in passages])
    denied = against(in_digits(text.text), [in_digits(passage.text) for passage in passages])
    return [
        _contradicted(span, text, denied, passages) or _missing(sentence, known)
        for span, sentence in zip(text.sentences, sentences, strict=True)
    ]


def _missing(sentence: str, known: KnownSentences) -> str:
    claim = sentence_of(sentence)
    return (
        unsaid_number(claim, known)
        or unknown_name(claim, known)
        or unknown_identifier(claim, known)
        or negation(claim, known)
        or turned(claim, known)
        or misplaced(claim, known)
    )


def _contradicted(
    span: tuple[int, int], text: SplitText, denied: Sequence[Contradiction], passages: Sequence[SplitText]
) -> str:
    for one in denied:
        if not span[0] <= one.first.start < span[1]:
            continue
        ours, theirs = one.differs
        if one.kind == "negation":
            return "the passage denies it" if theirs == "denied" else "it denies what the passage says"
        passage = passages[one.second.text].text
        claimed, stated = text.text[one.first.start : one.first.end], passage[one.second.start : one.second.end]
        ours, theirs = in_words(claimed, ours), in_words(stated, theirs)
        if _has(ours, stated, passage):
            continue
        texts = [each.text for each in passages]
        if is_stated(ours, texts) and (times(ours) or not _is_strict(ours, texts) or is_stated(ours, [theirs])):
            continue
        if times(ours):
            return f"{ours}: no passage says it"
        return f"{ours}: the passage says {theirs}"
    return ""


def _has(said: str, stated: str, passage: str) -> bool:
    """Return whether the statement has the number, too, or the passage the year: then it says no other one instead."""
    if _YEAR.fullmatch(said):
        return re.search(rf"\b{said}\b", passage) is not None
    numbers = {one.number for one in quantities(said)}
    return bool(numbers) and numbers <= {one.number for one in quantities(stated)}


def _is_strict(said: str, texts: Sequence[str]) -> bool:
    """Return whether a passage has a value with its own unit, as what is said of something else has."""
    stated = [one for text in texts for one in quantities(text)]
    return all(any(one.same(other) for other in stated) for one in quantities(said))
