"""Stand-in until the room is there."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import Request

from rag_harness.service.access.principal import NOBODY_ELSE, Principal, Scope


def asks(scope: Scope) -> Callable[[Request], Principal]:
    """Return who asks."""

    def who(request: Request) -> Principal:
        return NOBODY_ELSE

    return who
