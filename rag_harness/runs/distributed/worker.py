"""A worker process of a node.

It builds the experiments, answers trials, judges answers, keeps each row, and embeds the texts whose home it is.
"""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from socket import gethostname
from tempfile import gettempdir
from time import monotonic
from typing import Any, Protocol, TypeAlias

from rag_harness.core.errors import PrerequisiteError, RecordingMissError
from rag_harness.core.files import text_digest
from rag_harness.core.log import log
from rag_harness.core.protocols import Experiment
from rag_harness.core.settings import Settings
from rag_harness.core.types import GOLDEN, Message
from rag_harness.evaluation.judges.factory import create_judge, judged
from rag_harness.evaluation.judges.traits import spending
from rag_harness.evaluation.measures import measure_named
from rag_harness.evaluation.measures.opinion import Judge
from rag_harness.models.array_store import CachedEmbedder, Computed, EmbedElsewhere, key_of
from rag_harness.models.throttling import Meter
from rag_harness.pipelines.experiments import experiment
from rag_harness.pipelines.parts import RunParts
from rag_harness.records.files import PROMPTS, PromptFiles, named_prompt
from rag_harness.records.row import row_or_none
from rag_harness.runs.distributed.ledger import LeasedMeter, share_in_flight
from rag_harness.runs.distributed.messages import (
    AnsweredTrial,
    AskJob,
    Carried,
    Done,
    Job,
    JudgedScores,
    Opened,
    RunOpening,
    TrialJob,
    WorkerLostError,
    check_same,
    says,
    travelling,
    unpickled,
)
from rag_harness.runs.fingerprint import fingerprint_about, fingerprint_parts
from rag_harness.runs.golden_suite import GoldenSuite
from rag_harness.runs.journal import JOURNALS, Journal, left_behind
from rag_harness.runs.trial import answer_trial


def built(carried: Carried, parts: RunParts, settings: Settings) -> Experiment:
    """Return an experiment, ready for the queries that it was carried with.

    Args:
        carried: what it is built from.
        parts: of this node.
        settings: of the whole run.

    Raises:
        PrerequisiteError: its rows would differ from those of the process of the tests. Any other error is of building.
    """
    if carried.pipeline:
        find_page = parts.data(carried.data).find_page
        return Experiment(carried.name, unpickled(carried), data=carried.data, find_page=find_page)
    made, decides = _golden(parts, settings) if carried.name == GOLDEN else _registered(carried, parts, settings)
    check_same(carried, decides)
    if made.prepare is not None:
        # A trial that retrieves reports a missing recording itself. A trial that does not retrieve needs none.
        with suppress(RecordingMissError):
            made.prepare(carried.queries)
    return made


def _registered(carried: Carried, parts: RunParts, settings: Settings) -> tuple[Experiment, Mapping[str, Any]]:
    made = experiment(carried.name, parts)
    return made, fingerprint_parts(made, settings, carried.queries_digest)


def _golden(parts: RunParts, settings: Settings) -> tuple[Experiment, Mapping[str, Any]]:
    """Return the golden suite as this node reads it. Its entries decide how hits are named and ranked."""
    registered = cache(lambda name: experiment(name, parts))

    def fingerprint(of: Experiment) -> str:
        return fingerprint_about(of, settings, parts.data(of.data))

    suite = GoldenSuite(parts, registered, fingerprint)
    return suite.experiment, fingerprint_parts(suite.experiment, settings, suite.digest)


