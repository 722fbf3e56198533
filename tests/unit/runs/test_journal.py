"""What came back is on disk before anybody looks at it, and is taken over once its process is gone."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

import pytest
from filelock import FileLock

from rag_harness.core.concurrency import Lazy
from rag_harness.core.errors import CriticalError
from rag_harness.core.protocols import Experiment
from rag_harness.core.settings import Settings
from rag_harness.core.types import Case, Query, TrialId
from rag_harness.evaluation.measures import Score, parts_of
from rag_harness.evaluation.measures.judged import JudgedMeasure
from rag_harness.evaluation.measures.opinion import Material
from rag_harness.frontends.pytest_plugin.conversations import OwnTurns
from rag_harness.frontends.pytest_plugin.judgements import Judgements
from rag_harness.frontends.pytest_plugin.repeats import Repeats
from rag_harness.frontends.pytest_plugin.session import RagSession
from rag_harness.frontends.pytest_plugin.trials import RunResources
from rag_harness.pipelines.experiments import result_path, scores_path
from rag_harness.pipelines.parts import RunParts
from rag_harness.records.files import PREVIOUS
from rag_harness.records.manifest import repeat_fingerprint
from rag_harness.records.row import ExperimentResult, parse_row, rows_in
from rag_harness.records.scores import Author, ScoreLine, row_digest
from rag_harness.runs import journal as resume_store
from rag_harness.runs.engine import LocalWorkplace
from rag_harness.runs.journal import JOURNALS, AdoptedRows, Journal, ResumeStore, abandoned, adopt_journals
from rag_harness.runs.trial import Trial
from rag_harness.tables.requested_measures import WantedMeasures
from tests.unit.rows import failed_row, make_row


def lines_of(folder: Path) -> dict[str, list[bytes]]:
    with abandoned(folder) as found:
        return {file.name: lines for file, lines in found.items()}


def keep(journal: Journal, *lines: bytes) -> None:
    async def all_at_once() -> None:
        await asyncio.gather(*(journal.keep(line) for line in lines))

    asyncio.run(all_at_once())


def test_lines_that_wait_together_share_one_fsync_and_are_there_when_keep_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path, "run-main")
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_size))
    lines = [f"line {number}\n".encode() for number in range(100)]
    keep(journal, *lines)
    assert (tmp_path / "run-main.jsonl").read_bytes() == b"".join(lines)
    assert synced[-1] == sum(map(len, lines))
    assert len(synced) <= 2
    journal.close()


def test_a_journal_in_use_is_nobody_elses(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "run-main")
    keep(journal, b"a\n")
    assert lines_of(tmp_path) == {}
    journal.close()
    assert lines_of(tmp_path) == {"run-main.jsonl": [b"a\n"]}


def test_a_full_disk_is_said_and_nothing_more_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path, "run-main")
    keep(journal, b"a\n")
    real = os.write

    def full(descriptor: int, content: bytes) -> int:
        if content.startswith(b"b"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, content)

    monkeypatch.setattr(os, "write", full)
    for line in (b"b\n", b"c\n"):
        with pytest.raises(CriticalError, match="No space left on device"):
            keep(journal, line)
    journal.close()
    assert lines_of(tmp_path) == {"run-main.jsonl": [b"a\n"]}


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "output").write_text("a file")
    with pytest.raises(CriticalError, match="--rag-output"):
        Journal(tmp_path / "output" / JOURNALS, "run-main")


_KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from rag_harness.runs.journal import Journal
from tests.unit.rows import make_row

async def write() -> None:
    journal = Journal(Path(sys.argv[1]), "run-gw0")
    for number in range(3):
        await journal.keep(make_row(query_id=f"q{number}").line().encode())
    os.write(journal._descriptor, b'{"query_id": "torn')
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(write())
"""


