"""``--rag-attribute``: finds out why trials failed, after the last test, in the process that writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rag_harness.plugin.afterwards import tried
from rag_harness.plugin.derived import bench_of, derived_runs, print_section
from rag_harness.plugin.stash_keys import CAUSES_DUE
from rag_harness.types import GOLDEN

if TYPE_CHECKING:
    import pytest

    from rag_harness.derived.attribution.kept_causes import KeptCauses
    from rag_harness.plugin.recorder import Recorder
    from rag_harness.plugin.run_findings import RunFindings
    from rag_harness.plugin.session import RagSession
    from rag_harness.plugin.trials import TrialRunner
    from rag_harness.protocols import Experiment
    from rag_harness.report.suite_table import SuiteTable
    from rag_harness.results.causes import CauseLine

SPENT = "the workers have shared the budget among them, so nothing was run again; rag-harness explain --budget USD does"


_UNREVIEWED = {"reviewed_cause": "", "reviewed_by": ""}


class Attribution:
    """Explains failed trials after the gates are judged, and prints the causes below the scorecard."""

    def __init__(self, session: RagSession, recorder: Recorder, findings: RunFindings, trials: TrialRunner) -> None:
        self._session, self._recorder, self._findings, self._trials = session, recorder, findings, trials
        self._causes: list[CauseLine] | None = None
        self.is_due = False
        """Whether causes are worked out when the verdict is printed."""
        self._problem = ""
        self._answers: dict[str, int] = {}

    @property
    def causes(self) -> Sequence[CauseLine]:
        """The causes that were found, the worst of each experiment first; none where nothing was explained."""
        return self._causes or ()

    @property
    def is_explained(self) -> bool:
        """Whether causes were looked for, with or without success."""
        return self._causes is not None or bool(self._problem)

    def plan(self) -> None:
        """Note after all tests that causes are wanted. Not if the run was stopped."""
        # The golden suite generates nothing: its misses explain themselves.
        is_wanted = self._recorder.trials and self._session.settings.attribute and self._findings.is_readable
        self.is_due = self._session.config.stash[CAUSES_DUE] = bool(is_wanted)

    def explain(self) -> None:
        """Explain, when the verdict is printed."""
        self._causes, why = tried(self._explained)
        self._problem = f"cannot be told: {why}" if why else ""

    def _explained(self) -> list[CauseLine]:
        session, suites = self._session, self._findings.manifest.suites
        # Rows of an earlier run are judged with the rest, but nothing is asked about them: they were not selected.
        tables = {name: table for name, table in self._findings.tables.items() if not suites[name].made}
        self._answers = {name: table.totals.answered for name, table in tables.items()}
        kept = self._kept_causes()
        keys = {name: self._key(kept, name, table) for name, table in tables.items() if kept and name != GOLDEN}
        known = {name: lines for name, key in keys.items() if kept and (lines := kept.find(name, key)) is not None}
        if kept and len(known) == len(keys):
            from rag_harness.results.causes import leave_causes
            from rag_harness.results.manifest import read_manifest

            found = [line for lines in known.values() for line in lines]
            return leave_causes(session.output, read_manifest(session.output), tables, found)
        return self._worked_out(tables, known, kept, keys)

    def _worked_out(
        self,
        tables: Mapping[str, SuiteTable],
        known: Mapping[str, Sequence[CauseLine]],
        kept: KeptCauses | None,
        keys: Mapping[str, str],
    ) -> list[CauseLine]:
        from rag_harness.derived.attribution.explain import Explainer

        session = self._session
        with derived_runs(session, self._trials) as runs:
            bench, why_not = bench_of(session, self._registered), SPENT if runs is None else ""
            explainer = Explainer(session.output, bench, runs, tables=tables, why_not=why_not)
            found = explainer.every(known)
        for name, key in keys.items():
            if kept is not None and runs is not None and name not in known and name not in explainer.unsure:
                # A person's word about a cause is for the rows of its own folder.
                lines = [line.model_copy(update=_UNREVIEWED) for line in found if line.experiment == name]
                kept.keep(name, key, lines)
        return found

    def _kept_causes(self) -> KeptCauses | None:
        """Return the causes of earlier replays; None where trials that are run again may say something new."""
        settings = self._session.settings
        if not self._session.access.calls_nobody or settings.engine != "local" or settings.metamorphic:
            return None
        from rag_harness.derived.attribution.kept_causes import KeptCauses

        return KeptCauses(settings, self._session.output, self._trials.equipment.prompts.get().keep_file)

    def _key(self, kept: KeptCauses | None, name: str, table: SuiteTable) -> str:
        """Return the key of the causes of an experiment; empty where it is no longer, or not known, what answered."""
        from rag_harness.errors import RagHarnessError

        session, record = self._session, self._findings.manifest.suites[name]
        try:
            experiment = self._registered(name)
            if kept is None or experiment is None or session.identities.reuses_nothing(experiment):
                return ""
            fingerprint = session.identities.fingerprint(experiment)
            if fingerprint not in record.fingerprints:
                return ""
            return kept.key(record, table, [name, fingerprint, session.parts.data(experiment.data).digest])
        except (OSError, ValueError, RagHarnessError):
            return ""

    def _registered(self, name: str) -> Experiment | None:
        """Return an experiment that can be built again. A pipeline that only a fixture makes is not run again."""
        from rag_harness.pipelines import is_known

        # If a user's fixture took a registered name, its fingerprint differs from the registered experiment's.
        return self._session.experiments.registered(name) if is_known(name, self._session.settings) else None

    def print(self, terminal: pytest.TerminalReporter) -> None:
        """Print why trials failed, if that was asked for."""
        causes = self._causes
        shown = None if causes is None else lambda: self._lines(causes)
        print_section(terminal, "rag causes", self._problem, shown)

    def _lines(self, causes: list[CauseLine]) -> list[str]:
        from rag_harness.derived.attribution.causes_text import cause_lines

        return cause_lines(causes, self._session.settings.output, answers=self._answers)
