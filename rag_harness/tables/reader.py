"""Read the files of an output folder into a table for each suite, and saved runs for comparison."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from rag_harness.core.errors import DataError, SettingsError, unknown
from rag_harness.core.files import json_digest, write_atomically
from rag_harness.core.json_text import read_json
from rag_harness.core.settings.table import names_in
from rag_harness.core.types import GOLDEN, is_in
from rag_harness.evaluation.measures import Measure, default_measures, is_judged, measure_named
from rag_harness.evaluation.measures.expectations import of_versions
from rag_harness.evaluation.measures.measure import is_of_conversation
from rag_harness.evaluation.measures.metamorphic import metamorphic_of
from rag_harness.pipelines.experiments import result_path
from rag_harness.records.cases import CaseFile
from rag_harness.records.manifest import (
    MANIFEST,
    EndsAgain,
    RunManifest,
    SuiteRecord,
    awaited,
    chooser_of,
    differ,
    missing_of,
    panel_label,
    read_manifest,
    repeat_fingerprint,
    repeat_name,
    runs_near,
)
from rag_harness.records.row import first_problem
from rag_harness.records.scores import CHECKED, SCORES, read_scores
from rag_harness.runs.gates.configuration import measures_by_suite
from rag_harness.tables.blocks import Mask, RowBlock, Totals
from rag_harness.tables.column_cache import SEGMENT, read_blocks, read_score_blocks
from rag_harness.tables.judged_columns import TAKEN_OUT, Growing, JudgedColumns
from rag_harness.tables.requested_measures import measures_of
from rag_harness.tables.suite_table import CaseState, Column, SuiteTable, clusters_in
from rag_harness.tables.wording import many_errors_said

MeasuresOf = Callable[[str], Sequence[Measure]]
"""Returns the measures that are wanted of a suite."""
_UNMET = {"retrieval": "no retrieval", "answer": "no answer"}


def read_tables(output: Path, measures: MeasuresOf, manifest: RunManifest | None = None) -> dict[str, SuiteTable]:
    """Return a table of every suite, by its name. Rows are read a block at a time and not kept.

    Args:
        output: folder of the runs.
        measures: returns the measures of each suite.
        manifest: the suites; by default all complete ones of the folder, of earlier runs too.

    Raises:
        DataError: ``run.json`` or the cases are missing or damaged.
    """
    manifest = manifest or read_manifest(output)
    cases = {name: CaseFile(output, name) for name in {record.cases for record in manifest.suites.values()}}
    try:
        tables = {
            name: _read_table(output / record.file, name, record, cases[record.cases], measures(name))
            for name, record in sorted(manifest.suites.items())
        }
        for name, table in tables.items():
            table.later = cache(partial(_later, output, name, manifest.suites[name], table))
        named = str(manifest.settings.get("cluster") or "")
        alike = {name: clusters_in(file, named) for name, file in cases.items()}
        for name, table in tables.items():
            table.foreign = manifest.suites[name].foreign
            table.unknown_pages = manifest.suites[name].unknown_pages
            table.alike = alike[manifest.suites[name].cases]
        return tables
    finally:
        for file in cases.values():
            file.close()


def read_repeat(output: Path, name: str, repeat: int, record: SuiteRecord, measures: Sequence[Measure]) -> SuiteTable:
    """Return the table of an experiment's repeat of this number, from 2. Missing answers count as lost.

    Raises:
        DataError: the cases are missing or damaged.
    """
    fingerprints = [repeat_fingerprint(each, repeat) for each in record.fingerprints]
    ends = record.again.get(repeat, EndsAgain())
    changed = {"fingerprints": fingerprints, "ended": ends.ended, "taken_out": ends.taken_out}
    again, cases = record.model_copy(update=changed), CaseFile(output, record.cases)
    try:
        return _read_table(result_path(output, repeat_name(name, repeat)), name, again, cases, measures)
    finally:
        cases.close()


def _later(output: Path, name: str, record: SuiteRecord, first: SuiteTable) -> Sequence[SuiteTable]:
    """Return the tables of the answers number 2 and up. Answers that are computed are all like the first one."""
    if record.computes:
        return [first] * (record.answers - 1)
    looked_at = [column.measure for column in first.columns.values()]
    return [read_repeat(output, name, repeat, record, looked_at) for repeat in range(2, record.answers + 1)]


def _read_table(rows: Path, name: str, record: SuiteRecord, cases: CaseFile, measures: Sequence[Measure]) -> SuiteTable:
    measures = of_versions(measures, record.rubrics)
    reading = _Reading(name, record, cases, measures)
    for block in read_blocks(rows, measures, cases, SEGMENT):
        reading.take(block)
    reading.add_scores(rows.parent / SCORES / rows.name, rows.parent / CHECKED / rows.name)
    return reading.table()


class _Reading:
    """A table as it grows."""

    def __init__(self, name: str, record: SuiteRecord, cases: CaseFile, measures: Sequence[Measure]) -> None:
        self._name, self._cases = name, cases
        self._fingerprints = frozenset(record.fingerprints)
        self._has_come = _which(cases, awaited(record), record.selected == "all" and not missing_of(record))
        self._resumed = _which(cases, chooser_of(record.resumed), record.resumed == "all")
        self._states = _states_before(record, cases)
        self._taken_out = dict.fromkeys(record.taken_out, TAKEN_OUT)
        self._ended = _which(cases, record.ended.__contains__, False) if record.ended else None
        self._totals = Totals(len(cases.ids))
        self._says_retrieval = record.retrieves
        self._if_retrieves: dict[str, Column] = {}
        self._columns = {measure.name: Growing(measure, len(cases.ids)) for measure in measures}
        self._judged = JudgedColumns(self._columns, record.authors, cases.ids, record.panel)

    def take(self, block: RowBlock) -> None:
        """Take the rows of a block. Rows of another run, and later rows of the same case, are left out."""
        rows = self._counted(block)
        positions, ok = block["position"][rows], block["ok"][rows]
        self._states[positions] = np.where(ok, CaseState.OK, CaseState.ERROR)
        self._totals.take(block, rows, self._resumed)
        answered = np.zeros(len(block), np.bool_)
        answered[rows[ok]] = True
        found = block.found.of(answered).found()
        for column in self._columns.values():
            column.take(block, rows, found)
        self._judged.note(block, rows[ok])

    def _counted(self, block: RowBlock) -> npt.NDArray[np.intp]:
        is_of_run = np.array([each in self._fingerprints for each in block.texts.fingerprints], np.bool_)
        positions = block["position"]
        counts = self._has_come[positions] & (self._states[positions] == CaseState.LOST)
        rows = np.flatnonzero(counts & is_of_run[block["fingerprint"]])
        _, first = np.unique(positions[rows], return_index=True)
        return rows[np.sort(first)]

    def add_scores(self, judged: Path, checked: Path) -> None:
        """Add the scores of judges and of metamorphic checks to the rows."""
        self._judged.read(read_score_blocks(judged, self._cases, SEGMENT))
        self._judged.read_checks(read_score_blocks(checked, self._cases, SEGMENT))

    def table(self) -> SuiteTable:
        """Return the table, with the cases that have no row."""
        for position in np.flatnonzero(self._states == CaseState.LOST):
            kept = self._cases[int(position)]
            for column in self._columns.values():
                column.lose(int(position), kept)
        self._judged.close()
        for column in self._columns.values():
            if is_of_conversation(column.measure):
                column.gather(self._conversations().values(), self._unknown)
        table = SuiteTable(self._cases.ids, self._cases.labels, self._states, self._finished(), self._totals)
        table.if_retrieves = self._if_retrieves
        table.categories, table.said_again = self._judged.categories(), self._judged.said_again()
        table.panels, table.correct_by_judge = self._judged.panels(), self._judged.correct_by
        table.ended = self._ended
        return table

    def _finished(self) -> dict[str, Column]:
        found = {}
        for name, column in self._columns.items():
            unmet = self._unmet(column.measure)
            found[name] = column.without_any(unmet) if unmet else column.finished(partial(self._why_not, column))
            if unmet == _UNMET["retrieval"] and self._totals.says_retrieval is None:
                self._if_retrieves[name] = column.finished(partial(self._why_not, column))
        return found

    def _why_not(self, column: Growing, place: int) -> str:
        return column.measure.applies(self._cases[place].case)

    def _conversations(self) -> Mapping[str, list[int]]:
        """Return the positions of the turns of each conversation, in their order."""
        found: dict[str, list[int]] = {}
        for position, labels in enumerate(self._cases.labels):
            if name := labels.get("conversation", ""):
                found.setdefault(name, []).append(position)
        return found

    def _unknown(self, first: int) -> str:
        """Return why it is not known what a conversation has come to; empty where it is."""
        return self._taken_out.get(self._cases.labels[first].get("conversation", ""), "")

    def _unmet(self, measure: Measure) -> str:
        """Return what the measure needs and the experiment never does; "" where it does all, or no row can tell."""
        totals = self._totals
        tells_nothing = totals.rows == totals.errors
        answers = self._name != GOLDEN and (totals.answers or tells_nothing)
        retrieves = totals.retrieves or tells_nothing or self._says_retrieval
        does = {"retrieval": retrieves, "answer": answers}
        return next((_UNMET[need] for need in measure.needs if not does[need]), "")


def _states_before(record: SuiteRecord, cases: CaseFile) -> npt.NDArray[np.uint8]:
    """Return the states before a row is read. Selected cases count as lost until their row comes."""
    is_selected, not_run = chooser_of(record.selected), frozenset([*record.not_run, *record.settled, *record.ended])
    waits = _which(
        cases, lambda case: is_selected(case) and case not in not_run, record.selected == "all" and not not_run
    )
    return np.where(waits, CaseState.LOST, CaseState.LEFT_OUT).astype(np.uint8)


def _which(cases: CaseFile, is_one: Callable[[str], bool], every: bool) -> Mask:
    """Return a mask of the cases for which ``is_one`` holds. ``every`` says that it holds for all, without asking."""
    if every:
        return np.ones(len(cases.ids), np.bool_)
    return np.fromiter(map(is_one, cases.ids), np.bool_, len(cases.ids))


def asked_measures(output: Path, manifest: RunManifest, suite: str) -> list[Measure]:
    """Return the measures of a suite: those of every run, the judged ones, those of its checks and of its gates.

    Raises:
        SettingsError: the run was judged on a measure that is not registered here.
    """
    record, k = manifest.suites[suite], int(manifest.settings.get("k") or 10)
    kept = {measure.name: measure for measure in default_measures(suite == GOLDEN, k)}
    checked = metamorphic_of({score.measure for score in read_scores(output / CHECKED / record.file)})
    played = ["goal_reached"] if record.history == "played" else []
    more = dict.fromkeys(
        [
            *(*played, *record.judged, *checked, *_gated(manifest.settings, suite, k)),
            *(*_sliced(manifest.settings, k), *_named(manifest.settings)),
        ]
    )
    return [*kept.values(), *(measure_named(name) for name in more if name not in kept)]


def gated_measures(settings: dict[str, Any], suite: str) -> list[str]:
    """Return the measures that the gates of a run are on for a suite, sorted."""
    return sorted(set(_gated(settings, suite, int(settings.get("k") or 10))))


def _gated(settings: dict[str, Any], suite: str, k: int) -> Iterator[str]:
    """Yield the measures that the run's gates name. A gate on a plug-in that is not installed here names none."""
    for text in _gates(settings):
        try:
            named = measures_by_suite([text], k).get(suite, [])
            yield from (measure_named(name).name for name in named)
        except SettingsError:
            continue


