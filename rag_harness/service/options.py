"""The options of a server, each a flag of rag-harness serve."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

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
