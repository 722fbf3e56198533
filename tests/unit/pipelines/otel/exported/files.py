"""One trace in the forms of three tools: a question, a search with two hits, a model's answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rag_harness.pipelines.otel.spans import SpanRecord, request_of

QUESTION = "How long can I return a lamp?"
SAID = "You can return a lamp within 45 days. [Source 1]"
LAMP = "You can return a lamp within 45 days of its delivery, unused and in its box."
RUG = "Rugs are sent by freight to every address on the mainland."
BEGIN = 1_700_000_000 * 10**9
_MS = 10**6


def hexadecimal(n: int, digits: int) -> str:
    return f"{n:0{digits}x}"


def otlp(n: int = 1, **changed: Any) -> dict[str, Any]:
    """Return a trace as a request of OTLP; ``changed`` are attributes of its search, with ``__`` for dots."""
    trace = hexadecimal(n, 32)

    def span(key: int, parent: int, kind: str, begin: int, end: int, **told: Any) -> SpanRecord:
        named = {name.replace("__", "."): value for name, value in told.items() if value is not None}
        about = {"openinference.span.kind": kind, **named}
        around = hexadecimal(parent, 16) if parent else ""
        return SpanRecord(kind, trace, hexadecimal(key, 16), around, BEGIN + begin * _MS, BEGIN + end * _MS, about)

    found = {
        "retrieval__documents__0__document__id": "returns.md",
        "retrieval__documents__0__document__content": LAMP,
        "retrieval__documents__0__document__score": 0.9,
        "retrieval__documents__1__document__id": "rugs.md",
        "retrieval__documents__1__document__content": RUG,
    }
    call = {
        "llm__model_name": "gpt-4o-mini",
        "llm__token_count__prompt": 30,
        "llm__input_messages__0__message__role": "user",
        "llm__input_messages__0__message__content": f"{LAMP}\n\n{QUESTION}",
        "llm__output_messages__0__message__role": "assistant",
        "llm__output_messages__0__message__content": SAID,
    }
    spans = [
        span(1, 0, "CHAIN", 0, 100, input__value=QUESTION, output__value=json.dumps({"answer": SAID})),
        span(2, 1, "RETRIEVER", 10, 30, input__value=QUESTION, **{**found, **changed}),
        span(3, 1, "LLM", 30, 90, **call),
    ]
    return request_of(spans, "shop")


def phoenix(n: int = 1) -> list[dict[str, Any]]:
    """Return the same as Phoenix's interface has it."""

    def span(
        key: int, parent: int | None, kind: str, begin: int, end: int, attributes: dict[str, Any]
    ) -> dict[str, Any]:
        return {
            "id": f"U3Bhbjo{key}",
            "name": kind.lower(),
            "context": {"trace_id": hexadecimal(n, 32), "span_id": hexadecimal(key, 16)},
            "span_kind": kind,
            "parent_id": hexadecimal(parent, 16) if parent else None,
            "start_time": f"2023-11-14T22:13:20.{begin:03}000+00:00",
            "end_time": f"2023-11-14T22:13:20.{end:03}000Z",
            "status_code": "OK",
            "status_message": "",
            "attributes": attributes,
            "events": [],
        }

    documents = [
        {"document": {"id": "returns.md", "content": LAMP, "score": 0.9}},
        {"document": {"id": "rugs.md", "content": RUG, "metadata": {"source": "rugs.md"}}},
    ]
    call = {
        "llm.model_name": "gpt-4o-mini",
        "llm.token_count.prompt": 30,
        "llm.input_messages": [{"message": {"role": "user", "content": f"{LAMP}\n\n{QUESTION}"}}],
        "llm.output_messages": [{"message": {"role": "assistant", "content": SAID}}],
    }
    sides = {"input": {"value": QUESTION}, "output": {"value": SAID}}
    return [
        span(1, None, "CHAIN", 0, 100, sides),
        span(2, 1, "RETRIEVER", 10, 30, {"input.value": QUESTION, "retrieval": {"documents": documents}}),
        span(3, 1, "LLM", 30, 90, call),
    ]


def langfuse(n: int = 1) -> dict[str, Any]:
    """Return the same as a trace of Langfuse with its observations."""

    def observation(key: str, parent: str | None, kind: str, begin: int, end: int, **more: Any) -> dict[str, Any]:
        times = {"startTime": f"2023-11-14T22:13:20.{begin:03}Z", "endTime": f"2023-11-14T22:13:20.{end:03}Z"}
        about = {"traceId": f"lf-{n}", "parentObservationId": parent, "level": "DEFAULT", "statusMessage": None}
        return {"id": f"{key}-{n}", "name": key, "type": kind, **about, **times, **more}

    documents = [{"page_content": LAMP, "metadata": {"source": "returns.md"}}, {"page_content": RUG, "metadata": {}}]
    usage = {"usageDetails": {"input": 30, "output": 12, "total": 42}, "costDetails": {"total": 0.002}}
    return {
        "id": f"lf-{n}",
        "timestamp": "2023-11-14T22:13:20.000Z",
        "name": "shop",
        "input": {"question": QUESTION},
        "output": SAID,
        "observations": [
            observation("search", None, "RETRIEVER", 10, 30, input=QUESTION, output=documents),
            observation(
                "model",
                None,
                "GENERATION",
                30,
                90,
                model="gpt-4o-mini",
                input=[{"role": "user", "content": f"{LAMP}\n\n{QUESTION}"}],
                output={"role": "assistant", "content": SAID},
                **usage,
            ),
        ],
    }


def written(file: Path, *lines: Any) -> Path:
    """Write lines, each as JSON or as it is, and return the file."""
    said = (line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in lines)
    file.write_text("".join(f"{line}\n" for line in said), encoding="utf-8")
    return file
