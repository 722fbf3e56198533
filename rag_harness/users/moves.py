"""What a simulated user hears and does: it says something, or ends the conversation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag_harness.types import Scenario
from rag_harness.words.same_words import words_of

GOAL = "the goal is reached"
GIVES_UP = "the user gives up"


@dataclass(frozen=True, slots=True)
class Exchange:
    """A turn that is over, as its user sees it.

    Attributes:
        said: what the user has said.
        reply: what came back.
        declined: whether the reply says that it does not know.
        failed: whether the turn failed; the reply is then what a user sees of that.
        kept: which of the scenario's ``reached`` the reply keeps, by their numbers from 0.
    """

    said: str
    reply: str
    declined: bool = False
    failed: bool = False
    kept: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Says:
    """The user says this next."""

    text: str


@dataclass(frozen=True, slots=True)
class Ends:
    """The conversation is over, and why. ``out_of_role``: what the user said did not follow from its scenario."""

    why: str
    out_of_role: bool = False


Move = Says | Ends


def is_reached(scenario: Scenario, before: Sequence[Exchange]) -> bool:
    """Return whether each of the expectations that say so was kept by some reply; False where there are none."""
    kept = frozenset[int]().union(*(each.kept for each in before))
    return bool(scenario.reached) and len(kept) == len(scenario.reached)


def ends_by_rules(scenario: Scenario, before: Sequence[Exchange], has_more: bool) -> Move | None:
    """Return what happens next whoever plays the user; None where the user has to say something.

    Args:
        scenario: what is played.
        before: the turns that are over.
        has_more: whether the user may have questions beside the goal.
    """
    if not before:
        return Says(scenario.opening)
    if is_reached(scenario, before) and not has_more:
        return Ends(GOAL)
    # Two questions may have one answer; whoever hears it three times is in a loop.
    if _replies_repeat(before, 3 if has_more else 2):
        return Ends("the answers repeat each other")
    if not before[-1].failed:
        return None
    # The user sees that something went wrong, and asks again, once.
    failed_twice = len(before) > 1 and before[-2].failed
    return Ends(f"{GIVES_UP}: two turns failed") if failed_twice else Says(before[-1].said)


def has_said(text: str, before: Sequence[Exchange]) -> bool:
    """Return whether the user has said these words in some turn, alone or among others."""
    wanted = _plain(text)
    return any(f" {wanted} " in f" {_plain(each.said)} " for each in before)


def _replies_repeat(before: Sequence[Exchange], times: int) -> bool:
    """Return whether the last replies are the same words so many times. What declines or failed does not count."""
    last = [each for each in before[-times:] if not (each.declined or each.failed)]
    return len(last) == times and len({_plain(each.reply) for each in last}) == 1


def questions_in(reply: str) -> Iterator[str]:
    """Yield the questions of a reply, each from the sentence before it on."""
    *asking, _ = reply.split("?")
    for part in asking:
        start = max(part.rfind(mark) for mark in ".!\n:")
        yield f"{part[start + 1 :].strip()}?"


def _plain(text: str) -> str:
    return " ".join(words_of(text))