def _sliced(settings: dict[str, Any], k: int) -> Iterator[str]:
    """Yield the measures of comparisons by slice that are known here."""
    for text in slices_in(settings):
        try:
            yield from measures_of([text], k)
        except SettingsError:
            continue


def _named(settings: dict[str, Any]) -> Iterator[str]:
    """Yield the measures that the run named and that are read off its rows: judged ones are in its record."""
    options = [found for option in ("measures", "headline") if isinstance(found := settings.get(option), list)]
    for name in names_in(each for found in options for each in found if isinstance(each, str)):
        try:
            if not is_judged(name):
                yield measure_named(name).name
        except SettingsError:
            continue


def slices_in(settings: Mapping[str, Any]) -> Sequence[str]:
    """Return the slices in a run's settings; empty for settings of a release without slices."""
    found = settings.get("slices")
    return [text for text in found if isinstance(text, str)] if isinstance(found, list) else []


def _gates(settings: dict[str, Any]) -> Sequence[str]:
    def listed(found: object) -> Iterable[Any]:
        return found if isinstance(found, list) else []

    of_data = (listed(each.get("gates")) for each in listed(settings.get("data")) if isinstance(each, dict))
    texts = [*listed(settings.get("gate")), *(text for texts in of_data for text in texts)]
    return [text for text in texts if isinstance(text, str)]


