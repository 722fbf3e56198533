"""A configuration: an experiment that is described by values of parameters, in a TOML file for ``--rag-config``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

ParameterValue: TypeAlias = "str | int | float | bool"


@dataclass(frozen=True)
class ConfigurationSpec:
    """One configuration.

    Attributes:
        name: the name of the experiment.
        values: parameters and their values, by name; those that are not named are as the options say.
        experiment: the experiment or service that has the parameters. Empty: the pipeline that comes with the package.
        where: the file that it was read from.
    """

    name: str
    values: tuple[tuple[str, ParameterValue], ...] = ()
    experiment: str = ""
    where: str = ""

    @property
    def by_name(self) -> Mapping[str, Any]:
        """The values by parameter."""
        return dict(self.values)
