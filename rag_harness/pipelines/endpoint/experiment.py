"""Build the experiment of a service from its description, with its version and its recordings."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import asdict, fields, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from rag_harness.core.errors import ModelOutputError, PrerequisiteError
from rag_harness.core.files import write_atomically
from rag_harness.core.json_text import read_json
from rag_harness.core.protocols import Experiment
from rag_harness.core.settings import Settings, access_of
from rag_harness.core.settings.endpoints import EndpointSpec
from rag_harness.core.settings.profiles import prices_of
from rag_harness.core.types import Usage
from rag_harness.models.calls import seed_shift
from rag_harness.models.recording.cassette_file import Recorded
from rag_harness.models.recording.cassettes import SERVICES, Cassettes
from rag_harness.models.recording.playback import Playback
from rag_harness.models.recording.scrubbing import CleanedRequest, Cleaner, Scrub, secrets_of
from rag_harness.pipelines.endpoint.answer import AnswerPath as Place
from rag_harness.pipelines.endpoint.answer import AnswerReader, described, most_contexts, placing_in
from rag_harness.pipelines.endpoint.client import Client
from rag_harness.pipelines.endpoint.pipeline import Cost, EndpointPipeline, EndpointRetriever
from rag_harness.pipelines.endpoint.requests import Requests
from rag_harness.pipelines.experiments import data_of
from rag_harness.pipelines.parts import RunParts

if TYPE_CHECKING:
    from httpx2 import Response

    from rag_harness.pipelines.endpoint.exchange import Exchange
    from rag_harness.pipelines.endpoint.spans import Listening


# The version of a service. It is asked once a run; answers of different versions are kept apart.

POINTER = "version.json"
"""File beside the recordings of a service: the version that was recorded last. A replay uses it."""
_LONGEST = 200
"""Most characters of a version. A longer text is a page or an answer."""
_SECONDS = 30.0
_MOST_BYTES = 2**16


def asked_version(spec: EndpointSpec, url: str, headers: dict[str, str], rootdir: Path, timeout: float) -> str:
    """Ask a service for its version and return it.

    Args:
        spec: the service; ``spec.version`` has the request.
        url: the service's address, with the values of its variables.
        headers: headers of the request; they are not sent to another host.
        rootdir: the folder in which a command runs.
        timeout: seconds that a call may take.

    Raises:
        PrerequisiteError: the service states no version, or an invalid one. No question was asked yet.
    """
    how = spec.version
    try:
        said = _of_command(how.command, rootdir) if how.command else _of_url(spec, url, headers, timeout)
    except _NoVersionError as error:
        raise PrerequisiteError(
            f"The version of {spec.name!r} is not known: {error}. Nothing was asked. Mend it in {spec.where}, or leave "
            f"version out there."
        ) from None
    return said


class _NoVersionError(Exception):
    """The service states no version. The message has the reason."""


def _of_command(command: str, rootdir: Path) -> str:
    shown = f"version.command {command!r}"
    try:
        words = shlex.split(command)
        done = subprocess.run(
            words, cwd=rootdir, capture_output=True, timeout=_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, ValueError) as error:
        raise _NoVersionError(f"{shown} cannot be run: {getattr(error, 'strerror', None) or error}") from None
    except subprocess.TimeoutExpired:
        raise _NoVersionError(f"{shown} took longer than {_SECONDS:g} s") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise _NoVersionError(f"{shown} ended with {done.returncode}{f': {said[-1][:_LONGEST]}' if said else ''}")
    return _checked(done.stdout.decode(errors="replace"), shown)


def _of_url(spec: EndpointSpec, url: str, headers: dict[str, str], timeout: float) -> str:
    how, where = spec.version, urljoin(url, spec.version.url)
    response = _got(where, headers if _origin(where) == _origin(url) else {}, min(timeout, _SECONDS))
    # Not the whole address: the query string may hold a secret.
    shown = f"version.url {where.partition('?')[0]}"
    if response.status_code != 200:
        raise _NoVersionError(f"{shown} answered with status {response.status_code}")
    if how.header:
        found = response.headers.get(how.header)
        if found is None:
            there = ", ".join(sorted(set(response.headers)))
            raise _NoVersionError(f"{shown} answered without the header {how.header!r}; it has {there}")
        return _checked(found, f"the header {how.header} of {shown}")
    return _in_body(response.text[:_MOST_BYTES], response.headers.get("content-type", ""), how.path, shown)


def _got(url: str, headers: dict[str, str], timeout: float) -> Response:
    import httpx2

    from rag_harness.models.http_transport import bounds

    bounded = bounds("version.url", timeout)
    try:
        with httpx2.Client(follow_redirects=False, timeout=timeout, trust_env=False, **bounded) as client:
            return client.get(url, headers={"user-agent": "rag-harness", **headers})
    except ModelOutputError as error:
        raise _NoVersionError(str(error)) from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        where = url.partition("?")[0]
        raise _NoVersionError(f"nothing answers at version.url {where} ({type(error).__name__})") from None


def _in_body(text: str, kind: str, path: str, shown: str) -> str:
    if "html" in kind or text.lstrip().startswith("<"):
        raise _NoVersionError(f"{shown} answered with a page, {text.strip()[:40]!r}")
    if not path:
        document = _json(text)
        if isinstance(document, (dict, list)):
            raise _NoVersionError(f"{shown} answered with {described(document)}: name the place, version.path")
        return _checked(document if isinstance(document, str) else text, shown)
    document = _json(text)
    if document is None:
        raise _NoVersionError(f"{shown} answered with no JSON, {text.strip()[:40]!r}: leave version.path out")
    place = Place(path, "version.path")
    found = place.find(document)
    if len(found) != 1 or isinstance(found[0], (dict, list)) or found[0] is None:
        said = described(found[0]) if len(found) == 1 else place.nearest(document)
        raise _NoVersionError(f"version.path {path!r} finds no text in what {shown} answered. {said}")
    return _checked(str(found[0]), f"version.path {path!r} of {shown}")


def _json(text: str) -> Any:
    try:
        return read_json(text)
    except (ValueError, RecursionError):
        return None


def _checked(said: str, shown: str) -> str:
    version = said.strip()
    if not version or len(version) > _LONGEST or not version.isprintable():
        problem = f"{len(version)} characters" if len(version) > _LONGEST else "several lines" if version else "nothing"
        raise _NoVersionError(f"{shown} says {problem}, and a version is a line of at most {_LONGEST} characters")
    return version


def _origin(url: str) -> tuple[str, str]:
    return urlsplit(url).scheme, urlsplit(url).netloc


def folder_of(version: str) -> str:
    """Return the name of the folder of a version's recordings."""
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", version)[:40].strip("-.") or "version"
    return slug if slug == version else f"{slug}~{blake2b(version.encode(), digest_size=4).hexdigest()}"