class NodeJournals:
    """Where a worker writes its journal, and the journals of dead workers that it finds there.

    Args:
        opening: names the folder of the results, and a file that the process of the tests has created in it.
    """

    def __init__(self, opening: RunOpening) -> None:
        self._replaces, self._wanted = opening.replaces, opening.wanted
        results = opening.settings.path(opening.settings.output)
        self.is_shared: bool = (results / JOURNALS / opening.token).is_file()
        self.results: Path = results if self.is_shared else _of_this_node(results)
        self.folder: Path = self.results / JOURNALS

    def read(self) -> Opened:
        """Return the rows of the worker that this one replaces; on a disk that is not shared, all journals as well."""
        found = left_behind(self.folder, self._not_ours() if self.is_shared else ())
        before = found.get(self.folder / f"{self._replaces}.jsonl", [])
        return Opened(self._rows(before), {} if self.is_shared else self._whole(sorted(found)))

    def _not_ours(self) -> set[Path]:
        """Return the journals that the process of the tests reads itself: each may be long, and many workers start."""
        return {file for file in self.folder.glob("*.jsonl") if file.stem != self._replaces}

    def _rows(self, lines: Sequence[bytes]) -> list[bytes]:
        """Return the wanted rows only. The process of the tests has the others, and one event loop for all workers."""
        rows = ((line, row_or_none(line)) for line in lines if self._wanted)
        return [line for line, row in rows if row is not None and (row.trial, row.fingerprint) in self._wanted]

    def _whole(self, journals: Sequence[Path]) -> dict[str, bytes]:
        files = [*journals, *sorted((self.results / PROMPTS).glob("*.json"))] if journals else []
        return {file.relative_to(self.results).as_posix(): file.read_bytes() for file in files}

    def remove(self, names: Sequence[str]) -> None:
        """Delete files whose content is safe elsewhere."""
        for file in (self.results / name for name in names):
            file.unlink(missing_ok=True)
            for beside in (".reserve", ".lock"):
                file.with_suffix(beside).unlink(missing_ok=True)

    def clear(self, journal: Path) -> None:
        """Delete this worker's journal where the disk is not shared: the process of the tests has all of it."""
        if not self.is_shared:
            self.remove([journal.relative_to(self.results).as_posix()])
            if not any(self.folder.glob("*.jsonl")):
                shutil.rmtree(self.results, ignore_errors=True)


def _of_this_node(results: Path) -> Path:
    return Path(gettempdir()) / "rag_harness-journals" / text_digest(str(results.absolute()))


POLL = 10.0
"""Seconds after which a home answers that it has not finished, so that a waiting worker knows that it lives."""


@dataclass(frozen=True)
class TextBatch:
    """Texts that go to a model together.

    Args:
        embedder: as options name it.
        made_by: model and revision on the worker that asks.
        texts: texts to embed.
        role: ``query`` or ``document``.
        with_tokens: whether token vectors are wanted too.
    """

    embedder: str
    made_by: tuple[str, str]
    texts: Sequence[str]
    role: str
    with_tokens: bool

    @cached_property
    def digest(self) -> bytes:
        """Digest of all fields."""
        return key_of(self.embedder, *self.made_by, self.role, str(self.with_tokens), *self.texts)


@dataclass(frozen=True)
class Waiting:
    """The answer of a home whose part is not done yet. ``done`` is the number of parts that it has finished."""

    done: int


ComputedOrWaiting: TypeAlias = "Computed | Waiting"


def copied(made: Computed) -> Computed:
    """Return a copy of the vectors that shares no memory with ``made``."""
    vectors, tokens = made
    return vectors.copy(), None if tokens is None else [each.copy() for each in tokens]


class Homes:
    """Assigns parts to workers. The same parts in the same order always get the same homes.

    The digest of a part names its first worker. Where that worker has had its share so far, the next one takes the
    part. The digest alone would give the busiest of 24 workers 16 % more than its share of 3,906 parts. The position
    alone would change nearly every home for a worker that asks for fewer parts, as it does where a dead worker has left
    some on its disk. With this rule two parts of five keep their home where a third of the parts is left out.

    Args:
        workers: how many there are.
    """

    def __init__(self, workers: int) -> None:
        self._dealt = [0] * workers

    def of(self, digest: bytes) -> int:
        """Return the number of a part's home."""
        first, count = int.from_bytes(digest, "big"), len(self._dealt)
        most = sum(self._dealt) // count + 1
        ring = ((first + step) % count for step in range(count))
        home = next(each for each in ring if self._dealt[each] < most)
        self._dealt[home] += 1
        return home


