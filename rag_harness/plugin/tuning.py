"""``--rag-tune``: lets the configurations of a space race after the tests, with engine and budget of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_harness.files.log import log
from rag_harness.plugin.afterwards import tried
from rag_harness.plugin.derived import derived_runs, print_section
from rag_harness.plugin.screen import usage_error

if TYPE_CHECKING:
    import pytest

    from rag_harness.derived.tuning.tuner import Tuned
    from rag_harness.plugin.collected import Collected
    from rag_harness.plugin.session import RagSession
    from rag_harness.plugin.trials import TrialRunner

SPENT = "the workers have shared the budget among them, so no configuration was asked; run without -n"
_TUNED = "tuned.toml"


class Tuning:
    """Runs the race that was asked for, and prints what came of it.

    Args:
        session: state of the run.
        trials: runs trials.
    """

    def __init__(self, session: RagSession, trials: TrialRunner) -> None:
        self._session, self._trials = session, trials
        self._tuned: Tuned | None = None
        self._problem = ""

    def collection_done(self, _: Collected) -> None:
        """Read the space before anything is asked.

        Raises:
            pytest.UsageError: it cannot be used.
        """
        if not self._session.settings.tune:
            return
        from rag_harness.derived.tuning.space_file import read_space
        from rag_harness.errors import SettingsError

        try:
            read_space(self._session.settings.path(self._session.settings.tune))
        except SettingsError as error:
            raise usage_error(f"--rag-tune: {error}") from None

    @property
    def has_raced(self) -> bool:
        """Whether a race came to its end."""
        return self._tuned is not None

    def race(self) -> None:
        """Race after all tests."""
        if not self._session.settings.tune:
            return
        self._tuned, why = tried(self._raced)
        self._problem = f"cannot be raced: {why}" if why else ""

    def _raced(self) -> Tuned | None:
        from rag_harness.derived.tuning.space_file import read_space
        from rag_harness.derived.tuning.tuned_file import write_tuned
        from rag_harness.derived.tuning.tuner import Tuner
        from rag_harness.engine.fingerprint import asked_now

        session = self._session
        space = read_space(session.settings.path(session.settings.tune))
        with derived_runs(session, self._trials) as runs:
            if runs is None:
                self._problem = SPENT
                return None
            fingerprint = asked_now(session.identities.of_parts)
            tuner = Tuner(space, runs, session.parts, fingerprint, session.output, lambda line: log.info("%s", line))
            tuned = tuner.run()
        write_tuned(session.output / _TUNED, tuned.outcome, tuned.winner)
        return tuned

    def print(self, terminal: pytest.TerminalReporter) -> None:
        """Print what came of the race, if one was asked for."""
        tuned = self._tuned
        shown = None if tuned is None else lambda: self._lines(tuned)
        print_section(terminal, "rag tune", self._problem, shown)

    def _lines(self, tuned: Tuned) -> list[str]:
        from rag_harness.derived.tuning.outcome_text import outcome_lines

        file = self._session.output / _TUNED
        return [*outcome_lines(tuned.outcome), f"{file}: pytest --rag-config={file} --rag-run {file.stem}"]