def point_to(folder: Path, version: str) -> None:
    """Make ``version`` the one that a replay uses."""
    write_atomically(folder / POINTER, (json.dumps({"version": version}, ensure_ascii=False) + "\n").encode())


def recorded_version(folder: Path) -> str:
    """Return the version of a service that was recorded last; empty without one."""
    try:
        said = read_json((folder / POINTER).read_text(encoding="utf-8"))
        return str(said["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


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

    def begin(self, asked: CleanedRequest, response: Recorded) -> Callable[[], None]:
        """Write a recording, with the version of the service."""
        return super().begin(asked, replace(response, version=self._version))

    def heard(self, what: str, _about: object) -> None:
        """Let later replays use this version, after one of its answers was recorded or used."""
        if self._version and not self._points and what in ("used", "made"):
            self._points = True
            point_to(self._of_service, self._version)


_NOT_ITS_ANSWERS = {
    *("name", "where", "data", "timeout", "concurrency", "rpm", "usd_per_call", "version", "expect"),
    *("traces_port", "traces_wait", "traces_late"),
}
"""Fields of a spec that change no answer."""


def build(spec: EndpointSpec, parts: RunParts) -> Experiment:
    """Return the experiment of a service.

    Raises:
        SettingsError: a placeholder or a path cannot be used, or the named data do not exist.
        PrerequisiteError: a variable is not set, or there is a budget but no price.
    """
    settings = parts.settings
    requests = Requests(spec, settings.path("."), must_know=access_of(settings).calls_network)
    _check_budget(parts, spec)
    data = parts.data(data_of(spec.name, settings))
    most = most_contexts(settings)
    placing = placing_in(data, spec.name, most=most)
    reader = AnswerReader(spec.read, spec.name, most)
    version = _version(spec, parts, requests)
    client = _client(spec, parts, requests, reader, version)
    usd: Cost = lambda *used: _cost(parts, spec, *used)  # noqa: E731
    pipeline = EndpointPipeline(spec, requests, client, reader, placing, usd, version)
    made_of = {**ingredients_of(spec), "documents": data.digest if data.has_documents else "", "version": version}
    retriever = EndpointRetriever(pipeline.answer, parts.run)
    retrieves = bool(spec.read.contexts or spec.traces)
    return Experiment(
        spec.name, pipeline, data.name, made_of, retriever=retriever, is_reusable=False, retrieves=retrieves
    )


def _version(spec: EndpointSpec, parts: RunParts, requests: Requests) -> str:
    """Return the version that the service states now. A replay sends no calls: it has the version recorded last."""
    if not spec.version:
        return ""
    access = access_of(parts.settings)
    if access.calls_nobody:
        return recorded_version(_folder(spec, parts))
    # In mode auto the requests may lack values of variables, because no question is sent.
    asking = requests if access.calls_network else None
    return parts.version_of(spec, lambda: ask_for_version(spec, parts.settings, asking))


def ask_for_version(spec: EndpointSpec, settings: Settings, requests: Requests | None = None) -> str:
    """Ask a service for its version. Mode auto does so, too, to replay nothing of another version.

    Raises:
        PrerequisiteError: it states none.
    """
    asks = requests or Requests(spec, settings.path("."))
    own = {name: value for name, value in asks.headers.items() if name != "content-type"}
    try:
        return asked_version(spec, asks.url, own, settings.path("."), spec.timeout or settings.timeout)
    except PrerequisiteError as error:
        if access_of(settings).calls_network:
            raise
        raise PrerequisiteError(f"{error} Or answer from recordings, whatever runs there: --rag-mode=replay.") from None


def _folder(spec: EndpointSpec, parts: RunParts) -> Path:
    return parts.settings.folder("cassettes") / SERVICES / spec.name


def ingredients_of(spec: EndpointSpec) -> dict[str, Any]:
    """Return the fields of a spec that decide answers. Headers count by name: values are secret or do not matter."""
    told: dict[str, Any] = {each.name: getattr(spec, each.name) for each in fields(spec)}
    said = {name: value for name, value in told.items() if name not in _NOT_ITS_ANSWERS}
    if not spec.traces:
        # Rows of older releases know nothing of it.
        said.pop("traces")
    headers = sorted(name.lower() for name, _ in spec.headers)
    tables = {name: asdict(getattr(spec, name)) for name in ("read", "stream", "history", "session")}
    return {**said, "headers": headers, **tables}


def _client(spec: EndpointSpec, parts: RunParts, requests: Requests, reader: AnswerReader, version: str) -> Client:
    def connect() -> Exchange:
        # Its imports are needed only where something is not recorded.
        from rag_harness.pipelines.endpoint.exchange import Exchange

        return Exchange(spec, parts.endpoints.meter, reader.usage)

    timeout = spec.timeout or parts.settings.timeout
    playback = _playback(spec, parts, requests, version)
    client = Client(spec, reader, connect, timeout, playback, requests.secrets, _listening(spec, parts, requests))
    parts.endpoints.close_too(client.aclose)
    return client


def _listening(spec: EndpointSpec, parts: RunParts, requests: Requests) -> Listening | None:
    """Return what receives the service's spans. It listens before anything is asked, so that a taken port stops it."""
    if not spec.traces:
        return None
    # Its imports are needed only where spans are received, or were.
    from rag_harness.pipelines.endpoint.spans import Listening, check_one_process

    secrets = [*secrets_of(parts.settings), *requests.secrets]
    listening = Listening(spec, Cleaner(secrets, parts.scrub))
    if access_of(parts.settings).calls_network:
        check_one_process(spec, parts.settings)
        listening.open()
    return listening


def _playback(spec: EndpointSpec, parts: RunParts, requests: Requests, version: str) -> Playback | None:
    settings = parts.settings
    access = access_of(settings)
    if not access.reads_recordings:
        return None
    secrets = [*secrets_of(settings), *requests.secrets]
    cassettes = OwnCassettes(_folder(spec, parts), version, secrets, parts.scrub, settings.abridge)
    return Playback(
        cassettes,
        access.calls_network,
        access.records,
        ask_again=settings.rerecord and access.records,
        refuse=access.refusal(local=False),
        tell=cassettes.heard if access.records else None,
    )


def _check_budget(parts: RunParts, spec: EndpointSpec) -> None:
    """Refuse a budget where the highest cost of a call is unknown."""
    budget = parts.settings.budget
    if budget and spec.usd_per_call is None and not _is_bounded(parts, spec):
        raise PrerequisiteError(
            f"The budget is {budget:g} USD, but it is not known what a call of {spec.name!r} costs. Say it in "
            f"{spec.where}: usd_per_call = …, 0 where it is free; a chat endpoint needs a model with a price, and "
            f"max_tokens in its body. Or leave the budget out."
        )


def _is_bounded(parts: RunParts, spec: EndpointSpec) -> bool:
    """Return whether a call is charged by tokens and its tokens have a limit."""
    body = json.loads(spec.body) if spec.body else None
    if not isinstance(body, dict) or not body.keys() >= {"model", "messages", "max_tokens"}:
        return False
    return prices_of(parts.settings).price(str(body["model"])) is not None


def _cost(parts: RunParts, spec: EndpointSpec, model: str, usage: Usage) -> float | None:
    if spec.usd_per_call is not None or not usage.prompt_tokens:
        return spec.usd_per_call
    return _price(parts, spec, model, usage.prompt_tokens, usage.completion_tokens)


def _price(parts: RunParts, spec: EndpointSpec, model: str, prompt: int = 0, completion: int = 0) -> float | None:
    prices = prices_of(parts.settings)
    known = next((name for name in (model, spec.model) if name and prices.price(name) is not None), None)
    return None if known is None else prices.cost(known, prompt, completion)
