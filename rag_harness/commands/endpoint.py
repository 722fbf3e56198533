"""``rag-harness endpoint try``: asks a service one question, and shows the request, the answer and what was read."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_harness.commands import FOUND
from rag_harness.errors import (
    DeadlineError,
    ModelCallError,
    ModelOutputError,
    RagHarnessError,
    SettingsError,
    unknown,
)
from rag_harness.files.json_text import read_json
from rag_harness.shown.terminal import say
from rag_harness.types import Query

if TYPE_CHECKING:
    from rag_harness.pipelines.endpoint.exchange import WireAnswer
    from rag_harness.pipelines.endpoint.request import Request
    from rag_harness.pipelines.endpoint.service_answer import AnswerField, AnswerReader
    from rag_harness.settings import Settings
    from rag_harness.settings.endpoint_spec import EndpointSpec

_LINES = 40
"""The most lines of a body that are shown."""
_LONGEST = 160


def try_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options: which service is asked what."""
    parser.add_argument("endpoint", metavar="FILE", help="TOML file of a service, or the name of one in pyproject.toml")
    parser.add_argument("question", help="what it is asked")
    parser.add_argument("--inputs", default="{}", metavar="JSON", help="what else the user sent, an object")


def run_try(chosen: argparse.Namespace) -> int:
    """Ask once, and show the answer. The exit status is 1 if a path of the spec finds nothing.

    Raises:
        SettingsError: the spec or the inputs cannot be used.
        PrerequisiteError: the service does not say its version.
        ModelCallError, CriticalError: the service refused, or cannot be reached.
    """
    from rag_harness.pipelines.endpoint.experiment import ask_for_version
    from rag_harness.pipelines.endpoint.refusals import hide
    from rag_harness.pipelines.endpoint.request import Requests
    from rag_harness.pipelines.endpoint.service_answer import AnswerReader
    from rag_harness.settings.loading import load_settings

    settings = load_settings({"mode": "live"})
    spec = _spec(settings, chosen.endpoint)
    query = Query("try", chosen.question, _inputs(chosen.inputs))
    requests, reader = Requests(spec, settings.path(".")), AnswerReader(spec.read, spec.name)
    request = requests.of(query)
    secrets = requests.secrets
    if spec.version:
        _say("who", [f"{spec.name}, version {ask_for_version(spec, settings, requests)}"], secrets)
    _say("sent", _sent(spec, request), secrets)
    try:
        answered = asyncio.run(_asked(spec, settings, request, reader))
    except RagHarnessError as error:
        hide(error, secrets)
        _say("came", error.raw.splitlines()[:_LINES] if isinstance(error, ModelOutputError) else (), secrets)
        raise
    _say("came", _came(answered), secrets)
    fields = list(reader.fields(answered.document))
    _say("read", map(_read, fields), secrets)
    return FOUND if any(field.problem for field in fields) else 0


def _spec(settings: Settings, name: str) -> EndpointSpec:
    from rag_harness.settings.endpoints import read_endpoint

    known = {spec.name: spec for spec in settings.endpoints}
    if name in known:
        return known[name]
    if not Path(name).is_file() and not name.endswith(".toml"):
        raise SettingsError(f"{unknown('endpoint', name, known)} Name a file, or one of pyproject.toml here.")
    return read_endpoint(Path(name))


def _inputs(text: str) -> dict[str, Any]:
    try:
        found = read_json(text)
    except ValueError as error:
        raise SettingsError(f"--inputs {text!r} is no JSON: {error}.") from None
    if not isinstance(found, dict):
        raise SettingsError(f'--inputs {text!r} is no object. Write: --inputs \'{{"selected_text": "…"}}\'')
    return found


async def _asked(spec: EndpointSpec, settings: Settings, request: Request, reader: AnswerReader) -> WireAnswer:
    from rag_harness.models.chat.failures import PassingError
    from rag_harness.models.meter import Meter
    from rag_harness.pipelines.endpoint.exchange import Exchange
    from rag_harness.pipelines.endpoint.mcp import tool_content
    from rag_harness.pipelines.endpoint.refusals import broken_connections
    from rag_harness.work.deadline import Deadline

    exchange = Exchange(spec, Meter(settings), reader.usage)
    read = (lambda heard: tool_content(heard.document(), spec.name)) if spec.kind == "mcp" else _document
    passing: tuple[type[Exception], ...] = (PassingError, DeadlineError, *broken_connections())
    try:
        return await Deadline(spec.timeout or settings.timeout).bound(exchange.answer(request, read))
    except passing as error:
        raise ModelCallError(f"{spec.name}: {spec.url}: {error}. A run tries this again, 3 times.") from error
    finally:
        await exchange.aclose()


def _document(heard: Any) -> Any:
    return heard.document()


def _sent(spec: EndpointSpec, request: Request) -> Iterator[str]:
    from rag_harness.settings.endpoint_checks import VARIABLE

    yield f"{spec.method} {request.url}"
    yield from (f"{name}: {VARIABLE.sub('…', value)}" for name, value in spec.headers)
    if request.body is not None:
        yield from _pretty(request.body)


def _came(answered: WireAnswer) -> Iterator[str]:
    recorded = answered.recorded
    first = "" if recorded.ttft_ms is None else f", first token after {recorded.ttft_ms:.0f} ms"
    kind = recorded.content_type or "no content type"
    yield f"{recorded.status} {kind}, {len(recorded.body):,} bytes in {recorded.total_ms:.0f} ms{first}"
    yield from _pretty(answered.document)


def _pretty(document: Any) -> Iterator[str]:
    lines = json.dumps(document, indent=1, ensure_ascii=False).splitlines()
    yield from (line[:_LONGEST] + "…" * (len(line) > _LONGEST) for line in lines[:_LINES])
    if len(lines) > _LINES:
        yield f"… {len(lines) - _LINES} more lines"


def _read(field: AnswerField) -> str:
    said = f"nothing: {field.problem}" if field.problem else _shown(field)
    return f"{field.name:<17}{field.path:<23} {said}"


def _shown(field: AnswerField) -> str:
    if field.value is None:
        return "nothing, and it may be missing"
    if field.name != "contexts":
        return repr(field.value)[:_LONGEST]
    first = [f"; first: {field.value[0]!r}"[:_LONGEST]] if field.value else []
    return "".join([f"{len(field.value)}", *first])


def _say(title: str, lines: Iterable[str], secrets: tuple[str, ...]) -> None:
    from rag_harness.pipelines.endpoint.refusals import hidden

    for at, line in enumerate(lines):
        say(f"{'' if at else title:<6}{hidden(line, secrets)}")
