"""What attribution and metamorphic checks share: running trials of a finished run again with something changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rag_harness.plugin.screen import write_lines, write_section

if TYPE_CHECKING:
    import pytest

    from rag_harness.derived.attribution.bench import Bench
    from rag_harness.derived.derived_runs import DerivedRuns
    from rag_harness.plugin.session import RagSession
    from rag_harness.plugin.trials import TrialRunner
    from rag_harness.protocols import Experiment


@contextmanager
def derived_runs(session: RagSession, trials: TrialRunner) -> Iterator[DerivedRuns | None]:
    """Give the runner of derived trials; None if the workers have shared the whole budget among them."""
    from rag_harness.derived.derived_runs import DerivedRuns

    if session.settings.budget and getattr(session.config.option, "tx", None):
        yield None
        return
    runs = DerivedRuns(session.output, session.settings, trials.equipment.engine, trials.equipment.workplace)
    try:
        yield runs
    finally:
        runs.close()


def bench_of(session: RagSession, experiment: Callable[[str], Experiment | None]) -> Bench:
    """Return the bench that knows experiments by name, as ``experiment`` returns them."""
    from rag_harness.derived.attribution.bench import Bench

    return Bench(experiment, session.identities.fingerprint, session.parts.data)


def print_section(
    reporter: pytest.TerminalReporter, title: str, problem: str, lines: Callable[[], Sequence[str]] | None
) -> None:
    """Print a section: the problem if there is one, else the lines. None prints nothing."""
    if problem:
        write_section(reporter, title)
        write_lines(reporter, problem.split("\n"), red=True)
    elif lines is not None:
        write_section(reporter, title, lines())
