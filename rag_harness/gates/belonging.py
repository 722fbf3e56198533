"""Selects the gates that are about the data of this run. The gates of an ini file belong to the data that it names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_harness.errors import SettingsError
from rag_harness.gates.grammar import parse_gate
from rag_harness.settings import Settings
from rag_harness.settings.data import DataSpec
from rag_harness.types import GOLDEN

GatesOfOtherData = tuple[tuple[str, str], ...]
"""Texts of gates that were set for other data, each with the reason why it is not judged."""


def gates_by_data(settings: Settings, ini: Mapping[str, Any]) -> tuple[tuple[str, ...], GatesOfOtherData]:
    """Divide the gates of ``settings`` into those for this run's data, and those that the ini file set for other data.

    Where an ini file names no data, its gates are judged on the data of any run. So are the gates of the environment
    and of the command line.

    Raises:
        SettingsError: a gate cannot be read.
    """
    if list(settings.gate) != list(ini.get("gate", [])):
        return settings.gate, ()
    why = {True: _other(_golden_data(settings, ini)), False: _other(_query_data(settings, ini))}
    reasons = [(text, why[parse_gate(text, settings.k).suite == GOLDEN]) for text in settings.gate]
    return tuple(text for text, reason in reasons if not reason), tuple(pair for pair in reasons if pair[1])


def gates_set(settings: Settings) -> list[str]:
    """Return the texts of a run's gates: those for its named data, and its own."""
    return [*(text for spec in settings.data if not spec.instead for text in spec.gates), *settings.gate]


def check_data(specs: Sequence[DataSpec], k: int, data_of: Callable[[str], str]) -> None:
    """Make sure that the gates of named data are about experiments on that data.

    Raises:
        SettingsError: a gate is about an experiment on other data, or cannot be read.
    """
    for spec in specs:
        for text in spec.gates:
            suite = parse_gate(text, k).suite
            if data_of(suite) != spec.name:
                used = data_of(suite) or "the run's own data"
                raise SettingsError(
                    f"Gate '{text}' stands in [tool.rag_harness.data.{spec.name}], but {suite} is asked about {used}. "
                    f'Add it to that table: experiments = ["{suite}"].'
                )


def gates_of_others(settings: Settings) -> GatesOfOtherData:
    """Return the gates of named data that a knowledge base of the command line replaces."""
    return tuple(
        (text, f"set for {spec.name}, this run is on {shown_place(settings, settings.path(spec.instead))}")
        for spec in settings.data
        if spec.instead
        for text in spec.gates
    )


def _other(data: list[tuple[str, str]]) -> str:
    """Return how the data of the run differ from those of the ini file; empty where they do not."""
    differing = [(set_for, used) for set_for, used in data if set_for != used]
    return "; ".join(f"set for {set_for}, this run is on {used}" for set_for, used in differing[:1])


def _query_data(settings: Settings, ini: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the files that gates on experiments depend on: as the ini file names them, and as the run uses them.

    A public collection brings its own questions.
    """
    if settings.dataset or "dataset" in ini:
        claimed = ini.get("dataset") or ini.get("queries") or ini.get("kb_dir")
        return _collection(settings, claimed, settings.dataset or settings.kb_dir)
    found = [_folder(settings, ini)] if "kb_dir" in ini else []
    if "queries" in ini:
        found.append(_pair(settings, ini["queries"], settings.queries_path))
    elif "kb_dir" in ini and settings.queries:
        found.append(_pair(settings, str(Path(ini["kb_dir"]) / "queries.jsonl"), settings.queries_path))
    return found


def _golden_data(settings: Settings, ini: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the same for gates on the retrieval suite. A public collection has its own documents."""
    if settings.dataset or "dataset" in ini:
        claimed = ini.get("dataset") or ini.get("golden") or ini.get("kb_dir")
        return _collection(settings, claimed, settings.dataset or settings.golden)
    found = [_folder(settings, ini)] if "kb_dir" in ini else []
    return [*found, *([_pair(settings, ini["golden"], settings.path(settings.golden))] if "golden" in ini else [])]


def _collection(settings: Settings, claimed: str | None, used: str) -> list[tuple[str, str]]:
    same = claimed and _place(settings, claimed) == _place(settings, used)
    return [(claimed, claimed if same else used)] if claimed else []


def _place(settings: Settings, dataset: str) -> tuple[str, Path]:
    scheme, _, path = dataset.rpartition(":")
    return scheme, settings.path(path).resolve()


def _folder(settings: Settings, ini: Mapping[str, Any]) -> tuple[str, str]:
    return _pair(settings, ini["kb_dir"], settings.path(settings.kb_dir))


def _pair(settings: Settings, set_for: str, used: Path) -> tuple[str, str]:
    """Return both places as text; the same text where they are the same place."""
    return set_for, set_for if settings.path(set_for).resolve() == used.resolve() else shown_place(settings, used)


def shown_place(settings: Settings, place: Path) -> str:
    """Return a place as text, relative to rootdir where it is below that."""
    base = Path(settings.rootdir).resolve()
    inside = place.resolve().is_relative_to(base)
    return place.resolve().relative_to(base).as_posix() if inside else str(place)
