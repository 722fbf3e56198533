"""What whoever starts a service decides; each is a flag of ``rag-harness serve``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Options:
    """How one server serves.

    Attributes:
        experiment: what answers.
        state: folder of documents, keys and traces; this server owns it while it runs.
        kb: folder of documents that the collection ``default`` begins with; None is the experiment's own data.
        host: address to listen on; another than this machine's own needs a key.
        port: to listen on; 0 is any that is free.
        body: most bytes of a request that is no upload.
        upload: most bytes of an uploaded file.
        at_once: bytes of a file up to which ``POST /ingest`` waits for the result; larger ones get 202.
        query: most characters of a question.
        concurrency: questions answered at once; as many again may wait.
        seconds: that an answer may take.
        rate: requests of a key, e.g. ``600/minute``, where the key has no rate of its own.
        trace_days: that traces are kept.
        trace_content: keep questions, answers and prompts in traces, too.
        otlp: address that traces are exported to; empty is nowhere.
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
