"""Runs work after the last test so that its failure does not end a run that is already paid for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from rag_harness.files.log import log

_Found = TypeVar("_Found")


def tried(work: Callable[[], _Found]) -> tuple[_Found | None, str]:
    """Return the result of ``work``, or None and why it failed.

    The run is already paid for. It must not end as an internal error before its gates are judged and its files written.
    """
    from rag_harness.errors import RagHarnessError

    try:
        return work(), ""
    except (OSError, RagHarnessError) as error:
        return None, str(error)
    except Exception as error:
        log.error("What comes after the tests failed", exc_info=error)
        return None, f"{type(error).__name__}: {error}"
