"""The progress of a run: the status line, lines in a log, rows a minute, and the cost of workers."""

from __future__ import annotations

import os
import re
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from threading import Event, RLock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, TextIO

import pytest

from rag_harness.core.escaping import terminal_line
from rag_harness.core.log import log
from rag_harness.core.processes import usable_processors
from rag_harness.core.progress import LinesOfWork, clock, listening
from rag_harness.frontends.pytest_plugin.workers import CPU_SECONDS, is_worker
from rag_harness.tables.wording import money

if TYPE_CHECKING:
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    from rag_harness.core.types import TrialId
    from rag_harness.frontends.pytest_plugin.collection import Collected
    from rag_harness.records.row import ExperimentResult


# The line of progress on a terminal: results so far, their cost, and the time that the rest will take.
#
# It also names what trials wait for, such as an index that is being built. Without a terminal, separate lines say
# that.

_BARS = ((110, 24), (60, 10), (0, 0))
"""Pairs of the terminal's width and the bar's: from how many columns on the bar has which width."""


def wants_progress(config: pytest.Config) -> bool:
    """Return whether the output is a terminal that a person sees and that only pytest writes to."""
    option, reporter = config.option, config.pluginmanager.get_plugin("terminalreporter")
    # Other reporters draw their own progress.
    if type(reporter) is not pytest.TerminalReporter or is_worker(config):
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
    return not quiet and not is_worker(config)


def _is_screen(file: Any) -> bool:
    on_ci = os.environ.get("CI") or os.environ.get("BUILD_NUMBER")
    # A Windows console would first have to be told to expect escape sequences.
    dumb = os.environ.get("TERM", "") in ("", "dumb", "unknown") or sys.platform == "win32"
    return not on_ci and not dumb and bool(file.isatty())


class Progress:
    """Shows the line from the first trial to the end of the run.

    Args:
        config: of the run.
        in_flight: how many trials are under way; None if that is not known.
        is_resumed: whether the row of a trial was made by an earlier run.
    """

    def __init__(
        self,
        config: pytest.Config,
        in_flight: Callable[[], int | None],
        is_resumed: Callable[[TrialId], bool] = lambda _: False,
    ) -> None:
        from rag_harness.core.progress import ProgressText as WorkHeard

        self._config, self._in_flight, self._is_resumed = config, in_flight, is_resumed
        self._tally: TrialTally = TrialTally(0)
        self._work = WorkHeard()
        self._line: StatusLine | None = None

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

        writer = self._writer
        # Assigned before it begins: Ctrl-C may come in between.
        self._line = writer._file = StatusLine(writer._file, writer.width_of_current_line, self._text)
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
        work, now = terminal_line(self._work.text()), monotonic()
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


# A line that stays below everything that pytest writes, and is erased at the end.
#
# rich's live display handles whole lines only, so pytest's dots would appear only at the end of a line. Here the line
# is put one row below the cursor, and in the same write the cursor goes back to where pytest left it. All moves are
# relative, because the line may scroll the screen.

_ERASE = "\x1b7\x1b[B\r\x1b[J\x1b8"
"""Erases all that is below the cursor's row, and brings the cursor back."""
_REFRESH_SECONDS = 0.25
# Colours, cursor moves, and sequences that terminals do not show: window titles, progress in the task bar.
_INVISIBLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x1b\x07]*(?:\x1b\\|\x07)")


