"""Splits a question into its parts by rules, for pipelines that plan their searches without a model.

The rules are for English only, and simple: a question that no rule recognises stays whole. They look only at the words
of the question, never at the documents.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag_harness.words.comparison import compared_words
from rag_harness.words.language import asked_language
from rag_harness.words.languages import ENGLISH

MOST_SEARCHES = 3
"""The most questions in all, the original one included."""
VERSION_QUESTION = "Which version is current, and from which date does it hold?"
_FEWEST_WORDS = 3

_TO = r"(?:(?:from|by|until|till|for|at|in|on|to|with)\s+)?"
_ASKING = rf"{_TO}(?:what|which|who|whose|whom|when|where|why|how)\b"
_VERB = (
    r"(?:do|does|did|am|is|are|was|were|can|could|will|would|should|shall|must|may|might|have|has|had)(?:n['’]t)?\s+"
    r"(?:i|we|you|he|she|it|they|there|this|that|these|those|the|a|an|my|our|your|his|her|its|their|one|any)\b"
)
_ASKS = re.compile(rf"{_ASKING}|{_VERB}", re.IGNORECASE)
_QUESTION = re.compile(r"[^.?!;]*(?:[.?!](?!\s|$)[^.?!;]*)*[.?!;]*\s*")
"""What people type: a small letter begins a question, too ("is it open? how long?"), and ";" ends one."""
# After a comma alone, "who", "which", "when" and "where" mostly refer to the words before it.
_JOINT = re.compile(
    rf",? (?:and|or|but|then) (?:also |then |if so,? )?(?={_ASKING}|{_VERB})|, (?={_TO}(?:what|why|how)\b)",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"\bbetween (?P<one>[^,.;?!]{1,200}?) and (?P<other>[^,.;?!]{1,200})", re.IGNORECASE)
_AGAINST = re.compile(r",? (?:compared (?:to|with)|versus|vs|as opposed to) ", re.IGNORECASE)
_VERSIONS = (
    r"\b(?:(?:19|20)\d\d|used to be|no longer|up to date|outdated|superseded|(?:current|latest|newest|old|older|new|"
    r"previous|former) (?:version|policy|policies|rules?|terms|edition))\b"
)
_DATED = re.compile(_VERSIONS, re.IGNORECASE)
_VS = re.compile(r"\bvs\.(?=\s)", re.IGNORECASE)


def subquestions(text: str) -> list[str]:
    """Return the questions to search for: first ``text`` itself, then its parts; at most ``MOST_SEARCHES``.

    Two questions in one text are split: at the end of a sentence, or where a second question word or an inverted verb
    follows a conjunction. The two sides of a comparison are split, too. Statements before the questions are added to
    each part, since "where do I take it?" finds nothing alone. If nothing can be split, and the question names a year
    or versions of a rule, a second question asks which of them is current. A text that no rule recognises is its only
    part.
    """
    if asked_language(text) != ENGLISH:
        return [text]
    told, asked = _told_and_asked(_VS.sub("vs", " ".join(text.split())))
    parts = [part for question in asked for part in _parts(question)]
    if len(parts) == 1:
        parts = _sides(parts[0])
    if len(parts) < 2:
        parts = [f"{text.strip()} {VERSION_QUESTION}"] if _DATED.search(text) else []
        told = []
    found = [" ".join([*told, part]) for part in _joined(parts, MOST_SEARCHES - 1)]
    return _different([text, *found])


def _told_and_asked(text: str) -> tuple[list[str], list[str]]:
    """Return the sentences that ask nothing, and the questions. A sentence without an end mark may be a question."""
    sentences = [sentence.strip() for sentence in _QUESTION.findall(text) if any(map(str.isalnum, sentence))]
    marked = any(sentence.endswith("?") for sentence in sentences)
    told, asked = list[str](), list[str]()
    for sentence in sentences:
        asks = sentence.endswith("?") if marked else _ASKS.match(sentence)
        (asked if asks else told).append(sentence)
    return told, asked


def _parts(sentence: str) -> list[str]:
    """Return the questions of one sentence. A part that is too short stays with its neighbour."""
    pieces, start = list[str](), 0
    for joint in _JOINT.finditer(sentence):
        if _is_one(sentence[start : joint.start()]) and _is_one(sentence[joint.end() :]):
            pieces.append(sentence[start : joint.start()])
            start = joint.end()
    return [*pieces, sentence[start:]]


def _is_one(part: str) -> bool:
    return len(part.split()) >= _FEWEST_WORDS and _ASKS.search(part) is not None


def _sides(question: str) -> list[str]:
    """Return a comparison as two questions, one for each side; the question alone if it compares nothing."""
    between = _BETWEEN.search(question)
    if between:
        begin, end = question[: between.start()], question[between.end() :]
        return [f"{begin}{between[side]}{end}" for side in ("one", "other")]
    sides = _AGAINST.split(question, maxsplit=1)
    return sides if all(map(compared_words, sides)) else [question]


def _joined(parts: Sequence[str], most: int) -> list[str]:
    """Return ``parts``; if there are more than ``most``, the last ones are joined, so that nothing is dropped."""
    return [*parts[: most - 1], " and ".join(parts[most - 1 :])] if len(parts) > most else list(parts)


def _different(texts: Sequence[str]) -> list[str]:
    """Return the first text, and the later ones whose words do not repeat earlier texts."""
    by_words: dict[str, str] = {}
    for text in texts:
        by_words.setdefault(" ".join(compared_words(text)), text)
    return list(by_words.values())
