"""Client of a service: it reads recordings first, then calls the network, with retries as for chat models."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_harness.errors import CriticalError, DeadlineError, ModelCallError, RagHarnessError, RecordingMissError
from rag_harness.models.anew import seed_shift
from rag_harness.models.chat.failures import PassingError
from rag_harness.models.recording.cassettes import Cassettes, CleanedRequest, Recorded
from rag_harness.models.recording.playback import Playback
from rag_harness.models.recording.scrubbing import Cleaner, Scrub
from rag_harness.models.retrying import retried
from rag_harness.pipelines.endpoint.heard import Heard, heard_of
from rag_harness.pipelines.endpoint.listening import Listening, keep_spans, kept_spans, spans_file
from rag_harness.pipelines.endpoint.mcp import tool_content
from rag_harness.pipelines.endpoint.refusals import broken_connections, hide, is_nobody_there
from rag_harness.pipelines.endpoint.request import Request
from rag_harness.pipelines.endpoint.service_answer import AnswerReader
from rag_harness.pipelines.endpoint.version import folder_of, point_to
from rag_harness.settings.endpoint_spec import EndpointSpec
from rag_harness.traces.otlp.otlp_json import spans_of_request
from rag_harness.traces.span_record import SpanRecord
from rag_harness.work.deadline import Deadline

if TYPE_CHECKING:
    from rag_harness.pipelines.endpoint.exchange import Exchange, WireAnswer


@dataclass(frozen=True)
class ServiceReply:
    """An answer of a service: its JSON (a stream's events are merged into one), and the times in milliseconds.

    ``spans`` are those of its trace; None where the service sends none.
    """

    document: Any
    status: int
    total_ms: float
    ttft_ms: float | None = None
    waited_ms: float = 0.0
    retries: int = 0
    recorded: bool = False
    recorded_at: str = ""
    spans: tuple[SpanRecord, ...] | None = None


class OwnCassettes(Cassettes):
    """The recordings of one service, at any address. Each repeat of a question has its own recording.

    Args:
        folder: the folder of the service.
        version: the version of the service, with recordings of its own; empty where it has none.
        secrets: values that must not reach the disk.
        scrub: removes private text from questions and answers.
        abridges: as in ``Cassettes``.
    """

    def __init__(
        self, folder: Path, version: str, secrets: Iterable[str], scrub: Scrub | None, abridges: bool = False
    ) -> None:
        super().__init__(folder / folder_of(version) if version else folder, secrets, scrub, abridges)
        self._of_service, self._version, self._points = folder, version, False

    def file(self, asked: CleanedRequest) -> Path:
        """Return the file of a request's recording, which need not exist."""
        shift = seed_shift.get()
        return self.folder / f"{asked.digest}{f'+{shift}' if shift else ''}.yaml"

    def save(self, asked: CleanedRequest, response: Recorded) -> None:
        """Write a recording, with the version of the service."""
        super().save(asked, replace(response, version=self._version))

    def heard(self, what: str, _about: object) -> None:
        """Let later replays use this version, after one of its answers was recorded or used."""
        if self._version and not self._points and what in ("used", "made"):
            self._points = True
            point_to(self._of_service, self._version)


class Client:
    """The client of one service.

    Args:
        spec: the service.
        reader: finds errors and usage in its answers.
        exchange: makes the network connection when something is not recorded.
        timeout: seconds that one call may take, from its turn to its last byte.
        playback: the recordings; None where they are not used.
        secrets: values that no message shows.
        listening: receives the service's spans; None where it sends none.
    """

    def __init__(
        self,
        spec: EndpointSpec,
        reader: AnswerReader,
        exchange: Callable[[], Exchange],
        timeout: float,
        playback: Playback | None = None,
        secrets: tuple[str, ...] = (),
        listening: Listening | None = None,
    ) -> None:
        self._spec, self._reader, self._timeout = spec, reader, timeout
        self._connect = exchange
        self._exchange: Exchange | None = None
        self._is_known = False
        self._playback, self._secrets = playback, secrets
        # Replaced in tests.
        self._wait: Any = asyncio.sleep
        self._cleaner = Cleaner(secrets)
        self._listening = listening

    def is_recorded(self, request: Request) -> bool:
        """Return whether the answer to a request is recorded."""
        playback = self._playback
        if playback is None or playback.ask_again:
            return False
        file = playback.cassettes.file(self._asked(request))
        return file.is_file() and (self._listening is None or spans_file(file).is_file())

    def _asked(self, request: Request) -> CleanedRequest:
        assert self._playback is not None
        headers = dict(request.headers)
        return self._playback.cassettes.asked(self._spec.method, request.known_as, request.content, headers)

    async def ask(self, request: Request) -> ServiceReply:
        """Return the answer to ``request``.

        Raises:
            BudgetError: the call could pass the budget.
            CriticalError: no call can succeed: a rejected key, a wrong address, no server.
            ModelCallError: the call failed for good, after 3 retries with 1, 2 and 4 s between them.
            ModelOutputError: the answer cannot be parsed.
            RecordingMissError: the answer is not recorded, and this mode calls no service.
        """
        try:
            return await self._found_or_called(request)
        except RagHarnessError as error:
            hide(error, self._secrets)
            raise

    async def _found_or_called(self, request: Request) -> ServiceReply:
        playback = self._playback
        if playback is None:
            return await self._called(request, None)
        asked = self._asked(request)
        found = playback.find(asked)
        if found is not None and self._has_spans(playback, asked):
            return self._replayed(found, playback.cassettes.file(asked))
        self._allow(playback, asked)
        return await self._called(request, asked if playback.keep else None)

    def _has_spans(self, playback: Playback, asked: CleanedRequest) -> bool:
        """Return whether a recording has all that is needed of it.

        Raises:
            RecordingMissError: it has no spans, and this mode calls no service.
        """
        if self._listening is None or spans_file(playback.cassettes.file(asked)).is_file():
            return True
        if not playback.may_call:
            raise RecordingMissError(
                f"The answer to {asked} was recorded without its spans, and traces = {self._spec.traces!r} in "
                f"{self._spec.where} asks for them. {playback.refuse}"
            )
        return False

    @staticmethod
    def _allow(playback: Playback, asked: CleanedRequest) -> None:
        """Allow a call or raise. Without any recording the error is critical: no question can be answered."""
        try:
            playback.allow(asked)
        except RecordingMissError as error:
            if next(playback.cassettes.folder.glob("*.yaml"), None) is None:
                raise CriticalError(f"{error}; or ask it now: --rag-mode=live") from None
            raise

    def _replayed(self, found: Recorded, file: Path) -> ServiceReply:
        heard = heard_of(self._spec, found.content_type)
        heard.add(found.body)
        times = found.total_ms, found.ttft_ms
        spans = None if self._listening is None else tuple(kept_spans(file))
        document = self._document(heard)
        return ServiceReply(document, found.status, *times, recorded=True, recorded_at=found.recorded_at, spans=spans)

    async def _called(self, request: Request, keep: CleanedRequest | None) -> ServiceReply:
        late = (
            f"no whole answer within {self._timeout:g} s. Allow more: timeout in {self._spec.where}, or --rag-timeout"
        )
        reply, retries, waited_ms = await retried(
            lambda time: self._once(request, keep, time),
            lambda: Deadline(self._timeout, late),
            self._given_up,
            self._wait,
        )
        return replace(reply, retries=retries, waited_ms=waited_ms)

    async def _once(self, request: Request, keep: CleanedRequest | None, time: Deadline) -> ServiceReply:
        if self._listening is None:
            answered = await self._answered(request, time)
            await self._keep(keep, answered.recorded, None)
            return _reply(answered)
        with self._listening.expecting() as trace:
            answered = await self._answered(self._listening.told(request, trace), time)
            # The time of waiting is nobody's: an exporter sends when it likes to.
            spans = await self._listening.spans_of(trace)
        await self._keep(keep, answered.recorded, spans)
        return replace(_reply(answered), spans=tuple(spans_of_request(spans)))

    async def _keep(self, keep: CleanedRequest | None, recorded: Recorded, spans: dict[str, Any] | None) -> None:
        playback = self._playback
        if keep is None or playback is None:
            return
        if spans is not None:
            # Before the answer: a recording is there when its answer is.
            await asyncio.to_thread(keep_spans, playback.cassettes.file(keep), spans)
        await asyncio.to_thread(playback.save, keep, recorded)

    async def _answered(self, request: Request, time: Deadline) -> WireAnswer:
        self._exchange = self._exchange or self._connect()
        passing: tuple[type[Exception], ...] = (DeadlineError, *broken_connections())
        try:
            return await time.bound(self._exchange.answer(request, self._document))
        except PassingError as failure:
            hide(failure.cause, self._secrets)
            raise
        except passing as error:
            hide(error, self._secrets)
            raise PassingError(error) from error
        finally:
            self._is_known |= self._exchange.has_answered

    def _document(self, heard: Heard) -> Any:
        """Return the JSON of an answer.

        Raises:
            ModelCallError: it is an error of the service.
            ModelOutputError: it is no answer.
        """
        document = heard.document()
        if self._spec.kind == "mcp":
            document = tool_content(document, self._spec.name)
        # A service may repeat its key in an answer. It is hidden here, as in the recording.
        document = self._cleaner.value(document) if self._secrets else document
        self._reader.refuse_error(document)
        return document

    def _given_up(self, failure: PassingError, said: str) -> RagHarnessError:
        if is_nobody_there(failure.cause) and not self._is_known:
            return CriticalError(
                f"Nothing answers at {self._spec.url}, the url of endpoint {self._spec.name!r}. {said} Start the "
                f"service, or mend the url in {self._spec.where}."
            )
        return ModelCallError(f"{self._spec.name}: {said}")

    async def aclose(self) -> None:
        """Close the connections. A later call, perhaps on another loop, opens new ones."""
        if self._exchange is not None:
            await self._exchange.aclose()
            self._exchange = None
        if self._listening is not None:
            await asyncio.to_thread(self._listening.close)


def _reply(answered: WireAnswer) -> ServiceReply:
    recorded = answered.recorded
    return ServiceReply(answered.document, recorded.status, recorded.total_ms, recorded.ttft_ms)
