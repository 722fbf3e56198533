"""Tests whose questions are affected by changes since a git revision."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rag_harness.core.errors import DataError, SettingsError
from rag_harness.core.escaping import terminal_line
from rag_harness.core.types import GOLDEN
from rag_harness.data.query_lines import turn_id
from rag_harness.frontends.pytest_plugin.items import trial_id_of
from rag_harness.frontends.pytest_plugin.terminal import usage_error, write_section
from rag_harness.frontends.pytest_plugin.workers import AFFECTED, LEFT_OUT

if TYPE_CHECKING:
    from rag_harness.authoring.questions.document_changes import DataChange, DatedQuestion, Why
    from rag_harness.core.git import Since
    from rag_harness.core.settings import Settings
    from rag_harness.core.types import Case
    from rag_harness.data.datasets import Data
    from rag_harness.frontends.pytest_plugin.session import RagSession
    from rag_harness.records.manifest import Some


class Affected:
    """Selects the affected tests, in every process. Without the option it does nothing.

    The controller tells each worker which questions are affected. A worker must not find out itself: the controller has
    begun to write rows by then, and the workers would collect different tests.

    Args:
        session: state of the run.
    """

    def __init__(self, session: RagSession) -> None:
        self._session = session
        self._found: dict[str, Mapping[str, Why]] = dict(AFFECTED.received(session.config))
        self._changes: dict[str, Changes] = {}
        self._left_out = 0
        self._is_said = False

    @property
    def revision(self) -> str:
        """The revision that the option names; empty if it was not given."""
        return self._session.settings.affected_by

    def of_suite(self, suite: str) -> Mapping[str, Why]:
        """Return the affected questions of an experiment, or entries of the golden suite, each with its reason.

        Raises:
            PrerequisiteError: git, the documents or the questions cannot be read.
        """
        return self._of_data(GOLDEN if suite == GOLDEN else f"data {self._session.cases.data_of(suite)}")

    def _of_data(self, key: str) -> Mapping[str, Why]:
        if key not in self._found:
            self._found[key] = self._find(key)
        return self._found[key]

    def _find(self, key: str) -> Mapping[str, Why]:
        from rag_harness.authoring.questions.document_changes import affected, retrieved_before
        from rag_harness.authoring.questions.document_collection import DocumentCollection
        from rag_harness.core.errors import SettingsError

        golden, settings = key == GOLDEN, self._session.settings
        if settings.save:
            raise SettingsError(
                f"--rag-save={settings.save} keeps a whole run, and --rag-affected-by leaves cases out. Give one of "
                "the two."
            )
        data = self._session.cases.data.get("" if golden else key.removeprefix("data "))
        self._changes[key] = changes = changes_of(data, settings, golden)
        touched = changes.change.pages
        before = retrieved_before(self._session.output, settings.candidates, lambda name: self._is_of(name, key))
        collection = DocumentCollection(data.documents) if touched else None
        return affected(_questions(data, golden), changes.change, before, collection, settings.candidates)

    def _is_of(self, experiment: str, key: str) -> bool:
        golden = experiment == GOLDEN
        return golden if key == GOLDEN else not golden and f"data {self._session.cases.data_of(experiment)}" == key

    @pytest.hookimpl(wrapper=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None, object, object]:
        """Leave out tests whose questions are not affected. Done after all other plugins have selected."""
        result = yield
        if any(trial_id_of(item) for item in items) and self.revision:
            kept, left = self._split(items)
            self._left_out += len(left)
            if left:
                config.hook.pytest_deselected(items=left)
                items[:] = kept
        return result

    def _split(self, items: list[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
        from rag_harness.core.errors import PrerequisiteError

        kept: list[pytest.Item] = []
        left: list[pytest.Item] = []
        try:
            for item in items:
                trial = trial_id_of(item)
                is_kept = trial is None or trial.query_id in self.of_suite(trial.experiment)
                (kept if is_kept else left).append(item)
        except PrerequisiteError as error:
            raise usage_error(error) from None
        return kept, left

    def pytest_report_collectionfinish(self) -> list[str]:
        """Say which questions are affected and which data are not looked at."""
        return self._lines()

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker what is affected, in all data that can be read: only workers know which data are used."""
        from rag_harness.core.errors import PrerequisiteError

        if not self.revision:
            return
        first: PrerequisiteError | None = None
        for key in [*(f"data {name}" for name in self._session.cases.data.names), GOLDEN]:
            try:
                self._of_data(key)
            except PrerequisiteError as error:
                first = first or error
        if not self._found and first is not None:
            raise usage_error(first)
        AFFECTED.send(node, {key: dict(found) for key, found in self._found.items()})

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Learn from a worker whether it left out any test."""
        self._left_out = max(self._left_out, LEFT_OUT.received(node))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Generator[None, object, object]:
        """Let a run that had nothing to ask succeed: pytest calls it "no tests collected".

        Done after all other plugins: some of them restore the exit status that they were called with.
        """
        LEFT_OUT.send(session.config, self._left_out)
        result = yield
        if self._left_out and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK
        return result

    def print(self, terminal: pytest.TerminalReporter) -> None:
        """Print the affected questions, under xdist only: nothing could print them at the beginning."""
        if not self._is_said and (lines := self._lines()):
            write_section(terminal, f"rag affected by {self.revision}", lines)

    def _lines(self) -> list[str]:

        self._is_said = True
        found = [(key, self._found[key], changes) for key, changes in self._changes.items() if key in self._found]
        return [terminal_line(each) for each in lines_of(self.revision, found)] if found else []

    def is_all_of(self, suite: str, selected: Some) -> bool:
        """Whether the selected cases of a suite are all of its affected cases, so nothing else was left out."""
        if not self.revision or selected == "all":
            return False
        affected = {*self.of_suite(suite)}
        if suite != GOLDEN:  # data may have questions that another experiment is asked: those of simulated users
            affected &= {case.query.query_id for case in self._session.cases.all_of(suite)}
        return {*selected} == affected


def _questions(data: Data, golden: bool) -> Iterator[DatedQuestion]:
    from rag_harness.authoring.questions.document_changes import DatedQuestion

    if golden:
        for entry in data.golden:
            pages = {name for each in entry.expected for name in (each, each.rpartition("#")[0]) if name}
            yield DatedQuestion(entry.entry_id, entry.query, frozenset(pages))
    else:
        for case in (*data.cases, *data.scenarios):
            quoted = (quote.filename for quote in case.evidence)
            yield DatedQuestion(
                case.query.query_id, _searched(case), frozenset([*case.qrels, *quoted]), _turn_before(case)
            )


def _searched(case: Case) -> str:
    """Return the words that a question is searched by: a turn that says little, with the user's turn before it."""
    if case.scenario is not None:
        return case.scenario.opening
    before = [each.content for each in case.query.history if each.role == "user"]
    return case.asked_alone or " ".join([*before[-1:], case.query.text])


