"""The configurations of a space, each once, with what they have in common with others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from rag_harness.derived.tuning.space import Space
from rag_harness.derived.tuning.space_file import TODAY
from rag_harness.errors import SettingsError
from rag_harness.files.sources import json_digest
from rag_harness.pipelines.configured.experiment import DEFAULT_SHAPE, unfit
from rag_harness.pipelines.configured.in_words import in_words
from rag_harness.settings import Settings
from rag_harness.settings.configuration_spec import ConfigurationSpec, ParameterValue
from rag_harness.settings.configurations import ANSWERED_BY

AFTER_RANKING = ("top_k", "prompt", *ANSWERED_BY)
"""Parameters that change nothing of what is found, or only how much of it counts."""


@dataclass(frozen=True)
class Contender:
    """A configuration that races.

    Attributes:
        spec: what is built. Its name is that of its derived rows.
        values: all parameters of the space and their values, also where they are as the options say.
        title: what people call it: the name of a starting point, or its values in words.
    """

    spec: ConfigurationSpec
    values: Mapping[str, ParameterValue]
    title: str

    @property
    def name(self) -> str:
        """Its name in rows, ``tune+1f3a5b7c``."""
        return self.spec.name

    @property
    def top_k(self) -> int:
        """The number of chunks that are given to the model."""
        return int(self.values["top_k"])

    @cached_property
    def ranking(self) -> str:
        """Names what decides its ranking. Candidates with one name find the same chunks in the same order."""
        kept = {key: value for key, value in self.values.items() if key not in AFTER_RANKING}
        return f"tune+ranking_{json_digest([self.spec.experiment, sorted(kept.items())])[:12]}"


@dataclass(frozen=True)
class Field:
    """All candidates of a space.

    Attributes:
        candidates: that of today first.
        left_out: combinations that do not go together: why, and how many.
    """

    candidates: tuple[Contender, ...]
    left_out: Mapping[str, int]

    @property
    def today(self) -> Contender:
        """The configuration that the options are."""
        return self.candidates[0]


def field_of(space: Space, settings: Settings) -> Field:
    """Return the candidates of a space, each once.

    Raises:
        SettingsError: no combination goes together, or a starting point does not.
    """
    found: dict[str, Contender] = {}
    left_out: dict[str, int] = {}
    varied = tuple(each.name for each in space.parameters)
    today = ConfigurationSpec(TODAY, _without_vectors(space), space.experiment, space.where)
    for spec in (today, *space.start):
        if why := _unfit(spec.by_name, settings, space):
            raise SettingsError(f"{space.where}: {spec.name}: {why}.")
        candidate = _candidate(spec, settings, varied, spec.name)
        found.setdefault(candidate.name, candidate)
    for values in space.combinations():
        if why := _unfit(values, settings, space):
            short = why.partition(" ")[0]
            left_out[short] = left_out.get(short, 0) + 1
            continue
        spec = ConfigurationSpec("", tuple(sorted(values.items())), space.experiment, space.where)
        candidate = _candidate(spec, settings, varied)
        found.setdefault(candidate.name, candidate)
    if len(found) < 2:
        raise SettingsError(f"{space.where}: there is nothing to compare: only the configuration of today is left.")
    first, *others = found.values()
    # Where two are equal, the order decides: that of the file must not.
    return Field((first, *sorted(others, key=lambda each: each.name)), left_out)


def _without_vectors(space: Space) -> tuple[tuple[str, ParameterValue], ...]:
    """Return today's values where no combination uses vectors: today's configuration does not use them, either.

    A race by words alone so needs no embedder.
    """
    given = {each.name: set(each.values) for each in space.parameters}
    by_words = given.get("retriever") == {"bm25"} and given.get("rerank") == {False}
    return (("rerank", False), ("retriever", "bm25")) if by_words and not space.experiment else ()


def _unfit(values: Mapping[str, Any], settings: Settings, space: Space) -> str:
    return "" if space.experiment else unfit(values, settings)


def _candidate(spec: ConfigurationSpec, settings: Settings, varied: tuple[str, ...], title: str = "") -> Contender:
    values = _effective(spec, settings)
    name = f"tune+{json_digest([spec.experiment, sorted(values.items())])[:12]}"
    return Contender(replace(spec, name=name), values, title or in_words(values, varied))


def _effective(spec: ConfigurationSpec, settings: Settings) -> dict[str, ParameterValue]:
    """Return all values that decide what a configuration does; without those that it does not use."""
    shape = {} if spec.experiment else DEFAULT_SHAPE
    known = ("chunker", "chunk_size", "chunk_overlap", "embed_model", "index", "top_k", "candidates", "rerank_model")
    values = {**shape, **{name: getattr(settings, name) for name in (*known, *ANSWERED_BY)}, **spec.by_name}
    if not spec.experiment:
        unused = {
            "dense_weight": values["retriever"] != "hybrid",
            "candidates": not values["rerank"],
            "rerank_model": not values["rerank"],
        }
        values = {name: value for name, value in values.items() if not unused.get(name)}
    return values
