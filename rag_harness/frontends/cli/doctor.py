"""The command rag-harness doctor: the installation and the suite of a folder, for an issue report."""

from __future__ import annotations

import argparse
import os
import platform
import re
from collections.abc import Iterator
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, requires
from importlib.metadata import version as installed_version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rag_harness.core.errors import DataError, PrerequisiteError
from rag_harness.core.escaping import say
from rag_harness.core.package import NAME, VERSION, install, strangers, version, without_torch
from rag_harness.core.settings import Settings, access_of
from rag_harness.core.settings.loading import ini_values, load_settings
from rag_harness.core.settings.profiles import EMBEDDED_URL
from rag_harness.core.settings.table import Settings as OptionsSettings
from rag_harness.core.settings.table import masked
from rag_harness.frontends.cli import FOUND

if TYPE_CHECKING:
    from packaging.requirements import Requirement

__all__ = ["Checkup", "look_over"]


# ``rag-harness doctor``: what is installed, what is set, what is there; text for an issue report.


def doctor_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``doctor``."""
    parser.add_argument("folder", type=Path, nargs="?", default=Path(), help="folder of the suite; default: this one")
    parser.add_argument("--network", action="store_true", help="ask the chat endpoint, too, whether it is there")


def run_doctor(chosen: argparse.Namespace) -> int:
    """Print the report. The exit status is 1 if something is broken that the settings ask for."""

    report = look_over(chosen.folder, chosen.network)
    say(*report.lines)
    return FOUND if report.broken else 0


# What is installed: this package, Python, what the package needs, its extras. Nothing of it is imported.

_ABSENT = "not installed"


def package_lines() -> list[str]:
    """Return a line each for this package, Python, the platform and every package that is always needed."""
    found = version()
    other = "" if found == VERSION else f", but its code is of {VERSION}: {install()} --force-reinstall"
    return [
        f"{NAME} {found}{other}",
        f"Python {platform.python_version()} ({platform.python_implementation()})",
        f"platform {platform.platform()}",
        *(f"{name} {_version_of(name)}" for name in sorted(_needed(""), key=str.lower)),
        *strangers(),
    ]


def extra_lines() -> list[str]:
    """Return a line for each extra: the versions of its packages, or what is missing."""
    from importlib.metadata import metadata

    try:
        extras = metadata(NAME).get_all("Provides-Extra") or []
    except PackageNotFoundError:
        return [f"unknown: {NAME} runs without being installed. To do: {install()}"]
    return [f"{extra}: {_extra(extra)}" for extra in sorted(extras)]


def _extra(extra: str) -> str:
    versions = {name: _version_of(name) for name in sorted(_needed(extra), key=str.lower)}
    missing = [name for name, found in versions.items() if found == _ABSENT]
    if not versions:
        return "nothing on this Python and platform"
    if len(missing) == len(versions):
        return f"{_ABSENT}. {install(extra)}"
    there = [f"{name} {found}" for name, found in versions.items() if found != _ABSENT]
    lacking = f"; lacks {', '.join(missing)}. {install(extra)}" if missing else ""
    return f"{', '.join(there)}{lacking}"


def _needed(extra: str) -> list[str]:
    """Return the packages that this platform needs for ``extra``; for "", those that are always needed."""
    from packaging.requirements import Requirement  # pytest needs it, and brings it

    try:
        found = [Requirement(line) for line in requires(NAME) or []]
    except PackageNotFoundError:
        return []
    return [each.name for each in found if each.name != NAME and _is_asked(each, extra)]


def _is_asked(requirement: Requirement, extra: str) -> bool:
    marker = requirement.marker
    always = marker is None or marker.evaluate({"extra": ""})
    return always if not extra else not always and marker is not None and marker.evaluate({"extra": extra})


def _version_of(name: str) -> str:
    try:
        return installed_version(name)
    except PackageNotFoundError:
        return _ABSENT


PresenceState = Literal["ok", "absent", "broken"]


class Presence(NamedTuple):
    """The result of looking for one thing.

    Attributes:
        state: ``absent`` is not a fault by itself; ``broken`` is something that the settings ask for and cannot get.
        what: what was looked for.
        said: what was found.
        remedy: what to do; empty if there is nothing to do, or if ``said`` says it.
    """

    state: PresenceState
    what: str
    said: str
    remedy: str = ""

    def lines(self) -> list[str]:
        """Return the lines of the report: one for what was found, and the rest below it."""
        first, *others = self.said.split("\n")
        remedy = [f"To do: {self.remedy}"] if self.remedy else []
        return [f"{self.state:<7} {self.what}: {first}", *(f"        {line}" for line in (*others, *remedy))]


# Is the chat endpoint there, and does it take the key? One request asks for its list of models; nothing is generated.

_SECONDS = 10
_REFUSED = (401, 403)
_SERVER_FAULT = 500


def chat_server(settings: Settings) -> Presence:
    """Ask the chat endpoint for its models. The key goes to that server alone: a redirection is not followed."""
    import httpx2

    url, key, what = settings.chat_base_url, settings.chat_key, "chat endpoint"
    if url in ("", EMBEDDED_URL):
        return Presence("ok", what, f"none: {settings.chat_model} answers in this process")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        status = httpx2.get(f"{url.rstrip('/')}/models", headers=headers, timeout=_SECONDS).status_code
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        remedy = "is it running, is base_url of its role answer right, is there a proxy between?"
        return Presence("broken", what, f"{url} cannot be reached: {type(error).__name__}", remedy)
    if status in _REFUSED:
        said = "the key that is set" if key else "a request without a key"
        return Presence("broken", what, f"{url} refuses {said} (HTTP {status})", "set the key of this endpoint")
    if status >= _SERVER_FAULT:
        return Presence("broken", what, f"{url} answers with HTTP {status}", "see the log of that server")
    return Presence("ok", what, f"{url} answers (HTTP {status})")


# What a run would read, write or load: is it there? Nothing is read whole, loaded or asked.

_DEFAULTS = Settings()
_START = "rag-harness init writes a suite, or name yours with --rag-kb-dir"
_WRITTEN = ("cache_dir", "output", "logs")


def presences(settings: Settings) -> list[Presence]:
    """Look for documents, questions, folders to write to, weights and keys of a suite."""
    return [
        *_data(settings),
        *(_writable(name, settings.path(getattr(settings, name))) for name in _WRITTEN),
        _embedder(settings),
        *_server(settings),
        _keys(settings),
    ]


def _data(settings: Settings) -> Iterator[Presence]:
    if settings.dataset:
        yield Presence("ok", "documents", f"those of the public collection {settings.dataset}")
    else:
        yield _documents("documents", settings.path(settings.kb_dir), settings.kb_dir != _DEFAULTS.kb_dir)
        yield _questions("questions", settings.queries_path, bool(settings.queries))
        is_named = settings.golden != _DEFAULTS.golden
        yield _questions("golden set", settings.path(settings.golden), is_named)
    for each in settings.data:
        yield _documents(f"documents of {each.name}", settings.path(each.kb), is_asked=True)
        yield _questions(f"questions of {each.name}", settings.path(each.queries), is_asked=bool(each.queries))


def _documents(what: str, folder: Path, is_asked: bool) -> Presence:
    from rag_harness.data.documents import page_files

    number = sum(1 for _ in page_files(folder)) if folder.is_dir() else 0
    if number:
        return Presence("ok", what, f"{number} file{'s' * (number != 1)} in {folder}")
    said = f"no document in {folder}" if folder.is_dir() else f"no folder {folder}"
    return Presence("broken" if is_asked else "absent", what, said, _START)


def _questions(what: str, file: Path, is_asked: bool) -> Presence:
    if file.is_file():
        return Presence("ok", what, f"{file}{_lines_in(file)}")
    remedy = "rag-harness init, or rag-harness kb queries DIR -o queries.jsonl, drafts some"
    return Presence("broken" if is_asked else "absent", what, f"no file {file}", remedy)


def _lines_in(file: Path) -> str:
    if file.suffix != ".jsonl":
        return ""
    try:
        with file.open("rb") as lines:
            number = sum(1 for line in lines if line.strip())
    except OSError as error:
        return f", which cannot be read: {error.strerror}"
    return f", {number} line{'s' * (number != 1)}"


def _writable(name: str, folder: Path) -> Presence:
    there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
        return Presence("ok", name, f"{folder} may be written")
    why = "may not be written" if there.is_dir() else "is not a folder"
    return Presence("broken", name, f"{there} {why}", f"name another folder: --rag-{name.replace('_', '-')}=DIR")


def _embedder(settings: Settings) -> Presence:
    from rag_harness.models.endpoints import embedder_lacks, embedder_name

    model, adapter = settings.embed_model, embedder_name(settings)
    if adapter not in ("sentence-transformers", "onnx"):
        return Presence("ok", "weights", f"none is needed: the embedder {model} is of {adapter}")
    lacking = embedder_lacks(settings)
    if not lacking:
        return Presence("ok", "weights", f"{model} is there, for {settings.embed_backend}")
    # With recordings, or with BM25, a run needs no weights.
    access = access_of(settings)
    state: PresenceState = "absent" if access.reads_recordings and not access.records else "broken"
    return Presence(state, "weights", f"{model}: {lacking}", f"{_remedy(settings)}. BM25 and replay need none")


def _server(settings: Settings) -> Iterator[Presence]:
    if settings.qdrant_url and settings.index == "qdrant":
        is_there = find_spec("qdrant_client") is not None
        said = "its client is installed" if is_there else "the package qdrant-client is not installed"
        yield Presence("ok" if is_there else "broken", "qdrant server", said, "" if is_there else install("qdrant"))


def _remedy(settings: Settings) -> str:
    return (
        f"{install('local')}, or without torch {without_torch()}"
        if settings.embed_backend == "torch"
        else without_torch()
    )


def _keys(settings: Settings) -> Presence:
    from rag_harness.evaluation.judges.traits import check_judge
    from rag_harness.models.endpoints import check_api_keys

    if not access_of(settings).calls_network:
        return Presence("ok", "keys", f"none is needed: mode {settings.mode} asks no model over a network")
    try:
        check_api_keys(settings)
        if settings.judge:
            check_judge(settings)
    except PrerequisiteError as error:
        return Presence("broken", "keys", str(error))
    return Presence("ok", "keys", f"those that mode {settings.mode} needs are set")


_NAMED = ("data", "endpoints", "configurations", "defined")
"""Tables of pyproject.toml and other files. Their names are enough: a header or an own option may hold a key."""
_LEFT_OUT = ("rootdir", "gates_elsewhere", "stands_in", "reliability_numbers", "define")
_PASSWORD = re.compile(r"(?<=://)[^/\s'\"@]{1,400}@")
_PARAMETERS = re.compile(r"(://[^\s'\"?]{1,400})\?[^\s'\"]{1,400}")


def suite_settings(folder: Path) -> OptionsSettings:
    """Return the settings of the suite in ``folder``: ini file, variables, ``.env``, profile.

    Raises:
        SettingsError: a value or a file cannot be used.
    """
    return load_settings(ini=ini_values(folder), rootdir=folder)


def setting_lines(settings: OptionsSettings) -> list[str]:
    """Return a line for each setting that is not the default, and for each key whether it is set."""
    shown, defaults = masked(settings), {each.name: each.default for each in fields(OptionsSettings)}
    is_key = {each.name: each.metadata.get("secret", False) for each in fields(OptionsSettings)}
    return [
        f"{name} {value}" if is_key[name] else f"{name} = {_shown(name, value)}"
        for name, value in shown.items()
        if name not in _LEFT_OUT and (is_key[name] or value != defaults[name])
    ]


def without_secrets(line: str) -> str:
    """Return a line without passwords and parameters of addresses; the user's folder is ``~``."""
    home = str(Path.home())
    line = _PARAMETERS.sub(r"\1?…", _PASSWORD.sub("…@", line))
    return line.replace(home, "~") if len(home) > 1 else line


