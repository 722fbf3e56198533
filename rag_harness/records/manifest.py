"""The manifest of a run, ``run.json``, and the names of experiments that derive from others."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from math import nan
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, ValidationError, model_serializer

from rag_harness.core.errors import DataError, meant
from rag_harness.core.files import json_digest, meant_beside, write_atomically
from rag_harness.core.package import NAME
from rag_harness.records.row import ExperimentResult, first_problem

# The manifest of a run, ``run.json``.
#
# Its ingredients, the fate of each selected case, and the mark of a run under way.

# ``begun.json``: the mark of a run that has begun and has left no results. What lies beside it is of a run before it,
# and of this one as far as it came.
#
# It is written before anything is asked, and the run's ``run.json`` takes it away. So it stays after whatever ends a
# run without results: a service that is down, a setting that cannot be used, a key press, a killed process.

BEGUN = "begun.json"


class BegunRun(BaseModel):
    """A run that has begun.

    Attributes:
        date: when it began: ISO 8601, UTC; empty where the file is damaged.
        command: the command that began it, without keys.
        why: why it ended without results; empty where nothing could be written any more, or while it is under way.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="ignore")

    date: str = ""
    command: str = ""
    why: str = ""


def write_begun(output: Path, run: BegunRun) -> None:
    """Write the mark.

    Raises:
        OSError: it cannot be written.
    """
    write_atomically(output / BEGUN, (run.model_dump_json(indent=1) + "\n").encode())


def read_begun(output: Path) -> BegunRun | None:
    """Return the run that has begun and has left no results; None where the last one left its results."""
    try:
        return BegunRun.model_validate_json((output / BEGUN).read_bytes())
    except OSError:
        return None
    except ValidationError:
        return BegunRun()


def forget_begun(output: Path) -> None:
    """Take the mark away."""
    (output / BEGUN).unlink(missing_ok=True)


_MOST = 2_000
"""How many folders are looked at."""
_SAID = 5


def no_run(output: Path, manifest: str) -> str:
    """Return the message that ``output`` holds no run, with the folders beside it or in it that hold one.

    Args:
        output: the folder that was named.
        manifest: the file that tells of a run.
    """
    is_there = output.is_dir()
    what = f"{output / manifest} does not describe a run: there is no such file" if is_there else f"No folder {output}"
    return f"{what}.{runs_near(output, manifest) or _begin(output, is_there)}"


def runs_near(output: Path, manifest: str) -> str:
    """Return which folders hold a run, and which was probably meant: those in ``output`` if it is there, else those
    beside it. Empty without any."""
    place = output if output.is_dir() else output.parent
    try:
        found = [each for each in islice(place.iterdir(), _MOST) if (each / manifest).is_file()]
    except OSError:
        return ""
    newest = sorted(found, key=lambda each: -(each / manifest).stat().st_mtime)
    names = [str(place / each.name) for each in newest]
    more = f", and {len(names) - _SAID} more" if len(names) > _SAID else ""
    said = f" Folders here that hold a run: {', '.join(names[:_SAID])}{more}." if names else ""
    near = "" if place == output else meant(output.name, [each.name for each in newest])
    return f"{near}{said}"


def _begin(output: Path, is_there: bool) -> str:
    if is_there:
        return f" Run pytest with --rag-output={output} first."
    near = meant_beside(output, Path.is_dir)
    return f"{near} No folder here holds a run: pytest writes one into output, or where --rag-output says."


# ``run.json`` beside the rows: the ingredients of the run, and the outcome of each selected case.
#
# A report needs only this file, the result files and ``cases/``, even a year later.

MANIFEST = "run.json"
QUERIES = "queries"
"""Name of the data that experiments are run on."""
PLAYED = "+scenarios"
"""Ends the name of the scenarios among data: the turns that simulated users say are cases of their own."""
_PACKAGES = (NAME, "numpy", "qdrant-edge-py", "qdrant-client", "openai", "PyStemmer")

_RARE = (
    "panel",
    "rubrics",
    "demands",
    "own_cases",
    "history",
    "user",
    "skipped",
    "ended",
    "taken_out",
    "again",
    "retrieves",
    "foreign",
    "unknown_pages",
)

Some = Literal["all"] | list[str]
"""Ids of cases; ``all`` means every case of the data."""


class _Record(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="ignore")


class EndsAgain(_Record):
    """How simulated users have ended a repeat of their conversations.

    Attributes:
        ended: as ``ended`` of the suite.
        taken_out: as ``taken_out`` of the suite.
    """

    ended: dict[str, str] = {}
    taken_out: dict[str, str] = {}


