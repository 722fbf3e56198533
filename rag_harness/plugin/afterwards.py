"""Work that runs after the last test: when it runs, and how it fails without ending a run that is already paid for."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeVar

import pytest

from rag_harness.files.log import log

_Found = TypeVar("_Found")


def after_tests(work: Callable[[], None]) -> Generator[None, object, object]:
    """Wrap the test loop: do ``work`` after it, also if the plugin stopped the loop. Not after Ctrl-C."""
    try:
        result = yield
    except (pytest.UsageError, KeyboardInterrupt):
        raise
    except BaseException:
        work()
        raise
    work()
    return result


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