class Home:
    """Embeds parts, each once, and keeps them. It runs on the event loop of its process.

    The model runs in a thread of its own. Any other thread may belong to an experiment that waits for another home.

    Args:
        embedder: what makes one of its name.
    """

    def __init__(self, embedder: Callable[[str], CachedEmbedder]) -> None:
        self._embedder = embedder
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="rag-home")
        self._under_way: dict[bytes, asyncio.Future[Computed]] = {}
        self._made_by: dict[str, tuple[str, str]] = {}
        self._done = 0

    def made_by(self, embedder: str) -> tuple[str, str]:
        """Return model and revision of an embedder, found once: a revision may be the digest of the weights."""
        if embedder not in self._made_by:
            found = self._embedder(embedder)
            self._made_by[embedder] = found.model, found.revision
        return self._made_by[embedder]

    async def embed(self, part: TextBatch) -> ComputedOrWaiting:
        """Return vectors (n, d), and token vectors where they are wanted; or ``Waiting``, and the caller asks again.

        Raises:
            PrerequisiteError: this node has another model. Any other error is the model's own.
        """
        made = self._under_way.get(part.digest)
        if made is None:
            made = asyncio.get_running_loop().run_in_executor(self._thread, self._made, part)
            self._under_way[part.digest] = made
            made.add_done_callback(lambda ended: self._ended(part.digest, ended))
        await asyncio.wait([made], timeout=POLL)
        return made.result() if made.done() else Waiting(self._done)

    def close(self) -> None:
        """Begin nothing more; waiting callers get ``CancelledError``."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _made(self, part: TextBatch) -> Computed:
        if self.made_by(part.embedder) != part.made_by:
            raise PrerequisiteError(
                f"Node {gethostname()} was asked for vectors of {' '.join(part.made_by)} and has "
                f"{' '.join(self.made_by(part.embedder))}: give every node the same models."
            )
        return self._embedder(part.embedder).kept(part.texts, part.role, part.with_tokens)

    def _ended(self, digest: bytes, made: asyncio.Future[Computed]) -> None:
        self._done += 1
        del self._under_way[digest]
        if not made.cancelled():
            made.exception()  # read because the caller may have left and asyncio would complain


AHEAD = 2
"""Parts that each home is asked for in advance, so that it has the next one when it has finished one. Where the first
is slow, all may be in memory at once: 0.5 MB each, and 20 MB with token vectors."""
SILENCE = 60.0
"""Seconds beyond ``POLL`` that a worker may be silent; then it counts as gone."""
STANDSTILL = 600.0
"""Seconds that a home may finish nothing; then this worker embeds the part itself."""


class Peer(Protocol):
    """A worker of the run, as the others see it."""

    name: str

    async def embed(self, part: TextBatch) -> ComputedOrWaiting:
        """See ``Home.embed``; raises ``WorkerLostError`` where it is gone."""
        ...


class Spread:
    """Embeds texts together with the other workers: asks them for vectors, and is asked by them.

    Args:
        name: of this worker.
        embedder: what makes one of its name.
    """

    def __init__(self, name: str, embedder: Callable[[str], CachedEmbedder]) -> None:
        self.home: Home = Home(embedder)
        self._name = name
        self._loop = asyncio.get_running_loop()
        self._peers: Sequence[Peer] = ()
        self._gone: set[str] = set()
        self._this = threading.local()

    def meet(self, peers: Sequence[Peer]) -> None:
        """Learn the workers of the run, with this one among them. The order is the same for all workers."""
        self._peers = tuple(peers)

    @contextmanager
    def preparing(self) -> Iterator[None]:
        """Let other workers embed the texts of this thread inside the block. A trial's single text is faster here."""
        self._this.prepares = True
        try:
            yield
        finally:
            self._this.prepares = False

    def elsewhere(self, embedder: str, itself: CachedEmbedder) -> EmbedElsewhere:
        """Return what the embedder of this name asks instead of its model."""

        def computed(texts: Sequence[Sequence[str]], role: str, with_tokens: bool) -> Iterator[Computed]:
            if len(self._peers) < 2 or not getattr(self._this, "prepares", False):
                return (itself.kept(each, role, with_tokens) for each in texts)
            made_by = self.home.made_by(embedder)
            return self._computed(TextBatch(embedder, made_by, each, role, with_tokens) for each in texts)

        return computed

    def _computed(self, parts: Iterable[TextBatch]) -> Iterator[Computed]:
        homes, waiting = Homes(len(self._peers)), deque[Future[Computed]]()
        try:
            for part in parts:
                asked = self._asked(part, homes.of(part.digest))
                waiting.append(asyncio.run_coroutine_threadsafe(asked, self._loop))
                if len(waiting) >= AHEAD * len(self._peers):
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for each in waiting:
                each.cancel()

    async def _asked(self, part: TextBatch, home: int) -> Computed:
        while (peer := self._peer(part, home)).name != self._name:
            try:
                return await _of(peer, part)
            except (WorkerLostError, TimeoutError, asyncio.TimeoutError) as error:
                log.warning("Worker %s is asked for no more vectors: %s", peer.name, error or type(error).__name__)
                self._gone.add(peer.name)
            except Exception as error:
                # The fault may be the text's or the other node's. This node's model will show which.
                log.warning("Worker %s has not embedded %d texts: %s", peer.name, len(part.texts), error)
                break
        return await self._here(part)

    def _peer(self, part: TextBatch, home: int) -> Peer:
        """Return the worker at ``home``. Where it is gone, the digest chooses another, the same for all who ask."""
        if self._peers[home].name not in self._gone:
            return self._peers[home]
        there = [peer for peer in self._peers if peer.name not in self._gone]
        return there[int.from_bytes(part.digest[:8], "big") % len(there)]

    async def _here(self, part: TextBatch) -> Computed:
        while isinstance(said := await self.home.embed(part), Waiting):
            pass
        return said