class SuiteRecord(_Record):
    """An experiment or ``golden``, in one run.

    Attributes:
        data: name of its data; the cases are in ``cases/<data>.jsonl``.
        own_cases: name of its own file of cases, where its answers have more expectations than others on the same data;
            else empty.
        file: its result file, beside this one.
        fingerprints: fingerprints of this run's rows; other rows of the file do not belong to the run.
        made_of: digest of what is known of an experiment whose rows are of one run each. It is the same in all runs.
        total: number of cases in the data.
        selected: cases that the run was to look at.
        lost: selected cases without a row: a crash took them, or their test never asked.
        not_run: selected cases that were not asked: the budget was spent, or somebody interrupted the run.
        settled: selected cases that were not asked: every gate of the suite was settled without them.
        failed: cases whose test failed, whatever became of their row; null where no test asked, as in a notebook.
        skipped: cases whose tests were skipped, by a mark or by themselves, with the reason; not selected, then.
        ended: selected turns that a simulated user never came to, with the turn that was the last, and why. They count
            nowhere.
        taken_out: conversations in which the simulated user left its role, with the last turn that counts, and why.
        again: the same of each repeat of the conversations, by its number from 2.
        resumed: cases whose row an earlier run has made.
        judged: measures that the rows were judged on, by name: those of a judge, and those that are computed from them.
        authors: judge, model and revision of each judge of this run; those of a panel in its order.
        asks_model: whether a judge asks a chat model, by its name; without those that do not say.
        panel: how a panel of judges decides; empty where one judge has judged.
        rubrics: version of each rubric that the answers were judged by, by measure: other criteria, other version.
        demands: digest of the expectations of its answers, by measure: other expectations, another figure.
        judging: cost of judging in this run: tokens, calls, and the number of replayed calls.
        made: when an earlier run made the rows, where it made all of them and this run did not look at the suite.
        pages: digest of the documents behind its questions at the time of the run; empty where it is not known.
        languages: what to know about the languages of its documents, a sentence each; empty where all are English.
        replayed: whether some answers are replayed ones; new recordings may change them.
        answers: how many answers the run requested to each case.
        computes: whether answers are computed, the same each time, so that each case was asked once all the same.
        history: the messages before turns of conversations: ``gold``, the reference replies, or ``own``, the suite's
            own answers; ``played`` where a simulated user asks; empty where no case is a turn.
        user: who simulates the user, where one asks: a script, or a model's name; empty elsewhere.
        retrieves: whether it counts as one that retrieves though none of its rows tells: an answer of an earlier run
            came with a context, or a gate asks about its contexts.
        foreign: how many contexts have a text that the page which they name does not have, and of how many: of those
            that name a page and have a text. Empty where this was not checked: everything is made of this package's
            parts, or no documents exist.
        unknown_pages: where no context names a page that is there: two of the names, and two names of pages.
        is_current: whether this run's code, settings and data would give the same rows; None where that is not known.
    """

    data: str
    file: str
    fingerprints: list[str]
    made_of: list[str] = []
    total: int
    selected: Some
    lost: list[str] = []
    not_run: list[str] = []
    settled: list[str] = []
    failed: list[str] | None = None
    skipped: dict[str, str] = {}
    ended: dict[str, str] = {}
    taken_out: dict[str, str] = {}
    again: dict[int, EndsAgain] = {}
    resumed: Some = []
    judged: list[str] = []
    authors: list[tuple[str, str, str]] = []
    asks_model: dict[str, bool] = {}
    panel: str = ""
    rubrics: dict[str, int] = {}
    demands: dict[str, str] = {}
    own_cases: str = ""
    judging: dict[str, int] = {}
    made: str = ""
    retrieves: bool = False
    foreign: tuple[int, ...] = ()
    unknown_pages: tuple[tuple[str, ...], ...] = ()
    is_current: bool | None = None
    pages: str = ""
    languages: list[str] = []
    replayed: bool = False
    answers: int = 1
    computes: bool = False
    history: str = ""
    user: str = ""

    @model_serializer(mode="wrap")
    def _as_written(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what few runs have where it is empty: the file of any other run stays as it was."""
        written: dict[str, Any] = write(self)
        return {name: value for name, value in written.items() if name not in _RARE or value}

    @property
    def cases(self) -> str:
        """Name of the file of its cases."""
        return self.own_cases or self.data

    @property
    def asked(self) -> str:
        """The questions that the suite was asked. A turn after its own answers is another question than one after the
        reference replies, so suites with different questions cannot be compared. Simulated users ask no two suites the
        same."""
        if self.history == "played":
            return f"{self.data} played with {self.file}"
        return f"{self.data} with own history" if self.history == "own" else self.data

    def judged_by(self, measure: str) -> tuple[str, list[tuple[str, str, str]], int]:
        """Return who judged a measure, as comparisons see it: other judges, another rule of a panel, and other
        criteria of a rubric are another measure."""
        return self.panel, self.authors, self.rubrics.get(measure, 0)

    def owes_otherwise(self, other: SuiteRecord, measure: str) -> bool:
        """Whether the answers of another suite have other expectations, so that figures of a measure differ in kind.

        A suite of an older release does not state its expectations.
        """
        return differ(self.demands, other.demands, measure)

    @property
    def is_complete(self) -> bool:
        """Whether every case of the data was asked and has a row."""
        return self.selected == "all" and not (self.lost or self.not_run or self.settled)


_FIRST_SKIPPED = 20


class SkippedLines(_Record):
    """Lines of a file of questions that could not be used and were left out: their number, and the first of them.

    Attributes:
        file: name of the file.
        count: number of lines.
        first: the first lines as ``file:line: fault``; the log has all of them.
    """

    file: str
    count: int
    first: list[str] = []

    @classmethod
    def of(cls, file: Path, lines: Sequence[str]) -> SkippedLines:
        """Return what ``run.json`` says of the lines of a file that were left out."""
        return cls(file=file.name, count=len(lines), first=list(lines[:_FIRST_SKIPPED]))

    @property
    def said(self) -> str:
        """The lines in words: ``3 lines of queries.jsonl were skipped``."""
        lines, were = ("line", "was") if self.count == 1 else ("lines", "were")
        return f"{self.count:,} {lines} of {self.file} {were} skipped"


class RunManifest(_Record):
    """A run.

    Attributes:
        schema_version: of this file and of ``summary.json``.
        date: when the run began: ISO 8601, UTC.
        commit: commit of the project; empty where it is not a git repository.
        packages: versions of the packages that matter for results, by name.
        settings: the effective options, without keys.
        digests: digests of documents, questions and golden set.
        suites: a record an experiment, by name; ``golden`` for the golden suite.
        skipped: lines of questions that were left out, by the data's name.
        other_failures: number of failed tests of the run that ask no question.
        stopped: why pytest began no further test, as ``pytest stopped after the first failure``; empty where all ran.
    """

    schema_version: Literal[2] = 2
    date: str
    commit: str = ""
    packages: dict[str, str] = {}
    settings: dict[str, Any]
    digests: dict[str, str] = {}
    suites: dict[str, SuiteRecord]
    skipped: dict[str, SkippedLines] = {}
    other_failures: int = 0
    stopped: str = ""

    def skipped_of(self, suite: str) -> SkippedLines | None:
        """Return the lines that were left out of a suite's questions; None if none were."""
        record = self.suites.get(suite)
        return self.skipped.get(record.data) if record else None


def languages_noted(suites: Iterable[SuiteRecord]) -> list[str]:
    """Return what to know about the languages of the documents of suites, each sentence once."""
    return list(dict.fromkeys(said for suite in suites for said in suite.languages))


def differ(demands: Mapping[str, str], others: Mapping[str, str], measure: str) -> bool:
    """Whether two suites are known to demand different things of answers where a measure looks at them."""
    return measure in demands and measure in others and demands[measure] != others[measure]


def write_manifest(output: Path, manifest: RunManifest) -> None:
    """Write ``run.json`` atomically: a reader sees the old file or the whole new one. The run has left its results."""
    write_atomically(output / MANIFEST, (manifest.model_dump_json(indent=1) + "\n").encode())
    forget_begun(output)


def read_manifest(output: Path) -> RunManifest:
    """Read ``run.json``.

    Raises:
        DataError: the file is missing or damaged. The message has the remedy.
    """
    file = output / MANIFEST
    try:
        return RunManifest.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        raise DataError(no_run(output, MANIFEST)) from None
    except ValidationError as error:
        problem = first_problem(error)
    raise DataError(f"{file} does not describe a run: {problem}. Run pytest with --rag-output={output} again.")


def retrieving_in(output: Path) -> frozenset[str]:
    """Return the experiments of the last run in a folder that count as retrieving though their rows may not tell."""
    try:
        return frozenset(name for name, suite in read_manifest(output).suites.items() if suite.retrieves)
    except DataError:
        return frozenset()  # the first run, or a file that something else wrote


def ids_or_all(ids: Collection[str], total: int) -> Some:
    """Return ``ids`` in the shortest form."""
    return "all" if ids and len(ids) == total else list(ids)


def chooser_of(some: Some) -> Callable[[str], bool]:
    """Return a function that says whether an id is among ``some``."""
    return (lambda _: True) if some == "all" else frozenset(some).__contains__


def awaited(record: SuiteRecord) -> Callable[[str], bool]:
    """Return a function that says whether a case has a row in the run: it was selected, asked, and not lost."""
    is_selected, missing = chooser_of(record.selected), missing_of(record)
    return lambda case_id: is_selected(case_id) and case_id not in missing


def missing_of(record: SuiteRecord) -> frozenset[str]:
    """Return the selected cases without a row."""
    return frozenset([*record.lost, *record.not_run, *record.settled, *record.ended])


def of_run(record: SuiteRecord) -> Callable[[ExperimentResult], bool]:
    """Return a function that says whether a row of the suite's file belongs to the run, by fingerprint and case."""
    has_come, fingerprints = awaited(record), frozenset(record.fingerprints)
    return lambda row: row.fingerprint in fingerprints and has_come(row.query_id)


def package_versions() -> dict[str, str]:
    """Return the versions of the installed packages that can change a result."""
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def commit_of(folder: Path) -> str:
    """Return the git commit of ``folder``; empty where there is none."""
    try:
        found = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return found.stdout.strip() if found.returncode == 0 else ""


# Reads the times in files.


def seconds_of(said: str) -> float:
    """Return an ISO 8601 time as seconds since 1970; NaN for other text, which a row of another program may have."""
    try:
        return datetime.fromisoformat(said).timestamp() if said else nan
    except ValueError:
        return nan


# Names of experiments whose conversations go on from their own answers, beside ``c1``: ``c1-own`` and ``c1-sim``.
#
# Asked with the reference replies as history, or with its own answers, a pipeline is asked other questions. So these
# are two experiments, with rows, files and gates of their own. The one that a simulated user asks is a third: the
# messages in ``c1-sim`` depend on the answers, and no figure mixes them with questions that people wrote.

OWN_HISTORY = {"history": "own"}
"""The ingredient of such an experiment."""
_OWN, _PLAYED = "-own", "-sim"


def own_name(experiment: str) -> str:
    """Return the name of an experiment where its own answers are the history."""
    return experiment if is_own_name(experiment) else f"{experiment}{_OWN}"


def is_own_name(experiment: str) -> bool:
    """Return whether the name says that the history is the experiment's own answers."""
    return experiment.endswith(_OWN)


def played_name(experiment: str) -> str:
    """Return the name of an experiment where a simulated user asks."""
    return experiment if is_played_name(experiment) else f"{experiment}{_PLAYED}"


def is_played_name(experiment: str) -> bool:
    """Return whether the name says that a simulated user asks."""
    return experiment.endswith(_PLAYED)


def without_history(experiment: str) -> str:
    """Return the name without its suffix about the history: the name of the pipeline that answers."""
    return experiment.removesuffix(_OWN).removesuffix(_PLAYED)


# Names and fingerprints of repeats, and of simulated users. Tables import this module without the engine.


def repeat_name(experiment: str, repeat: int) -> str:
    """Return the name of the derived experiment whose rows are the repeat of this number, from 2."""
    return f"{experiment}+repeat{repeat}"


def repeat_fingerprint(fingerprint: str, repeat: int) -> str:
    """Return the fingerprint of a repeat's rows, from the fingerprint of the experiment."""
    return json_digest([fingerprint, f"+repeat{repeat}"])


def user_name(experiment: str) -> str:
    """Return the name of the derived experiment whose rows are the messages of this one's simulated user."""
    return f"{experiment}+user"


def user_fingerprint(fingerprint: str) -> str:
    """Return the fingerprint of the simulated user's messages, from the experiment's fingerprint."""
    return json_digest([fingerprint, "+user"])


def judge_label(judge: str, model: str) -> str:
    """Return the name of a judge within a panel: ``fused gpt-x``; a judge of this package without an LLM needs no
    model."""
    return judge if not model or model.partition("/")[0] == judge else f"{judge} {model}"


def panel_label(rule: str, judges: Sequence[tuple[str, str]]) -> str:
    """Return the name of a panel: ``panel of 2 (mean): embedded, fused gpt-x``. ``judges`` are names and models."""
    return f"panel of {len(judges)} ({rule}): {', '.join(judge_label(*each) for each in judges)}"


def silent_reason(silent: Mapping[str, str], judges: int) -> str:
    """Return why a panel has no value: which judges are silent, and why the first of them is."""
    (first, why), more = next(iter(silent.items())), len(silent) - 1
    others = f" (and {', '.join(list(silent)[1:])})" if more else ""
    are = "are" if more else "is"
    return f"{len(silent)} of the {judges} judges of the panel {are} silent: {first}{others}: {why or 'no verdict'}"