# A saved run for comparison: a small sorted JSON file, one case a line, so that a review shows what changed.

SliceLabels = Mapping[str, str]
_Value = Annotated[float, Field(allow_inf_nan=False)]
# The values take the form that they have when read back: a tuple that becomes a list would look like a difference.
_Parts = Annotated[dict[str, Any], BeforeValidator(lambda parts: json.loads(json.dumps(parts, default=str)))]
_DEPTH_OF_CASES = 3
_DIGEST = "digest"


class _Saved(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="ignore")


class SavedCase(_Saved):
    """A case of the data; ``left out`` was not selected. ``values`` lacks the measures without a value."""

    state: Literal["ok", "error", "lost", "left out"] = "ok"
    slices: dict[str, str] = {}
    values: dict[str, _Value] = {}


class SavedSuite(_Saved):
    """An experiment or ``golden``. It implements the gates' protocol of a suite."""

    cases: dict[str, SavedCase]
    depth: int | None = None
    """The highest number of hits of a case; None where nothing was retrieved, or where the number was not kept."""

    def total_of(self, where: SliceLabels, /) -> int:
        """Count the cases in the data."""
        return len(self._in(where))

    def selected_of(self, where: SliceLabels, /) -> int:
        """Count the cases that the run was to look at."""
        return sum(case.state != "left out" for case in self._in(where).values())

    def lost_of(self, where: SliceLabels, /) -> int:
        """Count the cases that were lost to a crash."""
        return sum(case.state == "lost" for case in self._in(where).values())

    def values(self, measure: str, where: SliceLabels, /) -> dict[str, float]:
        """Return the value of each case by its id; empty for a measure that was not saved."""
        cases = self._in(where).items()
        return {case_id: case.values[measure] for case_id, case in cases if measure in case.values}

    def absent(self, measure: str, where: SliceLabels, /) -> dict[str, int]:
        """Count the selected cases without a value. The reason is not kept."""
        without = self.selected_of(where) - len(self.values(measure, where))
        return {"no saved value": without} if without else {}

    def unmeasured(self, measure: str, where: SliceLabels, /) -> int:  # noqa: ARG002
        """Return 0: the file does not keep this."""
        return 0

    def left_out(self, measure: str, where: SliceLabels, /) -> dict[str, int]:  # noqa: ARG002
        """Return nothing: the file does not keep this."""
        return {}

    def outcomes(self, where: SliceLabels, /) -> dict[str, int]:  # noqa: ARG002
        """Return nothing: the file does not keep this."""
        return {}

    @property
    def errors_said(self) -> str:
        """Say that too many trials ended with an error to call it better or worse; empty where few did."""
        states = [case.state for case in self.cases.values()]
        return many_errors_said(states.count("error"), states.count("error") + states.count("ok"))

    def measures(self) -> list[str]:
        """Return the measures that at least one case has a value of, sorted."""
        return sorted({measure for case in self.cases.values() for measure in case.values})

    def _in(self, where: SliceLabels) -> dict[str, SavedCase]:
        return {case_id: case for case_id, case in self.cases.items() if is_in(case.slices, where)}


