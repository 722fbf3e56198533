"""The gates of a run: their rules, their verdicts, reasons why some cannot be judged.

The files written after them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from time import time
from typing import TYPE_CHECKING

from rag_harness.core.settings.loading import seconds_in
from rag_harness.core.settings.profiles import MOCK
from rag_harness.core.types import GOLDEN, REVIEWED, is_in
from rag_harness.frontends.pytest_plugin.trial_report import not_run_said, skipped_said

if TYPE_CHECKING:
    from pathlib import Path

    from rag_harness.core.settings import Settings
    from rag_harness.frontends.pytest_plugin.recorder import Recorder
    from rag_harness.frontends.pytest_plugin.run_record import RunFindings
    from rag_harness.frontends.pytest_plugin.session import RagSession, RunCases
    from rag_harness.records.manifest import Some
    from rag_harness.runs.gates import Gate, GateRules, SuiteScores, Verdict
    from rag_harness.tables.comparison import Comparison
    from rag_harness.tables.reader import SavedRun
    from rag_harness.tables.suite_table import SuiteTable


# Which gates this run can judge; for the others, why not and what would judge them.


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
        from rag_harness.core.errors import PrerequisiteError
        from rag_harness.runs.gates import parse_gate
        from rag_harness.runs.gates.configuration import gates_set

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
        from rag_harness.runs.gates import Verdict

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
        from rag_harness.runs.gates import Verdict

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
        from rag_harness.runs.gates import Verdict

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
        from rag_harness.pipelines.experiments import is_known

        return is_known(suite, self._session.settings)

    @cached_property
    def _makes_first(self) -> bool:
        """Whether this run saves the first baseline of its name. It must be asked before the baseline is written."""

        settings = self._session.settings
        return bool(settings.save) and not baseline_file(settings, settings.save).exists()

    @cached_property
    def elsewhere(self) -> list[Verdict]:
        """A verdict for each gate that was set for other data."""
        from rag_harness.runs.gates import Verdict, parse_gate
        from rag_harness.runs.gates.configuration import gates_of_others

        settings = self._session.settings
        found = [*settings.gates_elsewhere, *gates_of_others(settings)]
        gates = [(parse_gate(text, settings.k), why) for text, why in found]
        return [Verdict(gate, "not judged", reason=why, excuse="data") for gate, why in gates]

    def _is_left_by_earlier(self, suite: str) -> bool:
        """Whether the rows of a suite are from an earlier run, and nothing of it was selected in this one."""
        known = self._findings.manifest.suites.get(suite)
        return known is not None and bool(known.made)

    def _how(self, gate: Gate, suite: str) -> str:
        from rag_harness.frontends.pytest_plugin.options import how_to_select
        from rag_harness.pipelines.experiments import built_in, is_known

        session = self._session
        known = {GOLDEN, *session.own_experiments, *session.deselected}
        if suite not in known and not is_known(suite, session.settings):
            return "no test that was collected asks it"
        return how_to_select(suites_of(gate), {*built_in(), *self._session.markers})

    def _at_another_depth(self, gate: Gate) -> str:
        """Return why a gate of an ini file does not apply at the cutoff that --k sets; empty if it does."""
        from rag_harness.frontends.pytest_plugin.options import command_line

        given, k = command_line(self._session.config), self._session.settings.k
        if "k" not in given or gate.suite != GOLDEN or gate.cutoff in (None, k):
            return ""
        if gate in self._typed(given.get("gate", [])):
            return ""
        name = gate.measure.partition("@")[0]
        return f"it is set at {gate.cutoff} hits, and this run looks at {k} (--k). Written {name}@k it follows"

    def _typed(self, texts: list[str]) -> list[Gate]:
        from rag_harness.runs.gates import parse_gate

        settings = self._session.settings
        return asked([parse_gate(text, settings.k) for text in texts], settings)

    def _without_baseline(self, gate: Gate) -> str:
        """Return why a gate lacks a baseline to compare with; empty if it compares with none."""
        from rag_harness.runs.gates import BASELINE, Reference

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
    from rag_harness.runs.gates import BASELINE, Reference

    right = gate.right
    return [gate.suite, right.name] if isinstance(right, Reference) and right.name != BASELINE else [gate.suite]


USUAL_CONFIDENCE = 95.0
"""Confidence in per cent of a gate that states none when all gates need evidence."""


def asked(gates: Sequence[Gate], settings: Settings) -> list[Gate]:
    """Return the gates as they are judged: under --rag-verdict=evidence each of them needs evidence."""
    if settings.verdict == "point":
        return list(gates)
    return [gate if gate.confidence is not None else replace(gate, confidence=USUAL_CONFIDENCE) for gate in gates]


def check_clusters(gates: Iterable[Gate], session: RagSession) -> None:
    """Make sure that --rag-cluster names a label that the cases have. Checked for each gate that needs evidence.

    Raises:
        SettingsError: the cases of a gate have no such label.
    """
    key = session.settings.cluster
    is_named = key not in ("", "none")
    suites = {gate.suite for gate in gates if gate.confidence is not None} if is_named else set()
    for suite in sorted(suites):
        from rag_harness.tables.suite_table import check_cluster

        if suite == GOLDEN:
            check_cluster(suite, ((case.case, case.slices) for case in session.golden.cases.values()), key)
        else:
            check_cluster(suite, ((case, case.labels) for case in session.cases.all_of(suite)), key)


def rules_of(settings: Settings, cases: RunCases, findings: RunFindings) -> GateRules:
    """Return how gates are judged; the clusters come from the tables."""
    from rag_harness.runs.gates import GateRules

    return GateRules(
        max_unmeasured=settings.max_unmeasured,
        population=settings.population,
        cluster=settings.cluster,
        clusters=_clusters(findings),
        counts_drafts=settings.gate_unreviewed,
        review=how_reviewed(settings, cases),
        skipped=lambda suite: _skipped(findings, suite),
    )


def _skipped(findings: RunFindings, suite: str) -> str:
    lines = findings.manifest.skipped_of(suite)
    return lines.said if lines else ""


def how_reviewed(settings: Settings, cases: RunCases) -> Callable[[str], str]:
    """Return a function of a suite that says how its questions are reviewed: with a command, where there is one."""

    def review(suite: str) -> str:
        from rag_harness.runs.gates.configuration import shown_place

        data = cases.data.get("" if suite == GOLDEN else cases.data_of(suite))
        file = data.golden_file if suite == GOLDEN else data.queries_file
        shown = shown_place(settings, file)
        if file.suffix != ".jsonl":
            return f'read them, and write "{REVIEWED}": "yes" where one is good, in {shown}'
        folder = settings.path(data.folder)
        kb = "" if file.parent == folder else f" --kb {shown_place(settings, folder)}"
        return f"rag-harness queries review {shown}{kb}"

    return review


def _clusters(findings: RunFindings) -> Callable[[str], Mapping[str, str] | None]:
    @cache
    def clusters(suite: str) -> Mapping[str, str] | None:
        return findings.tables[suite].cluster_by_case

    return clusters


def if_fresh(verdict: Verdict, tables: Mapping[str, SuiteTable], max_age: str) -> Verdict:
    """Return the verdict, or a stale one if an answer of the gate's suites is older than ``max_age``.

    Args:
        verdict: the gate's own.
        tables: of the run, by suite.
        max_age: a duration, such as ``7d``; empty allows any age.
    """
    if not max_age or verdict.state == "not judged":
        return verdict
    from rag_harness.tables.answer_warnings import stale_reason  # needs NumPy, and most runs allow any age

    for suite in (name for name in suites_of(verdict.gate) if name in tables):
        origins = tables[suite].totals.origins
        if why := stale_reason(origins, seconds_in(max_age, "--rag-max-age"), time()):
            remedy = "--rag-mode=record --rag-rerecord" if origins.has_recorded else "--rag-overwrite"
            said = f"{why}, and --rag-max-age allows {max_age}. Ask again: {remedy}"
            return replace(verdict, state="stale", reason=said)
    return verdict


def write_summary_files(
    settings: Settings,
    findings: RunFindings,
    verdicts: Sequence[Verdict],
    unchecked: Mapping[str, int],
    replaced: Sequence[str] = (),
) -> None:
    """Write the summary, and the files that options ask for.

    ``unchecked`` counts what fails the run though no gate has failed; ``replaced`` says which gates others replace.

    Raises:
        OSError: a file cannot be written.
    """
    from rag_harness.tables.answer_warnings import provenance_json
    from rag_harness.tables.reader import save, saved_run
    from rag_harness.tables.summary import write_summary_file

    said, origins = findings.manifest.settings, provenance_json(findings.tables)
    more = {"run": findings.manifest.date, "provenance": origins, **findings.found}
    more |= {"unchecked": {**unchecked}} if unchecked else {}
    more |= {"replaced": [*replaced]} if replaced else {}
    write_summary_file(findings.output, findings.tables, verdicts, said, more)
    _leave_golden_files(settings, findings)
    if settings.save:
        save(baseline_file(settings, settings.save), saved_run(findings.manifest, findings.tables))


def _leave_golden_files(settings: Settings, findings: RunFindings) -> None:
    from rag_harness.tables.golden_suite import export_trec, trec_folder, write_misses

    folder = trec_folder(settings.export) if settings.export else ""
    if settings.misses and GOLDEN in findings.tables:
        write_misses(settings.path(settings.misses), findings.retrievals, findings.tables[GOLDEN])
    if folder and GOLDEN in findings.tables:
        export_trec(settings.path(folder), findings.retrievals, settings.retriever)


def baseline_file(settings: Settings, name: str) -> Path:
    """Return the place of the saved run of that name."""
    return settings.folder("baselines") / f"{name}.json"


class ConfiguredGates:
    """The gates of options and of the ini file, read when they are first asked for.

    Args:
        session: state of the run.
    """

    def __init__(self, session: RagSession) -> None:
        self._session = session

    @cached_property
    def all(self) -> list[Gate]:
        """The gates of the command line; those of the ini file too, if they are set for this run's data.

        Raises:
            SettingsError: a gate cannot be read, or names what does not exist.
        """
        from rag_harness.runs.gates.configuration import check_data, check_promises, check_turns, gates_set, read_gates

        session, settings = self._session, self._session.settings
        check_data(settings.data, settings.k, session.cases.data_of)
        texts = gates_set(settings)
        gates = read_gates(texts, settings.k, self._names(texts), self._slices_of)
        check_promises(gates, settings.repeats)
        check_turns(gates, self._slices_of)
        return asked(gates, settings)

    def _names(self, texts: Sequence[str]) -> list[str]:
        """Return the names that gates may use. A user's experiment is known by its test, which may not be here."""
        from rag_harness.core.errors import is_near
        from rag_harness.pipelines.experiments import is_known, known_experiments
        from rag_harness.runs.gates import BASELINE, Reference, parse_gate

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