async def _of(peer: Peer, part: TextBatch) -> Computed:
    done, since = -1, monotonic()
    while isinstance(said := await asyncio.wait_for(peer.embed(part), POLL + SILENCE), Waiting):
        if said.done != done:
            done, since = said.done, monotonic()
        elif monotonic() - since > STANDSTILL:
            raise TimeoutError(f"it has finished nothing for {STANDSTILL:.0f} s")
    return said


class SpreadParts(RunParts):
    """The parts of a run in one of its workers. Several threads may ask for the same embedder at once.

    Args:
        settings: of the run.
        name: of the worker.
        meter: budget and limiters.
    """

    def __init__(self, settings: Settings, name: str, meter: Meter) -> None:
        super().__init__(settings, meter=meter)
        self._making = threading.RLock()
        self.spread: Spread = Spread(name, self.embedder)

    def embedder(self, model: str = "") -> CachedEmbedder:
        """Return the embedder of ``model``; of the options' model where none is named."""
        name = model or self.settings.embed_model
        with self._making:
            made = super().embedder(name)
            made.elsewhere = made.elsewhere or self.spread.elsewhere(name, made)
            return made


# A worker process of a node. It answers trials and judges answers, many at once; it keeps a row before it sends it.

SILENT = 20.0
"""Seconds after which a worker answers a call although it has finished nothing."""