def _shown(name: str, value: Any) -> str:
    return ", ".join(each.name for each in value) if name in _NAMED else repr(value)


# ``rag-harness doctor``: looks at the installation and at the suite of a folder, and changes nothing.


class Checkup(NamedTuple):
    """The report of ``doctor``: its lines, and the number of things that are broken."""

    lines: list[str]
    broken: int


def look_over(folder: Path, network: bool = False) -> Checkup:
    """Look at the installation and at the suite in ``folder``; with ``network`` the chat endpoint is asked, too.

    Raises:
        DataError: the folder is missing.
    """
    if not folder.is_dir():
        raise DataError(f"No folder {folder}: name the one that your suite is in, or none for this one.")
    set_here, found = _of_suite(folder, network)
    broken = sum(each.state == "broken" for each in found)
    sections = {
        "versions": package_lines(),
        "extras": extra_lines(),
        "settings that are not the default": set_here,
        "what is there": [line for each in found for line in each.lines()],
    }
    lines = [each for title, those in sections.items() for each in (title, *(f"  {line}" for line in those), "")]
    verdict = f"broken: {broken}. What to do stands below each." if broken else "nothing is broken"
    return Checkup([without_secrets(line) for line in (*lines, verdict)], broken)


def _of_suite(folder: Path, network: bool) -> tuple[list[str], list[Presence]]:

    try:
        settings = suite_settings(folder)
    except PrerequisiteError as error:
        return ["they cannot be used, see below"], [Presence("broken", "settings", str(error))]
    found = [*presences(settings), *_schemas(folder)]
    if network:
        found.append(chat_server(settings))
    return setting_lines(settings), found


def _schemas(folder: Path) -> list[Presence]:
    """Return which schemas for editors are of another version; nothing where none is there."""
    from rag_harness.frontends.cli.init import outdated

    return [
        Presence("absent", file.name, "that of this version", f"rag-harness schema {kind} -o {file}")
        for kind, file in outdated(folder).items()
    ]
