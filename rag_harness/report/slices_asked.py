"""Reads ``--rag-slices``: keys of the queries, and the measures that experiments are compared on."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from rag_harness.errors import SettingsError, unknown
from rag_harness.measures import measure_named

_EXAMPLE = "Example: 'query_type, topic: recall@5'."


@dataclass(frozen=True, slots=True)
class SliceAsked:
    """Cases with the same value of ``key`` are a slice. An empty ``measure`` lets the run choose."""

    key: str
    measure: str = ""


def read_slices(texts: Iterable[str], k: int) -> list[SliceAsked]:
    """Read the option, whose texts are ``KEY[, KEY …][: MEASURE[, MEASURE …]]``; ``@k`` becomes the option's k.

    Raises:
        SettingsError: a text has no key, an empty name, or an unknown measure.
    """
    return list(dict.fromkeys(asked for text in texts for asked in _read(text, k)))


def measures_of(texts: Iterable[str], k: int) -> list[str]:
    """Return the measures in the texts. A run must compute them.

    Raises:
        SettingsError: a text cannot be read.
    """
    return list(dict.fromkeys(asked.measure for asked in read_slices(texts, k) if asked.measure))


def _read(text: str, k: int) -> list[SliceAsked]:
    keys, colon, measures = text.partition(":")
    names = _names(text, measures) if colon else [""]
    return [SliceAsked(key, _measure(text, name, k)) for key in _names(text, keys) for name in names]


def _names(text: str, listed: str) -> list[str]:
    names = [name.strip() for name in listed.split(",")]
    if not all(names):
        raise SettingsError(f"--rag-slices={text}: a name is empty in {listed.strip()!r}. {_EXAMPLE}")
    return names


def _measure(text: str, name: str, k: int) -> str:
    try:
        return measure_named(name.removesuffix("@k") + f"@{k}" if name.endswith("@k") else name).name if name else ""
    except SettingsError as error:
        raise SettingsError(f"--rag-slices={text}: {error}") from error


def check_slice_keys(asked: Iterable[SliceAsked], keys: Collection[str]) -> None:
    """Make sure that cases have each key.

    Raises:
        SettingsError: no case has a key; says which keys there are.
    """
    for each in asked:
        if each.key not in keys:
            raise SettingsError(f"--rag-slices: {unknown('slice key', each.key, keys)}")
