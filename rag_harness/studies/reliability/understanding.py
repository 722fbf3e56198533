"""Finds out the language of a question and whether it is a question, by words only: a model would cost too much."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from rag_harness.types import Decision

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_SMALL_WORDS: Mapping[str, frozenset[str]] = {
    language: frozenset(small.split())
    for language, small in (
        ("en", "the is are was do does can i my you your it of to and for in on with what how when if not"),
        ("de", "der die das ist sind ich mein sie ihr es von zu und für mit was wie wann wenn nicht kann"),
        ("fr", "le la les est sont je mon vous votre il de et pour dans avec que quoi comment quand si pas"),
        ("es", "el la los es son yo mi usted su lo de y para en con qué cómo cuándo si no puedo una"),
    )
}
UNKNOWN_LANGUAGE = "unknown"
_TALK = re.compile(
    r"(?:hi|hey|hello|good (?:morning|afternoon|evening|day)|thanks?(?: you)?(?: (?:very|so) much| a lot)?|cheers|bye|"
    r"goodbye|ok(?:ay)?|how are you(?: (?:today|doing))?|who are you|nice to meet you|great|perfect|there)"
)
_ALL_TALK = re.compile(rf"\W*{_TALK.pattern}(?:\W+{_TALK.pattern}){{0,5}}\W*", re.IGNORECASE)
_LONGEST_TALK = 200
"""Number of characters. A longer text may have a question after its greeting."""
_ORDERS = re.compile(
    r"\W*(?:please |can you |could you )*(?:cancel|change|send|book|order|write|translate|show|list|give|tell|explain|"
    r"summari[sz]e|compare|calculate|find|check|update|delete|remove|open|refund)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Understood:
    """``language`` is a code of two letters or ``unknown``; ``intent`` is question, command or chit-chat."""

    language: str
    intent: str

    @property
    def is_talk(self) -> bool:
        """Whether the text asks nothing that documents could answer."""
        return self.intent == "chit-chat"

    def decisions(self) -> tuple[Decision, ...]:
        """The language and the intent, as decisions for the row."""
        return Decision("language", self.language), Decision("intent", self.intent)


def understood(text: str) -> Understood:
    """Return the language, by its small words, and the intent, by the text's first words.

    A text that is neither chit-chat nor a command counts as a question: a search in vain costs less than a refusal.
    """
    if len(text) <= _LONGEST_TALK and _ALL_TALK.fullmatch(text):
        intent = "chit-chat"
    else:
        intent = "command" if _ORDERS.match(text) and "?" not in text else "question"
    return Understood(_language(text), intent)


def _language(text: str) -> str:
    words = [word.casefold() for word in _WORD.findall(text[:2_000])]
    counts = {code: sum(word in small for word in words) for code, small in _SMALL_WORDS.items()}
    best = max(counts, key=lambda code: counts[code])
    return best if counts[best] else UNKNOWN_LANGUAGE
