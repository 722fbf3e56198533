"""The gates of a run: which are judged, with which saved run they are compared, and their verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from rag_harness.plugin.gate_reach import GateReach, suites_of
from rag_harness.plugin.left_behind import baseline_file
from rag_harness.plugin.not_run import not_run_said, skipped_said
from rag_harness.types import GOLDEN, REVIEWED, is_in

if TYPE_CHECKING:
    from rag_harness.gates import Gate, GateRules, SuiteScores, Verdict
    from rag_harness.plugin.recorder import Recorder
    from rag_harness.plugin.run_findings import RunFindings
    from rag_harness.plugin.session import RagSession
    from rag_harness.report.baseline import SavedRun
    from rag_harness.report.comparison import Comparison
    from rag_harness.results.manifest import Some


class RulesFor(Protocol):
    """Says how a gate that could be settled early is judged; other gates are judged by ``rules``."""

    def __call__(self, gate: Gate, rules: GateRules, some_left: bool) -> GateRules:
        """``some_left``: some cases were not asked, since all gates of the suite were settled."""
        ...


class RunGates:
    """The gates of options and of the ini file, read when they are first asked for.

    Args:
        session: state of the run.
        recorder: knows what was not run.
        findings: has the tables that gates are judged by.
        rules_for: says how a gate that could be settled early is judged.
        is_all_affected: whether the selected cases of a suite are all that --rag-affected-by leaves.
    """

    def __init__(
        self,
        session: RagSession,
        recorder: Recorder,
        findings: RunFindings,
        rules_for: RulesFor,
        is_all_affected: Callable[[str, Some], bool],
    ) -> None:
        self._session, self._recorder, self.findings, self._rules_for = session, recorder, findings, rules_for
        self._is_all_affected = is_all_affected
        self._edited, self._has_digest = "", True
        self.reach = GateReach(session, findings)

    @cached_property
    def gates(self) -> list[Gate]:
        """The gates of the command line; those of the ini file too, if they are set for this run's data.

        Raises:
            SettingsError: a gate cannot be read, or names what does not exist.
        """
        from rag_harness.gates.belonging import check_data, gates_set
        from rag_harness.gates.gates_of_run import check_promises, check_turns, read_gates
        from rag_harness.plugin.gate_rules import asked

        session, settings = self._session, self._session.settings
        check_data(settings.data, settings.k, session.cases.data_of)
        texts = gates_set(settings)
        gates = read_gates(texts, settings.k, self._names(texts), self._slices_of)
        check_promises(gates, settings.repeats)
        check_turns(gates, self._slices_of)
        return asked(gates, settings)

    def _names(self, texts: Sequence[str]) -> list[str]:
        """Return the names that gates may use. A user's experiment is known by its test, which may not be here."""
        from rag_harness.errors import is_near
        from rag_harness.gates import BASELINE, Reference, parse_gate
        from rag_harness.pipelines import is_known, known_experiments

        session = self._session
        known = [*known_experiments(session.settings), GOLDEN, *session.own_experiments, BASELINE]
        gates = [parse_gate(text, session.settings.k) for text in texts]
        named = [gate.suite for gate in gates] + [g.right.name for g in gates if isinstance(g.right, Reference)]
        others = [name for name in named if name not in known]
        return [*known, *(name for name in others if is_known(name, session.settings) or not is_near(name, known))]

    def _slices_of(self, suite: str) -> dict[str, set[str]]:
        # Every case counts as reviewed or not, even if its file does not say so.
        session, found = self._session, {REVIEWED: {"yes", "no"}}
        cases = session.golden.slices if suite == GOLDEN else [case.labels for case in session.cases.all_of(suite)]
        for labels in cases:
            for key, value in labels.items():
                found.setdefault(key, set()).add(value)
        return found

    @cached_property
    def baseline(self) -> SavedRun | None:
        """The run that --rag-compare names.

        Raises:
            DataError: there is no run of that name.
        """
        from rag_harness.report.baseline import edited_said, has_digest, load_saved_run

        settings = self._session.settings
        file = baseline_file(settings, settings.compare)
        if not settings.compare or (settings.save == settings.compare and not file.exists()):
            return None  # the first run of them makes it
        found = load_saved_run(file)
        # Looked at now: this run may save itself under the same name.
        self._edited, self._has_digest = edited_said(file), has_digest(file)
        return found

    def baseline_said(self) -> Iterator[str]:
        """Say that nobody can tell whether the baseline is as it was written, where it is of an older release."""
        if self.baseline and not self._has_digest:
            name = self._session.settings.compare
            yield f"baseline {name} has no digest, so an edit of it would not be seen: --rag-save {name} writes one"

    def verdicts(self, refused: bool) -> list[Verdict]:
        """Return a verdict for each gate; ``refused``: the saved run cannot be compared with this one."""
        together = self._session.settings.family

        def judged(gate: Gate) -> Verdict:
            return self._verdict(gate, refused)

        if not together:
            return [*map(judged, self.gates), *self.reach.elsewhere]
        from rag_harness.gates.family import judged_together

        return [*judged_together(self.gates, together, judged), *self.reach.elsewhere]

    def _verdict(self, gate: Gate, refused: bool) -> Verdict:
        from rag_harness.gates import Verdict, judge
        from rag_harness.gates.calibrated import corrections
        from rag_harness.gates.gates_of_run import unit_of
        from rag_harness.plugin.gate_age import if_fresh
        from rag_harness.report.over_conversations import over_conversations, rules_over_conversations
        from rag_harness.report.over_repeats import answers_said, over_repeats

        settings = self._session.settings
        not_run = {trial: why for trial, why in self._recorder.not_run.items() if trial.experiment == gate.suite}
        if not_run and not self._session.settings.gate_partial:
            # A trial that was not run is no failure. But a release that could not be judged must not pass as judged.
            return Verdict(gate, "failed", reason=f"cannot be judged: {not_run_said(not_run.values())}")
        untested = "; ".join(filter(None, [self._untested(gate), self._skipped(gate)]))
        fails = bool(untested) and self._fails_anyway(gate)
        left_out = Verdict(gate, "not judged", reason=untested) if untested and not fails else None
        if verdict := left_out or self.reach.out_of_reach(gate, self.baseline is not None) or self._foreign(gate):
            return verdict
        if why := self._refused(gate):
            return Verdict(gate, "failed", reason=f"cannot be judged: {why}", lacking=True)
        taken_out, are_too_many = self._taken_out(gate)
        if are_too_many:
            return Verdict(gate, "failed", reason=f"cannot be judged: {taken_out}", lacking=True)
        if why := self._not_comparable(gate, refused):
            return Verdict(gate, "failed", reason=why)
        baseline = self.baseline.suites if self.baseline else {}
        correct = corrections(settings.folder("judges"), self._session.output)
        rules = self._rules_for(gate, self._rules, self.findings.has_settled(gate.suite))
        is_all = self._has_all_affected(gate)
        if is_all:
            rules = replace(rules, chosen=f"affected by {settings.affected_by}")
        tables, is_part = self.findings.tables, is_all or settings.gate_partial or fails
        counted: Mapping[str, SuiteScores] = over_repeats(gate, tables)
        if gate.turns is not None:
            whole = over_conversations(gate, tables)
            counted, rules = whole, rules_over_conversations(rules, whole)
        verdict = judge(gate, counted, is_part, baseline, unit_of(gate), correct, rules)
        said = (
            [answers_said(gate, tables), self._histories_said(gate), taken_out, untested]
            if verdict.value is not None
            else []
        )
        verdict = replace(verdict, reason="; ".join(filter(None, [verdict.reason, *said])))
        return if_fresh(verdict, tables, settings.max_age)

    def _foreign(self, gate: Gate) -> Verdict | None:
        """Return the verdict of a gate that goes by names of pages, where most contexts have the texts of others."""
        from rag_harness.gates import Verdict
        from rag_harness.report.doubts import foreign_said

        tables = [self.findings.tables[name] for name in self._known_of(gate)]
        why = foreign_said(gate, tables, self._session.settings)
        return Verdict(gate, "not judged", reason=why) if why else None

    def _untested(self, gate: Gate) -> str:
        """Return why cases of a gate were left untested, if pytest was stopped before them; empty where none was."""
        manifest = self.findings.manifest
        if not manifest.stopped or self._session.settings.gate_partial:
            return ""
        left = sum(len(manifest.suites[name].not_run) for name in suites_of(gate) if name in manifest.suites)
        return f"{left} case{'s' * (left != 1)} untested: {manifest.stopped}" if left else ""

    def _skipped(self, gate: Gate) -> str:
        """Return how many cases of a gate were skipped by their tests, and why; empty where none was."""
        found = {} if self._session.settings.gate_partial else self._all_skipped_of(gate)
        if not found:
            return ""
        total = sum(self.findings.tables[name].total_of(dict(gate.slice)) for name in self._known_of(gate))
        return f"{len(found)} of {total} {gate.counts} {skipped_said(found)}; --rag-gate-partial judges the others"

    def _all_skipped_of(self, gate: Gate) -> dict[str, str]:
        found = {name: self._skipped_of(gate, name) for name in self._known_of(gate)}
        return {f"{name} {case_id}": why for name, whys in found.items() for case_id, why in whys.items()}

    def _known_of(self, gate: Gate) -> list[str]:
        return [name for name in suites_of(gate) if name in self.findings.tables]

    def _skipped_of(self, gate: Gate, suite: str) -> Mapping[str, str]:
        """Return the skipped cases of a suite that a gate is about, with the reason."""
        table, skipped = self.findings.tables[suite], self.findings.manifest.suites[suite].skipped
        where = dict(gate.slice)
        labels = zip(table.ids, table.labels, strict=True) if skipped else ()
        return {case_id: skipped[case_id] for case_id, each in labels if case_id in skipped and is_in(each, where)}

    def _fails_anyway(self, gate: Gate) -> bool:
        """Whether a gate fails whatever the untested cases would answer."""
        from rag_harness.gates.gates_of_run import unit_of
        from rag_harness.gates.untested_cases import fails_anyway

        table = self.findings.tables.get(gate.suite)
        if table is None or not table.has(gate.measure):
            return False
        left = len(self.findings.manifest.suites[gate.suite].not_run) + len(self._skipped_of(gate, gate.suite))
        return fails_anyway(gate, table.values(gate.measure, dict(gate.slice)).values(), left, unit_of(gate))

    def _refused(self, gate: Gate) -> str:
        """Return why cases of a gate have no row, if an error that stopped the run or a suite says it; else empty."""
        from rag_harness.gates import Reference

        suites, refused = self.findings.manifest.suites, self._recorder.refused
        names = [gate.suite, *([gate.right.name] if isinstance(gate.right, Reference) else [])]
        lost = {name: len(suites[name].lost) for name in names if name in suites and suites[name].lost}
        if not refused or not lost:
            return ""
        why = next((refused[name] for name in lost if name in refused), next(iter(refused.values())))
        n = sum(lost.values())
        return f"{n} case{'s' * (n != 1)} not run: {why.partition(chr(10))[0]}"

    def _not_comparable(self, gate: Gate, refused: bool) -> str:
        """Return why what a gate compares is not comparable; empty where it is, or where it compares nothing."""
        from rag_harness.gates import BASELINE, Reference

        if refused and isinstance(gate.right, Reference) and gate.right.name == BASELINE:
            return f"cannot be judged: {self._edited}" if self._edited else "the baseline is of other data"
        if why := self._owes_otherwise(gate):
            return why
        other = self._judged_otherwise(gate)
        return f"the baseline was {other}. Save a new one with --rag-save" if other else ""

    def _has_all_affected(self, gate: Gate) -> bool:
        """Whether the cases asked of a gate's suite are exactly those that --rag-affected-by leaves."""
        asked = self.findings.manifest.suites.get(gate.suite)
        return asked is not None and self._is_all_affected(gate.suite, asked.selected)

    @cached_property
    def _rules(self) -> GateRules:
        from rag_harness.plugin.gate_rules import rules_of

        return rules_of(self._session, self.findings)

    def _histories_said(self, gate: Gate) -> str:
        """Say that a gate compares answers to turns with different histories; empty where they have the same."""
        from rag_harness.gates import Reference

        if not isinstance(gate.right, Reference) or gate.right.name not in self.findings.manifest.suites:
            return ""
        from rag_harness.measures import measure_named
        from rag_harness.measures.measure import is_of_conversation

        histories = {name: self.findings.manifest.suites[name].history for name in (gate.suite, gate.right.name)}
        if set(histories.values()) == {"played"} and not is_of_conversation(measure_named(gate.measure)):
            return "not the same questions: each had conversations of its own with its simulated user"
        if len(set(histories.values())) == 1:
            return ""
        said = {"own": "its own answers", "gold": "the reference replies", "played": "a simulated user", "": "none"}
        return "not the same questions: " + ", ".join(f"{name} had {said[how]}" for name, how in histories.items())

    def _taken_out(self, gate: Gate) -> tuple[str, bool]:
        """Return how many conversations of a gate's suite were taken out, and whether these are too many to judge it.

        Turns that were never asked cannot be counted, so conversations are. They share the limit of cases that could
        not be measured: both may be the bad ones.
        """
        from rag_harness.gates.verdict import meets_threshold

        record, most = self.findings.manifest.suites.get(gate.suite), self._session.settings.max_unmeasured
        if record is None:
            return "", False
        again = record.again.values() if gate.over is not None else ()
        n = len(record.taken_out) + sum(len(each.taken_out) for each in again)
        if not n:
            return "", False
        begun = self.findings.tables[gate.suite].selected_of({"turn": "1"}) * (1 + len(again))
        said = f"{n} of {begun} conversations taken out, for their simulated user left its role"
        if meets_threshold(n / max(begun, 1), "<=", most):
            return said, False
        return f"{said}: more than {most:.1%} (--rag-max-unmeasured)", True

    def _judged_otherwise(self, gate: Gate) -> str:
        """Return how the judge of a gate's measure differs from the judge of its baseline; empty if it does not."""
        from rag_harness.gates import BASELINE, Reference

        if not self.baseline or not isinstance(gate.right, Reference) or gate.right.name != BASELINE:
            return ""
        from rag_harness.report.baseline import saved_run

        now = saved_run(self.findings.manifest, {})
        return now.judged_otherwise(self.baseline, gate.suite, gate.measure)

    def _owes_otherwise(self, gate: Gate) -> str:
        """Return that the two sides of a gate owe different things; empty if they do not."""
        from rag_harness.gates import BASELINE, Reference
        from rag_harness.report.baseline import saved_run

        suites, right = self.findings.manifest.suites, gate.right
        if not isinstance(right, Reference) or gate.suite not in suites:
            return ""
        if right.name == BASELINE:
            now = saved_run(self.findings.manifest, {})
            is_other = self.baseline is not None and now.owed_otherwise(self.baseline, gate.suite, gate.measure)
            return "the answers owed other things in the baseline. Save a new one with --rag-save" if is_other else ""
        is_other = right.name in suites and suites[gate.suite].owes_otherwise(suites[right.name], gate.measure)
        return f"answers of {gate.suite} and {right.name} owe different things" if is_other else ""

    def comparison(self) -> tuple[Comparison | None, str]:
        """Return the comparison with the saved run, and why there is none, which may be empty."""
        if not self.baseline or self._edited:
            return None, self._edited
        from rag_harness.errors import DataError
        from rag_harness.report.baseline import saved_run
        from rag_harness.report.comparison import compare, on_common_data

        now = saved_run(self.findings.manifest, self.findings.tables)
        try:
            return compare(*on_common_data(now, self.baseline)), ""
        except DataError as error:
            return None, str(error)
