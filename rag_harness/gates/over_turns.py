"""What a gate asks of whole conversations in place of single turns.

``conversation(all(expectations))`` is the share of conversations in which every turn is right,
``conversation(mean(faithfulness))`` the mean of the conversations' means, ``conversation(worst(recall@5))`` the mean of
their worst turns, and ``drift(recall@5)`` how much a value changes from one turn to the next. A turn is right where the
measure has its best value, or where it holds the condition that stands behind the measure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rag_harness.gates.promises import limit_text, read_limit

TurnsKind: TypeAlias = Literal["all", "mean", "worst", "drift"]
FORMS = "conversation(all(…)), conversation(mean(…)), conversation(worst(…)) or drift(…)"
_KINDS: dict[str, TurnsKind] = {"all": "all", "mean": "mean", "worst": "worst"}
_CALL = re.compile(r"(conversation|drift)\s*\(\s*(.*?)\s*\)")
_OF = re.compile(r"(\w+)\s*\(\s*(.*?)\s*\)")


@dataclass(frozen=True, slots=True)
class OverTurns:
    """What is asked of the turns of each conversation.

    ``limit`` is the condition of a right turn, as an operator and a number. None is the measure's best value.
    """

    kind: TurnsKind
    limit: tuple[str, float] | None = None

    def of(self, measure: str) -> str:
        """Return the text of what is asked about a measure: ``conversation(all(token_f1>=0.5))``."""
        if self.kind == "drift":
            return f"drift({measure})"
        return f"conversation({self.kind}({measure}{limit_text(self.limit)}))"

    @property
    def is_share(self) -> bool:
        """Whether a conversation's value is 0 or 1, whatever the unit of the measure is."""
        return self.kind == "all"


def begins_over_turns(what: str) -> bool:
    """Return whether a text asks something of whole conversations, or is meant to."""
    return bool(re.match(r"(?:conversation|drift)\s*\(", what))


def read_over_turns(what: str) -> tuple[OverTurns, str] | None:
    """Return what the left side of a gate asks of conversations, and the name of its measure; None where it does not.

    Raises:
        ValueError: it is half of that; the message is the problem in words.
    """
    if not begins_over_turns(what):
        return None
    called = _CALL.fullmatch(what)
    inner = called[2] if called else ""
    if called and called[1] == "drift":
        return OverTurns("drift"), _plain(inner, f"drift({inner})")
    found = _OF.fullmatch(inner)
    if inner.startswith(("pass^", "worst_of_", "flip_rate")):
        _plain(inner, what)
    if not found or found[1] not in _KINDS:
        raise ValueError(f"{what!r} is nothing that is asked of conversations; write {FORMS}")
    kind = _KINDS[found[1]]
    if kind != "all":
        return OverTurns(kind), _plain(found[2], what)
    measure, limit = read_limit(found[2])
    return OverTurns(kind, limit), _plain(measure, what)


def _plain(measure: str, what: str) -> str:
    """Return a measure's name.

    Raises:
        ValueError: it is something else; says why that does not combine.
    """
    if "~" in measure:
        raise ValueError(f"people's labels are of single answers, so {what} has no calibrated mean")
    if re.match(r"(?:pass\^|worst_of_|flip_rate)", measure):
        raise ValueError(f"repeats stand around a conversation: pass^3(conversation(all(expectations))), not {what}")
    if re.match(r"p\d+\s*\(", measure):
        raise ValueError(f"{what}: a conversation has no quantile; write conversation(worst(…)), or p95 of turns")
    if re.search(r"[<>=!]", measure):
        raise ValueError(f"{what} takes the values themselves; only conversation(all(…)) takes a condition")
    return measure
