"""Makes a wrong statement of a right one: another number, another name, or a turned negation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from rag_harness.models.simulated.drawing import one_of
from rag_harness.models.simulated.known_questions import Sources

_NUMBER = re.compile(r"(?<![\w.,:/-])(\d{1,3}(?:,\d{3})+|\d+)(?![\w:/-]|[.,:]\d)")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}(?: [A-Z][a-z]+)*")
_VERDICT = re.compile(r"\A(Yes|No)\b")
_TURNED = {"Yes": "No", "No": "Yes"}
_NOT = re.compile(r"\b(is|are|can|may|must|will|does|do|has|have) not\b|\b(can)not\b|\b(can)['’]t\b")
_VERB = re.compile(r"\b(is|are|can|may|must|will|has|have)\b")
_MARKS = re.compile(r"[*_`>#|]|^\s*(?:[-+]|\d{1,3}[.)])\s+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_WORD = re.compile(r"\w{4,}")
_SHORTEST, _LONGEST = 20, 300


def changed(text: str, names: Sequence[str], *draw: object) -> str:
    """Return ``text`` with one thing changed; unchanged where it has no number, no name and nothing to negate.

    Args:
        text: a right statement.
        names: names to put in place of one in the text.
        draw: what the choice is drawn by.
    """
    ways: list[Callable[[], str]] = [
        lambda: _other_number(text, *draw),
        lambda: _other_name(text, names, *draw),
        lambda: _negated(text),
    ]
    made = [new for new in (way() for way in ways) if new != text]
    return one_of(made, *draw, "way") if made else text


def names_in(texts: Iterable[str]) -> list[str]:
    """Return the names in ``texts``: words with a capital letter that begin no sentence."""
    return sorted({name for text in texts for name in _NAME.findall(text)})


def nearest_sentence(question: str, context: Sources) -> tuple[str, int]:
    """Return the sentence that shares most words with ``question``, and its source's number; "" and 0 without any."""
    asked = _words(question)
    found = [(sentence, n) for n, (_, text) in enumerate(context, 1) for sentence in _sentences(text)]
    return max(found, key=lambda each: len(asked & _words(each[0])), default=("", 0))


def _other_number(text: str, *draw: object) -> str:
    found = _NUMBER.search(text)
    if found is None:
        return text
    value = int(found[1].replace(",", ""))
    is_year = 1900 <= value < 2100 and "," not in found[1]
    others = [value - 1, value + 1, value + 2] if is_year else [2 * value, 3 * value, value + max(1, value // 2)]
    other = one_of([each for each in others if each != value] or [value + 1], *draw, "number")
    return f"{text[: found.start()]}{other:{',' if ',' in found[1] else ''}}{text[found.end() :]}"


def _other_name(text: str, names: Sequence[str], *draw: object) -> str:
    found = _NAME.search(text)
    others = [name for name in names if found and name != found[0]]
    if found is None or not others:
        return text
    return f"{text[: found.start()]}{one_of(others, *draw, 'name')}{text[found.end() :]}"


def _negated(text: str) -> str:
    if _VERDICT.match(text):
        return _VERDICT.sub(lambda said: _TURNED[said[1]], text, count=1)
    if _NOT.search(text):
        return _NOT.sub(lambda said: said[1] or said[2] or said[3], text, count=1)
    return _VERB.sub(r"\1 not", text, count=1)


def _sentences(text: str) -> list[str]:
    """Return the sentences of the running text. Headings, tables and questions are left out."""
    lines = (line.strip() for line in text.splitlines())
    prose = (_MARKS.sub("", line).strip() for line in lines if not line.startswith(("#", "|")))
    found = (" ".join(sentence.split()) for line in prose for sentence in _SENTENCE_END.split(line))
    return [each for each in found if _SHORTEST <= len(each) <= _LONGEST and each[-1] in ".!"]


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))
