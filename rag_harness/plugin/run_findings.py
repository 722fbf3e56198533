"""The results of the run, read from its files: the manifest, the tables, and what is computed from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from rag_harness.measures.golden_run import RetrievalResult
    from rag_harness.plugin.recorder import Recorder
    from rag_harness.plugin.run_record import RunRecord
    from rag_harness.plugin.session import RagSession
    from rag_harness.plugin.table_measures import TableMeasures
    from rag_harness.report.abstention import Abstention
    from rag_harness.report.noise import Noise
    from rag_harness.report.pairwise import PairDifference
    from rag_harness.report.panels import PanelFinding
    from rag_harness.report.played import Played
    from rag_harness.report.standing import Standings
    from rag_harness.report.suite_table import SuiteTable
    from rag_harness.results.manifest import RunManifest, SuiteRecord


class RunFindings:
    """The findings of a run, in the process that writes. The first question has the record written.

    Args:
        session: state of the run.
        recorder: knows why files could not be written.
        record: writes what is read.
        measures: of the tables.
    """

    def __init__(self, session: RagSession, recorder: Recorder, record: RunRecord, measures: TableMeasures) -> None:
        self._session, self._recorder, self._record, self.measures = session, recorder, record, measures
        self.more: dict[str, Any] = {}
        """What other parts add to ``summary.json``, by its key."""

    @property
    def output(self) -> Path:
        """The folder of the run's files."""
        return self._session.output

    @property
    def is_there(self) -> bool:
        """Whether the files of the run are complete."""
        return self._record.is_there

    @property
    def is_readable(self) -> bool:
        """Whether there is something to read. If a file could not be written there is not, and a message says so."""
        if self._recorder.broken is None:
            with suppress(OSError):
                self._record.leave(interrupted=True)
        if self._recorder.broken is not None:
            self._recorder.tell_once()
        return self._recorder.broken is None

    @cached_property
    def manifest(self) -> RunManifest:
        """The manifest of the run, read from its file."""
        from rag_harness.results.manifest import read_manifest

        self._record.leave(interrupted=True)
        found = read_manifest(self.output)
        return found.model_copy(update={"suites": {n: each for n, each in found.suites.items() if self._counts(each)}})

    def _counts(self, suite: SuiteRecord) -> bool:
        """Whether a suite belongs to this run: looked at now, or left by an earlier run with the rows of today."""
        return not suite.made or bool(suite.is_current)

    @cached_property
    def tables(self) -> Mapping[str, SuiteTable]:
        """The table of every suite with a selected case."""
        from rag_harness.report.tables import read_tables

        self._record.leave(interrupted=True)
        return read_tables(self.output, self.measures.of, self.manifest)

    def has_settled(self, suite: str) -> bool:
        """Whether some cases of a suite were not asked because its gates were settled."""
        record = self.manifest.suites.get(suite)
        return record is not None and bool(record.settled)

    @cached_property
    def pairwise(self) -> Sequence[PairDifference]:
        """The comparison of each pair of experiments on each judged measure."""
        from rag_harness.report.pairwise import pairwise

        suites = self.manifest.suites
        return pairwise(self.tables, suites) if any(record.authors for record in suites.values()) else []

    @cached_property
    def standings(self) -> Standings:
        """Which experiment wins on the slices that were asked for."""
        from rag_harness.report.slices_asked import read_slices
        from rag_harness.report.standing import Standings

        settings = self._session.settings
        if not settings.slices:
            return Standings()
        from rag_harness.report.standings import standings

        return standings(self.tables, self.manifest.suites, read_slices(settings.slices, settings.k))

    @property
    def found(self) -> dict[str, Any]:
        """The sections that ``summary.json`` has beside aggregates and gates."""
        pairs = {"pairwise": [cell.as_json() for cell in self.pairwise]} if self.pairwise else {}
        sure = {"abstention": {each.experiment: each.as_json() for each in self.abstentions}}
        noise = {"noise": {each.experiment: each.as_json() for each in self.noises}} if self.noises else {}
        slices = {"slices": [each.as_json() for each in self.standings.found]} if self.standings.found else {}
        lines = {name: each.model_dump() for name, each in self.manifest.skipped.items()}
        skipped = {"skipped": lines} if lines else {}
        panels = {"panels": [each.as_json() for each in self.panels]} if self.panels else {}
        played = {"played": {name: each.as_json() for name, each in self.played.items()}} if self.played else {}
        return pairs | panels | skipped | played | (sure if self.abstentions else {}) | noise | slices | self.more

    @cached_property
    def played(self) -> Mapping[str, Played]:
        """What became of the conversations that simulated users play, by experiment."""
        if not any(record.user for record in self.manifest.suites.values()):
            return {}
        from rag_harness.report.played import played_of

        return played_of(self.output, self.manifest, self.tables)

    @cached_property
    def panels(self) -> list[PanelFinding]:
        """How far the judges of a panel agree, and what they are worth by people's labels."""
        if not any(record.panel for record in self.manifest.suites.values()):
            return []
        from rag_harness.report.panels import panel_findings

        settings = self._session.settings
        return panel_findings(self.tables, settings.folder("judges"))

    @cached_property
    def noises(self) -> list[Noise]:
        """Where the noise of each experiment is, if --rag-repeats was given."""
        if not self._session.settings.repeats:
            return []
        from rag_harness.report.noise import noises

        return noises(self.output, self.manifest, self.tables, self._session.settings)

    @cached_property
    def abstentions(self) -> list[Abstention]:
        """How each experiment's stated confidence relates to being right; only experiments that state one."""
        from rag_harness.report.abstention import abstentions

        return abstentions(self.tables)

    @cached_property
    def retrievals(self) -> list[RetrievalResult]:
        """The hits for each golden entry."""
        from rag_harness.report.retrieved import read_retrievals

        return list(read_retrievals(self.output, self.manifest))
