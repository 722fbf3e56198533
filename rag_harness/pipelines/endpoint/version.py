"""The version of a service. It is asked once a run; answers of different versions are kept apart."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from rag_harness.errors import ModelOutputError, PrerequisiteError
from rag_harness.files.atomic import write_atomically
from rag_harness.files.json_text import read_json
from rag_harness.pipelines.endpoint.paths import Path as Place
from rag_harness.pipelines.endpoint.paths import described
from rag_harness.settings.endpoint_spec import EndpointSpec

if TYPE_CHECKING:
    from httpx2 import Response

POINTER = "version.json"
"""File beside the recordings of a service: the version that was recorded last. A replay uses it."""
_LONGEST = 200
"""Most characters of a version. A longer text is a page or an answer."""
_SECONDS = 30.0
_MOST_BYTES = 2**16


def asked_version(spec: EndpointSpec, url: str, headers: dict[str, str], rootdir: Path, timeout: float) -> str:
    """Ask a service for its version and return it.

    Args:
        spec: the service; ``spec.version`` says how to ask.
        url: the service's address, with the values of its variables.
        headers: headers of the request; they are not sent to another host.
        rootdir: the folder in which a command runs.
        timeout: seconds that a call may take.

    Raises:
        PrerequisiteError: there is no version, or no valid one. No question was asked yet.
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
    """There is no version; the message says why."""


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

    from rag_harness.models.reply_bounds import bounds

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
