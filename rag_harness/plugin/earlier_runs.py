"""Suites that earlier runs left in the output folder. They may be judged together with this run's suites."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rag_harness.plugin.run_data import RunData
    from rag_harness.plugin.session import RagSession
    from rag_harness.results.manifest import SuiteRecord


def left_by_earlier_runs(
    session: RagSession, data: RunData, looked_at: Mapping[str, SuiteRecord], wanted: Collection[str]
) -> dict[str, SuiteRecord]:
    """Return the complete suites of earlier runs whose data have not changed since.

    Args:
        session: state of the run.
        data: of the run.
        looked_at: suites of this run; they are left out.
        wanted: suites that gates name; for these it is checked whether this run would make the same rows.
    """
    from rag_harness.errors import DataError
    from rag_harness.results.cases import CaseFile
    from rag_harness.results.manifest import read_manifest

    output = session.output
    try:
        before = read_manifest(output)
    except DataError:
        return {}  # the first run, or a file that something else wrote
    found: dict[str, SuiteRecord] = {}
    for name, record in before.suites.items():
        files = output / record.file, CaseFile.place(output, record.cases)
        is_there = name not in looked_at and record.is_complete and all(file.is_file() for file in files)
        if is_there and _is_about_the_same(record, before.digests.get(record.data), data):
            made = record.made or before.date
            is_current = _is_current(session, name, record, made) if name in wanted else None
            found[name] = record.model_copy(update={"made": made, "resumed": "all", "is_current": is_current})
    return {name: _owing_now(record, looked_at) for name, record in found.items()}


def _owing_now(record: SuiteRecord, looked_at: Mapping[str, SuiteRecord]) -> SuiteRecord:
    """Return a suite with what its answers owe now: this run has written the cases anew that it shares."""
    of_now = next((each for each in looked_at.values() if each.cases == record.cases), record)
    return record.model_copy(update={"demands": of_now.demands})


def _is_about_the_same(record: SuiteRecord, digest: str | None, data: RunData) -> bool:
    from rag_harness.errors import RagHarnessError

    try:
        # This run may lack the data. Data that cannot be read count as changed.
        return digest == data.digest(record.data) and record.pages in ("", data.pages(record.data))
    except (RagHarnessError, OSError):
        return False


def _is_current(session: RagSession, name: str, record: SuiteRecord, made: str) -> bool | None:
    """Whether this run would resume all rows of a suite; None if that cannot be known."""
    from rag_harness.errors import RagHarnessError
    from rag_harness.results.dates import seconds_of

    try:
        experiment = session.experiments.known(name)
        if experiment is None or session.identities.reuses_nothing(experiment):
            return None
        is_same = [session.identities.fingerprint(experiment)] == record.fingerprints
        return is_same and not (record.replayed and session.identities.has_recorded_since(name, seconds_of(made)))
    except (RagHarnessError, OSError):
        return None  # for example, a key is missing
