"""The judges of a panel, as ``--rag-judge`` names them: ``fused@gpt-x,fused@meta/llama-3:8b,embedded``.

What is behind the first ``@`` is the name of a judge's table in the profile, or of a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rag_harness.errors import SettingsError
from rag_harness.settings import Settings
from rag_harness.settings.judge_keys import settings_by_table
from rag_harness.settings.role_tables import JudgeTable

_RULES = "--rag-panel=majority, mean or median"


@dataclass(frozen=True, slots=True)
class PanelMember:
    """A judge of a panel: its registered name, its model, and its table, if it has one.

    An empty model stands for that of ``--rag-judge-model``.
    """

    judge: str
    model: str = ""
    table: JudgeTable | None = None

    def __str__(self) -> str:
        return f"{self.judge}@{self.model}" if self.model else self.judge


def panel_of(settings: Settings) -> tuple[PanelMember, ...]:
    """Return the judges of the panel, in the order in which they are named; () where one judge judges.

    Raises:
        SettingsError: a panel without a rule, a rule without a panel, a judge without a name or named twice.
    """
    named, rule = settings.judge, settings.panel
    if "," not in named:
        if rule:
            whom = f"one judge, {named}" if named else "no judge"
            raise SettingsError(
                f"--rag-panel={rule} is for several judges, and --rag-judge names {whom}. Name two or more, with "
                f"commas between, or leave --rag-panel out."
            )
        if "@" in named:
            judge, _, model = named.partition("@")
            raise SettingsError(
                f"--rag-judge={named} names one judge: write --rag-judge={judge} --rag-judge-model={model}. "
                f"judge@model is for the judges of a panel."
            )
        return ()
    tables = {each.name: each for each in settings.judge_tables}
    members = tuple(_member(each, named, tables) for each in named.split(","))
    if not rule:
        raise SettingsError(f"--rag-judge={named} names {len(members)} judges: say how they decide, {_RULES}.")
    resolved = [(each.judge, each.model or settings.judge_model) for each in members]
    twice = [str(each) for n, each in enumerate(members) if resolved[n] in resolved[:n]]
    if twice:
        raise SettingsError(
            f"--rag-judge={named} names the same judge and model twice: {', '.join(twice)}. Scores are kept under both "
            f"names, whatever the address."
        )
    return members


def _member(said: str, named: str, tables: Mapping[str, JudgeTable]) -> PanelMember:
    judge, at, model = (part.strip() for part in said.partition("@"))
    if not judge or (at and not model):
        raise SettingsError(
            f"--rag-judge={named}: {said!r} names no judge{' model' if judge else ''}. A panel is judges with commas "
            f"between, each with its model where it asks one: fused@gpt-x,embedded."
        )
    table = tables.get(model)
    return PanelMember(judge, table.model if table else model, table)


def settings_of_judges(settings: Settings) -> tuple[Settings, ...]:
    """Return the settings as each judge of the run has them; those of the run where one judge judges.

    Raises:
        SettingsError: the panel cannot be used.
    """
    members = panel_of(settings)
    return tuple(settings_of_member(settings, member) for member in members) if members else (settings,)


def settings_of_member(settings: Settings, member: PanelMember) -> Settings:
    """Return the settings in which one judge of the panel is the only judge."""
    alone = replace(settings, judge=member.judge, judge_model=member.model or settings.judge_model, panel="")
    return settings_by_table(alone, member.table) if member.table else alone
