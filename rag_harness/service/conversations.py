"""Conversations that the server keeps in memory, of each key apart."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from rag_harness.service.problems import ProblemError

# They have limits, so that no tenant can take the memory of others: where there is too much, the oldest of those go who
# have the most.

Owner: TypeAlias = "tuple[str, int | None]"
"""A collection and the id of a key; None where the server has no keys."""
MOST_TURNS_KEPT = 100
"""Turns of a conversation."""
MOST_CHARACTERS_EACH = 200_000
"""Characters of a conversation, after which it takes no more turns."""
MOST_OF_OWNER, MOST_OF_ALL = 200, 1_000
"""Conversations of a key, and of all."""
MOST_CHARACTERS_OF_ALL = 8 << 20
"""Characters of all conversations; at most four bytes each."""
OLDEST_S = 86_400.0
"""Seconds after its last turn until a conversation is forgotten."""


@dataclass
class _Talk:
    owner: Owner
    last: float
    said: list[dict[str, str]] = field(default_factory=list)
    characters: int = 0
    is_under_way: bool = False


@dataclass
class TurnUnderWay:
    """A turn that is answered.

    Attributes:
        inputs: what the pipeline sees of it: its conversation, its number from 1, and what was said before.
        answer: what was answered; None where nothing was. It is part of the conversation when the turn is over.
    """

    inputs: Mapping[str, Any]
    answer: str | None = None


class Conversations:
    """The conversations of one server, used from its event loop.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._talks: dict[str, _Talk] = {}

    def begin(self, owner: Owner) -> str:
        """Return the id of a new conversation; nobody can guess it."""
        self._forget_old()
        if self._of_owners()[owner] >= MOST_OF_OWNER:
            self._forget_oldest_of(owner)
        if len(self._talks) >= MOST_OF_ALL:
            self._forget_oldest_of(self._of_owners().most_common(1)[0][0])
        name = secrets.token_hex(16)
        self._talks[name] = _Talk(owner, self._clock())
        return name

    def end(self, owner: Owner, name: str) -> None:
        """Forget a conversation.

        Raises:
            ProblemError: there is none, as far as ``owner`` may know.
        """
        self._talk(owner, name)
        del self._talks[name]

    def check(self, owner: Owner, name: str) -> None:
        """Check that a conversation takes a turn now.

        Raises:
            ProblemError: there is none, as far as ``owner`` may know, it is full, or a turn of it is under way.
        """
        talk = self._talk(owner, name)
        if talk.is_under_way:
            detail = "The last question of this conversation is being answered. Ask when it is."
            raise ProblemError(409, "conversation_busy", detail)
        if len(talk.said) >= 2 * MOST_TURNS_KEPT or talk.characters >= MOST_CHARACTERS_EACH:
            raise ProblemError(
                409,
                "conversation_full",
                f"This conversation has {len(talk.said) // 2} turns and {talk.characters} characters, and may have "
                f"{MOST_TURNS_KEPT} and {MOST_CHARACTERS_EACH}. Begin another.",
            )

    @contextmanager
    def turn(self, owner: Owner, name: str, question: str) -> Iterator[TurnUnderWay]:
        """Hold a conversation while a turn of it is answered.

        Raises:
            ProblemError: as ``check``.
        """
        self.check(owner, name)
        talk = self._talks[name]
        turn = TurnUnderWay(inputs_of(name, talk.said))
        talk.is_under_way = True
        try:
            yield turn
        finally:
            talk.is_under_way, talk.last = False, self._clock()
            if turn.answer is not None:
                talk.said += [{"role": "user", "content": question}, {"role": "assistant", "content": turn.answer}]
                talk.characters += len(question) + len(turn.answer)
                self._make_room()

    def _talk(self, owner: Owner, name: str) -> _Talk:
        self._forget_old()
        talk = self._talks.get(name)
        if talk is None or talk.owner != owner:
            detail = "There is no such conversation: it is not kept any more, or it was begun with another key."
            raise ProblemError(404, "no_such_conversation", f"{detail} Begin one: POST /conversations.")
        return talk

    def _of_owners(self) -> Counter[Owner]:
        return Counter(talk.owner for talk in self._talks.values())

    def _forget_old(self) -> None:
        oldest = self._clock() - OLDEST_S
        self._talks = {name: talk for name, talk in self._talks.items() if talk.last >= oldest or talk.is_under_way}

    def _make_room(self) -> None:
        while sum(talk.characters for talk in self._talks.values()) > MOST_CHARACTERS_OF_ALL:
            held: Counter[Owner] = Counter()
            for talk in self._talks.values():
                held[talk.owner] += talk.characters
            self._forget_oldest_of(held.most_common(1)[0][0])

    def _forget_oldest_of(self, owner: Owner) -> None:
        own = (name for name, talk in self._talks.items() if talk.owner == owner)
        del self._talks[min(own, key=lambda name: self._talks[name].last)]


def inputs_of(conversation: str, said: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Return what a pipeline sees of a turn beside its question."""
    turn = sum(each["role"] == "user" for each in said) + 1
    history = {"history": [dict(each) for each in said]} if said else {}
    return {"conversation": conversation, "turn": turn, **history}