class SavedRun(_Saved):
    """A run: what it was made of, and its results.

    ``fingerprint`` has the parts ``data``, ``models`` and ``settings``, each of any depth. Runs with different ``data``
    are not comparable; the other parts are what is compared. ``date`` is ISO 8601. By suite, ``judges`` has judge,
    model and revision of its judgements, ``panels`` how a panel of them decides, ``judged`` what was judged,
    ``rubrics`` the versions of its rubrics by measure, ``demands`` what its answers owed, as digests by measure,
    ``gated`` the measures that its gates are on, ``code`` the fingerprints of its rows, and ``pages`` the digest of the
    documents behind its questions; a file of an older release lacks the last seven. ``asked`` are the suites that are
    asked in each run, since what answers cannot be seen.
    """

    schema_version: Literal[1] = 1
    date: str
    commit: str = ""
    packages: dict[str, str] = {}
    fingerprint: _Parts
    suites: dict[str, SavedSuite]
    judges: dict[str, list[tuple[str, str, str]]] = {}
    panels: dict[str, str] = {}
    rubrics: dict[str, dict[str, int]] = {}
    judged: dict[str, list[str]] = {}
    demands: dict[str, dict[str, str]] = {}
    gated: dict[str, list[str]] = {}
    code: dict[str, list[str]] = {}
    pages: dict[str, str] = {}
    asked: list[str] = []
    clusters: dict[str, dict[str, str]] = {}
    """Cluster of each case, by suite; suites whose cases stand alone are not there."""

    def judged_otherwise(self, other: SavedRun, suite: str, measure: str) -> str:
        """Return how the judges of a measure differ in ``other``. Scores of two judges are not comparable."""
        mine, theirs = self._judged_by(suite), other._judged_by(suite)
        if not (is_judged(measure) or measure in self.judged.get(suite, ())):
            return ""
        if mine == theirs:
            same = self.rubrics.get(suite, {}).get(measure) == other.rubrics.get(suite, {}).get(measure)
            return "" if same else f"judged by other criteria of {measure}"
        return f"judged by {_judges(*theirs)}, this run by {_judges(*mine)}"

    def owed_otherwise(self, other: SavedRun, suite: str, measure: str) -> bool:
        """Whether the answers of a suite owed other things in ``other``. Then their figures are of two kinds."""
        return differ(self.demands.get(suite, {}), other.demands.get(suite, {}), measure)

    def _judged_by(self, suite: str) -> tuple[str, list[tuple[str, str, str]]]:
        return self.panels.get(suite, ""), self.judges.get(suite, [])


