"""What a process needs to run its trials: engine, journal, stored rows and prompts. Each is made when first needed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from rag_harness.work.once import Once

if TYPE_CHECKING:
    from rag_harness.engine.distributed import Carried
    from rag_harness.engine.jobs import Engine, JobResult
    from rag_harness.engine.journal import Journal
    from rag_harness.engine.stored import Stored
    from rag_harness.engine.workplace import Workplace
    from rag_harness.plugin.session import RagSession
    from rag_harness.protocols import Experiment
    from rag_harness.results.prompts import PromptFiles


class Equipment:
    """One of each for a process.

    Args:
        session: state of the run.
        keep: is given each result before any test sees it.

    Attributes:
        engine: runs jobs in this process.
        journal: keeps the results of this process.
        stored: finds rows and scores that need not be made again.
        prompts: keeps the messages of calls.
        workplace: where trials are answered and judged.
    """

    def __init__(self, session: RagSession, keep: Callable[[JobResult], Awaitable[None]]) -> None:
        self._session, self._keep = session, keep
        self._worker: dict[str, Any] = getattr(session.config, "workerinput", {})
        self._run = str(self._worker.get("testrunuid") or uuid4().hex)
        self.engine: Once[Engine] = Once(self._make_engine)
        self.journal, self.stored = Once(self._open_journal), Once(self._read_stored)
        self.prompts, self.workplace = Once(self._open_prompts), Once(self._find_workplace)
        session.ledger = lambda: getattr(self.workplace.get(), "ledger", None)

    def opens(self) -> bool:
        """Return whether the workplace was opened just now: opening it may have brought rows."""
        is_new = self.workplace.made is None
        self.workplace.get()
        return is_new

    @property
    def is_worker(self) -> bool:
        """Whether this process shares the run with others, as pytest-xdist has it."""
        return bool(self._worker)

    @property
    def is_inline(self) -> bool:
        """Whether trials run one at a time, in the thread of the tests, for debugging."""
        return bool(self._session.config.getoption("usepdb", False)) and self._session.settings.concurrency == 1

    def _make_engine(self) -> Engine:
        from rag_harness.engine.inline import InlineLoop
        from rag_harness.engine.loop import BackgroundLoop

        # The journal is opened first: otherwise a call might be paid for whose answer could not be kept.
        self.journal.get()
        return InlineLoop(self._keep) if self.is_inline else BackgroundLoop(self._session.share.concurrency, self._keep)

    def _find_workplace(self) -> Workplace:
        from rag_harness.engine.workplace import Here

        if self._session.settings.engine == "local" or self.is_inline:
            return Here(self._session.settings, self.prompts.get().keep)
        return self._on_ray()

    def _on_ray(self) -> Workplace:
        from rag_harness.engine.distributed import RayWorkplace
        from rag_harness.errors import SettingsError

        if self.is_worker:
            raise SettingsError("--rag-engine=ray has workers of its own, and so has -n of pytest-xdist. Leave -n out.")
        ray = RayWorkplace(self._session.settings, self._run, self._carried, self.prompts.get().keep_file)
        self.engine.get().run(ray.open())
        self._take_what_nodes_had()
        return ray

    def _take_what_nodes_had(self) -> None:
        """Copy rows that an earlier run left on disks of nodes into the result files, before a trial is paid for."""
        from rag_harness.engine.stored import Adopted, adopt_journals

        # No result file is open yet. The rows come from the workers that have just started.
        if adopt_journals(self._session.output) != Adopted():
            self.stored.forget()

    def _carried(self, experiment: Experiment) -> Carried:
        from rag_harness.engine.distributed import carry

        return carry(
            experiment,
            is_registered=self._session.experiments.is_registered(experiment),
            queries=self._session.experiments.queries(experiment),
            queries_digest=self._session.identities.queries_digest(experiment),
            settings=self._session.settings,
        )

    def _open_journal(self) -> Journal:
        from rag_harness.engine.journal import JOURNALS, Journal

        return Journal(self._session.output / JOURNALS, f"{self._run}-{self._worker.get('workerid', 'main')}")

    def _open_prompts(self) -> PromptFiles:
        from rag_harness.results.prompts import PromptFiles

        return PromptFiles(self._session.output)

    def _read_stored(self) -> Stored:
        from rag_harness.engine.stored import Stored

        stored = Stored(self._session.output, self._run, self._session.settings.overwrite)
        stored.look_for_the_dead()
        return stored

    @property
    def in_flight(self) -> int | None:
        """How many trials are under way; None if there is no engine, as in the controller of an xdist run."""
        engine = self.engine.made
        return engine.in_flight if engine is not None else None

    def stop(self) -> None:
        """Make no more calls: all tests are done."""
        if self.engine.made is not None:
            self.engine.made.stop()

    def close(self) -> None:
        """Stop the engine and close the journal, which has what came back."""
        if self.engine.made is not None:
            self.engine.made.close(self._close_workplace, self._session.close_models)
        if self.journal.made is not None:
            self.journal.made.close()

    async def _close_workplace(self) -> None:
        if self.workplace.made is not None:
            await self.workplace.made.aclose()
