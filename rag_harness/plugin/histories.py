"""Which experiments are asked turns of conversations, and whose replies are then the history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rag_harness.errors import SettingsError
from rag_harness.pipelines.history_names import is_own_name, is_played_name, own_name, played_name, without_history

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
        """Return the experiments that are asked for these: ``c1``, ``c1-own``, or both, where their cases are turns.

        Where the data have scenarios, ``c1-sim`` is asked, too.

        Raises:
            SettingsError: own answers are to be the history, and of a conversation not all turns are there.
        """
        found = list(dict.fromkeys(name for experiment in experiments for name in self._names(experiment)))
        for name in found:
            if self.is_own(name):
                self._check_whole(name)
        return found

    def _check_whole(self, experiment: str) -> None:
        begun: dict[str, int] = {}
        for case in self._cases.all_of(experiment):
            if place := case.query.place:
                conversation, turn = place["conversation"], int(place["turn"])
                wanted = begun.get(conversation, 0) + 1
                if turn != wanted:
                    is_kept = self.session_of(experiment) is not None
                    way_out = "Ask it with the history that its data have: --rag-history=gold"
                    raise SettingsError(
                        f"{experiment} goes on from its own answers, and {case.query.query_id} comes without turn "
                        f"{wanted} of {conversation!r}. {'Add the turns before it.' if is_kept else way_out}"
                    )
                begun[conversation] = turn

    def _names(self, experiment: str) -> Iterator[str]:
        if is_own_name(experiment) or is_played_name(experiment):
            self._refuse_unplayed(experiment)
            self._refuse_second_name(experiment)
            yield experiment
            return
        has_scenarios = self._cases.has_scenarios(experiment)
        if not has_scenarios or self._cases.all_of(experiment):
            yield from self._recorded(experiment)
        if has_scenarios:
            yield played_name(experiment)

    def _refuse_unplayed(self, experiment: str) -> None:
        from rag_harness.pipelines import is_known

        plain = without_history(experiment)
        if not is_played_name(experiment) or self._cases.has_scenarios(experiment):
            return
        if is_known(plain, self._settings.get()):
            raise SettingsError(
                f"{experiment} is {plain} asked by a simulated user, and the questions of {plain} have no scenario. "
                f'Add one: {{"conversation": "sim_1", "scenario": {{"opening": "…", "asks": ["…"]}}}}.'
            )

    def _refuse_second_name(self, experiment: str) -> None:
        kept = without_history(experiment)
        if is_own_name(experiment) and self.session_of(kept) is not None:
            raise SettingsError(
                f"{experiment!r} is no experiment: {kept} keeps conversations itself, so its own answers are always "
                f"their history. Name it {kept}."
            )

    def _recorded(self, experiment: str) -> Iterator[str]:
        """Yield the experiments of these that are asked what stands in the file."""
        history = self._settings.get().history
        if history == "gold" or self.session_of(experiment) is not None or not self.has_turns(experiment):
            yield experiment
            return
        if history == "both":
            yield experiment
        yield own_name(experiment)

    def is_own(self, experiment: str) -> bool:
        """Return whether an experiment's own answers are the history of its turns."""
        asks_in_a_row = is_own_name(experiment) or self.session_of(experiment) is not None
        return self._cases.is_played(experiment) or (asks_in_a_row and self.has_turns(experiment))

    def session_of(self, experiment: str) -> SessionReading | None:
        """Return how the sessions of a service are read that keeps conversations itself; None for any other."""
        service = without_history(experiment)
        specs = (spec for spec in self._settings.get().endpoints if spec.name == service)
        return next((spec.session for spec in specs if spec.session), None)

    def said_of(self, experiment: str) -> str:
        """Return whose replies are the history: ``own`` or ``gold``; ``played`` where a simulated user asks.

        It is empty where no case is a turn.
        """
        if self._cases.is_played(experiment):
            return "played"
        if not self.has_turns(experiment):
            return ""
        return "own" if self.is_own(experiment) else "gold"

    def has_turns(self, experiment: str) -> bool:
        """Return whether any of an experiment's cases is a turn of a conversation."""
        if self._cases.is_played(experiment):
            return True
        data = self._cases.data_of(experiment)
        if data not in self._has_turns:
            self._has_turns[data] = any(case.query.place for case in self._cases.all_of(experiment))
        return self._has_turns[data]