def _judges(panel: str, authors: Sequence[tuple[str, str, str]]) -> str:
    if panel:
        return panel_label(panel, [author[:2] for author in authors])
    return " and ".join(f"{model} ({judge}, {revision[:8]})" for judge, model, revision in authors) or "nobody"


def saved_run(manifest: RunManifest, tables: Mapping[str, SuiteTable]) -> SavedRun:
    """Return a run as a baseline: the values of every case, and what the run was made of."""
    suites = {name: saved_suite(table) for name, table in tables.items() if table.selected_of({})}
    settings = manifest.settings
    return SavedRun(
        date=manifest.date,
        commit=manifest.commit,
        packages=manifest.packages,
        fingerprint={
            "data": manifest.digests,
            "models": {name: settings.get(name) for name in _MODELS},
            "settings": {name: settings.get(name) for name in _OTHER},
        },
        suites=suites,
        judges={name: record.authors for name, record in manifest.suites.items() if record.authors},
        panels={name: record.panel for name, record in manifest.suites.items() if record.panel},
        judged={name: record.judged for name, record in manifest.suites.items() if record.judged},
        rubrics={name: record.rubrics for name, record in manifest.suites.items() if record.rubrics},
        demands={name: record.demands for name, record in manifest.suites.items() if record.demands},
        gated={name: found for name in suites if (found := gated_measures(settings, name))},
        code={
            name: sorted(record.made_of or record.fingerprints)
            for name, record in manifest.suites.items()
            if name in suites
        },
        pages={name: record.pages for name, record in manifest.suites.items() if name in suites and record.pages},
        asked=[name for name, record in manifest.suites.items() if name in suites and record.made_of],
        clusters={name: tables[name].cluster_by_case or {} for name in suites if tables[name].alike is not None},
    )


_MODELS = ("profile", "mode", "chat_model", "embed_model", "rerank_model", "retriever")
_OTHER = ("top_k", "candidates", "chunk_size", "chunk_overlap", "temperature", "seed", "embed_max_tokens", "k")


def saved_suite(table: SuiteTable) -> SavedSuite:
    """Return the values of each case of a table."""
    values = {measure: table.values(measure, {}) for measure in table.columns}
    cases = {
        case_id: SavedCase(
            state=table.state_of(position),
            slices=dict(table.labels[position]),
            values={measure: found[case_id] for measure, found in values.items() if case_id in found},
        )
        for position, case_id in enumerate(table.ids)
        if table.ended is None or not table.ended[position]
    }
    return SavedSuite(cases=cases, depth=table.depth)


