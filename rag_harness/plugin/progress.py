"""The line of progress: what has come back, what it cost, how long the rest will take. On a terminal only."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest

from rag_harness.plugin.batches import param_id
from rag_harness.plugin.trials import trial_of

if TYPE_CHECKING:
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    from rag_harness.plugin.line_below import LineBelow
    from rag_harness.plugin.session import RagSession
    from rag_harness.report.tally import Tally
    from rag_harness.results.row import ExperimentResult

_BARS = ((110, 24), (60, 10), (0, 0))
"""How wide the bar is from how many columns on."""


def wanted(config: pytest.Config) -> bool:
    """Return whether somebody looks at a terminal that pytest alone writes to."""
    option, reporter = config.option, config.pluginmanager.get_plugin("terminalreporter")
    # Other people's reporters draw progress of their own.
    if type(reporter) is not pytest.TerminalReporter or hasattr(config, "workerinput"):
        return False
    if any(getattr(option, each, False) for each in ("usepdb", "trace", "collectonly")):
        return False
    # Without capture, or without its plugin, tests write into the line.
    return getattr(option, "capture", "no") == "fd" and option.verbose >= 0 and _is_screen(reporter._tw._file)


def _is_screen(file: Any) -> bool:
    on_ci = os.environ.get("CI") or os.environ.get("BUILD_NUMBER")
    # Windows' consoles need to be told first that what comes are escape sequences.
    dumb = os.environ.get("TERM", "") in ("", "dumb", "unknown") or sys.platform == "win32"
    return not on_ci and not dumb and bool(file.isatty())


class Progress:
    """Shows the line from the first trial to the end of the run; ``in_flight`` replaces what the engine says."""

    def __init__(self, session: RagSession, in_flight: Callable[[], int | None] | None = None) -> None:
        from rag_harness.report.tally import Tally

        self.in_flight = in_flight or self._of_the_engine
        self._session, self._config = session, session.config
        self._tally: Tally = Tally(0)
        self._line: LineBelow | None = None

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Count the trials that were selected."""
        trials = (trial_of(item) for item in session.items)
        self._tally.total = len({each.trial_id for each in trials if each is not None})

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Do the same under xdist, where only workers collect; all of them collect the same."""
        if not wanted(self._config):
            return
        selected = self._session.selected({param_id(each) for each in ids})
        self._tally.total = sum(not each.startswith("golden-") for each in selected)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> None:
        """Start where this process knows already that there are trials."""
        if self._tally.total:
            self.start(self._tally.total)

    def pytest_rag_result(self, result: ExperimentResult, config: pytest.Config) -> None:
        """Count a row."""
        from rag_harness.plugin.stash import RECORDER

        self.row(result, config.stash[RECORDER].is_resumed(result.trial))

    def pytest_enter_pdb(self) -> None:
        """Leave the terminal to the debugger."""
        self.stop()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Stop, however the run ended."""
        self.stop()

    def pytest_unconfigure(self) -> None:
        """Stop also where the session could not finish."""
        self.stop()

    def start(self, total: int) -> None:
        """Show the line for ``total`` trials, where it is wanted."""
        self._tally.total = total
        if self._line is not None or not wanted(self._config):
            return
        from rag_harness.plugin.line_below import LineBelow

        writer = self._writer
        # Known before it begins: Ctrl-C may come in between.
        self._line = writer._file = LineBelow(writer._file, writer.width_of_current_line, self._text)
        self._line.begin()

    def row(self, row: ExperimentResult, resumed: bool) -> None:
        """Count a row as it is recorded."""
        self._tally.add(row, resumed, monotonic())
        if self._tally.done == 1:
            self.start(self._tally.total)

    def stop(self) -> None:
        """Take the line away, and the terminal's file back."""
        if self._line is not None:
            self._line.end()
            if self._writer._file is self._line:
                self._writer._file = self._line.file
            self._line = None

    def _of_the_engine(self) -> int | None:
        """Return how many trials are under way; None where no engine is, as in the controller of an xdist run."""
        trials = vars(self._session).get("trials")
        return getattr(vars(trials).get("engine"), "in_flight", None) if trials else None

    @property
    def _writer(self) -> Any:
        return self._config.get_terminal_writer()

    def _text(self, columns: int) -> str:
        """Return the line, at most ``columns`` - 1 wide, with the escape sequences of its colours."""
        from rich.console import Console
        from rich.progress_bar import ProgressBar

        tally, bar = self._tally, next(bar for least, bar in _BARS if columns >= least)
        room = columns - 1 - len("rag ") - (bar + 1 if bar else 0)
        said = _fitting(tally.parts(monotonic(), self.in_flight()), room)
        style = "red" if tally.errors else "none"
        console = Console(
            width=columns - 1, force_terminal=True, no_color=not self._writer.hasmarkup, highlight=False, emoji=False
        )
        line = (
            _with_bar(ProgressBar(max(tally.total, tally.done), tally.done, width=bar), said) if bar else f"rag {said}"
        )
        with console.capture() as drawn:
            console.print(line, style=style, end="", no_wrap=True, overflow="ellipsis", markup=False)
        return drawn.get().rstrip("\n")


def _with_bar(bar: ProgressBar, said: str) -> Table:
    from rich.table import Table

    line = Table.grid(padding=(0, 1))
    line.add_row("rag", bar, said)
    return line


def _fitting(parts: list[str], columns: int) -> str:
    """Join as many parts as fit; the first is there in any case."""
    while len(parts) > 1 and len(", ".join(parts)) > columns:
        parts = parts[:-1]
    return ", ".join(parts)
