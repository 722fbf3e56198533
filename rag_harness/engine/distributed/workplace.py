"""A Ray cluster as the workplace of a run."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rag_harness.engine.distributed.dispatch import Dispatch
from rag_harness.engine.distributed.run_messages import (
    AnsweredTrial,
    AskJob,
    Carried,
    JudgedScores,
    Opened,
    RunOpening,
    TrialJob,
    WantedRows,
)
from rag_harness.engine.journal import JOURNALS
from rag_harness.engine.trial import TrialOutcome
from rag_harness.engine.trial_request import FIRST, TrialRequest
from rag_harness.engine.trial_rows import Trial
from rag_harness.errors import PrerequisiteError
from rag_harness.files.log import log
from rag_harness.judges.spent import count_elsewhere
from rag_harness.measures import Score
from rag_harness.measures.judged import JudgedMeasure, Material
from rag_harness.protocols import Experiment
from rag_harness.registry.installed import install
from rag_harness.settings import Settings

if TYPE_CHECKING:
    from rag_harness.engine.distributed.ray_actors import RayLedger, RayWorker
    from rag_harness.engine.distributed.ray_nodes import RayNodes

CLOSE_WAIT = 10.0
"""Seconds that workers get to write their last rows."""
MEET_WAIT = 30.0
"""Seconds that a worker may take to hear of the others."""

_T = TypeVar("_T")
Describe = Callable[[Experiment], Carried]


class RayWorkplace:
    """Workers on the nodes of a cluster.

    Args:
        settings: settings of the run.
        run: id of the run.
        describe: returns what a worker builds an experiment from.
        keep_prompt: writes a prompt that a worker has sent, by its name.
    """

    is_here = False

    def __init__(
        self, settings: Settings, run: str, describe: Describe, keep_prompt: Callable[[str, str], None]
    ) -> None:
        self._settings, self._run = settings, run
        self._describe, self._keep_prompt = describe, keep_prompt
        self._carried: dict[str, Carried] = {}
        self._started = 0
        self._node_of: dict[str, str] = {}
        self._crew: list[RayWorker] = []
        self._telling: list[asyncio.Future[None]] = []
        self._nodes = _nodes(settings)
        self._dispatch: Dispatch | None = None
        self.ledger: RayLedger | None = None
        journals = settings.path(settings.output) / JOURNALS
        # The file stays until the end of the run: workers that replace dead ones look for it too.
        self._shared = journals / self._token
        self._ledger_file = (journals / f"{run}.ledger").absolute()

    async def open(self) -> None:
        """Start the workers, and take over the rows that earlier runs have left on their nodes.

        Raises:
            PrerequisiteError: a worker cannot start. Then nothing is left open.
        """
        try:
            await self._open()
        except BaseException:
            await self.aclose()
            raise

    async def _open(self) -> None:
        self._shared.parent.mkdir(parents=True, exist_ok=True)
        self._shared.touch()
        self.ledger = await asyncio.to_thread(self._nodes.ledger, self._ledger_file)
        nodes = await asyncio.to_thread(self._nodes.plan, _fewest(self._settings))
        self._workers = len(nodes)
        # All workers are made before the first is opened: the thread that makes one cannot be cancelled.
        made = [await self._made(node) for node in nodes]
        workers = await _all([self._opened(worker) for worker in made])
        self._crew = [worker for worker, _ in workers]
        await asyncio.gather(*map(self._introduce, self._crew))
        self._dispatch = Dispatch(self._crew, self._replace)

    @property
    def _token(self) -> str:
        return f"{self._run}.shared"

    async def _start(self, node: str, replaces: str, wanted: WantedRows) -> tuple[RayWorker, Opened]:
        return await self._opened(await self._made(node), replaces, wanted)

    async def _made(self, node: str) -> RayWorker:
        self._started += 1
        return await asyncio.to_thread(self._nodes.worker, f"{self._run}-ray{self._started}", node)

    async def _opened(
        self, worker: RayWorker, replaces: str = "", wanted: WantedRows = frozenset()
    ) -> tuple[RayWorker, Opened]:
        assert self.ledger is not None
        opening = RunOpening(
            self._settings, self._workers, self._run, worker.name, self._token, self.ledger, replaces, wanted
        )
        try:
            opened = await worker.open(opening)
        except BaseException:
            worker.kill()  # else it would start later, unused, and keep its CPU
            raise
        self._node_of[worker.name] = worker.node
        if opened.handed:
            results = self._settings.path(self._settings.output)
            await asyncio.to_thread(_write, results, opened.handed)
            await worker.handed_over(list(opened.handed))
        return worker, opened

    async def _replace(self, lost: str, wanted: WantedRows) -> tuple[RayWorker, Opened] | None:
        """Try to start one worker in place of a dead one: on its node, else on the node with the fewest workers."""
        home = self._node_of.pop(lost, "")
        alive = await asyncio.to_thread(self._nodes.alive)
        busy = Counter(self._node_of.values())
        # Only one node is tried. Where every CPU is taken, each try lasts minutes, and the lost worker's trials wait.
        for node in sorted(alive, key=lambda each: (each != home, busy[each]))[:1]:
            try:
                started = await self._start(node, lost, wanted)
                await self._join(started[0], lost)
                return started
            except Exception as error:
                log.warning("No worker starts on node %s in the place of %s: %s", node[:8], lost, error)
        return None

    async def _join(self, worker: RayWorker, lost: str) -> None:
        """Put a worker in place of the lost one. It learns the others at once; they learn of it while they work."""
        self._crew = [worker if each.name == lost else each for each in self._crew]
        others = [each for each in self._crew if each is not worker]
        self._telling += [asyncio.ensure_future(self._introduce(each)) for each in others]
        await self._introduce(worker)

    async def _introduce(self, worker: RayWorker) -> None:
        """Tell a worker which workers it may ask for vectors. A worker that was not told embeds all texts itself."""
        try:
            await asyncio.wait_for(worker.meet([each.peer for each in self._crew]), MEET_WAIT)
        except Exception as error:
            log.warning("Worker %s has not heard of the others: %s", worker.name, error or type(error).__name__)

    async def ask(self, material: Material, measures: Sequence[JudgedMeasure], turn: int) -> Mapping[str, Score]:
        """Have a worker ask its judge."""
        assert self._dispatch is not None
        job = AskJob(material, tuple(measure.name for measure in measures), turn)
        asked = await self._dispatch.do(job)
        assert isinstance(asked, JudgedScores)
        count_elsewhere(asked.spent)
        return asked.scores

    async def answer(
        self, trial: Trial, experiment: Experiment, fingerprint: str, asking: TrialRequest = FIRST
    ) -> TrialOutcome:
        """Have a worker run one trial."""
        assert self._dispatch is not None
        job = TrialJob(trial, fingerprint, experiment.id, asking)
        answered = await self._dispatch.do(job, self._carry(experiment))
        assert isinstance(answered, AnsweredTrial)
        for digest, content in answered.prompts.items():
            self._keep_prompt(digest, content)
        return answered.outcome

    def _carry(self, experiment: Experiment) -> Carried:
        if experiment.id not in self._carried:
            self._carried[experiment.id] = self._describe(experiment)
        return self._carried[experiment.id]

    async def aclose(self) -> None:
        """Close the workers, and leave the cluster."""
        for telling in self._telling:
            telling.cancel()
        if self._dispatch is not None:
            await self._dispatch.close(CLOSE_WAIT)
        if self.ledger is not None:
            self.ledger.end()
        self._ledger_file.unlink(missing_ok=True)
        self._shared.unlink(missing_ok=True)
        await asyncio.to_thread(self._nodes.leave)


async def _all(starting: Sequence[Coroutine[Any, Any, _T]]) -> list[_T]:
    """Return all results. Where one fails, cancel the others and wait for their end before the error is raised.

    A call that came later would make Ray start a new cluster.
    """
    tasks = [asyncio.ensure_future(each) for each in starting]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _fewest(settings: Settings) -> int:
    """Return how many workers there may be: each has at least one call in flight at every server."""
    return min([settings.concurrency, *(spec.concurrency for spec in settings.endpoints if spec.concurrency)])


def _nodes(settings: Settings) -> RayNodes:
    try:
        from rag_harness.engine.distributed.ray_nodes import RayNodes
    except ImportError as error:
        raise PrerequisiteError(f"--rag-engine=ray needs Ray: {install('ray')}") from error
    return RayNodes(settings)


def _write(results: Path, handed: Mapping[str, bytes]) -> None:
    for name, content in handed.items():
        file = results / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