def save(file: Path, run: SavedRun) -> None:
    """Write the run atomically: a reader sees the old file or the whole new one. It has a digest of all else in it."""
    content = run.model_dump(mode="json")
    for rare in ("panels", "demands", "gated", "asked", "clusters"):
        if not content[rare]:
            del content[rare]
    content["depths"] = {name: suite["depth"] for name, suite in content["suites"].items() if suite["depth"]}
    content["suites"] = {name: suite["cases"] for name, suite in content["suites"].items()}
    content[_DIGEST] = _digest_of(content)
    write_atomically(file, (_json(content, _DEPTH_OF_CASES) + "\n").encode())


def has_digest(file: Path) -> bool:
    """Whether a saved run has a digest, by which an edit of it is seen. Files of older releases have none."""
    return bool(_read(file).get(_DIGEST))


def edited_said(file: Path) -> str:
    """Say that a saved run is not as it was written, and what to do; empty where it is, or where nobody can tell."""
    content = _read(file)
    is_as_written = content.get(_DIGEST, "") in ("", _digest_of(content))
    said = f"{file.name} was changed after it was written; make it again with --rag-save {file.stem}"
    return "" if is_as_written else said


def check_as_written(file: Path) -> None:
    """Refuse a saved run that was edited.

    Raises:
        DataError: it is not as it was written; says what to do.
    """
    if edited_said(file):
        raise DataError(f"{file} was changed after it was written; make it again with --rag-save {file.stem}.")


def _read(file: Path) -> dict[str, Any]:
    """Return the content of a saved run; nothing where it is none, as who loads it says."""
    try:
        content = read_json(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _digest_of(content: Mapping[str, Any]) -> str:
    """Return the digest of all values of a saved run, however its lines are broken."""
    return json_digest({name: value for name, value in content.items() if name != _DIGEST})


def load_saved_run(file: Path) -> SavedRun:
    """Read a saved run.

    Raises:
        DataError: the file is missing or is not a saved run; says what is wrong and what to do.
    """
    if not file.is_file():
        known = [each.stem for each in file.parent.glob(f"*{file.suffix}")]
        raise DataError(f"{unknown('baseline', file.stem, known)} Looked for {file}. Save a run with --rag-save NAME.")
    try:
        content = read_json(file.read_text(encoding="utf-8-sig"))
        depths = content.get("depths", {})
        suites = {name: {"cases": cases, "depth": depths.get(name)} for name, cases in content["suites"].items()}
        return SavedRun.model_validate({**content, "suites": suites})
    except ValidationError as error:
        problem = first_problem(error)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        problem = f"{type(error).__name__}: {error}"
    raise DataError(f"{file} is not a saved run: {problem}. Save it again with --rag-save {file.stem}.")


def _json(value: Any, depth: int, indent: str = " ") -> str:
    """Write JSON with one line for each member down to ``depth``, and deeper values on one line."""
    if not depth or not isinstance(value, dict) or not value:
        return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)
    members = (
        f"{indent}{json.dumps(key, ensure_ascii=False)}: {_json(value[key], depth - 1, indent + ' ')}"
        for key in sorted(value)
    )
    return "{\n" + ",\n".join(members) + f"\n{indent[:-1]}}}"


def read_run(named: str, baselines: Path = Path("baselines")) -> SavedRun:
    """Return the values of each case of a run.

    Args:
        named: an output folder, a file that --rag-save wrote, or its name.
        baselines: the folder of such names.

    Raises:
        DataError: it is none of these, or damaged, or a file that was edited; says where it was searched.
    """
    place = Path(named)
    if place.is_dir():
        return _of_output(place)
    for file in (place, baselines / f"{named}.json"):
        if file.is_file():
            check_as_written(file)
            return load_saved_run(file)
    raise DataError(
        f"{named!r} is not a run: there is neither a folder {place} with {MANIFEST} nor a file "
        f"{baselines / named}.json. Name the output folder of a run, or what --rag-save wrote of "
        f"it.{runs_near(place, MANIFEST)}"
    )


def _of_output(output: Path) -> SavedRun:
    manifest = read_manifest(output)
    return saved_run(manifest, read_tables(output, partial(asked_measures, output, manifest)))