class Worker:
    """Answers and judges on the event loop of its process. Its errors are raised in the process of the tests."""

    async def open(self, opening: RunOpening) -> Opened:
        """Make ready for trials.

        Raises:
            RagHarnessError: the node cannot do what the run asks for.
        """
        self._opening, self._settings = opening, opening.settings
        share = share_in_flight(opening.settings, opening.workers)
        self._meter = LeasedMeter(share, lambda: opening.ledger, opening.name)
        self._parts = SpreadParts(share, opening.name, self._meter)
        loop = asyncio.get_running_loop()
        self._parts.loop = lambda calls: asyncio.run_coroutine_threadsafe(calls, loop).result()
        self._experiments: dict[str, asyncio.Task[Experiment]] = {}
        self._judges: dict[int, Judge] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._done: list[Done] = []
        self._has_done, self._is_closing = asyncio.Event(), False
        self._journals = NodeJournals(opening)
        opened = await asyncio.to_thread(self._journals.read)
        self._journal = Journal(self._journals.folder, opening.name)
        self._prompts = PromptFiles(self._journals.results)
        return opened

    async def handed_over(self, names: Sequence[str]) -> None:
        """Delete the journals that the process of the tests has received."""
        self._journals.remove(names)

    async def meet(self, peers: Sequence[Peer]) -> None:
        """Learn the workers of the run, with this one among them."""
        self._parts.spread.meet(peers)

    async def embed(self, part: TextBatch) -> ComputedOrWaiting:
        """Return vectors of texts for another worker; see ``Home``."""
        return await self._parts.spread.home.embed(part)

    async def carry(self, carried: Carried) -> None:
        """Learn an experiment, and make it ready for its queries.

        Raises:
            RagHarnessError: it cannot be built here, or its rows would differ from those of the process of the tests.
        """
        if carried.name not in self._experiments:
            self._experiments[carried.name] = asyncio.create_task(asyncio.to_thread(self._build, carried))
        await self._experiments[carried.name]

    def _build(self, carried: Carried) -> Experiment:
        try:
            with self._parts.spread.preparing():
                return built(carried, self._parts, self._settings)
        except (Exception, SystemExit) as error:
            raise PrerequisiteError(
                f"Experiment {carried.name!r} cannot be made ready on node {gethostname()}: {says(error)}"
            ) from None  # the cause may be an error that cannot be pickled

    async def take(self, jobs: Sequence[tuple[int, Job]]) -> None:
        """Begin jobs, by their numbers."""
        for number, job in jobs:
            task = asyncio.create_task(self._finish(number, job))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def finished(self, jobs: Sequence[tuple[int, Job]]) -> list[Done]:
        """Begin jobs, wait a while for a first result, and return all results since the last call."""
        await self.take(jobs)
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._has_done.wait(), SILENT)
        self._has_done.clear()
        done, self._done = self._done, []
        return done

    async def close(self) -> None:
        """Drop the jobs under way, and close models, stores and the journal."""
        # A task that has told its result may still be in the set: its callback runs after those who wait for results.
        is_all_told = not self._done and all(task.done() for task in self._tasks)
        self._is_closing = True
        self._has_done.set()  # ends a call of ``finished`` that waits for results
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._parts.spread.home.close()
        await self._parts.endpoints.aclose()
        await self._meter.aclose()
        self._parts.flush()
        self._journal.close()
        if is_all_told:
            self._journals.clear(self._journal.file)

    async def _finish(self, number: int, job: Job) -> None:
        try:
            result = await (self._answer(job) if isinstance(job, TrialJob) else self._ask(job))
            self._tell(Done(number, result))
        except BaseException as error:
            if self._is_closing:
                raise
            # A pipeline may cancel itself, or call pytest.fail. The process that waits for its trial must get an error.
            self._tell(Done(number, error=travelling(error)))

    def _tell(self, done: Done) -> None:
        self._done.append(done)
        self._has_done.set()

    async def _answer(self, job: TrialJob) -> AnsweredTrial:
        known = await self._experiments[job.answered_by]
        prompts: dict[str, str] = {}

        def keep(messages: Sequence[Message]) -> str:
            digest, content = named_prompt(messages)
            if digest:
                self._prompts.keep_file(digest, content)
                prompts[digest] = content
            return digest

        outcome = await answer_trial(job.trial, known, self._settings, job.fingerprint, keep, job.asking)
        if outcome.row is not None and job.asking.keeps(outcome):
            await self._journal.keep(outcome.row.line().encode())
        error = None if outcome.error is None else travelling(outcome.error)
        return AnsweredTrial(replace(outcome, error=error), {} if self._journals.is_shared else prompts)

    async def _ask(self, job: AskJob) -> JudgedScores:
        measures = [measure_named(name) for name in job.measures]
        with spending() as spent:
            scores = await judged(job.material, measures, self._judge(job.turn))  # type: ignore[arg-type]
        return JudgedScores(scores, spent)

    def _judge(self, turn: int) -> Judge:
        if turn not in self._judges:
            self._judges[turn] = create_judge(self._parts, turn or None)
        return self._judges[turn]
