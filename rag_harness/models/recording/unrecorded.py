"""Calls of an app that cannot be recorded: sockets that no patched HTTP library opens, gRPC, processes.

Python's audit events report sockets and processes of every library. A hook cannot be removed, so it is added once and
counts only while an app is made or answers.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any
from unittest.mock import patch

from rag_harness.models.recording.network_guard import internet_address

_recorded: ContextVar[bool] = ContextVar("recorded_call", default=False)
_GRPC = ("_UnaryUnaryMultiCallable", "_UnaryStreamMultiCallable", "_StreamUnaryMultiCallable")


@contextmanager
def recorded_call() -> Iterator[None]:
    """Count nothing in the block: what is called there is recorded."""
    token = _recorded.set(True)
    try:
        yield
    finally:
        _recorded.reset(token)


class UnrecordedCalls:
    """Counts the calls of this process, by what they are."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._is_counted: Callable[[], bool] = lambda: False
        self._is_exempt: Callable[[str, int], bool] = lambda *_: False
        self._is_installed = False

    @contextmanager
    def counted(self, is_counted: Callable[[], bool], is_exempt: Callable[[str, int], bool]) -> Iterator[None]:
        """Count in the block.

        Args:
            is_counted: returns whether an app runs here.
            is_exempt: returns whether connections to a host and port are left alone.
        """
        if not self._is_installed:
            sys.addaudithook(self._hook)
            self._is_installed = True
        self._is_counted, self._is_exempt = is_counted, is_exempt
        try:
            with self._grpc():
                yield
        finally:
            self._is_counted = lambda: False

    def taken(self) -> dict[str, int]:
        """Return what was counted since the last time."""
        counts, self._counts = self._counts, Counter()
        return dict(counts)

    def _note(self, what: str) -> None:
        if self._is_counted() and not _recorded.get():
            self._counts[what] += 1

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "socket.connect":
            address = internet_address(*args)
            if address is not None and not self._is_exempt(*address):
                self._note(f"connection to {address[0]}:{address[1]}")
        elif event in ("subprocess.Popen", "os.system"):
            self._note("process")

    @contextmanager
    def _grpc(self) -> Iterator[None]:
        channel = sys.modules.get("grpc._channel")
        with ExitStack() as stack:
            for name in _GRPC:
                kind = getattr(channel, name, None)
                if kind is not None:
                    stack.enter_context(patch.object(kind, "__call__", self._noting(kind.__call__)))
            yield

    def _noting(self, function: Any) -> Any:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            self._note("call by gRPC")
            return function(*args, **kwargs)

        return call


unrecorded_calls = UnrecordedCalls()
"""Those of this process. Audit hooks stay, so there is one object."""


def unrecorded_said(counts: dict[str, int]) -> str:
    """Return counts in words: ``4 processes, 2 connections to db:5432``."""
    return ", ".join(f"{n:,} {_plural(what) if n > 1 else what}" for what, n in sorted(counts.items()))


def _plural(what: str) -> str:
    first, _, rest = what.partition(" ")
    return f"{first}{'es' if first.endswith('s') else 's'}{f' {rest}' if rest else ''}"
