"""Which gates this run can judge; for the others, why not and what would judge them."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING

from rag_harness.settings.profiles import MOCK
from rag_harness.types import GOLDEN

if TYPE_CHECKING:
    from rag_harness.gates import Gate, Verdict
    from rag_harness.plugin.run_findings import RunFindings
    from rag_harness.plugin.session import RagSession


class GateReach:
    """Compares what a run was asked for with what its gates are about."""

    def __init__(self, session: RagSession, findings: RunFindings) -> None:
        self._session, self._findings = session, findings

    @cached_property
    def is_whole(self) -> bool:
        """Whether all tests and all queries were asked for, and no test was left out."""
        return self._session.is_whole

    @property
    def configured_said(self) -> str:
        """The number of gates in options and ini file, by suite: ``e3 (2 gates)``. No data are read."""
        from rag_harness.errors import PrerequisiteError
        from rag_harness.gates import parse_gate
        from rag_harness.gates.belonging import gates_set

        settings = self._session.settings
        texts = gates_set(settings)
        try:
            counts = Counter(parse_gate(text, settings.k).suite for text in texts)
        except PrerequisiteError:
            return f"what {len(texts)} gates are about" if texts else ""
        return ", ".join(f"{suite} ({n} gate{'s' if n > 1 else ''})" for suite, n in counts.items())

    def out_of_reach(self, gate: Gate, has_baseline: bool) -> Verdict | None:
        """Return the verdict of a gate that this run cannot judge; None if it can.

        Args:
            gate: one that is set for this run.
            has_baseline: whether there is a saved run to compare with.
        """
        from rag_harness.gates import Verdict

        if self._is_on_mock(gate):
            return Verdict(gate, "not judged", reason="it would be on MOCK answers of a dry run", excuse="mock")
        if why := self._at_another_depth(gate):
            return Verdict(gate, "not judged", reason=why)
        if why := "" if has_baseline else self._without_baseline(gate):
            return Verdict(gate, "not judged", reason=why, excuse="baseline" if self._makes_first else "")
        for suite in suites_of(gate):
            if suite not in self._findings.tables or (self.is_whole and self._is_left_by_earlier(suite)):
                return self.not_in_run(gate, suite)
        return None

    def not_in_run(self, gate: Gate, suite: str = "") -> Verdict:
        """Return the verdict of a gate without trials of ``suite``. It is a failure if the whole run was asked for."""
        from rag_harness.gates import Verdict

        suite = suite or gate.suite
        if self.is_whole:
            gone = "its test is gone, was never there, or testpaths leaves it out"
            why = f"{suite} has no trial, though all tests were asked for: {gone}"
            why += f". --rag-run={suite} brings one" if self._is_registered(suite) else ""
            return Verdict(gate, "failed", reason=why, lacking=True)
        reason = f"{suite} is not in this run: {self._how(gate, suite)}"
        if suite == GOLDEN:
            reason += f". A gate of an experiment begins with its name and a colon: 'e3: {gate.what} {gate.op} …'"
        return Verdict(gate, "not judged", reason=reason, excuse="suite")

    def not_collected(self, gate: Gate) -> Verdict:
        """Return the verdict of a gate in a run whose tests could not be collected."""
        from rag_harness.gates import Verdict

        return Verdict(gate, "failed", reason="cannot be judged: tests could not be collected", lacking=True)

    def _is_on_mock(self, gate: Gate) -> bool:
        """Whether the mock answered, found or judged in a dry run what a gate looks at."""
        settings, tables = self._session.settings, self._findings.tables
        if not settings.dry_run:
            return False
        judged = settings.judge_model if gate.measure in self._session.wanted.judged_names(gate.suite) else ""
        found = settings.lookup_model if GOLDEN in suites_of(gate) else ""
        answered = [model for name in suites_of(gate) if name in tables for model in tables[name].totals.models]
        return any(model.startswith(MOCK) for model in (judged, found, *answered))

    def _is_registered(self, suite: str) -> bool:
        from rag_harness.pipelines import is_known

        return is_known(suite, self._session.settings)

    @cached_property
    def _makes_first(self) -> bool:
        """Whether this run saves the first baseline of its name. It must be asked before the baseline is written."""
        from rag_harness.plugin.left_behind import baseline_file

        settings = self._session.settings
        return bool(settings.save) and not baseline_file(settings, settings.save).exists()

    @cached_property
    def elsewhere(self) -> list[Verdict]:
        """A verdict for each gate that was set for other data."""
        from rag_harness.gates import Verdict, parse_gate
        from rag_harness.gates.belonging import gates_of_others

        settings = self._session.settings
        found = [*settings.gates_elsewhere, *gates_of_others(settings)]
        gates = [(parse_gate(text, settings.k), why) for text, why in found]
        return [Verdict(gate, "not judged", reason=why, excuse="data") for gate, why in gates]

    def _is_left_by_earlier(self, suite: str) -> bool:
        """Whether the rows of a suite are from an earlier run, and nothing of it was selected in this one."""
        known = self._findings.manifest.suites.get(suite)
        return known is not None and bool(known.made)

    def _how(self, gate: Gate, suite: str) -> str:
        from rag_harness.pipelines import built_in, is_known
        from rag_harness.plugin.selection import how_to_select

        session = self._session
        known = {GOLDEN, *session.own_experiments, *session.deselected}
        if suite not in known and not is_known(suite, session.settings):
            return "no test that was collected asks it"
        return how_to_select(suites_of(gate), {*built_in(), *self._session.markers})

    def _at_another_depth(self, gate: Gate) -> str:
        """Return why a gate of an ini file does not apply at the cutoff that --k sets; empty if it does."""
        from rag_harness.plugin.options import command_line

        given, k = command_line(self._session.config), self._session.settings.k
        if "k" not in given or gate.suite != GOLDEN or gate.cutoff in (None, k):
            return ""
        if gate in self._typed(given.get("gate", [])):
            return ""
        name = gate.measure.partition("@")[0]
        return f"it is set at {gate.cutoff} hits, and this run looks at {k} (--k). Written {name}@k it follows"

    def _typed(self, texts: list[str]) -> list[Gate]:
        from rag_harness.gates import parse_gate
        from rag_harness.plugin.gate_rules import asked

        settings = self._session.settings
        return asked([parse_gate(text, settings.k) for text in texts], settings)

    def _without_baseline(self, gate: Gate) -> str:
        """Return why a gate lacks a baseline to compare with; empty if it compares with none."""
        from rag_harness.gates import BASELINE, Reference

        if not isinstance(gate.right, Reference) or gate.right.name != BASELINE:
            return ""
        save = self._session.settings.save
        if self._makes_first:
            return f"no baseline yet: this run is saved as {save}"
        if save:
            return f"no baseline is named, though {save} is there: --rag-compare {save} compares with it"
        return "no baseline is named: --rag-compare NAME; --rag-save NAME makes one of this run"


def suites_of(gate: Gate) -> list[str]:
    """Return the suites that a gate is about: its own, and the one that it compares with."""
    from rag_harness.gates import BASELINE, Reference

    right = gate.right
    return [gate.suite, right.name] if isinstance(right, Reference) and right.name != BASELINE else [gate.suite]