class StatusLine:
    """Replaces the file of pytest's terminal writer while the line is shown."""

    def __init__(self, file: TextIO, column: int, text: Callable[[int], str]) -> None:
        """Take over ``file``, a terminal whose cursor is at ``column``; ``text(columns)`` makes the line."""
        self.file, self._make = file, text
        # A descriptor of its own: while a test runs, the file's descriptor leads to pytest's capture.
        self._terminal = os.dup(file.fileno())
        self._written, self._text, self._columns, self._shown = " " * column, "", 0, False
        self._lock, self._ended = RLock(), Event()
        self._thread = Thread(target=self._keep_fresh, name="rag-progress", daemon=True)

    def begin(self) -> None:
        """Show the line and refresh it."""
        self.refresh()
        self._thread.start()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def write(self, text: str) -> int:
        """Write above the line. The text is flushed, so that the next refresh finds the cursor where it should be."""
        with self._lock:
            before = self._written, self._shown
            self._written = _last_line(self._written + text)
            try:
                self.file.write(text if self._stays_in_row(before[0], text) else self._around(text))
            except UnicodeEncodeError:  # nothing was written; pytest tries again with less
                self._written, self._shown = before
                raise
            self.file.flush()
        return len(text)

    def refresh(self) -> None:
        """Draw the line again if it is gone or its text has changed."""
        with self._lock:
            if self._ended.is_set():
                return
            try:
                self._redraw()
            except Exception as error:  # the run goes on without the line, and no test fails
                log.warning("The line of progress is given up", exc_info=error)
                self._give_up()

    def _redraw(self) -> None:
        columns = self._width()
        text = self._encoded(self._make(columns)).decode(self._encoding)
        if (text, columns, True) != (self._text, self._columns, self._shown):
            self._text, self._columns = text, columns
            self._send((_ERASE if self._shown else "") + self._drawn())

    def end(self) -> None:
        """Erase the line and stop. It may be called twice."""
        self._give_up()
        if self._thread.is_alive():
            self._thread.join()
        with self._lock:
            if self._terminal >= 0:
                os.close(self._terminal)
                self._terminal = -1

    def _keep_fresh(self) -> None:
        while not self._ended.wait(_REFRESH_SECONDS):
            self.refresh()

    def _give_up(self) -> None:
        with self._lock:
            self._ended.set()
            if self._shown:
                self._send(_ERASE)
            self._shown = False

    def _around(self, text: str) -> str:
        erase = _ERASE if self._shown else ""
        return erase + text + self._drawn()

    def _drawn(self) -> str:
        """Return the text that draws the line; empty if the cursor is at the edge: it could not be put back."""
        columns = self._columns or self._width()
        column = _place(self._written, columns)[1]
        self._shown = bool(self._text) and column < columns and not self._ended.is_set()
        back = f"\x1b[{column}C" if column else ""
        return f"\r\n\x1b[J{self._text}\x1b[A\r{back}" if self._shown else ""

    def _stays_in_row(self, before: str, text: str) -> bool:
        """Return whether ``text`` only moves the cursor on in its row. After dots nothing need be drawn again."""
        if not self._shown or "\n" in text or "\r" in text:
            return False
        row, column = _place(self._written, self._columns)
        return row == _place(before, self._columns)[0] and column < self._columns

    def _width(self) -> int:
        with suppress(OSError):
            return os.get_terminal_size(self._terminal).columns or 80
        return 80

    def _send(self, text: str) -> None:
        # A run must not fail because the terminal was closed.
        with suppress(OSError):
            os.write(self._terminal, self._encoded(text))

    @property
    def _encoding(self) -> str:
        return self.file.encoding or "utf-8"

    def _encoded(self, text: str) -> bytes:
        return text.encode(self._encoding, "replace")


def _last_line(text: str) -> str:
    """Return what stands left of the cursor."""
    return re.split(r"[\r\n]", _INVISIBLE.sub("", text))[-1]


def _place(text: str, columns: int) -> tuple[int, int]:
    """Return row and column of the cursor after ``text``. At the edge the column is one too far, in the same row."""
    if text.isascii():
        row, column = divmod(len(text), columns)
        return (row, column) if column or not row else (row - 1, columns)
    from rich.cells import get_character_cell_size

    row = column = 0
    for cells in map(get_character_cell_size, text):
        if column + cells > columns:
            row, column = row + 1, 0
        column += cells
    return row, column