def _turn_before(case: Case) -> str:
    place = case.query.place
    turn = int(place["turn"]) if place else 1
    return turn_id(place["conversation"], turn - 1) if turn > 1 else ""


# The lines that tell a person what --rag-affected-by has found.

AffectedQueries = Sequence[tuple[str, "Mapping[str, Why]", "Changes"]]
_NAMED = 3


def lines_of(revision: str, found: AffectedQueries) -> list[str]:
    """Return a line for each set of data, and a line for what was not looked at."""
    return [
        f"rag: {line}" for line in [*_affected(revision, found), *_unknown(revision, found), *_code(revision, found)]
    ]


def _affected(revision: str, found: AffectedQueries) -> Iterator[str]:
    from rag_harness.authoring.questions.document_changes import WHYS

    for key, names, changes in found:
        counts = Counter(names.values())
        said = ", ".join(f"{counts[why]} {words}" for why, words in WHYS.items() if counts[why])
        one, what = ("golden entry", "golden entries") if key == GOLDEN else ("question", "questions")
        pages = len(changes.change.pages)
        of = f"{pages} page{'s' * (pages != 1)} of {changes.folder} changed"
        if not pages and not names:
            yield f"no page of {changes.folder} and none of its {what} has changed since {revision}"
        else:
            who = (
                f"1 {one} is"
                if len(names) == 1
                else f"{len(names) or 'no'} {what if names else one} {'are' if names else 'is'}"
            )
            yield f"{who} affected by {revision}{': ' * bool(said)}{said} ({of})"


def _unknown(revision: str, found: AffectedQueries) -> Iterator[str]:
    for _, _, changes in found:
        if changes.unknown:
            yield f"{changes.unknown} is not in git at {revision}, so all that it asks counts as new"


def _code(revision: str, found: AffectedQueries) -> Iterator[str]:
    files = sorted({path for _, _, changes in found for path in changes.code})
    if files:
        more = f" and {len(files) - _NAMED} more" if len(files) > _NAMED else ""
        yield (
            f"{', '.join(files[:_NAMED])}{more} changed since {revision} too: --rag-affected-by looks at documents and "
            f"questions alone. Where these change answers, run without it."
        )


