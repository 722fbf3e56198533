"""Criteria that ask whether an answer states a fact: they can be held against a text without a judge of words.

``says that opened goods are excluded`` is the statement ``opened goods are excluded``. What else a criterion may ask of
an answer, its tone or its form, is no fact.
"""

from __future__ import annotations

import re

_SUBJECT = r"(?:(?:the |this )?(?:answer|response|reply|it) )?(?:(?:also|clearly|correctly|explicitly) )?"
_NOT = r"(?P<not>(?:does not |doesn't |must not |should not |never )|)(?:must |should |has to )?"
_TO = "(?: the (?:user|customer|reader))?"
_VERB = rf"(?:say|state|mention|note|explain|tell|confirm|add|point out|make clear|claim)s?{_TO}"
_BEGINNING = re.compile(rf"{_SUBJECT}{_NOT}{_VERB} that ", re.IGNORECASE)


def fact_of(criterion: str) -> tuple[str, bool] | None:
    """Return the fact that a criterion asks for, and whether the answer must not state it; None for any other one."""
    found = _BEGINNING.match(criterion.strip())
    fact = criterion.strip()[found.end() :].rstrip(" .!") if found else ""
    return (fact, bool(found["not"])) if found and fact else None