# Progress without a terminal: lines about the current work, so that a log does not stand still.


class WorkLines:
    """Writes the lines while the block lasts.

    Args:
        writer: pytest's terminal writer.
        text: gives the text of the line; empty prints nothing.
        longest: the most seconds between two lines, where the work goes on; None for the usual.
    """

    def __init__(self, writer: Any, text: Callable[[], str], longest: float | None = None) -> None:
        self._longest = longest
        self._writer = writer
        self._lines: LinesOfWork | None = None
        self._text = text
        self._file, self._ended_at = -1, 0

    def __enter__(self) -> None:
        with suppress(OSError, ValueError):
            # A descriptor of its own: while a test runs, the file's descriptor leads to pytest's capture.
            self._file = os.dup(self._writer._file.fileno())
            self._lines = LinesOfWork(self._text, self._write)
            if self._longest is not None:
                self._lines.longest = self._longest
            self._lines.__enter__()

    def __exit__(self, *error: object) -> None:
        if self._lines is not None:
            self._lines.__exit__()
        if self._file >= 0:
            os.close(self._file)

    def _write(self, text: str) -> None:
        # Dots of pytest may be in the row. pytest does not know that our line has ended it.
        written = self._writer.width_of_current_line
        begun = "\n" if written not in (0, self._ended_at) else ""
        self._ended_at = written
        # A run must not fail because the reader of its output has gone.
        with suppress(OSError):
            os.write(self._file, f"{begun}rag: {terminal_line(text)}\n".encode("utf-8", "replace"))


# Logs each row as it comes: how many there are, how many a minute, and how long the rest takes.


class TrialLog:
    """Counts the rows of the run, and of each experiment, in the process that writes.

    Args:
        is_resumed: whether the row of a trial was made by an earlier run.
    """

    def __init__(self, is_resumed: Callable[[TrialId], bool]) -> None:

        self._is_resumed = is_resumed
        self._run = TrialTally(0)
        self._selected: Counter[str] = Counter()
        self._done: Counter[str] = Counter()

    def collection_done(self, selected: Collected) -> None:
        """Count the trials that were selected."""
        self._selected = Counter(trial.experiment for trial in selected.every)
        self._run.total = self._selected.total()

    def pytest_rag_result(self, result: ExperimentResult) -> None:
        """Log a row: ``e2: 45/150, 12 a minute, 8 min left: query q1``."""
        name, resumed, now = result.experiment, self._is_resumed(result.trial), monotonic()
        self._run.add(result, resumed, now)
        self._done[name] += 1
        several = [f"of the run {self._run.done}/{self._run.total}"] if len(self._selected) > 1 else []
        counts = ", ".join([f"{self._done[name]}/{self._selected[name]}", *several, *self._run.pace(now)])
        became = "" if result.ok else f": {result.status}"
        skipped = ": skipped, an earlier run has its row" if resumed else ""
        log.info("%s: %s: query %s%s%s", name, counts, result.query_id, became, skipped)


_LEAST = 0.5
"""Seconds. Less is not worth a line, and within the noise of a machine."""


def lost(began: list[float], tests: float, processors: int) -> float:
    """Return how many seconds workers cost beyond what they saved; below 0 they saved time.

    Workers share the processors, both while they begin and while they test. Calls of models and services are left out:
    they are in flight together in one process as well.

    Args:
        began: seconds of a processor that each worker took before its first test.
        tests: seconds of a processor that all tests took.
        processors: number of processors.
    """
    begin = sum(began) / len(began)
    side_by_side = begin * max(1.0, len(began) / processors) + tests / min(len(began), processors)
    return side_by_side - (begin + tests)


