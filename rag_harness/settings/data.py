"""Named data, from ``[tool.rag_harness.data.<name>]`` in pyproject.toml.

With it, one run evaluates several systems over several collections, each with its own questions and gates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from rag_harness.errors import SettingsError
from rag_harness.settings.expect_tables import expect_texts
from rag_harness.settings.profiles import check_table_keys, pyproject_table


@dataclass(frozen=True)
class DataSpec:
    """The paths of one named data, relative to rootdir, and its experiments and gates.

    Attributes:
        name: empty for the run's own data, which the options ``kb_dir``, ``queries`` and ``golden`` name.
        kb: folder of its documents.
        queries: its questions; default: queries.jsonl in the folder.
        golden: its golden set. Questions whose id is in it have the slice ``golden=yes``, the others ``golden=no``.
        experiments: the experiments that get its questions. A registered experiment may name its data itself.
        gates: gates that judge this data alone.
        expect: what each answer to its questions has to keep to, JSON objects.
        instead: the documents from the command line that replace its own. Its gates then do not apply.
    """

    name: str = ""
    kb: str = ""
    queries: str = ""
    golden: str = ""
    experiments: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()
    expect: tuple[str, ...] = ()
    instead: str = ""


RESERVED = ("queries", "golden")
"""Names of the run's own cases in file names. No named data may have them."""


_LISTS = {"gates": "t1: recall@5 >= 0.8", "experiments": "t1"}


def named_data(rootdir: Path) -> dict[str, DataSpec]:
    """Return the named data of pyproject.toml in ``rootdir``.

    Raises:
        SettingsError: a table or a value has the wrong form; names the key.
    """
    found = pyproject_table(rootdir, "data", "one named set of data")
    return {name: _spec(name, table) for name, table in found.items()}


def _spec(name: str, table: Any) -> DataSpec:
    where = f"pyproject.toml, [tool.rag_harness.data.{name}]"
    if not isinstance(table, Mapping):
        raise SettingsError(f"{where} is {table!r}: expected a table with kb, and maybe queries, golden and gates.")
    if name in RESERVED:
        raise SettingsError(f"{where}: the name is taken by the run's own data. Choose another.")
    check_table_keys(where, table, {each.name for each in fields(DataSpec)} - {"name", "instead"})
    for key, value in table.items():
        _check(where, key, value)
    if not table.get("kb"):
        raise SettingsError(f"{where} has no kb: name the folder of its documents.")
    lists = {key: tuple(table.get(key, ())) for key in _LISTS}
    expect = expect_texts(where, table.get("expect", []))
    return DataSpec(**{"name": name, **table, **lists, "expect": expect})


def _check(where: str, key: str, value: Any) -> None:
    if key == "expect":
        expect_texts(where, value)
    elif key in _LISTS:
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise SettingsError(f"{where}: {key} is {value!r}: expected a list of strings, [{_LISTS[key]!r}].")
    elif not isinstance(value, str):
        raise SettingsError(f"{where}: {key} is {value!r}: expected a string.")