def test_what_a_killed_process_kept_is_adopted_once(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _KILLED, str(tmp_path / JOURNALS)]
    killed = subprocess.run(command, cwd=Path(__file__).parents[3], check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    stored = ResumeStore(tmp_path, "another", overwrite=False)
    stored.look_for_the_dead()
    row, earlier = stored.find("e3", "aaaa", "q1") or (None, None)
    assert (row is not None and row.query_id, earlier) == ("q1", True)
    assert adopt_journals(tmp_path) == AdoptedRows(rows=3, damaged=1)
    assert adopt_journals(tmp_path) == AdoptedRows()
    assert (tmp_path / "previous" / "journal-damaged.jsonl").read_bytes() == b'{"query_id": "torn\n'
    assert [row.query_id for row in list(rows_in(tmp_path / "e3_filtered_rag.jsonl"))] == ["q0", "q1", "q2"]
    assert list((tmp_path / JOURNALS).iterdir()) == []


_LOOKS = """
import os, sys
from pathlib import Path
from rag_harness.runs.journal import ResumeStore
all_there, go = os.pipe(), os.pipe()
for _ in range(4):
    if not os.fork():
        stored = ResumeStore(Path(sys.argv[1]), "another", overwrite=False)
        os.close(go[1])
        os.write(all_there[1], b"x")
        os.read(go[0], 1)  # until the parent closes its end
        stored.look_for_the_dead()
        os.write(1, b"%d\\n" % len(stored._left_behind))
        os._exit(0)
for _ in range(4):
    os.read(all_there[0], 1)
os.close(go[1])
for _ in range(4):
    os.wait()
"""


def test_several_who_look_at_once_all_see_it(tmp_path: Path) -> None:
    for worker in range(3):
        journal = Journal(tmp_path / JOURNALS, f"run-gw{worker}")
        keep(journal, *(make_row(query_id=f"q{worker}-{n}").line().encode() for n in range(100)))
        journal.close()
    command = [sys.executable, "-c", _LOOKS, str(tmp_path)]
    looked = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (looked.stdout.split(), looked.stderr) == (["300"] * 4, "")


def test_a_run_that_starts_anew_sees_only_its_own_dead_workers(tmp_path: Path) -> None:
    for run in ("old", "new"):
        journal = Journal(tmp_path / JOURNALS, f"{run}-gw0")
        keep(journal, make_row(query_id=run).line().encode(), failed_row(query_id=f"{run}-failed").line().encode())
        journal.close()
    stored = ResumeStore(tmp_path, "new", overwrite=True)
    stored.look_for_the_dead()
    found = {query: stored.find("e3", "aaaa", query) for query in ("old", "new", "new-failed")}
    assert {query: each and (each[0].query_id, each[1]) for query, each in found.items()} == {
        "old": None, "new": ("new", False), "new-failed": None
    }  # fmt: skip


def test_what_is_in_flight_when_the_disk_gets_full_is_kept_in_the_reserve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path, "run-main")
    reserve = tmp_path / "run-main.reserve"
    assert reserve.stat().st_size == 2**20
    assert reserve.stat().st_blocks * 512 >= 2**20
    real = os.write

    def full(descriptor: int, content: bytes) -> int:
        if reserve.exists():
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, content)

    monkeypatch.setattr(os, "write", full)
    for line in (b"a\n", b"b\n"):
        with pytest.raises(CriticalError, match=r"run-main\.jsonl cannot be written: No space.*Make room.*is kept in"):
            keep(journal, line)
    assert (tmp_path / "run-main.jsonl").read_bytes() == b"a\nb\n"
    journal.close()
    assert not reserve.exists()


def test_a_reserve_that_a_kill_has_left_goes_with_its_journal(tmp_path: Path) -> None:
    journal = Journal(tmp_path / JOURNALS, "run-main")
    keep(journal, make_row().line().encode())
    journal._lock.release()
    assert list(tmp_path.rglob("*.reserve"))
    assert adopt_journals(tmp_path).rows == 1
    assert not list((tmp_path / JOURNALS).iterdir())


def test_what_a_kill_has_left_beside_no_journal_is_tidied_up_and_a_living_one_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / JOURNALS
    living = Journal(folder, "new-main")
    living.file.unlink()  # as before it was made
    for left in ("old-main.lock", "old-gw0.lock", "old-gw0.reserve"):
        (folder / left).touch()
    adopt_journals(tmp_path)
    assert sorted(file.name for file in folder.iterdir()) == ["new-main.lock", "new-main.reserve"]
    living.close()
    adopt_journals(tmp_path)
    assert not list(folder.iterdir())


def test_a_lock_that_was_deleted_before_it_was_held_is_taken_again(tmp_path: Path) -> None:
    acquire = FileLock.acquire

    def deleted_once(lock: FileLock, *args: Any, **more: Any) -> Any:
        held = acquire(lock, *args, **more)
        if not deleted:
            deleted.append(Path(lock.lock_file))
            deleted[0].unlink()
        return held

    deleted: list[Path] = []
    with patch.object(FileLock, "acquire", deleted_once):
        journal = Journal(tmp_path / JOURNALS, "run-main")
    assert deleted[0].exists()
    keep(journal, make_row().line().encode())
    assert adopt_journals(tmp_path) == AdoptedRows()  # it is alive
    journal.close()
    assert adopt_journals(tmp_path).rows == 1


