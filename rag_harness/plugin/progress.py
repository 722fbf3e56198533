"""The line of progress on a terminal: results so far, their cost, and the time that the rest will take.

It also names what trials wait for, such as an index that is being built. Without a terminal, separate lines say that.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest

from rag_harness.shown.terminal import line as inert
from rag_harness.work.reporting import listening

if TYPE_CHECKING:
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    from rag_harness.plugin.collected import Collected
    from rag_harness.plugin.line_below import LineBelow
    from rag_harness.plugin.session import RagSession
    from rag_harness.report.tally import TrialTally
    from rag_harness.results.row import ExperimentResult
    from rag_harness.types import TrialId

_BARS = ((110, 24), (60, 10), (0, 0))
"""Pairs of the terminal's width and the bar's: from how many columns on the bar has which width."""


def wants_progress(config: pytest.Config) -> bool:
    """Return whether the output is a terminal that a person sees and that only pytest writes to."""
    option, reporter = config.option, config.pluginmanager.get_plugin("terminalreporter")
    # Other reporters draw their own progress.
    if type(reporter) is not pytest.TerminalReporter or hasattr(config, "workerinput"):
        return False
    if any(getattr(option, each, False) for each in ("usepdb", "trace", "collectonly")):
        return False
    # Without capture, or without its plugin, tests would write into the line.
    return getattr(option, "capture", "no") == "fd" and option.verbose >= 0 and _is_screen(reporter._tw._file)


def speaks(config: pytest.Config) -> bool:
    """Return whether pytest prints here, and no debugger or worker uses the terminal."""
    option, reporter = config.option, config.pluginmanager.get_plugin("terminalreporter")
    # -p no:terminal takes away the reporter, and options such as --verbose.
    if type(reporter) is not pytest.TerminalReporter:
        return False
    quiet = option.verbose < 0 or any(getattr(option, name, False) for name in ("usepdb", "trace"))
    return not quiet and not hasattr(config, "workerinput")


def _is_screen(file: Any) -> bool:
    on_ci = os.environ.get("CI") or os.environ.get("BUILD_NUMBER")
    # A Windows console would first have to be told to expect escape sequences.
    dumb = os.environ.get("TERM", "") in ("", "dumb", "unknown") or sys.platform == "win32"
    return not on_ci and not dumb and bool(file.isatty())


class Progress:
    """Shows the line from the first trial to the end of the run.

    Args:
        session: state of the run.
        in_flight: how many trials are under way; None if that is not known.
        is_resumed: whether the row of a trial was made by an earlier run.
    """

    def __init__(
        self,
        session: RagSession,
        in_flight: Callable[[], int | None],
        is_resumed: Callable[[TrialId], bool] = lambda _: False,
    ) -> None:
        from rag_harness.report.tally import TrialTally
        from rag_harness.work.reporting import WorkHeard

        self._config, self._in_flight, self._is_resumed = session.config, in_flight, is_resumed
        self._tally: TrialTally = TrialTally(0)
        self._work = WorkHeard()
        self._line: LineBelow | None = None

    def collection_done(self, selected: Collected) -> None:
        """Count the trials that were selected."""
        self._tally.total = len(selected.every)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the line if this process already knows that there are trials; listen for the work they wait for."""
        if self._tally.total:
            self.start(self._tally.total)
        with listening(self._work.hear), self._said_in_lines():
            yield

    def _said_in_lines(self) -> AbstractContextManager[None]:
        """Return what prints the work as lines of text, for when the line of progress is not shown."""
        if self._line is not None or not self._tally.total or not speaks(self._config):
            return nullcontext()
        from rag_harness.plugin.work_lines import WorkLines

        return WorkLines(self._writer, self._work.text)

    def pytest_rag_result(self, result: ExperimentResult) -> None:
        """Count a row."""
        self.row(result, self._is_resumed(result.trial))

    def pytest_enter_pdb(self) -> None:
        """Leave the terminal to the debugger."""
        self.stop()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Stop, however the run ended."""
        self.stop()

    def pytest_unconfigure(self) -> None:
        """Stop, also if the session could not finish."""
        self.stop()

    def start(self, total: int) -> None:
        """Show the line for ``total`` trials, if it is wanted."""
        self._tally.total = total
        if self._line is not None or not wants_progress(self._config):
            return
        from rag_harness.plugin.line_below import LineBelow

        writer = self._writer
        # Assigned before it begins: Ctrl-C may come in between.
        self._line = writer._file = LineBelow(writer._file, writer.width_of_current_line, self._text)
        self._line.begin()

    def row(self, row: ExperimentResult, resumed: bool) -> None:
        """Count a row as it is recorded."""
        self._tally.add(row, resumed, monotonic())
        if self._tally.done == 1:
            self.start(self._tally.total)

    def stop(self) -> None:
        """Take the line away, and give the terminal's file back."""
        if self._line is not None:
            self._line.end()
            if self._writer._file is self._line:
                self._writer._file = self._line.file
            self._line = None

    @property
    def _writer(self) -> Any:
        return self._config.get_terminal_writer()

    def _text(self, columns: int) -> str:
        """Return the line, at most ``columns`` - 1 wide, with the escape sequences of its colours."""
        tally, bar = self._tally, _bar_width(columns)
        room = columns - 1 - len("rag ") - (bar + 1 if bar else 0)
        work, now = inert(self._work.text()), monotonic()
        parts = tally.parts(now, self._in_flight())
        said = _fitting([*parts[:1], *([work] if work else []), *parts[1:]], room)
        done = (tally.done, max(tally.total, tally.done))
        return bar_line(columns, done, said, is_red=bool(tally.errors), has_colours=self._writer.hasmarkup)


def bar_line(columns: int, done: tuple[int, int], said: str, *, is_red: bool = False, has_colours: bool = True) -> str:
    """Return a line with a bar, at most ``columns`` - 1 wide, with the escape sequences of its colours.

    ``done`` is how much of the work is done, and how much there is.
    """
    from rich.console import Console
    from rich.progress_bar import ProgressBar

    bar = _bar_width(columns)
    console = Console(width=columns - 1, force_terminal=True, no_color=not has_colours, highlight=False, emoji=False)
    line = _with_bar(ProgressBar(done[1], done[0], width=bar), said) if bar else f"rag {said}"
    with console.capture() as drawn:
        console.print(line, style="red" if is_red else "none", end="", no_wrap=True, overflow="ellipsis", markup=False)
    return drawn.get().rstrip("\n")


def _bar_width(columns: int) -> int:
    return next(bar for least, bar in _BARS if columns >= least)


def _with_bar(bar: ProgressBar, said: str) -> Table:
    from rich.table import Table

    line = Table.grid(padding=(0, 1))
    line.add_row("rag", bar, said)
    return line


def _fitting(parts: list[str], columns: int) -> str:
    """Join as many parts as fit; the first is always there."""
    while len(parts) > 1 and len(", ".join(parts)) > columns:
        parts = parts[:-1]
    return ", ".join(parts)
