"""Finds out the language of a question, and whether it is a question: by words, for a model would cost too much."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rag_harness.types import Decision
from rag_harness.words.language import told

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
    """Return the language of a text, and its intent by its first words.

    A text that is neither chit-chat nor a command counts as a question: a search in vain costs less than a refusal.
    """
    if len(text) <= _LONGEST_TALK and _ALL_TALK.fullmatch(text):
        intent = "chit-chat"
    else:
        intent = "command" if _ORDERS.match(text) and "?" not in text else "question"
    return Understood(told(text) or UNKNOWN_LANGUAGE, intent)