def test_a_line_is_written_before_anything_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill while an earlier line is synced loses none of those that came meanwhile."""
    journal, begun, go_on = Journal(tmp_path, "run-main"), threading.Event(), threading.Event()

    def held(_: int) -> None:
        begun.set()
        assert go_on.wait(60)

    async def second_while_the_first_is_synced() -> bytes:
        monkeypatch.setattr(os, "fsync", held)
        first = asyncio.ensure_future(journal.keep(b"a\n"))
        await asyncio.to_thread(begun.wait, 60)
        second = asyncio.ensure_future(journal.keep(b"b\n"))
        await asyncio.sleep(0)
        found = (tmp_path / "run-main.jsonl").read_bytes()
        assert not first.done()
        assert not second.done()
        go_on.set()
        await asyncio.gather(first, second)
        return found

    assert asyncio.run(second_while_the_first_is_synced()) == b"a\nb\n"
    journal.close()


# What journals of the dead hold is taken over once, and what is recorded already is not read again.


def journal(output: Path, *lines: bytes) -> Path:
    (output / JOURNALS).mkdir(parents=True, exist_ok=True)
    file = output / JOURNALS / "run-main.jsonl"
    file.write_bytes(b"".join(lines))
    return file


def line(query_id: str, **values: object) -> bytes:
    return make_row(query_id=query_id, **values).line().encode()


def test_what_is_not_in_a_result_file_is_added_once(tmp_path: Path) -> None:
    file = result_path(tmp_path, "e3")
    file.write_bytes(line("q1"))
    left = journal(tmp_path, line("q1"), line("q2"), b'{"torn": ')
    adopted = adopt_journals(tmp_path)
    assert (adopted.rows, adopted.damaged) == (1, 1)
    assert file.read_bytes() == line("q1") + line("q2")
    assert (tmp_path / PREVIOUS / "journal-damaged.jsonl").read_bytes() == b'{"torn": \n'
    assert not left.exists()


def test_scores_are_taken_over_with_the_row_that_they_are_of(tmp_path: Path) -> None:
    rows = [make_row(query_id="q1", llm_answer=answer) for answer in ("first", "later")]
    author = Author("mock", "m", "1")
    scores = [ScoreLine("faithfulness", 1, "e3", "q1", row_digest(row), "", author, 0.5).line() for row in rows]
    result_path(tmp_path, "e3").write_bytes(rows[0].line().encode())
    journal(tmp_path, *scores)
    assert adopt_journals(tmp_path).scores == 1
    assert scores_path(tmp_path, "e3").read_bytes() == scores[0]


def test_lines_that_are_recorded_are_not_read_as_rows_and_are_safe_before_the_journal_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result_path(tmp_path, "e3").write_bytes(line("q1") + line("q2"))
    left = journal(tmp_path, line("q1"), line("q2"))
    synced: list[bool] = []
    monkeypatch.setattr(resume_store, "row_or_none", lambda _: pytest.fail("was read"))
    monkeypatch.setattr(os, "fsync", lambda _: synced.append(left.exists()))
    assert adopt_journals(tmp_path).rows == 0
    assert synced == [True]
    assert not left.exists()


def test_a_torn_line_of_a_result_file_does_not_hide_the_whole_one(tmp_path: Path) -> None:
    file = result_path(tmp_path, "e3")
    file.write_bytes(line("q1")[:-1])
    journal(tmp_path, line("q1")[:-1])
    assert adopt_journals(tmp_path).damaged == 1


def test_of_two_rows_of_a_trial_the_later_one_is_reread(tmp_path: Path) -> None:
    file = journal(tmp_path, line("q1", llm_answer="first"), line("q1", llm_answer="later"), line("q2"))
    assert ResumeStore(tmp_path, "run", overwrite=False).reread(file, TrialId("e3", "q1")).llm_answer == "later"


# A process sends repeated trials to the writer of the files: only new ones, each once.

TRIAL = Trial("mine", Case(Query("q1", "How long?")))
MINE = Experiment("mine", SimpleNamespace(answer=lambda _: "30 days"))
ROW = make_row(experiment="mine+repeat2", query="How long?", fingerprint=repeat_fingerprint("print", 2))
SCORE = ScoreLine("faithfulness", 1, "mine+repeat2", "q1", row_digest(ROW), "", Author("j", "m", "1"), 0.5)


class Engine:
    """Runs a job when it is asked for."""

    def __init__(self) -> None:
        self.jobs: dict[Any, Callable[[], Any]] = {}

    def submit(self, key: Any, job: Callable[[], Any], first: bool = False) -> None:
        self.jobs.setdefault(key, job)

    def result(self, key: Any) -> Any:
        return asyncio.run(self.jobs[key]())

    def drop(self, key: Any) -> None:
        del self.jobs[key]

    def forget(self, key: Any) -> None:
        del self.jobs[key]


class Asked:
    """A session that notes of which experiment gold pages are wanted."""

    settings = Settings(repeats=2)
    parts: RunParts
    wanted = WantedMeasures(lambda: Settings(repeats=2), lambda _: [])
    identities = SimpleNamespace(fingerprint=lambda _: "print")

    def __init__(self) -> None:
        self.of: list[str] = []

    def gold_pages(self, experiment: str, _: Case) -> list[str]:
        self.of.append(experiment)
        return ["Return it within 30 days."]


HERE = LocalWorkplace(Asked.settings, lambda _: "")


def repeats(
    output: Path,
    kept: list[bytes],
    session: Asked | None = None,
    engine: Engine | None = None,
    workplace: Callable[[], Any] = lambda: HERE,
) -> Repeats:
    async def keep(line: bytes) -> None:
        kept.append(line)

    runs, stored = engine or Engine(), ResumeStore(output, "this-run", overwrite=False)
    stored.look_for_the_dead()
    known = cast("RagSession", session or Asked())
    kit = SimpleNamespace(
        engine=Lazy(lambda: runs),
        stored=Lazy(lambda: stored),
        journal=Lazy(lambda: SimpleNamespace(keep=keep)),
        workplace=Lazy(workplace),
    )
    kit_, judgements = cast("RunResources", kit), cast("Judgements", SimpleNamespace(turns_of=lambda _: 0))
    return Repeats(known, kit_, judgements, OwnTurns(known, kit_, judgements))


def rows(lines: Sequence[str]) -> list[ExperimentResult]:
    return [parse_row(line) for line in lines if not line.startswith('{"measure"')]


def test_a_new_answer_is_shipped_once(tmp_path: Path) -> None:
    kept: list[bytes] = []
    again = repeats(tmp_path, kept)
    assert again.after(TRIAL, MINE)
    shipped, _ = again.ship(TRIAL.id)
    assert [(row.experiment, row.llm_answer) for row in rows(shipped)] == [("mine+repeat2", "30 days")]
    assert [line.decode() for line in kept] == [*shipped]
    assert not again.after(TRIAL, MINE)  # a plugin runs the test again, say
    assert again.ship(TRIAL.id) == ((), ())


def test_what_a_dead_worker_of_this_run_has_left_is_shipped_and_not_run_again(tmp_path: Path) -> None:
    (tmp_path / JOURNALS).mkdir()
    (tmp_path / JOURNALS / "this-run-gw0.jsonl").write_bytes(ROW.line().encode() + SCORE.line())
    kept: list[bytes] = []
    again = repeats(tmp_path, kept)
    again.after(TRIAL, MINE)
    assert again.ship(TRIAL.id) == ((ROW.line(), SCORE.line().decode()), ())
    assert kept == []


def test_what_an_earlier_run_has_is_not_shipped(tmp_path: Path) -> None:
    file = result_path(tmp_path, "mine+repeat2")
    file.parent.mkdir()
    file.write_text(ROW.line())
    again = repeats(tmp_path, [], workplace=_nobody)
    assert again.after(TRIAL, MINE)
    assert again.ship(TRIAL.id) == ((), ())


def _nobody() -> Any:
    pytest.fail("a cluster would be opened for what is there")


@pytest.mark.parametrize(("judge", "seeds"), [("ragas", [200, 201]), ("embedded", [0, 201]), ("mock", [0, 201])])
def test_repeats_are_judged_elsewhere_too_with_seeds_of_their_own(tmp_path: Path, judge: str, seeds: list[int]) -> None:
    asked: list[int] = []

    async def ask(_: Material, measures: Sequence[JudgedMeasure], turn: int) -> dict[str, Score]:
        asked.append(turn)
        return {measure.name: Score(0.5) for measure in measures}

    session = Asked()
    settings = Settings(judge=judge, embed_model="mock/hashed-words")
    session.settings, session.parts = settings, RunParts(settings)
    judging = repeats(tmp_path, [], session, workplace=lambda: SimpleNamespace(ask=ask))._judging(3)
    judged = asyncio.run(judging.row(ROW, TRIAL.case, parts_of(["faithfulness"]), lambda *_: None, 1))
    assert judged.scores["faithfulness"].value == 0.5
    assert asked == seeds


def test_a_trial_whose_experiment_is_settled_is_not_answered_again(tmp_path: Path) -> None:
    engine = Engine()
    again = repeats(tmp_path, [], engine=engine)
    again.after(TRIAL, MINE)
    assert engine.jobs
    again.drop(TRIAL.id)
    assert not engine.jobs
    assert again.ship(TRIAL.id) == ((), ())


@pytest.mark.parametrize("derived", ["mine+repeat2", "mine+repeat10"])
def test_gold_pages_are_those_of_the_experiments_own_data(tmp_path: Path, derived: str) -> None:
    session = Asked()
    assert repeats(tmp_path, [], session)._gold_pages(derived, TRIAL.case) == ["Return it within 30 days."]
    assert session.of == ["mine"]
