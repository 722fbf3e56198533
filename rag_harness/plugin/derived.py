"""What runs trials of a finished run again with something changed: attribution, and metamorphic checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rag_harness.plugin.screen import write_lines, write_section

if TYPE_CHECKING:
    import pytest

    from rag_harness.derived.attribution.bench import Bench
    from rag_harness.derived.attribution.derived import DerivedRuns
    from rag_harness.plugin.session import RagSession
    from rag_harness.plugin.trials import Trials
    from rag_harness.protocols import Experiment


@contextmanager
def derived_runs(session: RagSession, trials: Trials) -> Iterator[DerivedRuns | None]:
    """Give what runs them; None where the workers have shared the budget among them, so that none of it is left."""
    from rag_harness.derived.attribution.derived import DerivedRuns

    if session.settings.budget and getattr(session.config.option, "tx", None):
        yield None
        return
    runs = DerivedRuns(session.output, session.settings, trials.equipment.engine, trials.equipment.workplace)
    try:
        yield runs
    finally:
        runs.close()


def bench_of(session: RagSession, experiment: Callable[[str], Experiment | None]) -> Bench:
    """Return what knows the experiments that ``experiment`` returns by their names."""
    from rag_harness.derived.attribution.bench import Bench

    return Bench(experiment, session.fingerprint, session.parts.data)


def print_section(
    reporter: pytest.TerminalReporter, title: str, problem: str, lines: Callable[[], Sequence[str]] | None
) -> None:
    """Print a section: the problem where there is one, else the lines; None is nothing to print."""
    if problem:
        write_section(reporter, title)
        write_lines(reporter, problem.split("\n"), red=True)
    elif lines is not None:
        write_section(reporter, title, lines())
