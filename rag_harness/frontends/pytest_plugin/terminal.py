"""Text through pytest: sections, lines and reports made inert, and how a run is stopped with a reason."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rag_harness.core.escaping import terminal_block, terminal_line

# Prints our text through pytest: terminal, JUnit XML, CI log. Control sequences in foreign text are made inert.
#
# ``tests/unit/core/escaping/test_escaping.py`` fails if a module of the plugin hands a text to pytest in another
# way.

_STOPPED = re.compile(r"stopping after (\d{1,9}) failures")


def write_section(terminal: pytest.TerminalReporter, title: str, lines: Iterable[str] = ()) -> None:
    """Print a section of the summary."""
    terminal.section(terminal_line(title), sep="=")
    write_lines(terminal, lines)


def write_lines(terminal: pytest.TerminalReporter, lines: Iterable[str], **markup: bool) -> None:
    """Print lines; ``markup`` is pytest's: ``red=True``."""
    for each in lines:
        terminal.line(terminal_line(each), **markup)


def count_rightly(terminal: pytest.TerminalReporter) -> None:
    """Let pytest's last line say "1 gate passed", as the lines above it do.

    Reports in JSON keep "gates passed" for any number.
    """
    found = list(terminal.stats.items())
    terminal.stats.clear()
    terminal.stats.update((_counted(name, len(reports)), reports) for name, reports in found)
    if refresh := getattr(terminal, "_set_main_color", None):
        refresh()  # pytest remembers the names


def _counted(category: str, n: int) -> str:
    if not category.startswith("gates "):
        return category
    state = category.removeprefix("gates ")
    return f"{'gate' if n == 1 else 'gates'} {state}"


def has_failed_to_collect(config: pytest.Config) -> bool:
    """Whether a test could not be collected. The terminal counts tests whose setup has failed as errors, too."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    errors = terminal.stats.get("error", ()) if terminal is not None else ()
    return any(isinstance(each, pytest.CollectReport) for each in errors)


def usage_error(why: object) -> pytest.UsageError:
    """Return the error that ends a run that cannot be as it was asked for."""
    return pytest.UsageError(terminal_block(str(why)))


def failed(why: object) -> BaseException:
    """Return the exception that fails a test without a traceback."""
    return pytest.fail.Exception(terminal_block(str(why)), pytrace=False)


def stop_tests(config: pytest.Config, why: object) -> None:
    """Let no further test run, in this process or in workers."""
    for name in ("session", "dsession"):
        runs = config.pluginmanager.get_plugin(name)
        if runs is not None:
            runs.shouldstop = f"rag_harness: {terminal_block(str(why))}"


def stopped_said(config: pytest.Config) -> str:
    """Say why pytest begins no further test, by -x, --maxfail or a plugin; empty where it was not stopped."""
    runs = [config.pluginmanager.get_plugin(name) for name in ("session", "dsession")]
    why = next(
        (str(said) for run in runs for name in ("shouldfail", "shouldstop") if (said := getattr(run, name, ""))), ""
    )
    found = _STOPPED.match(why)
    if found is None:
        return terminal_block(f"pytest stopped: {why}") if why else ""
    return f"pytest stopped after {'the first failure' if found[1] == '1' else f'{found[1]} failures'}"


@contextmanager
def never_stopping(config: pytest.Config) -> Iterator[None]:
    """Keep -x and --maxfail from counting reports in the block: it is not a test, and nothing is left to stop."""
    most, config.option.maxfail = config.option.maxfail, 0
    try:
        yield
    finally:
        config.option.maxfail = most


def make_inert(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Make the text of a failed or skipped test inert: its message and its assertion contain foreign text.

    The output that a test itself has printed stays as it is.
    """
    report.longrepr = _inert(report.longrepr)
    if (why := getattr(report, "wasxfail", None)) is not None:
        vars(report).update(wasxfail=terminal_block(why))


def _inert(found: Any) -> Any:
    """Return pytest's description of an exception with each text in it made inert. pytest's own objects are changed."""
    if isinstance(found, str):
        return terminal_block(found)
    if isinstance(found, (list, tuple)):
        return type(found)(map(_inert, found))
    if dataclasses.is_dataclass(found) and not isinstance(found, type):
        for name, value in vars(found).items():
            setattr(found, name, _inert(value))
    return found
