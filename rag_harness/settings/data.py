"""Named data: ``[tool.rag_harness.data.<name>]`` in pyproject.toml, so that two systems over two collections live in
one run, each with its own questions and gates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from rag_harness.errors import SettingsError, unknown
from rag_harness.settings.profiles import pyproject_table


@dataclass(frozen=True)
class DataSpec:
    """Where data lies, relative to rootdir. ``gates`` are judged on this data alone.

    ``name`` is empty for the run's own, which the options ``kb_dir``, ``queries`` and ``golden`` name.
    """

    name: str = ""
    kb: str = ""
    queries: str = ""
    golden: str = ""
    gates: tuple[str, ...] = ()


def named_data(rootdir: Path) -> dict[str, DataSpec]:
    """Return the data that pyproject.toml in ``rootdir`` names.

    Raises:
        SettingsError: a table or a value has another form; names the key.
    """
    found = pyproject_table(rootdir, "data", "one named set of data")
    return {name: _spec(name, table) for name, table in found.items()}


def _spec(name: str, table: Any) -> DataSpec:
    where = f"pyproject.toml, [tool.rag_harness.data.{name}]"
    if not isinstance(table, Mapping):
        raise SettingsError(f"{where} is {table!r}: expected a table with kb, and maybe queries, golden and gates.")
    known = {each.name for each in fields(DataSpec)} - {"name"}
    for key, value in table.items():
        if key not in known:
            raise SettingsError(f"{where}: {unknown('key', key, known)}")
        _check(where, key, value)
    if not table.get("kb"):
        raise SettingsError(f"{where} has no kb: name the folder of its documents.")
    return DataSpec(**{"name": name, **table, "gates": tuple(table.get("gates", ()))})


def _check(where: str, key: str, value: Any) -> None:
    if key == "gates":
        if not isinstance(value, list) or not all(isinstance(gate, str) for gate in value):
            raise SettingsError(f'{where}: gates is {value!r}: expected a list of strings, ["t1: recall@5 >= 0.8"].')
    elif not isinstance(value, str):
        raise SettingsError(f"{where}: {key} is {value!r}: expected a string.")
