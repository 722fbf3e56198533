"""The mark of a run in its output folder: from before its first question until it leaves results, or why it left none.

A report of the folder would otherwise speak of the run before as if it were the last one.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from rag_harness.frontends.pytest_plugin.options import command_said, output_asked
from rag_harness.frontends.pytest_plugin.terminal import has_failed_to_collect
from rag_harness.frontends.pytest_plugin.workers import is_worker

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from rag_harness.frontends.pytest_plugin.collection import Collected
    from rag_harness.frontends.pytest_plugin.session import RagSession

_PRESSED = "it was interrupted."


class RunMarker:
    """The mark of this run, in the process that writes."""

    def __init__(self, session: RagSession) -> None:
        self._session = session
        self._is_begun = False

    def collection_done(self, selected: Collected) -> None:
        """Mark the run, if it has a question to ask. The folder is there, and it is locked."""
        if not self._session.config.option.collectonly and selected.by_node:
            self._is_begun = True
            _mark(self._session.config, self._session.output, "")

    def ended(self, why: str) -> None:
        """Note why a marked run ends. Nothing is noted once its results are there."""
        from rag_harness.records.manifest import read_begun

        if self._is_begun and read_begun(self._session.output) is not None:
            _mark(self._session.config, self._session.output, why)

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Note why pytest has stopped."""
        self.ended(str(excinfo.value) or _PRESSED)

    def pytest_sessionfinish(self) -> None:
        """Note that tests could not be collected: under xdist, pytest is not stopped by that."""
        if not self._is_begun and has_failed_to_collect(self._session.config) and self._session.is_whole:
            refused(self._session.config, "tests could not be collected.")

    def pytest_internalerror(self, excrepr: object) -> None:
        """Note the error."""
        self.ended(str(excrepr).rpartition("\n")[2])


def refused(config: pytest.Config, why: object) -> None:
    """Mark a run that ended before it could begin, in a folder where an earlier one left results."""
    from rag_harness.records.manifest import MANIFEST

    only_asks = config.option.collectonly or config.option.help or config.option.version
    output = output_asked(config)
    if not only_asks and not is_worker(config) and (output / MANIFEST).is_file():
        _mark(config, output, str(why))


def _mark(config: pytest.Config, output: Path, why: str) -> None:
    from rag_harness.core.files import now
    from rag_harness.records.manifest import BegunRun, write_begun

    with suppress(OSError):  # a disk that is full keeps no results either, and says so by itself
        write_begun(output, BegunRun(date=now(), command=command_said(config), why=why))
