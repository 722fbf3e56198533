"""The state that the routes of a server share: options, collections, conversations, and the loop of experiments."""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from rag_harness.core.log import log
from rag_harness.service.corpus.contents import DEFAULT, DocumentInfo, Serving
from rag_harness.service.keys import Principal
from rag_harness.service.problems import ProblemError

if TYPE_CHECKING:
    from rag_harness.service.database import Database, StateFolder
    from rag_harness.service.monitoring import Metrics
    from rag_harness.service.traces import Traces


# The options of a server, each a flag of rag-harness serve.

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one server.

    Attributes:
        experiment: the experiment that answers.
        state: folder of documents, keys and traces; this server owns it while it runs.
        kb: folder with the first documents of the collection ``default``; None is the experiment's own data.
        host: address to listen on; another than this machine's own needs a key.
        port: port to listen on; 0 is any free port.
        body: most bytes of a request, except uploads.
        upload: most bytes of an uploaded file.
        at_once: bytes of a file up to which ``POST /ingest`` waits for the result; larger ones get 202.
        query: most characters of a question.
        concurrency: how many questions are answered at once; as many again may wait.
        seconds: how long an answer may take.
        rate: rate of a key without its own, e.g. ``600/minute``.
        trace_days: how many days traces are kept.
        trace_content: whether traces keep questions, answers and prompts, too.
        otlp: address to which traces are exported; empty exports nothing.
    """

    experiment: str
    state: Path = Path(".rag_service")
    kb: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    body: int = MIB
    upload: int = 32 * MIB
    at_once: int = MIB
    query: int = 8_000
    concurrency: int = 64
    seconds: float = 60.0
    rate: str = "600/minute"
    trace_days: int = 30
    trace_content: bool = False
    otlp: str = ""


# They have limits, so that no tenant can take the memory of others: where there is too much, the oldest of those go who
# have the most.

Owner: TypeAlias = "tuple[str, int | None]"
"""A collection and the id of a key; None where the server has no keys."""
MOST_TURNS_KEPT = 100
"""Turns of a conversation."""
MOST_CHARACTERS_EACH = 200_000
"""Characters of a conversation, after which it takes no more turns."""
MOST_OF_OWNER, MOST_OF_ALL = 200, 1_000
"""Conversations of a key, and of all."""
MOST_CHARACTERS_OF_ALL = 8 << 20
"""Characters of all conversations; at most four bytes each."""
OLDEST_S = 86_400.0
"""Seconds after its last turn until a conversation is forgotten."""


@dataclass
class _Conversation:
    owner: Owner
    last: float
    said: list[dict[str, str]] = field(default_factory=list)
    characters: int = 0
    is_under_way: bool = False


@dataclass
class TurnUnderWay:
    """A turn that is answered.

    Attributes:
        inputs: what the pipeline sees of it: its conversation, its number from 1, and what was said before.
        answer: what was answered; None where nothing was. It is part of the conversation when the turn is over.
    """

    inputs: Mapping[str, Any]
    answer: str | None = None


class Conversations:
    """The conversations of one server, used from its event loop.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._talks: dict[str, _Conversation] = {}

    def begin(self, owner: Owner) -> str:
        """Return the id of a new conversation; nobody can guess it."""
        self._forget_old()
        if self._of_owners()[owner] >= MOST_OF_OWNER:
            self._forget_oldest_of(owner)
        if len(self._talks) >= MOST_OF_ALL:
            self._forget_oldest_of(self._of_owners().most_common(1)[0][0])
        name = secrets.token_hex(16)
        self._talks[name] = _Conversation(owner, self._clock())
        return name

    def end(self, owner: Owner, name: str) -> None:
        """Forget a conversation.

        Raises:
            ProblemError: there is none, as far as ``owner`` may know.
        """
        self._talk(owner, name)
        del self._talks[name]

    def check(self, owner: Owner, name: str) -> None:
        """Check that a conversation takes a turn now.

        Raises:
            ProblemError: there is none, as far as ``owner`` may know, it is full, or a turn of it is under way.
        """
        talk = self._talk(owner, name)
        if talk.is_under_way:
            detail = "The last question of this conversation is being answered. Ask when it is."
            raise ProblemError(409, "conversation_busy", detail)
        if len(talk.said) >= 2 * MOST_TURNS_KEPT or talk.characters >= MOST_CHARACTERS_EACH:
            raise ProblemError(
                409,
                "conversation_full",
                f"This conversation has {len(talk.said) // 2} turns and {talk.characters} characters, and may have "
                f"{MOST_TURNS_KEPT} and {MOST_CHARACTERS_EACH}. Begin another.",
            )

    @contextmanager
    def turn(self, owner: Owner, name: str, question: str) -> Iterator[TurnUnderWay]:
        """Hold a conversation while a turn of it is answered.

        Raises:
            ProblemError: as ``check``.
        """
        self.check(owner, name)
        talk = self._talks[name]
        turn = TurnUnderWay(inputs_of(name, talk.said))
        talk.is_under_way = True
        try:
            yield turn
        finally:
            talk.is_under_way, talk.last = False, self._clock()
            if turn.answer is not None:
                talk.said += [{"role": "user", "content": question}, {"role": "assistant", "content": turn.answer}]
                talk.characters += len(question) + len(turn.answer)
                self._make_room()

    def _talk(self, owner: Owner, name: str) -> _Conversation:
        self._forget_old()
        talk = self._talks.get(name)
        if talk is None or talk.owner != owner:
            detail = "There is no such conversation: it is not kept any more, or it was begun with another key."
            raise ProblemError(404, "no_such_conversation", f"{detail} Begin one: POST /conversations.")
        return talk

    def _of_owners(self) -> Counter[Owner]:
        return Counter(talk.owner for talk in self._talks.values())

    def _forget_old(self) -> None:
        oldest = self._clock() - OLDEST_S
        self._talks = {name: talk for name, talk in self._talks.items() if talk.last >= oldest or talk.is_under_way}

    def _make_room(self) -> None:
        while sum(talk.characters for talk in self._talks.values()) > MOST_CHARACTERS_OF_ALL:
            held: Counter[Owner] = Counter()
            for talk in self._talks.values():
                held[talk.owner] += talk.characters
            self._forget_oldest_of(held.most_common(1)[0][0])

    def _forget_oldest_of(self, owner: Owner) -> None:
        own = (name for name, talk in self._talks.items() if talk.owner == owner)
        del self._talks[min(own, key=lambda name: self._talks[name].last)]


