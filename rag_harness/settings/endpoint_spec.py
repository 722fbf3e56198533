"""The description of a service: its address, request and answer. ``endpoints`` reads it from TOML."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class AnswerPaths:
    """Where the parts of an answer are: JSONPath, JSON Pointer, or a plain name. A ``?`` at the end means optional.

    ``text``, ``id``, ``document`` and ``score`` are looked up in each item of ``contexts``.
    """

    answer: str = "answer"
    contexts: str = ""
    text: str = "text?"
    id: str = "id?"
    document: str = "document?"
    score: str = "score?"
    citations: str = ""
    confidence: str = ""
    decision: str = ""
    abstained: str = ""
    model: str = ""
    usage_prompt: str = ""
    usage_completion: str = ""
    error: str = ""


@dataclass(frozen=True)
class StreamReading:
    """The names of a stream's server-sent events. ``text`` is the path of a piece of text in the data of its event.

    Without ``text`` the data are the text. The text of ``replace`` replaces all pieces before it. Without ``final``,
    the stream is complete when its connection ends properly.
    """

    token: str = "token"
    text: str = ""
    replace: str = "replace"
    final: str = ""
    error: str = "error"


@dataclass(frozen=True)
class VersionReading:
    """Where the version of a service is: at an address, in its JSON or a header; or in the output of a command.

    All empty: the version is unknown.
    """

    url: str = ""
    path: str = ""
    header: str = ""
    command: str = ""

    def __bool__(self) -> bool:
        return bool(self.url or self.command)


@dataclass(frozen=True)
class HistoryLimits:
    """The most that is sent of what was said before: turns, and characters of their messages. None: no limit."""

    most_turns: int | None = None
    most_chars: int | None = None

    def __bool__(self) -> bool:
        return self != HistoryLimits()


@dataclass(frozen=True)
class OpenRequest:
    """The request that opens a session. ``body`` is JSON as text; "" sends none."""

    url: str
    method: str = "POST"
    body: str = "{}"


@dataclass(frozen=True)
class SessionReading:
    """The sessions of a service that keeps conversations itself. All empty: it keeps none.

    Attributes:
        path: where the service states the id of a session: in the reply to ``open``, or else in each answer. With a
            ``?`` at its end, answers after the first may leave it out.
        id: template of the id, where the client chooses it: ``{{uuid}}``, ``{{conversation}}``.
        open: the request that opens a session, where one is needed.
        changes: whether each answer states the id for the next turn.
        lost: a path. What it finds, if it is neither null nor false, says that the service does not know the session.
        resumes: whether later runs may go on in the sessions of a run that was cut off. None: ``may_resume`` says.
    """

    path: str = ""
    id: str = ""
    open: OpenRequest | None = None
    changes: bool = False
    lost: str = ""
    resumes: bool | None = None

    def __bool__(self) -> bool:
        return bool(self.path or self.id)

    @property
    def may_resume(self) -> bool:
        """Whether later runs may go on in its sessions: by default, where the service shows that it has lost one.

        A service that takes ids of the client takes any, also those that it does not know.
        """
        return self.resumes if self.resumes is not None else bool(self.path or self.lost)


@dataclass(frozen=True)
class EndpointSpec:
    """One service.

    Attributes:
        name: the name of the experiment.
        url: the address; may hold ``${VARIABLE}`` and placeholders, whose values are quoted.
        kind: ``json``: one answer; ``sse``: server-sent events; ``openai``: a chat endpoint; ``mcp``: a tool over HTTP.
        method: HTTP method.
        headers: names and values; a value may hold ``${VARIABLE}``.
        body: template of the request body as JSON; of the tool's arguments where ``kind`` is ``mcp``. "" sends no body.
        model: the model of a chat endpoint.
        tool: the tool to call over MCP.
        read: where the parts of an answer are.
        stream: the events of a stream.
        version: where its version is.
        history: how much is sent of what was said before.
        session: its sessions, where it keeps conversations itself.
        data: the named data whose questions it gets; empty is the run's own.
        timeout: seconds that one call may take; 0: as ``--rag-timeout`` says.
        concurrency: most calls in flight; 0: as ``--rag-concurrency`` says.
        rpm: most calls a minute; 0: as ``--rag-rpm`` says.
        usd_per_call: the price of a call where no price table has one; None: unknown.
        expect: what each of its answers owes, JSON objects.
        traces: ``otlp``: its spans are received and fill what its answers do not say; "" for none.
        traces_port: where they are received, on 127.0.0.1.
        traces_wait: seconds to wait for spans after an answer, at most.
        traces_late: seconds without a new span after which a trace counts as whole.
        where: the file and table that it was read from.
    """

    name: str
    url: str
    kind: str = "json"
    method: str = "POST"
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""
    model: str = ""
    tool: str = ""
    read: AnswerPaths = AnswerPaths()
    stream: StreamReading = StreamReading()
    version: VersionReading = VersionReading()
    history: HistoryLimits = HistoryLimits()
    session: SessionReading = SessionReading()
    data: str = ""
    timeout: float = 0.0
    concurrency: int = 0
    rpm: float = 0.0
    usd_per_call: float | None = None
    expect: tuple[str, ...] = ()
    traces: str = ""
    traces_port: int = 4318
    traces_wait: float = 6.0
    traces_late: float = 0.5
    where: str = field(default="", compare=False)
