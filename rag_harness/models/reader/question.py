"""Parser for a question: its terms, the terms of the story around it, and the kind of token it asks for."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from rag_harness.words.languages import ENGLISH
from rag_harness.words.sentence_ends import sentence_texts
from rag_harness.words.terms import answer_kind, kind_words, term, terms, tokens

MAX_TERMS = 48  # a longer "question" is a pasted text
BOOSTS = {"code": 2.0, "number": 1.5, "name": 1.5}  # "HK-204" or "Norway" says more about the topic than "order"

_CAPITAL_NOUNS = "de"
"""In German every noun has a capital, which makes no name of it."""
STORY_WEIGHT = 0.5
"""Weight of a word of the story. In "I bought a lamp in May. Can I return it?" the story names the thing.

Best of 0, 0.25, 0.5 and 1 on the development half of ``benchmarks/reader_calibration.py`` (AUC 0.67, 0.69, 0.70,
0.69).
"""


@dataclass(frozen=True, slots=True)
class QuestionTerms:
    """The content terms of a question with their original words, their boosts, and the kind of token it asks for.

    ``story``: terms that are only in sentences without a question mark, if another sentence has one.
    """

    words: Mapping[str, str]
    boosts: Mapping[str, float]
    story: frozenset[str] = frozenset()
    kind: str = ""
    pattern: re.Pattern[str] | None = None

    @property
    def terms(self) -> frozenset[str]:
        """The terms in the form in which they are compared."""
        return frozenset(self.words)


def read_question(text: str, language: str = ENGLISH) -> QuestionTerms:
    """Return the terms of a question, at most MAX_TERMS: first those of its asking sentences, then of the story."""
    asked, story = _told_apart(" ".join(text.split()), language)
    kind, pattern = answer_kind(asked, language)
    # "What is the fee?" has no other word, so here the word for the kind is the topic.
    words = _words(asked, kind_words(kind, language), language) or _words(asked, frozenset(), language)
    around = {key: (word, STORY_WEIGHT * boost) for key, (word, boost) in _words(story, words.keys(), language).items()}
    both = dict([*words.items(), *around.items()][:MAX_TERMS])
    return QuestionTerms(
        words={key: word for key, (word, _) in both.items()},
        boosts={key: boost for key, (_, boost) in both.items()},
        story=frozenset(both.keys() & around.keys()),
        kind=kind,
        pattern=pattern,
    )


def _told_apart(text: str, language: str) -> tuple[str, str]:
    """Return the sentences that ask and those of the story. Without a question mark, all sentences ask."""
    asked: list[str] = []
    told: list[str] = []
    for sentence in sentence_texts(text, language):
        (asked if sentence.rstrip("\"'”’) ").endswith("?") else told).append(sentence)
    return (" ".join(asked), " ".join(told)) if terms(" ".join(asked), language) else (text, "")


def _words(text: str, left_out: Collection[str], language: str) -> dict[str, tuple[str, float]]:
    words: dict[str, tuple[str, float]] = {}
    for position, token in enumerate(tokens(text)):
        key = term(token, language)
        if key and token.lower() not in left_out and key not in left_out and len(words) < MAX_TERMS:
            words.setdefault(key, (token, BOOSTS.get(_token_kind(token, position, language), 1.0)))
    return words


def _token_kind(token: str, position: int, language: str) -> str:
    if any(character.isdigit() for character in token):
        return "number" if token[0].isdigit() else "code"
    is_name = position and token[0].isupper() and language != _CAPITAL_NOUNS
    return "name" if is_name else "word"
