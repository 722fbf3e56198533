"""Roles as tables of a profile, and the judges of a panel: each has a model, an address and fields of its requests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from rag_harness.errors import SettingsError
from rag_harness.settings.literal_keys import check_address
from rag_harness.settings.request_fields import request_fields

ROLES = ("answer", "judge", "writer", "rewrite", "user")
_OPTIONS_OF = {"answer": "chat"}
OWN = ("model", "base_url", "api_key_env")
"""What a table says beside the fields of requests."""


def prefix_of(role: str) -> str:
    """Return what the options of a role begin with: ``chat`` for ``answer``, else the role's name."""
    return _OPTIONS_OF.get(role, role)


@dataclass(frozen=True, slots=True)
class JudgeTable:
    """A judge of a panel with an address of its own: ``[tool.rag_harness.profiles.<profile>.judges.<name>]``.

    ``request`` are the fields of its requests, as ``RequestFields.text`` has them.
    """

    name: str
    model: str
    base_url: str = ""
    api_key_env: str = ""
    request: str = ""

    @property
    def key_variable(self) -> str:
        """The variable that holds the key of its own address."""
        return self.api_key_env or f"RAG_JUDGE_{re.sub(r'[^A-Z0-9]+', '_', self.name.upper())}_API_KEY"


def role_options(where: str, role: str, table: object) -> dict[str, str]:
    """Return what the table of a role says, by the names of options: ``judge_model``, …, ``judge_request``.

    Raises:
        SettingsError: it is no table, or something in it cannot be used; says what.
    """
    read = _read(where, table)
    return {f"{prefix_of(role)}_{name}": value for name, value in read.items()}


def judge_tables(where: str, tables: object) -> tuple[JudgeTable, ...]:
    """Return the judges of a panel that have tables.

    Raises:
        SettingsError: there is no table, or something in one cannot be used; says what.
    """
    if not isinstance(tables, Mapping):
        raise SettingsError(f"{where}: judges is {tables!r}: expected tables, one a judge.")
    found = []
    for name, table in tables.items():
        here = f"{where}, judge {name!r}"
        if "," in name:
            raise SettingsError(f"{here}: a name has no comma: --rag-judge parts judges by commas.")
        said = _read(here, table)
        found.append(JudgeTable(name, **{"model": name, **said}))
    return tuple(found)


def _read(where: str, table: object) -> dict[str, str]:
    if not isinstance(table, Mapping):
        raise SettingsError(f"{where} is {table!r}: expected a table.")
    said = {name: table[name] for name in OWN if name in table}
    for name, value in said.items():
        if not isinstance(value, str):
            raise SettingsError(f"{where}: {name} is {value!r}: expected a string.")
    check_address(f"{where}: base_url", said.get("base_url", ""), "Name its variable with api_key_env.")
    others = {name: value for name, value in table.items() if name not in OWN}
    request = request_fields(where, others, OWN).text
    return said | ({"request": request} if request else {})
