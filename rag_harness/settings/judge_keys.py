"""A run's settings with the table of one judge of a panel, and keys by the names of their variables."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from rag_harness.settings.role_tables import JudgeTable
from rag_harness.settings.table import Settings


def named_key(name: str, rootdir: str) -> str:
    """Return the key in the variable ``name``, of the environment or ``.env``; empty without one."""
    from dotenv import dotenv_values

    return os.environ.get(name) or dotenv_values(Path(rootdir) / ".env", encoding="utf-8-sig").get(name) or ""


def settings_by_table(settings: Settings, table: JudgeTable) -> Settings:
    """Return the settings in which the judge is asked as its table says. Its address gets no key but its own."""
    found = replace(settings, judge_model=table.model, judge_request=table.request)
    if not (table.base_url or table.api_key_env):
        return found
    return replace(
        found,
        judge_base_url=table.base_url or settings.judge_base_url,
        judge_api_key_env=table.key_variable,
        judge_api_key=named_key(table.key_variable, settings.rootdir),
    )


def keys_of_judges(settings: Settings) -> list[str]:
    """Return the keys of all judges with tables."""
    return [named_key(each.key_variable, settings.rootdir) for each in settings.judge_tables]
