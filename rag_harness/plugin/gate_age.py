"""Fails the gates of answers that are older than --rag-max-age allows."""

from __future__ import annotations

from dataclasses import replace
from time import time
from typing import TYPE_CHECKING

from rag_harness.plugin.gate_reach import suites_of
from rag_harness.settings.durations import seconds_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rag_harness.gates import Verdict
    from rag_harness.report.suite_table import SuiteTable


def if_fresh(verdict: Verdict, tables: Mapping[str, SuiteTable], max_age: str) -> Verdict:
    """Return the verdict, or a stale one if an answer of the gate's suites is older than ``max_age``.

    Args:
        verdict: the gate's own.
        tables: of the run, by suite.
        max_age: a duration, such as ``7d``; empty allows any age.
    """
    if not max_age or verdict.state == "not judged":
        return verdict
    from rag_harness.report.provenance import stale_reason  # needs NumPy, and most runs allow any age

    for suite in (name for name in suites_of(verdict.gate) if name in tables):
        origins = tables[suite].totals.origins
        if why := stale_reason(origins, seconds_in(max_age, "--rag-max-age"), time()):
            remedy = "--rag-mode=record --rag-rerecord" if origins.has_recorded else "--rag-overwrite"
            said = f"{why}, and --rag-max-age allows {max_age}. Ask again: {remedy}"
            return replace(verdict, state="stale", reason=said)
    return verdict