def inputs_of(conversation: str, said: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Return what a pipeline sees of a turn beside its question."""
    turn = sum(each["role"] == "user" for each in said) + 1
    history = {"history": [dict(each) for each in said]} if said else {}
    return {"conversation": conversation, "turn": turn, **history}


# HTTP has the other loop. So requests are read, refused and written while pipelines compute. An experiment that blocks
# its loop holds up other answers, but neither ``/health`` nor a refusal.

_T = TypeVar("_T")
_WIND_UP = 2.0
"""Seconds for cancelled work to end. Then its caller goes on without it."""


class AnswerLoop:
    """A loop for the work of experiments. Its thread starts with the first work; ``close`` ends it.

    Limiters, budgets and connections of models belong to one loop: all calls of a server's models are made on this one.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._is_closed = False

    def started(self) -> asyncio.AbstractEventLoop:
        """Return the loop, which runs.

        Raises:
            ProblemError: the server is being stopped.
        """
        with self._starting:
            if self._is_closed:
                raise ProblemError(503, "server_stops", "This server is being stopped. Ask again later.")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="rag-answers", daemon=True)
                self._thread.start()
            return self._loop

    async def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run ``work`` there, in the context of the caller, and return its result.

        A caller that is cancelled cancels the work. Then what the work raised is raised: it holds the trace of the
        question up to there.

        Raises:
            ProblemError: the server is being stopped.
        """
        try:
            there = self.started()
        except ProblemError:
            work.close()
            raise
        errand = _Errand(work, there)
        try:
            result: _T = (await errand.ended()).result()
            return result
        except asyncio.CancelledError:
            ended = await errand.cancelled()
            if ended is not None and isinstance(ended.error, asyncio.CancelledError):
                ended.result()
            raise

    async def close(self, at_last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Cancel all work, run ``at_last`` and end the loop. Where a pipeline blocks it, leave it behind."""
        with self._starting:
            self._is_closed, loop, thread, self._loop = True, self._loop, self._thread, None
        if loop is None or thread is None:
            await at_last()
            return
        ending = asyncio.run_coroutine_threadsafe(_wind_down(at_last), loop)
        await asyncio.wait({asyncio.wrap_future(ending)}, timeout=2 * _WIND_UP)
        await asyncio.to_thread(thread.join, _WIND_UP)
        if thread.is_alive():
            log.warning("An experiment blocks the event loop of the answers: it is left behind.")
        else:
            loop.close()


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The result of work: what it returned, or raised."""

    returned: Any = None
    error: BaseException | None = None

    def result(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.returned


class _Errand:
    """Work that one loop waits for and another does."""

    def __init__(self, work: Coroutine[Any, Any, Any], there: asyncio.AbstractEventLoop) -> None:
        self._there, self._here = there, asyncio.get_running_loop()
        self._ended: asyncio.Future[_Outcome] = self._here.create_future()
        self._task: asyncio.Task[Any] | None = None
        there.call_soon_threadsafe(self._begin, work)

    async def ended(self) -> _Outcome:
        """Return its result, once it is done. Its waiting can be cancelled without the work."""
        return await asyncio.shield(self._ended)

    async def cancelled(self) -> _Outcome | None:
        """Cancel the work; return its result, or None if it does not end in time."""
        self._there.call_soon_threadsafe(self._cancel)
        await asyncio.wait({self._ended}, timeout=_WIND_UP)
        return self._ended.result() if self._ended.done() else None

    def _begin(self, work: Coroutine[Any, Any, Any]) -> None:
        self._task = self._there.create_task(self._done(work))
        self._task.add_done_callback(partial(self._over, work))

    async def _done(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do the work, and give its result at once: the task is over a turn of the loop later."""
        try:
            self._tell(_Outcome(await work))
        except BaseException as error:
            self._tell(_Outcome(error=error))
            raise

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _over(self, work: Coroutine[Any, Any, Any], task: asyncio.Task[Any]) -> None:
        if task.cancelled():
            work.close()  # it was cancelled before it began
            self._tell(_Outcome(error=asyncio.CancelledError()))
        else:
            task.exception()  # the caller may have gone, and asyncio would complain that nobody read it

    def _tell(self, outcome: _Outcome) -> None:
        if not self._here.is_closed():
            self._here.call_soon_threadsafe(self._settle, outcome)

    def _settle(self, outcome: _Outcome) -> None:
        if not self._ended.done():
            self._ended.set_result(outcome)