_CODE = (".py", ".toml", ".ini", ".cfg", ".env")
"""Endings of files in which pipelines and settings are written."""


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes in one set of data.

    Attributes:
        change: pages and questions.
        folder: of the documents, as it was named.
        unknown: the file of questions, if git had no file of that name; else empty.
        code: changed files of the repository that may change answers but are not documents.
    """

    change: DataChange
    folder: str
    unknown: str
    code: tuple[str, ...]


def changes_of(data: Data, settings: Settings, golden: bool) -> Changes:
    """Return what has changed in one set of data since the revision that the settings name.

    Args:
        data: the set.
        settings: of the run.
        golden: whether the golden set is meant instead of the questions.

    Raises:
        SettingsError: git cannot say what changed.
        DataError: the questions cannot be read.
    """
    from rag_harness.authoring.questions.document_changes import DataChange
    from rag_harness.core.git import since

    if data.collection is not None:
        raise SettingsError(
            f"--rag-affected-by={settings.affected_by} looks at a folder of documents, and rag_dataset names a "
            f"collection in its place. Leave one of the two out."
        )
    folder = settings.path(data.folder)
    at = since(folder, settings.affected_by)
    tracked = at.changed()
    pages = _pages(at, folder, tracked | at.untracked(folder)) | _told_otherwise(at, folder, tracked)
    file = data.golden_file if golden else data.queries_file
    now, before = _now_and_before(at, file, tracked, _golden_rows if golden else partial(_rows, mapped=data.mapped))
    rows = frozenset(name for name, row in now.items() if before.get(name) != row)
    return Changes(
        DataChange(pages, rows),
        data.folder,
        file.name if now and not before else "",
        _changed_code(at, folder, tracked),
    )


def _pages(at: Since, folder: Path, paths: frozenset[str]) -> frozenset[str]:
    """Return the ids of the documents among paths, deleted ones included."""
    from rag_harness.data.documents import is_page, is_page_named

    below = at.path_of(folder)
    start = f"{below}/" if below else ""
    found = (path.removeprefix(start) for path in paths if path.startswith(start))
    found = (name for name in found if not any(part.startswith(".") for part in name.split("/")))
    # Of a file that is gone, only the name is left.
    return frozenset(
        name
        for name in found
        if (is_page(folder / name, folder) if (folder / name).exists() else is_page_named(Path(name)))
    )


def _told_otherwise(at: Since, folder: Path, tracked: frozenset[str]) -> frozenset[str]:
    """Return the pages whose entry in structure.json has changed: titles, versions, dates."""
    from rag_harness.data.documents import read_structure

    file = folder / "structure.json"
    now, before = _now_and_before(at, file, tracked, read_structure)
    return frozenset(name for name in now.keys() | before.keys() if now.get(name) != before.get(name))


def _now_and_before(
    at: Since, file: Path, tracked: frozenset[str], read: Callable[[Path], Mapping[str, object]]
) -> tuple[Mapping[str, object], Mapping[str, object]]:
    """Return what a file says now and what it said; two empty mappings if it has not changed."""
    path = at.path_of(file)
    content = at.content(path) if path is not None else None
    if content is not None and path not in tracked:
        return {}, {}
    now = read(file) if file.is_file() else {}
    return now, _read_content(content, file.suffix, read) if content is not None else {}


def _read_content(content: bytes, suffix: str, read: Callable[[Path], Mapping[str, object]]) -> Mapping[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder, f"before{suffix}")
        before.write_bytes(content)
        try:
            return read(before)
        except DataError:
            return {}  # if the old file cannot be read, everything in the file counts as new


def _rows(file: Path, mapped: Mapping[str, str]) -> Mapping[str, object]:
    from rag_harness.data.queries import read_queries

    # Lines that cannot be used stop the run elsewhere, or are skipped.
    return {case.query.query_id: repr(case) for case in read_queries(file, skipped=[], mapped=mapped)}


def _golden_rows(file: Path) -> Mapping[str, object]:
    from rag_harness.data.golden import read_golden

    return {entry.entry_id: repr(entry) for entry in read_golden(file)}


def _changed_code(at: Since, folder: Path, tracked: frozenset[str]) -> tuple[str, ...]:
    """Return the changed files that may change answers but are not documents."""
    below = at.path_of(folder)
    start = f"{below}/" if below else ""
    return tuple(sorted(path for path in tracked if path.endswith(_CODE) and not (start and path.startswith(start))))
