"""Which experiments are asked turns of conversations, and whose replies are then the history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rag_harness.errors import SettingsError
from rag_harness.pipelines.history_names import is_own_name, own_name, without_history

if TYPE_CHECKING:
    from rag_harness.plugin.run_cases import RunCases
    from rag_harness.settings import Settings
    from rag_harness.settings.endpoint_spec import SessionReading
    from rag_harness.work.once import Once


class Histories:
    """Gives experiments over turns the names that --rag-history asks for.

    Args:
        settings: of the run.
        cases: of the run.
    """

    def __init__(self, settings: Once[Settings], cases: RunCases) -> None:
        self._settings, self._cases = settings, cases
        self._has_turns: dict[str, bool] = {}

    def names(self, experiments: Iterable[str]) -> list[str]:
        """Return the experiments that are asked for these: ``c1``, ``c1-own``, or both, where their cases are turns."""
        return list(dict.fromkeys(name for experiment in experiments for name in self._names(experiment)))

    def _names(self, experiment: str) -> Iterator[str]:
        history = self._settings.get().history
        if self.session_of(experiment) is not None:
            yield experiment
            return
        if is_own_name(experiment) and self.session_of(kept := without_history(experiment)) is not None:
            raise SettingsError(
                f"{experiment!r} is no experiment: {kept} keeps conversations itself, so its own answers are always "
                f"their history. Name it {kept}."
            )
        if is_own_name(experiment) or history == "gold" or not self.has_turns(experiment):
            yield experiment
            return
        if history == "both":
            yield experiment
        yield own_name(experiment)

    def is_own(self, experiment: str) -> bool:
        """Return whether an experiment's own answers are the history of its turns."""
        keeps_itself = self.session_of(experiment) is not None
        return (is_own_name(experiment) or keeps_itself) and self.has_turns(experiment)

    def session_of(self, experiment: str) -> SessionReading | None:
        """Return how the sessions of a service are read that keeps conversations itself; None for any other."""
        specs = (spec for spec in self._settings.get().endpoints if spec.name == experiment)
        return next((spec.session for spec in specs if spec.session), None)

    def said_of(self, experiment: str) -> str:
        """Return whose replies are the history: ``own`` or ``gold``; empty where no case is a turn."""
        if not self.has_turns(experiment):
            return ""
        return "own" if self.is_own(experiment) else "gold"

    def has_turns(self, experiment: str) -> bool:
        """Return whether any of an experiment's cases is a turn of a conversation."""
        data = self._cases.data_of(experiment)
        if data not in self._has_turns:
            self._has_turns[data] = any(case.query.place for case in self._cases.all_of(experiment))
        return self._has_turns[data]
