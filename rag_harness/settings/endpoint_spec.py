"""What is said of a service: where it is, what is sent, what is read. ``endpoints`` reads it from TOML."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Reading:
    """Where the parts of an answer are: JSONPath, JSON Pointer, or a plain name. One that ends with ``?`` may be
    missing. ``text``, ``id``, ``document`` and ``score`` are looked up in each item of ``contexts``.
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
    """Which server-sent events carry what, by their names; ``text`` is the path of a piece of text in its event's data.

    Without ``text`` the data are the text. What ``replace`` carries takes the place of all pieces before it. Without
    ``final`` the stream is whole when its connection ends in order.
    """

    token: str = "token"
    text: str = ""
    replace: str = "replace"
    final: str = ""
    error: str = "error"


@dataclass(frozen=True)
class VersionReading:
    """How a service says which version it is: at an address, in its JSON or in a header; or by a command's output.

    All empty: it does not say.
    """

    url: str = ""
    path: str = ""
    header: str = ""
    command: str = ""

    def __bool__(self) -> bool:
        return bool(self.url or self.command)


@dataclass(frozen=True)
class EndpointSpec:
    """One service.

    Attributes:
        name: of the experiment.
        url: may hold ``${VARIABLE}`` and placeholders, which are quoted.
        kind: ``json``: one answer; ``sse``: server-sent events; ``openai``: a chat endpoint; ``mcp``: a tool over HTTP.
        method: of HTTP.
        headers: names and values; a value may hold ``${VARIABLE}``.
        body: JSON of the template of what is sent, of a tool's arguments where ``kind`` is ``mcp``; "" sends nothing.
        model: that a chat endpoint is asked for.
        tool: that is called over MCP.
        read: where the parts of an answer are.
        stream: which events carry what.
        version: how it says which version it is.
        data: the named data that the service is asked about; empty is the run's own.
        timeout: seconds that one call may take; 0: as ``--rag-timeout`` says.
        concurrency: most calls in flight; 0: as ``--rag-concurrency`` says.
        rpm: most calls a minute; 0: as ``--rag-rpm`` says.
        usd_per_call: what a call costs, where no price table says it; None: nobody knows.
        where: where it was read.
    """

    name: str
    url: str
    kind: str = "json"
    method: str = "POST"
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""
    model: str = ""
    tool: str = ""
    read: Reading = Reading()
    stream: StreamReading = StreamReading()
    version: VersionReading = VersionReading()
    data: str = ""
    timeout: float = 0.0
    concurrency: int = 0
    rpm: float = 0.0
    usd_per_call: float | None = None
    where: str = field(default="", compare=False)
