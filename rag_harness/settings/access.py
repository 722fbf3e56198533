"""Rights of a mode: what it reads, calls and keeps, and why a call is refused. Only this module decides them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from rag_harness.settings.table import Mode, Settings

Keeps = Literal["recordings", "cache", "nothing"]


@dataclass(frozen=True, slots=True)
class Access:
    """The rights of a mode.

    Attributes:
        mode: the name of the mode.
        reads_recordings: recorded answers, vectors, scores and cuts are used first.
        calls_network: models behind a network may be called.
        calls_local: models in this process may be called.
        keeps: where new results are stored: ``recordings``, which are committed; the ``cache``, which is not; nowhere.
    """

    mode: Mode
    reads_recordings: bool
    calls_network: bool
    calls_local: bool
    keeps: Keeps

    @property
    def calls_nobody(self) -> bool:
        """Whether nobody outside this process may be asked, not by code of the user's own either."""
        return self.mode == "replay"

    @property
    def records(self) -> bool:
        """Whether new results are stored among the recordings."""
        return self.keeps == "recordings"

    @property
    def covers_own_calls(self) -> bool:
        """Whether calls of a user's own code are recorded or replayed: the modes auto and live ask it as it is."""
        return self.records or self.calls_nobody

    def may_call(self, local: bool) -> bool:
        """Return whether a model in this process (``local``), or one behind a network, may be called."""
        return self.calls_local if local else self.calls_network

    def refusal(self, local: bool, profile: str = "") -> str:
        """Return why a model may not be called, and what to do; empty where it may."""
        if self.may_call(local):
            return ""
        command = f"--rag-profile={profile} --rag-mode=record" if profile else "--rag-mode=record"
        why = "" if self.mode == "replay" else f"Mode {self.mode} calls no network model. "
        return f"{why}Record it: {command}"


_ACCESS = {
    "auto": Access("auto", reads_recordings=True, calls_network=False, calls_local=True, keeps="cache"),
    "replay": Access("replay", reads_recordings=True, calls_network=False, calls_local=False, keeps="nothing"),
    "record": Access("record", reads_recordings=True, calls_network=True, calls_local=True, keeps="recordings"),
    "live": Access("live", reads_recordings=False, calls_network=True, calls_local=True, keeps="cache"),
}


def access_of(settings: Settings) -> Access:
    """Return the rights of a run. A dry run is a replay that may compute here what is not recorded."""
    of_mode = _ACCESS[settings.mode]
    return replace(of_mode, calls_local=True, keeps="cache") if settings.dry_run else of_mode
