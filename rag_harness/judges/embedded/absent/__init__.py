"""Rules for what a claim says and its source does not: a figure, date, unit or name; an added or missing negation.

Word vectors hardly show these: a copied sentence with another number is as near to its source as before. The rules work
on English words, and each says in plain words what is missing. docs/results/embedded-judge.md has hits and misses.
"""

from __future__ import annotations

from collections.abc import Sequence

from rag_harness.judges.embedded.absent.names import unknown_name
from rag_harness.judges.embedded.absent.negations import negation
from rag_harness.judges.embedded.absent.numbers import unsaid_number
from rag_harness.judges.embedded.absent.sentences import KnownSentences, sentence_of
from rag_harness.judges.embedded.words import SplitText
from rag_harness.words.contradictions import Contradiction, against

__all__ = ["absent"]


def absent(text: SplitText, passages: Sequence[SplitText], question: str) -> list[str]:
    """Return for each sentence of ``text`` what no passage says, and what is said instead where that is known.

    It is empty for a sentence without such a finding. An answer may repeat what the question says.
    """
    sentences = [text.text[start:end] for start, end in text.sentences]
    source = [passage.text[start:end] for passage in passages for start, end in passage.sentences]
    known = KnownSentences(source, question)
    denied = against(text.text, [passage.text for passage in passages])
    return [
        _contradicted(span, denied) or _missing(sentence, known)
        for span, sentence in zip(text.sentences, sentences, strict=True)
    ]


def _missing(sentence: str, known: KnownSentences) -> str:
    claim = sentence_of(sentence)
    return unsaid_number(claim, known) or unknown_name(claim, known) or negation(claim, known)


def _contradicted(span: tuple[int, int], denied: Sequence[Contradiction]) -> str:
    for one in denied:
        if span[0] <= one.first.start < span[1]:
            ours, theirs = one.differs
            if one.kind != "negation":
                return f"{ours}: the passage says {theirs}"
            return "the passage denies it" if theirs == "denied" else "it denies what the passage says"
    return ""
