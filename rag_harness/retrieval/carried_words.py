"""Makes a question that stands alone by rules over words: a turn takes over the words that it lacks.

The rules and their numbers were chosen on the half of the conversations that is for that, before the other half was
looked at (docs/dev/results/conversations.md). What was tried and gained half a turn of 51 there at most is not in: the
sentences of the last exchange in place of words, the words since the last change of subject alone, a greater weight of
what the user said or of what was said last, a second search for the turn alone, and whether the pages spoken of have
its words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag_harness.retrieval.rarity import Rarity
from rag_harness.types import Message
from rag_harness.words.language import asked_language
from rag_harness.words.languages import ENGLISH
from rag_harness.words.terms import term, tokens

MOST_CARRIED = 24
"""The most words that a turn takes over.

On the half for fitting, recall@5 of follow-ups is 0.745 with 12, 0.784 with 16, and 0.794 with 20, 24, 30 and 40.
"""
COMPLETE = 2.0
"""How much the words of a turn weigh that needs no others, in words that no page has.

On that half, recall@5 is 0.775 with 1.5, 0.794 with 1.7 and 2, 0.775 with 2.1, and 0.755 where no turn is complete.
"""
_ABOUT = "This is about:"
_ENDS = (".", "?", "!")


@dataclass(frozen=True, slots=True)
class CarriedOver:
    """A question that stands alone, by rules. ``words`` is what it took over; ``why_not`` says why it took nothing."""

    text: str
    words: tuple[str, ...] = ()
    why_not: str = ""


def with_carried_words(turn: str, earlier: Sequence[Message], rarity: Rarity, longest: int) -> CarriedOver:
    """Return ``turn`` with the weightiest words of ``earlier`` behind it, those said last first.

    A turn that is complete in itself stays as it is: its words weigh much, and none of them was said before. So a
    change of subject takes nothing over. Only words that the documents have count, and weigh by their rarity there.

    Args:
        turn: the words of the user.
        earlier: what was said before, the oldest first.
        rarity: the weights of words in the documents.
        longest: the most bytes of the result. Words that do not fit are left out, the lightest first.
    """
    if not earlier:
        return CarriedOver(turn, why_not="nothing was said before it")
    language = asked_language(" ".join([*(each.content for each in earlier if each.role == "user"), turn]))
    own = _known_words([turn], rarity, language)
    said = _known_words([each.content for each in reversed(earlier)], rarity, language)
    missing = {key: word for key, word in said.items() if key not in own}
    if _is_complete(own, said, rarity):
        return CarriedOver(turn, why_not="it is complete in itself: its words weigh much, and none was said before")
    begin = _begin(turn, language)
    words = _fitting(missing, rarity, longest - len(begin.encode(errors="replace")))
    if not words:
        return CarriedOver(turn, why_not="there is no room for words" if missing else "no words of the pages were said")
    end = "." if language == ENGLISH else ""
    return CarriedOver(f"{begin} {' '.join(words)}{end}", tuple(words))


def _known_words(texts: Sequence[str], rarity: Rarity, language: str) -> dict[str, str]:
    """Return the words that the documents have, by the form in which they are compared, each as it was first said."""
    unknown, found = rarity.of(""), dict[str, str]()
    for token in (token for text in texts for token in tokens(text)):
        key = term(token, language)
        if key and rarity.of(key) < unknown:
            found.setdefault(key, token)
    return found


def _is_complete(own: Mapping[str, str], said: Mapping[str, str], rarity: Rarity) -> bool:
    return not own.keys() & said.keys() and sum(map(rarity.of, own)) >= COMPLETE * rarity.of("")


def _begin(turn: str, language: str) -> str:
    # The mark tells a reader which sentence asks, and that the words behind it do not.
    asked = turn.rstrip()
    marked = asked if asked.endswith(_ENDS) else f"{asked}?"
    return f"{marked} {_ABOUT}" if language == ENGLISH else marked


def _fitting(words: Mapping[str, str], rarity: Rarity, room: int) -> list[str]:
    """Return the weightiest words that fit into ``room`` bytes, in the order of ``words``."""
    chosen = set[str]()
    left = room - len(".")
    for key in sorted(words, key=lambda key: -rarity.of(key))[:MOST_CARRIED]:
        left -= len(f" {words[key]}".encode(errors="replace"))
        if left < 0:
            break
        chosen.add(key)
    return [word for key, word in words.items() if key in chosen]