class WorkerCost:
    """Counts the processor time of workers, and says in the controller what it came to."""

    def __init__(self) -> None:
        self._begun = 0.0
        self._began: list[float] = []
        self._tests = 0.0

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self) -> None:
        """Look at the clock before the first test."""
        self._begun = time.process_time()

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Tell the controller, in a worker."""
        CPU_SECONDS.send(session.config, (self._begun, time.process_time()))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Learn what a worker took. One that has crashed says nothing."""
        if found := CPU_SECONDS.received(node):
            begun, ended = found
            self._began.append(begun)
            self._tests += ended - begun

    def lines(self) -> Iterator[str]:
        """Say that workers have cost time, where they have."""
        processors, workers = usable_processors(), len(self._began)
        if workers > 1 and lost(self._began, self._tests, processors) >= _LEAST:
            yield (
                f"-n {workers} costs time here: to begin took {sum(self._began):.1f} s of {processors} processors, all "
                f"tests {self._tests:.1f} s. Leave -n out: one process has as many calls in flight."
            )


_WINDOW_SECONDS = 20.0
_LEAST_SECONDS = 3.0
"""Rows come in bursts, one for all trials in flight. A speed from fewer seconds would not predict the rest."""
_MOST_ARRIVALS = 1000


class TrialTally:
    """Counts of a run of ``total`` trials. Times are seconds of a monotonic clock."""

    def __init__(self, total: int) -> None:
        self.total: int = total
        self.done: int = 0
        self.errors: int = 0
        self.retries: int = 0
        self.tokens: int = 0
        self.cost_usd: float = 0.0
        self._arrivals: deque[float] = deque(maxlen=_MOST_ARRIVALS)

    def add(self, row: ExperimentResult, resumed: bool, now: float) -> None:
        """Count a row. A resumed or replayed row was paid for earlier."""
        self.done += 1
        self.errors += not row.ok
        if resumed:
            return
        self._arrivals.append(now)
        self.retries += row.retries
        if not row.timings_recorded:
            self.tokens += row.usage.prompt_tokens + row.usage.completion_tokens
            self.cost_usd += row.cost_usd or 0.0

    def seconds_left(self, now: float) -> float | None:
        """Return the seconds for the remaining trials at the recent speed; None where that is not known."""
        each = self._seconds_each(now)
        return None if each is None else max(self.total - self.done, 0) * each

    def pace(self, now: float) -> list[str]:
        """Return the recent speed and the time left in words, ``12 a minute`` and ``8 min left``; empty at first."""
        each = self._seconds_each(now)
        if not each:
            return []
        left = max(self.total - self.done, 0) * each
        said = f"{left:.0f} s left" if left < 100 else f"{left / 60:.0f} min left"
        return [f"{60 / each:,.0f} a minute", said]

    def _seconds_each(self, now: float) -> float | None:
        """Return the seconds between two rows in the last seconds; None where there were too few."""
        while len(self._arrivals) > 2 and now - self._arrivals[0] > _WINDOW_SECONDS:
            self._arrivals.popleft()
        if len(self._arrivals) < 2 or now - self._arrivals[0] < _LEAST_SECONDS:
            return None
        return (now - self._arrivals[0]) / (len(self._arrivals) - 1)

    def parts(self, now: float, in_flight: int | None = None) -> list[str]:
        """Return the parts of the line, the most important first."""
        left = self.seconds_left(now)
        return [
            f"{self.done}/{self.total}",
            *([f"{clock(left)} left"] if left is not None and self.done < self.total else []),
            *([f"{self.errors} error{'s' * (self.errors > 1)}"] if self.errors else []),
            *([money(self.cost_usd)] if self.cost_usd else []),
            *([f"{in_flight} in flight"] if in_flight else []),
            *([f"{self.retries} {'retry' if self.retries == 1 else 'retries'}"] if self.retries else []),
            *([f"{_short(self.tokens)} tokens"] if self.tokens else []),
        ]


def _short(count: int) -> str:
    return str(count) if count < 10_000 else f"{count / 1000:.0f}k" if count < 1e6 else f"{count / 1e6:.2f}M"