async def _wind_down(at_last: Callable[[], Coroutine[Any, Any, None]]) -> None:
    loop = asyncio.get_running_loop()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    try:
        if others:
            await asyncio.wait(others, timeout=_WIND_UP)
        await at_last()
        await loop.shutdown_asyncgens()
    finally:
        loop.call_soon(loop.stop)


class ServedCollection(Protocol):
    """The documents of a tenant, and the answers about them."""

    @property
    def name(self) -> str:
        """The collection's name, as keys have it."""
        ...

    @property
    def serving(self) -> Serving:
        """The newest state. A question keeps the state with which it began."""
        ...

    def documents(self) -> list[DocumentInfo]:
        """Return all documents, by name."""
        ...

    def document(self, doc_id: str) -> DocumentInfo:
        """Return one document; KeyError if it does not exist."""
        ...

    async def ingest(self, name: str, file: Path, metadata: Mapping[str, Any]) -> DocumentInfo:
        """Add a document, and return its details. It replaces a document of the same name."""
        ...

    async def start_ingest(self, name: str, file: Path, metadata: Mapping[str, Any]) -> str:
        """Begin to add a document, and return the id under which ``document`` gives its details."""
        ...

    async def delete(self, doc_id: str) -> None:
        """Remove a document; KeyError if it does not exist."""
        ...


class Collections(Protocol):
    """The collections of all tenants."""

    @property
    def progress(self) -> str:
        """How far their loading is; empty where that is not known, or all are loaded."""
        ...

    def get(self, name: str) -> ServedCollection:
        """Return a collection; KeyError if it does not exist."""
        ...

    async def create(self, name: str) -> ServedCollection:
        """Return a collection; it is made if it does not exist."""
        ...


@dataclass(frozen=True)
class Service:
    """One server: its options, its collections, its state and the conversations that it keeps.

    ``model`` is the name of the model that answers, ``answers`` the loop on which experiments do so.
    """

    options: Options
    collections: Collections
    state: StateFolder
    traces: Traces
    metrics: Metrics
    model: str = ""
    conversations: Conversations = field(default_factory=Conversations)
    answers: AnswerLoop = field(default_factory=AnswerLoop)

    @property
    def database(self) -> Database:
        """The database, which has everything except the vectors' shards."""
        return self.state.database

    @property
    def incoming(self) -> Path:
        """The folder of uploads that are being read."""
        return self.state.incoming

    def name_for(self, principal: Principal, asked: str | None) -> str:
        """Return the name of the collection that a request is about.

        Raises:
            ProblemError: the key is bound to another collection. The answer is the same as for a collection that does
                not exist.
        """
        if principal.collection is None:
            return asked or DEFAULT
        if asked not in (None, principal.collection):
            raise no_such_collection()
        return principal.collection

    def collection(self, principal: Principal, asked: str | None) -> ServedCollection:
        """Return the collection that a request is about.

        Raises:
            ProblemError: the collection does not exist, as far as this key may know.
        """
        try:
            return self.collections.get(self.name_for(principal, asked))
        except KeyError:
            raise no_such_collection() from None


def no_such_collection() -> ProblemError:
    """Return the problem of a request whose collection does not exist for it."""
    return ProblemError(404, "no_such_collection", "There is no such collection, or this key is bound to another.")


def no_such_document() -> ProblemError:
    """Return the problem of a request whose document does not exist for it."""
    return ProblemError(404, "no_such_document", "There is no such document in this collection.")
