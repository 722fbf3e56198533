"""How many answers are wrong, and beside it how many decline wrongly: what is said of a run before anything else."""

from __future__ import annotations

from collections.abc import Mapping

from rag_harness.report.suite_table import SuiteTable
from rag_harness.report.wording import short
from rag_harness.report.wrong import Verdicts, verdicts_of

_MOST = 6
"""Most experiments that one sentence names."""


def wrong_said(tables: Mapping[str, SuiteTable]) -> str:
    """Return how many answers of each experiment are wrong, and how many decline wrongly; empty where none is known."""
    found = {name: verdicts for name, table in tables.items() if (verdicts := verdicts_of(table)) is not None}
    if not found:
        return ""
    shown, more = [*found.items()][:_MOST], len(found) - _MOST
    said = [f"{short(name)} {each.share_said} of {each.checked:,}" for name, each in shown]
    left = f" and {more:,} more" if more > 0 else ""
    return " ".join([f"{', '.join(said)}{left}.", _declined_said(dict(shown)), *_unchecked_said(found)])


def said_alone(found: Verdicts) -> str:
    """Return the same of an experiment that needs no name."""
    unchecked = f", {found.unchecked:,} not checked" if found.unchecked > 0 else ""
    return f"{found.share_said} of {found.checked:,}; {found.declined:,} wrongly declined{unchecked}"


def _declined_said(found: Mapping[str, Verdicts]) -> str:
    if not any(each.declined for each in found.values()):
        return "Nothing is wrongly declined."
    said = ", ".join(f"{short(name)} {each.declined:,}" for name, each in found.items())
    return f"Wrongly declined: {said}."


def _unchecked_said(found: Mapping[str, Verdicts]) -> list[str]:
    said = [f"{short(name)} {each.unchecked:,}" for name, each in found.items() if each.unchecked > 0]
    return [f"Not checked: {', '.join(said[:_MOST])}."] if said else []


def wrong_in_short(tables: Mapping[str, SuiteTable]) -> str:
    """Return the counts of wrong and of wrongly declined answers, as pytest's last line has them."""
    found = [verdicts for table in tables.values() if (verdicts := verdicts_of(table)) is not None]
    if not found:
        return ""
    declined = sum(each.declined for each in found)
    more = f", {declined:,} wrongly declined" if declined else ""
    return f"{sum(each.wrong for each in found):,} wrong{more}"
