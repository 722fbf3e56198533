"""Checks what the turns of conversations say: a user's words, with nothing in them that no user types or can know."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rag_harness.authoring.kb.validation.question_files import Read
from rag_harness.authoring.kb.validation.report import CheckResult
from rag_harness.dataset.queries import QueryLine

_TAG = re.compile(
    r"</?(?:a|b|br|code|div|em|font|h[1-6]|i|img|li|ol|p|pre|script|span|strong|table|t[dhr]|u|ul)(?:\s[^<>]{0,200})?/?>"
    r"|&(?:amp|lt|gt|nbsp|quot|#\d{1,6});",
    re.I,
)
_ROLE = re.compile(
    r"^[ \t]{0,8}(?:\*\*|\|)?(?:user|assistant|system|human|bot|question|answer)(?:\*\*|\|)? ?:", re.I | re.M
)
_CITED = re.compile(r"\[(?:source )?\d{1,3}(?::[^\[\]]{0,100})?\]", re.I)
_LATER = re.compile(
    r"\bas (?:you|i)(?:['’]ll| will| shall) (?:say|see|tell|ask|explain|mention)\b"
    r"|\b(?:you|i)(?:['’]ll| will) (?:say|tell|ask|mention|explain) (?:it |that |this |you |me )?"
    r"(?:later|below|next|in a moment)\b"
    r"|\b(?:in|see|as in) (?:my|your|the) (?:next|later|following) (?:question|answer|reply|turn|message)\b",
    re.I,
)
_TURN = re.compile(r"\b(?:in|see|at|of) turn (\d{1,4})\b", re.I)
_SHOWN = 60


def turns(read: Read[QueryLine]) -> list[CheckResult]:
    """Return the check of the turns of all conversations; none where there is no conversation."""
    found = [(line, query) for line, query in read.entries if query.turn is not None]
    if not found:
        return []
    talks = len({query.conversation for _, query in found})
    check = CheckResult("turns", f"{len(found)} turns of {talks} conversations")
    for line, query in found:
        for said in _problems(query):
            check.note(read.at(line), f"{query.query_id} {said}")
    return [check]


def _problems(query: QueryLine) -> Iterator[str]:
    """Yield what is odd about a turn, as the rest of a sentence about it."""
    said, reply = query.query, query.reply
    if tag := _TAG.search(said):
        yield f"holds HTML, {tag[0]!r}, which is sent as it stands. Write what a user types."
    if role := _ROLE.search(said):
        yield f"begins a line with {role[0].strip()!r}. A turn is what the user says; what was said before is given."
    for mark in filter(None, (_CITED.search(said), _CITED.search(reply))):
        yield f"holds the mark of a citation, {mark[0]!r}, of a source that no later turn is given. Take it out."
    if later := _LATER.search(said) or _later_turn(query):
        yield f"speaks of a later turn, {later[0][:_SHOWN]!r}. Nobody has heard it yet: say it otherwise."
    if query.turn == 1 and query.standalone.strip() not in ("", said):
        yield "is the first turn, and has a standalone question of other words. It stands alone itself: leave that out."


def _later_turn(query: QueryLine) -> re.Match[str] | None:
    return next((found for found in _TURN.finditer(query.query) if int(found[1]) > (query.turn or 1)), None)