class RunGates:
    """The verdicts of a run's gates.

    Args:
        session: state of the run.
        configured: the gates.
        recorder: knows what was not run.
        findings: has the tables that gates are judged by.
        rules_for: says how a gate that could be settled early is judged, from how others are, and from whether some
            cases were not asked since all gates of the suite were settled.
        is_all_affected: whether the selected cases of a suite are all that --rag-affected-by leaves.
    """

    def __init__(
        self,
        session: RagSession,
        configured: ConfiguredGates,
        recorder: Recorder,
        findings: RunFindings,
        rules_for: Callable[[Gate, GateRules, bool], GateRules],
        is_all_affected: Callable[[str, Some], bool],
    ) -> None:
        self._session, self._recorder, self.findings, self._rules_for = session, recorder, findings, rules_for
        self.configured, self._is_all_affected = configured, is_all_affected
        self._edited, self._has_digest = "", True
        self.reach = GateReach(session, findings)

    @cached_property
    def baseline(self) -> SavedRun | None:
        """The run that --rag-compare names.

        Raises:
            DataError: no run has that name.
        """
        from rag_harness.tables.reader import edited_said, has_digest, load_saved_run

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
            return [*map(judged, self.configured.all), *self.reach.elsewhere]
        from rag_harness.runs.gates.evidence import judged_together

        return [*judged_together(self.configured.all, together, judged), *self.reach.elsewhere]

    def _verdict(self, gate: Gate, refused: bool) -> Verdict:
        from rag_harness.runs.gates import Verdict, judge
        from rag_harness.runs.gates.configuration import unit_of
        from rag_harness.runs.gates.evidence import corrections
        from rag_harness.tables.conversations import (
            answers_said,
            over_conversations,
            over_repeats,
            rules_over_conversations,
        )

        settings = self._session.settings
        not_run = {trial: why for trial, why in self._recorder.not_run.items() if trial.experiment == gate.suite}
        if not_run and not self._session.settings.gate_partial:
            # A trial that was not run is not a failure. But a release that could not be judged must not pass as judged.
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
        from rag_harness.runs.gates import Verdict
        from rag_harness.tables.answer_warnings import foreign_said

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
        from rag_harness.runs.gates.configuration import unit_of
        from rag_harness.runs.gates.early_stopping import fails_anyway

        table = self.findings.tables.get(gate.suite)
        if table is None or not table.has(gate.measure):
            return False
        left = len(self.findings.manifest.suites[gate.suite].not_run) + len(self._skipped_of(gate, gate.suite))
        return fails_anyway(gate, table.values(gate.measure, dict(gate.slice)).values(), left, unit_of(gate))

    def _refused(self, gate: Gate) -> str:
        """Return why cases of a gate have no row, if an error that stopped the run or a suite says it; else empty."""
        from rag_harness.runs.gates import Reference

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
        from rag_harness.runs.gates import BASELINE, Reference

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

        return rules_of(self._session.settings, self._session.cases, self.findings)

    def _histories_said(self, gate: Gate) -> str:
        """Say that a gate compares answers to turns with different histories; empty where they have the same."""
        from rag_harness.runs.gates import Reference

        if not isinstance(gate.right, Reference) or gate.right.name not in self.findings.manifest.suites:
            return ""
        from rag_harness.evaluation.measures import measure_named
        from rag_harness.evaluation.measures.measure import is_of_conversation

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
        from rag_harness.runs.gates.verdict import meets_threshold

        record, most = self.findings.manifest.suites.get(gate.suite), self._session.settings.max_unmeasured
        if record is None:
            return "", False
        again = record.again.values() if gate.over is not None else ()
        n = len(record.taken_out) + sum(len(each.taken_out) for each in again)
        if not n:
            return "", False
        begun = self.findings.tables[gate.suite].selected_of({"turn": "1"}) * (1 + len(again))
        said = f"{n} of {begun} conversations taken out, because their simulated user left its role"
        if meets_threshold(n / max(begun, 1), "<=", most):
            return said, False
        return f"{said}: more than {most:.1%} (--rag-max-unmeasured)", True

    def _judged_otherwise(self, gate: Gate) -> str:
        """Return how the judge of a gate's measure differs from the judge of its baseline; empty if it does not."""
        from rag_harness.runs.gates import BASELINE, Reference

        if not self.baseline or not isinstance(gate.right, Reference) or gate.right.name != BASELINE:
            return ""
        from rag_harness.tables.reader import saved_run

        now = saved_run(self.findings.manifest, {})
        return now.judged_otherwise(self.baseline, gate.suite, gate.measure)

    def _owes_otherwise(self, gate: Gate) -> str:
        """Return that the two sides of a gate owe different things; empty if they do not."""
        from rag_harness.runs.gates import BASELINE, Reference
        from rag_harness.tables.reader import saved_run

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
        from rag_harness.core.errors import DataError
        from rag_harness.tables.comparison import compare, on_common_data
        from rag_harness.tables.reader import saved_run

        now = saved_run(self.findings.manifest, self.findings.tables)
        try:
            return compare(*on_common_data(now, self.baseline)), ""
        except DataError as error:
            return None, str(error)
